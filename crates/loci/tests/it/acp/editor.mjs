// Plays an editor that has files, terminals and forms, with the official TypeScript library, and prints what came of it.
//
// Usage: editor.mjs AGENT [ARGUMENT..]
// Prints one JSON value a line; the Rust test beside this file compares them. Every line of the agent must fit the schema.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setImmediate as handled } from "node:timers/promises";

import * as acp from "@agentclientprotocol/sdk";
import { fromAgent, toAgent } from "./acp_schema.mjs";

const say = (...value) => console.log(JSON.stringify(value));
const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const [program, ...args] = process.argv.slice(2);
const agentProcess = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
toAgent.readable.pipeTo(Writable.toWeb(agentProcess.stdin));
// A login of a kind that there is not is refused.
const checked = Readable.toWeb(agentProcess.stdout).pipeThrough(fromAgent(["authenticate"]));
const stream = acp.ndJsonStream(toAgent.writable, checked);

let told = [];
const seen = { read: [], written: [], terminals: [], asked: [], completed: [] };
const unsaved = new Map([[`${process.cwd()}/b.txt`, "not saved\n"]]);
// The library hands an answer over before the updates that it read along with it.
const take = async () => {
  await handled();
  return told.splice(0);
};

const { fs, terminal, session: from, elicitation } = acp.methods.client;
const app = acp
  .client({ name: "editor" })
  .onRequest(from.requestPermission, ({ params }) => {
    const option = params.options.find((it) => it.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest(fs.readTextFile, ({ params }) => {
    seen.read.push(params.path.split("/").at(-1));
    return { content: unsaved.get(params.path) ?? readFileSync(params.path, "utf8") };
  })
  .onRequest(fs.writeTextFile, ({ params }) => {
    seen.written.push([params.path.split("/").at(-1), params.content]);
    unsaved.set(params.path, params.content);
    writeFileSync(params.path, params.content);
    return {};
  })
  .onRequest(terminal.create, ({ params }) => {
    seen.terminals.push([params.command, ...(params.args ?? [])].join(" ").includes("echo in the editor"));
    return { terminalId: "t1" };
  })
  .onRequest(terminal.output, () => ({ output: "in the editor\n", truncated: false, exitStatus: { exitCode: 0 } }))
  .onRequest(terminal.waitForExit, () => ({ exitCode: 0 }))
  .onRequest(terminal.release, () => ({}))
  .onRequest(elicitation.create, ({ params }) => {
    seen.asked.push([params.mode, params.mode === "url" ? params.url : Object.keys(params.requestedSchema.properties)]);
    return params.mode === "url" ? { action: "accept" } : { action: "accept", content: { name: "Ada", question_1: "Blue" } };
  })
  .onNotification(elicitation.complete, ({ params }) => seen.completed.push(params.elicitationId))
  .onNotification(from.update, ({ params }) => told.push(params.update));

const texts = (updates, kind) => updates.filter((it) => it.sessionUpdate === kind).map((it) => it.content.text).join("");

const tour = async (agent) => {
  const cwd = process.cwd();
  const { initialize, authenticate, logout, session: of } = acp.methods.agent;
  const clientCapabilities = {
    fs: { readTextFile: true, writeTextFile: true },
    terminal: true,
    elicitation: { form: {}, url: {} },
  };
  const hello = await agent.request(initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities });
  const able = hello.agentCapabilities;
  say("able", able.loadSession, able.promptCapabilities, Object.keys(able.sessionCapabilities ?? {}).sort());
  say("login", hello.authMethods.map((it) => it.id));
  await agent.request(authenticate, { methodId: "api-key" });
  const refused = await agent.request(authenticate, { methodId: "nothing" }).catch((error) => error.code);
  say("authenticate", refused);

  const server = { name: "s", command: "python3", args: [process.env.MCP_SERVER], env: [] };
  const opened = await agent.request(of.new, { cwd, mcpServers: [server] });
  const sessionId = opened.sessionId;
  const ask = async (...prompt) => {
    const answer = await agent.request(of.prompt, { sessionId, prompt });
    return [answer.stopReason, await take()];
  };
  const text = (it) => ({ type: "text", text: it });

  const resource = { uri: `file://${cwd}/embedded.md`, mimeType: "text/markdown", text: "embedded words" };
  let [reason, updates] = await ask(
    text("look at these"),
    { type: "image", mimeType: "image/png", data: PICTURE },
    { type: "resource", resource },
    { type: "resource_link", uri: `file://${cwd}/a.txt`, name: "a.txt" },
  );
  say("content", reason, texts(updates, "agent_message_chunk"));
  const commands = updates.find((it) => it.sessionUpdate === "available_commands_update");
  say("commands", (commands?.availableCommands ?? []).some((it) => it.name === "compact"));

  [reason, updates] = await ask(text("edit it"));
  const diff = updates.flatMap((it) => it.content ?? []).find?.((it) => it.type === "diff");
  const place = updates.flatMap((it) => it.locations ?? [])[0];
  say("diff", reason, [diff.path.split("/").at(-1), diff.oldText, diff.newText], place.path.split("/").at(-1));
  say("files", seen.read, seen.written);

  [reason, updates] = await ask(text("run it"));
  const output = updates.flatMap((it) => it.content ?? []).some((it) => it.type === "terminal" || it.content?.text?.includes("in the editor"));
  say("terminal", reason, seen.terminals, output);

  [reason, updates] = await ask(text("plan it"));
  const plan = updates.filter((it) => it.sessionUpdate === "plan").at(-1);
  say("plan", plan.entries.map((it) => [it.content, it.status]));

  [reason] = await ask(text("ask me"));
  say("forms", reason, seen.asked.splice(0));
  [reason] = await ask(text("let the server ask"));
  say("server form", reason, seen.asked.splice(0));
  [reason] = await ask(text("visit a page"));
  say("page", reason, seen.asked.splice(0), seen.completed);

  const model = opened.configOptions.find((it) => it.id === "model");
  const other = model.options.map((it) => it.value).find((value) => value.includes("haiku"));
  const chosen = await agent.request(of.setConfigOption, { sessionId, configId: "model", value: other });
  say("model", chosen.configOptions.find((it) => it.id === "model").currentValue === other);
  [reason, updates] = await ask(text("say hello"));
  const usage = updates.filter((it) => it.sessionUpdate === "usage_update").at(-1);
  say("usage", reason, usage.used > 0, usage.size > 0, usage.cost?.currency ?? null);

  await agent.request(of.close, { sessionId });
  await agent.request(of.resume, { sessionId, cwd, mcpServers: [] });
  say("resumed", (await take()).some((it) => it.sessionUpdate === "user_message_chunk"));
  say("listed", (await agent.request(of.list, { cwd })).sessions.length);
  await agent.request(of.close, { sessionId });
  await agent.request(of.delete, { sessionId });
  say("deleted", (await agent.request(of.list, { cwd })).sessions.length);
  say("logout", await agent.request(logout, {}));
};

await tour(app.connect(stream).agent);
process.exit(0);
