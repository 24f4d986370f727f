//! A running session: commands in, events out, one turn at a time.
//!
//! The driver holds no rules of its own. It performs what the turn machine asks for, in order, and feeds back
//! what comes of it: the request's stream, judgements, outcomes, the user's wishes.

mod asking;
mod assembling;
mod compacting;
mod folding;
mod keeping;
mod leave;
mod obeying;
mod perform;
mod remembering;
mod summarising;
mod tally;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loci_context::user_context;
use loci_core::app_state::AppState;
use loci_core::entry::Entry;
use loci_core::ids::ToolUseId;
use loci_core::permission::Classified;
use loci_core::session::SessionIdentity;
use loci_core::stream::{Ended, Failure, FailureKind, Started};
use loci_llm::Client;
use loci_stdx::{Env, Store};
use loci_storage::{ConfigHome, Instructions, LazyInstructions};
use loci_tools::{Host, Toolbox};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::background::{Ahead, Extractor, Folder, NotesKeeper};
use crate::classifier::{Blocks, Classifier};
use crate::command::{Command, Prompt};
use crate::compaction_hooks::{AfterCompaction, CompactionHooks, CompactionLeave};
use crate::config::{
    CompactionConfig, Grants, ModelConfig, ReadInstructions, ReloadPoint, SettingsPoller, TurnLimits,
};
use crate::event::{EngineEvent, TurnStart};
use crate::file_history::Checkpoints;
use crate::host::SessionHost;
use crate::instructions::shown_instructions;
use crate::judge::PreparedCall;
use crate::memory::MemoryDesk;
use crate::opening::Opening;
use crate::recorder::Recorder;
use crate::request::RequestBase;
use crate::restore_source::RestoreSource;
use crate::slash_command::{CommandAction, CommandCall, CommandRegistry};
use crate::state::change;
use crate::turn::{CompactionWish, Effect, Event, Limits, Outcome, RetryRules, Turn, TurnEnd};
use compacting::{Compactor, Pending};
use tally::Tally;

/// How long what could not be saved waits before the disk is tried again, should nothing else happen.
const SAVE_AGAIN: Duration = Duration::from_millis(500);
const BLANK: &str = "The prompt is empty. Send some text, or a picture.";
const NOTHING_OPEN: &str = "There is nothing to go on with. Send a prompt.";

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
    env: Env,
    home: ConfigHome,
    state: Arc<Store<AppState>>,
    identity: Arc<Store<SessionIdentity>>,
    recorder: Recorder,
    host: Arc<SessionHost>,
    toolbox: Toolbox,
    slash_commands: Arc<Store<CommandRegistry>>,
    client: Client,
    base: Arc<RequestBase>,
    model: ModelConfig,
    limits: TurnLimits,
    can_ask: bool,
    instructions: Instructions,
    lazy_instructions: Option<LazyInstructions>,
    read_instructions: Option<ReadInstructions>,
    /// What opens the conversation, once it is made.
    opening: Option<Opening>,
    api_key_source: String,
    started: Duration,
    events: UnboundedSender<EngineEvent>,
    commands: UnboundedReceiver<Command>,
    queue: VecDeque<Wish>,
    /// What came before this process, until the first call needs to know what was read.
    past: Option<Vec<Arc<Entry>>>,
    /// The model of the request on the wire.
    asked_model: String,
    /// Nothing more will be asked.
    is_closing: bool,
    /// Every handle is gone.
    is_deaf: bool,
    /// The head of the response that is arriving.
    answering: Option<Started>,
    /// Looks whether settings changed.
    poll_settings: Option<SettingsPoller>,
    /// What answers may change, and where that is saved.
    grants: Grants,
    /// Judges what would be asked about in mode `auto`.
    classifier: Option<Arc<dyn Classifier>>,
    blocks: Blocks,
    compaction: CompactionConfig,
    /// Who has a say in compactions.
    compaction_hooks: Option<Arc<dyn CompactionHooks>>,
    restore_sources: Vec<Arc<dyn RestoreSource>>,
    compactor: Compactor,
    checkpoints: Checkpoints,
    /// Keeps running notes of the conversation.
    notes: Option<NotesKeeper>,
    /// Prepares the summary that a compaction will need.
    ahead: Option<Ahead>,
    /// Folds stretches of the conversation.
    folder: Option<Folder>,
    /// The memories of the project.
    memory: Option<Arc<MemoryDesk>>,
    /// Looks for new ones.
    extractor: Option<Extractor>,
    /// The date the model was last told.
    told_date: String,
    /// How long the end waits for what is done beside the conversation.
    drain: Duration,
    /// How long a compaction waits for it.
    patience: Duration,
}

