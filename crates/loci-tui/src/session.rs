//! The session beside the thread that draws: started on a thread of its own, run by a runtime there.
//!
//! Both ways are queues. What the person asks for goes in as [`ToSession`] and is taken in its order, also what was asked
//! for before there was a session; what happens comes out as [`News`] in the mailbox of the thread that draws.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use loci_app::sessions::command::CommandContext;
use loci_app::sessions::picker::{PickerScope, recent_choices};
use loci_app::sessions::retention;
use loci_app::start::renewal::{OpenedSession, SwitchError, SwitchTarget, open_session};
use loci_app::start::{SessionStart, StartAnswer, StartStep, StartedSession};
use loci_core::agent::AgentRegistry;
use loci_core::tool::AskedChange;
use loci_core::user_question::answer_timeout;
use loci_engine::{
    ClientAnswer, ClientMessage, ClientRequest, ClientRequestError, Command, McpConfig, NewSession,
    RenewalState, RunnerEvent, SessionRunner, SessionSwitch, complete_prompt,
};
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::app::{
    News, PanelRequest, SecretText, SessionFacts, SwitchedFacts, history_blocks, short_path, tail_blocks,
};
use crate::block::FileDiff;
use crate::input::{FileAnswer, Mention, SESSION_MENTION, TokenKind};
use crate::interface_settings::{InterfaceSettings, parse_scroll_speed};
use crate::mailbox::Mailbox;
use crate::notebook_preview::{NOTEBOOK_EDIT, preview_cell};
use crate::panel;
use crate::stream_pace::StreamPace;

/// How long the end of a session may take that was told to end at once.
const LAST_PATIENCE: Duration = Duration::from_millis(900);
/// When after the start old sessions are put away.
const SWEEP_PAUSE: Duration = Duration::from_secs(3);
/// How many earlier sessions can be chosen behind `@session`.
const MOST_SESSION_MENTIONS: usize = 100;
/// Files beyond this are not read for a preview.
const MOST_PREVIEW_BYTES: u64 = 400_000;

/// What is asked of the thread that runs the session.
#[derive(Debug)]
pub(crate) enum ToSession {
    /// Something for the session.
    Command(Command),
    /// The start goes on.
    Answer(StartAnswer),
    /// A key is kept, and the start goes on.
    StoreKey(SecretText),
    /// A request to whoever sits here is answered.
    AnswerClient { request: String, answer: Value },
    /// What would this call change?
    Preview { question: String, tool: String, input: Value },
    /// Something that a panel or a command wants to know.
    AskPanel(PanelRequest),
    /// Another session is to take the place of the one at hand.
    Switch(SwitchTarget),
    /// What could the argument be that is being typed behind a command?
    CompleteArgument { command: String, written: String },
    /// What else than files can be mentioned?
    ListMentions,
    /// The session is to end at once, whatever it is doing.
    End,
}

/// The thread that runs the session.
pub(crate) struct SessionThread {
    sender: UnboundedSender<ToSession>,
    pace: Arc<StreamPace>,
    thread: JoinHandle<()>,
}

impl SessionThread {
    /// Starts a session beside the caller.
    pub(crate) fn spawn(start: SessionStart, mailbox: Mailbox<News>) -> std::io::Result<Self> {
        let (sender, receiver) = unbounded_channel();
        let pace = Arc::<StreamPace>::default();
        let its_pace = Arc::clone(&pace);
        let thread = std::thread::Builder::new()
            .name("loci-session".to_owned())
            .spawn(move || run(start, receiver, &mailbox, &its_pace))?;
        Ok(Self { sender, pace, thread })
    }

    /// Asks for something; a session that is over needs nothing more.
    pub(crate) fn send(&self, message: ToSession) {
        drop(self.sender.send(message));
        self.pace.hurry();
    }

    /// Waits for the end of a thread that has told of it.
    pub(crate) fn join(self) {
        // A panic there was told by the hook of panics.
        drop(self.thread.join());
    }
}

