//! A session for whoever asks: one task owns it, any number of clients talk to it.
//!
//! [`SessionService::start`] lets a session run. Clients ask it ([`SessionClient::ask`]) and hear its events, each at its own
//! pace, from the same process or over a socket ([`socket`]). What must stay true:
//!
//! 1. Every request is answered once; what the engine says to one who asked is nobody else's news.
//! 2. The engine waits for no reader: events go into a ring, and who falls behind is told to look at the session anew.
//! 3. One client writes. Whoever asks for something that changes the conversation first has the seat, until it gives it up,
//!    leaves, or another takes it; questions are answered by whoever is first.
//! 4. A prompt that comes a second time, by its id, is not asked a second time.

mod client;
mod event_ring;
mod news;
pub mod socket;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loci_core::ids::{EntryId, SessionId};
use loci_core::permission::Mode;
use loci_engine::{Command, NewSession, QueuedPrompt, RenewSession, RunnerEvent, SessionRunner};
use loci_protocol::event::{Event, SessionOver};
use loci_protocol::request::{
    AnswerQuestion, ChangePermission, Close, ContinueTurn, Interrupt, LookAt, MoveToBackground, Notify,
    PromptAccepted, PromptTiming, Quit, ReleaseSeat, ReloadSkills, Rename, RunShell, SeedReadState,
    SendPrompt, SetEffort, SetMode, SetServerMode, SetThinking, TakeBackQueue, TakeSeat, Wake,
};
use loci_protocol::view::{Activity, WaitingPrompt};
use loci_protocol::{Answer, Ask, Done, ErrorKind, Reach, Request, RequestError, Seat, SessionView};
use loci_stdx::Random;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use client::{Asked, ClientName, EventLog, EventWriter, Reply, ToService};
use news::Sorted;

pub use client::{EventStream, EventsFrom, Heard, SessionClient};

/// How many ids of prompts are remembered, so that none is asked twice.
const REMEMBERED_PROMPTS: usize = 1_000;
/// How many questions that were answered are remembered, so that who comes late is told so.
const REMEMBERED_QUESTIONS: usize = 100;

/// A session that is to be served.
pub struct ServedSession {
    /// The session.
    pub session: NewSession,
    /// Makes the one that takes its place, where one may.
    pub renew: Option<RenewSession>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// The model that is asked.
    pub model: String,
    /// The mode it begins in.
    pub mode: Mode,
    /// For ids.
    pub random: Arc<dyn Random>,
}

/// A session that is served.
#[derive(Debug)]
pub struct SessionService {
    door: Door,
    task: JoinHandle<()>,
}

/// Where clients come in.
#[derive(Debug, Clone)]
struct Door {
    requests: UnboundedSender<ToService>,
    session: SessionId,
    log: Arc<EventLog>,
    over: watch::Receiver<bool>,
    n_clients: Arc<AtomicU64>,
}

impl Door {
    fn client(&self, name: &str, is_viewer: bool) -> SessionClient {
        let number = self.n_clients.fetch_add(1, Ordering::Relaxed);
        let name = ClientName { number, name: name.to_owned(), is_viewer };
        let (requests, log) = (self.requests.clone(), Arc::clone(&self.log));
        SessionClient::new(name, self.session.clone(), requests, log, self.over.clone())
    }
}

impl SessionService {
    /// Lets a session run, within the runtime at hand.
    pub fn start(served: ServedSession) -> Self {
        let ServedSession { session, renew, cwd, model, mode, random } = served;
        let (requests, receiver) = unbounded_channel();
        let epoch = random.uuid_v4().simple().to_string()[..6].to_owned();
        let log = Arc::new(EventLog::new(epoch));
        let (writer, over) = EventWriter::new(Arc::clone(&log));
        let title = session.session.title();
        let runner = SessionRunner::start(session, renew);
        let id = runner.identity().get().id().clone();
        let view = SessionView { title, ..SessionView::new(id.clone(), cwd, model, mode) };
        let actor = Actor {
            runner,
            writer,
            view,
            random,
            waiting: HashMap::new(),
            cancelling: HashMap::new(),
            take_backs: VecDeque::new(),
            seat: None,
            prompts: VecDeque::new(),
            answered: VecDeque::new(),
            n_requests: 0,
        };
        let task = tokio::spawn(actor.run(receiver));
        Self { door: Door { requests, session: id, log, over, n_clients: Arc::default() }, task }
    }

    /// Makes a client in this process, which others see under this name.
    pub fn client(&self, name: &str) -> SessionClient {
        self.door.client(name, false)
    }

