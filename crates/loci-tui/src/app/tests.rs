//! The application driven by events alone, seen on a virtual screen.

use std::sync::Arc;

use loci_app::start::approvals::UnapprovedKey;
use loci_app::start::trust::TrustQuestion;
use loci_app::start::{StartAnswer, StartQuestion};
use loci_core::hooks::HookEvent;
use loci_core::message::Block as MessageBlock;
use loci_core::permission::Mode;
use loci_core::stream::{Delta, Failure, FailureKind, StreamEvent};
use loci_engine::turn::Outcome;
use loci_engine::{
    AssistantBlock, Command, CommandRegistry, EngineEvent, HookRunEnded, HookRunStarted, Prompt,
    QueuedPrompt, RunnerEvent, TurnReport, TurnStart,
};
use serde_json::json;

mod fullscreen;
mod input;
mod keyboard;
mod lower_mouse;
mod own_keys;
mod panels;
mod plain;
mod theme;
mod turns;
mod vim;

use super::*;
use crate::block::Block;
use crate::interface_settings::InterfaceSettings;
use crate::key::{Key, KeyCode};
use crate::screen::{FullScreen, Size, Writer, WriterOptions};

/// The application, the screen it is drawn on, and a clock that moves by hand.
struct Playing {
    app: App,
    writer: Writer,
    screen: vt100::Parser,
    /// The alternate screen while it is shown, as two terminals have it.
    full: Option<(FullScreen, vt100::Parser, avt::Terminal)>,
    size: Size,
    now: Duration,
    actions: Vec<Effect>,
}

impl Playing {
    fn new(width: u16, height: u16) -> Self {
        Self::with(AppOptions::default(), width, height)
    }

    fn with(options: AppOptions, width: u16, height: u16) -> Self {
        let size = Size { width, height };
        let options = AppOptions { version: "1".into(), shown_cwd: "~/p".into(), ..options };
        Self {
            app: App::new(options),
            writer: Writer::new(size, WriterOptions::default()),
            screen: parser(size, 1_000),
            full: None,
            size,
            now: Duration::from_secs(1),
            actions: Vec::new(),
        }
    }

    /// Lets something happen and draws.
    fn event(&mut self, event: Event) -> &mut Self {
        self.now += Duration::from_millis(1);
        let is_tick = matches!(event, Event::Tick);
        self.actions = self.app.update(event, self.now);
        self.draw();
        self.app.update(Event::Drawn, self.now);
        let deadline = self.app.deadline().filter(|_| is_tick);
        assert!(
            deadline.is_none_or(|it| it > self.now),
            "what is due for ever spins: {deadline:?}, {:?}",
            self.now
        );
        self
    }

    /// Draws as the event loop does, on one of the two screens.
    fn draw(&mut self) {
        let Some(view) = self.app.full_screen(self.size) else {
            self.full = None;
            let frame = self.app.view(self.size);
            self.screen.process(&self.writer.draw(&frame, self.size));
            return;
        };
        let size = self.size;
        if self.full.is_none() && self.app.own_screen().is_some() {
            self.screen.process(&self.writer.leave());
        }
        let (full, one, other) = self.full.get_or_insert_with(|| {
            let (width, height) = (usize::from(size.width), usize::from(size.height));
            let other = avt::Terminal::with_scrollback(width, height, None).unwrap();
            (FullScreen::new(WriterOptions::default()), parser(size, 0), other)
        });
        let bytes = full.draw_scrolling(&view.rows, view.n_scrolling, view.caret, size);
        one.process(&bytes);
        other.feed(std::str::from_utf8(&bytes).unwrap());
        // One of them keeps joiners that have no cell.
        let cells = |line: &String| line.trim_end().chars().filter(|c| *c != '\u{200d}').collect::<String>();
        let lines = |texts: Vec<String>| texts.iter().map(cells).collect::<Vec<_>>();
        let of_one = lines(one.screen().rows(0, size.width).collect());
        let of_other = lines(other.screen().visible_lines().map(avt::Line::text).collect());
        assert_eq!(of_one, of_other, "two terminals agree");
        assert!(view.rows.len() <= usize::from(size.height), "{view:?}");
    }