fn run(
    mut start: SessionStart,
    mut receiver: UnboundedReceiver<ToSession>,
    mailbox: &Mailbox<News>,
    pace: &Arc<StreamPace>,
) {
    let mut waiting = VecDeque::new();
    let client = ClientRequestTable { requests: start.connect_client(), waiters: HashMap::new() };
    // On a thread of its own that ends: what a start needs of a stack is given back, and the thread of the runtime goes on with
    // the memory that it allocated from.
    let found = std::thread::scope(|scope| {
        let find = || find_session(start, &mut receiver, &mut waiting, mailbox);
        let thread = std::thread::Builder::new().name("loci-start".to_owned()).spawn_scoped(scope, find);
        match thread {
            // A panic there was told by the hook of panics.
            Ok(thread) => thread.join().ok().flatten(),
            Err(error) => {
                mailbox.put(News::StartFailed(format!("No thread can be started: {error}")));
                None
            }
        }
    });
    let Some(started) = found else {
        return mailbox.put(News::Ended { troubles: Vec::new(), has_failed: false, cost_usd: 0.0 });
    };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let (news, resting) = (mailbox.clone(), Arc::clone(pace));
    // All that there was to do is done: what came of it is shown, and packets may gather.
    builder.worker_threads(1).enable_all().on_thread_park(move || {
        news.wake();
        resting.rest();
    });
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => return mailbox.put(News::StartFailed(format!("The runtime cannot start: {error}"))),
    };
    // On the worker, beside the session: what it tells comes here without waking another thread.
    let driven = runtime.spawn(drive(started, receiver, waiting, client, mailbox.clone(), Arc::clone(pace)));
    if let Err(error) = runtime.block_on(driven) {
        mailbox.put(News::Ended {
            troubles: vec![format!("The session broke off: {error}")],
            has_failed: true,
            cost_usd: 0.0,
        });
    }
    runtime.shutdown_background();
}

/// Goes through the start until there is a session; none when there will be none. What else is asked for meanwhile waits.
fn find_session(
    mut start: SessionStart,
    receiver: &mut UnboundedReceiver<ToSession>,
    waiting: &mut VecDeque<Command>,
    mailbox: &Mailbox<News>,
) -> Option<StartedSession> {
    let (tail_mailbox, cwd) = (mailbox.clone(), start.world().0.cwd.clone());
    start.show_tail(Box::new(move |tail| {
        let last = tail.entries.iter().filter_map(|entry| entry.head().uuid.clone()).collect();
        let blocks = tail_blocks(&tail, &cwd);
        tail_mailbox.put_urgent(News::Tail { blocks, entries: last });
    }));
    loop {
        match start.proceed() {
            StartStep::Ready(started) => return Some(*started),
            StartStep::Ask(question) => mailbox.put(News::Asked(question)),
            StartStep::View(entries) => mailbox.put(News::Viewing(history_blocks(&entries, Path::new("")))),
            StartStep::Failed(error) => mailbox.put(News::StartFailed(error.to_string())),
        }
        loop {
            match receiver.blocking_recv()? {
                ToSession::Command(command) => waiting.push_back(command),
                ToSession::Answer(answer) => {
                    start.answer(answer);
                    break;
                }
                ToSession::StoreKey(key) => {
                    if let Err(error) = start.store_key(key.reveal()) {
                        mailbox.put(News::StartFailed(error.to_string()));
                        continue;
                    }
                    break;
                }
                ToSession::Preview { .. }
                | ToSession::ListMentions
                | ToSession::CompleteArgument { .. }
                | ToSession::AnswerClient { .. } => {}
                ToSession::Switch(_) => {
                    mailbox.put(News::SwitchFailed("There is no session yet".to_owned()));
                }
                ToSession::AskPanel(request) => {
                    let (env, home) = start.world();
                    mailbox.put(News::PanelData(panel::answer_at_start(request, env, &home)));
                }
                ToSession::End => return None,
            }
        }
    }
}

/// Returns what settings, and variables that win over them, say about the interface.
fn interface_settings(env: &Env, settings: &Value) -> InterfaceSettings {
    InterfaceSettings {
        // Variables of settings are marks in what is handed on; here they are in force.
        scroll_speed: env.vars.non_empty("CLAUDE_CODE_SCROLL_SPEED").and_then(parse_scroll_speed),
        ..InterfaceSettings::from_value(settings)
    }
}