    /// Makes a client that only looks on.
    pub fn viewer(&self, name: &str) -> SessionClient {
        self.door.client(name, true)
    }

    /// Waits until the session is over, and its transcript closed.
    pub async fn finish(self) {
        // A panic of the task was told by the hook of panics; what was recorded is on disk.
        drop(self.task.await);
    }
}

/// The one that owns the session.
struct Actor {
    runner: SessionRunner,
    writer: EventWriter,
    view: SessionView,
    random: Arc<dyn Random>,
    /// Who waits for the engine's answer, by the request's id.
    waiting: HashMap<String, oneshot::Sender<Reply>>,
    /// The prompts that are to be taken back, by the request's id.
    cancelling: HashMap<String, EntryId>,
    /// Who waits for what was queued.
    take_backs: VecDeque<oneshot::Sender<Reply>>,
    seat: Option<ClientName>,
    /// Prompts that came, the newest last.
    prompts: VecDeque<EntryId>,
    /// Questions that were answered, the newest last.
    answered: VecDeque<String>,
    n_requests: u64,
}

impl Actor {
    async fn run(mut self, mut requests: UnboundedReceiver<ToService>) {
        loop {
            tokio::select! {
                event = self.runner.next_event() => match event {
                    Some(event) => self.hear(event),
                    None => break,
                },
                Some(message) = requests.recv() => match message {
                    ToService::Asked(asked) => self.take(asked),
                    ToService::Gone(client) => self.leave(&client),
                },
            }
        }
        let (troubles, has_failed) = self.runner.finish().await;
        self.tell(Event::Ended(SessionOver { troubles, has_failed }));
    }

    fn tell(&mut self, event: Event) {
        let event = Arc::new(event);
        let seq = self.writer.0.push(Arc::clone(&event));
        self.view.apply(seq, &event);
    }

    fn hear(&mut self, event: RunnerEvent) {
        match event {
            RunnerEvent::Session(event) => match news::sort(event) {
                Sorted::News(event) => self.tell(event),
                Sorted::Answer(request, reply) => {
                    let cancelled = self.cancelling.remove(&request);
                    let is_gone =
                        |answer: &Answer| matches!(answer, Answer::CancelPrompt(it) if it.is_cancelled);
                    if let Some(id) = cancelled.filter(|_| reply.as_ref().is_ok_and(is_gone)) {
                        self.tell(Event::PromptDropped { id });
                    }
                    if let Some(waiter) = self.waiting.remove(&request) {
                        answer(waiter, reply);
                    }
                }
                Sorted::TakenBack(prompts) => {
                    for queued in &prompts {
                        self.tell(Event::PromptDropped { id: queued.id.as_str().into() });
                    }
                    if let Some(waiter) = self.take_backs.pop_front() {
                        answer(waiter, Ok(TakeBackQueue::answer(prompts)));
                    }
                }
                Sorted::Nothing => {}
            },
            RunnerEvent::Renewed(session) => self.tell(Event::Renewed(session)),
            RunnerEvent::RenewalFailed(why) => self.tell(Event::RenewalFailed(why)),
        }
    }

    /// Takes a request, if the one who asks may.
    fn take(&mut self, asked: Asked) {
        let Asked { from, request, reply } = asked;
        if let Err(refusal) = self.admit(&from, &request) {
            return answer(reply, Err(refusal));
        }
        match self.carry_out(&from, request) {
            Outcome::Answered(answered) => answer(reply, answered),
            Outcome::Waits(request) => drop(self.waiting.insert(request, reply)),
            Outcome::WaitsForQueue => self.take_backs.push_back(reply),
        }
    }

    /// Lets in what the one who asks may ask; gives them the seat, where it is free and they need it.
    fn admit(&mut self, from: &ClientName, request: &Request) -> Result<(), RequestError> {
        if request.reach() == Reach::Reads {
            return Ok(());
        }
        if from.is_viewer {
            let text = format!("`{}` may look on and not ask for `{}`", from.name, request.method());
            return Err(RequestError::new(ErrorKind::ReadOnly, text));
        }
        if request.reach() == Reach::TakesPart {
            return Ok(());
        }
        match &self.seat {
            Some(writer) if writer != from => {
                let text = format!("`{}` writes in this session at the moment", writer.name);
                let hint = "Take the seat from it, or wait until it is given up.";
                Err(RequestError::new(ErrorKind::NotWriter, text).hint(hint))
            }
            Some(_) => Ok(()),
            None => {
                self.seat(Some(from.clone()));
                Ok(())
            }
        }
    }

