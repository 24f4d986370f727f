//! What is typed, pasted and recalled.

use loci_core::ids::ToolUseId;
use loci_core::message::{Block as MessageBlock, Content};
use loci_core::stream::StreamEvent;
use loci_engine::{Command, EngineEvent, Prompt, ShellCommand, ShellOutput, ToolProgress, UserMessage};
use serde_json::json;

use super::Playing;
use crate::app::{Effect, Event, News, SessionFacts};
use crate::interface_settings::InterfaceSettings;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::input::{
    Draft, FileAnswer, FileSource, HistoryNews, IgnoredFiles, InputMode, PastPrompt, PastedImage,
    PictureSource, TokenKind, past_prompt,
};
use crate::key::{InputEvent, KeyCode, TerminalSignal};

impl Playing {
    fn paste(&mut self, text: &str) -> &mut Self {
        self.event(Event::Input(InputEvent::Paste(text.to_owned())))
    }

    fn past(&mut self, news: HistoryNews) -> &mut Self {
        self.event(Event::News(News::History(news)))
    }

    fn picture(&mut self, number: u32, read: Result<PastedImage, String>) -> &mut Self {
        self.event(Event::News(News::Picture { number, read: Box::new(read) }))
    }
}

fn image() -> PastedImage {
    PastedImage { block: MessageBlock::new_image("image/png", "AA=="), path: None }
}

fn with_picture(text: &str) -> Effect {
    let blocks = vec![MessageBlock::new_text(text), image().block];
    Effect::Send(Command::Prompt(Prompt::new(Content::Blocks(blocks), None)))
}

#[test]
fn pasted_picture_goes_to_the_model_behind_its_text() {
    let mut it = Playing::new(60, 12);
    it.text("what is ").ctrl('v');
    assert_eq!(it.actions, [Effect::ReadPicture { number: 1, source: PictureSource::Clipboard }]);
    assert!(it.seen().contains("> what is [Image #1]"), "{}", it.seen());
    it.picture(1, Ok(image())).text(" here?").key(KeyCode::Enter);
    assert_eq!(it.sent(), [with_picture("what is [Image #1] here?")]);
    assert!(it.seen().contains("> what is [Image #1] here?"), "{}", it.seen());
}

#[test]
fn prompt_that_is_sent_while_a_picture_is_read_waits_for_it() {
    let mut it = Playing::new(80, 12);
    it.ctrl('v').text("look").key(KeyCode::Enter);
    assert!(it.actions.is_empty() && it.seen().contains("still being read"), "{}", it.seen());
    it.picture(1, Ok(image()));
    assert_eq!(it.sent(), [with_picture("[Image #1]look")]);
    it.ctrl('v').key(KeyCode::Enter).text(".").picture(2, Ok(image()));
    assert!(it.actions.is_empty(), "whoever types on wants to say more");
}

#[test]
fn picture_that_cannot_be_read_is_told_and_nothing_is_sent() {
    let mut it = Playing::new(80, 14);
    it.text("see ")
        .ctrl('v')
        .key(KeyCode::Enter)
        .picture(1, Err("There is no picture on the clipboard".into()));
    assert!(it.actions.is_empty());
    assert!(it.seen().contains("There is no picture on the clipboard"), "{}", it.seen());
    assert!(it.seen().contains("> see") && !it.seen().contains("[Image"), "{}", it.seen());
}

#[test]
fn dropped_files_become_pictures_and_other_text_stays_text() {
    let mut it = Playing::new(80, 12);
    it.paste("/tmp/a.png '/tmp/b c.jpg'");
    let read = |number, path: &str| Effect::ReadPicture { number, source: PictureSource::File(path.into()) };
    assert_eq!(it.actions, [read(1, "/tmp/a.png"), read(2, "/tmp/b c.jpg")]);
    assert!(it.seen().contains("> [Image #1] [Image #2]"), "{}", it.seen());
    it.picture(1, Ok(image())).picture(2, Err("no".into()));
    assert!(it.seen().contains("> [Image #1] '/tmp/b c.jpg'"), "{}", it.seen());
    let mut it = Playing::new(80, 12);
    it.paste("/tmp/a.png is a picture");
    assert!(it.actions.is_empty() && it.seen().contains("> /tmp/a.png is"), "{}", it.seen());
}

