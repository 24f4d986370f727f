//! What a call is in a line, and what it changes.

use std::path::Path;

use loci_core::tool::{AskedChange, AskedText, KnownTool, ToolKind};
use serde_json::Value;

use crate::block::{CallState, FileDiff};
use crate::dialog::{COMMENTED_REFUSAL, REFUSAL};

/// Texts beyond this are not compared line by line.
const MOST_DIFF_BYTES: usize = 400_000;

/// The tool that has a plan approved.
const EXIT_PLAN: &str = "ExitPlanMode";

/// Returns the argument of a call that says most, for one line; paths below `cwd` are shortened.
pub(crate) fn call_summary(tool: &str, input: &Value, cwd: &Path) -> String {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let path = |key: &str| text(key).map(|path| short_path(path, cwd));
    let known = KnownTool::find(tool);
    let summary =
        known.and_then(|it| Some((it.kind, it.subject_of(input)?))).and_then(|(kind, subject)| match kind {
            ToolKind::Execute | ToolKind::Delegate => Some(subject.to_owned()),
            ToolKind::Search => Some(match path("path") {
                Some(place) => format!("{subject} in {place}"),
                None => subject.to_owned(),
            }),
            _ => None,
        });
    let summary = summary.or_else(|| asked_questions(input)).or_else(|| text("plan").and_then(first_line));
    let place = ["file_path", "notebook_path", "path"].into_iter().find_map(path);
    let named = ["command", "url", "query", "pattern", "subject", "description", "prompt", "skill", "name"];
    summary
        .or(place)
        .or_else(|| named.into_iter().find_map(text).map(str::to_owned))
        .or_else(|| first_text(input))
        .unwrap_or_else(|| match input {
            Value::Object(fields) if fields.is_empty() => String::new(),
            Value::Null => String::new(),
            other => other.to_string(),
        })
}

/// Returns what a person is asked, where a call asks something.
fn asked_questions(input: &Value) -> Option<String> {
    let questions = input.get("questions")?.as_array()?.iter();
    let asked: Vec<&str> = questions.filter_map(|question| question.get("question")?.as_str()).collect();
    (!asked.is_empty()).then(|| asked.join(" · "))
}

/// Returns the first line of a plan that says something, without the mark of a heading.
fn first_line(plan: &str) -> Option<String> {
    let lines = plan.lines().map(|line| line.trim_start_matches('#').trim());
    lines.into_iter().find(|line| !line.is_empty()).map(str::to_owned)
}

/// Returns the plan that a person approved, as the structured result of the call has it: they may have changed it.
pub(crate) fn approved_plan(tool: &str, structured: &Value) -> Option<String> {
    let plan = structured.get("plan").filter(|_| tool == EXIT_PLAN)?.as_str()?.trim();
    (!plan.is_empty()).then(|| plan.to_owned())
}

fn first_text(input: &Value) -> Option<String> {
    let fields = input.as_object()?;
    fields.values().find_map(Value::as_str).map(str::to_owned)
}

/// Returns a path as people read it: relative to the working directory where it lies below it.
pub(crate) fn short_path(path: &str, cwd: &Path) -> String {
    match Path::new(path).strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.to_owned(),
    }
}

/// What the model is told of a file that is not there, behind the sentence that says so.
const CWD_NOTE: &str = " Note: your current working directory is ";

/// Returns what of a result a person reads: what tells the model what to make of it is for the model alone.
pub(crate) fn result_for_person(state: CallState, text: String, structured: Option<&Value>) -> String {
    let has = |key: &str, value: Option<&str>| {
        let found = structured.and_then(|structured| structured.get(key)?.as_str());
        found.is_some_and(|found| value.is_none_or(|value| found == value))
    };
    match state {
        CallState::Refused => match text.strip_prefix(COMMENTED_REFUSAL) {
            Some(comment) => format!("you said: {comment}"),
            None => text.strip_prefix(REFUSAL).map(|rest| rest.trim_start().to_owned()).unwrap_or(text),
        },
        CallState::Failed => match text.split_once(CWD_NOTE) {
            Some((problem, rest)) => {
                let guess = rest.rfind(" Did you mean ").and_then(|at| rest.get(at..)).unwrap_or_default();
                format!("{problem}{guess}")
            }
            None => text,
        },
        CallState::Done if has("status", Some("async_launched")) => {
            "works in the background · ← looks at it".to_owned()
        }
        CallState::Done if has("backgroundTaskId", None) => {
            "runs in the background · /tasks looks at it".to_owned()
        }
        CallState::Done | CallState::Arriving | CallState::Waiting | CallState::Running => text,
    }
}

