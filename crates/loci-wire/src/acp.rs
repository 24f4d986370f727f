//! The Agent Client Protocol on standard input and output: sessions for an editor, several at once in one process.
//!
//! One JSON-RPC message a line, and nothing else on standard output. The connection reads lines and hands each to whom it
//! concerns; every session is a task of its own ([`session`]). What must stay true:
//!
//! 1. Every request is answered once: with a result, or with an error that says why not. A notification never is.
//! 2. What cannot be read is answered where that is possible, and the next line is read.
//! 3. When the client goes away, every session stops what it does, and the process ends when their transcripts are saved.

mod auth;
mod capabilities;
mod config_options;
mod content;
mod editor;
mod history;
mod lines;
mod listing;
mod mcp_servers;
mod open;
mod peer;
mod permission;
mod questions;
mod rpc;
mod session;
mod stop_reason;
mod tool_call;
mod updates;

use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

use loci_app::RunOptions;
use loci_stdx::{Env, escape_for_terminal};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::capabilities::{ClientCapabilities, initialize_answer};
use self::lines::BadLine;
use self::open::{OpenContext, Opened, Wanted, no_session};
use self::peer::{Outgoing, Peer};
use self::rpc::{INVALID_REQUEST, METHOD_NOT_FOUND, Message, PARSE_ERROR, RpcError};
use self::session::{SessionTask, ToSession};
use crate::headless::{Exit, drain};
use crate::output::Output;
use crate::signals::{Signal, Signals};

/// How long sessions may take to end when the client is gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same when the process was asked to end.
const SHORT_PATIENCE: Duration = Duration::from_secs(3);

/// What an agent for editors is started with.
pub struct Acp {
    /// The ambient world.
    pub env: Env,
    /// What every session is asked to be; which session, where it works and its servers come from the client.
    pub options: RunOptions,
    /// The version clients are told.
    pub version: String,
    /// Whether commands run in terminals of the editor, where it has any.
    pub uses_client_terminals: bool,
}

impl Acp {
    /// Serves the client on standard input until it goes away. `stdout` gets the messages, `stderr` what the log should have.
    pub async fn run(self, stdout: impl Write + Send + 'static, stderr: &mut (dyn Write + Send)) -> Exit {
        let (peer, outgoing) = Peer::new();
        let (news_sender, news) = unbounded_channel();
        let connection = Connection {
            options: RunOptions {
                can_ask: true,
                is_long_lived: true,
                keeps_checkpoints: true,
                ..self.options
            },
            env: self.env,
            version: self.version,
            uses_client_terminals: self.uses_client_terminals,
            peer,
            client: None,
            sessions: HashMap::new(),
            endings: Vec::new(),
            n_opening: 0,
            is_over: false,
            news_sender,
        };
        let output = Output::new(stdout);
        let exit = connection
            .run(lines::read_stdin(), outgoing, news, &mut Writers { output: &output, stderr })
            .await;
        drain(output, exit).await
    }
}

/// Where things are written.
struct Writers<'a> {
    output: &'a Output,
    stderr: &'a mut (dyn Write + Send),
}

impl Writers<'_> {
    fn write(&mut self, line: Outgoing) {
        match line {
            Outgoing::Message(message) => self.output.write_line(&message),
            // Nobody is left to tell when stderr is gone.
            Outgoing::Log(text) => drop(writeln!(self.stderr, "{}", escape_for_terminal(&text))),
        }
    }
}

/// A session that runs.
struct SessionHandle {
    requests: UnboundedSender<ToSession>,
    task: JoinHandle<()>,
}

/// What was done beside the connection.
enum News {
    /// A session is open, or why not; with the request.
    Opened(Value, Result<Box<Opened>, RpcError>),
}

/// The connection to the client.
struct Connection {
    env: Env,
    options: RunOptions,
    version: String,
    uses_client_terminals: bool,
    peer: Peer,
    /// What the client can do, once it has said so.
    client: Option<ClientCapabilities>,
    sessions: HashMap<String, SessionHandle>,
    /// Sessions that were closed and may still be at their end.
    endings: Vec<JoinHandle<()>>,
    /// How many are being opened.
    n_opening: usize,
    is_over: bool,
    news_sender: UnboundedSender<News>,
}

