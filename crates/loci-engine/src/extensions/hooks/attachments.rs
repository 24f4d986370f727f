//! What the transcript keeps of handlers' runs, as other programs have come to know it.
//!
//! The reminder that each becomes is made by `loci_context` from the entry alone, so a resumed session sends the same.

use std::sync::Arc;

use loci_core::entry::{Attachment, AttachmentKind, BlockingError, Entry};
use loci_core::hooks::{BlockEffect, HandlerEnd, HookEvent};
use loci_core::ids::ToolUseId;

use super::run::HookRun;
use crate::extensions::ClassifierNote;

/// The most characters of an output that the transcript keeps.
const OUTPUT_LIMIT: usize = 10_000;

/// Returns the attachments of an event, in the order of its handlers. `call` is the call it is about, or a fresh id.
pub(super) fn attachments(event: HookEvent, name: &str, call: &str, runs: &[HookRun]) -> Vec<Attachment> {
    let mut out: Vec<Attachment> = runs.iter().flat_map(|run| of_run(event, name, call, run)).collect();
    let texts: Vec<&str> = runs.iter().filter_map(|run| run.answer.context.as_deref()).collect();
    if !texts.is_empty() {
        // Of a start the transcript says no more than that.
        let name = if event == HookEvent::SessionStart { event.name() } else { name };
        out.push(contexts(event, name, call, &texts));
    }
    out
}

/// Returns what is told of a run that ended when nobody waited for it any more.
pub(super) fn late(event: HookEvent, name: &str, call: &str, run: &HookRun) -> Vec<Attachment> {
    let block = run.answer.block.clone().or_else(|| run.answer.permission.clone().map(|(_, why)| why));
    let said = run.answer.context.clone().or(block);
    said.map(|text| context(event, name, call, &text)).into_iter().collect()
}

/// Returns what a command in the background wakes the model with, if it blocked.
pub(super) fn wake_text(name: &str, run: &HookRun) -> Option<String> {
    let HandlerEnd::Exited { code: 2, stdout, stderr } = &run.end else { return None };
    let said = if stderr.trim().is_empty() { stdout } else { stderr };
    let (command, said) = (run.entry.label(), cut(said.trim()));
    Some(format!(
        "<system-reminder>\n{name} hook in the background (`{command}`): {said}\n</system-reminder>"
    ))
}

fn of_run(event: HookEvent, name: &str, call: &str, run: &HookRun) -> Vec<Attachment> {
    let mut out = Vec::new();
    let command = run.entry.label();
    let (hook_name, tool_use_id, hook_event) = (name.to_owned(), call.to_owned(), event.name().to_owned());
    // Whatever kind of handler objects, the model hears of it.
    let is_told = event.facts().block == BlockEffect::ToldModel;
    out.extend(run.answer.block.as_ref().filter(|_| is_told).map(|why| Attachment::HookBlockingError {
        hook_name: hook_name.clone(),
        tool_use_id: tool_use_id.clone(),
        hook_event: hook_event.clone(),
        blocking_error: BlockingError { blocking_error: why.clone(), command: command.clone() },
    }));
    let HandlerEnd::Exited { code, stdout, stderr } = &run.end else { return out };
    match (&run.answer.block, &run.answer.error) {
        (Some(_), _) => {}
        (None, Some(_)) => out.push(Attachment::HookNonBlockingError {
            hook_name,
            tool_use_id,
            hook_event,
            stderr: cut(stderr).to_owned(),
            stdout: cut(stdout).to_owned(),
            exit_code: i64::from(*code),
            command,
            duration_ms: run.taken.as_millis() as u64,
        }),
        (None, None) if is_kept(event) => out.push(Attachment::HookSuccess {
            hook_name,
            tool_use_id,
            hook_event,
            content: run.answer.plain.clone().unwrap_or_default(),
            stdout: cut(stdout).to_owned(),
            stderr: cut(stderr).to_owned(),
            exit_code: i64::from(*code),
            command,
            duration_ms: run.taken.as_millis() as u64,
        }),
        (None, None) => {}
    }
    out
}

/// Returns words of a hook, for the model.
pub(super) fn context(event: HookEvent, name: &str, call: &str, text: &str) -> Attachment {
    contexts(event, name, call, &[text])
}

fn contexts(event: HookEvent, name: &str, call: &str, texts: &[&str]) -> Attachment {
    Attachment::HookAdditionalContext {
        content: texts.iter().map(|text| (*text).to_owned()).collect(),
        hook_name: name.to_owned(),
        tool_use_id: call.to_owned(),
        hook_event: event.name().to_owned(),
    }
}

/// Returns what a hook said of a result for the classifier. The model is never told.
pub(super) fn classifier_note_attachment(tool: &str, call: &str, text: &str) -> Attachment {
    Attachment::HookClassifierContext {
        content: text.to_owned(),
        tool_name: tool.to_owned(),
        tool_use_id: call.to_owned(),
        hook_event: HookEvent::PostToolUse.name().to_owned(),
    }
}

/// Returns the notes for the classifier that a transcript holds, in their order.
pub(crate) fn classifier_notes_in(path: &[Arc<Entry>]) -> Vec<ClassifierNote> {
    let kept = path.iter().filter_map(|entry| {
        let kept = entry.attachment_of_kind(AttachmentKind::HookClassifierContext)?;
        let Attachment::HookClassifierContext { content, tool_name, tool_use_id, .. } = kept else {
            return None;
        };
        Some(ClassifierNote { call: ToolUseId::new(tool_use_id), tool: tool_name, text: content })
    });
    kept.collect()
}

/// Handlers of these events leave a line when all went well; others would only fill the file.
fn is_kept(event: HookEvent) -> bool {
    use HookEvent::{PostToolUse, SessionStart, UserPromptExpansion, UserPromptSubmit};
    matches!(event, SessionStart | UserPromptSubmit | UserPromptExpansion | PostToolUse)
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(OUTPUT_LIMIT).map_or(text, |(at, _)| &text[..at])
}