/// Runs a session to its end.
async fn drive(
    started: StartedSession,
    mut receiver: UnboundedReceiver<ToSession>,
    waiting: VecDeque<Command>,
    mut client: ClientRequestTable,
    mailbox: Mailbox<News>,
    pace: Arc<StreamPace>,
) {
    let mailbox = &mailbox;
    let cwd = started.env.cwd.clone();
    if let Some(mcp) = &started.mcp {
        mcp.servers.start();
    }
    let mut ctx = CommandContext::new(&started);
    let title = started.session.session.title();
    let mut runner = SessionRunner::start(started.session, Some(started.renew));
    let identity = runner.identity().get();
    mailbox.put(News::Started(Box::new(SessionFacts {
        id: identity.id().to_string(),
        title,
        model: started.models.first().cloned().unwrap_or_default(),
        mode: started.mode,
        may_bypass: started.may_bypass,
        warnings: started.warnings,
        is_persistent: identity.is_persistent(),
        commands: runner.slash_commands().get(),
        idle_notice: started.idle_notice,
        interface: interface_settings(&started.env, &started.settings),
        vars: Some(started.env.vars.clone()),
        answer_timeout: answer_timeout(None, started.env.vars.non_empty("CLAUDE_AFK_TIMEOUT_MS")),
        answer_countdown: started
            .env
            .vars
            .non_empty("CLAUDE_AFK_COUNTDOWN_MS")
            .and_then(|text| text.trim().parse().ok())
            .map(Duration::from_millis),
        initial_prompt: started.initial_prompt,
        themes: started.themes,
        helper_sandboxes: started.helper_sandboxes,
    })));
    waiting.into_iter().for_each(|command| runner.send(command));
    tokio::spawn(sweep_later(ctx.env.clone(), ctx.home.clone(), started.cleanup_period_days));
    let mut is_ending = false;
    let (opening, mut opened) = unbounded_channel();
    loop {
        tokio::select! {
            Some(session) = opened.recv() => runner.switch(session),
            Some(message) = client.requests.recv() => client.take(message, mailbox),
            event = runner.next_event() => match event {
                Some(event) => {
                    if matches!(event, RunnerEvent::Renewed(_)) {
                        ctx.follow(&runner);
                    }
                    match pace.note(&event) {
                        true => mailbox.put_quietly(News::Engine(Box::new(event))),
                        false => mailbox.put(News::Engine(Box::new(event))),
                    }
                }
                None => break,
            },
            message = receiver.recv() => match message {
                Some(ToSession::Command(command)) => runner.send(command),
                Some(ToSession::AnswerClient { request, answer }) => client.answer(&request, answer),
                Some(ToSession::Preview { question, tool, input }) => {
                    let (mailbox, cwd) = (mailbox.clone(), cwd.clone());
                    tokio::task::spawn_blocking(move || {
                        if let Some(diff) = preview(&tool, &input, &cwd) {
                            mailbox.put(News::Preview { question, diff });
                        }
                    });
                }
                Some(ToSession::AskPanel(request)) => {
                    let (mailbox, ctx) = (mailbox.clone(), ctx.clone());
                    tokio::task::spawn_blocking(move || {
                        mailbox.put(News::PanelData(panel::answer(request, &ctx)));
                    });
                }
                Some(ToSession::Switch(target)) => begin_switch(target, &ctx, &mut runner, &opening, mailbox),
                Some(ToSession::CompleteArgument { command, written }) => {
                    complete_argument(started.mcp.clone(), command, written, mailbox.clone());
                }
                Some(ToSession::ListMentions) => {
                    let mut found = mentions(&runner.agents().get(), started.mcp.as_ref());
                    let (mailbox, ctx) = (mailbox.clone(), ctx.clone());
                    tokio::task::spawn_blocking(move || {
                        found.extend(session_mentions(&ctx));
                        mailbox.put(News::Mentions(found));
                    });
                }
                Some(ToSession::Answer(_) | ToSession::StoreKey(_)) => {}
                Some(ToSession::End) | None => {
                    // Said twice it does not wait for what runs.
                    runner.send(Command::Quit);
                    runner.send(Command::Quit);
                    is_ending = true;
                    break;
                }
            },
        }
    }
    let end = async {
        while runner.next_event().await.is_some() {}
        let end = runner.finish().await;
        if let Some(mcp) = &started.mcp {
            mcp.servers.shutdown().await;
        }
        end
    };
    let (troubles, has_failed) = match is_ending {
        true => tokio::time::timeout(LAST_PATIENCE, end).await.unwrap_or_default(),
        false => end.await,
    };
    mailbox.put(News::Ended {
        troubles,
        has_failed,
        cost_usd: ctx.identity.get().process_totals().cost_usd(),
    });
}

