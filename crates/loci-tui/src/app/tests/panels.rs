//! Panels within the application: they are there with the first frame, ask for what they need, and make no more rows than
//! are seen, however much there is.

use loci_app::commands::mcp::ServerRow;
use loci_app::commands::skills::SkillRow;
use loci_app::sessions::picker::{PickerScope, SessionChoice};
use loci_core::ids::{AgentId, ToolUseId};
use loci_core::skill::SkillOverride;
use loci_engine::{
    AgentRef, BackgroundStatus, BackgroundTask, Goal, GoalVerdict, NewTask, Question, QuestionKind, TaskKind,
    TaskNews,
};

use super::*;
use crate::panel::{PanelData, PanelRequest};

/// The rows that the panel makes for a window, before any are cut away.
fn n_rows_made(it: &Playing) -> usize {
    let ctx = it.app.render_context(it.size.width);
    it.app.panel.panel.as_ref().unwrap().view(&ctx, it.size).body.len()
}

#[test]
fn every_panel_is_there_with_the_first_frame_and_asks_for_the_rest() {
    let registry = CommandRegistry::builtin();
    let mut n_panels = 0;
    for command in registry.iter_in_terminal() {
        let mut it = Playing::new(80, 24);
        it.event(Event::News(News::Started(Box::new(facts()))));
        it.text(&format!("/{}", command.name));
        let before = it.seen();
        it.key(KeyCode::Enter);
        if !it.app.panel.is_open() {
            continue;
        }
        n_panels += 1;
        assert_ne!(it.seen(), before, "/{}: the next frame shows it", command.name);
        let is_question = |effect: &Effect| {
            matches!(
                effect,
                Effect::AskPanel(_)
                    | Effect::ReadOwnFiles
                    | Effect::Remember(_)
                    | Effect::Send(Command::Snapshot { .. })
            )
        };
        assert!(it.actions.iter().all(is_question), "/{}: {:?}", command.name, it.actions);
    }
    assert!(n_panels >= 20, "{n_panels}");
}

#[test]
fn empty_panels_name_no_keys_that_do_nothing() {
    let nothing = [
        ("/tasks", None, "Ctrl+B moves"),
        ("/mcp", Some(PanelData::Servers(Vec::new())), "`loci mcp add`"),
        ("/diff", Some(PanelData::Diff(Ok(Vec::new()))), "Nothing has changed"),
        ("/fewer-permission-prompts", None, "Reading…"),
    ];
    for (command, data, told) in nothing {
        let mut it = Playing::new(90, 24);
        it.event(Event::News(News::Started(Box::new(facts()))));
        it.text(command).key(KeyCode::Enter);
        data.into_iter().for_each(|data| _ = it.event(Event::News(News::PanelData(data))));
        let (seen, keys) = (it.seen(), it.seen().lines().last().unwrap_or_default().to_owned());
        assert!(seen.contains(told), "{command}: {seen}");
        assert!(keys.contains("Esc close") && !keys.contains("Enter") && !keys.contains("Space"), "{seen}");
    }
}

#[test]
fn context_opens_at_what_was_typed() {
    for (typed, is_open) in
        [("/context", true), ("/context all", true), ("/context time", true), ("/context x", false)]
    {
        let mut it = Playing::new(80, 24);
        it.event(Event::News(News::Started(Box::new(facts()))));
        it.text(typed).key(KeyCode::Enter);
        assert_eq!(it.app.panel.is_open(), is_open, "{typed}");
    }
}

#[test]
fn second_frame_shows_ten_thousand_sessions_and_makes_only_rows_that_are_seen() {
    let mut it = Playing::new(100, 30);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.text("/resume").key(KeyCode::Enter);
    let choice = |n: usize| SessionChoice {
        id: format!("{n}"),
        file: format!("/s/{n}.jsonl").into(),
        title: format!("session {n}"),
        ago: "now".into(),
        time: String::new(),
        branch: None,
        n_messages: 3,
        shown_cwd: None,
        cwd: None,
        is_branch: false,
        parent: None,
        depth: 0,
        is_here: true,
    };
    let sessions = (0..10_000).map(choice).collect();
    let data = PanelData::Sessions { scope: PickerScope::Project, sessions, is_whole: true };
    it.event(Event::News(News::PanelData(data)));
    assert!(it.seen().contains("session 0"), "{}", it.seen());
    assert!(n_rows_made(&it) <= 30, "{}", n_rows_made(&it));
}

