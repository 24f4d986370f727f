//! Prompts on their way to the model: sent, queued in the session, or held here.
//!
//! A prompt is in one of three places. *Sent* are those that the session has and whose entry is not recorded yet; the turn
//! that begins next hears the first. *Queued* are those that wait in the session while a turn is under way, each by an id,
//! and are heard with the next results of calls. *Held* is what waits here for the end of the turn: commands, lines of the
//! shell, and whatever was typed after one of them, so that all is heard in the order in which it was typed.

use std::collections::VecDeque;

use loci_engine::{Prompt, QueuedPrompt};

use crate::input::{Draft, InputMode};

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
    /// Notes a prompt that the session was given.
    pub(super) fn push_sent(&mut self, draft: Draft) {
        self.sent.push_back(draft);
    }

    /// Notes a prompt that the next turn begins with.
    pub(super) fn push_sent_first(&mut self, draft: Draft) {
        self.sent.push_front(draft);
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

    /// Tells whether anything waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.has_queued() || self.has_held()
    }

    /// Takes back all that waits, as one draft: what the session gave back (`prompts`), then what was held.
    ///
    /// Commands of the shell are no words for the model: they come back alone, where there is no other text
    /// (`is_prompt_empty`), or stay and run after the turn.
    pub(super) fn take_back(&mut self, prompts: &[QueuedPrompt], is_prompt_empty: bool) -> Draft {
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
            assert_eq!(queue.take_back(&given, is_prompt_empty).display(), back, "{queued:?} {held:?}");
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
        assert_eq!(queue.take_back(&[first, second], true).display(), "a\nb");
    }

    #[test]
    fn turn_is_due_until_what_was_sent_is_recorded_and_runs() {
        let mut queue = PromptQueue::default();
        assert!(!queue.is_turn_due());
        queue.push_sent(prompt("second"));
        queue.push_sent_first(prompt("first"));
        queue.push_shell();
        assert_eq!(queue.take_sent(), Some(prompt("first")));
        assert_eq!(queue.take_sent(), Some(prompt("second")));
        assert!(queue.is_turn_due() && !queue.has_sent());
        queue.shell_started();
        assert!(!queue.is_turn_due());
    }
}