    /// Gives the window another size.
    fn resize(&mut self, width: u16, height: u16) -> &mut Self {
        self.size = Size { width, height };
        let cells = |n| std::num::NonZero::new(n).unwrap();
        self.screen.set_size(cells(height), cells(width));
        if let Some((_, one, other)) = &mut self.full {
            one.set_size(cells(height), cells(width));
            other.resize(usize::from(width), usize::from(height));
        }
        self.event(Event::Input(InputEvent::Resize { width, height }))
    }

    fn news(&mut self, event: EngineEvent) -> &mut Self {
        self.event(Event::News(News::Engine(Box::new(RunnerEvent::Session(event)))))
    }

    fn key(&mut self, code: KeyCode) -> &mut Self {
        self.event(Event::Input(InputEvent::Key(Key::plain(code))))
    }

    fn ctrl(&mut self, letter: char) -> &mut Self {
        self.event(Event::Input(InputEvent::Key(Key { ctrl: true, ..Key::plain(KeyCode::Char(letter)) })))
    }

    fn text(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.key(KeyCode::Char(c));
        }
        self
    }

    fn wait(&mut self, millis: u64) -> &mut Self {
        self.now += Duration::from_millis(millis);
        self.event(Event::Tick)
    }

    fn seen(&self) -> String {
        match &self.full {
            Some((_, screen, _)) => screen.screen().contents(),
            None => self.screen.screen().contents(),
        }
    }

    /// What was sent to the session.
    fn sent(&self) -> Vec<Effect> {
        let sent = self.actions.iter().filter_map(|action| match action {
            Effect::Send(command) => Some(Effect::Send(command.clone())),
            _ => None,
        });
        sent.collect()
    }

    fn start(&self) -> TurnStart {
        TurnStart {
            session: loci_core::ids::SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
            cwd: "/p".into(),
            model: "m".into(),
            mode: Mode::Default,
            tools: Vec::new(),
            agents: Vec::new(),
            mcp_servers: Vec::new(),
            mcp_errors: Vec::new(),
            plugins: std::sync::Arc::default(),
            commands: Arc::new(CommandRegistry::builtin()),
            api_key_source: String::new(),
            memory_dir: None,
            skills: Vec::new(),
            output_style: "default".into(),
            dirs: Vec::new(),
            effort: None,
            betas: Vec::new(),
            is_compaction: false,
        }
    }

    fn begin_turn(&mut self) -> &mut Self {
        let start = self.start();
        self.news(EngineEvent::TurnStarted(start))
    }

    /// Ends a turn in which the model said something.
    fn end_turn(&mut self) -> &mut Self {
        self.end_turn_with(Outcome::Completed, 1)
    }

    fn end_turn_with(&mut self, outcome: Outcome, round_trips: u32) -> &mut Self {
        let session = self.start().session;
        let context = loci_engine::SessionSnapshot::empty(session.clone(), "m").context.fullness;
        self.news(EngineEvent::TurnEnded(Box::new(TurnReport {
            outcome,
            origin: None,
            text: String::new(),
            shown_text: None,
            stop_reason: None,
            round_trips,
            usage: loci_core::usage::Usage::default(),
            total_cost_usd: 0.0,
            by_model: std::collections::BTreeMap::new(),
            denials: Vec::new(),
            duration: Duration::ZERO,
            api_duration: Duration::ZERO,
            first_event_after: None,
            first_content_after: None,
            first_request_after: None,
            context,
            session,
            transcript: None,
            is_saved: true,
        })))
    }

    fn stream(&mut self, event: StreamEvent) -> &mut Self {
        self.news(EngineEvent::Stream { event, first_after: None })
    }
}

fn parser(size: Size, n_scrollback: usize) -> vt100::Parser {
    let cells = |n| std::num::NonZero::new(n).unwrap();
    vt100::Parser::new(cells(size.height), cells(size.width), n_scrollback)
}

