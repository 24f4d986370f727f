//! What a turn hears and wants done, in a few words for the trace: names, ids and sizes, and nothing that was said.

use std::fmt;

use loci_core::stream::StreamEvent;

use crate::turn::{CallPermission, CompactionOutcome, Effect, Event, Notice, Preparation, Record};

/// An event, in a few words.
pub(super) struct EventText<'a>(pub(super) &'a Event);

impl fmt::Display for EventText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Event::Prompt => f.write_str("prompt"),
            Event::Begin => f.write_str("begin"),
            Event::TakeUp(call) => write!(f, "take up {}", call.id),
            Event::NothingToAsk => f.write_str("nothing to ask"),
            Event::CommandFailed => f.write_str("command failed"),
            Event::PromptBlocked { .. } => f.write_str("prompt blocked"),
            Event::Compact { .. } => f.write_str("compact"),
            Event::TooLong => f.write_str("too long"),
            Event::Compacted { end, .. } => match end {
                CompactionOutcome::Done => f.write_str("compacted"),
                CompactionOutcome::NothingToDo => f.write_str("nothing to compact"),
                CompactionOutcome::Blocked(_) => f.write_str("compaction blocked"),
                CompactionOutcome::Failed(failure) => write!(f, "compaction failed {}", failure.category()),
            },
            Event::Stream(event) => stream(f, event),
            Event::Ended { ended, .. } => {
                write!(f, "response ended output_tokens={}", ended.usage.output_tokens)
            }
            Event::Failed { failure, .. } => {
                write!(f, "request failed {} status={:?}", failure.category(), failure.status)
            }
            Event::WaitOver => f.write_str("wait over"),
            Event::Prepared(calls) => {
                f.write_str("prepared")?;
                calls.iter().try_for_each(|call| match call {
                    Preparation::Ready { call, .. } => write!(f, " {call}"),
                    Preparation::Refused { call, .. } => write!(f, " {call} (refused)"),
                })
            }
            Event::Permission { call, permission } => match permission {
                CallPermission::Run => write!(f, "permission {call} run"),
                CallPermission::Refuse(_) => write!(f, "permission {call} refused"),
                CallPermission::Stop(_) => write!(f, "permission {call} refused and stopped"),
                CallPermission::Defer => write!(f, "permission {call} put off"),
            },
            Event::Finished { call, outcome } => {
                write!(f, "finished {call} is_error={}", outcome.is_error.unwrap_or(false))
            }
            Event::BatchSeen { halt } => write!(f, "batch seen halts={}", halt.is_some()),
            Event::Halt { .. } => f.write_str("halt"),
            Event::MayEnd { objection } => write!(f, "may end has_objection={}", objection.is_some()),
            Event::Interrupt => f.write_str("interrupt"),
            Event::Abandon => f.write_str("abandon"),
        }
    }
}

/// An effect, in a few words.
pub(super) struct EffectText<'a>(pub(super) &'a Effect);

impl fmt::Display for EffectText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Effect::OpenPrompt => f.write_str("open prompt"),
            Effect::Record(record) => write!(f, "record {}", record_name(record)),
            Effect::Request(plan) => write!(f, "request {}", plan.model),
            Effect::Compact(request) => write!(f, "compact {:?}", request.trigger),
            Effect::StopEdits(_) => f.write_str("stop edits"),
            Effect::CancelRequest => f.write_str("cancel request"),
            Effect::Wait(delay) => write!(f, "wait {} ms", delay.as_millis()),
            Effect::Prepare(calls) => write!(f, "prepare {} calls", calls.len()),
            Effect::CheckPermission(call) => write!(f, "check permission {call}"),
            Effect::Run(call) => write!(f, "run {call}"),
            Effect::CancelCalls => f.write_str("cancel calls"),
            Effect::ShowBatch => f.write_str("show batch"),
            Effect::AskBeforeEnd { .. } => f.write_str("ask before end"),
            Effect::Tell(notice) => match notice {
                Notice::Requesting => f.write_str("tell requesting"),
                Notice::Stream(_) => f.write_str("tell stream"),
                Notice::Retry { attempt, delay, .. } => {
                    write!(f, "tell retry {attempt} in {} ms", delay.as_millis())
                }
                Notice::Fallback { from, to, .. } => write!(f, "tell fallback {from} {to}"),
            },
            Effect::End(end) => write!(f, "end round_trips={}", end.round_trips),
        }
    }
}

fn stream(f: &mut fmt::Formatter<'_>, event: &StreamEvent) -> fmt::Result {
    match event {
        StreamEvent::Wire(_) => f.write_str("stream wire"),
        StreamEvent::Started(started) => write!(f, "stream started {}", started.message_id),
        StreamEvent::BlockStarted { index, kind, .. } => write!(f, "stream block {index} {kind}"),
        StreamEvent::Delta { index, .. } => write!(f, "stream delta {index}"),
        StreamEvent::BlockDone { index, .. } => write!(f, "stream block {index} done"),
        StreamEvent::Ended(_) => f.write_str("stream ended"),
    }
}

fn record_name(record: &Record) -> &'static str {
    match record {
        Record::Response { .. } => "response",
        Record::PartialText(_) => "partial text",
        Record::ToolResult { .. } => "tool result",
        Record::Nudge(_) => "nudge",
        Record::Deferred(_) => "call put off",
        Record::Objection(_) => "objection",
        Record::ApiError(_) => "API error",
        Record::Incomplete(_) => "incomplete",
        Record::Refusal => "refusal",
        Record::Interrupted(_) => "interruption",
        Record::MaxTurns { .. } => "turn limit",
    }
}
