//! `/agents`, and ← on an empty prompt: the agents at work, each one's transcript as it grows, a message to it, its stop; and
//! the agents that can be sent out.
//!
//! What an agent asks is a question like any other: it stands in the place of the panel, with the agent's name, until it is
//! answered, and the panel comes back.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use loci_app::commands::ReportTopic;
use loci_app::commands::tasks::status;
use loci_app::commands::{format_duration, short_tokens};
use loci_engine::Command;
use loci_stdx::counted;

use super::items::padded;
use super::report::report_rows;
use super::{
    ListMark, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs, ask_snapshot,
    list_rows, mark_row,
};
use crate::app::{Action, AgentLog, AgentLogs, Effect};
use crate::dialog::TextField;
use crate::key::{InputEvent, KeyCode};
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cells, faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

const TITLES: &[&str] = &["At work", "Definitions"];
/// The request by which agents are spoken to.
const MESSAGE_REQUEST: &str = "agents";

/// The agents, or one of them.
#[derive(Debug)]
pub(crate) struct AgentsPanel {
    logs: Rc<RefCell<AgentLogs>>,
    tabs: Tabs,
    /// The agent that is marked, which keeps the mark where others ask, begin or end; the first, where it is nobody.
    marked: Option<String>,
    /// Where it stood when it was moved last.
    mark: ListMark,
    open: Option<OpenAgent>,
    /// What came of the last wish.
    note: Option<String>,
    /// The definitions as Markdown, once they were read.
    definitions: Option<String>,
    scroll: Scroll,
}

#[derive(Debug)]
struct OpenAgent {
    id: String,
    /// Rows below the last one that is seen; the end, where there are none. No more than there are once it was drawn.
    n_below: Cell<usize>,
    /// How many rows were seen last.
    n_seen: Cell<usize>,
    /// What is being said to it.
    message: Option<TextField>,
}

impl OpenAgent {
    fn page(&self) -> usize {
        self.n_seen.get().saturating_sub(1).max(1)
    }
}

impl AgentsPanel {
    /// Shows these.
    pub(crate) fn new(logs: Rc<RefCell<AgentLogs>>) -> Self {
        Self {
            logs,
            tabs: Tabs::new(TITLES),
            marked: None,
            mark: ListMark::default(),
            open: None,
            note: None,
            definitions: None,
            scroll: Scroll::default(),
        }
    }

    /// Shows these, and looks at one.
    pub(crate) fn looking_at(logs: Rc<RefCell<AgentLogs>>, id: &str) -> Self {
        let open = Some(OpenAgent {
            id: id.to_owned(),
            n_below: Cell::default(),
            n_seen: Cell::default(),
            message: None,
        });
        Self { open, ..Self::new(logs) }
    }

    /// Finds the agent that is looked at, or marked: those at work come first.
    fn id(&self) -> Option<String> {
        match &self.open {
            Some(open) => Some(open.id.clone()),
            None => {
                let ids = self.ids();
                ids.get(self.place_of_mark(&ids)).cloned()
            }
        }
    }

    fn place_of_mark(&self, ids: &[String]) -> usize {
        ids.iter().position(|id| Some(id) == self.marked.as_ref()).unwrap_or(0)
    }

    /// Takes a key that marks another agent; tells whether it is one.
    fn moves_mark(&mut self, event: &InputEvent, ctx: &PanelContext) -> bool {
        let ids = self.ids();
        self.mark.at = self.place_of_mark(&ids);
        let is_moved = self.mark.handle_event(ids.len(), event, ctx.action);
        if is_moved {
            self.marked = ids.get(self.mark.at).cloned();
        }
        is_moved
    }

    /// Keeps the mark at its agent from now on: others may come to stand before it.
    fn hold_mark(&mut self) {
        if self.marked.is_none() {
            self.marked = self.ids().first().cloned();
        }
    }

