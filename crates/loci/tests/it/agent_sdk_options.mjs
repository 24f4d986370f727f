// Options and functions of the official TypeScript Agent SDK beside the usual ones, against our binary.
//
// Usage: agent_sdk_options.mjs CLI_PATH SCENARIO
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import * as sdk from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import { inbox, options, play, say, turn } from "./agent_sdk_common.mjs";

// Runs one prompt to its end and returns the result, with what came on standard error.
async function run(prompt, more) {
  const told = [];
  let result;
  const stderr = (text) => told.push(text);
  for await (const message of sdk.query({ prompt, options: options({ stderr, ...more }) })) {
    if (message.type === "result") result = message;
  }
  return { result, told: told.join("") };
}

const scenarios = {
  async own_process() {
    let flags = [];
    const spawnClaudeCodeProcess = ({ command, args, cwd, env }) => {
      flags = args;
      return spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", "ignore"] });
    };
    const { result } = await run("hi", { spawnClaudeCodeProcess, cwd: process.cwd() });
    say([result.result, flags.includes("stream-json")]);
    const debugFile = `${process.cwd()}/debug.log`;
    say((await run("hi", { debugFile })).result.result);
    say([existsSync(debugFile) && readFileSync(debugFile, "utf8").split("\n").length > 3]);
    // Without a file of the host's the trace goes to one of the session.
    say((await run("hi", { debug: true })).result.result);
    // A program is started as it is, and takes arguments for an interpreter as its own.
    const more = { executable: "node", executableArgs: ["--name", "Mine"] };
    const named = (await run("hi", more)).result;
    say([named.result, (await sdk.getSessionInfo(named.session_id)).customTitle]);
  },

  async told_as_not_offered() {
    const more = {
      agentProgressSummaries: true,
      toolConfig: { askUserQuestion: { previewFormat: "html" } },
      onUserDialog: async () => ({ behavior: "cancelled" }),
      supportedDialogKinds: ["refusal_fallback_prompt"],
    };
    const { result, told } = await run("hi", more);
    say(result.result);
    say(["agentProgressSummaries", "toolConfig"].map((name) => told.includes(name)));
    const looker = { description: "Looks.", prompt: "You look.", observer: "x", observerMessage: "y" };
    const unknown = (await run("hi", { agents: { looker } })).told;
    say(["observer", "observerMessage"].map((name) => unknown.includes(`\`${name}\``)));
  },

  async refused() {
    for (const more of [{ managedSettings: { permissions: { deny: ["Bash"] } } }, { projectConfigRoot: process.cwd() }]) {
      const told = [];
      try {
        const stderr = (text) => told.push(text);
        for await (const _ of sdk.query({ prompt: "hi", options: options({ stderr, ...more }) }));
        say("ran");
      } catch (error) {
        const flag = Object.keys(more)[0] === "managedSettings" ? "--managed-settings" : "--project-config-root";
        say(["raised", `${error.message} ${told.join("")}`.includes(flag)]);
      }
    }
  },

  async resume_drops_turn() {
    const sessionId = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a02";
    await run("one", { sessionId });
    await run("two", { resume: sessionId });
    const messages = await sdk.getSessionMessages(sessionId);
    const resumeSessionAt = messages.filter((it) => it.type === "assistant")[0].uuid;
    const resumeDropsTurn = messages.filter((it) => it.type === "user")[1].uuid;
    const more = { resume: sessionId, forkSession: true, resumeSessionAt };
    say((await run("three", { ...more, resumeDropsTurn })).result.result);
    try {
      await run("four", { ...more, resumeDropsTurn: resumeSessionAt });
    } catch (error) {
      say(["raised", error.message.includes("Resume rejected by --resume-drops-turn:")]);
    }
  },

  async permission_tool() {
    const server = { command: "python3", args: [process.env.MCP_SERVER, "--verdict", process.env.VERDICT] };
    const more = { mcpServers: { s: server }, mcpServersDelivery: "argv", permissionPromptToolName: "mcp__s__verdict" };
    say((await run("go", more)).result.result);
    say([existsSync("made"), existsSync("asked")]);
    const box = inbox();
    // Root may do it in a sandbox alone.
    const bypassing = { allowDangerouslySkipPermissions: true, env: { ...process.env, IS_SANDBOX: "1" } };
    const query = sdk.query({ prompt: box.stream, options: options(bypassing) });
    await query.setPermissionMode("bypassPermissions");
    box.push("go");
    say([(await turn(query)).result, existsSync("unasked")]);
    box.close();
    await turn(query);
  },

  async failing_hooks() {
    const failing = async () => {
      throw new Error("the guard is down");
    };
    for (const onFailure of ["block", "continue"]) {
      const hooks = { PreToolUse: [{ matcher: "Write", hooks: [failing], onFailure, timeout: 20 }] };
      const { result } = await run("write", { hooks, allowedTools: ["Write"] });
      say([onFailure, result.result, existsSync("new.txt")]);
    }
  },

  async tool_policies() {
    const named = (name) =>
      sdk.tool(name, "Does it.", { a: z.number() }, async () => {
        say(["called", name]);
        return { content: [{ type: "text", text: name }] };
      });
    const made = sdk.createSdkMcpServer({ name: "calc", version: "1.0.0", tools: ["add", "sub", "mul"].map(named), timeout: 5000 });
    const calc = {
      ...made,
      tools: [
        { name: "add", permission_policy: "always_deny" },
        { name: "sub", permission_policy: "always_ask" },
        { name: "mul", permission_policy: "always_allow" },
      ],
    };
    const canUseTool = async (tool, input, { mcpServer }) => {
      say(["asked", tool, mcpServer]);
      return { behavior: "allow", updatedInput: input };
    };
    // Rules allow all of them.
    const more = { mcpServers: { calc }, canUseTool, allowedTools: ["mcp__calc"] };
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options(more) });
    box.push("go");
    const result = await turn(query);
    say([result.result, result.permission_denials.map((it) => it.tool_name)]);
    box.close();
    await turn(query);
  },

  async plugin_without_servers() {
    const { mkdirSync, writeFileSync } = await import("node:fs");
    mkdirSync("plug/.claude-plugin", { recursive: true });
    mkdirSync("plug/skills/greet", { recursive: true });
    writeFileSync("plug/.claude-plugin/plugin.json", JSON.stringify({ name: "plug", version: "1.0.0" }));
    writeFileSync("plug/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\nGreet.");
    const server = { command: "python3", args: [process.env.MCP_SERVER] };
    writeFileSync("plug/.mcp.json", JSON.stringify({ mcpServers: { s: server } }));
    for (const pluginDelivery of ["argv", "initialize"]) {
      for (const skipMcpDiscovery of [false, true]) {
        const plugins = [{ type: "local", path: `${process.cwd()}/plug`, skipMcpDiscovery }];
        const more = { plugins, pluginDelivery };
        for await (const message of sdk.query({ prompt: "hi", options: options(more) })) {
          if (message.subtype === "init") say([pluginDelivery, message.skills.includes("plug:greet"), message.mcp_servers.length]);
        }
      }
    }
  },

  async suggestions() {
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options({ promptSuggestions: true }) });
    box.push("one");
    say((await turn(query)).result);
    box.push("two");
    for await (const message of query) {
      if (message.type === "result") say(message.result);
      if (message.type === "prompt_suggestion") {
        say(["suggestion", message.suggestion]);
        break;
      }
    }
    box.close();
  },

  async resources_and_streams() {
    const server = { command: "python3", args: [process.env.MCP_SERVER, "--all"] };
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options({ mcpServers: { s: server } }) });
    box.push("one");
    say((await turn(query)).result);
    say((await query.readMcpResource("s", "ui://page")).contents);
    const more = inbox();
    more.push("two");
    more.close();
    await query.streamInput(more.stream);
    say((await turn(query)).result);
    query.close();
    say((await query.next()).done);
  },

  async store_options() {
    const sessionStore = new sdk.InMemorySessionStore();
    const { result } = await run("one", { sessionStore, sessionStoreFlush: "eager", loadTimeoutMs: 5000 });
    const resume = result.session_id;
    await sdk.deleteSession(resume);
    say((await run("two", { sessionStore, sessionStoreFlush: "eager", loadTimeoutMs: 5000, resume })).result.result);
    const messages = await sdk.getSessionMessages(resume, { sessionStore });
    say(messages.map((it) => it.type));
    const key = { projectKey: "p", sessionId: resume };
    const entries = [];
    for (const it of messages) entries.push({ type: it.type, uuid: it.uuid, message: it.message, timestamp: "2026-01-01T00:00:00.000Z" });
    say(sdk.foldSessionSummary(undefined, key, entries, { mtime: 1 }).mtime);
  },

  async agent_messages() {
    const looker = { description: "Looks.", prompt: "You look.", tools: ["Read"] };
    const { result } = await run("Send it.", { agents: { looker } });
    const [agent] = await sdk.listSubagents(result.session_id);
    say((await sdk.getSubagentMessages(result.session_id, agent)).map((it) => it.type));
  },

  async main_agent() {
    const looker = { description: "Looks.", prompt: "You look.", tools: ["Read"], model: "haiku" };
    for await (const message of sdk.query({ prompt: "hi", options: { ...options({ agents: { looker }, agent: "looker" }), model: undefined } })) {
      if (message.subtype === "init") say([message.tools, message.agents.filter((it) => it === "looker").length]);
      if (message.type === "result") say(message.result);
    }
  },

  async names() {
    const told = async () => ({});
    const hooks = Object.fromEntries(sdk.HOOK_EVENTS.map((event) => [event, [{ hooks: [told] }]]));
    const hooked = await run("hi", { hooks });
    say([hooked.result.result, hooked.told.match(/hooks \(([^)]*)\)/)?.[1] ?? "all events are known"]);
    const offered = await run("hi", { tools: [...sdk.BUILTIN_TOOL_NAMES] });
    say([offered.result.result, offered.told.includes("Bash"), offered.told.includes("ClaudeDesign")]);
    say(Object.keys(sdk.LEGACY_TOOL_NAME_ALIASES).includes("Task"));
  },

  async settings_functions() {
    const { mkdirSync, writeFileSync } = await import("node:fs");
    mkdirSync(".claude", { recursive: true });
    writeFileSync(".claude/settings.json", JSON.stringify({ permissions: { defaultMode: "bypassPermissions" } }));
    const resolved = await sdk.resolveSettings({ cwd: process.cwd() });
    say(sdk.filterEscalatingDefaultMode(resolved).permissions?.defaultMode ?? "dropped");
    say((await sdk.matchDeniedModels(["claude-opus-4-8"], ["claude-opus-4-8"])).denied);
    let mode;
    for await (const message of sdk.query({ prompt: "hi", options: options() })) {
      if (message.subtype === "init") mode = message.permissionMode;
    }
    say(mode);
  },

  async spare() {
    try {
      await sdk.prewarm({ options: options(), initializeTimeoutMs: 20000 });
      say("warm");
    } catch (error) {
      say(["raised", typeof error.message]);
    }
  },
};

await play(scenarios);
