//! What a turn spent its time on: requests, waits, hooks, calls, questions, each with when it began and ended.
//!
//! The last turn of the main line that asked a model is kept, whether or not anything is traced, so that "why was this slow"
//! has an answer afterwards (`/debug`). It holds names and times, bounded in number; what was said is in the transcript.

use std::sync::Mutex;
use std::time::Duration;

use loci_core::stream::StreamEvent;
use loci_stdx::single_line;
use serde_json::Value;

use crate::conversation::host::lock;
use crate::event::EngineEvent;

/// The most spans of a turn that are kept.
const MOST_SPANS: usize = 2_000;
/// The most letters of a label.
const MOST_LETTERS: usize = 100;

/// What a turn spent time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SpanKind {
    /// A request to the model, from its sending to the end of the answer.
    Request,
    /// A wait before a request is repeated.
    Retry,
    /// A call of a tool.
    Call,
    /// A question to a person.
    Question,
    /// A hook.
    Hook,
    /// The conversation was made shorter.
    Compaction,
}

impl SpanKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Request, Self::Retry, Self::Call, Self::Question, Self::Hook, Self::Compaction];

    /// Returns a word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "model",
            Self::Retry => "retry",
            Self::Call => "call",
            Self::Question => "you",
            Self::Hook => "hook",
            Self::Compaction => "compaction",
        }
    }
}

/// Something that took time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineSpan {
    /// What.
    pub kind: SpanKind,
    /// What of it, in a few words.
    pub label: String,
    /// What it is closed by.
    key: String,
    /// When it began, from the turn's beginning.
    pub start: Duration,
    /// When the first of an answer came.
    pub first: Option<Duration>,
    /// When it ended; none while it lasts.
    pub end: Option<Duration>,
    /// How it went, where that is worth a word.
    pub note: Option<String>,
}

impl TimelineSpan {
    /// Makes a span with nothing else to say of it.
    pub fn new(kind: SpanKind, label: &str, start: Duration, end: Option<Duration>) -> Self {
        let label = single_line(label, MOST_LETTERS);
        Self { kind, label, key: String::new(), start, first: None, end, note: None }
    }

    /// Returns how long it took; until the end of the turn where it has no end of its own.
    pub fn duration(&self, total: Duration) -> Duration {
        self.end.unwrap_or(total).saturating_sub(self.start)
    }
}

/// A turn and what it spent its time on, in the order of beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnTimeline {
    /// The model that was asked.
    pub model: String,
    /// How long it took, or has taken so far.
    pub total: Duration,
    /// Whether it is over.
    pub is_over: bool,
    /// What it spent its time on.
    pub spans: Vec<TimelineSpan>,
}

/// Records the timeline of the main line.
#[derive(Debug, Default)]
pub(crate) struct TimelineRecorder {
    /// Held for a few lines.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A turn that has begun and not asked yet: when, and whom.
    begun: Option<(Duration, String)>,
    /// When the turn that is kept began.
    since: Duration,
    /// When the model last said something: its end may be told later, once the calls that it made have run.
    last_word: Option<Duration>,
    timeline: Option<TurnTimeline>,
}

impl TimelineRecorder {
    /// Returns the last turn that asked a model, as it is at `now`.
    pub(crate) fn get(&self, now: Duration) -> Option<TurnTimeline> {
        let state = lock(&self.state);
        let mut timeline = state.timeline.clone()?;
        if !timeline.is_over {
            timeline.total = now.saturating_sub(state.since);
        }
        Some(timeline)
    }

