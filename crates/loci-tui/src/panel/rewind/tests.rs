//! What going back to a prompt shows and does.

use loci_engine::{Command, SideTask};

use super::super::testing::Shown;
use super::*;

fn point(idx: usize) -> RewindPoint {
    RewindPoint {
        prompt: format!("p{idx}"),
        text: format!("prompt {idx}\nmore"),
        line: format!("prompt {idx} 日本\u{1b}[2J"),
        time: "2026-01-01 10:00".to_owned(),
        n_files: 2,
        added: 14,
        removed: 3,
        ..RewindPoint::default()
    }
}

fn preview() -> RewindPreview {
    RewindPreview {
        files: vec![("src/a\u{7}.rs".into(), "restore"), ("made".into(), "remove")],
        conflicts: vec![("mine".into(), "it was changed since")],
        ignored: vec!["target/x".into()],
        insertions: 4,
        deletions: 2,
        problem: None,
    }
}

fn shown(width: u16, height: u16, can_undo: bool) -> Shown<RewindPanel> {
    let (panel, actions) = RewindPanel::new("s".into());
    assert_eq!(actions, [Action::Effect(Effect::AskPanel(PanelRequest::RewindPoints))]);
    let mut shown = Shown::new(panel, width, height);
    let points = RewindPoints { points: (0..3).rev().map(point).collect(), can_undo };
    let actions = shown.receive(PanelData::RewindPoints(points));
    let ask = PanelRequest::RewindPreview { prompt: Some("p2".into()) };
    assert_eq!(actions, [Action::Effect(Effect::AskPanel(ask))], "the newest prompt is looked at");
    shown.receive(PanelData::RewindPreview { prompt: Some("p2".into()), preview: preview() });
    shown
}

#[test]
fn list_shows_what_would_change_and_the_choice_does_it() {
    for width in [40, 80, 120] {
        let mut shown = shown(width, 16, false);
        shown.assert_clean();
        assert!(shown.text().contains("2 files would change: +4 -2"), "{}", shown.text());
        shown.action(KeyAction::SelectAccept);
        shown.assert_clean();
        for text in ["Conversation and code", "remove  made", "left: mine", "git ignores it"] {
            assert!(shown.text().contains(text), "{text}: {}", shown.text());
        }
        shown.key(KeyCode::Tab, None);
        assert!(shown.text().contains("brought back: mine"), "{}", shown.text());
        let PanelStep::CloseWith(actions) = shown.key(KeyCode::Char('1'), None) else { panic!("chosen") };
        let rewind = Some(RewindRequest {
            prompt: Some("p2".into()),
            takes_files: true,
            overwrites: true,
            summary: None,
        });
        let target = SwitchTarget { session: "s".into(), rewind, ..SwitchTarget::default() };
        assert_eq!(
            actions,
            [Action::Ui(UiAction::SetPrompt("prompt 2\nmore".into())), Action::Ui(UiAction::Switch(target))]
        );
    }
}

#[test]
fn code_alone_goes_back_without_leaving_the_session() {
    let mut shown = shown(80, 16, false);
    shown.action(KeyAction::SelectAccept);
    let PanelStep::CloseWith(actions) = shown.key(KeyCode::Char('3'), None) else { panic!("chosen") };
    let request = RewindRequest { prompt: Some("p2".into()), takes_files: true, ..RewindRequest::default() };
    assert_eq!(actions, [Action::Effect(Effect::AskPanel(PanelRequest::RewindFiles(request)))]);
}

#[test]
fn undo_stands_above_the_prompts() {
    let mut shown = shown(80, 16, true);
    shown.action(KeyAction::SelectPrevious);
    assert!(shown.text().contains("❯ Undo the last rewind"), "{}", shown.text());
    shown.action(KeyAction::SelectAccept);
    let PanelStep::CloseWith(actions) = shown.key(KeyCode::Enter, None) else { panic!("chosen") };
    let rewind = Some(RewindRequest { takes_files: true, ..RewindRequest::default() });
    let target = SwitchTarget { session: "s".into(), rewind, ..SwitchTarget::default() };
    assert_eq!(actions, [Action::Ui(UiAction::Switch(target))]);
}

