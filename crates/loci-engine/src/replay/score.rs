//! Where a replay stands in its recording: what comes next, what was sent so far, what is still owed.
//!
//! The session that plays and the recording are kept in step by one number, `at`: the session holds the path up to
//! there. A prompt, an answer and its results move it on. Where the recording goes on with something that no input of a
//! session brings about, the session is ended and another begun with all of it in its past.

use std::collections::VecDeque;
use std::sync::Arc;

use loci_context::{Projection, Replaced};
use loci_core::conversation::Stretch;
use loci_core::entry::Entry;
use loci_core::ids::ToolUseId;
use loci_core::message::Block;
use loci_llm::{Played, Request};

use super::check::Checker;
use super::recorded::{Answer, Opening, Part, RecordedResult, in_our_order};
use super::report::{ReplayReport, RequestCheck, TakenOver};
use crate::command::Command;
use crate::session::config::LoadedHistory;

/// A stretch of a recording that is being played.
#[derive(Default)]
pub(super) struct Score {
    stretch: Stretch,
    parts: Vec<Part>,
    /// How much of the path the session holds.
    at: usize,
    /// The same, as it is sent.
    mirror: Projection,
    /// How many of the replacements it knows.
    n_replaced: usize,
    checker: Checker,
    /// The request that the turn at hand begins with: the place of its answer.
    asked: Option<usize>,
    /// Results of the answer that was played last, in the order they were recorded.
    results: Vec<RecordedResult>,
    /// Calls among them that have not been answered.
    owed: VecDeque<ToolUseId>,
    leads_to_nudge: bool,
    /// Whether the session has gone another way than the recording.
    is_off: bool,
    pub(super) report: ReplayReport,
}

/// What is to be done next.
pub(super) struct Step {
    /// The session to begin first, in place of the one there is.
    pub(super) past: Option<LoadedHistory>,
    /// What it is told.
    pub(super) command: Command,
    /// The place of the answer to the request that follows.
    asked: usize,
}

impl Score {
    /// Puts the next stretch on the stand; the report goes on.
    pub(super) fn turn_page(&mut self, mut stretch: Stretch) {
        let mut report = std::mem::take(&mut self.report);
        let parts: Vec<Part> = stretch.path.iter().map(|entry| Part::of(entry)).collect();
        let played = stretch.path.iter_mut().zip(&parts).skip(stretch.n_before);
        for (entry, _) in played.filter(|(_, part)| **part == Part::Results) {
            if let Some(ours) = in_our_order(entry) {
                *entry = Arc::new(ours);
                report.n_reordered += 1;
            }
        }
        *self = Self { parts, at: stretch.n_before, stretch, report, ..Self::default() };
    }

    /// Returns what begins the next turn; nothing when all was played.
    pub(super) fn next_step(&mut self, has_session: bool) -> Option<Step> {
        let asked = (self.at..self.parts.len()).find(|place| self.parts[*place].ends_a_request());
        let Some(asked) = asked else {
            let rest = self.parts.get(self.at..).unwrap_or_default();
            self.report.n_unanswered += rest.iter().filter(|part| **part == Part::Words).count();
            return None;
        };
        let between = self.at..asked;
        let opening = Opening::read(&self.stretch.path[between.clone()], &self.parts[between]);
        let is_stale = !has_session || self.is_off || self.n_replaced != self.n_replaced_at(asked);
        let past = match opening {
            Opening::TakeOver => {
                let first = self.stretch.path[self.at].head().uuid.clone();
                self.report.taken_over.push(TakenOver { first, n_entries: asked - self.at });
                Some(self.past(asked, asked))
            }
            Opening::Prompt(_) | Opening::GoOn => is_stale.then(|| self.past(self.at, asked)),
        };
        self.asked = Some(asked);
        let command = match opening {
            Opening::Prompt(prompt) => Command::Prompt(prompt),
            Opening::GoOn | Opening::TakeOver => Command::GoOn,
        };
        Some(Step { past, command, asked })
    }

    /// Returns the past of a session that begins with the path up to `end`.
    fn past(&mut self, end: usize, asked: usize) -> LoadedHistory {
        self.n_replaced = self.n_replaced_at(asked);
        let lines = self.stretch.replacements.iter().take(self.n_replaced);
        let replaced = Replaced::from_metadata(lines.map(|(_, line)| line.as_ref()));
        let path: Vec<Arc<Entry>> = self.stretch.path[..end].to_vec();
        self.mirror = Projection::with_replaced(path.iter().map(Arc::as_ref), &replaced);
        self.checker = Checker::default();
        (self.at, self.is_off) = (end, false);
        let leaf = path.iter().rev().find_map(|entry| entry.head().uuid.clone());
        LoadedHistory { path, leaf, replaced, ..LoadedHistory::default() }
    }

