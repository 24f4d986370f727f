//! What the client of a stream is shown of each event, in order. How a frame looks is in `frame.rs`.

use std::sync::Arc;

use loci_core::hooks::HookEvent;
use loci_core::stream::{Delta, StreamEvent};
use loci_engine::turn::Outcome;
use loci_engine::{AgentRef, EngineEvent, Goal, LocalCommandOutput, ModelChoice, SessionSnapshot, TaskNews};
use serde_json::{Map, Value, json};

use super::PermissionPrompter;
use super::event_loop::{EventLoop, SUGGESTION_REQUEST};
use crate::control::{self, ControlError};
use crate::frame::transcript_mirror;
use crate::session_query::SessionQuery;

/// A longer one is no suggestion.
const MOST_OF_A_SUGGESTION: usize = 200;

impl EventLoop<'_> {
    /// Tells what an event brings beside its own frame, before that.
    fn show_beside(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::TurnStarted(_) => {
                let state = self.state.begin();
                self.tell_state(state);
                self.tell_commands();
            }
            EngineEvent::CommandsChanged(_) => self.tell_commands(),
            EngineEvent::PromptRecorded { entry, .. } => self.tell_lifecycle(entry.as_str(), "started"),
            EngineEvent::Dequeued { id, .. } => self.tell_lifecycle(id, "started"),
            EngineEvent::Stream { event: StreamEvent::Started(started), .. } => {
                self.tell_limits(started.rate_limits.as_deref());
            }
            EngineEvent::Stream { event: StreamEvent::BlockStarted { .. }, .. } => {
                self.progress.begin_block();
            }
            EngineEvent::Stream {
                event: StreamEvent::Delta { delta: Delta::Thinking(text), .. }, ..
            } => {
                if let Some(fields) = self.progress.think(text) {
                    self.output.write_line(&self.frames.system("thinking_tokens", fields));
                }
            }
            EngineEvent::Retry { failure, .. } => self.tell_limits(failure.rate_limits.as_deref()),
            EngineEvent::TurnEnded(report) => {
                self.compaction.take().iter().for_each(|frame| self.output.write_line(frame));
                match &report.outcome {
                    Outcome::ApiError(failure) => self.tell_limits(failure.rate_limits.as_deref()),
                    Outcome::Refused => {
                        let prompt = self.results.prompts.last().map(String::as_str);
                        self.output.write_line(&self.frames.refused(&self.results.model, prompt));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Writes the frames of an event.
    pub(super) fn show_frames(&mut self, event: &EngineEvent) {
        self.show_beside(event);
        match event {
            EngineEvent::TranscriptLines { file, lines } => {
                transcript_mirror(file, lines).into_iter().for_each(|line| self.output.write(line));
            }
            EngineEvent::Snapshot { request, snapshot } => {
                if let Some(at) = self.queries.iter().position(|(id, _)| id == request) {
                    let (id, query) = self.queries.remove(at);
                    self.answer_query(id, query, snapshot);
                }
            }
            EngineEvent::PromptCancelled { request, is_cancelled } => {
                if let Some(prompt) = self.cancelling.remove(request).filter(|_| *is_cancelled) {
                    self.tell_lifecycle(&prompt, "cancelled");
                    self.named_prompts.remove(&prompt);
                    self.context.queued.retain(|queued| *queued != prompt);
                    self.n_open_prompts = self.n_open_prompts.saturating_sub(1);
                }
                self.respond(request, Ok(Some(json!({"cancelled": is_cancelled}))));
            }
            EngineEvent::Requesting | EngineEvent::Stream { .. } if !self.options.has_partial_messages => {}
            EngineEvent::HookStarted(run) if !self.shows_hook(run.event) => {}
            EngineEvent::HookProgress(progress) if !self.shows_hook(progress.run.event) => {}
            EngineEvent::HookEnded(ended) if !self.shows_hook(ended.run.event) => {}
            EngineEvent::PromptRecorded { entry, message, timestamp, .. } if self.options.replays_prompts => {
                self.output.write_line(&self.frames.replay(entry.as_str(), message, timestamp));
            }
            EngineEvent::FilesRewound { request, outcome } => {
                self.respond(request, control::rewound(outcome));
            }
            EngineEvent::ModelAnswered { request, outcome } => {
                self.show_model(request, outcome.as_ref().ok());
                let answer = outcome.clone().map(|choice| Some(json!({"model": choice.model})));
                self.respond_or(request, answer.map_err(ControlError::from));
            }
            EngineEvent::DirectoryAdded { request, outcome } => {
                let answer = outcome.clone().map(|directory| Some(json!({"directory": directory})));
                self.respond(request, answer);
            }
            EngineEvent::McpAnswered { request, outcome } => self.respond(request, outcome.clone()),
            EngineEvent::SideAnswered { request, outcome } if request == SUGGESTION_REQUEST => {
                if let Some(text) = outcome.as_deref().ok().and_then(suggestion_in) {
                    self.output.write_line(&self.frames.prompt_suggestion(text));
                }
            }
            EngineEvent::SideAnswered { request, outcome } => {
                let answer = outcome.clone().map(|text| Some(json!({"response": text, "synthetic": false})));
                self.respond(request, answer);
            }
            EngineEvent::PluginsReloaded { request, outcome: Err(why) } => {
                self.queries.retain(|(query, _)| query != request);
                self.respond(request, Err(why.clone()));
            }
            EngineEvent::QuestionAsked(_) | EngineEvent::QuestionWithdrawn { .. }
                if self.options.prompter != PermissionPrompter::Client => {}
            EngineEvent::QuestionAsked(question) => match self.requests.ask(question) {
                Some(line) => {
                    self.output.write_line(&line);
                    let state = self.state.ask(&question.id);
                    self.tell_state(state);
                }
                None => self.deny_unasked(question.id.clone()),
            },
            EngineEvent::QuestionWithdrawn { question } => {
                if let Some(line) = self.requests.withdraw(question) {
                    self.output.write_line(&line);
                }
                let state = self.state.answer(question);
                self.tell_state(state);
            }
            EngineEvent::StopAnswered { request } => self.respond(request, Ok(Some(json!({})))),
            EngineEvent::Resumed(history) => {
                history.lost.iter().for_each(|lost| self.output.write_line(&self.frames.lost_task(lost)));
            }
            EngineEvent::Task(news) => {
                self.show_task(news);
            }
            EngineEvent::Agent { agent, event } => self.show_agent(agent, event),
            EngineEvent::TurnEnded(report) if matches!(report.outcome, Outcome::Blocked(_)) => {
                if let Outcome::Blocked(reason) = &report.outcome {
                    self.output.write_line(&self.frames.blocked_prompt(reason));
                }
            }
            EngineEvent::TurnEnded(_) => {}
            EngineEvent::GoalChanged(goal) => self.tell_goal(goal.as_ref()),
            event => {
                if let Some(mut frame) = self.frames.of(event) {
                    match event {
                        EngineEvent::Assistant(_) if !self.results.has_marked_prompts => {
                            self.results.has_marked_prompts = self.mark_prompts(&mut frame);
                        }
                        EngineEvent::Stream { .. } if !self.results.has_marked_stream => {
                            self.results.has_marked_stream = self.mark_prompts(&mut frame);
                        }
                        _ => {}
                    }
                    let ordered = self.compaction.order(event, frame);
                    ordered.iter().for_each(|frame| self.output.write_line(frame));
                }
                match event {
                    EngineEvent::HookEnded(ended) => {
                        self.frames.hook_message(ended).iter().for_each(|it| self.output.write_line(it));
                    }
                    EngineEvent::CompactionEnded { failure } if self.compaction.is_manual => {
                        self.tell_command_compacted(failure.as_deref());
                    }
                    // That one has ended is told as a change.
                    EngineEvent::GoalChecked { goal, .. } if goal.end.is_none() => self.tell_goal(Some(goal)),
                    _ => {}
                }
            }
        }
    }

    /// Shows that another model was chosen, as that of a command, and keeps it where a flag asked for it.
    fn show_model(&mut self, request: &str, choice: Option<&ModelChoice>) {
        let asked = self.flag_models.remove(request);
        let Some(choice) = choice else { return };
        if choice.is_news {
            let said = format!("Set model to `{}`", choice.model);
            self.output.write_line(&self.frames.command_replay(&said));
        }
        if let Some(model) = asked {
            self.context.flag_settings.apply(&Map::from_iter([("model".to_owned(), model)]));
        }
    }

    fn show_task(&mut self, news: &TaskNews) {
        let mut frames = self.frames.of_task(news, &self.tasks);
        if std::mem::take(&mut self.has_other_tasks) {
            // What comes is there before it is told of, what goes is told of before it is gone.
            let at = if matches!(news, TaskNews::Ended(_)) { frames.len() } else { 0 };
            frames.insert(at, self.frames.background_tasks_changed(&self.tasks));
        }
        frames.iter().for_each(|frame| self.output.write_line(frame));
    }

    /// Tells what is worked towards, if anything is.
    fn tell_goal(&mut self, goal: Option<&Goal>) {
        let known = self.goal.take();
        self.goal = goal.map(|goal| match known {
            Some((condition, tokens)) if condition == goal.condition => (condition, tokens),
            _ => (goal.condition.clone(), self.context.cost.n_tokens()),
        });
        let goal = goal.zip(self.goal.as_ref().map(|(_, tokens)| *tokens));
        self.output.write_line(&self.frames.active_goal(goal));
    }

    /// Tells what came of the command that asked for a compaction.
    fn tell_command_compacted(&mut self, failure: Option<&str>) {
        let name = "compact".to_owned();
        let frame = match failure {
            None => self.frames.command_replay("Compacted"),
            Some(why) => self.frames.local_command(&LocalCommandOutput {
                name: name.clone(),
                argument: None,
                text: why.to_owned(),
                is_error: false,
                has_prompt: true,
                is_unavailable: false,
            }),
        };
        self.output.write_line(&frame);
        self.results.local_command = Some(name);
    }

    /// Answers a question about the session; one that reads a whole project, beside everything else.
    fn answer_query(&mut self, id: String, query: SessionQuery, session: &Arc<SessionSnapshot>) {
        if query.reads_project() {
            let (context, session) = (self.context.clone(), Arc::clone(session));
            self.answers.spawn_blocking(move || (id, query.answer(&context, &session)));
        } else {
            let answer = query.answer(&self.context, session);
            self.respond(&id, answer.map(Some));
        }
    }

    /// Says on the first answer of a turn which prompts of the client it answers; tells whether there are any.
    fn mark_prompts(&self, frame: &mut Value) -> bool {
        let named = self.results.prompts.iter().filter(|prompt| self.named_prompts.contains(*prompt));
        let named: Vec<&String> = named.collect();
        if let Some(last) = named.last() {
            frame["user_message_uuid"] = json!(last);
            frame["user_message_uuids"] = json!(named);
        }
        !named.is_empty()
    }

    /// Shows what an agent does. Of one that is waited for, the calls and their results: its words come with the result
    /// of the call that sent it out.
    fn show_agent(&mut self, agent: &AgentRef, event: &EngineEvent) {
        let told = match event {
            EngineEvent::Retry { attempt, max_retries, delay, failure } => {
                Some(self.progress.retry(agent, (*attempt, *max_retries, *delay), failure))
            }
            EngineEvent::Assistant(_) | EngineEvent::TurnEnded(_) => self.progress.go_on(agent),
            _ => None,
        };
        if let Some(fields) = told {
            self.output.write_line(&self.frames.tool_progress(fields));
        }
        let is_background = self.background_agents.contains(agent.id.as_str());
        let is_shown = match event {
            EngineEvent::Assistant(block) => {
                let is_call = block.message["content"][0]["type"] == "tool_use";
                is_call || is_background || self.options.forwards_agent_text
            }
            EngineEvent::User(message) => {
                let is_result = message.message["content"][0]["type"] == "tool_result";
                is_result || !is_background
            }
            EngineEvent::PermissionDenied { .. } => true,
            _ => false,
        };
        if let Some(frame) = self.frames.of_agent(agent, event).filter(|_| is_shown) {
            self.output.write_line(&frame);
        }
    }

    /// Tells whether runs of an event's hooks are shown: those of a start always are.
    fn shows_hook(&self, event: HookEvent) -> bool {
        self.options.has_hook_events || matches!(event, HookEvent::SessionStart | HookEvent::Setup)
    }
}

/// Returns the suggestion in an answer; none where it is no prompt.
fn suggestion_in(answer: &str) -> Option<&str> {
    let text = answer.trim().trim_matches(['"', '`']);
    let is_short = !text.contains('\n') && text.chars().count() <= MOST_OF_A_SUGGESTION;
    (is_short && !text.is_empty()).then_some(text)
}