/// Returns what a call asks to change, as far as its input alone says.
pub(crate) fn asked_diff(tool: &str, input: &Value, cwd: &Path) -> Option<FileDiff> {
    let change = AskedChange::from_call(tool, input)?;
    let path = short_path(change.path, cwd);
    let (before, after) = match change.text {
        AskedText::Whole(content) => ("", content),
        AskedText::Replaced { old, new, .. } => (old, new),
    };
    Some(FileDiff { path, before: before.to_owned(), after: after.to_owned(), first_line: 1 })
}

/// Returns what a call changed, as its structured result tells.
pub(crate) fn done_diff(structured: &Value, cwd: &Path) -> Option<FileDiff> {
    let path = short_path(structured.get("filePath")?.as_str()?, cwd);
    let hunks = structured.get("structuredPatch")?.as_array()?;
    let content = structured.get("content").and_then(Value::as_str);
    match hunks.as_slice() {
        [] => {
            let after = content?.to_owned();
            Some(FileDiff { path, before: String::new(), after, first_line: 1 })
        }
        [hunk] => Some(hunk_diff(path, std::slice::from_ref(hunk))),
        _ => Some(whole_diff(&path, structured, hunks).unwrap_or_else(|| hunk_diff(path, hunks))),
    }
}

/// Makes a difference of the lines of hunks alone.
fn hunk_diff(path: String, hunks: &[Value]) -> FileDiff {
    let (mut before, mut after) = (String::new(), String::new());
    for line in hunks.iter().flat_map(hunk_lines) {
        let (mark, rest) = line.split_at_checked(1).unwrap_or((line, ""));
        if mark != "+" && mark != "\\" {
            before.push_str(rest);
            before.push('\n');
        }
        if mark != "-" && mark != "\\" {
            after.push_str(rest);
            after.push('\n');
        }
    }
    let first = hunks.first().and_then(|hunk| hunk["oldStart"].as_u64()).unwrap_or(1);
    FileDiff { path, before, after, first_line: usize::try_from(first).unwrap_or(1).max(1) }
}