fn delta(text: &str) -> StreamEvent {
    StreamEvent::Delta { index: 0, delta: Delta::Text(text.to_owned()) }
}

#[test]
fn prompt_is_sent_with_enter_and_shown_until_it_is_recorded() {
    let mut it = Playing::new(60, 12);
    it.text("hello").key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("hello")))]);
    assert!(it.seen().contains("> hello"), "{}", it.seen());
    let entry = "e".into();
    let message = json!({"role": "user", "content": "hello"});
    it.begin_turn().news(EngineEvent::PromptRecorded {
        entry,
        message,
        timestamp: String::new(),
        attached: vec!["README.md, 1 line".into()],
    });
    assert_eq!(it.seen().matches("> hello").count(), 1, "{}", it.seen());
    assert!(it.seen().contains("[README.md, 1 line]"), "{}", it.seen());
}

#[test]
fn answer_is_seen_while_it_streams_and_once_when_it_is_done() {
    let mut it = Playing::new(60, 14);
    it.begin_turn();
    it.stream(StreamEvent::BlockStarted { index: 0, kind: "text".into(), name: None });
    it.stream(delta("One para")).stream(delta("graph.\n\nAnd "));
    assert!(it.seen().contains("One paragraph.") && it.seen().contains("And"), "{}", it.seen());
    it.stream(delta("another."));
    it.stream(StreamEvent::BlockDone {
        index: 0,
        block: MessageBlock::new_text("One paragraph.\n\nAnd another."),
    });
    for text in ["One paragraph.", "And another."] {
        assert_eq!(it.seen().matches(text).count(), 1, "{}", it.seen());
    }
}

#[test]
fn escape_interrupts_and_ctrl_c_leaves_when_said_twice() {
    let mut it = Playing::new(60, 12);
    it.begin_turn().key(KeyCode::Esc);
    assert_eq!(it.actions, [Effect::Send(Command::Interrupt)]);
    assert!(it.seen().contains("Stopping"), "{}", it.seen());
    let mut it = Playing::new(60, 12);
    it.text("draft").ctrl('c');
    assert_eq!((it.actions.len(), it.app.prompt.input.is_empty()), (0, true), "the prompt is emptied first");
    assert!(it.seen().contains("Press Ctrl+C again"), "{}", it.seen());
    it.wait(900).ctrl('c');
    assert!(it.actions.is_empty(), "too late for a second press");
    it.ctrl('c');
    assert_eq!(it.actions, [Effect::Exit(ExitReason::Asked)]);
}

#[test]
fn draft_that_ctrl_c_throws_away_comes_back_with_up_and_is_kept_once_it_is_sent() {
    let mut it = Playing::new(60, 12);
    it.text("draft").ctrl('c').key(KeyCode::Up);
    assert_eq!(it.app.prompt.input.marked_text(), "draft|");
    it.key(KeyCode::Enter);
    let kept = it.actions.iter().filter(|action| matches!(action, Effect::Remember(_)));
    assert_eq!(kept.count(), 1, "{:?}", it.actions);
    assert!(matches!(it.sent()[..], [Effect::Send(Command::Prompt(_))]), "{:?}", it.actions);
}

#[test]
fn messages_sent_while_working_are_queued_and_commands_wait_for_the_end() {
    let mut it = Playing::new(60, 16);
    it.begin_turn().text("also").key(KeyCode::Enter);
    let queued = QueuedPrompt { id: "1".into(), prompt: Prompt::text("also") };
    assert_eq!(it.sent(), [Effect::Send(Command::Queue(queued))]);
    it.text("/compact").key(KeyCode::Enter);
    assert!(it.sent().is_empty());
    it.text("after").key(KeyCode::Enter);
    assert!(it.sent().is_empty(), "what follows a command waits behind it");
    assert!(it.seen().contains("/compact") && it.seen().contains("queued"), "{}", it.seen());
}

