//! Commands that need no model: carried out between turns, in the order in which they were asked for.

use std::sync::Arc;

use loci_core::hooks::HookConfig;

use super::Session;
use crate::command::{Command, DirectorySource, Prompt};
use crate::conversation::TurnInput;
use crate::extensions::local_command::{LocalCommandOutput, LocalEffect, LocalOutcome};
use crate::extensions::slash_command::{CommandAction, CommandCall, split_command};
use crate::session::goal::{CLEAR_WORDS, goal_prompt, refusal};

/// What is said where somebody did not want to wait.
const INTERRUPTED: &str = "Interrupted";
/// What is said where nobody carries commands out.
const NOBODY: &str = "This command cannot be carried out in this session";

impl Session {
    /// Returns the command that an input is, where it needs no model.
    pub(super) fn local_call(&self, input: &TurnInput) -> Option<CommandCall> {
        let TurnInput::Prompt(prompt) = input else { return None };
        let call = self.conversation.scope.ctx.slash_commands.get().parse(prompt)?;
        (call.command.action == CommandAction::Local).then_some(call)
    }

    /// Sets the goal that an input names, and returns the prompt that begins the work towards it. An input that sets none,
    /// or may not, comes back as it is.
    pub(super) fn take_goal(&mut self, input: TurnInput) -> TurnInput {
        let call = self.local_call(&input).filter(|call| call.command.name == "goal");
        let condition = call.and_then(|call| call.argument).filter(|it| !CLEAR_WORDS.contains(&it.as_str()));
        let (Some(condition), TurnInput::Prompt(prompt)) = (condition, &input) else { return input };
        let conversation = &self.conversation;
        if refusal(&conversation.scope.ctx.state.get().settings).is_some() {
            return input;
        }
        conversation.scope.ctx.goal.set(&condition, conversation.scope.ctx.services.env.clock.monotonic());
        TurnInput::Prompt(goal_prompt(prompt, &condition))
    }

    /// Carries a command out, in a turn without a request.
    pub(super) async fn run_local(&mut self, call: CommandCall) {
        let commands = self.conversation.scope.ctx.local_commands.clone();
        if commands.as_ref().is_some_and(|commands| commands.needs_servers(&call)) {
            self.ready_servers().await;
        }
        self.conversation.begin_local();
        let outcome = match commands {
            Some(commands) => {
                let (snapshot, asked) = (self.conversation.snapshot(), call.clone());
                let work = tokio::task::spawn_blocking(move || commands.run(&asked, &snapshot));
                self.while_hearing(async { work.await.unwrap_or_else(|_| LocalOutcome::error(NOBODY)) }).await
            }
            None => Some(LocalOutcome::error(NOBODY)),
        };
        let Some(LocalOutcome { mut text, mut is_error, effects }) = outcome else {
            self.conversation.end_local_interrupted();
            return;
        };
        for effect in effects {
            match self.apply_effect(effect).await {
                Ok(None) => {}
                Ok(Some(more)) if text.is_empty() => text = more,
                Ok(Some(more)) => text = format!("{text}\n\n{more}"),
                Err(why) => {
                    (text, is_error) = (why, true);
                    break;
                }
            }
        }
        let output = LocalCommandOutput {
            name: call.command.name.clone(),
            argument: call.argument.clone(),
            text,
            is_error,
            has_prompt: false,
            is_unavailable: false,
        };
        self.conversation.end_local(output);
    }

    /// Returns what to say to an input that is a command which people know, and which there is not here.
    pub(super) fn unavailable_call(&self, input: &TurnInput) -> Option<LocalCommandOutput> {
        let TurnInput::Prompt(prompt) = input else { return None };
        if prompt.is_verbatim || prompt.is_scheduled {
            return None;
        }
        let said = prompt.content.text();
        let (name, argument) = split_command(&said)?;
        let text = self.conversation.scope.ctx.slash_commands.get().unavailable(name)?;
        let name = name.to_owned();
        Some(LocalCommandOutput {
            name,
            argument,
            text,
            is_error: false,
            has_prompt: false,
            is_unavailable: true,
        })
    }

    /// Says that a command is not there, in a turn without a request.
    pub(super) fn refuse_unavailable(&mut self, output: LocalCommandOutput) {
        self.conversation.begin_local();
        self.conversation.end_local(output);
    }

