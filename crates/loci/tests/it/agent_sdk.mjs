// Drives our binary with the official TypeScript Agent SDK and prints what the SDK made of it.
//
// Usage: agent_sdk.mjs CLI_PATH SCENARIO
// Prints one JSON value a line; the Rust test beside this file compares them.
import * as sdk from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import { inbox, options, play, say, show, turn } from "./agent_sdk_common.mjs";

const scenarios = {
  async one_shot() {
    for await (const message of sdk.query({ prompt: "What does a.txt say?", options: options() })) show(message);
  },

  async prompts_and_limits() {
    const more = {
      systemPrompt: { type: "preset", preset: "claude_code", append: "Rhyme.", excludeDynamicSections: true },
      tools: ["Read", "Bash"],
      disallowedTools: ["Bash"],
      maxThinkingTokens: 2000,
      maxTurns: 3,
      maxBudgetUsd: 5,
      additionalDirectories: ["/tmp"],
      title: "Mine",
      settingSources: [],
      env: { ...process.env, CLAUDE_AGENT_SDK_CLIENT_APP: "tests/1" },
    };
    for await (const message of sdk.query({ prompt: "hi", options: options(more) })) {
      if (message.type === "system" && message.subtype === "init") say([message.tools, message.additional_directories]);
      if (message.type === "result") say([message.subtype, message.result]);
    }
  },

  async permissions() {
    const canUseTool = async (tool, input, context) => {
      say(["asked", tool, input, typeof context.toolUseID]);
      if (input.command.includes("deny")) return { behavior: "deny", message: "Not that one." };
      return { behavior: "allow", updatedInput: { command: "touch other" } };
    };
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options({ canUseTool }) });
    box.push("go");
    say((await turn(query)).result);
    box.close();
    await turn(query);
  },

  async hooks() {
    const told = (name, answer) => ({
      hooks: [
        async (input) => {
          say([name, input.hook_event_name, input.tool_name ?? null]);
          return answer;
        },
      ],
    });
    const deny = { hookEventName: "PreToolUse", permissionDecision: "deny", permissionDecisionReason: "No." };
    const hooks = {
      UserPromptSubmit: [told("prompt", {})],
      PreToolUse: [{ matcher: "Bash", ...told("before", { hookSpecificOutput: deny }) }],
      Stop: [told("stop", {})],
    };
    const more = { hooks, allowedTools: ["Bash"], includeHookEvents: true };
    const kinds = new Set();
    for await (const message of sdk.query({ prompt: "go", options: options(more) })) {
      if (message.type === "system" && message.subtype.startsWith("hook_")) kinds.add(message.subtype);
      if (message.type === "result") say([message.subtype, message.result]);
    }
    say([...kinds].sort());
  },

  async mcp_in_process() {
    const add = sdk.tool("add", "Adds.", { a: z.number(), b: z.number() }, async ({ a, b }) => {
      say(["called", a, b]);
      return { content: [{ type: "text", text: String(a + b) }] };
    });
    const calc = sdk.createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] });
    const box = inbox();
    const more = { mcpServers: { calc }, allowedTools: ["mcp__calc__add"] };
    const query = sdk.query({ prompt: box.stream, options: options(more) });
    box.push("add");
    say((await turn(query)).result);
    say((await query.mcpServerStatus()).map((it) => [it.name, it.status]));
    await query.toggleMcpServer("calc", false);
    say((await query.mcpServerStatus()).map((it) => [it.name, it.status]));
    await query.toggleMcpServer("calc", true);
    await query.reconnectMcpServer("calc");
    say((await query.setMcpServers({})).removed);
    box.close();
    await turn(query);
  },

  async structured() {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const more = { outputFormat: { type: "json_schema", schema } };
    for await (const message of sdk.query({ prompt: "How many?", options: options(more) })) {
      if (message.type === "result") say([message.subtype, message.structured_output ?? message.errors]);
    }
  },

  async structured_given_up() {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const more = { outputFormat: { type: "json_schema", schema } };
    try {
      for await (const message of sdk.query({ prompt: "How many?", options: options(more) })) {
        if (message.type === "result") say([message.subtype, message.is_error]);
      }
    } catch (error) {
      say(["raised", error.message.includes("structured")]);
    }
  },

  async agents() {
    const looker = {
      description: "Looks.",
      prompt: "You look.",
      tools: ["Read"],
      model: "haiku",
      criticalSystemReminder_EXPERIMENTAL: "Touch nothing.",
    };
    const more = { agents: { looker }, forwardSubagentText: true };
    for await (const message of sdk.query({ prompt: "Send it.", options: options(more) })) {
      if (message.type !== "system" || message.subtype.startsWith("task_")) show(message);
    }
  },

  async control() {
    const box = inbox();
    const more = { allowDangerouslySkipPermissions: false, enableFileCheckpointing: true };
    const query = sdk.query({ prompt: box.stream, options: options(more) });
    const init = await query.initializationResult();
    say(Object.keys(init).sort());
    say((await query.supportedCommands()).some((it) => it.name === "compact"));
    say((await query.supportedModels()).map((it) => it.value).includes("opus"));
    say((await query.supportedAgents()).map((it) => it.name).includes("general-purpose"));
    say(Object.keys(await query.accountInfo()).sort());
    await query.setPermissionMode("acceptEdits");
    await query.setModel("claude-haiku-4-5");
    await query.setMaxThinkingTokens(3000);
    await query.applyFlagSettings({ permissions: { deny: ["WebFetch"] } });
    const uuid = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a01";
    box.push("write", { uuid });
    say((await turn(query)).result);
    const usage = await query.getContextUsage();
    say([usage.model, usage.totalTokens > 0, usage.categories.length > 2]);
    const spent = await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET();
    say(Object.keys(spent.session.model_usage));
    say((await query.readFile("new.txt")).contents);
    say(await query.readFile("/etc/hostname"));
    say((await query.rewindFiles(uuid, { dryRun: true })).canRewind);
    say((await query.rewindFiles(uuid)).filesChanged.length);
    await query.seedReadState("a.txt", Date.now());
    say((await query.reloadSkills()).skills.some((it) => it.name === "init"));
    say((await query.reloadOutputStyles()).available_output_styles.includes("default"));
    await query.backgroundTasks();
    await query.stopTask("none");
    await query.updateSettings("userSettings", { cleanupPeriodDays: 9 });
    say((await query.reinitialize()).commands.length > 0);
    box.close();
    await turn(query);
  },

  async more_options() {
    const texts = [];
    const stderr = (text) => texts.push(text);
    const answers = [];
    const run = async (more) => {
      for await (const message of sdk.query({ prompt: "hi", options: options({ stderr, ...more }) })) {
        if (message.type === "result") answers.push(message.result);
      }
    };
    await run({ systemPrompt: ["Static.", sdk.SYSTEM_PROMPT_DYNAMIC_BOUNDARY, "Dynamic."] });
    await run({ systemPrompt: { type: "custom", prompt: "Custom.", snapshot: false }, model: "claude-opus-4-8" });
    await run({ thinking: { type: "adaptive", display: "omitted" }, effort: "low", model: "claude-opus-4-8" });
    await run({ thinking: { type: "disabled" }, model: "claude-opus-4-8" });
    await run({ thinking: { type: "enabled", budgetTokens: 2000 }, taskBudget: { total: 50000 } });
    await run({ betas: ["context-1m-2025-08-07"], fallbackModel: "haiku", extraArgs: { name: "Mine" } });
    await run({ settings: { permissions: { deny: ["WebFetch"] } }, sandbox: { enabled: false } });
    await run({ permissionMode: "plan", planModeInstructions: "Plan in verse." });
    await run({ verbatimPrompts: true, strictMcpConfig: true, agent: "Explore" });
    say([answers, texts.filter((text) => text.trim())]);
  },

  async tool_aliases() {
    const shell = sdk.tool("bash", "Runs.", { command: z.string() }, async ({ command }) => {
      say(["called", command]);
      return { content: [{ type: "text", text: "ran elsewhere" }] };
    });
    const workspace = sdk.createSdkMcpServer({ name: "workspace", version: "1.0.0", tools: [shell] });
    const more = {
      mcpServers: { workspace },
      allowedTools: ["mcp__workspace__bash"],
      toolAliases: { Bash: "mcp__workspace__bash" },
    };
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options(more) });
    box.push("go");
    say((await turn(query)).result);
    say(await query.setMcpPermissionModeOverride("workspace", "default"));
    say(Object.keys(await query.setMcpPermissionModeOverride("nobody", "auto")));
    box.close();
    await turn(query);
  },

  async plugins() {
    const { mkdirSync, writeFileSync } = await import("node:fs");
    mkdirSync("plug/.claude-plugin", { recursive: true });
    mkdirSync("plug/skills/greet", { recursive: true });
    writeFileSync("plug/.claude-plugin/plugin.json", JSON.stringify({ name: "plug", version: "1.0.0" }));
    writeFileSync("plug/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nGreet.");
    const plugins = [{ type: "local", path: `${process.cwd()}/plug` }];
    for (const pluginDelivery of ["argv", "initialize"]) {
      const box = inbox();
      const more = { plugins, pluginDelivery, skills: ["plug:greet"], settingSources: ["project"] };
      const query = sdk.query({ prompt: box.stream, options: options(more) });
      const init = await query.initializationResult();
      say([pluginDelivery, init.plugins_applied ?? null, init.commands.some((it) => it.name === "plug:greet")]);
      const reloaded = await query.reloadPlugins();
      say([reloaded.plugins.map((it) => it.name), reloaded.error_count]);
      box.push("hi");
      say((await turn(query)).result);
      box.close();
      await turn(query);
    }
  },

  async tasks() {
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options({ allowedTools: ["Bash"] }) });
    box.push("start");
    let task;
    for await (const message of query) {
      if (message.type !== "system") {
        if (message.type === "result") {
          say(await query.backgroundTasks("none"));
          await query.stopTask(task);
        }
        continue;
      }
      if (message.subtype === "task_started") task = message.task_id;
      if (message.subtype === "background_tasks_changed") say(message.tasks.length);
      if (message.subtype === "task_notification") {
        say(message.status);
        break;
      }
    }
    box.close();
  },

  async frames() {
    const seen = {};
    const more = { permissionMode: "dontAsk", agents: {}, perTaskStopAffordance: true, permissionPrompts: "none" };
    for await (const message of sdk.query({ prompt: "hi", options: options(more) })) {
      if (message.type === "rate_limit_event") say(message.rate_limit_info);
      if (message.subtype === "permission_denied") say([message.tool_name, message.decision_reason_type]);
      if (message.subtype === "init") say([message.view_mode, message.capabilities.length > 2]);
      if (message.type === "result") say(Object.keys(message.modelUsage["claude-sonnet-4-5"]).sort());
      seen[message.type] = true;
    }
    say(Object.keys(seen).sort());
  },

  async settings() {
    const { mkdirSync, writeFileSync } = await import("node:fs");
    mkdirSync(".claude", { recursive: true });
    writeFileSync(".claude/settings.json", JSON.stringify({ cleanupPeriodDays: 9 }));
    const resolved = await sdk.resolveSettings({ cwd: process.cwd() });
    say(resolved.effective?.cleanupPeriodDays ?? Object.keys(resolved).sort());
    let id;
    for await (const message of sdk.query({ prompt: "one", options: options() })) {
      if (message.type === "result") id = message.session_id;
    }
    await sdk.archiveSession(id);
    say((await sdk.getSessionInfo(id)).archived ?? null);
    await sdk.unarchiveSession(id);
    say((await sdk.getSessionInfo(id)).archived ?? null);
    const sessionStore = new sdk.InMemorySessionStore();
    await sdk.importSessionToStore(id, sessionStore);
    say((await sdk.listSessions({ sessionStore, dir: process.cwd() })).length);
    for await (const message of sdk.query({ prompt: "two", options: options({ resume: id }) })) {
      if (message.type === "result") say(message.result);
    }
  },

  async interrupts() {
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options({ includePartialMessages: true }) });
    box.push("talk");
    let stopped = false;
    for await (const message of query) {
      if (message.type === "stream_event" && message.event.type === "content_block_delta" && !stopped) {
        stopped = true;
        say(await query.interrupt());
      }
      if (message.type === "result") {
        say([message.subtype, message.terminal_reason]);
        if (message.subtype === "success") break;
        box.push("go on");
      }
    }
    box.close();
  },

  async aborted() {
    const abortController = new AbortController();
    try {
      const more = { abortController, includePartialMessages: true };
      for await (const message of sdk.query({ prompt: "talk", options: options(more) })) {
        if (message.type === "stream_event") abortController.abort();
      }
    } catch (error) {
      say([error instanceof sdk.AbortError]);
    }
  },

  async sessions() {
    const run = async (prompt, more) => {
      let result;
      for await (const message of sdk.query({ prompt, options: options(more) })) {
        if (message.type === "result") result = message;
      }
      return result;
    };
    const sessionId = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a02";
    const first = await run("one", { sessionId });
    say([first.session_id === sessionId, first.result]);
    say([(await run("two", { resume: sessionId })).session_id === sessionId]);
    say([(await run("three", { continue: true })).session_id === sessionId]);
    const messages = await sdk.getSessionMessages(sessionId);
    const at = messages.filter((it) => it.type === "assistant")[0].uuid;
    const fork = await run("four", { resume: sessionId, forkSession: true, resumeSessionAt: at });
    say([fork.session_id === sessionId, fork.result]);
    say((await run("five", { persistSession: false })).result);
    await sdk.renameSession(sessionId, "Renamed");
    await sdk.tagSession(sessionId, "kept");
    const info = await sdk.getSessionInfo(sessionId);
    say([info.customTitle, info.tag, messages.length]);
    say((await sdk.listSessions()).length);
    const copy = await sdk.forkSession(sessionId);
    say((await sdk.getSessionMessages(copy.sessionId)).length);
    await sdk.deleteSession(copy.sessionId);
    say([(await sdk.listSessions()).length, (await sdk.listSubagents(sessionId)).length]);
  },

  async stores() {
    const sessionStore = new sdk.InMemorySessionStore();
    let id;
    for await (const message of sdk.query({ prompt: "one", options: options({ sessionStore }) })) {
      if (message.type === "result") id = message.session_id;
    }
    say((await sdk.getSessionMessages(id, { sessionStore })).map((it) => it.type));
    await sdk.deleteSession(id);
    for await (const message of sdk.query({ prompt: "two", options: options({ sessionStore, resume: id }) })) {
      if (message.type === "result") say([message.session_id === id, message.result]);
    }
    say((await sdk.getSessionMessages(id, { sessionStore })).length);
  },

  async warm() {
    const ready = await sdk.startup({ options: options() });
    for await (const message of ready.query("hi")) if (message.type === "result") say(message.result);
  },

  async elicitations() {
    const seen = [];
    const server = { command: "python3", args: [process.env.MCP_SERVER] };
    const onElicitation = async (request) => {
      seen.push(request.serverName);
      return { action: "accept", content: { name: "x" } };
    };
    const more = { mcpServers: { s: server }, allowedTools: ["mcp__s"], onElicitation, mcpServersDelivery: "initialize" };
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options(more) });
    box.push("ask");
    say((await turn(query)).subtype);
    say(seen);
    box.close();
    await turn(query);
  },
};

await play(scenarios);