#[test]
fn queued_prompt_comes_back_with_its_picture() {
    let mut it = Playing::new(60, 16);
    it.begin_turn().text("see ").ctrl('v').picture(1, Ok(image())).key(KeyCode::Enter);
    let Some(Effect::Send(Command::Queue(queued))) = it.sent().pop() else { panic!("{:?}", it.actions) };
    it.text("more").news(EngineEvent::QueueTakenBack(vec![queued]));
    assert!(it.seen().contains("> see [Image #1]"), "{}", it.seen());
    let blocks = vec![MessageBlock::new_text("see [Image #1]\nmore"), image().block];
    assert_eq!(it.app.prompt.input.draft().content(), Content::Blocks(blocks));
}

fn typed_before(text: &str, project: &str, session: &str) -> PastPrompt {
    let draft = match text.strip_prefix('!') {
        Some(command) => Draft::plain(InputMode::Shell, command),
        None => Draft::plain(InputMode::Prompt, text),
    };
    past_prompt(draft, 1, Path::new(project), Some(session))
}

#[test]
fn sent_prompts_are_remembered_once_and_recalled_with_up() {
    let mut it = Playing::new(60, 14);
    it.past(HistoryNews::Project(vec![typed_before("older", "", "s")]));
    it.text("one").key(KeyCode::Enter);
    assert!(matches!(it.actions.last(), Some(Effect::Remember(prompt)) if prompt.draft.display() == "one"));
    it.text("one").key(KeyCode::Enter);
    assert!(!it.actions.iter().any(|action| matches!(action, Effect::Remember(_))), "the same again");
    it.text("draft").key(KeyCode::Up);
    assert!(it.app.prompt.input.draft().display() == "one");
    it.ctrl('p');
    assert_eq!(it.app.prompt.input.draft().display(), "older");
    it.key(KeyCode::Down).ctrl('n');
    assert_eq!(it.app.prompt.input.draft().display(), "draft", "what was being typed comes back");
}

#[test]
fn up_that_is_pressed_before_the_history_is_read_counts_when_it_is() {
    let mut it = Playing::new(60, 14);
    let past = || HistoryNews::Project(vec![typed_before("newer", "", "s"), typed_before("older", "", "s")]);
    it.key(KeyCode::Up).key(KeyCode::Up).past(past());
    assert_eq!(it.app.prompt.input.draft().display(), "older");
    let mut it = Playing::new(60, 14);
    it.key(KeyCode::Up).text("x").past(past());
    assert_eq!(it.app.prompt.input.draft().display(), "x", "whoever types on wants something else");
}

#[test]
fn up_moves_in_the_text_before_it_goes_to_the_history() {
    let mut it = Playing::new(60, 14);
    it.past(HistoryNews::Project(vec![typed_before("older", "", "s")]));
    it.text("a").ctrl('j').text("b").key(KeyCode::Up);
    assert_eq!(it.app.prompt.input.draft().display(), "a\nb");
    it.key(KeyCode::Up);
    assert_eq!(it.app.prompt.input.draft().display(), "older");
}

#[test]
fn escape_twice_puts_the_draft_into_the_history() {
    let mut it = Playing::new(60, 12);
    it.text("half a thought").key(KeyCode::Esc);
    assert!(it.seen().contains("Press Esc again"), "{}", it.seen());
    it.key(KeyCode::Esc);
    assert!(
        matches!(it.actions.as_slice(), [Effect::Remember(prompt)] if prompt.draft.display() == "half a thought")
    );
    assert!(it.app.prompt.input.is_empty());
    it.key(KeyCode::Up);
    assert_eq!(it.app.prompt.input.draft().display(), "half a thought");
}

#[test]
fn prompt_that_was_put_aside_comes_back_behind_what_was_sent_first() {
    let mut it = Playing::new(60, 12);
    it.text("long thought").ctrl('s').text("short").key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("short")))]);
    assert_eq!(it.app.prompt.input.marked_text(), "long thought|");
    assert!(it.seen().contains("put aside is back"), "{}", it.seen());
    it.ctrl('s').text("!ls").key(KeyCode::Enter);
    assert_eq!(it.app.prompt.input.marked_text(), "long thought|", "behind a command of the shell, too");
    it.text(" on").key(KeyCode::Enter);
    assert!(it.app.prompt.input.is_empty(), "it comes back once");
}

