//! What came of a replay, for people and for programs.

use std::path::Path;

use loci_engine::{CallCheck, CallOutcome, ReplayReport, RequestCheck};
use loci_stdx::counted;
use loci_storage::history::ScratchCopy;
use loci_storage::layout::SessionPlace;
use serde_json::{Value, json};

use super::Played;
use crate::sessions::format;

/// Paths that were left out of the copy and are named one by one.
const MOST_LEFT_OUT: usize = 10;
/// Letters of an argument that are shown.
const ARGUMENT: usize = 80;

/// Returns the report as JSON.
pub(super) fn json(place: &SessionPlace, played: &Played, is_kept: bool) -> Value {
    let report = &played.report;
    let taken = report.taken_over.iter();
    json!({
        "sessionId": place.id().as_str(),
        "differs": report.differs(),
        "isDry": played.scratch.is_none(),
        "requests": report.requests.iter().map(request_json).collect::<Vec<_>>(),
        "calls": report.calls.iter().map(call_json).collect::<Vec<_>>(),
        "takenOver": taken.map(|it| json!({"first": it.first, "entries": it.n_entries})).collect::<Vec<_>>(),
        "compactions": report.n_compactions,
        "unanswered": report.n_unanswered,
        "reorderedResults": report.n_reordered,
        "derailed": report.derailed,
        "copy": played.scratch.as_ref().map(|(project, scratch)| copy_json(project, scratch, is_kept)),
    })
}

fn request_json(request: &RequestCheck) -> Value {
    json!({
        "answer": request.answer,
        "messages": request.n_messages,
        "sha256": request.sha256,
        "recordedSha256": request.recorded_sha256,
        "difference": request.difference,
    })
}

fn call_json(call: &CallCheck) -> Value {
    let (outcome, diff, reason) = match &call.outcome {
        CallOutcome::Same => ("same", None, None),
        CallOutcome::Differs { diff } => ("differs", Some(diff), None),
        CallOutcome::NotRun { reason } => ("notRun", None, Some(reason)),
        CallOutcome::Recorded => ("recorded", None, None),
    };
    json!({"id": call.id, "tool": call.tool, "input": call.input, "outcome": outcome, "diff": diff, "reason": reason})
}

fn copy_json(project: &Path, scratch: &ScratchCopy, is_kept: bool) -> Value {
    let left_out = scratch.left_out.iter().map(|(path, why)| json!({"path": path, "reason": why}));
    json!({
        "project": project,
        "path": scratch.root(),
        "isKept": is_kept,
        "files": scratch.n_files,
        "bytes": scratch.n_bytes,
        "leftOut": left_out.collect::<Vec<_>>(),
    })
}

/// Returns the report for people: first where it ran, then what differs, last the sums.
pub(super) fn text(played: &Played, is_kept: bool) -> String {
    let report = &played.report;
    let mut text = String::new();
    if let Some((project, scratch)) = &played.scratch {
        text.push_str(&copy_text(project, scratch, is_kept));
    }
    let different = report.requests.iter().enumerate();
    for (number, difference) in
        different.filter_map(|(n, it)| it.difference.as_ref().map(|diff| (n + 1, diff)))
    {
        text.push_str(&format!("request {number} differs: {}", format::plain(difference)));
    }
    for call in &report.calls {
        text.push_str(&call_text(call));
    }
    for derailed in &report.derailed {
        text.push_str(&format!("{}\n", format::plain(derailed)));
    }
    text + &sums(report)
}

fn copy_text(project: &Path, scratch: &ScratchCopy, is_kept: bool) -> String {
    let shown = |path: &Path| format::plain(&path.to_string_lossy());
    let mut text = format!(
        "copy     {}, {}, as the project is now\n",
        counted(scratch.n_files as u64, "file", "files"),
        format::size(scratch.n_bytes)
    );
    text.push_str(&format!(
        "paths    {} in arguments is {}, and the other way round in results\n",
        shown(project),
        shown(scratch.root())
    ));
    if is_kept {
        text.push_str(&format!("kept     {}\n", shown(scratch.root())));
    }
    for (path, why) in scratch.left_out.iter().take(MOST_LEFT_OUT) {
        text.push_str(&format!("left out {}: {}\n", shown(path), format::plain(why)));
    }
    let n_more = scratch.left_out.len().saturating_sub(MOST_LEFT_OUT);
    if n_more > 0 {
        text.push_str(&format!("left out {n_more} more; --json names them\n"));
    }
    text + "\n"
}

fn call_text(call: &CallCheck) -> String {
    let name = format!("{} {}", format::plain(&call.tool), argument(&call.input));
    match &call.outcome {
        CallOutcome::Same | CallOutcome::Recorded => String::new(),
        CallOutcome::NotRun { reason } => format!("not run  {name}: {}\n", format::plain(reason)),
        CallOutcome::Differs { diff } => {
            format!("differs  {name}\n{}\n", format::indented(&format::plain(diff), "    "))
        }
    }
}

/// The one argument of a call that says most.
fn argument(input: &Value) -> String {
    let named = ["command", "pattern", "file_path", "path"].into_iter().find_map(|key| input[key].as_str());
    let text = named.map_or_else(|| input.to_string(), str::to_owned);
    format::plain(&loci_stdx::single_line(&text, ARGUMENT))
}

fn sums(report: &ReplayReport) -> String {
    let n_requests = report.requests.len();
    let n_other = report.requests.iter().filter(|request| request.difference.is_some()).count();
    let count =
        |wanted: fn(&CallOutcome) -> bool| report.calls.iter().filter(|it| wanted(&it.outcome)).count();
    let n_same = count(|it| *it == CallOutcome::Same);
    let n_differ = count(|it| matches!(it, CallOutcome::Differs { .. }));
    let n_not_run = count(|it| matches!(it, CallOutcome::NotRun { .. }));
    let n_recorded = count(|it| *it == CallOutcome::Recorded);
    let requests = counted(n_requests as u64, "request", "requests");
    let mut text = format!("{requests}: {} as recorded, {n_other} not\n", n_requests - n_other);
    let calls = counted(report.calls.len() as u64, "call", "calls");
    text.push_str(&match n_recorded == report.calls.len() {
        true => format!("{calls}: none was run\n"),
        false => format!(
            "{calls}: {n_same} with the recorded result, {n_differ} with another, {n_not_run} not run\n"
        ),
    });
    let n_taken: usize = report.taken_over.iter().map(|taken| taken.n_entries).sum();
    for (n, one, several) in [
        (
            n_taken,
            "entry was taken over as it is: no prompt leads to it",
            "entries were taken over as they are: no prompt leads to them",
        ),
        (
            report.n_compactions,
            "compaction: what follows it begins from the recorded summary",
            "compactions: what follows each begins from the recorded summary",
        ),
        (
            report.n_unanswered,
            "prompt or call has no recorded end and was not played",
            "prompts or calls have no recorded end and were not played",
        ),
        (
            report.n_reordered,
            "result has its keys in another order and was compared in ours",
            "results have their keys in another order and were compared in ours",
        ),
    ] {
        if n > 0 {
            text.push_str(&format!("{}\n", counted(n as u64, one, several)));
        }
    }
    text
}