    fn seat(&mut self, writer: Option<ClientName>) {
        if self.seat != writer {
            let name = writer.as_ref().map(|writer| writer.name.clone());
            self.seat = writer;
            self.tell(Event::SeatChanged { writer: name });
        }
    }

    fn leave(&mut self, client: &ClientName) {
        if self.seat.as_ref() == Some(client) {
            self.seat(None);
        }
    }

    fn seat_of(&self, client: &ClientName) -> Seat {
        let writer = self.seat.as_ref();
        Seat { writer: writer.map(|it| it.name.clone()), is_mine: writer == Some(client) }
    }

    fn carry_out(&mut self, from: &ClientName, request: Request) -> Outcome {
        match request {
            Request::LookAt(LookAt) => {
                let view = SessionView { seat: self.seat_of(from), ..self.view.clone() };
                Outcome::Answered(Ok(LookAt::answer(view)))
            }
            Request::TakeSeat(TakeSeat { force }) => self.take_seat(from, force),
            Request::ReleaseSeat(ReleaseSeat) => {
                self.leave(from);
                Outcome::Answered(Ok(ReleaseSeat::answer(self.seat_of(from))))
            }
            Request::SendPrompt(prompt) => self.prompt(prompt),
            Request::AnswerQuestion(reply) => self.answer_question(from, reply),
            Request::TakeBackQueue(TakeBackQueue) => {
                self.runner.send(Command::TakeBackQueue);
                Outcome::WaitsForQueue
            }
            Request::Interrupt(Interrupt) => self.done::<Interrupt>(Command::Interrupt),
            Request::ContinueTurn(ContinueTurn) => self.done::<ContinueTurn>(Command::GoOn),
            Request::Wake(Wake { text }) => self.done::<Wake>(Command::Wake { text }),
            Request::RunShell(RunShell { command }) => self.done::<RunShell>(Command::Shell(command)),
            Request::MoveToBackground(MoveToBackground { call }) => {
                self.done::<MoveToBackground>(Command::MoveToBackground { call })
            }
            Request::Rename(Rename { title }) => {
                self.tell(Event::Titled(title.clone()));
                self.done::<Rename>(Command::Rename { title })
            }
            Request::Notify(Notify { kind, message, title }) => {
                self.done::<Notify>(Command::Notify { kind, message, title })
            }
            Request::Close(Close) => self.done::<Close>(Command::Close),
            Request::Quit(Quit) => self.done::<Quit>(Command::Quit),
            Request::SetEffort(SetEffort { effort }) => self.done::<SetEffort>(Command::SetEffort(effort)),
            Request::SetThinking(SetThinking { max_tokens, display }) => {
                if let Some(most) = max_tokens {
                    self.runner.send(Command::SetThinking(most));
                }
                if let Some(display) = display {
                    self.runner.send(Command::SetThinkingDisplay(display));
                }
                Outcome::Answered(Ok(SetThinking::answer(Done {})))
            }
            Request::SetMode(SetMode { mode }) => self.done::<SetMode>(Command::SetMode(mode)),
            Request::ChangePermission(ChangePermission { update }) => {
                self.done::<ChangePermission>(Command::ChangePermission(update))
            }
            Request::SetServerMode(SetServerMode { server, mode }) => {
                self.done::<SetServerMode>(Command::SetServerMode { server, mode })
            }
            Request::SeedReadState(SeedReadState { path, modified_ms }) => {
                self.done::<SeedReadState>(Command::SeedReadState { path, modified_ms })
            }
            Request::ReloadSkills(ReloadSkills) => self.done::<ReloadSkills>(Command::ReloadSkills),
            Request::CancelPrompt(it) => {
                let prompt = it.prompt.clone();
                let outcome = self.ask(|request| Command::CancelPrompt { request, prompt: it.prompt });
                if let Outcome::Waits(request) = &outcome {
                    self.cancelling.insert(request.clone(), prompt);
                }
                outcome
            }
            Request::AskAside(it) => self.ask(|request| Command::AskOnTheSide { request, task: it.task }),
            Request::SetModel(it) => {
                self.ask(|request| Command::SetModel { request: Some(request), model: it.model })
            }
            Request::McpCall(it) => self.ask(|request| Command::Mcp { request, action: it.action }),
            Request::AddDirectory(it) => self.ask(|request| Command::AddDirectory {
                request,
                directory: it.directory,
                source: it.source,
            }),
            Request::RewindFiles(it) => {
                self.ask(|request| Command::RewindFiles { request, prompt: it.prompt, is_trial: it.is_trial })
            }
            Request::MessageAgent(it) => {
                self.ask(|request| Command::MessageAgent { request, agent: it.agent, text: it.text })
            }
            Request::StopTask(it) => self.ask(|request| Command::StopTask { request, task: it.task }),
            Request::ReloadPlugins(_) => self.ask(|request| Command::ReloadPlugins { request }),
        }
    }

