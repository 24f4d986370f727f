//! The picker of sessions on a virtual screen.

use super::super::testing::Shown;
use super::*;
use crate::keymap::Action as KeyAction;
use loci_app::sessions::picker::BranchChoice;

pub(super) fn choice(id: &str, title: &str) -> SessionChoice {
    SessionChoice {
        id: id.to_owned(),
        file: format!("/c/{id}.jsonl").into(),
        title: title.to_owned(),
        ago: "2 h ago".to_owned(),
        time: "2026-01-01 10:00".to_owned(),
        branch: Some("main\u{1b}[2J".to_owned()),
        n_messages: 3,
        shown_cwd: Some("~/p".to_owned()),
        cwd: Some("/home/u/p".into()),
        is_branch: false,
        parent: None,
        depth: 0,
        is_here: true,
    }
}

fn panel(n: usize) -> ResumePanel {
    let (mut panel, actions) = ResumePanel::new(Some("current".to_owned()));
    let ask = PanelRequest::Sessions { scope: PickerScope::Project, most: Some(FIRST) };
    assert_eq!(actions, [Action::Effect(Effect::AskPanel(ask))]);
    let mut sessions: Vec<SessionChoice> =
        (0..n).map(|idx| choice(&format!("id{idx}"), &format!("Title {idx} 日本\u{1b}]0;x\u{7}"))).collect();
    sessions.push(choice("current", "not offered"));
    panel.receive(PanelData::Sessions { scope: PickerScope::Project, sessions, is_whole: true });
    panel
}

#[test]
fn sessions_are_listed_filtered_and_chosen_at_every_width() {
    for width in [20, 50, 80, 120] {
        let mut shown = Shown::new(panel(10_000), width, 10);
        shown.assert_clean();
        assert!(
            shown.text().contains("Title 0") && !shown.text().contains("not offered"),
            "{}",
            shown.text()
        );
        shown.type_text("title 4321");
        assert!(shown.text().contains("❯ 2 h ago  Title 43"), "{}", shown.text());
        let step = shown.key(KeyCode::Enter, Some(KeyAction::SelectAccept));
        let PanelStep::CloseWith(actions) = step else { panic!("{step:?}") };
        assert!(
            matches!(&actions[..], [Action::Ui(UiAction::Resume(choice, None))] if choice.id == "id4321"),
            "{actions:?}"
        );
    }
}

#[test]
fn age_and_title_stay_apart_and_one_message_is_one() {
    let old = SessionChoice { ago: "10 mo ago".to_owned(), n_messages: 1, ..choice("a", "Title 1") };
    let text = choice_row(&old, false, 100).text();
    assert!(text.starts_with("10 mo ago Title 1") && text.contains("  1 message "), "{text}");
}

#[test]
fn key_for_the_projects_says_what_it_changes_to() {
    let mut shown = Shown::new(panel(1), 100, 12);
    for (scope, expected) in
        [(PickerScope::Project, "Ctrl+A all projects"), (PickerScope::All, "Ctrl+A this project")]
    {
        shown.panel.scope = scope;
        assert!(shown.text().contains(expected), "{}", shown.text());
    }
}

#[test]
fn newest_stays_marked_until_somebody_moves() {
    let list = |ids: &[&str], is_whole| PanelData::Sessions {
        scope: PickerScope::Project,
        sessions: ids.iter().map(|id| choice(id, &format!("Title {id}"))).collect(),
        is_whole,
    };
    for (moves, expected) in [(0, "❯ 2 h ago  Title new"), (1, "❯ 2 h ago  Title b")] {
        let mut shown = Shown::new(ResumePanel::new(None).0, 80, 12);
        let actions = shown.receive(list(&["a", "b"], false));
        assert_eq!(actions.len(), 1, "the rest is asked for");
        (0..moves).for_each(|_| drop(shown.action(KeyAction::SelectNext)));
        shown.receive(list(&["new", "a", "b"], true));
        assert!(shown.text().contains(expected), "{}", shown.text());
    }
}

#[test]
fn what_was_said_is_searched_once_at_a_time_and_can_be_chosen() {
    let mut shown = Shown::new(panel(3), 80, 12);
    let press = |shown: &mut Shown<ResumePanel>, c: char| shown.key(KeyCode::Char(c), None);
    press(&mut shown, 'p');
    press(&mut shown, 'o');
    let PanelStep::Act(actions) = press(&mut shown, 'e') else { panic!("a search") };
    let find = |text: &str| {
        Action::Effect(Effect::AskPanel(PanelRequest::FindMessages {
            text: text.to_owned(),
            scope: PickerScope::Project,
            limit: 20,
        }))
    };
    assert_eq!(actions, [find("poe")]);
    assert_eq!(press(&mut shown, 'm'), PanelStep::Act(Vec::new()), "one is under way");
    let found = FoundMessage {
        session: choice("other", "Other"),
        message: Some("m".into()),
        voice: "user",
        time: String::new(),
        snippet: "write a poem\u{1b}[0m".into(),
    };
    let answer = |text: &str| PanelData::FoundMessages { text: text.into(), found: vec![found.clone()] };
    assert_eq!(shown.receive(answer("poe")), [find("poem")], "the answer to an older one asks again");
    shown.receive(answer("poem"));
    shown.assert_clean();
    assert!(shown.text().contains("❯ 2 h ago") && shown.text().contains("write a poem"), "{}", shown.text());
    let step = shown.key(KeyCode::Enter, None);
    assert!(
        matches!(&step, PanelStep::CloseWith(actions) if matches!(&actions[..], [Action::Ui(UiAction::Resume(choice, None))] if choice.id == "other")),
        "{step:?}"
    );
}