    /// Looks at the agent that is marked; what one of an earlier run did is read.
    fn look_on(&mut self) -> PanelStep {
        self.note = None;
        let Some(id) = self.id() else { return PanelStep::Stay };
        let past = self.logs.borrow().find(&id).and_then(|agent| agent.past);
        self.open = Some(OpenAgent {
            id: id.clone(),
            n_below: Cell::default(),
            n_seen: Cell::default(),
            message: None,
        });
        match past {
            Some(past) if !past.is_read => {
                PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::AgentTranscript {
                    agent: id,
                }))])
            }
            _ => PanelStep::Stay,
        }
    }

    /// Returns the ids in the order in which they are listed: those that ask, those that work, then the newest.
    fn ids(&self) -> Vec<String> {
        let logs = self.logs.borrow();
        let mut agents: Vec<&AgentLog> = logs.all().iter().rev().collect();
        agents.sort_by_key(|agent| (!agent.is_asking(), !agent.is_running()));
        agents.into_iter().map(|agent| agent.id.clone()).collect()
    }

    fn stop(&self) -> PanelStep {
        let Some(id) = self.id() else { return PanelStep::Stay };
        let is_running = self.logs.borrow().find(&id).is_some_and(AgentLog::is_running);
        match is_running {
            true => PanelStep::Act(vec![Action::Effect(Effect::Send(Command::StopTask {
                request: "tasks".to_owned(),
                task: id,
            }))]),
            false => PanelStep::Stay,
        }
    }

    fn background(&self) -> PanelStep {
        let logs = self.logs.borrow();
        let agent = self.id().and_then(|id| logs.find(&id).map(|agent| agent.task.clone())).flatten();
        match agent.filter(|task| !task.is_background) {
            Some(task) => {
                let call = Some(task.about.tool_use_id);
                PanelStep::Act(vec![Action::Effect(Effect::Send(Command::MoveToBackground { call }))])
            }
            None => PanelStep::Stay,
        }
    }

    fn handle_message(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let Some(open) = &mut self.open else { return PanelStep::Stay };
        let Some(field) = &mut open.message else { return PanelStep::Stay };
        if ctx.is_cancel() {
            open.message = None;
            return PanelStep::Stay;
        }
        match event {
            InputEvent::Paste(text) => field.insert(text),
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let text = field.text().trim().to_owned();
                let agent = open.id.clone();
                open.message = None;
                if text.is_empty() {
                    return PanelStep::Stay;
                }
                self.note = Some("Handing it over…".to_owned());
                let request = MESSAGE_REQUEST.to_owned();
                return PanelStep::Act(vec![Action::Effect(Effect::Send(Command::MessageAgent {
                    request,
                    agent,
                    text,
                }))]);
            }
            InputEvent::Key(key) => drop(field.handle(*key)),
            _ => {}
        }
        PanelStep::Stay
    }

    fn handle_open(&mut self, event: &InputEvent) -> PanelStep {
        let Some(open) = &mut self.open else { return PanelStep::Stay };
        let InputEvent::Key(key) = event else { return PanelStep::Stay };
        match key.code {
            KeyCode::Up => open.n_below.update(|n_below| n_below + 1),
            KeyCode::Down => open.n_below.update(|n_below| n_below.saturating_sub(1)),
            KeyCode::PageUp => open.n_below.update(|n_below| n_below + open.page()),
            KeyCode::PageDown => open.n_below.update(|n_below| n_below.saturating_sub(open.page())),
            KeyCode::Home => open.n_below.set(usize::MAX / 2),
            KeyCode::End => open.n_below.set(0),
            KeyCode::Char('m') | KeyCode::Enter => open.message = Some(TextField::default()),
            KeyCode::Char('x') => return self.stop(),
            KeyCode::Char('b') => return self.background(),
            _ => {}
        }
        PanelStep::Stay
    }

    fn handle_list(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match ctx.action {
            _ if self.moves_mark(event, ctx) => {}
            Some(KeyAction::SelectAccept) => return self.look_on(),
            _ => match event {
                InputEvent::Key(key) if key.code == KeyCode::Char('x') => return self.stop(),
                InputEvent::Key(key) if key.code == KeyCode::Char('b') => return self.background(),
                InputEvent::Key(key) if key.code == KeyCode::Left => return PanelStep::Close,
                _ => {}
            },
        }
        PanelStep::Stay
    }

    /// Names agents as the list does: nobody knows them by their ids.
    fn with_names(&self, text: String) -> String {
        let logs = self.logs.borrow();
        let named = logs.all().iter().find(|agent| text.contains(&format!("Agent {} ", agent.id)));
        match named {
            Some(agent) => {
                text.replace(&format!("Agent {} ", agent.id), &format!("\"{}\" ", agent.description))
            }
            None => text,
        }
    }

    fn push_note(&self, view: &mut PanelView) {
        view.head.extend(self.note.as_ref().map(|note| line(note, warning())));
    }

    fn agent_view(&self, open: &OpenAgent, ctx: &RenderContext, size: Size) -> PanelView {
        let logs = self.logs.borrow();
        let Some(agent) = logs.find(&open.id) else {
            return PanelView::new("This agent is gone", "Esc back");
        };
        let title = format!("{}: {} · {}", agent.kind, agent.description, state(agent));
        let hint = match &open.message {
            Some(_) => "Enter send · Esc leave it",
            None if is_waited_for(agent) => {
                "m say something · x stop · b to the background · ↑↓ scroll · Esc back"
            }
            None if agent.is_running() => "m say something · x stop · ↑↓ scroll · Esc back",
            None => "m let it go on · ↑↓ scroll · Esc back",
        };
        let mut view = PanelView::new(&title, hint);
        self.push_note(&mut view);
        if let Some(field) = &open.message {
            view.push_field("To it: ", field);
        }
        let room = view.room(size);
        open.n_seen.set(room);
        view.body = agent.rows(ctx, &open.n_below, room);
        if view.body.is_empty() {
            let is_unread = agent.past.is_some_and(|past| !past.is_read);
            let text = if is_unread { "Reading…" } else { "It has said nothing yet" };
            view.body = vec![line(text, faint())];
        }
        view
    }

    fn list_view(&self, size: Size) -> PanelView {
        let (ids, logs) = (self.ids(), self.logs.borrow());
        let marked = self.place_of_mark(&ids);
        let hint = match ids.get(marked).and_then(|id| logs.find(id)) {
            None => "Tab definitions · Esc close",
            Some(agent) if is_waited_for(agent) => {
                "Enter look on · x stop · b to the background · Tab definitions · Esc close"
            }
            Some(agent) if agent.is_running() => "Enter look on · x stop · Tab definitions · Esc close",
            Some(_) => "Enter look on · Tab definitions · Esc close",
        };
        let mut view = PanelView::new("Agents", hint);
        view.head.push(self.tabs.row(size.width));
        self.push_note(&mut view);
        let room = view.room(size);
        let agent = |idx: usize| ids.get(idx).and_then(|id| logs.find(id));
        let widths = (0..ids.len()).filter_map(agent).map(|agent| cells(&sanitize_line(&state(agent))));
        let column = widths.filter(|width| *width <= size.width / 3).max().map_or(0, usize::from);
        let row = |idx: usize| agent(idx).map_or_else(Row::default, |agent| agent_row(agent, column));
        self.mark.see(ids.len(), room);
        view.body = list_rows(ids.len(), marked, room, |idx, is_marked| mark_row(row(idx), is_marked));
        if ids.is_empty() {
            view.body = paragraph(
                "",
                "No agent was sent out in this session. Ask for one, or begin a prompt with @agent-NAME; Tab lists \
                 them",
                faint(),
                size.width,
            );
        }
        view
    }
}