    /// Tells the engine something that it needs no words to answer.
    fn done<Q: Ask<Answer = Done>>(&mut self, command: Command) -> Outcome {
        self.runner.send(command);
        Outcome::Answered(Ok(Q::answer(Done {})))
    }

    /// Asks the engine something that it answers later.
    fn ask(&mut self, command: impl FnOnce(String) -> Command) -> Outcome {
        self.n_requests += 1;
        let request = format!("service-{}", self.n_requests);
        self.runner.send(command(request.clone()));
        Outcome::Waits(request)
    }

    fn take_seat(&mut self, from: &ClientName, force: bool) -> Outcome {
        let is_free = self.seat.as_ref().is_none_or(|writer| writer == from);
        if is_free || force || self.view.activity == Activity::Idle {
            self.seat(Some(from.clone()));
            return Outcome::Answered(Ok(TakeSeat::answer(self.seat_of(from))));
        }
        let writer = self.seat.as_ref().map_or("nobody", |writer| writer.name.as_str());
        let text = format!("`{writer}` writes in this session, and a turn is under way");
        let hint = "Ask again when the turn is over, or force it.";
        Outcome::Answered(Err(RequestError::new(ErrorKind::NotWriter, text).hint(hint)))
    }

    fn prompt(&mut self, request: SendPrompt) -> Outcome {
        let SendPrompt { mut prompt, timing } = request;
        let id = prompt.id.clone().unwrap_or_else(|| EntryId::new(self.random.uuid_v4().to_string()));
        if self.prompts.contains(&id) {
            return Outcome::Answered(Ok(SendPrompt::answer(PromptAccepted { id, is_repeated: true })));
        }
        remember(&mut self.prompts, id.clone(), REMEMBERED_PROMPTS);
        if matches!(self.view.activity, Activity::Working | Activity::Waiting) {
            let text = prompt.typed.clone().unwrap_or_else(|| prompt.content.text());
            self.tell(Event::PromptQueued(WaitingPrompt { id: id.clone(), text }));
        }
        match timing {
            PromptTiming::AfterTurn => {
                prompt.id = Some(id.clone());
                self.runner.send(Command::Prompt(prompt));
            }
            PromptTiming::DuringTurn => {
                let queued = QueuedPrompt { id: id.to_string(), prompt };
                self.runner.send(Command::Queue(queued));
            }
        }
        Outcome::Answered(Ok(SendPrompt::answer(PromptAccepted { id, is_repeated: false })))
    }

    fn answer_question(&mut self, from: &ClientName, request: AnswerQuestion) -> Outcome {
        let AnswerQuestion { question, reply } = request;
        if !self.view.questions.iter().any(|it| it.id == question) {
            let refusal = match self.answered.contains(&question) {
                true => RequestError::new(
                    ErrorKind::AlreadyAnswered,
                    format!("The question `{question}` is answered already"),
                ),
                false => RequestError::new(
                    ErrorKind::NotFound,
                    format!("There is no question `{question}` that waits"),
                ),
            };
            return Outcome::Answered(Err(refusal));
        }
        remember(&mut self.answered, question.clone(), REMEMBERED_QUESTIONS);
        self.runner.send(Command::Answer { question: question.clone(), answer: reply });
        self.tell(Event::QuestionAnswered { question, by: from.name.clone() });
        Outcome::Answered(Ok(AnswerQuestion::answer(Done {})))
    }
}

/// What became of a request.
enum Outcome {
    /// It is answered.
    Answered(Reply),
    /// The engine answers it later, by this id.
    Waits(String),
    /// The engine answers it later, in the order of such requests.
    WaitsForQueue,
}

/// Answers one who may not wait any more.
fn answer(waiter: oneshot::Sender<Result<Answer, RequestError>>, reply: Reply) {
    drop(waiter.send(reply));
}

/// Remembers one thing more, and so many at most.
fn remember<T>(known: &mut VecDeque<T>, new: T, most: usize) {
    known.push_back(new);
    if known.len() > most {
        known.pop_front();
    }
}