#[test]
fn what_is_typed_or_put_aside_when_loci_ends_is_remembered() {
    for signal in [TerminalSignal::Terminate, TerminalSignal::HangUp] {
        let mut it = Playing::new(60, 12);
        it.text("aside").ctrl('s').text("half a thought").event(Event::Input(InputEvent::Signal(signal)));
        let kept: Vec<String> = it
            .actions
            .iter()
            .map(|action| match action {
                Effect::Remember(prompt) => prompt.draft.display(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(kept[..2], ["aside", "half a thought"], "{kept:?}");
        assert!(matches!(it.actions.last(), Some(Effect::Exit(_))), "{kept:?}");
    }
}

#[test]
fn lines_of_a_file_stand_behind_the_name_that_was_completed() {
    let mut it = Playing::new(60, 12);
    let complete = |it: &mut Playing| {
        it.text("@ma").event(files(TokenKind::Mention, "ma", &["src/main.rs"])).key(KeyCode::Tab);
    };
    complete(&mut it);
    it.text("#L1-2 and ");
    assert_eq!(it.app.prompt.input.marked_text(), "@src/main.rs#L1-2 and |");
    complete(&mut it);
    it.text("fix #12");
    assert_eq!(it.app.prompt.input.marked_text(), "@src/main.rs#L1-2 and @src/main.rs fix #12|");
}

#[test]
fn search_finds_older_prompts_in_each_scope() {
    let mut it = Playing::new(70, 12);
    it.text("draft").ctrl('r');
    assert_eq!(it.actions, [Effect::LoadHistory]);
    let prompts: Arc<[PastPrompt]> = vec![
        typed_before("fix the parser", "/elsewhere", "other"),
        typed_before("fix the tests", "", "other"),
        typed_before("fix it all", "", "other"),
    ]
    .into();
    it.text("fix").past(HistoryNews::Everywhere { prompts, is_all: true });
    assert!(it.seen().contains("search all projects: fix  fix the parser"), "{}", it.seen());
    it.ctrl('r');
    assert!(it.seen().contains("fix the tests"), "{}", it.seen());
    it.ctrl('s');
    assert!(it.seen().contains("search this session, no match"), "{}", it.seen());
    it.ctrl('s');
    assert!(it.seen().contains("search this project: fix  fix the tests"), "{}", it.seen());
    it.key(KeyCode::Tab);
    assert_eq!(it.app.prompt.input.draft().display(), "fix the tests");
    it.ctrl('r').text("x").ctrl('c');
    assert_eq!(it.app.prompt.input.draft().display(), "fix the tests", "what was there comes back");
}

#[test]
fn enter_puts_what_the_search_found_into_the_prompt() {
    let mut it = Playing::new(70, 12);
    let prompts: Arc<[PastPrompt]> = vec![typed_before("run the tests", "", "s")].into();
    it.ctrl('r').past(HistoryNews::Everywhere { prompts, is_all: true }).text("tests").key(KeyCode::Enter);
    assert_eq!(it.sent(), [], "what it did once it need not do again");
    assert_eq!(it.app.prompt.input.marked_text(), "run the tests|");
    it.key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("run the tests")))]);
}

#[test]
fn history_that_cannot_be_kept_is_told_once() {
    let mut it = Playing::new(70, 14);
    it.past(HistoryNews::Failed("no room".into())).past(HistoryNews::Failed("no room".into()));
    assert_eq!(it.seen().matches("no room").count(), 1, "{}", it.seen());
}

#[test]
fn pasted_text_that_is_gone_is_told_when_it_is_sent() {
    let mut it = Playing::new(90, 14);
    let draft = Draft::from_display(InputMode::Prompt, "fix [Pasted text #1 +9 lines]", &[]);
    it.past(HistoryNews::Project(vec![past_prompt(draft, 1, Path::new(""), None)]));
    it.key(KeyCode::Up).key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("fix")))]);
    assert!(it.seen().contains("Sent without [Pasted text #1 +9 lines]"), "{}", it.seen());
}

fn files(kind: TokenKind, query: &str, found: &[&str]) -> Event {
    let found = found.iter().map(|path| ((*path).to_owned(), String::new())).collect();
    Event::News(News::Files(FileAnswer {
        kind,
        query: query.into(),
        found,
        is_reading: false,
        failure: None,
    }))
}

