//! One attempt to make a conversation shorter, step by step, each stronger than the one before: from notes, from one
//! summary, from a summary made in parts, and at last by rule.
//!
//! What must stay true:
//! 1. Sizes are settled before a model is asked: what is kept, carried and summarised has its share, so whatever comes
//!    of it fits below the trigger.
//! 2. No part of a conversation is summarised by a model twice. An attempt that fails half way hands on what it has as
//!    notes, and the next begins behind them.

use std::collections::VecDeque;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_core::message::{Block, Message, Role};

use super::carryover::{CompactionCarryover, prompt};
use super::chunks::{Part, part_request, parts};
use super::clip::clip_tokens;
use super::mechanical::mechanical;
use super::notes::{Notes, plan_from_notes};
use super::room::ContextRoom;
use super::rounds::rounds;
use super::summary::{summary_of, summary_request};
use super::{CompactionPlan, KeepRecent};
use crate::projection::Projection;
use crate::replaced::Replaced;
use crate::tokens::prose_tokens;
use crate::weight::estimate_path;

/// Characters of a conversation's text to a token, cautiously: it may be code or JSON.
const CHARS_A_TOKEN: u64 = 3;

/// A conversation that is to be made shorter.
#[derive(Debug, Clone)]
pub struct CompactionInput {
    /// Its entries.
    pub path: Vec<Arc<Entry>>,
    /// Results that are replaced.
    pub replaced: Replaced,
    /// What bounds it.
    pub room: ContextRoom,
    /// What opens its first message.
    pub context: Block,
    /// Commands that run in the background.
    pub tasks: Vec<String>,
    /// What the task list still holds, a line a task.
    pub to_do: Vec<String>,
    /// What the user wants to be kept above all.
    pub focus: Option<String>,
    /// The entry from which on the user wants everything kept word for word, where they chose one.
    pub keep_from: Option<EntryId>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum CompactionStep {
    /// Ask the model with these messages; what it says goes to [`CompactionAttempt::on_answer`].
    Ask(Vec<Message>),
    /// Record this; the attempt is over.
    Record(CompactionResult),
}

/// What stands for the summarised part of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionResult {
    /// What is summarised and what is kept.
    pub plan: CompactionPlan,
    /// The summary, what is carried over included.
    pub summary: String,
    /// What is carried over, for the next compaction.
    pub carryover: CompactionCarryover,
    /// How it was made.
    pub source: SummarySource,
}

/// How a summary was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummarySource {
    /// From notes.
    Notes,
    /// By a model.
    Model,
    /// By rule.
    Rule,
}

/// An attempt under way.
#[derive(Debug, Clone)]
pub struct CompactionAttempt {
    input: CompactionInput,
    plan: CompactionPlan,
    carryover: CompactionCarryover,
    course: Course,
    /// What a model has summarised so far.
    so_far: Option<Notes>,
}

#[derive(Debug, Clone)]
enum Course {
    /// Notes stand for it.
    Notes(String),
    /// One request.
    Whole,
    /// Part by part; the first is being read.
    Parts(VecDeque<Part>),
    /// There is nothing a model could be asked about.
    Rule,
}

impl CompactionAttempt {
    /// Plans an attempt; `None` when there is too little to make shorter. `notes` are the running notes of the
    /// conversation, `so_far` is what an attempt before this one left.
    pub fn new(
        input: CompactionInput,
        keep: KeepRecent,
        notes: Option<&Notes>,
        so_far: Option<Notes>,
    ) -> Option<Self> {
        let carryover = CompactionCarryover::from_path(&input.path, input.tasks.clone(), input.to_do.clone());
        let is_usual = input.focus.is_none() && input.keep_from.is_none();
        let from_notes = notes.filter(|_| is_usual).and_then(|notes| {
            let plan = plan_from_notes(&input.path, &input.replaced, notes, &input.room)?;
            fits_with(&input, &plan, &carryover, notes).then(|| (plan, Course::Notes(notes.text.clone())))
        });
        let (plan, course) = match from_notes {
            Some(planned) => planned,
            None => {
                let plan = fitting_plan(&input, keep, &carryover)?;
                let course = course(&input, &plan, so_far.as_ref());
                (plan, course)
            }
        };
        let is_on_it = |notes: &Notes| position(&input.path[plan.summarised.clone()], notes).is_some();
        let so_far = so_far.filter(|notes| matches!(course, Course::Parts(_)) && is_on_it(notes));
        Some(Self { input, plan, carryover, course, so_far })
    }