    fn n_replaced_at(&self, place: usize) -> usize {
        self.stretch.replacements.iter().take_while(|(from, _)| *from <= place).count()
    }

    /// Hears a request and says what is played; `None` when the recording does not go on by an answer.
    pub(super) fn answer_request(&mut self, request: &Request) -> Option<Played> {
        let next = self.asked.take().or_else(|| self.next_request())?;
        self.advance(next);
        let answer = Answer::read(&self.stretch.path[next..], &self.parts[next..])?;
        let compared = self.checker.compare(&request.messages, self.mirror.messages(None));
        self.is_off |= compared.difference.is_some();
        self.report.requests.push(RequestCheck {
            answer: answer.entry,
            n_messages: request.messages.len(),
            sha256: compared.sha256,
            recorded_sha256: compared.recorded_sha256,
            difference: compared.difference,
        });
        self.advance(next + answer.n_entries);
        self.owed = answer.results.iter().map(|result| result.call.clone()).collect();
        self.results = answer.results;
        self.leads_to_nudge = answer.leads_to_nudge;
        if answer.is_open {
            // Nobody knows what became of its call, so it is not made again.
            self.report.n_unanswered += 1;
            return None;
        }
        Some(answer.played)
    }

    /// Returns the place of the answer to a request that the session makes by itself.
    fn next_request(&self) -> Option<usize> {
        let may_pass = |part: Part| part == Part::Unsent || (part == Part::Nudge && self.leads_to_nudge);
        let next = (self.at..self.parts.len()).find(|place| !may_pass(self.parts[*place]))?;
        let is_known = self.n_replaced_at(next) == self.n_replaced;
        (self.parts[next].ends_a_request() && is_known).then_some(next)
    }

    fn advance(&mut self, to: usize) {
        for entry in self.stretch.path.get(self.at..to).unwrap_or_default() {
            self.mirror.push(entry);
        }
        self.at = self.at.max(to);
    }

    /// Takes note that a turn is over. One that never asked what was recorded is passed over.
    pub(super) fn turn_ended(&mut self, step: &Step, how: &str) {
        if self.at > step.asked {
            return;
        }
        self.report.derailed.push(format!("A turn ended before its request was made: {how}"));
        let n_entries = Answer::read(&self.stretch.path[step.asked..], &self.parts[step.asked..])
            .map_or(1, |answer| answer.n_entries);
        self.at = step.asked + n_entries.max(1);
        (self.asked, self.is_off) = (None, true);
    }

    /// Returns the recorded result of a call when it is its turn; `Err` when others come first.
    pub(super) fn result_of(&self, call: &ToolUseId) -> Result<Option<RecordedResult>, ()> {
        match self.owed.iter().position(|owed| owed == call) {
            Some(0) => Ok(self.results.iter().find(|result| result.call == *call).cloned()),
            Some(_) => Err(()),
            None => Ok(None),
        }
    }

    /// Takes note that results are in the transcript.
    pub(super) fn answered(&mut self, calls: &[ToolUseId]) {
        self.owed.retain(|owed| !calls.contains(owed));
    }
}

/// Returns the names of the tools that a recording calls.
pub(super) fn tools_called(stretches: &[Stretch]) -> Vec<String> {
    let entries = stretches.iter().flat_map(|stretch| &stretch.path);
    let answers = entries.filter(|entry| Part::of(entry) == Part::Answer);
    let mut names: Vec<String> = Vec::new();
    for call in answers.flat_map(|entry| entry.blocks()).filter_map(|block| Block::tool_use(&block)) {
        if !names.contains(&call.name) {
            names.push(call.name);
        }
    }
    names
}

/// Returns the model that answered first.
pub(super) fn first_model(stretches: &[Stretch]) -> Option<String> {
    let entries = stretches.iter().flat_map(|stretch| &stretch.path);
    let mut answers = entries.filter(|entry| Part::of(entry) == Part::Answer);
    answers.find_map(|entry| {
        let message: serde_json::Value = entry.fields().read("message")?;
        message["model"].as_str().map(str::to_owned)
    })
}
