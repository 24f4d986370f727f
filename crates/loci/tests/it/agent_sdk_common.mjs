// What the scenarios share that drive our binary with the official TypeScript Agent SDK.
//
// Usage of each file of scenarios: CLI_PATH SCENARIO
// Prints one JSON value a line; the Rust test beside these files compares them.

const [cliPath, scenario] = process.argv.slice(2);

export const options = (more = {}) => ({
  pathToClaudeCodeExecutable: cliPath,
  model: "claude-sonnet-4-5",
  ...more,
});

export const say = (value) => console.log(JSON.stringify(value));

function blocks(content) {
  if (typeof content === "string") return [content];
  // Of a result that has several parts, the first: the rest is about ids and times.
  const first = (value) => (Array.isArray(value) ? value[0].text : value);
  return content.map((block) => block.text ?? block.thinking ?? block.input ?? first(block.content));
}

export function show(message) {
  switch (message.type) {
    case "assistant":
    case "user":
      return say([message.type, blocks(message.message.content), message.parent_tool_use_id ? "agent" : "main"]);
    case "system":
      return say([message.type, message.subtype]);
    case "result":
      return say([message.type, message.subtype, message.is_error, message.num_turns, message.result ?? message.errors]);
    default:
      return say([message.type]);
  }
}

// Prompts that are pushed one by one; the input stays open until it is closed.
export function inbox() {
  const waiting = [];
  let wake = () => {};
  let closed = false;
  async function* stream() {
    for (;;) {
      while (waiting.length) yield waiting.shift();
      if (closed) return;
      await new Promise((resolve) => (wake = resolve));
    }
  }
  return {
    stream: stream(),
    push(text, more = {}) {
      const message = { role: "user", content: text };
      waiting.push({ type: "user", message, parent_tool_use_id: null, session_id: "", ...more });
      wake();
    },
    close() {
      closed = true;
      wake();
    },
  };
}

export async function turn(query) {
  for (;;) {
    const { value, done } = await query.next();
    if (done) return undefined;
    if (value.type === "result") return value;
  }
}

// Plays the scenario that was asked for.
export async function play(scenarios) {
  try {
    await scenarios[scenario]();
  } catch (error) {
    // The stack would show lines of the package.
    console.error(`${error.name}: ${error.message}`);
    process.exit(1);
  }
}