/// What a turn begins with.
enum Wish {
    Prompt(Prompt),
    GoOn,
}

/// What a turn has under way.
struct Underway {
    inbox: UnboundedSender<Message>,
    generation: u64,
    request: CancellationToken,
    calls: CancellationToken,
    prepared: HashMap<ToolUseId, PreparedCall>,
    /// Files that running calls read.
    reading: HashMap<ToolUseId, PathBuf>,
    /// Running calls that change memories.
    remembering: HashSet<ToolUseId>,
    /// What the results of the calls at hand take of the window so far.
    result_tokens: u64,
    questions: HashMap<String, PreparedCall>,
    tally: Tally,
    has_interrupted: bool,
    /// The compaction whose summary is being written.
    pending: Option<Pending>,
    /// What a compaction made, for those who want to know.
    compacted: Option<AfterCompaction>,
}

impl Underway {
    fn new(inbox: UnboundedSender<Message>, now: Duration) -> Self {
        Self {
            inbox,
            generation: 0,
            request: CancellationToken::new(),
            calls: CancellationToken::new(),
            prepared: HashMap::new(),
            reading: HashMap::new(),
            remembering: HashSet::new(),
            result_tokens: 0,
            questions: HashMap::new(),
            tally: Tally::begin(now),
            has_interrupted: false,
            pending: None,
            compacted: None,
        }
    }
}

/// What tasks of a turn report; a request's events count only while it is the current one.
enum Message {
    Request(u64, Event),
    Summary(u64, Result<(String, Ended), Failure>),
    Leave(CompactionWish, CompactionLeave),
    Folded(CompactionWish),
    Classified(ToolUseId, Option<Classified>),
    Other(Event),
}

impl Session {
    /// The state that front ends may watch.
    pub fn state(&self) -> Arc<Store<AppState>> {
        Arc::clone(&self.state)
    }

    /// The session's identity, to watch.
    pub fn identity(&self) -> Arc<Store<SessionIdentity>> {
        Arc::clone(&self.identity)
    }

    /// The slash commands, to list and to add to.
    pub fn slash_commands(&self) -> Arc<Store<CommandRegistry>> {
        Arc::clone(&self.slash_commands)
    }

    /// Runs until it is closed (or every handle is gone) and the last turn is over.
    pub async fn run(mut self) {
        while let Some(wish) = self.next_wish().await {
            self.turn(wish).await;
        }
        let mode = self.state.get().permission.rulebook.mode;
        self.tell(EngineEvent::TurnsOver { mode });
        self.wait_for_background().await;
        self.host.tasks().shutdown().await;
        self.keep_background();
        self.recorder.close();
        self.tell_trouble();
    }