#[test]
fn commands_are_completed_and_run_by_what_is_typed_now() {
    let mut it = Playing::new(80, 20);
    it.text("/");
    assert!(it.seen().contains("/clear") && it.seen().contains("/compact"), "{}", it.seen());
    it.text("comp");
    assert!(it.seen().contains("> /compact") && !it.seen().contains("/clear"), "{}", it.seen());
    it.key(KeyCode::Tab);
    assert_eq!(it.app.prompt.input.draft().display(), "/compact ");
    assert!(it.seen().contains("/compact [what to keep"), "what it takes is told: {}", it.seen());
    let mut it = Playing::new(80, 20);
    it.text("/comp").key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("/compact")))]);
    // A name that is typed whole is never another one.
    it.text("/clear").key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("/clear")))]);
}

#[test]
fn escape_closes_the_menu_and_leaves_the_text() {
    let mut it = Playing::new(80, 20);
    it.text("/c").key(KeyCode::Esc);
    assert!(!it.seen().contains("/clear") && it.app.prompt.input.draft().display() == "/c", "{}", it.seen());
    it.text("l");
    assert!(!it.seen().contains("/clear"), "it stays closed for this word: {}", it.seen());
}

#[test]
fn menu_is_gone_through_with_the_arrows() {
    let mut it = Playing::new(80, 20);
    it.text("/").key(KeyCode::Down).key(KeyCode::Down).key(KeyCode::Tab);
    assert_eq!(it.app.prompt.input.draft().display(), "/compact ");
}

#[test]
fn files_are_asked_for_by_what_stands_at_the_caret_and_late_answers_are_dropped() {
    let mut it = Playing::new(80, 20);
    it.text("see @m");
    let asked = |query: &str| Effect::AskFiles {
        source: FileSource::Project(IgnoredFiles::LeftOut),
        kind: TokenKind::Mention,
        query: query.into(),
    };
    assert_eq!(it.actions, [asked("m")]);
    it.text("a");
    assert_eq!(it.actions, [asked("ma")]);
    it.event(files(TokenKind::Mention, "m", &["moon.rs"]));
    assert!(!it.seen().contains("moon.rs"), "the answer to an older question: {}", it.seen());
    it.key(KeyCode::Tab);
    assert_eq!(it.app.prompt.input.draft().display(), "see @ma", "nothing to take yet");
    it.event(files(TokenKind::Mention, "ma", &["src/main.rs", "map.rs"]));
    assert_eq!(
        it.app.prompt.input.draft().display(),
        "see @src/main.rs ",
        "Tab takes the first as soon as it is there"
    );
}

#[test]
fn directory_is_completed_behind_commands_that_take_one() {
    for name in ["cd", "add-dir"] {
        let mut it = Playing::new(80, 20);
        it.event(Event::News(News::Started(Box::new(super::facts()))));
        it.text(&format!("/{name} my pro"));
        let asked = Effect::AskFiles {
            source: FileSource::Project(IgnoredFiles::LeftOut),
            kind: TokenKind::Directory,
            query: "my pro".into(),
        };
        assert_eq!(it.actions, [asked], "all that stands there is the path");
        it.event(files(TokenKind::Directory, "my pro", &["my project/", "my promise/"]));
        assert!(it.seen().contains("my promise/"), "{}", it.seen());
        it.key(KeyCode::Tab);
        assert_eq!(it.app.prompt.input.draft().display(), format!("/{name} my project/"));
        assert!(matches!(&it.actions[..], [Effect::AskFiles { query, .. }] if query == "my project/"));
    }
    let mut it = Playing::new(80, 20);
    it.event(Event::News(News::Started(Box::new(super::facts()))));
    it.text("/compact sr");
    assert!(it.actions.is_empty(), "{:?}", it.actions);
}