#[test]
fn summary_takes_the_place_of_what_came_after() {
    for (width, height) in [(20, 5), (80, 16), (120, 30)] {
        let mut shown = shown(width, height, false);
        shown.action(KeyAction::SelectAccept);
        assert_eq!(shown.key(KeyCode::Char('4'), None), PanelStep::Stay);
        shown.type_text("the 日本 port");
        shown.assert_clean();
        let task = |focus: Option<&str>| SideTask::SummaryFrom {
            prompt: "prompt 2\nmore".into(),
            focus: focus.map(str::to_owned),
        };
        let ask = |focus| {
            let (request, task) = (SUMMARY_REQUEST.to_owned(), task(focus));
            PanelStep::Act(vec![Action::Effect(Effect::Send(Command::AskOnTheSide { request, task }))])
        };
        assert_eq!(shown.key(KeyCode::Enter, None), ask(Some("the 日本 port")));
        assert!(shown.panel.is_awaiting(SUMMARY_REQUEST));
        let answer = |outcome: Result<&str, &str>| PanelData::SideAnswer {
            request: SUMMARY_REQUEST.to_owned(),
            outcome: outcome.map(str::to_owned).map_err(str::to_owned),
        };
        assert_eq!(shown.receive(answer(Err("overloaded"))), []);
        assert!(height < 10 || shown.text().contains("overloaded"), "{}", shown.text());
        assert_eq!(shown.key(KeyCode::Enter, None), ask(None), "it can be asked again");
        let rewind = Some(RewindRequest {
            prompt: Some("p2".into()),
            summary: Some("short".into()),
            ..RewindRequest::default()
        });
        let target = SwitchTarget { session: "s".into(), rewind, ..SwitchTarget::default() };
        let expected = [
            Action::Ui(UiAction::ClosePanel),
            Action::Ui(UiAction::SetPrompt("prompt 2\nmore".into())),
            Action::Ui(UiAction::Switch(target)),
        ];
        assert_eq!(shown.receive(answer(Ok("short"))), expected);
    }
}

#[test]
fn summary_takes_the_place_of_what_came_before() {
    for (width, height) in [(20, 6), (80, 16)] {
        let mut shown = shown(width, height, false);
        shown.action(KeyAction::SelectAccept);
        assert_eq!(shown.key(KeyCode::Char('5'), None), PanelStep::Stay);
        assert!(height < 10 || shown.text().contains("Summarise up to: "), "{}", shown.text());
        shown.type_text("the port");
        shown.assert_clean();
        let (keeps_from, focus) = ("p2".to_owned(), Some("the port".to_owned()));
        let compact = PanelStep::CloseWith(vec![Action::Ui(UiAction::Compact { keeps_from, focus })]);
        assert_eq!(shown.key(KeyCode::Enter, None), compact);
    }
}

#[test]
fn tiny_window_shows_the_answers() {
    let mut shown = shown(20, 4, false);
    assert!(shown.text().contains('❯'), "{}", shown.text());
    shown.action(KeyAction::SelectAccept);
    assert!(shown.text().contains("❯ 1."), "{}", shown.text());
}

#[test]
fn prompts_show_what_their_turns_changed_and_branches_that_were_left_are_gone_on_with() {
    for width in [20, 50, 80, 120] {
        let (panel, _) = RewindPanel::new("s".into());
        let mut shown = Shown::new(panel, width, 10);
        let left = RewindPoint { depth: 1, leaf: Some("end".into()), ..point(7) };
        let points = vec![point(9), left, point(5)];
        shown.receive(PanelData::RewindPoints(RewindPoints { points, can_undo: false }));
        shown.assert_clean();
        let text = shown.text();
        assert!(text.contains("+14 -3") && text.contains('├'), "{width}: {text}");
        shown.action(KeyAction::SelectNext);
        let target = SwitchTarget { session: "s".into(), at: Some("end".into()), ..SwitchTarget::default() };
        let switched = shown.action(KeyAction::SelectAccept);
        assert_eq!(switched, PanelStep::CloseWith(vec![Action::Ui(UiAction::Switch(target))]));
    }
}