#[test]
fn prompt_behind_a_clear_is_sent_to_the_new_conversation_and_does_not_come_back() {
    let mut it = Playing::new(60, 16);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.begin_turn().text("/clear").key(KeyCode::Enter).text("hello").key(KeyCode::Enter);
    it.end_turn();
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("/clear")))]);
    let session = it.start().session;
    it.event(Event::News(News::Engine(Box::new(RunnerEvent::Renewed(session)))));
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("hello")))]);
    assert!(
        it.actions.contains(&Effect::RepaintAll),
        "the old conversation leaves the screen: {:?}",
        it.actions
    );
    // The command has a turn of its own in the new conversation, in which nothing is done.
    it.begin_turn().end_turn();
    assert_eq!(it.app.prompt.input.draft().display(), "", "{}", it.seen());
    it.begin_turn().end_turn();
    assert_eq!(it.app.prompt.input.draft().display(), "hello", "what is refused comes back");
}

#[test]
fn live_region_of_a_long_paragraph_has_room_in_a_window_half_as_wide() {
    let mut it = Playing::new(100, 40);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.begin_turn();
    for n in 0..400 {
        it.stream(delta(&format!("w{n:04} ")));
    }
    let frame = it.app.view(it.size);
    let n_answer = frame.live.iter().filter(|row| row.text().starts_with('w')).count();
    assert_eq!(n_answer, 4, "what can no longer change is final: {frame:?}");
    assert!(it.seen().contains("w0000 ") && it.seen().contains("w0399"), "{}", it.seen());
}

#[test]
fn compaction_that_fails_shows_its_command_and_leaves_the_prompt_alone() {
    let mut it = Playing::new(60, 16);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.text("/compact tests").key(KeyCode::Enter).begin_turn().text("next");
    let failure = Failure::new(FailureKind::Malformed, "too little");
    let told = AssistantBlock {
        entry: "e".into(),
        message: json!({"content": [{"type": "text", "text": "API Error: too little"}]}),
        request: None,
        error: Some("unknown".into()),
        is_aborted: false,
    };
    it.news(EngineEvent::CompactionEnded { failure: Some(failure.message.clone()) });
    it.news(EngineEvent::Assistant(told)).end_turn_with(Outcome::ApiError(failure), 0);
    assert_eq!(it.seen().matches("too little").count(), 1, "{}", it.seen());
    assert_eq!(it.app.prompt.input.draft().display(), "next", "{}", it.seen());
    let seen = it.seen();
    let places = ["> /compact tests", "was not compacted: too little"].map(|text| seen.find(text));
    assert!(matches!(places, [Some(command), Some(why)] if command < why), "{seen}");
}

#[test]
fn prompt_that_was_sent_before_the_turn_of_another_began_does_not_come_back() {
    let mut it = Playing::new(60, 16);
    it.event(Event::News(News::Started(Box::new(facts()))));
    let recorded = |text: &str| EngineEvent::PromptRecorded {
        entry: text.into(),
        message: json!({"role": "user", "content": text}),
        timestamp: String::new(),
        attached: Vec::new(),
    };
    it.text("one").key(KeyCode::Enter).text("two").key(KeyCode::Enter).text("three").key(KeyCode::Enter);
    for text in ["one", "two"] {
        it.begin_turn().news(recorded(text)).end_turn();
        assert_eq!(it.app.prompt.input.draft().display(), "", "{}", it.seen());
    }
    it.begin_turn().end_turn();
    assert_eq!(it.app.prompt.input.draft().display(), "three", "what is refused comes back");
}

#[test]
fn commands_of_the_shell_that_wait_run_one_after_the_other() {
    let mut it = Playing::new(60, 16);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.begin_turn();
    for text in ["!one", "!two", "three"] {
        it.text(text).key(KeyCode::Enter);
    }
    let shell = |it: &Playing| match &it.sent()[..] {
        [Effect::Send(Command::Shell(shell))] => shell.command.clone(),
        other => panic!("{other:?}"),
    };
    it.end_turn();
    assert_eq!(shell(&it), "one");
    for (command, next) in [("one", "two"), ("two", "")] {
        it.news(EngineEvent::ShellStarted { call: "c".into(), command: command.into() });
        it.end_turn();
        match next {
            "" => assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("three")))]),
            next => assert_eq!(shell(&it), next),
        }
    }
}