/// What the session asks of its client, which here is whoever sits at the terminal, and who waits for the answers.
struct ClientRequestTable {
    requests: UnboundedReceiver<ClientMessage>,
    waiters: HashMap<String, oneshot::Sender<ClientAnswer>>,
}

impl ClientRequestTable {
    /// Puts a request to the person; what only a program could answer is refused at once.
    fn take(&mut self, message: ClientMessage, mailbox: &Mailbox<News>) {
        match message {
            ClientMessage::Request(ClientRequest { id, subtype, payload, waiter }) => {
                match subtype.as_str() {
                    "elicitation" => {
                        self.waiters.insert(id.clone(), waiter);
                        mailbox.put(News::Elicitation { request: id, payload: Value::Object(payload) });
                    }
                    _ => drop(waiter.send(Err(ClientRequestError::Gone))),
                }
            }
            ClientMessage::Withdrawn(id) => {
                self.waiters.remove(&id);
                mailbox.put(News::RequestWithdrawn(id));
            }
        }
    }

    fn answer(&mut self, request: &str, answer: Value) {
        if let Some(waiter) = self.waiters.remove(request) {
            // Whoever has stopped waiting needs no answer.
            drop(waiter.send(Ok(answer)));
        }
    }
}

/// Puts old sessions away once nobody waits for anything any more.
async fn sweep_later(env: Env, home: ConfigHome, days: Option<u64>) {
    tokio::time::sleep(SWEEP_PAUSE).await;
    let swept = tokio::task::spawn_blocking(move || retention::sweep(&env, &home, days)).await;
    if let Err(error) = swept {
        tracing::warn!(target: "loci::tui", "old sessions were not put away: {error}");
    }
}

/// Makes the session that was chosen ready, and has it take the place of the one at hand. What cannot be opened is told, and
/// the session at hand goes on; only where it is the same session it must have ended first.
fn begin_switch(
    target: SwitchTarget,
    ctx: &CommandContext,
    runner: &mut SessionRunner,
    opening: &UnboundedSender<SessionSwitch>,
    mailbox: &Mailbox<News>,
) {
    let (ctx, mailbox, opening) = (ctx.clone(), mailbox.clone(), opening.clone());
    let identity = ctx.identity.get();
    if !target.is_fork && target.session == identity.id().as_str() {
        let open = Box::new(move |state: RenewalState| match open_session(&ctx, &target, &state.totals) {
            Ok(opened) => Ok(tell_opened(opened, &mailbox)),
            Err(SwitchError::InUse(holder)) => Err(holder),
            Err(SwitchError::Failed(error)) => Err(error.to_string()),
        });
        return runner.switch(SessionSwitch { open, waits_for_end: true });
    }
    tokio::task::spawn_blocking(move || match open_session(&ctx, &target, &identity.process_totals()) {
        Ok(opened) => {
            let session = tell_opened(opened, &mailbox);
            let open = Box::new(move |_: RenewalState| Ok(session));
            // A session that is over needs no other.
            drop(opening.send(SessionSwitch { open, waits_for_end: false }));
        }
        Err(SwitchError::InUse(holder)) => mailbox.put(News::SessionInUse { target, holder }),
        Err(SwitchError::Failed(error)) => mailbox.put(News::SwitchFailed(error.to_string())),
    });
}