#[test]
fn second_frame_shows_five_hundred_skills_and_fifty_servers() {
    let mut it = Playing::new(100, 30);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.text("/skills").key(KeyCode::Enter);
    let skill = |n: usize| SkillRow {
        name: format!("skill-{n:03}"),
        description: "does".into(),
        source: "user".into(),
        is_for_people: true,
        is_for_model: false,
        visibility: SkillOverride::On,
        can_change: true,
        summary_tokens: (1, 1),
        tokens: 2,
        notes: Vec::new(),
    };
    it.event(Event::News(News::PanelData(PanelData::Skills((0..500).map(skill).collect()))));
    assert!(it.seen().contains("/skill-000"), "{}", it.seen());
    assert!(n_rows_made(&it) <= 30);
    it.key(KeyCode::Esc).text("/mcp").key(KeyCode::Enter);
    let server = |n: usize| ServerRow {
        name: format!("server-{n:02}"),
        status: "connected",
        scope: "user",
        kind: "stdio",
        error: None,
        tools: vec![("t".into(), "does".into()); 100],
        resources: Vec::new(),
        prompts: Vec::new(),
        about: None,
    };
    it.event(Event::News(News::PanelData(PanelData::Servers((0..50).map(server).collect()))));
    assert!(it.seen().contains("server-00"), "{}", it.seen());
    assert!(n_rows_made(&it) <= 30);
}

fn agent() -> AgentRef {
    AgentRef {
        id: AgentId::new("a1"),
        kind: "Explore".into(),
        parent: None,
        description: "find it".into(),
        depth: 1,
    }
}

fn of_agent(event: EngineEvent) -> EngineEvent {
    EngineEvent::Agent { agent: agent(), event: Box::new(event) }
}

fn task(status: BackgroundStatus) -> BackgroundTask {
    BackgroundTask {
        about: NewTask {
            id: "a1".into(),
            kind: TaskKind::Agent("Explore".into()),
            tool_use_id: ToolUseId::new("t"),
            command: "look".into(),
            description: "find it".into(),
            output: "/o".into(),
        },
        owner: None,
        status,
        is_background: true,
        report: None,
    }
}

#[test]
fn agent_that_is_waited_for_is_not_counted_as_in_the_background() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    let waited_for = BackgroundTask { is_background: false, ..task(BackgroundStatus::Running) };
    it.news(EngineEvent::Task(TaskNews::Started(waited_for)));
    let start = it.start();
    it.news(of_agent(EngineEvent::TurnStarted(start)));
    assert!(!it.seen().contains("in the background"), "{}", it.seen());
    it.news(EngineEvent::Task(TaskNews::Backgrounded(task(BackgroundStatus::Running))));
    assert!(it.seen().contains("1 in the background"), "{}", it.seen());
}

/// Whether a command may run.
pub(super) fn question() -> Question {
    Question {
        id: "q1".into(),
        agent: None,
        tool: "Bash".into(),
        server: None,
        call: ToolUseId::new("c1"),
        input: json!({"command": "make"}),
        kind: QuestionKind::Permission,
        reason: "it needs approval".into(),
        reason_kind: "approval".into(),
        blocked_path: None,
        links: Vec::new(),
        suggestions: Vec::new(),
    }
}