    /// Takes an event of the main line, or of its hooks.
    pub(crate) fn take(&self, event: &EngineEvent, now: Duration) {
        let mut state = lock(&self.state);
        match event {
            EngineEvent::TurnStarted(start) => state.begun = Some((now, start.model.clone())),
            EngineEvent::Requesting => {
                // A turn that asks nothing, as a command's does, leaves the last one as it is.
                if let Some((since, model)) = state.begun.take() {
                    state.since = since;
                    state.timeline = Some(TurnTimeline { model, ..TurnTimeline::default() });
                }
                state.last_word = None;
                let label = state.timeline.as_ref().map(|it| it.model.clone()).unwrap_or_default();
                state.open(SpanKind::Request, "request", &label, now);
            }
            EngineEvent::Stream { event, first_after } => {
                if first_after.is_some() {
                    state.mark_first("request", now);
                }
                match event {
                    StreamEvent::Ended(ended) => {
                        let note = format!("{} tokens", ended.usage.output_tokens);
                        let end = state.last_word.take().unwrap_or(now);
                        state.close("request", Some(note), end);
                    }
                    _ => state.last_word = Some(now),
                }
            }
            EngineEvent::Retry { delay, failure, .. } => {
                state.close("request", Some("failed".to_owned()), now);
                state.open(SpanKind::Retry, "retry", &failure.message, now);
                state.close("retry", None, now + *delay);
            }
            EngineEvent::Compacting => state.open(SpanKind::Compaction, "compaction", "compaction", now),
            EngineEvent::CompactionEnded { failure } => state.close("compaction", failure.clone(), now),
            EngineEvent::QuestionAsked(question) => {
                state.open(SpanKind::Question, &question.id, &question.tool, now);
            }
            EngineEvent::QuestionWithdrawn { question } => state.close(question, None, now),
            EngineEvent::HookStarted(run) => state.open(SpanKind::Hook, &run.id, &run.name, now),
            EngineEvent::HookEnded(ended) => {
                let note = (ended.outcome != "success").then(|| ended.outcome.clone().into_owned());
                state.close(&ended.run.id, note, now);
            }
            EngineEvent::User(message) => {
                let content = message.message.get("content").and_then(Value::as_array);
                for result in content.into_iter().flatten() {
                    if let Some(call) = result.get("tool_use_id").and_then(Value::as_str) {
                        let is_error = result.get("is_error").and_then(Value::as_bool) == Some(true);
                        state.close(call, is_error.then(|| "failed".to_owned()), now);
                    }
                }
            }
            EngineEvent::TurnEnded(_) => state.end(now),
            _ => {}
        }
    }

    /// A call begins to run.
    pub(crate) fn begin_call(&self, call: &str, tool: &str, input: &Value, now: Duration) {
        let main = ["command", "file_path", "pattern", "description", "url", "query"]
            .iter()
            .find_map(|key| input.get(*key)?.as_str())
            .unwrap_or_default();
        lock(&self.state).open(SpanKind::Call, call, format!("{tool} {main}").trim_end(), now);
    }

    /// A question has its answer.
    pub(crate) fn end_question(&self, question: &str, now: Duration) {
        lock(&self.state).close(question, None, now);
    }
}

impl State {
    fn open(&mut self, kind: SpanKind, key: &str, label: &str, now: Duration) {
        // What comes before the first request belongs to the turn that is about to begin; it is not kept.
        if self.begun.is_some() {
            return;
        }
        let start = now.saturating_sub(self.since);
        let Some(timeline) = self.timeline.as_mut().filter(|it| !it.is_over && it.spans.len() < MOST_SPANS)
        else {
            return;
        };
        timeline
            .spans
            .push(TimelineSpan { key: key.to_owned(), ..TimelineSpan::new(kind, label, start, None) });
    }

    fn open_span(&mut self, key: &str) -> Option<&mut TimelineSpan> {
        let timeline = self.timeline.as_mut()?;
        timeline.spans.iter_mut().rev().find(|span| span.end.is_none() && span.key == key)
    }

    fn mark_first(&mut self, key: &str, now: Duration) {
        let at = now.saturating_sub(self.since);
        if let Some(span) = self.open_span(key) {
            span.first = Some(at);
        }
    }

    fn close(&mut self, key: &str, note: Option<String>, now: Duration) {
        let at = now.saturating_sub(self.since);
        if let Some(span) = self.open_span(key) {
            (span.end, span.note) = (Some(at), note);
        }
    }

    fn end(&mut self, now: Duration) {
        if self.begun.take().is_some() {
            return;
        }
        let total = now.saturating_sub(self.since);
        if let Some(timeline) = self.timeline.as_mut().filter(|it| !it.is_over) {
            (timeline.total, timeline.is_over) = (total, true);
            timeline.spans.iter_mut().for_each(|span| span.end = span.end.or(Some(total)));
        }
    }
}