#[test]
fn question_that_goes_on_by_itself_is_counted_down() {
    let mut it = Playing::new(80, 24);
    let interface = InterfaceSettings::from_value(&json!({"askUserQuestionTimeout": "60s"}));
    it.event(Event::News(News::Started(Box::new(SessionFacts { interface, ..super::facts() }))));
    let input = json!({"questions": [{"question": "Which?", "header": "Which",
        "options": [{"label": "One", "description": ""}, {"label": "Two", "description": ""}], "multiSelect": false}]});
    let questions = loci_core::user_question::parse_questions(&input).unwrap();
    it.news(EngineEvent::QuestionAsked(loci_engine::Question {
        id: "q".into(),
        agent: None,
        tool: "AskUserQuestion".into(),
        server: None,
        call: "c".into(),
        input,
        kind: loci_engine::QuestionKind::Answers(questions),
        reason: String::new(),
        reason_kind: "other".into(),
        blocked_path: None,
        links: Vec::new(),
        suggestions: Vec::new(),
    }));
    it.wait(30_000).event(Event::Tick);
    assert!(!it.seen().contains("by itself"), "{}", it.seen());
    let begins = it.app.deadline().unwrap();
    assert!(begins > it.now, "it is woken when the last seconds begin");
    it.now = begins;
    it.event(Event::Tick);
    assert!(it.seen().contains("goes on by itself in 20 s"), "{}", it.seen());
    assert!(it.app.deadline().is_some_and(|next| next <= it.now + Duration::from_secs(1)));
    it.key(KeyCode::Down);
    assert!(!it.seen().contains("by itself in"), "a key begins the wait anew: {}", it.seen());
    it.wait(61_000);
    assert!(matches!(it.sent().first(), Some(Effect::Send(Command::Answer { .. }))), "{:?}", it.actions);
}

#[test]
fn enter_takes_a_file_that_is_offered_and_does_not_send() {
    let mut it = Playing::new(80, 20);
    it.text("@ma").event(files(TokenKind::Mention, "ma", &["src/main.rs"])).key(KeyCode::Enter);
    assert!(it.sent().is_empty());
    assert_eq!(it.app.prompt.input.draft().display(), "@src/main.rs ");
    it.text("@ma").key(KeyCode::Enter);
    let expected = Prompt::text("@src/main.rs @ma");
    assert_eq!(
        it.sent(),
        [Effect::Send(Command::Prompt(expected))],
        "an answer that is not there is not waited for"
    );
    let mut it = Playing::new(60, 12);
    it.text("@ma").event(files(TokenKind::Mention, "ma", &["ma", "map.rs"])).key(KeyCode::Enter);
    assert_eq!(it.sent().len(), 1, "a name that is typed whole is sent");
}

#[test]
fn enter_behind_a_tab_waits_for_what_the_tab_takes() {
    let sent = |text: &str| [Effect::Send(Command::Prompt(Prompt::text(text)))];
    let mut it = Playing::new(80, 20);
    it.text("@ma").key(KeyCode::Tab).key(KeyCode::Enter);
    assert!(it.sent().is_empty(), "keys count in the order in which they were typed");
    it.event(files(TokenKind::Mention, "ma", &["src/main.rs"]));
    assert_eq!(it.sent(), sent("@src/main.rs"));
    assert_eq!(it.app.prompt.input.draft().display(), "");
    it.text("@no").key(KeyCode::Tab).key(KeyCode::Enter);
    it.event(files(TokenKind::Mention, "no", &[]));
    assert_eq!(it.sent(), sent("@no"), "there is nothing to take");
    it.text("@ma").key(KeyCode::Tab).key(KeyCode::Enter).key(KeyCode::Enter);
    assert_eq!(it.sent(), sent("@ma"), "who presses it twice does not wait");
}

#[test]
fn directory_that_is_taken_is_looked_into() {
    let mut it = Playing::new(80, 20);
    it.text("@sr").event(files(TokenKind::Mention, "sr", &["src/"])).key(KeyCode::Tab);
    assert_eq!(it.app.prompt.input.draft().display(), "@src/");
    assert!(
        matches!(it.actions.as_slice(), [Effect::AskFiles { query, .. }] if query == "src/"),
        "{:?}",
        it.actions
    );
}

#[test]
fn shell_mode_completes_paths_and_earlier_commands() {
    let mut it = Playing::new(80, 20);
    it.past(HistoryNews::Project(vec![typed_before("!cargo test -p loci-tui", "", "s")]));
    it.text("!cargo t").key(KeyCode::Tab);
    assert_eq!(it.app.prompt.input.draft().display(), "cargo test -p loci-tui");
    it.ctrl('u').text("cat ./R").event(files(TokenKind::ShellPath, "./R", &["./README.md"]));
    assert!(it.seen().contains("./README.md"), "{}", it.seen());
    it.key(KeyCode::Tab);
    assert_eq!(it.app.prompt.input.draft().display(), "cat ./README.md ");
}