impl Panel for AgentsPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if self.open.as_ref().is_some_and(|open| open.message.is_some()) {
            return self.handle_message(event, ctx);
        }
        // What was said of one agent is no news once something else is done.
        self.note = None;
        if ctx.is_cancel() {
            return match self.open.take() {
                Some(_) => PanelStep::Stay,
                None => PanelStep::Close,
            };
        }
        if self.open.is_some() {
            return self.handle_open(event);
        }
        if self.tabs.handle(ctx.action) {
            let is_unread = self.tabs.shown() == 1 && self.definitions.is_none();
            return if is_unread { PanelStep::Act(vec![ask_snapshot()]) } else { PanelStep::Stay };
        }
        match self.tabs.shown() {
            0 => self.handle_list(event, ctx),
            _ => {
                self.scroll.handle(event);
                PanelStep::Stay
            }
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Report {
                    topic: ReportTopic::Agents,
                    snapshot,
                }))];
            }
            PanelData::Report { topic: ReportTopic::Agents, markdown } => self.definitions = Some(markdown),
            PanelData::AgentMessaged(outcome) => {
                let text = outcome.unwrap_or_else(|why| why);
                self.note = Some(self.with_names(text));
            }
            PanelData::PastAgents(past) => {
                self.hold_mark();
                self.logs.borrow_mut().add_past(past);
            }
            PanelData::AgentTranscript { agent, blocks } => {
                self.logs.borrow_mut().take_transcript(&agent, blocks);
            }
            PanelData::Failed(why) => self.note = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        if let Some(open) = &self.open {
            return self.agent_view(open, ctx, size);
        }
        if self.tabs.shown() == 0 {
            return self.list_view(size);
        }
        let mut view = PanelView::new("Agents", "↑↓ scroll · Tab those at work · Esc close");
        view.head.push(self.tabs.row(size.width));
        let room = view.room(size);
        view.body = self.scroll.rows(report_rows(self.definitions.as_deref(), ctx), room);
        view
    }

    fn is_typing(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.message.is_some())
    }

    fn contexts(&self) -> &'static [Context] {
        match self.is_typing() {
            true => &[Context::Select, Context::Global],
            false => &[Context::Tabs, Context::Select, Context::Global],
        }
    }
}

