use loci_core::permission::{Destination, RuleChange, RuleList, Update};
use loci_core::tool::PathEffect;
use serde_json::{Value, json};

use super::*;
use crate::dialog::testing::press;
use crate::key::KeyCode;
use crate::theme::{Backdrop, ColorDepth, Theme};

fn question(tool: &str, input: Value) -> Question {
    let rule =
        RuleChange { list: RuleList::Allow, rules: vec!["Bash(touch x)".to_owned()], to: Destination::Local };
    Question {
        id: "q".to_owned(),
        kind: loci_engine::QuestionKind::Permission,
        agent: None,
        tool: tool.to_owned(),
        server: None,
        call: "toolu_1".into(),
        input,
        reason: "it changes something".to_owned(),
        reason_kind: "other".into(),
        blocked_path: None,
        links: vec![PathEffect { requested: "/p/x".into(), real: "/etc/x".into() }],
        suggestions: vec![Update::AddRules(rule)],
    }
}

fn dialog(tool: &str, input: Value) -> PermissionDialog {
    PermissionDialog::new(question(tool, input), Path::new("/p"))
}

fn touch() -> PermissionDialog {
    dialog("Bash", json!({"command": "touch x", "description": "Make x"}))
}

/// Types letters; `^` before one is Ctrl, and these stand for keys: `<` up, `>` down, `\r` Enter, `\t` Tab, `\x1b` Escape.
fn typed(dialog: &mut PermissionDialog, text: &str) -> String {
    let mut ctrl = false;
    for c in text.chars() {
        if c == '^' {
            ctrl = true;
            continue;
        }
        let code = match c {
            '<' => KeyCode::Up,
            '>' => KeyCode::Down,
            '\r' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        let key = Key { ctrl: std::mem::take(&mut ctrl), ..Key::plain(code) };
        if let DialogStep::Answered(actions) = press(dialog, key) {
            return actions.iter().map(answer_text).collect::<Vec<_>>().join("; ");
        }
    }
    "open".to_owned()
}

fn answer_text(action: &Action) -> String {
    match action {
        Action::Effect(Effect::Send(Command::Answer { answer: Answer::Allow { updates, .. }, .. }))
            if updates.is_empty() =>
        {
            "yes".to_owned()
        }
        Action::Effect(Effect::Send(Command::Answer { answer: Answer::Allow { .. }, .. })) => {
            "always".to_owned()
        }
        Action::Effect(Effect::Send(Command::Answer {
            answer: Answer::Deny { stops: true, .. }, ..
        })) => "stop".to_owned(),
        Action::Effect(Effect::Send(Command::Answer { answer: Answer::Deny { message, .. }, .. })) => {
            message.clone()
        }
        Action::Ui(UiAction::Queue(prompt)) => format!("tell {}", prompt.content.text()),
        other => format!("{other:?}"),
    }
}

fn ctx(width: u16) -> RenderContext {
    RenderContext::new(usize::from(width), Theme::new(ColorDepth::Ansi, Backdrop::Dark))
}

fn screen_text(dialog: &PermissionDialog, width: u16, height: usize) -> String {
    let (rows, _) = dialog.view(&ctx(width)).fit(height);
    rows.iter().map(Row::text).collect::<Vec<_>>().join("\n")
}

#[test]
fn keys_answer() {
    for (keys, expected) in [
        ("\r", "yes"),
        ("1", "yes"),
        ("y", "yes"),
        (">\r", "always"),
        ("2", "always"),
        ("3", "stop"),
        ("n", "stop"),
        ("<\r", "stop"),
        ("\x1b", "stop"),
        ("^c", "stop"),
        ("x", "open"),
        ("\tand test it\r", "yes; tell and test it"),
        ("<\tuse make\r", "The user said no to this call: use make"),
        ("\ty\x1b", "open"),
        ("\ty\x1b\x1b", "stop"),
        ("\tuse\x1b\t make\r", "yes; tell use make"),
        ("\tuse\t\t make\r", "yes; tell use make"),
        ("\tuse make\t\r", "yes"),
        ("\twait^c", "stop"),
    ] {
        assert_eq!(typed(&mut touch(), keys), expected, "{keys:?}");
    }
}

#[test]
fn dialog_shows_the_command_its_description_and_what_always_would_save() {
    for width in [50, 80, 120] {
        let joined = screen_text(&touch(), width, 40).split_whitespace().collect::<Vec<_>>().join(" ");
        for text in ["May this command run?", "touch x", "Make x", "`Bash(touch x)`", "/p/x leads to /etc/x"]
        {
            assert!(joined.contains(text), "{width}: {text}\n{joined}");
        }
    }
}

#[test]
fn small_window_keeps_the_question_and_the_marked_answer() {
    let mut dialog = touch();
    for (keys, marked) in [("", "❯ 1. Yes"), (">", "❯ 2. Yes, and"), (">", "❯ 3. No")] {
        typed(&mut dialog, keys);
        let text = screen_text(&dialog, 20, 5);
        assert!(text.lines().count() <= 5 && text.contains(marked), "{text}");
        assert!(text.starts_with("May this command"), "{text}");
    }
}

/// P-8.
#[test]
fn hidden_characters_are_seen() {
    let dialog = dialog("Bash", json!({"command": "ls\u{202e} \u{1b}[2J;\u{200b}rm x"}));
    let text = screen_text(&dialog, 120, 40);
    assert!(text.contains(r"ls\u{202e} \u{1b}[2J;\u{200b}rm x"), "{text}");
    let spans = dialog.view(&ctx(120)).body.into_iter().flat_map(|row| row.spans);
    assert!(spans.flat_map(|span| span.text.chars().collect::<Vec<_>>()).all(|c| !c.is_control()));
}

#[test]
fn call_too_long_to_be_read_is_not_granted_for_good() {
    let dialog = dialog("Bash", json!({"command": "x".repeat(MOST_CHARS + 1)}));
    assert!(!screen_text(&dialog, 80, 40).contains("always"));
}

#[test]
fn explanation_names_the_reason_and_the_grant() {
    let mut dialog = touch();
    typed(&mut dialog, "^e");
    let text = screen_text(&dialog, 100, 60);
    assert!(text.contains("Kind of reason: other") && text.contains("\"Always\" would save:"), "{text}");
}

#[test]
fn model_explains_a_command_once_somebody_wants_to_know() {
    let ctrl_e = Key { ctrl: true, ..Key::plain(KeyCode::Char('e')) };
    let mut dialog = touch().explained_by_model();
    let task = SideTask::ExplainCall { tool: "Bash".into(), call: "touch x".into() };
    let ask = Command::AskOnTheSide { request: "explain-q".into(), task };
    assert_eq!(press(&mut dialog, ctrl_e), DialogStep::Act(vec![Action::Effect(Effect::Send(ask))]));
    assert!(screen_text(&dialog, 100, 60).contains("The model is asked"));
    dialog.explained(Ok("Low risk. It makes\u{1b}[2J a file.\n".into()));
    let text = screen_text(&dialog, 100, 60);
    assert!(text.contains("The model says: Low risk. It makes") && !text.contains('\u{1b}'), "{text}");
    for is_shown in [false, true] {
        assert_eq!(press(&mut dialog, ctrl_e), DialogStep::Open, "it is asked once");
        assert_eq!(screen_text(&dialog, 100, 60).contains("Low risk"), is_shown);
    }
    dialog.explained(Err("no network".into()));
    assert!(screen_text(&dialog, 100, 60).contains("The model did not explain it: no network"));
    // Where that is turned off, and for calls that are no commands, nothing is asked.
    let edit = json!({"file_path": "/p/a.rs", "old_string": "one", "new_string": "two"});
    for mut dialog in [touch(), self::dialog("Edit", edit).explained_by_model()] {
        assert_eq!(press(&mut dialog, ctrl_e), DialogStep::Open);
        assert!(screen_text(&dialog, 100, 60).contains("Kind of reason"));
    }
}

#[test]
fn edit_shows_what_changes_and_the_preview_takes_its_place() {
    let mut dialog =
        dialog("Edit", json!({"file_path": "/p/a.rs", "old_string": "one", "new_string": "two"}));
    let text = screen_text(&dialog, 80, 40);
    assert!(text.contains("May a.rs be changed?") && text.contains("one") && text.contains("two"), "{text}");
    let diff =
        FileDiff { path: "a.rs".into(), before: "x\none\n".into(), after: "x\ntwo\n".into(), first_line: 1 };
    dialog.set_diff(diff);
    assert!(screen_text(&dialog, 80, 40).contains('x'));
}

#[test]
fn plan_is_edited_and_approved_as_it_is_then() {
    let mut asked = question("ExitPlanMode", json!({"plan": "1. Build", "planFilePath": "/p/plan.md"}));
    asked.kind = loci_engine::QuestionKind::PlanApproval;
    let mut dialog = PermissionDialog::new(asked, Path::new("/p"));
    let ctrl_g = Key { ctrl: true, ..Key::plain(KeyCode::Char('g')) };
    let edit = |text: &str| Action::Effect(Effect::EditText { name: "q".into(), text: text.into() });
    assert_eq!(press(&mut dialog, ctrl_g), DialogStep::Act(vec![edit("1. Build")]));
    dialog.edited("1. Build\n2. Test".into());
    let ctx = RenderContext::new(60, Theme::new(ColorDepth::None, Backdrop::Dark));
    let text: Vec<String> = dialog.view(&ctx).body.iter().map(Row::text).collect();
    assert!(text.iter().any(|row| row.contains("2. Test")), "{text:?}");
    dialog.edited(" \n".into());
    let DialogStep::Answered(actions) = press(&mut dialog, Key::plain(KeyCode::Enter)) else {
        panic!("open")
    };
    let [
        Action::Effect(Effect::Send(Command::Answer {
            answer: Answer::Allow { input: Some(input), .. },
            ..
        })),
    ] = &actions[..]
    else {
        panic!("{actions:?}")
    };
    assert_eq!(input["plan"], "1. Build\n2. Test", "an empty text is no plan");
}

#[test]
fn plan_is_all_that_is_left_where_that_is_chosen() {
    let mut asked = question("ExitPlanMode", json!({"plan": "1. Build"}));
    asked.kind = loci_engine::QuestionKind::PlanApproval;
    let mut dialog = PermissionDialog::new(asked, Path::new("/p")).offering_clear();
    let DialogStep::Answered(actions) = press(&mut dialog, Key::plain(KeyCode::Char('3'))) else {
        panic!("{}", screen_text(&dialog, 80, 40))
    };
    let [
        Action::Ui(UiAction::BeginWithPlan(plan)),
        Action::Effect(Effect::Send(Command::Answer { answer, .. })),
    ] = &actions[..]
    else {
        panic!("{actions:?}")
    };
    assert_eq!(plan, "1. Build");
    assert!(matches!(answer, Answer::Deny { stops: true, .. }), "the turn of the planning ends");
    assert!(!screen_text(&touch().offering_clear(), 80, 40).contains("new conversation"), "for plans alone");
}

/// A plan, and the modes that it may be carried out in.
fn plan(suggestions: Vec<Update>) -> PermissionDialog {
    let mut asked = question("ExitPlanMode", json!({"plan": "1. Build"}));
    asked.kind = loci_engine::QuestionKind::PlanApproval;
    asked.suggestions = suggestions;
    PermissionDialog::new(asked, Path::new("/p"))
}

#[test]
fn plan_that_was_worked_on_is_told_with_a_no() {
    let changed = "\nThe user changed the plan to:\n1. Build\n2. Test";
    let mut dialog = plan(Vec::new());
    dialog.edited("1. Build\n2. Test".into());
    assert_eq!(typed(&mut dialog, "<\tmore\r"), format!("The user said no to this call: more{changed}"));
    let mut dialog = plan(Vec::new());
    dialog.edited("1. Build\n2. Test".into());
    let DialogStep::Answered(actions) = press(&mut dialog, Key::plain(KeyCode::Esc)) else { panic!("open") };
    let [
        Action::Effect(Effect::Send(Command::Answer {
            answer: Answer::Deny { message, stops: true }, ..
        })),
    ] = &actions[..]
    else {
        panic!("{actions:?}")
    };
    assert!(message.ends_with(changed), "{message}");
}

#[test]
fn yes_to_a_plan_asks_before_each_change_whatever_the_mode_was() {
    let mut dialog = plan(vec![Update::SetMode(Mode::AcceptEdits, Destination::Session)]);
    let DialogStep::Answered(actions) = press(&mut dialog, Key::plain(KeyCode::Char('1'))) else { panic!() };
    let [Action::Effect(Effect::Send(Command::Answer { answer: Answer::Allow { updates, .. }, .. }))] =
        actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!(*updates, [Update::SetMode(Mode::Default, Destination::Session)]);
}

#[test]
fn answers_to_a_plan_say_how_it_is_carried_out() {
    for (mode, label) in [
        (Mode::AcceptEdits, "2. Yes, and change files without asking"),
        (Mode::Auto, "2. Yes, and have a classifier decide what runs"),
        (Mode::BypassPermissions, "2. Yes, and run everything without asking"),
    ] {
        let dialog = plan(vec![Update::SetMode(mode, Destination::Session)]);
        let text = screen_text(&dialog, 80, 40);
        assert!(text.contains("1. Yes, and ask before each change") && text.contains(label), "{text}");
    }
}