    /// Says what to do first.
    pub fn begin(&self) -> CompactionStep {
        match &self.course {
            Course::Notes(text) => CompactionStep::Record(self.result(text, SummarySource::Notes)),
            Course::Rule => CompactionStep::Record(self.last_resort()),
            Course::Whole => CompactionStep::Ask(self.ask_whole()),
            Course::Parts(parts) => match parts.front() {
                Some(part) => CompactionStep::Ask(self.ask_part(part, parts.len() - 1)),
                None => CompactionStep::Record(self.last_resort()),
            },
        }
    }

    /// Takes the model's answer; `None` when there is no summary in it.
    pub fn on_answer(&mut self, answer: &str) -> Option<CompactionStep> {
        let most = self.input.room.shares().summary;
        let summary = clip_tokens(&summary_of(answer)?, most);
        let Course::Parts(parts) = &mut self.course else {
            return Some(CompactionStep::Record(self.result(&summary, SummarySource::Model)));
        };
        let done = parts.pop_front();
        let next = parts.front().cloned();
        let n_left = parts.len().saturating_sub(1);
        if let Some(covers) = done.and_then(|part| part.last) {
            self.so_far = Some(Notes { text: summary.clone(), covers });
        }
        Some(match next {
            Some(part) => CompactionStep::Ask(self.ask_part(&part, n_left)),
            None => CompactionStep::Record(self.result(&summary, SummarySource::Model)),
        })
    }

    /// Asks about the conversation as text, without its pictures; `None` when that is what was done already.
    pub fn as_text(&mut self) -> Option<CompactionStep> {
        if !matches!(self.course, Course::Whole) {
            return None;
        }
        let span = &self.input.path[self.plan.summarised.clone()];
        self.course = Course::Parts(text_parts(&self.input, span).into());
        Some(self.begin())
    }

    /// Returns what a model has summarised so far, for an attempt after this one.
    pub fn so_far(&self) -> Option<&Notes> {
        self.so_far.as_ref()
    }

    /// Returns what can be had without a model: it always fits.
    pub fn last_resort(&self) -> CompactionResult {
        let span = &self.input.path[self.plan.summarised.clone()];
        self.result(&mechanical(span, self.input.room.shares().summary), SummarySource::Rule)
    }

    fn result(&self, summary: &str, source: SummarySource) -> CompactionResult {
        let carryover = carryover_text(&self.input, &self.plan, &self.carryover);
        let parts = [summary, carryover.as_str()];
        let summary = parts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        CompactionResult { plan: self.plan.clone(), summary, carryover: self.carryover.clone(), source }
    }

    /// The same beginning as the conversation's, so that the prompt cache serves it.
    fn ask_whole(&self) -> Vec<Message> {
        let span = &self.input.path[self.plan.summarised.clone()];
        let messages = projected(span, &self.input.replaced).messages(Some(&self.input.context));
        with_request(messages, &summary_request(self.input.focus.as_deref()))
    }

    fn ask_part(&self, part: &Part, n_left: usize) -> Vec<Message> {
        let so_far = self.so_far.as_ref().map(|notes| notes.text.as_str());
        let request = summary_request(self.input.focus.as_deref());
        vec![Message::user_text(&part_request(part, so_far, n_left, &request))]
    }
}

/// Returns what is carried over beside what a plan keeps, which may have the user's last message in its place.
fn carryover_text(input: &CompactionInput, plan: &CompactionPlan, carryover: &CompactionCarryover) -> String {
    let kept = &input.path[plan.preserved.clone()];
    let prompt = carryover.prompt.clone().filter(|_| !kept.iter().any(|entry| prompt(entry).is_some()));
    CompactionCarryover { prompt, ..carryover.clone() }.text(&input.room.shares())
}

/// Tells whether notes, what is kept and what is carried over stay below the trigger.
fn fits_with(
    input: &CompactionInput,
    plan: &CompactionPlan,
    carryover: &CompactionCarryover,
    notes: &Notes,
) -> bool {
    let CompactionInput { path, replaced, room, .. } = input;
    let words = prose_tokens(&notes.text) + prose_tokens(&carryover_text(input, plan, carryover));
    let kept = estimate_path(&path[plan.preserved.clone()], replaced);
    room.overhead + room.scaled(words + kept) < room.trigger()
}

