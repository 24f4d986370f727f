//! What the client says: prompts, requests, answers; and that it has gone.

use loci_engine::{Answer, Command, Prompt, QueuedPrompt};
use loci_stdx::printable;
use serde_json::{Value, json};

use super::Exit;
use super::event_loop::EventLoop;
use crate::control::{self, ControlError, ControlOutcome};
use crate::input::{self, Line, Priority, Response};
use crate::outgoing::{Responded, parse_permission_answer};

impl EventLoop<'_> {
    /// Nothing more comes from the client: what it was asked has no answer, and nothing more will be asked of us.
    pub(super) fn client_gone(&mut self) {
        tracing::debug!(target: "loci::control", "client gone");
        self.is_input_over = true;
        for question in self.requests.client_gone() {
            self.deny_unasked(question);
        }
        match self.asks_by_itself() {
            true => self.close_when_answered(),
            false => self.session.send(Command::Close),
        }
    }

    pub(super) fn deny_unasked(&mut self, question: String) {
        let message = "Nobody is left to ask whether this call may run.".to_owned();
        self.session.send(Command::Answer { question, answer: Answer::Deny { message, stops: false } });
    }

    fn handle_response(&mut self, response: Response) {
        let id = printable(&response.id);
        let responded = self.requests.respond(response);
        tracing::debug!(target: "loci::control", what = responded.name(), "response {id}");
        match responded {
            Responded::Permission { question, result } => {
                let state = self.state.answer(&question);
                self.answer_question(question, result);
                self.tell_state(state);
            }
            Responded::Unknown if !self.has_reported_response => {
                self.has_reported_response = true;
                self.warn(&format!("A control response was ignored: no open request has the id `{id}`"));
            }
            Responded::Delivered | Responded::Late | Responded::Unknown => {}
        }
    }

    /// Hands in what somebody said to a permission question.
    pub(super) fn answer_question(&mut self, question: String, result: Result<Value, String>) {
        let (answer, complaints) = parse_permission_answer(result);
        complaints.iter().for_each(|complaint| self.warn(complaint));
        self.session.send(Command::Answer { question, answer });
    }

    pub(super) fn handle_line(&mut self, line: std::io::Result<String>) {
        let parsed = line
            .map_err(|error| format!("Standard input cannot be read: {error}"))
            .and_then(|line| if line.trim().is_empty() { Ok(Line::Ignored) } else { input::parse(&line) });
        match parsed {
            Ok(Line::Prompt(prompt, priority)) => self.take_prompt(prompt, priority),
            Ok(Line::Control { id, request }) => {
                let subtype = request["subtype"].as_str().unwrap_or_default();
                tracing::debug!(target: "loci::control", subtype, "request {id}");
                self.context.is_busy = self.n_open_prompts > 0 || !self.background_agents.is_empty();
                let mut outcome = control::handle_request(&id, &request, &self.context);
                let is_repeated = subtype == "initialize" && self.told_commands.is_some();
                if subtype == "initialize" {
                    self.told_commands = Some(self.context.command_rows());
                }
                if subtype == "apply_flag_settings"
                    && outcome.answer.is_none()
                    && let Some(model) = request["settings"].get("model")
                {
                    self.flag_models.insert(id.clone(), model.clone());
                }
                match &outcome.commands[..] {
                    [Command::CancelPrompt { request, prompt }] => {
                        self.cancelling.insert(request.clone(), prompt.to_string());
                    }
                    [Command::AskOnTheSide { request, .. }] => {
                        self.output.write_line(&self.frames.request_started(request));
                    }
                    _ => {}
                }
                if outcome.commands == [Command::Interrupt] {
                    // Clients hear that their questions are withdrawn before they hear that the turn stops.
                    self.requests.withdraw_questions().iter().for_each(|line| self.output.write_line(line));
                    if request["cancel_queued"] == true {
                        self.cancel_queued(&mut outcome);
                    }
                    self.stop_background(&mut outcome);
                }
                self.queries.extend(outcome.query.map(|query| (id.clone(), query)));
                if let Some(answer) = outcome.answer {
                    self.output.write_line(&control::response(&id, answer));
                }
                if is_repeated {
                    // A client that comes back has missed what changed meanwhile.
                    self.output.write_line(&self.frames.background_tasks_changed(&self.tasks));
                }
                if let Some(notice) = outcome.notice {
                    self.warn(&notice);
                }
                outcome.commands.into_iter().for_each(|command| self.session.send(command));
                if outcome.is_fatal {
                    self.stop(Exit::Failure);
                }
            }
            Ok(Line::Response(response)) => self.handle_response(response),
            Ok(Line::Cancel(id)) => {
                self.queries.retain(|(query, _)| *query != id);
                self.cancelled.insert(id);
            }
            Ok(Line::Ignored) => {}
            Err(problem) => {
                self.warn(&problem);
                self.stop(Exit::Failure);
            }
        }
    }

    /// Takes a prompt of the client; while a turn is under way it waits, is heard with the next results, or stops the turn.
    fn take_prompt(&mut self, prompt: Prompt, priority: Priority) {
        let id = prompt.id.as_ref().map(ToString::to_string);
        if let Some(id) = &id {
            self.named_prompts.insert(id.clone());
            self.tell_lifecycle(id, "queued");
        }
        match priority {
            Priority::Next => {
                let id = id.unwrap_or_else(|| self.options.env.random.uuid_v4().to_string());
                return self.session.send(Command::Queue(QueuedPrompt { id, prompt }));
            }
            Priority::Now => self.session.send(Command::Interrupt),
            Priority::Later => {}
        }
        self.n_open_prompts += 1;
        self.context.queued.extend(id);
        self.session.send(Command::Prompt(prompt));
    }

    /// Stops what works in the background along with an interrupt, unless the client can stop each by itself.
    fn stop_background(&mut self, outcome: &mut ControlOutcome) {
        if self.context.initialized.as_ref().is_some_and(|request| request.can_stop_tasks) {
            return;
        }
        for task in self.tasks.background_ids() {
            let request = self.options.env.random.uuid_v4().to_string();
            // Nobody waits for these answers.
            self.cancelled.insert(request.clone());
            outcome.commands.push(Command::StopTask { request, task });
        }
    }

    /// Takes back the prompts that wait, along with an interrupt, and says so in its answer.
    fn cancel_queued(&mut self, outcome: &mut ControlOutcome) {
        let queued = std::mem::take(&mut self.context.queued);
        let cancel = |prompt: &String| {
            let request = self.options.env.random.uuid_v4().to_string();
            Command::CancelPrompt { request, prompt: prompt.as_str().into() }
        };
        let cancels: Vec<Command> = queued.iter().map(cancel).collect();
        // Nobody waits for these answers.
        for command in &cancels {
            if let Command::CancelPrompt { request, prompt } = command {
                self.cancelled.insert(request.clone());
                self.cancelling.insert(request.clone(), prompt.to_string());
            }
        }
        outcome.commands.splice(0..0, cancels);
        outcome.answer = Some(Ok(Some(json!({"still_queued": [], "cancelled": queued}))));
    }

    /// Answers a request of the client, unless it has withdrawn that.
    pub(super) fn respond(&mut self, id: &str, answer: Result<Option<Value>, String>) {
        self.respond_or(id, answer.map_err(ControlError::from));
    }

    /// Answers a request; the error may have more for programs than its words.
    pub(super) fn respond_or(&mut self, id: &str, answer: Result<Option<Value>, ControlError>) {
        if !self.cancelled.remove(id) {
            self.output.write_line(&control::response(id, answer));
        }
    }
}
