//! The interface as plain lines: for a screen reader, and for a terminal that knows no escape sequences.

use std::time::Duration;

use loci_app::start::{StartAnswer, StartQuestion};
use loci_core::permission::Mode;
use loci_engine::{Answer, Command, EngineEvent, Question, QuestionKind, TurnStart};
use serde_json::json;

use super::{Playing, delta, facts};
use crate::app::{App, AppOptions, Effect, Event, ExitReason, News, PlainMode};
use crate::key::{InputEvent, Key, KeyCode};
use crate::screen::{PlainWriter, Size};
use loci_core::stream::StreamEvent;

/// The application, and all bytes that were printed.
struct Listening {
    app: App,
    writer: PlainWriter,
    printed: Vec<u8>,
    actions: Vec<Effect>,
    now: Duration,
}

impl Listening {
    fn new() -> Self {
        Self::with(PlainMode::ScreenReader("a test".into()))
    }

    fn with(plain: PlainMode) -> Self {
        let plain = Some(plain);
        let options =
            AppOptions { version: "1".into(), shown_cwd: "~/p".into(), plain, ..AppOptions::default() };
        let (writer, printed, actions) = (PlainWriter::default(), Vec::new(), Vec::new());
        Self { app: App::new(options), writer, printed, actions, now: Duration::from_secs(1) }
    }

    fn event(&mut self, event: Event) -> &mut Self {
        self.now += Duration::from_millis(1);
        self.actions = self.app.update(event, self.now);
        let frame = self.app.view(Size { width: 60, height: 20 });
        self.printed.extend(self.writer.draw(&frame, 60));
        self.app.update(Event::Drawn, self.now);
        self
    }

    fn key(&mut self, key: Key) -> &mut Self {
        self.event(Event::Input(InputEvent::Key(key)))
    }

    fn text_keys(&mut self, text: &str) {
        for letter in text.chars() {
            self.key(Key::plain(KeyCode::Char(letter)));
        }
    }

    fn news(&mut self, event: EngineEvent) -> &mut Self {
        let event = loci_engine::RunnerEvent::Session(event);
        self.event(Event::News(crate::app::News::Engine(Box::new(event))))
    }

    fn text(&self) -> String {
        String::from_utf8(self.printed.clone()).unwrap()
    }
}

fn turn_start() -> TurnStart {
    let playing = Playing::new(20, 10);
    playing.start()
}

#[test]
fn dumb_terminal_prints_a_question_once_and_no_spinner() {
    let mut it = Listening::with(PlainMode::Dumb);
    it.key(Key { shift: true, ..Key::plain(KeyCode::Tab) });
    assert!(it.text().contains("mode: accept edits on"), "{}", it.text());
    it.news(EngineEvent::TurnStarted(turn_start()));
    it.news(EngineEvent::Stream {
        event: StreamEvent::BlockStarted { index: 0, kind: "tool_use".into(), name: Some("Bash".into()) },
        first_after: None,
    });
    it.news(EngineEvent::QuestionAsked(super::panels::question()));
    for _ in 0..30 {
        it.now += Duration::from_millis(100);
        it.event(Event::Tick);
    }
    assert_eq!(it.text().matches("May this command run?").count(), 1, "{}", it.text());
    assert!(!it.text().contains("Waiting") && !it.text().contains("Bash("), "{}", it.text());
    it.news(EngineEvent::QuestionWithdrawn { question: "q1".into() });
    it.text_keys("/co");
    assert!(!it.text().contains("Waiting"), "{}", it.text());
}

#[test]
fn screen_reader_hears_labels_modes_and_deletions_and_no_escape_sequence() {
    let mut it = Listening::new();
    for letter in "hi".chars() {
        it.key(Key::plain(KeyCode::Char(letter)));
    }
    it.key(Key::plain(KeyCode::Backspace)).key(Key { shift: true, ..Key::plain(KeyCode::Tab) });
    it.news(EngineEvent::TurnStarted(turn_start()));
    assert_eq!(it.actions, [Effect::Write("\x1b]133;C\x07".into())], "the turn's beginning is marked");
    it.news(EngineEvent::Stream {
        event: StreamEvent::BlockStarted { index: 0, kind: "text".into(), name: None },
        first_after: None,
    });
    it.news(EngineEvent::Stream { event: delta("Hello.\n\nAgain."), first_after: None });
    let text = it.text();
    for expected in
        ["Screen reader mode is on (a test)", "deleted i", "mode: accept edits on", "claude: Hello."]
    {
        assert!(text.contains(expected), "{expected}: {text:?}");
    }
    assert!(!text.contains('\x1b') && !text.contains("Waiting") && !text.contains("shortcuts"), "{text:?}");
    assert_eq!(it.app.session.mode, Mode::Default, "the turn says which mode it is");
}