#[test]
fn shift_tab_goes_round_the_modes() {
    let mut it = Playing::new(60, 12);
    let tab = Event::Input(InputEvent::Key(Key { shift: true, ..Key::plain(KeyCode::Tab) }));
    it.event(tab);
    assert_eq!(it.actions, [Effect::Send(Command::SetMode(Mode::AcceptEdits))]);
    assert!(it.seen().contains("accept edits on"), "{}", it.seen());
}

#[test]
fn start_dialogs_are_seen_at_every_width_and_answered() {
    let trust = || {
        StartQuestion::Trust(TrustQuestion { root: "/p".into(), grants: vec!["env: {\"A\":\"1\"}".into()] })
    };
    let questions = [
        (trust(), "Yes, I trust it", Effect::Answer(StartAnswer::Trust)),
        (
            StartQuestion::ExternalImports(vec!["/outside.md".into()]),
            "1. Yes",
            Effect::Answer(StartAnswer::ExternalImports(true)),
        ),
        (
            StartQuestion::InUse("Session x is in use".into()),
            "1. Look at it",
            Effect::Answer(StartAnswer::View),
        ),
    ];
    for (question, label, answer) in questions {
        for width in [20, 50, 80, 120] {
            let mut it = Playing::new(width, 24);
            it.event(Event::News(News::Asked(question.clone())));
            let joined = it.seen().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains(label), "{width}: {joined}");
            it.key(KeyCode::Char('1'));
            assert_eq!((it.actions.len(), it.actions.first()), (1, Some(&answer)), "{width}");
        }
    }
}

/// Neither Escape nor Enter, with which people wave a question away, is a yes that somebody may regret.
#[test]
fn question_that_is_waved_away_grants_nothing() {
    let leave = || Effect::Exit(ExitReason::Asked);
    let key = |has_other| UnapprovedKey { tail: "x".into(), has_other };
    let trust = TrustQuestion { root: "/p".into(), grants: Vec::new() };
    for (question, by_escape) in [
        (StartQuestion::Trust(trust), leave()),
        (
            StartQuestion::ExternalImports(vec!["/outside.md".into()]),
            Effect::Answer(StartAnswer::ExternalImports(false)),
        ),
        (StartQuestion::SettingsErrors(vec!["x".into()]), leave()),
        (StartQuestion::UnknownSettings(vec!["x".into()]), leave()),
        (StartQuestion::ApiKey(key(false)), Effect::Answer(StartAnswer::ApiKey(false))),
        (StartQuestion::ApiKey(key(true)), Effect::Answer(StartAnswer::ApiKey(false))),
        (StartQuestion::Bypass, leave()),
        (StartQuestion::NoCredentials(None), leave()),
        (StartQuestion::NoCredentials(Some(key(false))), leave()),
        (StartQuestion::InUse("x".into()), leave()),
    ] {
        for code in [KeyCode::Esc, KeyCode::Char('c')] {
            let mut it = Playing::new(80, 24);
            it.event(Event::News(News::Asked(question.clone())));
            let ctrl = code == KeyCode::Char('c');
            it.event(Event::Input(InputEvent::Key(Key { ctrl, ..Key::plain(code) })));
            assert_eq!(
                (it.actions.len(), it.actions.first()),
                (1, Some(&by_escape)),
                "{question:?} {code:?}"
            );
        }
    }
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Asked(StartQuestion::Bypass))).key(KeyCode::Enter);
    assert_eq!(it.actions, [leave()]);
}

#[test]
fn key_that_was_rejected_can_be_used_after_all() {
    let mut it = Playing::new(80, 24);
    let rejected = UnapprovedKey { tail: "wxyz".into(), has_other: false };
    it.event(Event::News(News::Asked(StartQuestion::NoCredentials(Some(rejected)))));
    assert!(it.seen().contains("…wxyz), and you said no to it"), "{}", it.seen());
    it.key(KeyCode::Char('2'));
    assert_eq!(it.actions, [Effect::Answer(StartAnswer::ApiKey(true))]);
}

