//! Taking commands: what front ends wish, between turns and during one.

use std::time::Duration;

use loci_tools::Host;

use super::{Session, Underway, Wish};
use crate::command::{Answer, Command};
use crate::event::EngineEvent;
use crate::model_name::resolve_model;
use crate::state::change;
use crate::turn::Event;

impl Session {
    /// Takes a command that needs no turn.
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Prompt(_) | Command::GoOn if self.is_closing => {}
            Command::Prompt(prompt) => self.queue.push_back(Wish::Prompt(prompt)),
            Command::GoOn => self.queue.push_back(Wish::GoOn),
            Command::Leave { title } => {
                self.is_closing = true;
                if let Some(title) = title {
                    self.recorder.name(title);
                    self.tell_trouble();
                }
            }
            Command::SetMode(mode) => change(&self.state, |state| state.permission.rulebook.mode = mode),
            Command::SetModel(model) => {
                let vars = self.host.env().vars;
                let model = model.map(|name| resolve_model(&vars, &name));
                change(&self.state, |state| state.model.session_override.clone_from(&model));
                self.tell(EngineEvent::ModelChanged(self.current_model()));
            }
            Command::RewindFiles { request, prompt, is_trial } => {
                self.rewind_files(request, prompt, is_trial);
            }
            Command::Close => self.close(),
            Command::Quit => {
                self.queue.clear();
                self.drain = Duration::ZERO;
                self.close();
            }
            // Nothing is under way that could be stopped or answered.
            Command::Interrupt | Command::Answer { .. } => {}
        }
    }

    pub(super) fn close(&mut self) {
        self.is_closing = true;
        self.can_ask = false;
    }

    /// Takes a command while a turn is under way; what concerns the turn becomes an event.
    pub(super) fn obey_during_turn(&mut self, command: Command, underway: &mut Underway) -> Option<Event> {
        match command {
            Command::Interrupt => Some(self.interrupt(underway)),
            Command::Quit => {
                self.obey(Command::Quit);
                Some(self.interrupt(underway))
            }
            Command::Answer { question, answer } => {
                self.answered(underway, &question, answer);
                None
            }
            Command::Close => {
                self.close();
                self.deny_open_questions(underway);
                None
            }
            other => {
                self.obey(other);
                None
            }
        }
    }

    fn interrupt(&mut self, underway: &mut Underway) -> Event {
        if underway.has_interrupted {
            return Event::Abandon;
        }
        underway.has_interrupted = true;
        self.withdraw_questions(underway);
        Event::Interrupt
    }

    fn withdraw_questions(&mut self, underway: &mut Underway) {
        for question in underway.questions.drain().map(|(question, _)| question) {
            self.tell(EngineEvent::Unasked { question });
        }
    }

    pub(super) fn deny_open_questions(&mut self, underway: &mut Underway) {
        let open: Vec<String> = underway.questions.keys().cloned().collect();
        for question in open {
            let message = "Nobody is left to ask whether this call may run.".to_owned();
            self.answered(underway, &question, Answer::Deny { message, stops: false });
        }
    }
}