/// Says how an agent is doing.
fn state(agent: &AgentLog) -> String {
    match &agent.task {
        _ if agent.is_asking() => "asks you something".to_owned(),
        Some(task) if agent.is_running() && !task.is_background => "running, waited for".to_owned(),
        Some(task) => status(task),
        None => match agent.past {
            Some(past) if past.has_answered => "done, in an earlier run".to_owned(),
            Some(_) => "cut off in an earlier run".to_owned(),
            None => "running".to_owned(),
        },
    }
}

/// Tells whether the conversation waits for an agent, which can be taken to the background then.
fn is_waited_for(agent: &AgentLog) -> bool {
    agent.is_running() && agent.task.as_ref().is_some_and(|task| !task.is_background)
}

/// How an agent is doing comes first: it is what a narrow window must not cut away.
fn agent_row(agent: &AgentLog, state_width: usize) -> Row {
    let state_style = if agent.is_asking() { warning() } else { faint() };
    let mut spans = vec![
        Span::styled(format!("{}  ", padded(&state(agent), state_width)), state_style),
        Span::plain(sanitize_line(&format!("{}: {}", agent.kind, agent.description))),
    ];
    if agent.is_running() && !agent.activity.is_empty() {
        spans.push(Span::styled(format!("  {}", sanitize_line(&agent.activity)), faint()));
    }
    let usage = agent.usage;
    if usage.total_tokens > 0 {
        let used = format!(
            "  {} tokens, {}, {}",
            short_tokens(usage.total_tokens),
            counted(usage.tool_uses, "call", "calls"),
            format_duration(usage.duration)
        );
        spans.push(Span::styled(used, faint()));
    }
    Row::new(spans)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loci_app::sessions::command::PastAgent;
    use loci_core::ids::{AgentId, ToolUseId};
    use loci_core::stream::{Delta, StreamEvent};
    use loci_engine::{
        AgentRef, BackgroundStatus, BackgroundTask, EngineEvent, NewTask, TaskKind, TaskNews, UserMessage,
    };
    use serde_json::json;

    use super::super::testing::Shown;
    use super::*;

    fn task(id: &str, status: BackgroundStatus, is_background: bool) -> BackgroundTask {
        BackgroundTask {
            about: NewTask {
                id: id.to_owned(),
                kind: TaskKind::Agent("Explore".into()),
                tool_use_id: ToolUseId::new("call"),
                command: "look".into(),
                description: format!("find\u{1b}[2J it {id} 日本"),
                output: "/o".into(),
            },
            owner: None,
            status,
            is_background,
            report: None,
        }
    }

    fn logs() -> Rc<RefCell<AgentLogs>> {
        let mut logs = AgentLogs::new(std::path::Path::new("/p"));
        logs.take_task(&TaskNews::Ended(task("old", BackgroundStatus::Completed, true)));
        logs.take_task(&TaskNews::Started(task("new", BackgroundStatus::Running, false)));
        Rc::new(RefCell::new(logs))
    }

    fn say(logs: &Rc<RefCell<AgentLogs>>, event: EngineEvent) {
        let agent = AgentRef {
            id: AgentId::new("new"),
            kind: "Explore".into(),
            parent: None,
            description: "find it".into(),
            depth: 1,
        };
        logs.borrow_mut().take_event(&agent, &event, Duration::ZERO);
    }

    fn delta(text: &str) -> EngineEvent {
        let event = StreamEvent::Delta { index: 0, delta: Delta::Text(text.to_owned()) };
        EngineEvent::Stream { event, first_after: None }
    }

    #[test]
    fn agent_is_looked_at_live_spoken_to_and_stopped() {
        for width in [20, 50, 80, 120] {
            let logs = logs();
            let mut shown = Shown::new(AgentsPanel::new(Rc::clone(&logs)), width, 10);
            shown.assert_clean();
            assert!(shown.text().contains("❯ running, waited"), "{}", shown.text());
            assert!(width < 50 || shown.text().contains("  Explore: find"), "{}", shown.text());
            assert_eq!(shown.action(KeyAction::SelectAccept), PanelStep::Stay);
            say(&logs, delta("I look at"));
            assert!(shown.text().contains("I look at"), "{width}: {}", shown.text());
            say(&logs, delta(" it.\u{1b}[2J"));
            assert!(shown.text().contains("it."), "it grows: {}", shown.text());
            shown.assert_clean();
            let stop = Command::StopTask { request: "tasks".into(), task: "new".into() };
            assert_eq!(
                shown.key(KeyCode::Char('x'), None),
                PanelStep::Act(vec![Action::Effect(Effect::Send(stop))])
            );
            let move_it = Command::MoveToBackground { call: Some(ToolUseId::new("call")) };
            assert_eq!(
                shown.key(KeyCode::Char('b'), None),
                PanelStep::Act(vec![Action::Effect(Effect::Send(move_it))])
            );
            shown.key(KeyCode::Char('m'), None);
            assert!(shown.panel.is_typing());
            shown.type_text("also x");
            let message = Command::MessageAgent {
                request: MESSAGE_REQUEST.into(),
                agent: "new".into(),
                text: "also x".into(),
            };
            let sent = shown.key(KeyCode::Enter, None);
            assert_eq!(sent, PanelStep::Act(vec![Action::Effect(Effect::Send(message))]));
            shown.receive(PanelData::AgentMessaged(Ok("Agent new hears\u{1b}[2J it".into())));
            assert!(shown.text().contains("日本\" hears") || width < 50, "{}", shown.text());
            shown.key(KeyCode::Down, None);
            assert!(!shown.text().contains("hears"), "no news any more: {}", shown.text());
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Stay, "back to the list");
            assert_eq!(shown.action(KeyAction::SelectCancel), PanelStep::Close);
        }
    }

    #[test]
    fn mark_stays_with_its_agent_when_the_order_changes() {
        let logs = logs();
        let mut shown = Shown::new(AgentsPanel::new(Rc::clone(&logs)), 80, 10);
        shown.receive(PanelData::PastAgents(Vec::new()));
        assert!(shown.text().contains("b to the background"), "it is waited for: {}", shown.text());
        logs.borrow_mut().take_task(&TaskNews::Started(task("third", BackgroundStatus::Running, true)));
        let stop = |id: &str| {
            let stop = Command::StopTask { request: "tasks".into(), task: id.into() };
            PanelStep::Act(vec![Action::Effect(Effect::Send(stop))])
        };
        assert_eq!(shown.key(KeyCode::Char('x'), None), stop("new"), "{}", shown.text());
        shown.action(KeyAction::SelectPrevious);
        assert_eq!(shown.key(KeyCode::Char('x'), None), stop("third"), "{}", shown.text());
        assert!(!shown.text().contains("b to the background"), "nobody waits for it: {}", shown.text());
    }

    #[test]
    fn what_an_agent_was_told_stands_in_its_log() {
        let logs = logs();
        let said = |text: &str, is_synthetic| {
            let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
            let (entry, timestamp) = ("e".into(), String::new());
            EngineEvent::User(UserMessage { entry, message, tool_use_result: None, is_synthetic, timestamp })
        };
        say(&logs, said("find all callers", false));
        say(&logs, said("a reminder", true));
        let (id, attached) = (String::new(), Vec::new());
        say(&logs, EngineEvent::Dequeued { id, text: "only in src".into(), is_injected: true, attached });
        let mut shown = Shown::new(AgentsPanel::new(logs), 60, 12);
        shown.action(KeyAction::SelectAccept);
        let text = shown.text();
        assert!(text.contains("> find all callers") && text.contains("> only in src"), "{text}");
        assert!(!text.contains("reminder"), "{text}");
    }

    #[test]
    fn agents_of_an_earlier_run_are_listed_and_their_transcripts_read() {
        let logs = logs();
        let mut shown = Shown::new(AgentsPanel::new(Rc::clone(&logs)), 80, 10);
        let past = |id: &str, has_answered| PastAgent {
            id: AgentId::new(id),
            kind: "Plan".into(),
            description: format!("plan {id}"),
            has_answered,
        };
        shown.receive(PanelData::PastAgents(vec![past("p1", true), past("new", true), past("p2", false)]));
        let text = shown.text();
        assert!(text.contains("  done, in an earlier run    Plan: plan p1"), "{text}");
        assert!(text.contains("  cut off in an earlier run  Plan: plan p2"), "{text}");
        assert!(!text.contains("plan new"), "{text}");
        shown.action(KeyAction::SelectPrevious);
        let asked = shown.action(KeyAction::SelectAccept);
        let request = PanelRequest::AgentTranscript { agent: "p1".into() };
        assert_eq!(asked, PanelStep::Act(vec![Action::Effect(Effect::AskPanel(request))]));
        assert!(shown.text().contains("Reading…"), "{}", shown.text());
        let blocks = vec![crate::block::Block::Answer { markdown: "this is the plan".into() }];
        shown.receive(PanelData::AgentTranscript { agent: "p1".into(), blocks });
        let text = shown.text();
        assert!(text.contains("this is the plan") && text.contains("m let it go on"), "{text}");
        let woken = task("p1", BackgroundStatus::Running, true);
        logs.borrow_mut().take_task(&TaskNews::Started(woken));
        let text = shown.text();
        assert!(text.contains("running") && text.contains("this is the plan"), "{text}");
    }

    #[test]
    fn long_log_makes_only_rows_that_are_seen() {
        let logs = logs();
        for n in 0..2_000 {
            say(&logs, EngineEvent::Warning(format!("line {n}")));
        }
        let mut shown = Shown::new(AgentsPanel::new(logs), 60, 10);
        shown.action(KeyAction::SelectAccept);
        assert!(
            shown.text().contains("line 1999") && !shown.text().contains("line 1000"),
            "{}",
            shown.text()
        );
        for _ in 0..3 {
            shown.key(KeyCode::PageUp, None);
        }
        assert!(!shown.text().contains("line 1999"), "{}", shown.text());
        shown.key(KeyCode::End, None);
        assert!(shown.text().contains("line 1999"), "{}", shown.text());
        // Nobody goes further than the beginning, so that the next key is seen to go back.
        shown.key(KeyCode::Home, None);
        assert!(shown.text().contains("line 0"), "{}", shown.text());
        shown.key(KeyCode::PageUp, None);
        assert!(shown.text().contains("line 0"), "{}", shown.text());
        shown.key(KeyCode::PageDown, None);
        assert!(!shown.text().contains("line 0"), "{}", shown.text());
    }
}