#[test]
fn left_on_an_empty_prompt_opens_the_agent_view_which_follows_an_agent() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.news(EngineEvent::Task(TaskNews::Started(task(BackgroundStatus::Running))));
    it.text("x").key(KeyCode::Left);
    assert!(!it.app.panel.is_open(), "the caret moves while something is typed");
    it.key(KeyCode::Delete).key(KeyCode::Left);
    assert!(it.seen().contains("Explore: find it"), "{}", it.seen());
    it.key(KeyCode::Enter);
    let event = StreamEvent::Delta { index: 0, delta: Delta::Text("I am looking".into()) };
    it.news(of_agent(EngineEvent::Stream { event, first_after: None }));
    assert!(it.seen().contains("I am looking"), "{}", it.seen());
    // Its question stands in the place of the panel, with its name, and the panel comes back.
    it.news(of_agent(EngineEvent::QuestionAsked(Question { agent: Some(agent()), ..question() })));
    assert!(it.seen().contains("make") && it.seen().contains("Explore"), "{}", it.seen());
    it.wait(2_000).key(KeyCode::Char('1'));
    assert!(matches!(it.sent().first(), Some(Effect::Send(Command::Answer { .. }))), "{:?}", it.actions);
    assert!(it.seen().contains("I am looking"), "{}", it.seen());
    assert!(!it.app.background.logs().borrow().all()[0].is_asking());
    it.text("m").text("go on").key(KeyCode::Enter);
    let text = "go on".to_owned();
    let message = Command::MessageAgent { request: "agents".into(), agent: "a1".into(), text };
    assert_eq!(it.sent(), [Effect::Send(message)]);
    it.news(EngineEvent::AgentMessaged { request: "agents".into(), outcome: Ok("It hears it".into()) });
    assert!(it.seen().contains("It hears it"), "{}", it.seen());
    it.news(EngineEvent::Task(TaskNews::Ended(task(BackgroundStatus::Completed))));
    assert!(it.seen().contains("done"), "{}", it.seen());
}

#[test]
fn nothing_moves_while_the_person_is_asked_but_the_seconds() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.text("go").key(KeyCode::Enter).begin_turn();
    let until_next = |it: &Playing| it.app.deadline().map(|due| due - it.now);
    assert!(until_next(&it).is_some_and(|it| it <= Duration::from_millis(100)), "a spinner moves");
    it.news(EngineEvent::QuestionAsked(question())).wait(2_000);
    assert!(until_next(&it).is_some_and(|it| it > Duration::from_millis(900)), "{:?}", until_next(&it));
    let seen = it.seen();
    assert_eq!(it.wait(300).seen(), seen);
}

#[test]
fn panel_that_is_looked_at_asks_again_and_a_closed_one_does_not() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    let shell = BackgroundTask {
        about: NewTask { kind: TaskKind::Shell, ..task(BackgroundStatus::Running).about },
        ..task(BackgroundStatus::Running)
    };
    it.news(EngineEvent::Task(TaskNews::Started(shell)));
    it.text("/tasks").key(KeyCode::Enter);
    it.key(KeyCode::Enter);
    let ask = || Effect::AskPanel(PanelRequest::TaskOutput { task: "a1".into(), file: "/o".into() });
    assert_eq!(it.actions, [ask()]);
    assert!(it.app.deadline().is_some());
    it.wait(1_100);
    assert_eq!(it.actions, [ask()], "it is read again");
    it.key(KeyCode::Esc).wait(1_100);
    assert!(!it.actions.contains(&ask()), "the list does not read");
}