#[test]
fn menu_is_answered_by_a_typed_number() {
    let ask = || StartQuestion::ExternalImports(vec!["~/a.md".into()]);
    for (answer, expected) in [("2", false), ("1", true), ("yes", true), ("no", false)] {
        let mut it = Listening::new();
        it.event(Event::News(News::Asked(ask())));
        let text = it.text();
        assert!(
            text.contains("question: ") && text.contains("\n1. Yes") && text.contains("1 to 2"),
            "{text:?}"
        );
        assert!(!text.contains('❯'), "{text:?}");
        for wrong in ["7", ""] {
            it.text_keys(wrong);
            it.key(Key::plain(KeyCode::Enter));
            assert_eq!(it.actions, [], "nothing is answered");
            assert!(it.text().contains("Type a number from 1 to 2"), "{:?}", it.text());
        }
        it.text_keys(answer);
        assert_eq!(it.actions, [], "not before Enter");
        it.key(Key::plain(KeyCode::Enter));
        assert_eq!(it.actions, [Effect::Answer(StartAnswer::ExternalImports(expected))], "{answer}");
    }
}

#[test]
fn yes_and_no_are_the_answers_that_say_so() {
    let answered = |question: &StartQuestion, word: &str| {
        let mut it = Listening::new();
        it.event(Event::News(News::Asked(question.clone())));
        it.text_keys(word);
        it.key(Key::plain(KeyCode::Enter));
        let is_told = it.text().contains("Type a number");
        (std::mem::take(&mut it.actions), is_told)
    };
    let leave = || vec![Effect::Exit(ExitReason::Asked)];
    let bypass = StartQuestion::Bypass;
    for word in ["no", "n", "No"] {
        assert_eq!(answered(&bypass, word), (leave(), false), "{word}");
    }
    assert_eq!(answered(&bypass, "yes"), (vec![Effect::Answer(StartAnswer::Bypass)], false));
    for word in ["yes", "no"] {
        let in_use = StartQuestion::InUse("x".into());
        assert_eq!(answered(&in_use, word), (Vec::new(), true), "neither is an answer to this: {word}");
    }
}

#[test]
fn list_of_a_panel_has_numbers_that_choose() {
    let mut it = Listening::new();
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.text_keys("/help");
    it.key(Key::plain(KeyCode::Enter));
    assert!(it.text().contains("❯ 1. /clear"), "{:?}", it.text());
    it.key(Key::plain(KeyCode::Char('2'))).key(Key::plain(KeyCode::Enter));
    assert!(
        !it.app.panel.is_open() && it.app.prompt.input.marked_text().starts_with("/compact"),
        "{:?}",
        it.text()
    );
}

#[test]
fn several_answers_are_chosen_by_their_numbers_at_once() {
    let option = |label: &str| json!({"label": label, "description": ""});
    let input = json!({"questions": [{"question": "How?", "header": "How", "multiSelect": true,
        "options": [option("x"), option("y"), option("z")]}]});
    let questions = loci_core::user_question::parse_questions(&input).unwrap();
    let question = Question {
        id: "q".into(),
        agent: None,
        kind: QuestionKind::Answers(questions),
        tool: "AskUserQuestion".into(),
        server: None,
        call: "t".into(),
        input,
        reason: String::new(),
        reason_kind: "other".into(),
        blocked_path: None,
        links: Vec::new(),
        suggestions: Vec::new(),
    };
    let mut it = Listening::new();
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.news(EngineEvent::TurnStarted(turn_start())).news(EngineEvent::QuestionAsked(question));
    it.now += Duration::from_secs(2);
    it.event(Event::Tick);
    it.text_keys("3, 1");
    it.key(Key::plain(KeyCode::Enter));
    assert_eq!(it.actions, [], "{:?}", it.text());
    it.key(Key::plain(KeyCode::Enter));
    let [Effect::Send(Command::Answer { answer: Answer::Allow { input: Some(input), .. }, .. })] =
        &it.actions[..]
    else {
        panic!("{:?} {:?}", it.actions, it.text())
    };
    assert_eq!(input["answers"], json!({"How?": "x, z"}));
}
