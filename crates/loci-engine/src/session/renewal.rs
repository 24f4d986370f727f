//! A session that another can take the place of: what `/clear` and a switch to an earlier session do, for every front
//! end alike.
//!
//! A front end talks to a [`SessionRunner`]. Commands go to the session at hand; a prompt that clears the conversation
//! makes it leave. The session that is left finishes what it was asked, and what it does beside the conversation; the new
//! one begins as soon as its turns are over and is asked what came in the meantime. No state is shared between them but
//! what [`RenewalState`] names.

use std::sync::Arc;
use std::time::Duration;

use loci_core::agent::AgentRegistry;
use loci_core::ids::SessionId;
use loci_core::permission::Mode;
use loci_core::session::{SessionIdentity, Totals};
use loci_stdx::Store;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::command::{Command, Prompt};
use crate::event::EngineEvent;
use crate::extensions::slash_command::{CommandAction, CommandRegistry};
use crate::session::earlier_totals::EarlierTotals;
use crate::session::{Session, SessionEnd, SessionHandle};

/// What a session takes over from the one it takes the place of.
#[derive(Debug, Clone, PartialEq)]
pub struct RenewalState {
    /// The permission mode.
    pub mode: Mode,
    /// The model, where one was chosen in the session.
    pub model: Option<String>,
    /// The effort, where one was.
    pub effort: Option<String>,
    /// What this process has used so far; limits count on.
    pub totals: Totals,
}

/// A session, the way to talk to it, and what it says.
pub struct NewSession {
    /// The session, to be run.
    pub session: Session,
    /// The way to talk to it.
    pub handle: SessionHandle,
    /// What it says.
    pub events: UnboundedReceiver<EngineEvent>,
}

impl From<(Session, SessionHandle, UnboundedReceiver<EngineEvent>)> for NewSession {
    fn from((session, handle, events): (Session, SessionHandle, UnboundedReceiver<EngineEvent>)) -> Self {
        Self { session, handle, events }
    }
}

/// Makes the session that is switched to; the error says why there is none.
pub type OpenSession = Box<dyn FnOnce(RenewalState) -> Result<NewSession, String> + Send>;

/// A session that is to take the place of the one at hand, since somebody chose it.
pub struct SessionSwitch {
    /// Makes it.
    pub open: OpenSession,
    /// Whether the one at hand must have ended first, since it is the same session.
    pub waits_for_end: bool,
}

/// How long it may take to let go of what a session holds.
const ABORT_WAIT: Duration = Duration::from_secs(1);

/// Why the session at hand is left.
enum Leaving {
    /// The prompt asked for a new conversation.
    Clear(Prompt),
    /// Another session was chosen. The mode is known once the turns are over.
    Switch(SessionSwitch, Option<Mode>),
}

/// Makes a session that takes the place of another; the error says why there is none.
pub type RenewSession = Box<dyn FnMut(RenewalState) -> Result<NewSession, String> + Send>;

/// What a front end hears.
#[derive(Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are the large one, and each is passed on at once"
)]
pub enum RunnerEvent {
    /// The session at hand says something.
    Session(EngineEvent),
    /// Another session took its place.
    Renewed(SessionId),
    /// There is none to take its place; nothing more will be asked.
    RenewalFailed(String),
}

/// The session that runs, and those that were left.
pub struct SessionRunner {
    handle: SessionHandle,
    events: UnboundedReceiver<EngineEvent>,
    // Not its state, which holds the sender of its events: they would never end.
    identity: Arc<Store<SessionIdentity>>,
    earlier: EarlierTotals,
    slash_commands: Arc<Store<CommandRegistry>>,
    agents: Arc<Store<AgentRegistry>>,
    tasks: Vec<JoinHandle<SessionEnd>>,
    /// What those that were left still have to say.
    left: Vec<UnboundedReceiver<EngineEvent>>,
    /// What troubled them, and whether a session failed, as far as their end was waited for.
    troubles: Vec<String>,
    has_failed: bool,
    renew: Option<RenewSession>,
    /// Why the session at hand is left, until another begins.
    leaving: Option<Leaving>,
    /// Prompts for the session that will begin.
    held: Vec<Prompt>,
    /// Nothing more will be asked.
    is_closing: bool,
}

impl SessionRunner {
    /// Lets a session run; `renew` makes the one that takes its place when the user clears the conversation.
    pub fn start(new: NewSession, renew: Option<RenewSession>) -> Self {
        let NewSession { session, handle, events } = new;
        Self {
            handle,
            events,
            identity: session.identity(),
            earlier: session.earlier_totals(),
            slash_commands: session.slash_commands(),
            agents: session.agents(),
            tasks: vec![tokio::spawn(session.run())],
            left: Vec::new(),
            troubles: Vec::new(),
            has_failed: false,
            renew,
            leaving: None,
            held: Vec::new(),
            is_closing: false,
        }
    }

    /// The identity of the session at hand, to watch.
    pub fn identity(&self) -> Arc<Store<SessionIdentity>> {
        Arc::clone(&self.identity)
    }

    /// What earlier runs of the session at hand used.
    pub fn earlier_totals(&self) -> EarlierTotals {
        self.earlier.clone()
    }

    /// The slash commands of the session at hand.
    pub fn agents(&self) -> Arc<Store<AgentRegistry>> {
        Arc::clone(&self.agents)
    }

    /// The slash commands, to list and to add to.
    pub fn slash_commands(&self) -> Arc<Store<CommandRegistry>> {
        Arc::clone(&self.slash_commands)
    }

