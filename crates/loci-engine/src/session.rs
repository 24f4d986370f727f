//! A running session: commands in, events out, one turn of its main conversation at a time.
//!
//! The session holds what outlives turns: the queue of what was asked, and whether anything more will be. The
//! [`Conversation`] holds everything about the conversation itself; agents that work beside it are conversations, too.

mod assembly;
mod commands;
mod rewind;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use loci_core::session::SessionIdentity;
use loci_stdx::Store;
use loci_tools::Host;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::command::Command;
use crate::conversation::{Conversation, TurnInput};
use crate::event::{EngineEvent, TurnReport};
use crate::slash_command::{CommandAction, CommandRegistry};

/// The way to talk to a session.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    commands: UnboundedSender<Command>,
}

impl SessionHandle {
    /// Sends a command; false when the session is over.
    pub fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }
}

/// A session, to be run.
pub struct Session {
    conversation: Conversation,
    commands: UnboundedReceiver<Command>,
    queue: VecDeque<TurnInput>,
    /// Nothing more will be asked.
    is_closing: bool,
    /// Every handle is gone.
    is_deaf: bool,
    /// How long the end waits for what is done beside the conversation.
    drain: Duration,
}

impl Session {
    /// The slash commands, to list and to add to.
    pub fn slash_commands(&self) -> Arc<Store<CommandRegistry>> {
        Arc::clone(&self.conversation.ctx.slash_commands)
    }

    /// The session's identity, to watch.
    pub fn identity(&self) -> Arc<Store<SessionIdentity>> {
        Arc::clone(&self.conversation.ctx.identity)
    }

    /// Runs until it is closed (or every handle is gone) and the last turn is over.
    pub async fn run(mut self) {
        while let Some(input) = self.next_input().await {
            self.turn(input).await;
        }
        let mode = self.conversation.ctx.mode();
        self.conversation.tell(EngineEvent::TurnsOver { mode });
        self.conversation.helpers.drain(self.drain).await;
        self.conversation.host.tasks().shutdown().await;
        self.conversation.record_background();
        self.conversation.recorder.close();
        self.conversation.tell_warnings();
    }

    async fn next_input(&mut self) -> Option<TurnInput> {
        loop {
            if let Some(input) = self.queue.pop_front() {
                return Some(input);
            }
            if self.is_closing {
                return None;
            }
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.take_command(command),
                    None => self.close(),
                },
                () = self.conversation.idle() => {}
            }
        }
    }

    async fn turn(&mut self, input: TurnInput) {
        if self.conversation.asks_for(&input, CommandAction::Clear) {
            // The conversation that this one takes the place of was left by the front end; here nothing is done.
            self.conversation.begin_and_end();
            return;
        }
        let mut report = self.conversation.begin(input);
        while report.is_none() {
            report = self.step().await;
        }
    }

    /// Waits for the next thing that concerns the turn, whoever brings it.
    async fn step(&mut self) -> Option<TurnReport> {
        tokio::select! {
            report = self.conversation.advance() => report,
            command = self.commands.recv(), if !self.is_deaf => match command {
                Some(command) => self.take_command_during_turn(command),
                None => {
                    self.is_deaf = true;
                    self.close();
                    self.conversation.deny_open_questions();
                    None
                }
            },
        }
    }
}