#[test]
fn task_brought_to_the_front_is_seen_above_the_prompt_until_it_ends_or_is_put_back() {
    let shell = |status: BackgroundStatus| BackgroundTask {
        about: NewTask {
            kind: TaskKind::Shell,
            command: "make all".into(),
            ..task(BackgroundStatus::Running).about
        },
        ..task(status)
    };
    let ask = || Effect::AskPanel(PanelRequest::TaskOutput { task: "a1".into(), file: "/o".into() });
    let printed = |text: &str| {
        Event::News(News::PanelData(PanelData::TaskOutput { task: "a1".into(), text: text.into() }))
    };
    for is_put_back in [true, false] {
        let mut it = Playing::new(80, 24);
        it.event(Event::News(News::Started(Box::new(facts()))));
        it.news(EngineEvent::Task(TaskNews::Started(shell(BackgroundStatus::Running))));
        assert!(it.seen().contains("1 in the background"), "{}", it.seen());
        it.text("/tasks").key(KeyCode::Enter).text("f");
        assert_eq!(it.actions, [ask()]);
        it.event(printed("one\n\u{1b}[2Jtwo\n"));
        let seen = it.seen();
        assert!(seen.contains("make all") && seen.contains("two") && seen.contains("Ctrl+B puts"), "{seen}");
        it.wait(1_100);
        assert_eq!(it.actions, [ask()], "it is read again");
        it.text("typed meanwhile");
        assert!(it.seen().contains("typed meanwhile"), "{}", it.seen());
        if is_put_back {
            it.ctrl('b');
            assert!(
                !it.seen().contains("two") && it.app.background.front.deadline().is_none(),
                "{}",
                it.seen()
            );
            continue;
        }
        it.news(EngineEvent::Task(TaskNews::Ended(shell(BackgroundStatus::Failed(2)))));
        assert_eq!(it.actions, [ask()], "what it printed last is read");
        it.event(printed("one\ntwo\nthree\n"));
        assert!(it.app.background.front.is_none());
        let seen = it.seen();
        assert!(seen.contains("three") && !seen.contains("Ctrl+B puts"), "{seen}");
        assert!(seen.matches("make all").count() == 1 && seen.contains('2'), "{seen}");
    }
    // An agent at the front is the agent view.
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.news(EngineEvent::Task(TaskNews::Started(task(BackgroundStatus::Running))));
    it.text("/tasks").key(KeyCode::Enter).text("f");
    assert!(it.seen().contains("It has said nothing yet"), "{}", it.seen());
}

#[test]
fn call_waits_for_permission_only_while_somebody_is_asked() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.begin_turn();
    let input = json!({"command": "make"});
    let block = loci_core::message::Block::new_tool_use(&ToolUseId::new("c1"), "Bash", &input);
    it.stream(StreamEvent::BlockDone { index: 0, block });
    let waits = |it: &Playing| it.seen().contains("waiting for permission");
    assert!(it.seen().contains("Bash(make)") && !waits(&it), "most calls run unasked: {}", it.seen());
    let question = Question {
        id: "q1".into(),
        agent: None,
        tool: "Bash".into(),
        server: None,
        call: ToolUseId::new("c1"),
        input,
        kind: QuestionKind::Permission,
        reason: "it needs approval".into(),
        reason_kind: "approval".into(),
        blocked_path: None,
        links: Vec::new(),
        suggestions: Vec::new(),
    };
    it.news(EngineEvent::QuestionAsked(question));
    assert!(waits(&it) && it.seen().contains("Waiting for you"), "{}", it.seen());
    it.wait(2_000).key(KeyCode::Char('1'));
    assert!(it.seen().contains("Bash(make)") && !waits(&it), "it runs: {}", it.seen());
    assert!(it.seen().contains("Running Bash make"), "{}", it.seen());
}

#[test]
fn verdicts_on_a_goal_are_told() {
    let goal = || Goal {
        condition: "tests pass".into(),
        since: Duration::ZERO,
        n_checks: 1,
        reason: None,
        end: None,
    };
    for (verdict, expected) in [
        (GoalVerdict::Reached, "The goal is reached: tests pass"),
        (GoalVerdict::NotYet, "not reached yet"),
        (GoalVerdict::Impossible, "given up"),
        (GoalVerdict::Stalled, "Nothing has happened for a while"),
        (GoalVerdict::Unknown, "could not be found out"),
    ] {
        let mut it = Playing::new(80, 24);
        it.news(EngineEvent::GoalChecked { goal: goal(), verdict, reason: "two fail\u{1b}[2J".into() });
        assert!(it.seen().contains(expected) && it.seen().contains("two fail"), "{}", it.seen());
    }
}

#[test]
fn agent_view_and_background_are_off_where_that_is_said() {
    let off = InterfaceSettings::from_value(&json!({"disableAgentView": true}));
    let by_variable = AppOptions { has_agent_view: false, ..AppOptions::default() };
    for (options, interface) in [(AppOptions::default(), off), (by_variable, InterfaceSettings::default())] {
        let mut it = Playing::with(options, 80, 24);
        it.event(Event::News(News::Started(Box::new(SessionFacts { interface, ..facts() }))));
        it.key(KeyCode::Left);
        assert!(!it.app.panel.is_open(), "{}", it.seen());
        it.text("/background go on").key(KeyCode::Enter);
        assert!(it.seen().contains("disableAgentView"), "{}", it.seen());
        assert!(!it.actions.iter().any(|action| matches!(action, Effect::GoBackground(_) | Effect::Exit(_))));
    }
}