/// Chooses what is kept: what was wished for, less where that does not fit, nothing where not even the last round does.
fn fitting_plan(
    input: &CompactionInput,
    keep: KeepRecent,
    carryover: &CompactionCarryover,
) -> Option<CompactionPlan> {
    let CompactionInput { path, replaced, room, .. } = input;
    if let Some(id) = &input.keep_from {
        let cut =
            path.iter().position(|entry| entry.head().uuid.as_ref() == Some(id)).filter(|cut| *cut > 0)?;
        let plan = CompactionPlan { summarised: 0..cut, preserved: cut..path.len() };
        let words = prose_tokens(&carryover_text(input, &plan, carryover));
        let kept = estimate_path(&path[plan.preserved.clone()], replaced);
        if words + kept + room.shares().summary <= room.shares().all {
            return Some(plan);
        }
    }
    let rounds = rounds(path);
    let sizes: Vec<u64> = rounds.iter().map(|round| estimate_path(&path[round.clone()], replaced)).collect();
    let shares = room.shares();
    // Where the last round is kept, the user's last message may be in it.
    let last = rounds.last().cloned().unwrap_or_default();
    let last = CompactionPlan { summarised: 0..last.start, preserved: last };
    let words = prose_tokens(&carryover_text(input, &last, carryover));
    let mut left = shares.all.saturating_sub(shares.summary + words);
    let fitting = sizes.iter().rev().take_while(|size| {
        let fits = **size <= left;
        left = left.saturating_sub(**size);
        fits
    });
    let wished = match keep {
        KeepRecent::LastRound => rounds.len().checked_sub(1)?,
        KeepRecent::NewerHalf => rounds.len() / 2,
    };
    let from = wished.max(rounds.len() - fitting.count());
    let total = room.overhead + room.scaled(sizes.iter().sum());
    let is_full = total >= room.trigger();
    let from = match from {
        // A prompt alone, or a summary alone, is no conversation to summarise, unless it fills the window.
        0 | 1 if !is_full => return None,
        0 | 1 => rounds.len(),
        from => from,
    };
    let cut = rounds.get(from).map_or(path.len(), |round| round.start);
    Some(CompactionPlan { summarised: 0..cut, preserved: cut..path.len() })
}

fn course(input: &CompactionInput, plan: &CompactionPlan, so_far: Option<&Notes>) -> Course {
    let CompactionInput { path, replaced, room, focus, .. } = input;
    let span = &path[plan.summarised.clone()];
    if rounds(span).len() < 2 {
        return Course::Rule;
    }
    let done = so_far.and_then(|notes| position(span, notes));
    let request = prose_tokens(&summary_request(focus.as_deref()));
    let left = room.request().saturating_sub(request);
    if done.is_none() && estimate_path(span, replaced) <= left {
        return Course::Whole;
    }
    Course::Parts(text_parts(input, &span[done.map_or(0, |idx| idx + 1)..]).into())
}

/// Splits what is to be summarised into texts, each of which fits into a request.
fn text_parts(input: &CompactionInput, span: &[Arc<Entry>]) -> Vec<Part> {
    let CompactionInput { replaced, room, focus, .. } = input;
    let request = prose_tokens(&summary_request(focus.as_deref()));
    // A part is read without what opens the conversation, and leaves room for the summary of those before it.
    let context = input.context.text().as_deref().map_or(0, prose_tokens);
    let left = room.request_without(context).saturating_sub(request);
    let chars = left.saturating_sub(room.shares().summary + 200) * CHARS_A_TOKEN;
    parts(span, replaced, usize::try_from(chars).unwrap_or(usize::MAX).max(2_000))
}

fn position(span: &[Arc<Entry>], notes: &Notes) -> Option<usize> {
    span.iter().rposition(|entry| entry.head().uuid.as_ref() == Some(&notes.covers))
}

fn projected(span: &[Arc<Entry>], replaced: &Replaced) -> Projection {
    Projection::with_replaced(span.iter().map(Arc::as_ref), replaced)
}

/// Appends a request to the last words of the user, so that the prefix stays the one that is cached.
fn with_request(messages: Vec<Message>, request: &str) -> Vec<Message> {
    join_messages(&messages, vec![Message::new(Role::User, vec![Block::new_text(request)])])
}

/// Puts one conversation behind another. Where both have words of the same role at the seam they become one message, so
/// that the prefix stays the one that is cached.
pub fn join_messages(before: &[Message], behind: Vec<Message>) -> Vec<Message> {
    let mut messages = before.to_vec();
    let mut behind = behind.into_iter().peekable();
    let seam = messages.last_mut().zip(behind.peek()).filter(|(last, first)| last.role == first.role);
    if let Some((last, first)) = seam {
        let content: Vec<Block> = last.content.iter().chain(first.content.iter()).cloned().collect();
        *last = Message::new(last.role, content);
        behind.next();
    }
    messages.extend(behind);
    messages
}

#[cfg(test)]
mod tests;
