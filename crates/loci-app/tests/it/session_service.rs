//! One set of tests over both carriers: a client in the session's process, and one at its socket.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_app::RunOptions;
use loci_app::service::socket::{SocketError, SocketServer, connect};
use loci_app::service::{EventStream, EventsFrom, Heard, ServedSession, SessionClient, SessionService};
use loci_app::start::{SessionStart, StartStep};
use loci_core::hooks::PermissionReply;
use loci_core::ids::ToolUseId;
use loci_core::message::{Block, Role};
use loci_core::permission::Mode;
use loci_core::stream::StreamEvent;
use loci_llm::Client;
use loci_protocol::files::DirectorySource;
use loci_protocol::frame::{ClientHello, PROTOCOL, Since};
use loci_protocol::prompt::Prompt;
use loci_protocol::request::{
    AddDirectory, AnswerQuestion, CancelPrompt, Interrupt, LookAt, PromptTiming, Quit, Rename, SendPrompt,
    SetMode, TakeBackQueue, TakeSeat,
};
use loci_protocol::view::Activity;
use loci_protocol::{ErrorKind, Event};
use loci_stdx::Env;
use loci_testkit::TestHome;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Nothing here takes as long; what hangs fails by name.
const PATIENCE: Duration = Duration::from_secs(60);

/// How clients come to the session.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Carrier {
    InProcess,
    Socket,
}

/// A session whose model says what its last prompt asks for: `run COMMAND` calls the shell, all else is
/// answered with the same words.
struct Served {
    home: TestHome,
    service: SessionService,
    server: Option<SocketServer>,
    carrier: Carrier,
}