#[test]
fn key_that_is_typed_for_the_first_run_is_never_shown() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Asked(StartQuestion::NoCredentials(None)))).key(KeyCode::Char('1'));
    it.text("sk-secret");
    assert!(!it.seen().contains("secret") && it.seen().contains("•••"), "{}", it.seen());
    it.key(KeyCode::Enter);
    assert_eq!(it.actions, [Effect::StoreKey("sk-secret".into())]);
}

#[test]
fn key_is_changed_and_forgotten_in_a_session() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.text("/login").key(KeyCode::Enter);
    it.text("sk-secret");
    assert!(!it.seen().contains("secret") && it.seen().contains("•••"), "{}", it.seen());
    it.key(KeyCode::Enter);
    assert_eq!(it.actions, [Effect::AskPanel(PanelRequest::StoreKey("sk-secret".into()))]);
    it.actions.clear();
    it.text("/login").key(KeyCode::Enter).text("sk").key(KeyCode::Esc);
    assert_eq!(it.actions, [], "whoever goes back keeps what there is");
    it.text("/logout").key(KeyCode::Enter);
    assert_eq!(it.actions.first(), Some(&Effect::AskPanel(PanelRequest::ForgetKey)));
}

#[test]
fn every_command_of_the_terminal_does_something() {
    let registry = CommandRegistry::builtin();
    for command in registry.iter_in_terminal() {
        let mut it = Playing::new(80, 24);
        it.text(&format!("/{}", command.name)).key(KeyCode::Enter);
        assert!(!it.seen().contains("is not there yet"), "/{}: {}", command.name, it.seen());
    }
}

#[test]
fn help_is_a_panel_that_lists_commands_and_closes() {
    for (width, height) in [(20, 5), (50, 12), (80, 24), (120, 40)] {
        let mut it = Playing::new(width, height);
        it.text("/help").key(KeyCode::Enter);
        assert!(it.seen().contains("❯ /clear"), "{width}: {}", it.seen());
        it.text("exit");
        assert!(it.seen().contains("❯ /exit"), "{width}: {}", it.seen());
        it.key(KeyCode::Enter);
        assert!(it.seen().contains("> /exit"), "{width}: {}", it.seen());
    }
}

#[test]
fn panel_opens_during_a_turn_and_text_goes_on_above_it() {
    let mut it = Playing::new(60, 24);
    it.begin_turn().text("/help").key(KeyCode::Enter);
    it.stream(StreamEvent::BlockStarted { index: 0, kind: "text".into(), name: None });
    it.stream(delta("One para")).stream(delta("graph."));
    assert!(it.seen().contains("One paragraph.") && it.seen().contains("· help"), "{}", it.seen());
    it.key(KeyCode::Esc);
    assert!(it.actions.is_empty() && !it.seen().contains("· help"), "{}", it.seen());
    it.key(KeyCode::Esc);
    assert_eq!(it.actions, [Effect::Send(Command::Interrupt)], "the next one interrupts");
}

#[test]
fn unknown_command_is_reported_and_a_path_is_not_one() {
    let mut it = Playing::new(80, 24);
    it.text("/mispelt now").key(KeyCode::Enter);
    assert!(it.sent().is_empty(), "skills are known once the session is there");
    it.event(Event::News(News::Started(Box::new(facts()))));
    assert!(it.sent().is_empty() && it.seen().contains("no command /mispelt"), "{}", it.seen());
    it.text("/etc/hosts is odd").key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("/etc/hosts is odd")))]);
}

fn facts() -> SessionFacts {
    SessionFacts {
        id: "0a0a0a0a-0001-4000-8000-000000000001".into(),
        title: None,
        model: "m".into(),
        mode: Mode::Default,
        may_bypass: false,
        answer_timeout: None,
        answer_countdown: None,
        warnings: Vec::new(),
        is_persistent: true,
        commands: Arc::new(CommandRegistry::builtin()),
        idle_notice: Duration::from_secs(60),
        interface: InterfaceSettings::default(),
        vars: None,
        initial_prompt: None,
        themes: Vec::new(),
        helper_sandboxes: Default::default(),
    }
}

