//! Prompts on their way to the model: sent, queued in the session, or held here.
//!
//! A prompt is in one of three places. *Sent* are those that the session has and whose entry is not recorded yet; the turn
//! that begins next hears the first. *Queued* are those that wait in the session while a turn is under way, each by an id,
//! and are heard with the next results of calls. *Held* is what waits here for the end of the turn: commands, lines of the
//! shell, and whatever was typed after one of them, so that all is heard in the order in which it was typed.

use std::collections::VecDeque;

use loci_engine::{Command, Prompt, QueuedPrompt};

use super::Effect;
use super::prompt_box::PromptBox;
use super::session_mirror::SessionMirror;
use crate::block::Block;
use crate::input::{Draft, InputMode};
use crate::layout::{cut, faint, line};
use crate::text::Row;

/// The most queued messages that are seen.
const MOST_QUEUED: usize = 3;

/// What was typed and has not been heard.
#[derive(Debug, Default)]
pub(super) struct PromptQueue {
    sent: VecDeque<Draft>,
    queued: Vec<(String, Draft)>,
    held: VecDeque<Draft>,
    /// How many were queued ever; their ids.
    n_queued: u64,
    /// Commands of the shell that were sent and do not run yet.
    n_shells_sent: usize,
}

impl PromptQueue {
    /// Notes a prompt that the session is given, and gives it.
    pub(super) fn send(&mut self, draft: Draft) -> Effect {
        let prompt = Prompt::new(draft.content(), None);
        self.sent.push_back(draft);
        Effect::Send(Command::Prompt(prompt))
    }

    /// Has a summary take the place of all that was said before a prompt.
    pub(super) fn compact_before(&mut self, prompt: &str, focus: Option<String>) -> Effect {
        let text = format!("/compact {}", focus.unwrap_or_default());
        let draft = Draft::plain(InputMode::Prompt, text.trim_end());
        let mut request = Prompt::new(draft.content(), None);
        request.keeps_from = Some(prompt.into());
        self.sent.push_back(draft);
        Effect::Send(Command::Prompt(request))
    }

    /// Takes the prompt that the turn at hand has heard, as it is shown; `recorded` is what the session has recorded. Others that
    /// were sent have turns of their own.
    pub(super) fn take_recorded(&mut self, recorded: String, attachments: Vec<String>) -> Block {
        let text = self.take_sent().map_or(recorded, |draft| draft.display().trim().to_owned());
        Block::Prompt { text, attachments }
    }

    /// Takes the command that asked for a compaction, if one did; nothing else tells that it was heard.
    pub(super) fn take_compact_command(&mut self, session: &mut SessionMirror) -> Option<Block> {
        let is_command = |draft: &Draft| draft.display().trim_start().starts_with("/compact");
        self.sent.front().is_some_and(is_command).then(|| {
            session.await_prompt(false);
            self.take_recorded(String::new(), Vec::new())
        })
    }

    /// Takes a prompt that waited in the session and is heard now: as it is shown, where it is heard in the turn at hand; none
    /// where the turn that begins with it records it.
    pub(super) fn take_dequeued(
        &mut self,
        id: &str,
        text: &str,
        is_injected: bool,
        attachments: Vec<String>,
    ) -> Option<Block> {
        let draft = self.take_queued(id).unwrap_or_else(|| Draft::plain(InputMode::Prompt, text));
        if is_injected {
            let text = draft.display().trim().to_owned();
            return Some(Block::Prompt { text, attachments });
        }
        self.sent.push_front(draft);
        None
    }