    /// Reads plugins anew without a turn; says what there is now, or why it cannot be done.
    pub(super) fn reload_plugins(&mut self) -> Result<String, String> {
        let ctx = &self.conversation.scope.ctx;
        let call = ctx.slash_commands.get().parse(&Prompt::text("/reload-plugins"));
        let (Some(call), Some(commands)) = (call, ctx.local_commands.clone()) else {
            return Err(NOBODY.to_owned());
        };
        let LocalOutcome { text, is_error, effects } = commands.run(&call, &self.conversation.snapshot());
        if is_error {
            return Err(text);
        }
        for effect in effects {
            match effect {
                LocalEffect::SetHooks(hooks) => {
                    self.conversation.scope.ctx.hooks.set_config(HookConfig::clone(&hooks.0));
                }
                LocalEffect::ReloadSkills => drop(self.conversation.reload_skills()),
                other => tracing::warn!(target: "loci::engine", ?other, "an effect that plugins do not have"),
            }
        }
        Ok(text)
    }

    /// Waits for something while commands of the front end are heard; nothing, when one of them ends the wait.
    pub(super) async fn while_hearing<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                command = self.commands.recv(), if !self.is_deaf => match command {
                    Some(Command::Interrupt) => return None,
                    Some(Command::Quit) => {
                        self.take_command(Command::Quit);
                        return None;
                    }
                    Some(command) => self.take_command(command),
                    None => {
                        self.is_deaf = true;
                        self.close();
                    }
                },
            }
        }
    }

    /// Makes a change that a command asks for; returns what is to be said of it, or why it cannot be made.
    async fn apply_effect(&mut self, effect: LocalEffect) -> Result<Option<String>, String> {
        let conversation = &mut self.conversation;
        match effect {
            LocalEffect::SetModel(name) => {
                let set = self.set_model_by_command(name.as_deref()).await;
                set.map(|()| None).map_err(|refusal| refusal.to_string())
            }
            LocalEffect::SetEffort(effort) => {
                conversation.scope.set_effort(effort);
                Ok(None)
            }
            LocalEffect::SetCompactWindow(window) => {
                conversation.set_compact_window(window);
                Ok(None)
            }
            LocalEffect::Rename(title) => {
                conversation.recorder.rename(&conversation.scope, title);
                Ok(None)
            }
            LocalEffect::AddDirectory(directory) => {
                let outcome = conversation.try_add_directory(&directory, DirectorySource::SlashCommand);
                outcome.map(|dir| Some(format!("`{}` belongs to the session now", dir.display())))
            }
            LocalEffect::SetHooks(hooks) => {
                conversation.scope.ctx.hooks.set_config(HookConfig::clone(&hooks.0));
                Ok(None)
            }
            LocalEffect::MessageAgent { agent, text } => {
                let sending = conversation.send_to_agent(agent, text);
                self.while_hearing(sending).await.unwrap_or_else(|| Err(INTERRUPTED.to_owned())).map(Some)
            }
            LocalEffect::Subtask(task) => {
                let sending = conversation.begin_subtask(task);
                self.while_hearing(sending).await.unwrap_or_else(|| Err(INTERRUPTED.to_owned())).map(Some)
            }
            LocalEffect::StopTask(id) => {
                let host = Arc::clone(&conversation.scope.host);
                let stopping = async move { host.stop_for_person(&id).await.ok_or(id) };
                let stopped = self.while_hearing(stopping).await;
                match stopped {
                    None => Err(INTERRUPTED.to_owned()),
                    Some(Ok(task)) => Ok(Some(format!("Stopped: {}", task.label()))),
                    Some(Err(id)) => Err(format!("There is no task `{id}`; `/tasks` lists them")),
                }
            }
            LocalEffect::ClearGoal => Ok(Some(match conversation.scope.ctx.goal.clear() {
                Some(goal) => format!("Goal cleared: {}", goal.condition),
                None => "No goal set".to_owned(),
            })),
            LocalEffect::ReloadSkills => Ok(Some(conversation.reload_skills())),
            LocalEffect::Permission(update) => conversation.scope.try_grant(update).map(|()| None),
            LocalEffect::Mcp(action) => {
                let work = conversation.scope.ctx.mcp_outcome(action);
                let done = self.while_hearing(work).await;
                done.unwrap_or_else(|| Err(INTERRUPTED.to_owned())).map(|_| None)
            }
        }
    }
}