impl Connection {
    async fn run(
        mut self,
        mut lines: UnboundedReceiver<Result<String, BadLine>>,
        mut outgoing: UnboundedReceiver<Outgoing>,
        mut news: UnboundedReceiver<News>,
        writers: &mut Writers<'_>,
    ) -> Exit {
        let mut signals = Signals::listen();
        let reader_gone = writers.output.closed();
        let exit = loop {
            tokio::select! {
                // What was said goes out before anything new is heard.
                biased;
                Some(line) = outgoing.recv() => writers.write(line),
                () = reader_gone.notified() => break Exit::BrokenPipe,
                signal = signals.next() => break match signal {
                    Signal::Interrupt => Exit::Success,
                    Signal::Terminate => Exit::Terminated,
                    Signal::HangUp => Exit::HungUp,
                },
                Some(news) = news.recv() => self.handle_news(news),
                line = lines.recv() => match line {
                    Some(line) => self.handle_line(line),
                    None => break Exit::Success,
                },
            }
        };
        tracing::debug!(target: "loci::control", "client gone: {exit:?}");
        self.is_over = true;
        self.peer.close();
        let patience = if exit == Exit::Success { PATIENCE } else { SHORT_PATIENCE };
        let ending = async {
            while self.n_opening > 0 {
                match news.recv().await {
                    Some(news) => self.handle_news(news),
                    None => break,
                }
            }
            self.close_all().await;
        };
        // A session that does not end has its transcript all the same.
        drop(tokio::time::timeout(patience, ending).await);
        while let Ok(line) = outgoing.try_recv() {
            writers.write(line);
        }
        exit
    }

    async fn close_all(&mut self) {
        for (_, handle) in std::mem::take(&mut self.sessions) {
            // Dropping the way to a session closes it.
            drop(handle.requests);
            self.endings.push(handle.task);
        }
        for ending in std::mem::take(&mut self.endings) {
            // A panic there was told by the hook of panics.
            drop(ending.await);
        }
    }

    fn handle_line(&mut self, line: Result<String, BadLine>) {
        let message = match line {
            Ok(line) => rpc::parse(&line),
            Err(bad) => {
                let error = RpcError::new(PARSE_ERROR, bad.to_string());
                return self.peer.answer(&Value::Null, Err(error));
            }
        };
        match message {
            Message::Request { id, method, params } => {
                tracing::debug!(target: "loci::control", method, "request {id}");
                self.handle_request(id, &method, params);
            }
            Message::Notification { method, params } => self.handle_notification(&method, &params),
            Message::Response { id, result } => {
                if !self.peer.respond(&id, result) {
                    tracing::debug!(target: "loci::control", "an answer to no open request: {id}");
                }
            }
            Message::Invalid(answer) => self.peer.write(answer),
            Message::Nothing => {}
        }
    }

    fn handle_request(&mut self, id: Value, method: &str, params: Value) {
        let client = match (self.client, method) {
            (_, "initialize") => return self.initialize(&id, &params),
            (Some(client), _) => client,
            (None, _) => {
                let error = RpcError::new(INVALID_REQUEST, "`initialize` comes first");
                return self.peer.answer(&id, Err(error));
            }
        };
        match method {
            "authenticate" => {
                let options = self.options.clone();
                self.answer_beside(id, move |env| auth::authenticate(env, &options, &params));
            }
            "logout" => self.answer_beside(id, auth::logout),
            "session/new" | "session/load" | "session/resume" => match Wanted::parse(method, &params) {
                Ok(wanted) => self.open(id, client, wanted, params),
                Err(error) => self.peer.answer(&id, Err(error)),
            },
            "session/list" => self.answer_beside(id, move |env| listing::list(env, &params)),
            "session/delete" => self.delete(id, &params),
            "session/close" => self.close(id, &params),
            "session/prompt" => match content::read_prompt(&params["prompt"]) {
                Ok(prompt) => {
                    let prompt = Box::new(prompt);
                    self.forward(&params, &id.clone(), ToSession::Prompt { id, prompt });
                }
                Err(error) => self.peer.answer(&id, Err(error)),
            },
            "session/set_mode" => match params["modeId"].as_str() {
                Some(mode) => {
                    let mode = mode.to_owned();
                    self.forward(&params, &id.clone(), ToSession::SetMode { id, mode });
                }
                None => self.peer.answer(&id, Err(RpcError::params("`modeId` is missing"))),
            },
            "session/set_config_option" => match (params["configId"].as_str(), params["value"].as_str()) {
                (Some(option), Some(value)) => {
                    let (option, value) = (option.to_owned(), value.to_owned());
                    self.forward(&params, &id.clone(), ToSession::SetOption { id, option, value });
                }
                _ => {
                    self.peer
                        .answer(&id, Err(RpcError::params("`configId` and `value`, a text, are needed")));
                }
            },
            _ => {
                let error = RpcError::new(METHOD_NOT_FOUND, format!("There is no method `{method}`"));
                self.peer.answer(&id, Err(error));
            }
        }
    }