#[test]
fn company_announcement_is_shown_at_the_start() {
    let mut it = Playing::new(60, 12);
    let interface =
        InterfaceSettings::from_value(&serde_json::json!({"companyAnnouncements": ["Fire drill at noon"]}));
    it.event(Event::News(News::Started(Box::new(SessionFacts { interface, ..facts() }))));
    assert!(it.seen().contains("Fire drill at noon"), "{}", it.seen());
}

#[test]
fn first_words_of_an_agent_are_said_unless_somebody_was_quicker() {
    let begins = || SessionFacts { initial_prompt: Some("Begin.".into()), ..facts() };
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(begins()))));
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("Begin.")))]);
    let mut it = Playing::new(80, 24);
    it.text("hello").key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("hello")))]);
    it.event(Event::News(News::Started(Box::new(begins()))));
    assert_eq!(it.sent(), [], "the engine puts them before what was said");
}

#[test]
fn status_of_a_hook_is_seen_while_it_runs() {
    let mut it = Playing::new(60, 12);
    let run = HookRunStarted {
        id: "h".into(),
        name: "Stop".into(),
        event: HookEvent::Stop,
        status: Some("Checking style\u{1b}[2J".into()),
    };
    it.begin_turn().news(EngineEvent::HookStarted(run.clone()));
    assert!(it.seen().contains("Checking style"), "{}", it.seen());
    it.news(EngineEvent::HookEnded(HookRunEnded {
        run,
        stdout: String::new(),
        stderr: String::new(),
        exit_code: Some(0),
        outcome: "success".into(),
        objection: None,
        message: None,
        is_stop: false,
    }));
    assert!(!it.seen().contains("Checking style"), "{}", it.seen());
}

#[test]
fn recap_is_asked_for_once_when_nobody_is_there() {
    let mut it = Playing::new(80, 12);
    it.event(Event::News(News::Started(Box::new(facts()))));
    for _ in 0..3 {
        it.app.schedule.turn_ended(it.now);
    }
    it.event(Event::Input(InputEvent::Focus(true))).wait(200_000);
    assert_eq!(it.sent(), [], "somebody looks");
    it.event(Event::Input(InputEvent::Focus(false)));
    let request = "recap-away".to_owned();
    let ask = Command::AskOnTheSide { request: request.clone(), task: loci_engine::SideTask::Recap };
    assert_eq!(it.sent(), [Effect::Send(ask)]);
    it.wait(200_000);
    assert_eq!(it.sent(), [], "once");
    it.news(EngineEvent::SideAnswered { request, outcome: Ok("The port\u{1b}[2J is\nfixed.".into()) });
    assert!(it.seen().contains("Recap: The port"), "{}", it.seen());
    let mut it = Playing::new(80, 12);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.news(EngineEvent::SettingsChanged(json!({"awaySummaryEnabled": false})));
    for _ in 0..3 {
        it.app.schedule.turn_ended(it.now);
    }
    it.wait(200_000);
    assert_eq!(it.sent(), [], "settings that change are followed");
}

#[test]
fn status_line_that_settings_add_counts_while_the_session_runs() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.news(EngineEvent::SettingsChanged(json!({"statusLine": {"type": "command", "command": "x"}})));
    let ask = Effect::Send(Command::Snapshot { request: "status-line".to_owned() });
    assert_eq!(it.sent(), [ask]);
    it.event(Event::News(News::StatusLine(Ok("MINE\n".to_owned()))));
    assert!(it.seen().contains("MINE"), "{}", it.seen());
    it.news(EngineEvent::SettingsChanged(json!({})));
    assert!(!it.seen().contains("MINE"), "{}", it.seen());
}