    /// Returns what was sent and is not recorded, in its order.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Draft> {
        self.sent.iter()
    }

    /// Takes the prompt that was sent first.
    pub(super) fn take_sent(&mut self) -> Option<Draft> {
        self.sent.pop_front()
    }

    /// Forgets what was sent to a session that is left.
    pub(super) fn forget_sent(&mut self) {
        self.sent.clear();
    }

    /// Tells whether something was sent that will be recorded.
    pub(super) fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Notes a command of the shell that the session was given.
    pub(super) fn push_shell(&mut self) {
        self.n_shells_sent += 1;
    }

    /// Notes that a command of the shell has begun.
    pub(super) fn shell_started(&mut self) {
        self.n_shells_sent = self.n_shells_sent.saturating_sub(1);
    }

    /// Tells whether a turn, or a command of the shell, is about to begin.
    pub(super) fn is_turn_due(&self) -> bool {
        self.has_sent() || self.n_shells_sent > 0
    }

    /// Has a prompt wait in the session, and returns what is to be sent there.
    pub(super) fn queue(&mut self, draft: Draft) -> QueuedPrompt {
        self.n_queued += 1;
        let id = self.n_queued.to_string();
        let prompt = Prompt::new(draft.content(), None);
        self.queued.push((id.clone(), draft));
        QueuedPrompt { id, prompt }
    }

    /// Takes a prompt that waits in the session.
    pub(super) fn take_queued(&mut self, id: &str) -> Option<Draft> {
        let place = self.queued.iter().position(|(queued, _)| queued == id)?;
        Some(self.queued.remove(place).1)
    }

    /// Tells whether a prompt waits in the session.
    pub(super) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Has something wait here, behind all that waits already.
    pub(super) fn hold(&mut self, draft: Draft) {
        self.held.push_back(draft);
    }

    /// Has something wait here once more whose turn it was.
    pub(super) fn hold_first(&mut self, draft: Draft) {
        self.held.push_front(draft);
    }

    /// Takes what has waited here longest.
    pub(super) fn take_held(&mut self) -> Option<Draft> {
        self.held.pop_front()
    }

    /// Returns how much waits here.
    pub(super) fn n_held(&self) -> usize {
        self.held.len()
    }

    /// Tells whether something waits here.
    pub(super) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns what waits, in the order in which it will be heard.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Draft> {
        self.queued.iter().map(|(_, draft)| draft).chain(&self.held)
    }

    /// Returns the rows of what waits.
    pub(super) fn rows(&self, width: u16) -> Vec<Row> {
        let n_waiting = self.waiting().count();
        let shown = self.waiting().take(MOST_QUEUED).map(|draft| {
            let text = loci_stdx::single_line(&draft.display(), 200);
            let shell = if draft.mode == InputMode::Shell { "! " } else { "" };
            cut(&line(&format!("  ⏵ {shell}{text}"), faint()), width)
        });
        let mut rows: Vec<Row> = shown.collect();
        if n_waiting > 0 {
            let more = match n_waiting.saturating_sub(MOST_QUEUED) {
                0 => String::new(),
                n => format!("{n} more · "),
            };
            rows.push(cut(&line(&format!("    {more}queued · ↑ takes them back"), faint()), width));
        }
        rows
    }

    /// Tells whether anything waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.has_queued() || self.has_held()
    }

    /// Puts all that waits back into the prompt, before what stands there: what the session gave back (`prompts`), then what was
    /// held.
    pub(super) fn take_back(&mut self, prompts: &[QueuedPrompt], input: &mut PromptBox) {
        let all = self.take_all(prompts, input.is_empty());
        input.prepend(&all);
    }

    /// Takes all that waits, as one draft.
    ///
    /// Commands of the shell are no words for the model: they come back alone, where there is no other text
    /// (`is_prompt_empty`), or stay and run after the turn.
    fn take_all(&mut self, prompts: &[QueuedPrompt], is_prompt_empty: bool) -> Draft {
        let is_shell = |draft: &Draft| draft.mode == InputMode::Shell;
        let keeps_shell = !(prompts.is_empty() && is_prompt_empty && self.held.iter().all(is_shell));
        let mut all = Draft::default();
        for queued in prompts {
            let text = || Draft::plain(InputMode::Prompt, &queued.prompt.content.text());
            all.append(&self.take_queued(&queued.id).unwrap_or_else(text));
        }
        let (kept, back): (VecDeque<Draft>, VecDeque<Draft>) =
            self.held.drain(..).partition(|draft| keeps_shell && is_shell(draft));
        self.held = kept;
        back.iter().for_each(|draft| all.append(draft));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> Draft {
        Draft::plain(InputMode::Prompt, text)
    }

    fn shell(text: &str) -> Draft {
        Draft::plain(InputMode::Shell, text)
    }

    #[test]
    fn prompts_are_taken_back_in_order_and_shell_commands_alone_or_not_at_all() {
        // Queued in the session; held; whether the prompt is empty; what comes back; how much stays.
        for (queued, held, is_prompt_empty, back, n_left) in [
            (vec!["a", "b"], vec![], true, "a\nb", 0),
            (vec!["a"], vec![prompt("/model x")], true, "a\n/model x", 0),
            (vec!["a"], vec![shell("ls")], true, "a", 1),
            (vec![], vec![shell("ls"), shell("pwd")], true, "ls\npwd", 0),
            (vec![], vec![shell("ls")], false, "", 1),
            (vec![], vec![shell("ls"), prompt("and then")], true, "and then", 1),
        ] {
            let mut queue = PromptQueue::default();
            let given: Vec<QueuedPrompt> = queued.iter().map(|text| queue.queue(prompt(text))).collect();
            held.iter().cloned().for_each(|draft| queue.hold(draft));
            assert_eq!(queue.waiting().count(), queued.len() + held.len());
            assert_eq!(queue.take_all(&given, is_prompt_empty).display(), back, "{queued:?} {held:?}");
            assert_eq!((queue.n_held(), queue.has_queued()), (n_left, false), "{queued:?} {held:?}");
        }
    }

    #[test]
    fn queued_prompts_are_found_by_their_ids_and_only_once() {
        let mut queue = PromptQueue::default();
        let [first, second] = ["a", "b"].map(|text| queue.queue(prompt(text)));
        assert_ne!(first.id, second.id);
        assert_eq!(queue.take_queued(&second.id), Some(prompt("b")));
        assert_eq!(queue.take_queued(&second.id), None);
        // What the session gives back and nobody knows here any more is not lost.
        assert_eq!(queue.take_all(&[first, second], true).display(), "a\nb");
    }

    #[test]
    fn turn_is_due_until_what_was_sent_is_recorded_and_runs() {
        let mut queue = PromptQueue::default();
        assert!(!queue.is_turn_due());
        queue.send(prompt("second"));
        assert_eq!(queue.take_dequeued("", "first", false, Vec::new()), None);
        queue.push_shell();
        assert_eq!(queue.take_sent(), Some(prompt("first")));
        assert_eq!(queue.take_sent(), Some(prompt("second")));
        assert!(queue.is_turn_due() && !queue.has_sent());
        queue.shell_started();
        assert!(!queue.is_turn_due());
    }
}