fn tell_opened(opened: OpenedSession, mailbox: &Mailbox<News>) -> NewSession {
    let OpenedSession { session, model, mode, warnings, notes } = opened;
    let title = session.session.title();
    mailbox.put(News::Switched(Box::new(SwitchedFacts { title, model, mode, warnings, notes })));
    session
}

/// Asks a server what an argument could be, beside everything else; the answer is news.
fn complete_argument(mcp: Option<McpConfig>, command: String, written: String, mailbox: Mailbox<News>) {
    tokio::spawn(async move {
        let found = match mcp {
            Some(mcp) => complete_prompt(&mcp, &command, &written).await,
            None => Vec::new(),
        };
        mailbox.put(News::Files(FileAnswer {
            kind: TokenKind::Argument,
            query: written,
            found: found.into_iter().map(|value| (value, String::new())).collect(),
            is_reading: false,
            failure: None,
        }));
    });
}

/// Returns what can be mentioned beside files: agents, and what MCP servers have.
fn mentions(agents: &AgentRegistry, mcp: Option<&McpConfig>) -> Vec<Mention> {
    let agents = agents.iter().map(|agent| Mention {
        name: format!("agent-{}", agent.name),
        detail: loci_stdx::single_line(&agent.description, 200),
    });
    let servers = mcp.map(|mcp| mcp.servers.views()).unwrap_or_default();
    let resources = servers.iter().flat_map(|server| {
        server.offer.resources.iter().map(|resource| Mention {
            name: format!("{}:{}", server.name, resource.uri),
            detail: loci_stdx::single_line(resource.description.as_deref().unwrap_or(&resource.name), 200),
        })
    });
    agents.chain(resources).collect()
}

/// Returns the other sessions of the project that were used last; none where they cannot be listed, which `/resume` tells.
fn session_mentions(ctx: &CommandContext) -> Vec<Mention> {
    let own = ctx.place().id().to_string();
    let listed = recent_choices(&ctx.env, &ctx.home, PickerScope::Project, MOST_SESSION_MENTIONS);
    let sessions = listed.map(|(sessions, _)| sessions).unwrap_or_default();
    let others = sessions.into_iter().filter(|session| session.id != own);
    others
        .map(|session| Mention {
            name: format!("{SESSION_MENTION}{}", session.id),
            detail: format!("{} · {}", session.title, session.ago),
        })
        .collect()
}

/// Returns what an edit would change, with the lines around it.
fn preview(tool: &str, input: &Value, cwd: &Path) -> Option<FileDiff> {
    let read = |path: &str| {
        let file = cwd.join(path);
        let size = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
        (size <= MOST_PREVIEW_BYTES).then(|| loci_stdx::read_regular_to_string(&file).unwrap_or_default())
    };
    if tool == NOTEBOOK_EDIT {
        let notebook = read(input.get("notebook_path")?.as_str()?)?;
        return preview_cell(input, &notebook, cwd);
    }
    let change = AskedChange::from_call(tool, input)?;
    let before = read(change.path)?;
    let after = change.text.apply(&before)?;
    Some(FileDiff { path: short_path(change.path, cwd), before, after, first_line: 1 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn preview_of_an_edit_is_the_whole_file_before_and_after() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "one\ntwo\none\n").unwrap();
        let path = dir.path().join("a.txt").display().to_string();
        let edit = |all: bool| json!({"file_path": path, "old_string": "one", "new_string": "1", "replace_all": all});
        for (tool, input, expected) in [
            ("Edit", edit(false), Some("1\ntwo\none\n")),
            ("Edit", edit(true), Some("1\ntwo\n1\n")),
            ("Edit", json!({"file_path": path, "old_string": "nine", "new_string": "9"}), None),
            ("Write", json!({"file_path": path, "content": "new"}), Some("new")),
            ("Bash", json!({"command": "ls"}), None),
        ] {
            let diff = preview(tool, &input, dir.path());
            assert_eq!(diff.as_ref().map(|diff| diff.after.as_str()), expected, "{input}");
            assert!(diff.is_none_or(|diff| diff.path == "a.txt" && diff.before == "one\ntwo\none\n"));
        }
    }
}