impl Served {
    async fn start(carrier: Carrier) -> Self {
        let home = TestHome::new();
        home.write_config("settings.json", r#"{"env": {}}"#);
        let mut env = Env::for_test(home.home(), home.project());
        env.vars = home.env_vars("http://127.0.0.1:9").into_iter().collect();
        let client = Client::scripted(
            |request| {
                let last = request.messages.iter().rev().find(|it| it.role == Role::User).unwrap();
                let text = last.content.iter().filter_map(Block::text).next_back().unwrap_or_default();
                let is_result = last.content.iter().any(|block| block.text().is_none());
                vec![match text.strip_prefix("run ") {
                    Some(command) if !is_result => {
                        Block::new_tool_use(&ToolUseId::new("toolu_1"), "Bash", &json!({"command": command}))
                    }
                    _ if is_result => Block::new_text("Ran."),
                    _ => Block::new_text(&format!("You said: {text}")),
                }]
            },
            Duration::ZERO,
        );
        let options =
            RunOptions { is_persistent: true, can_ask: true, has_given_trust: true, ..RunOptions::default() };
        let mut start = SessionStart::new(env, options, Some(client), Instant::now()).unattended();
        let started = match start.proceed() {
            StartStep::Ready(started) => *started,
            StartStep::Ask(question) => panic!("{question:?}"),
            StartStep::Failed(error) => panic!("{error}"),
            StartStep::View(_) => panic!("viewing"),
        };
        let service = SessionService::start(ServedSession {
            cwd: started.env.cwd.clone(),
            model: started.models.first().cloned().unwrap_or_default(),
            mode: started.mode,
            random: Arc::clone(&started.env.random),
            renew: Some(started.renew),
            session: started.session,
        });
        let mut served = Self { home, service, server: None, carrier };
        if carrier == Carrier::Socket {
            served.server = Some(SocketServer::bind(&served.service, &served.path()).unwrap());
        }
        served
    }

    fn path(&self) -> PathBuf {
        self.home.home().join("sockets").join("s.sock")
    }

    async fn client(&self, name: &str) -> SessionClient {
        self.client_since(name, None).await
    }

    async fn client_since(&self, name: &str, since: Option<Since>) -> SessionClient {
        match self.carrier {
            Carrier::InProcess => self.service.client(name),
            Carrier::Socket => connect(&self.path(), hello(name, since)).await.unwrap(),
        }
    }
}

fn hello(name: &str, since: Option<Since>) -> ClientHello {
    ClientHello { proto: PROTOCOL, client: name.to_owned(), is_viewer: false, since }
}

/// Says something to the model.
async fn say(client: &SessionClient, text: &str) {
    let request = SendPrompt { prompt: Prompt::text(text), timing: PromptTiming::AfterTurn };
    client.ask(request).await.unwrap();
}

/// Hears events until one is the one that is waited for; returns what was made of it.
async fn hear<T>(events: &mut EventStream, wanted: impl Fn(&Event) -> Option<T>) -> T {
    let heard = async {
        loop {
            match events.next().await {
                Some(Heard::Event(sequenced)) => {
                    if let Some(found) = wanted(&sequenced.event) {
                        return found;
                    }
                }
                Some(Heard::Missed { seq }) => panic!("missed what came up to {seq}"),
                None => panic!("the session is over"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.expect("the event comes")
}

fn answer_text(event: &Event) -> Option<String> {
    match event {
        Event::TurnEnded(report) => Some(report.text.clone()),
        _ => None,
    }
}

fn question_id(event: &Event) -> Option<String> {
    match event {
        Event::QuestionAsked(question) => Some(question.id.clone()),
        _ => None,
    }
}

fn allow() -> PermissionReply {
    PermissionReply::Allow { input: None, updates: Vec::new() }
}

/// Runs a test over both carriers.
macro_rules! over_both {
    ($($(#[$doc:meta])* async fn $name:ident($served:ident: Served) $body:block)*) => {
        $(mod $name {
            use super::*;

            $(#[$doc])*
            async fn play($served: Served) $body

            #[tokio::test]
            async fn in_process() {
                play(Served::start(Carrier::InProcess).await).await;
            }

            #[tokio::test]
            async fn over_socket() {
                play(Served::start(Carrier::Socket).await).await;
            }
        })*
    };
}

over_both! {
    async fn prompt_is_answered_and_everybody_hears_it(served: Served) {
        let (writer, viewer) = (served.client("writer").await, served.client("viewer").await);
        let mut events = [writer.events(EventsFrom::Start), viewer.events(EventsFrom::Start)];
        say(&writer, "hi").await;
        for events in &mut events {
            assert_eq!(hear(events, answer_text).await, "You said: hi");
        }
        let view = viewer.ask(LookAt).await.unwrap();
        assert_eq!((view.activity, view.seat.writer.as_deref()), (Activity::Idle, Some("writer")));
        assert!(view.last_entry.is_some() && !view.seat.is_mine);
    }

    async fn question_is_answered_once_by_whoever_is_first(served: Served) {
        let (writer, phone) = (served.client("terminal").await, served.client("phone").await);
        let mut events = writer.events(EventsFrom::Start);
        say(&writer, "run touch made").await;
        let question = hear(&mut events, question_id).await;
        let view = phone.ask(LookAt).await.unwrap();
        assert_eq!((view.activity, view.questions.len()), (Activity::Waiting, 1));
        let answer = AnswerQuestion { question: question.clone(), reply: allow() };
        phone.ask(answer.clone()).await.unwrap();
        let late = writer.ask(answer).await.unwrap_err();
        assert_eq!(late.kind, ErrorKind::AlreadyAnswered, "{late}");
        let by = hear(&mut events, |event| match event {
            Event::QuestionAnswered { question: id, by } if *id == question => Some(by.clone()),
            _ => None,
        });
        assert_eq!(by.await, "phone");
        assert_eq!(hear(&mut events, answer_text).await, "Ran.");
        assert!(served.home.project().join("made").exists());
        let unknown = AnswerQuestion { question: "none".to_owned(), reply: allow() };
        assert_eq!(phone.ask(unknown).await.unwrap_err().kind, ErrorKind::NotFound);
    }

    async fn interrupt_needs_no_seat_and_ends_the_turn(served: Served) {
        let (writer, other) = (served.client("writer").await, served.client("other").await);
        let mut events = writer.events(EventsFrom::Start);
        say(&writer, "run touch made; sleep 1000").await;
        let question = hear(&mut events, question_id).await;
        writer.ask(AnswerQuestion { question, reply: allow() }).await.unwrap();
        other.ask(Interrupt).await.unwrap();
        hear(&mut events, |event| matches!(event, Event::TurnEnded(_)).then_some(())).await;
        assert_eq!(other.ask(LookAt).await.unwrap().activity, Activity::Idle);
    }

    async fn second_writer_is_refused_until_it_takes_the_seat(served: Served) {
        let (first, second) = (served.client("first").await, served.client("second").await);
        let mut events = first.events(EventsFrom::Start);
        say(&first, "run touch made").await;
        let question = hear(&mut events, question_id).await;
        let refusal = second.ask(SetMode { mode: Mode::Plan }).await.unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::NotWriter);
        assert!(refusal.message.contains("first") && refusal.hint.is_some(), "{refusal:?}");
        let busy = second.ask(TakeSeat { force: false }).await.unwrap_err();
        assert_eq!(busy.kind, ErrorKind::NotWriter);
        let seat = second.ask(TakeSeat { force: true }).await.unwrap();
        assert!(seat.is_mine);
        second.ask(SetMode { mode: Mode::Plan }).await.unwrap();
        assert_eq!(first.ask(SetMode { mode: Mode::Default }).await.unwrap_err().kind, ErrorKind::NotWriter);
        second.leave();
        hear(&mut events, |event| matches!(event, Event::SeatChanged { writer: None }).then_some(())).await;
        first.ask(AnswerQuestion { question, reply: allow() }).await.unwrap();
        first.ask(SetMode { mode: Mode::Default }).await.unwrap();
    }

    async fn queued_prompts_are_seen_taken_back_and_never_asked_twice(served: Served) {
        let client = served.client("writer").await;
        let mut events = client.events(EventsFrom::Start);
        say(&client, "run touch made").await;
        let question = hear(&mut events, question_id).await;
        let mut prompt = Prompt::text("later");
        prompt.id = Some("11111111-0000-4000-8000-000000000001".into());
        let later = SendPrompt { prompt, timing: PromptTiming::AfterTurn };
        assert!(!client.ask(later.clone()).await.unwrap().is_repeated);
        assert!(client.ask(later.clone()).await.unwrap().is_repeated);
        let soon = SendPrompt { prompt: Prompt::text("soon"), timing: PromptTiming::DuringTurn };
        let soon = client.ask(soon).await.unwrap().id;
        let queue: Vec<String> = client.ask(LookAt).await.unwrap().queue.into_iter().map(|it| it.text).collect();
        assert_eq!(queue, ["later", "soon"]);
        let taken = client.ask(TakeBackQueue).await.unwrap();
        assert_eq!(taken.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), [soon.as_str()]);
        let cancelled = client.ask(CancelPrompt { prompt: later.prompt.id.unwrap() }).await.unwrap();
        assert!(cancelled.is_cancelled);
        assert_eq!(client.ask(LookAt).await.unwrap().queue, []);
        client.ask(AnswerQuestion { question, reply: allow() }).await.unwrap();
        assert_eq!(hear(&mut events, answer_text).await, "Ran.");
    }

    async fn what_cannot_be_done_is_an_error_with_its_reason(served: Served) {
        let client = served.client("writer").await;
        let directory = served.home.home().join("nowhere");
        let request = AddDirectory { directory, source: DirectorySource::SlashCommand };
        let error = client.ask(request).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Failed);
        assert!(error.message.contains("nowhere"), "{error}");
    }

    async fn name_of_the_session_is_news(served: Served) {
        let client = served.client("writer").await;
        let mut events = client.events(EventsFrom::Start);
        client.ask(Rename { title: "port".to_owned() }).await.unwrap();
        let told = |event: &Event| match event {
            Event::Titled(title) => Some(title.clone()),
            _ => None,
        };
        assert_eq!(hear(&mut events, told).await, "port");
        assert_eq!(client.ask(LookAt).await.unwrap().title.as_deref(), Some("port"));
    }

    async fn end_is_told_and_later_requests_are_refused(served: Served) {
        let client = served.client("writer").await;
        let mut events = client.events(EventsFrom::Start);
        say(&client, "hi").await;
        hear(&mut events, answer_text).await;
        client.ask(Quit).await.unwrap();
        let over = hear(&mut events, |event| match event {
            Event::Ended(over) => Some(over.clone()),
            _ => None,
        });
        assert!(!over.await.has_failed);
        assert_eq!(tokio::time::timeout(PATIENCE, events.next()).await.unwrap(), None);
        served.service.finish().await;
        let refusal = client.ask(LookAt).await.unwrap_err();
        assert!(matches!(refusal.kind, ErrorKind::SessionOver | ErrorKind::Disconnected), "{refusal:?}");
        assert_eq!(served.home.sessions().len(), 1, "the transcript is there");
    }
}

/// A client that loses its connection, in the middle of a turn, and comes back.
#[tokio::test]
async fn client_that_comes_back_hears_what_it_missed_and_nothing_twice() {
    let served = Served::start(Carrier::Socket).await;
    let client = served.client("writer").await;
    let mut events = client.events(EventsFrom::Start);
    say(&client, "run touch made").await;
    let question = hear(&mut events, question_id).await;
    let place = events.place();
    drop((events, client));
    // Answered by somebody else meanwhile, and the turn goes on without a listener.
    let other = served.service.client("other");
    let mut others = other.events(EventsFrom::Start);
    other.ask(AnswerQuestion { question: question.clone(), reply: allow() }).await.unwrap();
    hear(&mut others, answer_text).await;
    let client = served.client_since("writer", Some(place.clone())).await;
    let mut events = client.events(EventsFrom::Start);
    let mut last = place.seq;
    let mut told = Vec::new();
    loop {
        let Some(Heard::Event(heard)) = tokio::time::timeout(PATIENCE, events.next()).await.unwrap() else {
            panic!("events go on")
        };
        assert!(heard.seq > last);
        last = heard.seq;
        match &*heard.event {
            Event::QuestionAsked(_) => panic!("it was heard before"),
            Event::QuestionAnswered { question: id, .. } => told.push(id.clone()),
            Event::TurnEnded(_) => break,
            _ => {}
        }
    }
    assert_eq!(told, [question]);
}

/// Pieces of an answer that is whole are not told to who comes late; the answer is.
#[tokio::test]
async fn late_listener_hears_whole_blocks() {
    let served = Served::start(Carrier::InProcess).await;
    let client = served.client("writer").await;
    let mut events = client.events(EventsFrom::Start);
    say(&client, "hi").await;
    hear(&mut events, answer_text).await;
    let mut late = client.events(EventsFrom::Start);
    let mut has_block = false;
    loop {
        let Some(Heard::Event(heard)) = tokio::time::timeout(PATIENCE, late.next()).await.unwrap() else {
            panic!("events go on")
        };
        match &*heard.event {
            Event::Stream { event: StreamEvent::Delta { .. }, .. } => panic!("a piece: {heard:?}"),
            Event::Assistant(_) => has_block = true,
            Event::TurnEnded(_) => break,
            _ => {}
        }
    }
    assert!(has_block);
}

#[tokio::test]
async fn viewer_may_look_and_not_touch() {
    let served = Served::start(Carrier::Socket).await;
    let viewer = ClientHello { is_viewer: true, ..hello("page", None) };
    let viewer = connect(&served.path(), viewer).await.unwrap();
    assert!(viewer.ask(LookAt).await.is_ok());
    for refused in [
        viewer.ask(Interrupt).await.unwrap_err(),
        viewer.ask(SetMode { mode: Mode::Plan }).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind, ErrorKind::ReadOnly);
    }
}

/// What a raw client reads after it has written something.
async fn raw(served: &Served, written: &[u8]) -> String {
    let mut stream = tokio::net::UnixStream::connect(served.path()).await.unwrap();
    stream.write_all(written).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut read = String::new();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut read)).await.unwrap();
    // Who is hung up on before all was read is told so by a reset.
    assert!(end.is_ok() || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
    read
}

#[tokio::test]
async fn lines_that_are_not_understood_are_answered_and_cost_nothing_else() {
    let served = Served::start(Carrier::Socket).await;
    let other = raw(&served, b"{\"proto\": 7, \"client\": \"x\"}\n").await;
    assert!(other.contains("Protocol 7") && other.contains(&PROTOCOL.to_string()), "{other}");
    assert!(raw(&served, b"hello\n").await.contains("malformed"));
    assert_eq!(raw(&served, b"").await, "");
    assert_eq!(raw(&served, &[b'x'; 10_000]).await, "", "who never ends a line is hung up on");
    let said = raw(
        &served,
        b"{\"proto\":1,\"client\":\"x\"}\nnonsense\n{\"id\":4,\"request\":{\"session/view\":null}}\n",
    )
    .await;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains(r#""proto":1"#), "{said}");
    assert!(lines[1].contains("malformed"), "{said}");
    assert!(
        lines.iter().any(|line| line.starts_with(r#"{"answer":{"id":4,"answer":{"session/view""#)),
        "{said}"
    );
    let client = served.client("writer").await;
    assert!(client.ask(LookAt).await.is_ok(), "the session goes on");
}

#[tokio::test]
async fn socket_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let served = Served::start(Carrier::Socket).await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&served.path()), mode(served.path().parent().unwrap())), (0o600, 0o700));
    let again = SocketServer::bind(&served.service, &served.path()).unwrap_err();
    assert!(matches!(again, SocketError::InUse(_)), "{again}");
    let shared = served.home.home().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
    let refused = SocketServer::bind(&served.service, &shared.join("s")).unwrap_err();
    assert!(matches!(refused, SocketError::SharedDirectory(_)), "{refused}");
    let long = served.home.home().join("x".repeat(120));
    assert!(matches!(SocketServer::bind(&served.service, &long), Err(SocketError::PathTooLong(_))));
    let path = served.path();
    drop(served.server);
    assert!(!path.exists());
    assert!(matches!(connect(&path, hello("x", None)).await, Err(SocketError::Connect { .. })));
}
