// Holds everything that our binary tells the official TypeScript Agent SDK against the types that the package declares.
//
// Usage: agent_sdk_types.mjs CLI_PATH SCENARIO
// Each value that the SDK hands on becomes a line of a program, which the TypeScript compiler checks. What we tell beyond
// the types is let pass, at any depth; what is missing, or of another kind, is printed.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as sdk from "@anthropic-ai/claude-agent-sdk";
import ts from "typescript";
import { z } from "zod";
import { inbox, options, play, say, turn } from "./agent_sdk_common.mjs";

const told = [];
const note = (type, value) => told.push([type, JSON.stringify(value)]);

// Frames that the package declares no type for.
const UNDECLARED = ["goal_status", "results_cleared", "command_lifecycle", "model_fallback"];
// Types whose names are not those of their frames.
const NAMES = {
  init: "SDKSystemMessage",
  api_retry: "SDKAPIRetryMessage",
  stream_event: "SDKPartialAssistantMessage",
  rate_limit_event: "SDKRateLimitEvent",
};

// What the model's server said is passed on as it came: those parts are its business.
function typeOf(frame) {
  if (frame.type === "assistant") return ["SDKAssistantMessage", "message"];
  if (frame.type === "user") return [frame.isReplay ? "SDKUserMessageReplay" : "SDKUserMessage"];
  if (frame.type === "result") return [frame.subtype === "success" ? "SDKResultSuccess" : "SDKResultError", "usage"];
  const kind = frame.subtype ?? frame.type;
  const words = kind.split("_").map((word) => word[0].toUpperCase() + word.slice(1));
  return [NAMES[kind] ?? `SDK${words.join("")}Message`, ...(kind === "stream_event" ? ["event"] : [])];
}

function noteFrame(frame) {
  if (!UNDECLARED.includes(frame.subtype ?? frame.type)) note(typeOf(frame).join("-"), frame);
}

const PRELUDE = `
import type * as sdk from "@anthropic-ai/claude-agent-sdk";
type Scalar = string | number | boolean | bigint | null | undefined;
type Loose<T> = T extends Scalar ? T
  : T extends (infer U)[] ? Loose<U>[]
  : T extends object ? { [K in keyof T]: Loose<T[K]> } & { [key: string]: unknown }
  : T;
declare function is<T>(value: Loose<T>): void;
`;

// Says which of the values do not have the type that is declared for them. One is wrong on purpose: it must be found.
function problems() {
  note("SDKStatusMessage", { type: "wrong on purpose" });
  const dir = dirname(fileURLToPath(import.meta.url));
  const place = mkdtempSync(join(dir, "types-"));
  const file = join(place, "told.ts");
  const head = PRELUDE.split("\n").length - 1;
  const name = (type) => {
    const [whole, without] = type.split("-");
    return without ? `Omit<sdk.${whole}, "${without}">` : `sdk.${whole}`;
  };
  writeFileSync(file, PRELUDE + told.map(([type, value]) => `is<${name(type)}>(${value});`).join("\n"));
  const settings = { noEmit: true, strict: true, skipLibCheck: true, types: [], target: ts.ScriptTarget.ES2022 };
  const resolution = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
  const program = ts.createProgram([file], { ...settings, ...resolution });
  const source = program.getSourceFile(file);
  const found = ts.getPreEmitDiagnostics(program, source).map((problem) => {
    const { line } = source.getLineAndCharacterOfPosition(problem.start);
    const [type, value] = told[line - head] ?? ["?", "{}"];
    const { type: kind, subtype, hook_event_name: event } = JSON.parse(value);
    const text = ts.flattenDiagnosticMessageText(problem.messageText, " / ");
    return [type, kind ?? event ?? null, subtype ?? null, text.slice(0, 600)];
  });
  rmSync(place, { recursive: true });
  const isOnPurpose = ([, kind]) => kind === "wrong on purpose";
  if (!found.some(isOnPurpose)) throw new Error("nothing was checked");
  return found.filter((it) => !isOnPurpose(it));
}

// The names of the types that were met.
const met = () => [...new Set(told.map(([type]) => type.split("-")[0]))].sort();

