//! The scripted model: what it asks for next, chosen from what the tools have answered so far.

use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_llm::Request;
use serde_json::{Value, json};

use super::project::TEST_COMMAND;

const BROKEN: &str = "  local minutes=$((total / 60))";
const MENDED: &str = "  local minutes=$((total % 3600 / 60))";

/// Answers a request by the number of answers before it.
pub(super) fn answer(request: &Request) -> Vec<Block> {
    let turn = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let cwd = working_directory(request);
    let library = format!("{cwd}/lib/duration.sh");
    match turn {
        0 => vec![
            text("I'll run the tests first to see what fails."),
            call(turn, 0, "Bash", json!({"command": TEST_COMMAND, "description": "Run the tests"})),
        ],
        1 => vec![
            text(
                "Everything from one hour on is wrong: the minutes are too many. Let me find where they come from.",
            ),
            call(turn, 0, "Grep", json!({"pattern": "minutes", "output_mode": "content", "path": cwd})),
        ],
        2 => vec![
            text("Two files matter. Reading both."),
            call(turn, 0, "Read", json!({"file_path": library})),
            call(turn, 1, "Read", json!({"file_path": format!("{cwd}/test.sh")})),
        ],
        3 => vec![
            text(
                "The minutes are taken from the whole time, hours included. They should come from what is left after the hours.",
            ),
            call(turn, 0, "Edit", json!({"file_path": library, "old_string": BROKEN, "new_string": MENDED})),
        ],
        4 => vec![
            text("Now the tests again."),
            call(turn, 0, "Bash", json!({"command": TEST_COMMAND, "description": "Run the tests"})),
        ],
        _ => vec![text(&closing(request))],
    }
}

/// Says what the last result really was.
fn closing(request: &Request) -> String {
    let result = last_result(request);
    match result.lines().last() {
        Some(line) if line.ends_with(" 0 failed") => format!(
            "Fixed: {line}. `human_duration` counted the hours a second time as minutes; it now takes the minutes from the rest (`lib/duration.sh:5`)."
        ),
        _ => format!("The tests still fail:\n{result}"),
    }
}

fn last_result(request: &Request) -> String {
    let results = request.messages.iter().flat_map(|message| message.content.iter());
    match results.filter_map(Block::tool_result).next_back().map(|result| result.content) {
        Some(Value::String(text)) => text,
        other => other.unwrap_or_default().to_string(),
    }
}

/// Finds the working directory where a model would: in the prompt.
fn working_directory(request: &Request) -> String {
    let lines = request.system.iter().flat_map(|block| block.text.lines());
    lines.filter_map(|line| line.strip_prefix("- Working directory: ")).next().unwrap_or(".").to_owned()
}

fn text(text: &str) -> Block {
    Block::new_text(text)
}

fn call(turn: usize, n: usize, tool: &str, input: Value) -> Block {
    Block::new_tool_use(&ToolUseId::new(format!("toolu_demo_{turn}_{n}")), tool, &input)
}