#[test]
fn shell_command_runs_in_the_session_and_is_seen_as_it_prints() {
    let mut it = Playing::new(80, 20);
    it.text("!ls -l").key(KeyCode::Enter);
    assert!(it.sent().is_empty(), "what settings say of it is not known yet");
    it.event(Event::News(News::Started(Box::new(super::facts()))));
    let shell = ShellCommand { command: "ls -l".into(), is_answered: true, ran: None };
    assert_eq!(it.sent(), [Effect::Send(Command::Shell(shell))]);
    let call = ToolUseId::new("shell_1");
    it.begin_turn().news(EngineEvent::ShellStarted { call: call.clone(), command: "ls -l".into() });
    let progress = ToolProgress::Output("total 0\n".into());
    it.news(EngineEvent::Progress { call: call.clone(), progress });
    assert!(it.seen().contains("! ls -l") && it.seen().contains("total 0"), "{}", it.seen());
    it.ctrl('b');
    assert_eq!(it.sent(), [Effect::Send(Command::MoveToBackground { call: None })]);
    let output = ShellOutput {
        stdout: "total 0\nfile".into(),
        stderr: String::new(),
        exit_code: Some(2),
        is_interrupted: false,
    };
    it.news(EngineEvent::ShellEnded { call, output });
    assert_eq!(it.seen().matches("! ls -l").count(), 1, "{}", it.seen());
    assert!(it.seen().contains("exit code 2"), "{}", it.seen());
    it.text("!pwd").key(KeyCode::Enter);
    assert!(it.sent().is_empty(), "during a turn it waits");
}

#[test]
fn own_key_bindings_count_as_soon_as_they_are_read_and_faults_are_told() {
    let mut it = Playing::new(90, 16);
    let json = r#"{"bindings":[{"context":"Chat","bindings":{"ctrl+e":"chat:stash","f1":"no:such"}}]}"#;
    it.event(Event::News(News::Keys(Ok(Some(json.into())))));
    assert!(it.seen().contains("`no:such` is no action"), "{}", it.seen());
    it.text("draft").ctrl('e');
    assert!(it.app.prompt.input.is_empty(), "the key is bound to the stash");
    it.event(Event::News(News::Keys(Ok(None)))).ctrl('s').ctrl('e');
    assert_eq!(it.app.prompt.input.draft().display(), "draft", "and to nothing any more");
}

#[test]
fn prompt_goes_to_the_editor_and_comes_back() {
    let mut it = Playing::new(60, 12);
    it.text("one").ctrl('g');
    assert_eq!(
        it.actions,
        [Effect::EditDraft { draft: Draft::plain(InputMode::Prompt, "one"), answer: None }]
    );
    it.ctrl('x').ctrl('e');
    assert!(matches!(it.actions.as_slice(), [Effect::EditDraft { .. }]));
    let edited = Draft::plain(InputMode::Prompt, "one\ntwo");
    it.event(Event::News(News::Edited(Box::new(Ok(edited)))));
    assert!(it.seen().contains("> one\n  two"), "{}", it.seen());
    it.event(Event::News(News::Edited(Box::new(Err("The editor did not end well".into())))));
    assert!(it.seen().contains("did not end well") && it.seen().contains("> one"), "{}", it.seen());
}

#[test]
fn person_who_looks_elsewhere_is_called_when_hooks_are_told() {
    for (focus, is_called) in [(None, true), (Some(true), false), (Some(false), true)] {
        let mut it = Playing::new(60, 12);
        if let Some(is_focused) = focus {
            it.event(Event::Input(InputEvent::Focus(is_focused)));
        }
        it.begin_turn().end_turn().wait(100_000);
        let call = Effect::CallPerson("loci is waiting for your input".into());
        assert_eq!(it.actions.contains(&call), is_called, "{focus:?}: {:?}", it.actions);
        assert!(it.sent().iter().any(|sent| matches!(sent, Effect::Send(Command::Notify { .. }))));
    }
}