// The types of what callbacks of hooks hear, by event.
const HOOK_INPUTS = Object.fromEntries(sdk.HOOK_EVENTS.map((event) => [event, `${event}HookInput`]));

function hooks() {
  const callback = (event) => async (input) => {
    note(HOOK_INPUTS[event], input);
    return {};
  };
  return Object.fromEntries(sdk.HOOK_EVENTS.map((event) => [event, [{ hooks: [callback(event)] }]]));
}

async function watched(query, until) {
  for (;;) {
    const { value, done } = await query.next();
    if (done) return undefined;
    noteFrame(value);
    if (until(value)) return value;
  }
}

const isResult = (frame) => frame.type === "result";

const scenarios = {
  async session() {
    const asked = [];
    const canUseTool = async (tool, input, context) => {
      asked.push(tool);
      note("PermissionUpdate[]", context.suggestions ?? []);
      return input.command?.includes("denied") ? { behavior: "deny", message: "No." } : { behavior: "allow", updatedInput: input };
    };
    const add = sdk.tool("add", "Adds.", { a: z.number() }, async ({ a }) => ({ content: [{ type: "text", text: `${a}` }] }));
    const calc = sdk.createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] });
    const looker = { description: "Looks.", prompt: "You look.", tools: ["Read"] };
    const more = {
      canUseTool,
      hooks: hooks(),
      agents: { looker },
      mcpServers: { calc },
      includePartialMessages: true,
      includeHookEvents: true,
      forwardSubagentText: true,
      enableFileCheckpointing: true,
      stderr: () => {},
    };
    const box = inbox();
    const query = sdk.query({ prompt: box.stream, options: options(more) });
    note("SDKControlInitializeResponse", await query.initializationResult());
    note("SlashCommand[]", await query.supportedCommands());
    note("ModelInfo[]", await query.supportedModels());
    note("AgentInfo[]", await query.supportedAgents());
    note("AccountInfo", await query.accountInfo());
    const uuid = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a01";
    box.push("read and write", { uuid });
    await watched(query, isResult);
    note("McpServerStatus[]", await query.mcpServerStatus());
    note("SDKControlGetContextUsageResponse", await query.getContextUsage());
    note("SDKControlGetUsageResponse", await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET());
    note("SDKControlReadFileResponse", await query.readFile("a.txt"));
    note("RewindFilesResult", await query.rewindFiles(uuid, { dryRun: true }));
    note("SDKControlReloadSkillsResponse", await query.reloadSkills());
    note("SDKControlReloadPluginsResponse", await query.reloadPlugins());
    note("SDKControlReloadOutputStylesResponse", await query.reloadOutputStyles());
    for (const prompt of ["send it", "/context", "/usage", "/nosuch-here", "/compact", "/clear"]) {
      box.push(prompt);
      await watched(query, isResult);
    }
    box.push("run it");
    let task;
    await watched(query, (frame) => {
      task ??= frame.subtype === "task_started" ? frame.task_id : undefined;
      return isResult(frame);
    });
    await query.stopTask(task);
    await watched(query, (frame) => frame.subtype === "task_notification");
    box.push("talk");
    await watched(query, (frame) => frame.event?.type === "content_block_delta");
    note("SDKControlInterruptResponse", await query.interrupt());
    await watched(query, isResult);
    box.push("end");
    await watched(query, isResult);
    box.close();
    await turn(query);
    say(asked);
    met().forEach(say);
    problems().forEach(say);
  },

  async failures() {
    const run = async (more) => {
      try {
        const query = sdk.query({ prompt: "hi", options: options({ stderr: () => {}, ...more }) });
        for await (const frame of query) noteFrame(frame);
      } catch {
        // What it comes to is in the result.
      }
    };
    await run({ env: { ...process.env, CLAUDE_CODE_MAX_RETRIES: "1" } });
    await run({ maxTurns: 1, permissionMode: "dontAsk" });
    await run({ outputFormat: { type: "json_schema", schema: { type: "object" } } });
    await run({ resume: "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a09" });
    say(told.map(([, value]) => JSON.parse(value)).filter(isResult).map((it) => [it.subtype, it.is_error]));
    met().forEach(say);
    problems().forEach(say);
  },
};

await play(scenarios);
