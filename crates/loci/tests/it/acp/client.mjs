// Drives our agent with the official TypeScript library and prints what the library made of it.
//
// Usage: client.mjs AGENT [ARGUMENT..]
// Prints one JSON value a line; the Rust test beside this file compares them. Every line of the agent must fit the schema.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { setImmediate as handled } from "node:timers/promises";

import * as acp from "@agentclientprotocol/sdk";
import { fromAgent as checked, toAgent } from "./acp_schema.mjs";

const say = (...value) => console.log(JSON.stringify(value));
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const [program, ...args] = process.argv.slice(2);
const agentProcess = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
toAgent.readable.pipeTo(Writable.toWeb(agentProcess.stdin));
const fromAgent = Readable.toWeb(agentProcess.stdout).pipeThrough(checked());
const updates = new Map();
// The library hands an answer over before the updates that it read along with it.
const take = async (session) => {
  await handled();
  const told = updates.get(session) ?? [];
  updates.set(session, []);
  return told;
};

const app = acp
  .client({ name: "tour" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    const wanted = params.toolCall.title.includes("denied") ? "reject_once" : "allow_once";
    const option = params.options.find((it) => it.kind === wanted);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    if (!updates.has(params.sessionId)) updates.set(params.sessionId, []);
    updates.get(params.sessionId).push(params.update);
  });

const textOf = (told, kind) =>
  told.filter((it) => it.sessionUpdate === kind).map((it) => it.content.text).join("");
const callsOf = (told) => {
  const calls = new Map();
  for (const it of told) {
    if (it.sessionUpdate === "tool_call") calls.set(it.toolCallId, [it.kind, it.title, it.status]);
    if (it.sessionUpdate === "tool_call_update" && it.status) calls.get(it.toolCallId)[2] = it.status;
  }
  return [...calls.values()];
};

const tour = async (agent) => {
  const cwd = process.cwd();
  const { initialize, session: of } = acp.methods.agent;
  const hello = await agent.request(initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  say("version", hello.protocolVersion, hello.agentInfo.name);
  const opened = await agent.request(of.new, { cwd, mcpServers: [] });
  say("new", opened.modes.currentModeId, opened.configOptions.map((it) => it.id).slice(0, 2));
  const session = opened.sessionId;
  const prompt = async (sessionId, text) => {
    const answer = await agent.request(of.prompt, { sessionId, prompt: [{ type: "text", text }] });
    return [answer.stopReason, await take(sessionId)];
  };

  let [reason, told] = await prompt(session, "read it");
  say("prompt", reason, textOf(told, "agent_message_chunk"), textOf(told, "agent_thought_chunk"), callsOf(told));
  for (const [name, text] of [["allow", "make allowed"], ["deny", "make denied"]]) {
    [reason, told] = await prompt(session, text);
    say(name, reason, callsOf(told));
  }

  const waiting = prompt(session, "wait for ever");
  while (!existsSync("started")) await pause(10);
  await agent.notify(of.cancel, { sessionId: session });
  say("cancel", (await waiting)[0]);

  const other = (await agent.request(of.new, { cwd, mcpServers: [] })).sessionId;
  const both = await Promise.all([prompt(session, "one of two"), prompt(other, "two of two")]);
  const texts = both.map(([, told]) => textOf(told, "agent_message_chunk"));
  say("two", both[0][0], texts[0], both[1][0], texts[1]);

  await agent.request(of.setMode, { sessionId: other, modeId: "plan" });
  const modes = (await take(other)).filter((it) => it.sessionUpdate === "current_mode_update");
  say("mode", modes.at(-1).currentModeId);
  say("list", (await agent.request(of.list, { cwd })).sessions.length);

  await take(session);
  await agent.request(of.load, { sessionId: session, cwd, mcpServers: [] });
  told = await take(session);
  const first = (kind) => told.find((it) => it.sessionUpdate === kind).content.text;
  say("load", first("user_message_chunk"), first("agent_message_chunk"));
  [reason, told] = await prompt(session, "say hello");
  say("after load", reason, textOf(told, "agent_message_chunk"));
};

await tour(app.connect(acp.ndJsonStream(toAgent.writable, fromAgent)).agent);
// The streams of the agent are torn down with the process.
process.exit(0);