#[cfg(test)]
mod tests {
    use loci_core::hooks::HookEvent;
    use loci_core::stream::{Failure, FailureKind};
    use serde_json::json;

    use super::*;
    use crate::event::{HookRunEnded, HookRunStarted, UserMessage};

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn rendered(recorder: &TimelineRecorder, now: Duration) -> Vec<String> {
        let timeline = recorder.get(now).unwrap();
        let span = |span: &TimelineSpan| {
            let (start, took) = (span.start.as_millis(), span.duration(timeline.total).as_millis());
            format!(
                "{} {} {start}+{took} {}",
                span.kind.name(),
                span.label,
                span.note.as_deref().unwrap_or("-")
            )
        };
        timeline.spans.iter().map(span).collect()
    }

    #[test]
    fn request_ends_with_the_last_word_of_the_model_and_not_when_its_calls_have_run() {
        let recorder = TimelineRecorder::default();
        lock(&recorder.state).begun = Some((at(0), "m".into()));
        recorder.take(&EngineEvent::Requesting, at(0));
        let delta = loci_core::stream::Delta::Text("x".into());
        let event = StreamEvent::Delta { index: 0, delta };
        recorder.take(&EngineEvent::Stream { event, first_after: Some(at(50)) }, at(50));
        recorder.begin_call("t1", "Bash", &json!({}), at(60));
        let ended = StreamEvent::Ended(loci_core::stream::Ended {
            stop_reason: None,
            stop_sequence: None,
            usage: loci_core::usage::Usage::default(),
            context_management: None,
        });
        recorder.take(&EngineEvent::Stream { event: ended, first_after: None }, at(9_000));
        assert_eq!(rendered(&recorder, at(9_000))[0], "model m 0+50 0 tokens");
    }

    #[test]
    fn spans_are_opened_and_closed_by_what_happens() {
        let recorder = TimelineRecorder::default();
        assert_eq!(recorder.get(at(0)), None, "nothing was asked yet");
        lock(&recorder.state).begun = Some((at(1_000), "m".into()));
        recorder.take(&EngineEvent::Requesting, at(1_010));
        let failure = Failure::new(FailureKind::Overloaded, "busy");
        let retry = EngineEvent::Retry { attempt: 1, max_retries: 3, delay: at(500), failure };
        recorder.take(&retry, at(1_110));
        recorder.take(&EngineEvent::Requesting, at(1_610));
        recorder.begin_call("t1", "Bash", &json!({"command": "make\nall"}), at(2_000));
        let run = HookRunStarted {
            id: "h".into(),
            name: "PreToolUse".into(),
            event: HookEvent::PreToolUse,
            status: None,
        };
        recorder.take(&EngineEvent::HookStarted(run.clone()), at(2_100));
        let ended = HookRunEnded {
            run,
            stdout: String::new(),
            stderr: String::new(),
            exit_code: Some(0),
            outcome: "error".into(),
            objection: None,
            message: None,
            is_stop: false,
        };
        recorder.take(&EngineEvent::HookEnded(ended), at(2_200));
        let result = UserMessage {
            entry: "e".into(),
            message: json!({"content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": true}]}),
            tool_use_result: None,
            is_synthetic: false,
            timestamp: String::new(),
        };
        recorder.take(&EngineEvent::User(result), at(3_000));
        assert_eq!(
            rendered(&recorder, at(4_000)),
            [
                "model m 10+100 failed",
                "retry busy 110+500 -",
                "model m 610+2390 -",
                "call Bash make all 1000+1000 failed",
                "hook PreToolUse 1100+100 error",
            ]
        );
        lock(&recorder.state).end(at(5_000));
        assert_eq!(recorder.get(at(9_000)).unwrap().total, at(4_000), "a turn that is over lasts no longer");
        // A command's turn asks nothing and leaves it as it is.
        lock(&recorder.state).begun = Some((at(9_000), "m".into()));
        lock(&recorder.state).end(at(9_100));
        assert_eq!(recorder.get(at(9_200)).unwrap().spans.len(), 5);
    }
}