#[test]
fn redraw_twice_shows_what_was_said_once_more() {
    let mut it = Playing::new(60, 20);
    it.begin_turn().news(EngineEvent::Warning("mind the gap".into()));
    it.ctrl('l');
    assert_eq!(it.actions, [Effect::Repaint]);
    it.ctrl('l');
    assert_eq!(it.actions, [Effect::RepaintAll]);
    assert_eq!(it.seen().matches("mind the gap").count(), 2, "{}", it.seen());
}

#[test]
fn calls_that_only_look_are_told_in_one_line() {
    let mut it = Playing::new(80, 20);
    it.begin_turn();
    for (id, file) in [("t1", "a.rs"), ("t2", "b.rs")] {
        let block = json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": file}});
        let block = MessageBlock::from_value(&block).unwrap();
        it.stream(StreamEvent::BlockDone { index: 0, block });
    }
    for id in ["t1", "t2"] {
        let message =
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]});
        let (entry, timestamp) = ("e".into(), String::new());
        it.news(EngineEvent::User(UserMessage {
            entry,
            message,
            tool_use_result: None,
            is_synthetic: false,
            timestamp,
        }));
    }
    assert!(it.seen().contains("Read(a.rs, b.rs)"), "{}", it.seen());
    it.news(EngineEvent::Warning("next".into()));
    assert_eq!(it.seen().matches("Read(").count(), 1, "{}", it.seen());
}

#[test]
fn failure_of_a_call_is_shown_without_the_marks_for_the_model() {
    let mut it = Playing::new(80, 20);
    it.begin_turn();
    let block = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}});
    it.stream(StreamEvent::BlockDone { index: 0, block: MessageBlock::from_value(&block).unwrap() });
    let content = json!([{"type": "tool_result", "tool_use_id": "t1", "is_error": true,
        "content": "<tool_use_error>it needs a file</tool_use_error>"}]);
    it.news(EngineEvent::User(UserMessage {
        entry: "e".into(),
        message: json!({"role": "user", "content": content}),
        tool_use_result: None,
        is_synthetic: false,
        timestamp: String::new(),
    }));
    let seen = it.seen();
    assert!(seen.contains("it needs a file") && !seen.contains("tool_use_error"), "{seen}");
}

#[test]
fn suggestion_is_asked_for_where_it_is_wanted_and_taken_with_a_key() {
    let begin = |is_wanted: bool| {
        let mut it = Playing::new(80, 20);
        let settings = json!({"promptSuggestionEnabled": is_wanted});
        it.event(Event::News(News::Started(Box::new(super::facts()))));
        it.news(EngineEvent::SettingsChanged(settings));
        for _ in 0..2 {
            it.begin_turn().end_turn();
        }
        it
    };
    assert!(begin(false).sent().is_empty());
    let mut it = begin(true);
    let task = loci_engine::SideTask::Suggestion;
    assert_eq!(it.sent(), [Effect::Send(Command::AskOnTheSide { request: "suggestion".into(), task })]);
    let answer = |it: &mut Playing, text: &str| {
        let outcome = Ok(text.to_owned());
        it.news(EngineEvent::SideAnswered { request: "suggestion".into(), outcome });
    };
    answer(&mut it, "now run the tests");
    assert!(it.seen().contains("> now run the tests"), "{}", it.seen());
    assert!(it.app.prompt.input.is_empty());
    it.text("x").key(KeyCode::Backspace);
    assert!(!it.seen().contains("now run"), "typing dismisses it: {}", it.seen());
    answer(&mut it, "now run the tests");
    it.key(KeyCode::Right);
    assert_eq!(it.app.prompt.input.draft().display(), "now run the tests");
    it.ctrl('c');
    answer(&mut it, "commit");
    it.key(KeyCode::Tab).key(KeyCode::Enter);
    assert_eq!(it.sent(), [Effect::Send(Command::Prompt(Prompt::text("commit")))]);
    answer(&mut it, "too late");
    it.begin_turn();
    assert!(!it.seen().contains("too late") || it.app.prompt.input.is_empty());
}