    /// Sends a command to the session at hand, or keeps it for the one that will take its place.
    pub fn send(&mut self, command: Command) {
        match command {
            Command::Prompt(prompt) => self.prompt(prompt),
            Command::Queue(queued) if self.leaving.is_some() => self.held.push(queued.prompt),
            Command::Close => {
                self.is_closing = true;
                if self.leaving.is_none() {
                    self.handle.send(Command::Close);
                }
            }
            other => drop(self.handle.send(other)),
        }
    }

    /// Leaves the session at hand for another that somebody chose; what is asked meanwhile waits for that one. A session
    /// that is being left already is left for the first reason.
    pub fn switch(&mut self, switch: SessionSwitch) {
        if self.leaving.is_none() {
            self.handle.send(Command::Leave { title: None, reason: "resume" });
            self.leaving = Some(Leaving::Switch(switch, None));
        }
    }

    /// Waits for the next event; none when every turn is over and the session has ended. Nothing is lost when this is
    /// dropped before it is done.
    pub async fn next_event(&mut self) -> Option<RunnerEvent> {
        let event = self.events.recv().await;
        let renewed = match (event, self.leaving.take()) {
            (Some(EngineEvent::TurnsOver { mode }), Some(Leaving::Clear(prompt))) => self.renew(mode, prompt),
            (Some(EngineEvent::TurnsOver { mode }), Some(Leaving::Switch(switch, _))) => {
                if switch.waits_for_end {
                    self.leaving = Some(Leaving::Switch(switch, Some(mode)));
                    return Some(RunnerEvent::Session(EngineEvent::TurnsOver { mode }));
                }
                self.open(mode, switch.open)
            }
            (None, Some(Leaving::Switch(switch, mode))) => self.open(mode.unwrap_or_default(), switch.open),
            (Some(event), leaving) => {
                self.leaving = leaving;
                return Some(RunnerEvent::Session(event));
            }
            (None, Some(Leaving::Clear(_)) | None) => return None,
        };
        Some(renewed.map_or_else(RunnerEvent::RenewalFailed, RunnerEvent::Renewed))
    }

    /// Waits for all sessions to end; returns what troubled those that were left, and whether one failed or lost lines
    /// of its transcript. Nothing is lost when this is dropped before it is done; whoever waits no longer calls
    /// [`SessionRunner::abort`].
    pub async fn finish(&mut self) -> (Vec<String>, bool) {
        while let Some(events) = self.left.last_mut() {
            match events.recv().await {
                Some(EngineEvent::Warning(trouble)) => self.troubles.push(trouble),
                Some(_) => {}
                None => drop(self.left.pop()),
            }
        }
        while let Some(task) = self.tasks.last_mut() {
            self.has_failed |= task.await.ok() != Some(SessionEnd::Kept);
            self.tasks.pop();
        }
        (std::mem::take(&mut self.troubles), self.has_failed)
    }

    /// Gives up sessions that do not end. What they run is killed; what they have recorded is in their transcripts.
    pub async fn abort(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        for task in std::mem::take(&mut self.tasks) {
            // One that is stuck in a system call ends with the process.
            drop(tokio::time::timeout(ABORT_WAIT, task).await);
        }
    }

    /// Asks the session, or the one that will take its place.
    fn prompt(&mut self, prompt: Prompt) {
        if self.leaving.is_some() {
            self.held.push(prompt);
            return;
        }
        let call = self.slash_commands.get().parse(&prompt);
        match call.filter(|call| call.command.action == CommandAction::Clear && self.renew.is_some()) {
            Some(call) => {
                self.handle.send(Command::Leave { title: call.argument, reason: "clear" });
                self.leaving = Some(Leaving::Clear(prompt));
            }
            None => drop(self.handle.send(Command::Prompt(prompt))),
        }
    }

    /// Lets a new conversation run in the place of the one whose turns are over.
    fn renew(&mut self, mode: Mode, prompt: Prompt) -> Result<SessionId, String> {
        let state = self.renewal_state(mode);
        let renew = self.renew.as_mut().ok_or("This session cannot be left for another")?;
        let new = renew(state)?;
        // It was made for this prompt, which is done by now.
        Ok(self.take_up(new, Some(prompt)))
    }

    /// Lets the session that was chosen run in the place of the one whose turns are over.
    fn open(&mut self, mode: Mode, open: OpenSession) -> Result<SessionId, String> {
        let new = open(self.renewal_state(mode))?;
        Ok(self.take_up(new, None))
    }

    fn renewal_state(&self, mode: Mode) -> RenewalState {
        let identity = self.identity.get();
        RenewalState {
            mode,
            model: identity.model_override.clone(),
            effort: identity.effort_override.clone(),
            totals: identity.process_totals(),
        }
    }

    /// Lets a session run, and asks it what was held back.
    fn take_up(&mut self, new: NewSession, first: Option<Prompt>) -> SessionId {
        let NewSession { session, handle, events } = new;
        self.left.push(std::mem::replace(&mut self.events, events));
        self.identity = session.identity();
        self.earlier = session.earlier_totals();
        self.slash_commands = session.slash_commands();
        self.agents = session.agents();
        self.handle = handle;
        self.tasks.push(tokio::spawn(session.run()));
        if let Some(prompt) = first {
            self.handle.send(Command::Prompt(prompt));
        }
        for prompt in std::mem::take(&mut self.held) {
            self.prompt(prompt);
        }
        if self.is_closing {
            self.send(Command::Close);
        }
        self.identity.get().id().clone()
    }
}