    fn handle_notification(&mut self, method: &str, params: &Value) {
        match method {
            "session/cancel" => {
                let session = params["sessionId"].as_str().and_then(|id| self.sessions.get(id));
                if let Some(session) = session {
                    // One that has just ended has nothing left to cancel.
                    drop(session.requests.send(ToSession::Cancel));
                }
            }
            "$/cancel_request" => {
                for session in self.sessions.values() {
                    drop(session.requests.send(ToSession::CancelRequest(params["requestId"].clone())));
                }
            }
            other => tracing::debug!(target: "loci::control", "a notification that is not known: {other}"),
        }
    }

    fn initialize(&mut self, id: &Value, params: &Value) {
        if !params["protocolVersion"].is_u64() {
            let error = RpcError::params("`protocolVersion` must be a whole number");
            return self.peer.answer(id, Err(error));
        }
        let client = ClientCapabilities::parse(params);
        self.client = Some(client);
        self.peer.answer(id, Ok(initialize_answer(client, &self.version)));
    }

    /// Hands something to the session that it names.
    fn forward(&self, params: &Value, id: &Value, request: ToSession) {
        let name = params["sessionId"].as_str().unwrap_or_default();
        let sent = self.sessions.get(name).map(|session| session.requests.send(request));
        if !matches!(sent, Some(Ok(()))) {
            self.peer.answer(id, Err(no_session(name)));
        }
    }

    /// Answers a request where blocking is fine.
    fn answer_beside(&self, id: Value, work: impl FnOnce(&Env) -> Result<Value, RpcError> + Send + 'static) {
        let (env, peer) = (self.env.clone(), self.peer.clone());
        tokio::task::spawn_blocking(move || peer.answer(&id, work(&env)));
    }

    /// Opens a session; one that is open already ends first.
    fn open(&mut self, id: Value, client: ClientCapabilities, wanted: Wanted, params: Value) {
        let context = OpenContext {
            env: self.env.clone(),
            options: self.options.clone(),
            peer: self.peer.clone(),
            client,
            uses_client_terminals: self.uses_client_terminals,
        };
        let earlier = wanted.id().and_then(|id| self.end_session(id));
        let news = self.news_sender.clone();
        self.n_opening += 1;
        tokio::spawn(async move {
            if let Some(earlier) = earlier {
                drop(earlier.await);
            }
            let opened = tokio::task::spawn_blocking(move || context.open(&wanted, &params)).await;
            let opened =
                opened.unwrap_or_else(|_| Err(RpcError::internal("The session could not be opened")));
            // Without a connection there is nobody to tell.
            drop(news.send(News::Opened(id, opened.map(Box::new))));
        });
    }

    fn handle_news(&mut self, news: News) {
        let News::Opened(request, opened) = news;
        self.n_opening -= 1;
        match (opened, self.client) {
            (Ok(opened), Some(client)) if !self.is_over => {
                let (sender, requests) = unbounded_channel();
                let name = opened.id.clone();
                let task = SessionTask::new(self.peer.clone(), client, *opened, requests, request);
                let task = tokio::spawn(task.run());
                if let Some(earlier) = self.sessions.insert(name, SessionHandle { requests: sender, task }) {
                    self.endings.push(earlier.task);
                }
            }
            (Ok(_), _) => self.peer.answer(&request, Err(RpcError::internal("The client is gone"))),
            (Err(error), _) => self.peer.answer(&request, Err(error)),
        }
    }

    /// Ends a session that is open; resolves when it has ended.
    fn end_session(&mut self, name: &str) -> Option<oneshot::Receiver<()>> {
        let SessionHandle { requests, task } = self.sessions.remove(name)?;
        let (done, ended) = oneshot::channel();
        // One that has ended already drops what it is told.
        drop(requests.send(ToSession::Close(done)));
        self.endings.retain(|ending| !ending.is_finished());
        self.endings.push(task);
        Some(ended)
    }

    fn close(&mut self, id: Value, params: &Value) {
        let name = params["sessionId"].as_str().unwrap_or_default();
        let Some(ended) = self.end_session(name) else {
            return self.peer.answer(&id, Err(no_session(name)));
        };
        let peer = self.peer.clone();
        tokio::spawn(async move {
            drop(ended.await);
            peer.answer(&id, Ok(json!({})));
        });
    }

    fn delete(&mut self, id: Value, params: &Value) {
        let Some(name) = params["sessionId"].as_str().map(str::to_owned) else {
            return self.peer.answer(&id, Err(RpcError::params("`sessionId` is missing")));
        };
        let ended = self.end_session(&name);
        let (env, peer) = (self.env.clone(), self.peer.clone());
        tokio::spawn(async move {
            if let Some(ended) = ended {
                drop(ended.await);
            }
            let deleted = tokio::task::spawn_blocking(move || listing::delete(&env, &name)).await;
            peer.answer(
                &id,
                deleted.unwrap_or_else(|_| Err(RpcError::internal("The session was not deleted"))),
            );
        });
    }
}