#[test]
fn cursor_stands_at_the_marked_row_for_whoever_magnifies_the_screen() {
    for follows_mark in [false, true] {
        let mut it = Playing::with(AppOptions { follows_mark, ..AppOptions::default() }, 80, 24);
        it.event(Event::News(News::Started(Box::new(facts()))));
        it.text("/help").key(KeyCode::Enter).key(KeyCode::Down);
        let row_of_cursor = |it: &Playing| {
            let (row, _) = it.screen.screen().cursor_position();
            let is_seen = !it.screen.screen().hide_cursor();
            (is_seen, it.screen.screen().rows(0, 80).nth(usize::from(row)).unwrap_or_default())
        };
        let (is_seen, row) = row_of_cursor(&it);
        assert!(is_seen && row.starts_with(if follows_mark { "❯ " } else { "Search:" }), "{row}");
        it.text("c");
        assert!(row_of_cursor(&it).1.starts_with("Search: c"), "letters are looked at where they are typed");
        it.key(KeyCode::Esc).news(EngineEvent::QuestionAsked(question()));
        let (is_seen, row) = row_of_cursor(&it);
        assert_eq!(is_seen, follows_mark, "a question without a field");
        assert!(!follows_mark || row.starts_with("❯ 1. Yes"), "{row}");
    }
}

#[test]
fn every_panel_fits_a_window_of_twenty_by_five_and_smaller_ones() {
    let registry = CommandRegistry::builtin();
    for (width, height) in [(20, 5), (20, 3), (8, 2), (1, 1)] {
        for command in registry.iter_in_terminal() {
            let mut it = Playing::new(80, 24);
            it.event(Event::News(News::Started(Box::new(facts()))));
            it.text(&format!("/{}", command.name)).key(KeyCode::Enter);
            if !it.app.panel.is_open() {
                continue;
            }
            it.resize(width, height);
            let ctx = it.app.render_context(width);
            let space = Size { width, height };
            let (rows, caret) = it.app.panel.panel.as_ref().unwrap().view(&ctx, space).fit(space);
            assert!(rows.len() <= usize::from(height), "/{}: {rows:?}", command.name);
            assert!(!rows.is_empty(), "/{} shows something", command.name);
            assert!(caret.is_none_or(|(row, _)| row < rows.len()), "/{}: {caret:?}", command.name);
            let widest = rows.iter().map(|row| crate::text::width(&row.text())).max();
            assert!(widest <= Some(usize::from(width)), "/{}: {rows:?}", command.name);
            // Keys of lists do no harm, and Escape leads back.
            it.key(KeyCode::Down).key(KeyCode::PageDown).key(KeyCode::Tab).key(KeyCode::Up);
            for _ in 0..3 {
                if it.app.panel.is_open() {
                    it.key(KeyCode::Esc);
                }
            }
            assert!(!it.app.panel.is_open(), "/{} is closed", command.name);
        }
    }
}

#[test]
fn panel_of_servers_follows_one_that_goes_while_it_is_open() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    let is_question = |effect: &Effect| matches!(effect, Effect::Send(Command::Snapshot { .. }));
    let asks = |it: &Playing| it.actions.iter().any(is_question);
    it.news(EngineEvent::Warning("MCP server `calc` is gone".into()));
    assert!(!asks(&it), "nobody looks: {:?}", it.actions);
    it.text("/mcp").key(KeyCode::Enter);
    it.news(EngineEvent::Warning("MCP server `calc` is gone".into()));
    assert!(asks(&it), "{:?}", it.actions);
    it.key(KeyCode::Esc).text("/help").key(KeyCode::Enter);
    it.news(EngineEvent::Warning("MCP server `calc` is gone".into()));
    assert!(!asks(&it), "the help shows no servers: {:?}", it.actions);
}