#[test]
fn preview_and_rename_are_a_key_away_and_escape_comes_back() {
    let mut shown = Shown::new(panel(3), 60, 12);
    let ctrl = |c: char| InputEvent::Key(Key { ctrl: true, ..Key::plain(KeyCode::Char(c)) });
    shown.panel.handle(&ctrl('v'), &PanelContext::default());
    assert!(shown.text().contains("Reading"), "{}", shown.text());
    let blocks = vec![Block::Prompt { text: "do\u{1b}[31m it".into(), attachments: Vec::new() }];
    shown.receive(PanelData::Preview { file: "/c/id0.jsonl".into(), blocks });
    shown.assert_clean();
    assert!(shown.text().contains("> do"), "{}", shown.text());
    assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay);
    shown.panel.handle(&ctrl('r'), &PanelContext::default());
    shown.type_text("new name");
    let PanelStep::Act(actions) = shown.key(KeyCode::Enter, None) else { panic!("kept") };
    assert!(
        matches!(&actions[..], [Action::Effect(Effect::AskPanel(PanelRequest::RenameSession { title, .. }))] if title == "new name")
    );
    let all = shown.panel.handle(&ctrl('a'), &PanelContext::default());
    let ask = PanelRequest::Sessions { scope: PickerScope::All, most: Some(FIRST) };
    assert_eq!(all, PanelStep::Act(vec![Action::Effect(Effect::AskPanel(ask))]));
}

#[test]
fn first_page_is_shown_before_the_rest_is_asked_for() {
    let (mut panel, _) = ResumePanel::new(None);
    let page = (0..100).map(|idx| choice(&format!("id{idx}"), &format!("Title {idx}"))).collect();
    let ask =
        |most| Action::Effect(Effect::AskPanel(PanelRequest::Sessions { scope: PickerScope::Project, most }));
    let data = PanelData::Sessions { scope: PickerScope::Project, sessions: page, is_whole: false };
    assert_eq!(panel.receive(data), [ask(None)]);
    let mut shown = Shown::new(panel, 80, 10);
    assert!(shown.text().contains("(…)") && shown.text().contains("❯ 2 h ago  Title 0"), "{}", shown.text());
    shown.action(KeyAction::SelectNext);
    let mut all: Vec<SessionChoice> =
        (0..10_000).map(|idx| choice(&format!("id{idx}"), &format!("Title {idx}"))).collect();
    all.insert(0, choice("newer", "Newer"));
    shown.receive(PanelData::Sessions { scope: PickerScope::Project, sessions: all, is_whole: true });
    assert!(
        shown.text().contains("(10001)") && shown.text().contains("❯ 2 h ago  Title 1"),
        "{}",
        shown.text()
    );
}

#[test]
fn branches_of_a_session_can_be_chosen() {
    let branch = |leaf: &str, is_current| BranchChoice {
        leaf: leaf.into(),
        line: format!("try {leaf}\u{1b}[2J 日本"),
        time: "2026-01-01 10:00".into(),
        n_entries: 4,
        is_current,
    };
    for (width, height) in [(20, 5), (60, 12), (120, 30)] {
        let mut shown = Shown::new(panel(3), width, height);
        let ask = Action::Effect(Effect::AskPanel(PanelRequest::Branches { file: "/c/id0.jsonl".into() }));
        assert_eq!(shown.key(KeyCode::Right, None), PanelStep::Act(vec![ask]));
        assert!(shown.text().contains("Reading"), "{}", shown.text());
        let branches = vec![branch("new", true), branch("old", false)];
        shown.receive(PanelData::Branches { file: "/c/other.jsonl".into(), branches: Vec::new() });
        shown.receive(PanelData::Branches { file: "/c/id0.jsonl".into(), branches });
        shown.assert_clean();
        assert!(shown.text().contains("try new") || width < 30, "{}", shown.text());
        shown.action(KeyAction::SelectNext);
        let step = shown.action(KeyAction::SelectAccept);
        assert!(
            matches!(&step, PanelStep::CloseWith(actions)
                if matches!(&actions[..], [Action::Ui(UiAction::Resume(choice, Some(at)))] if choice.id == "id0" && at == "old")),
            "{step:?}"
        );
    }
    let mut shown = Shown::new(panel(3), 80, 12);
    shown.key(KeyCode::Right, None);
    shown.key(KeyCode::Left, None);
    assert!(shown.text().contains("Resume a session"), "{}", shown.text());
}

#[test]
fn preview_of_a_branch_on_which_nothing_was_said_points_at_the_others() {
    use crate::theme::{Backdrop, ColorDepth, Theme};
    let one = SessionChoice { n_messages: 1, ..choice("a", "Title") };
    let ctx = RenderContext::new(80, Theme::new(ColorDepth::Ansi, Backdrop::Dark));
    let size = Size { width: 80, height: 12 };
    let view = preview_view(&one, Some(&[]), &Scroll::default(), &ctx, size);
    let text: Vec<String> = view.head.iter().chain(&view.body).map(Row::text).collect();
    let text = text.join("\n");
    assert!(text.contains("· 1 message ·") && text.contains("→ in the list shows the others"), "{text}");
}