    async fn next_wish(&mut self) -> Option<Wish> {
        loop {
            if let Some(wish) = self.queue.pop_front() {
                return Some(wish);
            }
            if self.is_closing {
                return None;
            }
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => self.close(),
                },
                () = pause_before_saving(self.recorder.has_unsaved()) => self.save_again(),
            }
        }
    }

    fn current_model(&self) -> String {
        self.state.get().model.session_override.clone().unwrap_or_else(|| self.model.main.clone())
    }

    async fn turn(&mut self, wish: Wish) {
        let (inbox, mut messages) = unbounded_channel();
        let mut underway = Underway::new(inbox, self.env.clock.monotonic());
        self.begin();
        let call = self.slash_command(&wish);
        if call.as_ref().is_some_and(|call| call.command.action == CommandAction::Clear) {
            // The conversation that this one takes the place of was left by the front end; here nothing is done.
            let end = TurnEnd { outcome: Outcome::Completed, round_trips: 0, stop_reason: None };
            return self.end(end, &underway);
        }
        let mut turn = Turn::new(self.turn_limits());
        let mut effects = match self.open(wish, call) {
            Ok(event) => turn.handle(event),
            Err(text) => return self.refuse_prompt(text, &mut underway),
        };
        let end = loop {
            if let Some(end) = self.perform_all(effects, &mut underway) {
                break end;
            }
            let event = self.next_event(&mut messages, &mut underway).await;
            effects = turn.handle(self.account(event, &mut underway));
        };
        self.end(end, &underway);
    }

    fn slash_command(&self, wish: &Wish) -> Option<CommandCall> {
        match wish {
            Wish::Prompt(prompt) => self.slash_commands.get().parse(prompt),
            Wish::GoOn => None,
        }
    }

    /// Records what a turn begins with and returns its first event; the error says why there is no turn.
    fn open(&mut self, wish: Wish, call: Option<CommandCall>) -> Result<Event, String> {
        let prompt = match wish {
            Wish::Prompt(prompt) => prompt,
            Wish::GoOn if self.recorder.is_open() => return Ok(Event::Begin),
            Wish::GoOn => return Err(NOTHING_OPEN.to_owned()),
        };
        if prompt.content.is_blank() {
            return Err(BLANK.to_owned());
        }
        match call.map(|call| (call.command.action, call.argument)) {
            Some((CommandAction::Compact, focus)) => {
                if !self.recorder.path().is_empty() {
                    self.recorder.command(&prompt.content.text());
                }
                return Ok(Event::Compact { focus });
            }
            Some((CommandAction::Clear, _)) | None => {}
        }
        if let Some(text) = self.refusal_of_prompts() {
            return Err(text);
        }
        self.record_prompt(&prompt);
        self.tell_date();
        prompt.attachments.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
        Ok(Event::Begin)
    }

    /// Waits for the next thing that concerns the turn.
    async fn next_event(
        &mut self,
        messages: &mut UnboundedReceiver<Message>,
        underway: &mut Underway,
    ) -> Event {
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(Message::Request(generation, event)) if generation == underway.generation => return event,
                    Some(Message::Other(event)) => return event,
                    Some(Message::Classified(call, said)) => self.classified(underway, &call, said),
                    Some(Message::Summary(generation, said)) if generation == underway.generation => {
                        self.summarised(said, underway);
                    }
                    Some(Message::Leave(wish, leave)) => self.leave_given(wish, leave, underway),
                    Some(Message::Folded(wish)) => self.folded(wish, underway),
                    Some(Message::Request(..) | Message::Summary(..)) | None => {}
                },
                command = self.commands.recv(), if !self.is_deaf => match command {
                    Some(command) => {
                        if let Some(event) = self.obey_during_turn(command, underway) {
                            return event;
                        }
                    }
                    None => {
                        self.is_deaf = true;
                        self.close();
                        self.deny_open_questions(underway);
                    }
                },
                update = self.checkpoints.next() => self.keep_update(update),
                () = pause_before_saving(self.recorder.has_unsaved()) => self.save_again(),
            }
        }
    }

    fn begin(&mut self) {
        self.follow_settings(ReloadPoint::Prompt);
        if let Some(branch) = loci_storage::head_branch(&self.env.cwd) {
            self.recorder.set_branch(branch);
        }
        if self.opening.is_none() {
            self.make_opening();
        }
        change(&self.state, |state| state.permission.denials.clear());
        let mode = self.state.get().permission.rulebook.mode;
        self.tell(EngineEvent::TurnStarted(TurnStart {
            session: self.identity.get().id().clone(),
            cwd: self.env.cwd.clone(),
            model: self.current_model(),
            mode,
            tools: self.toolbox.descriptors().map(|descriptor| descriptor.name.clone()).collect(),
            commands: self.slash_commands.get(),
            api_key_source: self.api_key_source.clone(),
            memory_dir: self.memory.as_ref().map(|memory| memory.dir().to_owned()),
        }));
    }

    /// Makes what opens the conversation; it stays the same until a compaction.
    fn make_opening(&mut self) {
        let date = self.env.clock.local_date().to_string();
        let mut shown = shown_instructions(&self.instructions);
        shown.extend(self.memory.iter().flat_map(|memory| memory.shown_indexes()));
        self.opening = Some(Opening::new(&user_context(&shown, &date)));
        self.told_date = date;
    }

    /// Ends a turn whose prompt the model would refuse: nothing is asked and nothing recorded.
    fn refuse_prompt(&mut self, text: String, underway: &mut Underway) {
        underway.tally.text.clone_from(&text);
        let failure = Failure::new(FailureKind::InvalidRequest, text);
        let end = TurnEnd { outcome: Outcome::ApiError(failure), round_trips: 0, stop_reason: None };
        self.end(end, underway);
    }

    fn record_prompt(&mut self, prompt: &Prompt) {
        let mode = self.state.get().permission.rulebook.mode;
        let entry = self.recorder.prompt(&prompt.content, prompt.id.clone(), mode.as_str());
        if let Some(entry) = entry {
            let head = entry.head();
            self.tell(EngineEvent::PromptRecorded {
                entry: head.uuid.clone().unwrap_or_else(|| "".into()),
                message: entry.fields().read("message").unwrap_or_default(),
                timestamp: head.timestamp.as_deref().unwrap_or_default().to_owned(),
            });
            if let Some(prompt) = &head.uuid {
                self.keep_prompt(prompt);
            }
        }
        self.tell_trouble();
    }

    fn turn_limits(&self) -> Limits {
        let main = self.current_model();
        let spare = self.model.fallbacks.iter().filter(|model| **model != main).cloned();
        let models = std::iter::once(main.clone()).chain(spare).collect();
        Limits {
            models,
            max_turns: self.limits.max_turns,
            max_budget_usd: self.limits.max_budget_usd,
            max_parallel: if self.limits.max_parallel == 0 { 10 } else { self.limits.max_parallel },
            retry: RetryRules { policy: self.limits.retry, allows_one_piece: self.limits.allows_one_piece },
        }
    }

    fn end(&mut self, end: TurnEnd, underway: &Underway) {
        self.keep_background();
        let has_answered = end.outcome == Outcome::Completed && end.round_trips > 0;
        self.recorder.settle();
        self.tell_trouble();
        let denials = self.state.get().permission.denials.clone();
        let identity = self.identity.get();
        let now = self.env.clock.monotonic();
        let report = underway.tally.report(end, denials, &identity, self.fullness(), now);
        self.tell(EngineEvent::TurnEnded(Box::new(report)));
        self.consider_notes(None);
        self.consider_summary(None);
        if has_answered {
            self.consider_memories();
        }
    }

    fn save_again(&mut self) {
        self.recorder.save_again();
        self.tell_trouble();
    }

    fn tell(&self, event: EngineEvent) {
        // Without a listener the session still runs to its end; the transcript has everything.
        drop(self.events.send(event));
    }

    fn tell_trouble(&mut self) {
        for trouble in self.recorder.take_trouble() {
            self.tell(EngineEvent::Trouble(trouble));
        }
    }

    fn perform_all(&mut self, effects: Vec<Effect>, underway: &mut Underway) -> Option<TurnEnd> {
        let mut end = None;
        for effect in effects {
            end = self.perform(effect, underway).or(end);
        }
        end
    }
}

/// Ends when it is time to try the disk again; never, when nothing waits for it.
async fn pause_before_saving(has_unsaved: bool) {
    match has_unsaved {
        true => tokio::time::sleep(SAVE_AGAIN).await,
        false => std::future::pending().await,
    }
}
