//! Models that call tools clumsily: as text, or with arguments that are no JSON. Each is told once, then it counts.
//!
//! Text is never taken for a call: what looks like one may be an example. Only models of named providers are looked at.

use loci_core::message::ToolUse;
use loci_core::stream::{Failure, FailureKind};
use loci_core::tool::ToolOutcome;
use loci_llm::UNPARSED_INPUT;
use serde_json::Value;

use super::{Effect, Outcome, Record, Turn, refuse_all};

const CALL_PROPERLY: &str = "You wrote a tool call as text, so nothing was run. To use a tool, call it through the \
     function-calling interface; to answer, answer in plain words.";

/// What marks a call in the text of models that were taught other forms.
const MARKS: [&str; 7] = [
    "<tool_call>",
    "<function=",
    "<function_call>",
    "<|tool_call|>",
    "<|tool_call_begin|>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
];

/// What was made good once already.
#[derive(Debug, Default)]
pub(super) struct ClumsyCalls {
    has_reminded: bool,
    has_had_bad_arguments: bool,
}

impl Turn {
    /// Reminds a model once of how tools are called; then the text stands.
    pub(super) fn remind_of_calls(&mut self) -> Vec<Effect> {
        if std::mem::replace(&mut self.clumsy.has_reminded, true) {
            return self.complete();
        }
        let mut effects = vec![Effect::Record(Record::Nudge(CALL_PROPERLY))];
        effects.extend(self.ask_model());
        effects
    }

    /// Ends a turn whose model writes arguments that are no JSON for the second time in a row; the first time it is told.
    pub(super) fn stop_bad_arguments(&mut self, calls: &[ToolUse]) -> Option<Vec<Effect>> {
        let bad = calls.iter().find(|call| call.input.get(UNPARSED_INPUT).is_some());
        let had_some = std::mem::replace(&mut self.clumsy.has_had_bad_arguments, bad.is_some());
        let bad = bad.filter(|_| had_some)?;
        let failure = Failure::new(
            FailureKind::Malformed,
            format!("The model called {} twice with arguments that are not JSON", bad.name),
        )
        .with_hint("Choose a model that can call tools, or say `\"tools\": false` of this one in the `providers` setting.");
        let outcome = ToolOutcome::refusal("Not run: the arguments were not JSON, again.");
        let mut effects = refuse_all(calls.to_vec(), &outcome);
        effects.push(Effect::Record(Record::ApiError(failure.clone())));
        effects.push(self.end(Outcome::ApiError(failure)));
        Some(effects)
    }
}

/// Tells whether a text is a call that somebody wrote out.
pub(super) fn is_written_call(text: &str) -> bool {
    MARKS.iter().any(|mark| text.contains(mark)) || is_call_object(text)
}

/// Tells whether a text is, or ends with, an object that names a function and its arguments.
fn is_call_object(text: &str) -> bool {
    let text = text.trim();
    let fenced = text.strip_suffix("```").and_then(|text| text.rsplit_once("```")).map(|(_, inside)| inside);
    let inside = fenced.map(|inside| inside.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
    let Ok(value) = serde_json::from_str::<Value>(inside.unwrap_or(text).trim()) else { return false };
    let first = value.as_array().and_then(|calls| calls.first()).unwrap_or(&value);
    let call = first.get("function").filter(|it| it.is_object()).unwrap_or(first);
    let has_arguments = ["arguments", "parameters", "input"].iter().any(|key| call.get(key).is_some());
    call.get("name").is_some_and(Value::is_string) && has_arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_calls_are_told_from_answers() {
        for text in [
            r#"<tool_call>{"name": "Read", "arguments": {}}</tool_call>"#,
            "<function=Read><parameter=path>x</parameter></function>",
            r#"[TOOL_CALLS][{"name": "Read", "arguments": {}}]"#,
            r#"{"name": "Read", "arguments": {"file_path": "a"}}"#,
            "I will read it.\n```json\n{\"name\": \"Read\", \"parameters\": {}}\n```",
            r#"[{"type": "function", "function": {"name": "Read", "arguments": "{}"}}]"#,
        ] {
            assert!(is_written_call(text), "{text}");
        }
        for text in [
            "The file says hello.",
            r#"{"name": "loci", "version": "1"}"#,
            "```json\n{\"a\": 1}\n```",
            "Set `arguments` and `name` in the JSON.",
            "",
        ] {
            assert!(!is_written_call(text), "{text}");
        }
    }
}