fn hunk_lines(hunk: &Value) -> impl Iterator<Item = &str> {
    hunk["lines"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Makes a difference of the whole file, where the result has it.
fn whole_diff(path: &str, structured: &Value, hunks: &[Value]) -> Option<FileDiff> {
    let before = structured.get("originalFile")?.as_str().filter(|text| text.len() <= MOST_DIFF_BYTES)?;
    let lines: Vec<&str> = before.split_inclusive('\n').collect();
    let mut after = String::new();
    let mut next = 0;
    for hunk in hunks {
        let start = usize::try_from(hunk["oldStart"].as_u64()?).ok()?.saturating_sub(1);
        lines.get(next..start)?.iter().for_each(|line| after.push_str(line));
        for line in hunk_lines(hunk).filter(|line| !line.starts_with(['-', '\\'])) {
            after.push_str(line.get(1..).unwrap_or_default());
            after.push('\n');
        }
        next = start + usize::try_from(hunk["oldLines"].as_u64()?).ok()?;
    }
    lines.get(next..)?.iter().for_each(|line| after.push_str(line));
    Some(FileDiff { path: path.to_owned(), before: before.to_owned(), after, first_line: 1 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_for_the_model_does_not_stand_before_the_person() {
        use CallState::{Done, Failed, Refused};
        let launched = json!({"status": "async_launched"});
        let background = json!({"backgroundTaskId": "b1"});
        let missing =
            "File does not exist. Note: your current working directory is /p. Did you mean `/p/a. b`?";
        for (state, text, structured, expected) in [
            (
                Done,
                "Async agent launched.\nagentId: a",
                Some(&launched),
                "works in the background · ← looks at it",
            ),
            (
                Done,
                "The command runs as b1.",
                Some(&background),
                "runs in the background · /tasks looks at it",
            ),
            (Done, "said", None, "said"),
            (Failed, missing, None, "File does not exist. Did you mean `/p/a. b`?"),
            (
                Failed,
                "File does not exist. Note: your current working directory is /p.",
                None,
                "File does not exist.",
            ),
            (Refused, REFUSAL, None, ""),
            (Refused, "The user said no to this call: use make", None, "you said: use make"),
            (Refused, "A rule does not let this run", None, "A rule does not let this run"),
        ] {
            assert_eq!(result_for_person(state, text.to_owned(), structured), expected, "{text}");
        }
    }

    #[test]
    fn approved_plan_is_that_of_the_structured_result() {
        for (tool, structured, expected) in [
            (EXIT_PLAN, json!({"plan": "# P\n\n1. Build\n", "isAgent": false}), Some("# P\n\n1. Build")),
            (EXIT_PLAN, json!({"plan": " ", "isAgent": false}), None),
            (EXIT_PLAN, json!("User rejected tool use"), None),
            ("Other", json!({"plan": "x"}), None),
        ] {
            assert_eq!(approved_plan(tool, &structured).as_deref(), expected, "{structured}");
        }
    }

    #[test]
    fn summary_is_the_argument_that_says_most() {
        for (tool, input, expected) in [
            ("Bash", json!({"command": "cargo test", "description": "Test"}), "cargo test"),
            ("Read", json!({"file_path": "/p/src/main.rs"}), "src/main.rs"),
            ("Read", json!({"file_path": "/elsewhere/x"}), "/elsewhere/x"),
            ("Grep", json!({"pattern": "fn main", "path": "/p/src"}), "fn main in src"),
            ("Grep", json!({"pattern": "fn main", "path": "/p"}), "fn main in ."),
            ("Glob", json!({"pattern": "**/*.rs"}), "**/*.rs"),
            ("Task", json!({"prompt": "long", "description": "Look around"}), "Look around"),
            ("mcp__x__y", json!({"n": 1, "title": "t"}), "t"),
            ("TaskList", json!({}), ""),
            ("TaskCreate", json!({"description": "all of it", "subject": "Mend the port"}), "Mend the port"),
            ("ExitPlanMode", json!({"plan": "\n# The *plan*\n\n1. Build"}), "The *plan*"),
            (
                "AskUserQuestion",
                json!({"questions": [{"question": "Which colour?", "header": "C"}, {"question": "Which size?"}]}),
                "Which colour? · Which size?",
            ),
        ] {
            assert_eq!(call_summary(tool, &input, Path::new("/p")), expected, "{tool}");
        }
    }

    #[test]
    fn diff_of_several_hunks_covers_the_whole_file() {
        let structured = json!({"filePath": "/p/a", "originalFile": "1\n2\n3\n4\n5\n6\n",
            "structuredPatch": [
                {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": ["-1", "+one", " 2"]},
                {"oldStart": 6, "oldLines": 1, "newStart": 6, "newLines": 1, "lines": ["-6", "+six"]}]});
        let diff = done_diff(&structured, Path::new("/p")).unwrap();
        assert_eq!((diff.path.as_str(), diff.after.as_str()), ("a", "one\n2\n3\n4\n5\nsix\n"));
    }

    #[test]
    fn diff_of_one_hunk_knows_its_first_line() {
        let structured = json!({"filePath": "/p/a", "structuredPatch": [
            {"oldStart": 7, "oldLines": 2, "newStart": 7, "newLines": 2, "lines": [" a", "-b", "+c"]}]});
        let diff = done_diff(&structured, Path::new("/p")).unwrap();
        assert_eq!((diff.before.as_str(), diff.after.as_str(), diff.first_line), ("a\nb\n", "a\nc\n", 7));
    }
}