fn command_beside(status: BackgroundStatus) -> BackgroundTask {
    let about = NewTask { kind: TaskKind::Shell, description: "build".into(), ..task(status.clone()).about };
    BackgroundTask { about, ..task(status) }
}

#[test]
fn leaving_asks_where_work_in_the_background_would_end() {
    for by_keys in [false, true] {
        let mut it = Playing::new(80, 24);
        it.event(Event::News(News::Started(Box::new(facts()))));
        let leave = |it: &mut Playing| match by_keys {
            true => drop(it.ctrl('d').ctrl('d')),
            false => drop(it.text("/exit").key(KeyCode::Enter)),
        };
        it.news(EngineEvent::Task(TaskNews::Started(command_beside(BackgroundStatus::Running))));
        leave(&mut it);
        assert!(it.seen().contains("Work in the background is running"), "{}", it.seen());
        assert!(it.seen().contains("\"build\" is running"), "{}", it.seen());
        it.wait(500).key(KeyCode::Esc);
        assert!(!it.seen().contains("Work in the background") && it.actions.is_empty(), "{:?}", it.actions);
        leave(&mut it);
        match by_keys {
            true => it.wait(500).ctrl('d'),
            false => it.wait(500).key(KeyCode::Enter),
        };
        assert!(it.actions.contains(&Effect::Exit(ExitReason::Asked)), "{:?}", it.actions);
    }
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.news(EngineEvent::Task(TaskNews::Started(command_beside(BackgroundStatus::Running))));
    it.news(EngineEvent::Task(TaskNews::Ended(command_beside(BackgroundStatus::Completed))));
    it.text("/exit").key(KeyCode::Enter);
    assert!(it.actions.contains(&Effect::Exit(ExitReason::Asked)), "nothing runs: {:?}", it.actions);
}

#[test]
fn question_before_leaving_follows_the_work_and_leaves_when_nothing_runs_any_more() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    let build = command_beside(BackgroundStatus::Running);
    let mut tests = build.clone();
    (tests.about.id, tests.about.description) = ("b2".into(), "tests".into());
    for task in [build, tests.clone()] {
        it.news(EngineEvent::Task(TaskNews::Started(task)));
    }
    it.text("/exit").key(KeyCode::Enter);
    assert!(it.seen().contains("\"tests\" is running"), "{}", it.seen());
    tests.status = BackgroundStatus::Completed;
    it.news(EngineEvent::Task(TaskNews::Ended(tests)));
    assert!(!it.seen().contains("\"tests\" is running"), "{}", it.seen());
    assert!(it.seen().contains("\"build\" is running") && it.actions.is_empty(), "{}", it.seen());
    it.news(EngineEvent::Task(TaskNews::Ended(command_beside(BackgroundStatus::Completed))));
    assert!(it.actions.contains(&Effect::Exit(ExitReason::Asked)), "{:?}", it.actions);
}

#[test]
fn end_of_work_in_the_background_is_told_and_not_within_an_answer() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.news(EngineEvent::Task(TaskNews::Ended(task(BackgroundStatus::Completed))));
    assert!(it.seen().contains("Agent \"find it\" finished"), "{}", it.seen());
    it.begin_turn();
    let delta = |text: &str| {
        let event = StreamEvent::Delta { index: 0, delta: Delta::Text(text.to_owned()) };
        EngineEvent::Stream { event, first_after: None }
    };
    it.news(delta("one half "));
    it.news(EngineEvent::Task(TaskNews::Ended(command_beside(BackgroundStatus::Failed(2)))));
    assert!(!it.seen().contains("exit code 2"), "{}", it.seen());
    it.news(delta("and the other"));
    assert!(it.seen().contains("one half and the other"), "{}", it.seen());
    it.end_turn();
    let seen = it.seen();
    assert!(seen.contains("Background command \"build\" failed with exit code 2"), "{seen}");
    it.news(EngineEvent::Task(TaskNews::Ended(command_beside(BackgroundStatus::Killed("you".into())))));
    assert!(!it.seen().contains("was stopped"), "whoever stopped it knows: {}", it.seen());
}