#[test]
fn command_gets_the_terminal_outside_a_sandbox_only_where_that_is_asked_for_and_allowed() {
    let words = Some("sandbox: full, no hosts");
    for (sandbox, is_strict, typed, said) in [
        (None, false, "!vim x", ""),
        (None, false, "!!vim x", ""),
        (words, false, "!vim x", "`!!vim x` gives it yours"),
        (words, false, "!!vim x", ""),
        (words, true, "!vim x", "sandbox.allowUnsandboxedCommands"),
        (words, true, "!!vim x", "sandbox.allowUnsandboxedCommands"),
    ] {
        let mut it = Playing::new(100, 20);
        it.event(Event::News(News::Started(Box::new(super::facts()))));
        it.app.session.sandbox = sandbox.map(str::to_owned);
        it.app.session.is_sandbox_strict = is_strict;
        it.text(typed).key(KeyCode::Enter);
        let asks_for_place = it.sent().iter().any(|action| {
            matches!(action, Effect::Send(Command::Snapshot { request }) if request == "shell-place")
        });
        assert_eq!(asks_for_place, said.is_empty(), "{sandbox:?} {typed}");
        assert!(it.seen().replace('\n', " ").contains(said), "{typed}: {}", it.seen());
        assert!(!it.app.queue.is_turn_due() || asks_for_place, "nothing waits for what does not run");
    }
}

#[test]
fn queued_commands_of_the_shell_come_back_alone_or_not_at_all() {
    let mut it = Playing::new(80, 20);
    it.event(Event::News(News::Started(Box::new(super::facts()))));
    it.begin_turn();
    it.text("!ls").key(KeyCode::Enter).key(KeyCode::Up);
    assert!(it.app.prompt.input.is_shell() && it.app.prompt.input.draft().display() == "ls", "{}", it.seen());
    it.key(KeyCode::Enter).text("and then");
    assert!(it.seen().contains("⏵ ! ls"), "{}", it.seen());
    it.key(KeyCode::Up).text("!");
    assert_eq!(it.app.queue.n_held(), 1, "what stands in the prompt is for the model: {}", it.seen());
    assert!(!it.app.prompt.input.is_shell());
}

#[test]
fn agents_in_the_background_are_stopped_by_two_chords() {
    use loci_engine::{BackgroundStatus, BackgroundTask, NewTask, TaskKind, TaskNews};
    let mut it = Playing::new(80, 20);
    for (id, kind) in [("a", TaskKind::Agent("Explore".into())), ("s", TaskKind::Shell)] {
        let about = NewTask {
            id: id.into(),
            kind,
            tool_use_id: ToolUseId::new("t"),
            command: "c".into(),
            description: "d".into(),
            output: "/tmp/o".into(),
        };
        let status = BackgroundStatus::Running;
        let task = BackgroundTask { about, owner: None, status, is_background: true, report: None };
        it.news(EngineEvent::Task(TaskNews::Started(task)));
    }
    it.ctrl('x').ctrl('k');
    assert!(it.sent().is_empty() && it.seen().contains("again to stop all agents"), "{}", it.seen());
    it.wait(3_500).ctrl('x').ctrl('k');
    assert!(it.sent().is_empty(), "the first was too long ago");
    it.ctrl('x').ctrl('k');
    let stop = Command::StopTask { request: "stop-a".into(), task: "a".into() };
    assert_eq!(it.sent(), [Effect::Send(stop)], "commands go on");
    assert!(it.seen().contains("Stopping 1 agent"), "{}", it.seen());
}

#[test]
fn tips_and_verbs_stand_beside_the_spinner_as_settings_say() {
    let mut it = Playing::new(80, 24);
    it.news(EngineEvent::SettingsChanged(json!({
        "spinnerTipsOverride": {"tips": ["mind the gap"], "excludeDefault": true},
        "spinnerVerbs": {"mode": "replace", "verbs": ["Baking"]},
    })));
    it.begin_turn();
    assert!(it.seen().contains("Baking…") && !it.seen().contains("mind the gap"), "{}", it.seen());
    it.wait(4_000);
    assert!(it.seen().contains("Tip: mind the gap"), "{}", it.seen());
    let mut it = Playing::new(80, 24);
    it.news(EngineEvent::SettingsChanged(json!({"spinnerTipsEnabled": false})));
    it.begin_turn().wait(4_000);
    assert!(it.seen().contains("Waiting for the model…") && !it.seen().contains("Tip:"), "{}", it.seen());
}
