//! Where a script stands: which step the next request plays.

use super::{Choice, Script, Step};
use crate::recorded::Recorded;

/// A script being played.
#[derive(Debug)]
pub(crate) struct Playhead {
    script: Script,
    /// The step in hand, for the modes that go through the list in order.
    cursor: usize,
    /// How often each step has been played.
    plays: Vec<usize>,
    /// Scripts of their own, in the order of the routes.
    routes: Vec<Playhead>,
}

impl Playhead {
    pub(crate) fn new(script: Script) -> Self {
        let plays = vec![0; script.steps.len()];
        let routes = script.routes.iter().map(|route| Self::new(route.script.clone())).collect();
        Self { script, cursor: 0, plays, routes }
    }

    /// Returns the step that answers `request`, and moves on.
    pub(crate) fn step_for(&mut self, request: &Recorded) -> Step {
        if let Some(exception) = self.script.exceptions.iter().find(|it| (it.applies)(request)) {
            return exception.step.clone();
        }
        if let Some(idx) = self.script.routes.iter().position(|route| (route.applies)(request)) {
            return self.routes[idx].step_for(request);
        }
        let is_main = request.is_main() || self.script.choice == Choice::EveryRequest;
        if !is_main {
            return self.script.side.clone();
        }
        let idx = match self.script.choice {
            Choice::MainRequests | Choice::EveryRequest => self.next_in_order(),
            Choice::AssistantTurns => self.at_turn(request.n_assistant_turns()),
        };
        match idx {
            Some(idx) => {
                self.plays[idx] += 1;
                self.script.steps[idx].clone()
            }
            None => Step::text("done"),
        }
    }

    fn next_in_order(&mut self) -> Option<usize> {
        while self.cursor < self.plays.len() && self.is_spent(self.cursor) {
            self.cursor += 1;
        }
        (self.cursor < self.plays.len()).then_some(self.cursor)
    }

    /// Finds the step for a conversation with `turn` assistant messages: a disturbance before that turn
    /// which is not yet spent, else the whole answer of that turn.
    fn at_turn(&self, turn: usize) -> Option<usize> {
        let mut answers = 0;
        for (idx, step) in self.script.steps.iter().enumerate() {
            if step.is_whole_answer() {
                if answers == turn {
                    return Some(idx);
                }
                answers += 1;
            } else if answers == turn && !self.is_spent(idx) {
                return Some(idx);
            }
        }
        None
    }

    fn is_spent(&self, idx: usize) -> bool {
        self.plays[idx] >= self.script.steps[idx].times
    }
}
