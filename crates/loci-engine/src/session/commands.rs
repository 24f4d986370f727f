//! Taking commands of front ends, between turns and during one.

use std::sync::Arc;
use std::time::Duration;

use loci_core::message::{Block, Content};

use super::Session;
use crate::command::{Command, Prompt};
use crate::conversation::TurnInput;
use crate::event::{EngineEvent, TurnReport};
use crate::session::state::set_mode;

/// Puts the first words of the agent that a new conversation runs as before its first prompt. A front end may say them by
/// themselves; commands are left alone.
fn with_initial_prompt(initial: &mut Option<String>, mut prompt: Prompt) -> Prompt {
    let said = prompt.content.text();
    if said.trim_start().starts_with('/') && initial.as_deref() != Some(said.as_str()) {
        return prompt;
    }
    let Some(initial) = initial.take().filter(|initial| *initial != said) else { return prompt };
    match &mut prompt.content {
        Content::Text(text) => *text = format!("{initial}\n\n{text}"),
        Content::Blocks(blocks) => blocks.insert(0, Block::new_text(&initial)),
    }
    prompt
}

impl Session {
    /// Takes a command that needs no turn.
    pub(super) fn take_command(&mut self, command: Command) {
        tracing::debug!(target: "loci::engine", "command {}", command.name());
        let conversation = &mut self.conversation;
        match command {
            Command::Prompt(_) | Command::GoOn | Command::Shell(_) if self.is_closing => {}
            Command::Prompt(prompt) => {
                let prompt = with_initial_prompt(&mut self.initial_prompt, prompt);
                self.queue.push_back(TurnInput::Prompt(prompt));
            }
            Command::Queue(_) if self.is_closing => {}
            Command::Queue(queued) => conversation.queue_prompt(queued),
            Command::TakeBackQueue => {
                let taken = conversation.queue.prompts.drain(..).collect();
                conversation.scope.tell(EngineEvent::QueueTakenBack(taken));
            }
            Command::Shell(shell) => self.queue.push_back(TurnInput::Shell(shell)),
            Command::GoOn => self.queue.push_back(TurnInput::GoOn),
            Command::Wake { .. } if self.is_closing => {}
            Command::Wake { text } => self.queue.push_back(TurnInput::Instruction(text)),
            Command::Leave { title, reason } => {
                self.is_closing = true;
                self.task_wait.is_on = false;
                self.end_reason = reason;
                if let Some(title) = title {
                    conversation.recorder.name(title);
                    conversation.recorder.tell_warnings(&conversation.scope);
                }
            }
            Command::SetMode(mode) => {
                set_mode(&conversation.scope.ctx.state, mode);
            }
            Command::SetModel { request, model } => self.ask_for_model(request, model),
            Command::ModelSwitchDecided(decision) => self.model_switch_decided(*decision),
            Command::Snapshot { request } => {
                let snapshot = Arc::new(conversation.snapshot());
                conversation.scope.tell(EngineEvent::Snapshot { request, snapshot });
            }
            Command::CancelPrompt { request, prompt } => {
                let is_it = |input: &TurnInput| matches!(input, TurnInput::Prompt(queued) if queued.id.as_ref() == Some(&prompt));
                let n_before = self.queue.len();
                self.queue.retain(|input| !is_it(input));
                let is_cancelled = self.queue.len() < n_before;
                conversation.scope.tell(EngineEvent::PromptCancelled { request, is_cancelled });
            }
            Command::ReloadSkills => drop(conversation.reload_skills()),
            Command::ReloadPlugins { request } => {
                let outcome = self.reload_plugins();
                self.conversation.scope.tell(EngineEvent::PluginsReloaded { request, outcome });
            }
            Command::SetServerMode { server, mode } => {
                conversation.scope.ctx.policy.set_server_mode(&server, mode);
            }
            Command::SeedReadState { path, modified_ms } => {
                conversation.scope.seed_read_state(&path, modified_ms);
            }
            Command::SetEffort(effort) => conversation.scope.set_effort(effort),
            Command::SetThinkingDisplay(display) => conversation.scope.set_thinking_display(display),
            Command::SetThinking(most) => conversation.scope.set_thinking(most),
            Command::ChangePermission(update) => {
                if let Err(why) = conversation.scope.try_grant(update) {
                    conversation.scope.tell(EngineEvent::Warning(why));
                }
            }
            Command::ChangeTools(changes) => conversation.tools.change_tools(changes),
            Command::Notify { kind, message, title } => {
                conversation.scope.notify_user(&conversation.recorder, kind, message, title);
            }
            Command::AddDirectory { request, directory, source } => {
                conversation.add_directory(request, &directory, source);
            }
            Command::Rename { title } => conversation.recorder.rename(&conversation.scope, title),
            Command::AskOnTheSide { request, task } => self.ask_on_the_side(request, &task),
            Command::Mcp { request, action } => conversation.scope.ctx.answer_mcp(request, action),
            Command::RewindFiles { request, prompt, is_trial } => {
                self.rewind_files(request, prompt, is_trial);
            }
            Command::StopTask { request, task } => {
                let (host, events) =
                    (Arc::clone(&conversation.scope.host), conversation.scope.ctx.events.clone());
                tokio::spawn(async move {
                    host.stop_for_person(&task).await;
                    // Without a listener there is nobody to answer.
                    drop(events.send(EngineEvent::StopAnswered { request }));
                });
            }
            Command::MessageAgent { request, agent, text } => {
                conversation.message_agent(request, agent, text);
            }
            Command::MoveToBackground { call } => {
                conversation.move_to_background(call.as_ref());
            }
            Command::Close => self.close(),
            Command::Quit => {
                self.queue.clear();
                conversation.queue.prompts.clear();
                self.drain = Duration::ZERO;
                self.task_wait.is_on = false;
                self.close();
            }
            // An agent may have asked.
            Command::Answer { question, answer } => conversation.scope.ctx.policy.answer(question, answer),
            // Nothing is under way that could be stopped but a loop that waits for its next round.
            Command::Interrupt => {
                if conversation.scope.ctx.schedule.as_ref().is_some_and(|schedule| schedule.stop_loop()) {
                    conversation.scope.tell(EngineEvent::Warning("The loop is stopped".to_owned()));
                }
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.is_closing = true;
        self.conversation.scope.ctx.policy.stop_asking();
    }

    /// Takes a command while a turn is under way; the report, when that ended the turn.
    pub(super) fn take_command_during_turn(&mut self, command: Command) -> Option<TurnReport> {
        tracing::debug!(target: "loci::engine", "command {} during a turn", command.name());
        match command {
            Command::Interrupt => self.conversation.interrupt(),
            Command::Quit => {
                self.take_command(Command::Quit);
                self.conversation.interrupt()
            }
            // Heard at once, so that what follows it finds the question answered.
            Command::Answer { question, answer } if self.conversation.permits.has_asked(&question) => {
                self.conversation.answered(&question, answer);
                None
            }
            Command::Close => {
                self.close();
                self.conversation.deny_open_questions();
                None
            }
            other => {
                self.take_command(other);
                None
            }
        }
    }
}