#[test]
fn tail_of_a_session_is_shown_before_the_session_and_not_twice() {
    let entry = |uuid: &str| {
        let line = json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": uuid}});
        Arc::new(loci_core::entry::Entry::parse(line.to_string()).unwrap())
    };
    for (whole, n_shown, is_told) in
        [(vec!["first", "last"], 1, false), (vec!["first", "last", "other"], 2, true)]
    {
        let mut it = Playing::new(80, 24);
        let blocks = vec![Block::Prompt { text: "last".into(), attachments: Vec::new() }];
        it.event(Event::News(News::Tail { blocks, entries: vec!["last".into()] }));
        assert!(it.seen().contains("> last"), "{}", it.seen());
        let entries = whole.iter().map(|uuid| entry(uuid)).collect();
        it.news(EngineEvent::Resumed(loci_engine::ResumedHistory { entries, lost: Vec::new() }));
        assert_eq!(it.seen().matches("> last").count(), n_shown, "{}", it.seen());
        assert_eq!(it.seen().contains("another branch"), is_told, "{}", it.seen());
    }
}

#[test]
fn resumed_answer_has_the_colours_of_its_code() {
    let mut it = Playing::new(80, 24);
    let markdown = "```rust\nlet resumed = 1;\n```\n".to_owned();
    let blocks = vec![Block::Answer { markdown }];
    it.event(Event::News(News::Tail { blocks, entries: vec!["e".into()] }));
    assert!(it.seen().contains("let resumed"), "it is seen while it waits: {}", it.seen());
    assert!(it.app.deadline().is_some(), "it is looked at again");
    // Time stands still here, so the line waits for the worker.
    let is_final = |it: &Playing| it.app.transcript.conversation.n_items() == 0;
    for _ in 0..20_000_000 {
        if is_final(&it) {
            break;
        }
        std::thread::yield_now();
        it.draw();
    }
    let row = it.screen.screen().rows(0, 80).position(|row| row.contains("let resumed")).unwrap();
    let cell = it.screen.screen().cell(u16::try_from(row).unwrap(), 2).unwrap();
    assert_ne!(cell.fgcolor(), vt100::Color::Default, "{}", it.seen());
}

#[test]
fn branch_of_the_session_at_hand_does_not_show_it_a_second_time() {
    let line = json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": "said before"}});
    let entry = Arc::new(loci_core::entry::Entry::parse(line.to_string()).unwrap());
    for (command, n_shown) in [("/branch", 1), ("/resume other", 2)] {
        let mut it = Playing::new(80, 24);
        it.event(Event::News(News::Started(Box::new(facts()))));
        let history = || loci_engine::ResumedHistory { entries: vec![entry.clone()], lost: Vec::new() };
        it.news(EngineEvent::Resumed(history()));
        it.text(command).key(KeyCode::Enter);
        it.event(Event::News(News::Engine(Box::new(RunnerEvent::Renewed(it.start().session)))));
        it.news(EngineEvent::Resumed(history()));
        assert_eq!(it.seen().matches("> said before").count(), n_shown, "{command}: {}", it.seen());
        it.ctrl('o');
        assert!(it.seen().contains("> said before"), "the transcript has it: {}", it.seen());
    }
}

#[test]
fn hooks_are_told_of_a_prompt_that_waits_and_not_while_somebody_types() {
    let mut it = Playing::new(60, 12);
    it.wait(100_000);
    assert_eq!(it.sent(), [], "nothing was said yet");
    it.begin_turn().wait(100_000);
    assert_eq!(it.sent(), [], "a turn is under way");
    it.app.session.work = None;
    it.wait(0).wait(59_000);
    assert_eq!(it.sent(), []);
    it.text("x").wait(59_000);
    assert_eq!(it.sent(), [], "somebody typed");
    it.wait(1_000);
    let notice = Command::Notify {
        kind: "idle_prompt".into(),
        message: "loci is waiting for your input".into(),
        title: None,
    };
    assert_eq!(it.sent(), [Effect::Send(notice)]);
    it.wait(100_000);
    assert_eq!(it.sent(), [], "once");
}
