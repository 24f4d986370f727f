//! One session of the client: prompts in, news out, questions asked, options chosen.
//!
//! A task of its own, so that several go on side by side. It asks the engine one prompt at a time: what the client asks
//! meanwhile waits here, where it can be called off. What must stay true:
//!
//! 1. Every prompt is answered once, and nothing of its turn is told after that.
//! 2. A question that is taken back is called off at the client; a late answer changes nothing.
//! 3. The end of the session waits for its transcript.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use loci_app::commands::SessionCommands;
use loci_app::sessions::retention;
use loci_app::settings::editor::SettingsInputs;
use loci_app::start::StartedSession;
use loci_engine::{
    ClientMessage, ClientRequest, ClientRequestError, Command, EngineEvent, Prompt, Question, RunnerEvent,
    SessionRunner, SessionSnapshot,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::capabilities::ClientCapabilities;
use super::config_options::ConfigOptions;
use super::history;
use super::open::Opened;
use super::peer::Peer;
use super::permission::Reply;
use super::questions::Asker;
use super::rpc::RpcError;
use super::stop_reason::PromptEnd;
use super::updates::{Updates, available_commands, message_chunk, notice};

/// What the client asks of a session.
pub(super) enum ToSession {
    /// A prompt, to be answered when its turn is over.
    Prompt {
        /// The request.
        id: Value,
        /// What is asked.
        prompt: Box<Prompt>,
    },
    /// Everything that was asked is called off.
    Cancel,
    /// One prompt is, by its request; whatever else the id may be is none of the session's.
    CancelRequest(Value),
    /// Another permission mode.
    SetMode {
        /// The request.
        id: Value,
        /// Which.
        mode: String,
    },
    /// Another value of an option.
    SetOption {
        /// The request.
        id: Value,
        /// Which option.
        option: String,
        /// Which value.
        value: String,
    },
    /// The session ends; told when it has.
    Close(oneshot::Sender<()>),
}

/// What the session's next snapshot is for.
enum SnapshotUse {
    /// The answer to the request that opened it.
    Open(Value),
    /// The answer to the prompt at hand.
    EndPrompt(PromptEnd),
    /// The answer to a request that changed an option; the whole list, where it asks for that.
    Chosen { id: Value, wants_list: bool },
    /// To see what has changed.
    Refresh,
}

/// What a person said, with the engine's id of the question.
type QuestionReply = (String, Reply);

/// A prompt that the engine works on.
struct CurrentPrompt {
    id: Value,
    is_cancelled: bool,
}

/// A session that runs.
pub(super) struct SessionTask {
    peer: Peer,
    id: String,
    client: ClientCapabilities,
    runner: SessionRunner,
    started: Remains,
    requests: UnboundedReceiver<ToSession>,
    messages: UnboundedReceiver<ClientMessage>,
    /// Where answers to questions come from, and where they go in.
    replies: UnboundedReceiver<QuestionReply>,
    reply_sender: UnboundedSender<QuestionReply>,
    updates: Updates,
    asker: Asker,
    /// Questions that were put to the client, by the engine's id; with the call that each is about.
    questions: HashMap<String, (AbortHandle, String)>,
    /// What servers want to know of the client, by the engine's id.
    elicitations: HashMap<String, AbortHandle>,
    waiting: VecDeque<(Value, Box<Prompt>)>,
    current: Option<CurrentPrompt>,
    snapshots: HashMap<String, SnapshotUse>,
    n_snapshots: u64,
    options: ConfigOptions,
    /// The model by the name that it was last chosen by.
    chosen_model: Option<String>,
    told_commands: Value,
    told_title: Option<String>,
    /// What people should know before the first answer, where there is no other place to say it.
    notes: Vec<String>,
    is_new: bool,
    is_closing: bool,
    closed: Vec<oneshot::Sender<()>>,
}

/// What is left of the start while the session runs.
struct Remains {
    mcp: Option<loci_engine::McpConfig>,
    commands: SessionCommands,
    may_bypass: bool,
    cleanup_period_days: Option<u64>,
}

impl SessionTask {
    /// Lets a session run; `request` is answered once it says how it stands.
    pub(super) fn new(
        peer: Peer,
        client: ClientCapabilities,
        opened: Opened,
        requests: UnboundedReceiver<ToSession>,
        request: Value,
    ) -> Self {
        let Opened { id, started, messages, history, is_new } = opened;
        let StartedSession {
            session,
            renew,
            mcp,
            warnings,
            may_bypass,
            env,
            home,
            cleanup_period_days,
            options,
            ..
        } = started;
        if let Some(mcp) = &mcp {
            mcp.servers.start();
        }
        let cwd = env.cwd.clone();
        let mut updates = Updates::new(client, cwd.clone());
        for update in history::replay(&history, &mut updates) {
            peer.update(&id, &update);
        }
        let (reply_sender, replies) = unbounded_channel();
        let mut task = Self {
            runner: SessionRunner::start(session, Some(renew)),
            started: Remains {
                mcp,
                commands: SessionCommands {
                    settings: SettingsInputs::from_options(&env, &options),
                    env,
                    home,
                    build: options.build.unwrap_or_else(|| "unknown".to_owned()),
                    plugin_reload: None,
                },
                may_bypass,
                cleanup_period_days,
            },
            asker: Asker { peer: peer.clone(), session: id.clone(), client, cwd },
            peer,
            id,
            client,
            requests,
            messages,
            replies,
            reply_sender,
            updates,
            questions: HashMap::new(),
            elicitations: HashMap::new(),
            waiting: VecDeque::new(),
            current: None,
            snapshots: HashMap::new(),
            n_snapshots: 0,
            options: ConfigOptions::default(),
            chosen_model: options.model.model,
            told_commands: Value::Null,
            told_title: None,
            notes: Vec::new(),
            is_new,
            is_closing: false,
            closed: Vec::new(),
        };
        task.ask_snapshot(SnapshotUse::Open(request));
        for warning in warnings {
            task.warn(&warning);
        }
        task
    }

    /// Runs until the session is over.
    pub(super) async fn run(mut self) {
        loop {
            tokio::select! {
                event = self.runner.next_event() => match event {
                    Some(RunnerEvent::Session(event)) => self.handle_event(&event),
                    Some(RunnerEvent::Renewed(_)) => self.ask_snapshot(SnapshotUse::Refresh),
                    Some(RunnerEvent::RenewalFailed(problem)) => {
                        self.warn(&problem);
                        self.close();
                    }
                    None => break,
                },
                request = self.requests.recv(), if !self.is_closing => match request {
                    Some(request) => self.handle_request(request),
                    None => self.close(),
                },
                Some((question, reply)) = self.replies.recv() => self.handle_reply(&question, reply),
                Some(message) = self.messages.recv() => self.handle_message(message),
            }
        }
        self.finish().await;
    }

    async fn finish(mut self) {
        let end = if self.is_closing { PromptEnd::cancelled() } else { PromptEnd::session_ended() };
        self.answer_all(&end);
        for (question, _) in self.questions.values() {
            question.abort();
        }
        self.elicitations.values().for_each(AbortHandle::abort);
        let (troubles, _) = self.runner.finish().await;
        for trouble in troubles {
            self.peer.log(&trouble);
        }
        if let Some(mcp) = &self.started.mcp {
            mcp.servers.shutdown().await;
        }
        let Remains { commands, cleanup_period_days, .. } = self.started;
        let sweep = move || retention::sweep(&commands.env, &commands.home, cleanup_period_days);
        // Old sessions that stay are put away another time.
        drop(tokio::task::spawn_blocking(sweep).await);
        for closed in self.closed {
            // Nobody may wait for it any more.
            closed.send(()).ok();
        }
    }

    fn handle_request(&mut self, request: ToSession) {
        match request {
            ToSession::Prompt { id, prompt } => {
                self.waiting.push_back((id, prompt));
                self.take_prompt();
            }
            ToSession::Cancel => self.cancel(),
            ToSession::CancelRequest(id) => self.cancel_request(&id),
            ToSession::SetMode { id, mode } => self.choose(id, false, |options| options.choose_mode(&mode)),
            ToSession::SetOption { id, option, value } => {
                if option == "model" {
                    self.chosen_model = Some(value.clone());
                }
                self.choose(id, true, |options| options.choose(&option, &value));
            }
            ToSession::Close(done) => {
                self.closed.push(done);
                self.close();
            }
        }
    }

    /// Asks the engine the next prompt, if it has none.
    fn take_prompt(&mut self) {
        if self.current.is_some() {
            return;
        }
        let Some((id, prompt)) = self.waiting.pop_front() else { return };
        for note in std::mem::take(&mut self.notes) {
            self.tell(&message_chunk(&format!("{note}\n\n"), None));
        }
        self.current = Some(CurrentPrompt { id, is_cancelled: false });
        self.runner.send(Command::Prompt(*prompt));
    }

    fn cancel(&mut self) {
        for (id, _) in std::mem::take(&mut self.waiting) {
            self.answer_prompt(&id, PromptEnd::cancelled());
        }
        if let Some(current) = &mut self.current {
            current.is_cancelled = true;
            self.runner.send(Command::Interrupt);
        }
    }

    fn cancel_request(&mut self, id: &Value) {
        if self.current.as_ref().is_some_and(|current| current.id == *id) {
            let waiting = std::mem::take(&mut self.waiting);
            self.cancel();
            self.waiting = waiting;
        } else if let Some(at) = self.waiting.iter().position(|(waiting, _)| waiting == id) {
            self.waiting.remove(at);
            self.answer_prompt(id, PromptEnd::cancelled());
        }
    }

    fn close(&mut self) {
        if !self.is_closing {
            self.is_closing = true;
            self.cancel();
            self.runner.send(Command::Quit);
        }
    }

    fn choose(
        &mut self,
        id: Value,
        wants_list: bool,
        command: impl Fn(&ConfigOptions) -> Result<Command, RpcError>,
    ) {
        match command(&self.options) {
            Ok(command) => {
                self.runner.send(command);
                self.ask_snapshot(SnapshotUse::Chosen { id, wants_list });
            }
            Err(error) => self.peer.answer(&id, Err(error)),
        }
    }

    fn handle_event(&mut self, event: &EngineEvent) {
        // Questions and warnings of an agent concern whoever is there, like any other.
        if let EngineEvent::Agent { event: inner, .. } = event
            && matches!(
                **inner,
                EngineEvent::QuestionAsked(_)
                    | EngineEvent::QuestionWithdrawn { .. }
                    | EngineEvent::Warning(_)
            )
        {
            return self.handle_event(inner);
        }
        for update in self.updates.of(event) {
            self.tell(&update);
        }
        match event {
            EngineEvent::Warning(text) => self.warn(text),
            EngineEvent::QuestionAsked(question) => self.put_question(question.clone()),
            EngineEvent::QuestionWithdrawn { question } => {
                if let Some((asking, _)) = self.questions.remove(question) {
                    asking.abort();
                }
            }
            EngineEvent::Snapshot { request, snapshot } => self.handle_snapshot(request, snapshot),
            EngineEvent::TurnStarted(_) | EngineEvent::CommandsChanged(_) => self.tell_commands(),
            EngineEvent::TurnEnded(report) if report.origin.is_none() && self.current.is_some() => {
                self.ask_snapshot(SnapshotUse::EndPrompt(PromptEnd::of(report)));
            }
            EngineEvent::TurnEnded(_)
            | EngineEvent::ModeChanged(_)
            | EngineEvent::ModelChanged(_)
            | EngineEvent::Compacted { .. } => self.ask_snapshot(SnapshotUse::Refresh),
            EngineEvent::Retry { attempt, max_retries, failure, .. } => {
                self.note(&format!("{}: attempt {attempt} of {max_retries} follows", failure.message));
            }
            EngineEvent::Fallback { from, to, .. } => {
                self.note(&format!("`{from}` failed: `{to}` takes over"));
            }
            EngineEvent::ElicitationCompleted { id, .. } if self.client.opens_urls => {
                self.peer.notify("elicitation/complete", &json!({"elicitationId": id}));
            }
            EngineEvent::ResultsCleared { n_results, .. } => {
                let results = if *n_results == 1 { "result" } else { "results" };
                self.note(&format!("To make room, {n_results} old {results} of calls are not sent any more"));
            }
            _ => {}
        }
    }

    /// Puts a question to the client; the answer comes back as a reply.
    fn put_question(&mut self, question: Question) {
        let (asker, replies) = (self.asker.clone(), self.reply_sender.clone());
        let (id, call) = (question.id.clone(), question.call.to_string());
        let asking = tokio::spawn(async move {
            let reply = asker.ask(&question).await;
            // A session that has ended needs no answer.
            drop(replies.send((question.id, reply)));
        });
        self.questions.insert(id, (asking.abort_handle(), call));
    }

    fn handle_reply(&mut self, question: &str, reply: Reply) {
        let Some((_, call)) = self.questions.remove(question) else { return };
        if let (loci_engine::Answer::Allow { .. }, Some(update)) = (&reply.answer, self.updates.begun(&call))
        {
            self.tell(&update);
        }
        if let Some(command) = reply.command {
            self.runner.send(command);
        }
        self.runner.send(Command::Answer { question: question.to_owned(), answer: reply.answer });
    }

    /// Takes what the process asks of the client: what servers want to know; nothing else is asked here.
    fn handle_message(&mut self, message: ClientMessage) {
        match message {
            ClientMessage::Request(ClientRequest { id, subtype, payload, waiter })
                if subtype == "elicitation" =>
            {
                let asker = self.asker.clone();
                let asking = tokio::spawn(async move {
                    let answer = asker.elicit(&payload).await;
                    // Whoever has stopped waiting needs no answer.
                    drop(waiter.send(Ok(answer)));
                });
                self.elicitations.retain(|_, asking| !asking.is_finished());
                self.elicitations.insert(id, asking.abort_handle());
            }
            ClientMessage::Request(ClientRequest { subtype, waiter, .. }) => {
                let why = format!("editors have no `{subtype}`");
                drop(waiter.send(Err(ClientRequestError::Refused(why))));
            }
            ClientMessage::Withdrawn(id) => {
                if let Some(asking) = self.elicitations.remove(&id) {
                    asking.abort();
                }
            }
        }
    }

    fn ask_snapshot(&mut self, wanted: SnapshotUse) {
        self.n_snapshots += 1;
        let request = self.n_snapshots.to_string();
        self.snapshots.insert(request.clone(), wanted);
        self.runner.send(Command::Snapshot { request });
    }

    fn handle_snapshot(&mut self, request: &str, snapshot: &Arc<SessionSnapshot>) {
        let Some(wanted) = self.snapshots.remove(request) else { return };
        let Remains { commands, may_bypass, .. } = &self.started;
        let options = ConfigOptions::new(commands, snapshot, *may_bypass, self.chosen_model.as_deref());
        let has_changed = std::mem::replace(&mut self.options, options) != self.options;
        match wanted {
            SnapshotUse::Open(id) => self.answer_open(&id),
            SnapshotUse::Chosen { id, wants_list } => {
                let answer =
                    if wants_list { json!({"configOptions": self.options.to_value()}) } else { json!({}) };
                self.peer.answer(&id, Ok(answer));
            }
            SnapshotUse::EndPrompt(end) => {
                self.tell_options(has_changed);
                self.tell_info(snapshot);
                self.end_prompt(end);
            }
            SnapshotUse::Refresh => {
                self.tell_options(has_changed);
                self.tell_info(snapshot);
            }
        }
    }

    fn answer_open(&mut self, id: &Value) {
        let mut answer = json!({"modes": self.options.modes(), "configOptions": self.options.to_value()});
        if self.is_new {
            answer["sessionId"] = json!(self.id);
        }
        self.peer.answer(id, Ok(answer));
        self.tell_commands();
        if self.client.has_notices {
            for note in std::mem::take(&mut self.notes) {
                self.tell(&notice("warning", &note));
            }
        }
    }

    fn end_prompt(&mut self, end: PromptEnd) {
        let Some(current) = self.current.take() else { return };
        let end = if current.is_cancelled { PromptEnd::cancelled() } else { end };
        self.answer_prompt(&current.id, end);
        self.take_prompt();
    }

    fn answer_prompt(&self, id: &Value, end: PromptEnd) {
        if let Some(note) = &end.note {
            self.tell(&message_chunk(note, None));
        }
        self.peer.answer(id, end.answer);
    }

    /// Answers whatever waits for the session.
    fn answer_all(&mut self, end: &PromptEnd) {
        let current = self.current.take().map(|current| current.id);
        let waiting = std::mem::take(&mut self.waiting).into_iter().map(|(id, _)| id);
        for id in current.into_iter().chain(waiting) {
            self.answer_prompt(&id, end.clone());
        }
        for wanted in std::mem::take(&mut self.snapshots).into_values() {
            match wanted {
                SnapshotUse::Open(id) | SnapshotUse::Chosen { id, .. } => {
                    self.peer.answer(&id, Err(RpcError::internal("The session has ended")));
                }
                SnapshotUse::EndPrompt(_) | SnapshotUse::Refresh => {}
            }
        }
    }

    fn tell_commands(&mut self) {
        let commands = available_commands(&self.runner.slash_commands().get());
        if self.told_commands != commands {
            self.tell(&commands);
            self.told_commands = commands;
        }
    }

    fn tell_options(&self, has_changed: bool) {
        if has_changed {
            let options = self.options.to_value();
            self.tell(&json!({"sessionUpdate": "config_option_update", "configOptions": options}));
        }
    }

    fn tell_info(&mut self, snapshot: &SessionSnapshot) {
        let now = loci_stdx::rfc3339_millis(self.started.commands.env.clock.now());
        let mut update = json!({"sessionUpdate": "session_info_update", "updatedAt": now});
        if snapshot.title != self.told_title {
            self.told_title.clone_from(&snapshot.title);
            update["title"] = json!(snapshot.title);
        }
        self.tell(&update);
    }

    /// Tells people something in passing, where the client has a place for it.
    fn note(&self, text: &str) {
        if self.client.has_notices {
            self.tell(&notice("info", text));
        }
    }

    /// Tells people what they should know: as a notice, or with the next answer where the client has no place for those.
    fn warn(&mut self, text: &str) {
        self.peer.log(text);
        let is_open = !self.snapshots.values().any(|wanted| matches!(wanted, SnapshotUse::Open(_)));
        match (self.client.has_notices && is_open, self.current.is_some()) {
            (true, _) => self.tell(&notice("warning", text)),
            (false, true) => self.tell(&message_chunk(&format!("\n\n{text}\n\n"), None)),
            (false, false) => self.notes.push(text.to_owned()),
        }
    }

    fn tell(&self, update: &Value) {
        self.peer.update(&self.id, update);
    }
}
