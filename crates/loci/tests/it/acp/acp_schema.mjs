// Holds what the agent writes against the schema that comes with the official TypeScript library.
//
// Both sides of a connection pass through: which request an answer belongs to is known by its id.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import Ajv from "ajv/dist/2020.js";

const entry = createRequire(import.meta.url).resolve("@agentclientprotocol/sdk");
const schema = JSON.parse(readFileSync(join(dirname(entry), "../../../schema/v1/schema.json"), "utf8"));
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(schema, "acp");

function check(name, value) {
  const fits = ajv.getSchema(`acp#/$defs/${name}`);
  if (!fits(value)) throw new Error(`${name}: ${JSON.stringify(value)}: ${ajv.errorsText(fits.errors)}`);
}

const ANSWERS = {
  initialize: "InitializeResponse",
  authenticate: "AuthenticateResponse",
  logout: "LogoutResponse",
  "session/new": "NewSessionResponse",
  "session/load": "LoadSessionResponse",
  "session/resume": "ResumeSessionResponse",
  "session/list": "ListSessionsResponse",
  "session/close": "CloseSessionResponse",
  "session/delete": "DeleteSessionResponse",
  "session/prompt": "PromptResponse",
  "session/set_mode": "SetSessionModeResponse",
  "session/set_config_option": "SetSessionConfigOptionResponse",
};
const PARAMS = {
  "session/update": "SessionNotification",
  "session/request_permission": "RequestPermissionRequest",
  "fs/read_text_file": "ReadTextFileRequest",
  "fs/write_text_file": "WriteTextFileRequest",
  "terminal/create": "CreateTerminalRequest",
  "terminal/output": "TerminalOutputRequest",
  "terminal/wait_for_exit": "WaitForTerminalExitRequest",
  "terminal/kill": "KillTerminalRequest",
  "terminal/release": "ReleaseTerminalRequest",
  "elicitation/create": "CreateElicitationRequest",
  "elicitation/complete": "CompleteElicitationNotification",
  "$/cancel_request": "CancelRequestNotification",
};
const asked = new Map();

/** Looks at each line that passes. */
function watch(onLine) {
  let rest = "";
  return new TransformStream({
    transform(chunk, controller) {
      rest += Buffer.from(chunk).toString("utf8");
      const lines = rest.split("\n");
      rest = lines.pop();
      lines.filter((line) => line).forEach((line) => onLine(JSON.parse(line), line));
      controller.enqueue(chunk);
    },
  });
}

/** What the editor writes passes through this. */
export const toAgent = watch((message) => {
  if (message.method && "id" in message) asked.set(message.id, message.method);
});

/** What the agent writes passes through this; errors are let pass where `refusals` says so. */
export const fromAgent = (refusals = []) =>
  watch((message, line) => {
    if (message.method) {
      if (!PARAMS[message.method]) throw new Error(`not expected: ${line}`);
      check(PARAMS[message.method], message.params);
    } else if ("result" in message) {
      check(ANSWERS[asked.get(message.id)], message.result);
    } else if (!refusals.includes(asked.get(message.id))) {
      throw new Error(`an error: ${line}`);
    }
  });
