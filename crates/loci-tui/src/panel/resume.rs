//! `/resume`: sessions to go on with. Letters narrow the list down and search what was said; keys preview, rename, and show
//! the branches within a session.

mod branches;
#[cfg(test)]
mod tests;

use loci_app::sessions::picker::{FoundMessage, PickerScope, SessionChoice};

use super::{
    FilteredList, ListStep, Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll,
};
use crate::app::{Action, Effect, UiAction};
use crate::block::Block;
use crate::dialog::TextField;
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::Context;
use crate::layout::{faint, line, warning};
use crate::render::{RenderContext, render_block};
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line, width};
use branches::BranchList;

/// What is searched for in messages has at least so many letters.
const LEAST_SEARCH: usize = 3;
/// How many sessions are asked for first, so that something is seen at once.
const FIRST: usize = 100;
/// Sessions are indented so often at most.
const MOST_INDENT: usize = 6;

/// Sessions to choose from.
#[derive(Debug)]
pub(crate) struct ResumePanel {
    scope: PickerScope,
    /// The session at hand, which is not offered.
    current: Option<String>,
    sessions: Vec<SessionChoice>,
    searched: Vec<String>,
    list: FilteredList,
    is_whole: bool,
    /// Messages that have the words of the filter, of sessions that the list does not show.
    found: Vec<FoundMessage>,
    found_marked: Option<usize>,
    /// The search that is under way.
    searching: Option<String>,
    stage: ResumeView,
    problem: Option<String>,
}

#[derive(Debug)]
enum ResumeView {
    List,
    Preview { choice: SessionChoice, blocks: Option<Vec<Block>>, scroll: Scroll },
    Rename { choice: SessionChoice, name: TextField },
    Branches(BranchList),
}

impl ResumePanel {
    /// Opens the list; returns what is to be found out.
    pub(crate) fn new(current: Option<String>) -> (Self, Vec<Action>) {
        let panel = Self {
            scope: PickerScope::Project,
            current,
            sessions: Vec::new(),
            searched: Vec::new(),
            list: FilteredList::default(),
            is_whole: false,
            found: Vec::new(),
            found_marked: None,
            searching: None,
            stage: ResumeView::List,
            problem: None,
        };
        let ask = panel.ask_sessions(Some(FIRST));
        (panel, vec![ask])
    }

    fn ask_sessions(&self, most: Option<usize>) -> Action {
        Action::Effect(Effect::AskPanel(PanelRequest::Sessions { scope: self.scope, most }))
    }

    fn take_sessions(&mut self, sessions: Vec<SessionChoice>, is_whole: bool) -> Vec<Action> {
        // Whoever has not moved yet has the newest marked, also where a newer one is known only now.
        let has_moved = self.list.marked_idx() > 0 || self.found_marked.is_some();
        let marked = self.marked().filter(|_| has_moved).map(|choice| choice.id.clone());
        self.sessions =
            sessions.into_iter().filter(|session| Some(&session.id) != self.current.as_ref()).collect();
        self.searched = self.sessions.iter().map(SessionChoice::searched).collect();
        self.list.refilter(self.searched.iter().map(String::as_str));
        if !has_moved {
            self.list.mark_first();
        }
        if let Some(place) = marked.and_then(|id| self.sessions.iter().position(|it| it.id == id)) {
            self.list.mark(place);
        }
        self.is_whole = is_whole;
        match is_whole {
            true => Vec::new(),
            false => vec![self.ask_sessions(None)],
        }
    }

    fn marked(&self) -> Option<&SessionChoice> {
        match self.found_marked {
            Some(idx) => self.found.get(idx).map(|found| &found.session),
            None => self.list.marked().and_then(|place| self.sessions.get(place)),
        }
    }

    /// The filter is another one: the list is narrowed down, and messages are searched.
    fn filtered(&mut self) -> Vec<Action> {
        self.list.refilter(self.searched.iter().map(String::as_str));
        (self.found_marked, self.problem) = (None, None);
        self.found.clear();
        self.search()
    }

    /// Searches for what stands in the filter, unless a search is under way: its answer asks again.
    fn search(&mut self) -> Vec<Action> {
        let text = self.list.field().text().trim().to_owned();
        if text.chars().count() < LEAST_SEARCH || self.searching.is_some() {
            return Vec::new();
        }
        self.searching = Some(text.clone());
        vec![Action::Effect(Effect::AskPanel(PanelRequest::FindMessages {
            text,
            scope: self.scope,
            limit: 20,
        }))]
    }

    fn take_found(&mut self, text: &str, found: Vec<FoundMessage>) -> Vec<Action> {
        self.searching = None;
        if text != self.list.field().text().trim() {
            return self.search();
        }
        let shown: Vec<&str> =
            self.list.shown().filter_map(|place| Some(self.sessions.get(place)?.id.as_str())).collect();
        let mut known: Vec<String> = shown.into_iter().map(str::to_owned).collect();
        known.extend(self.current.clone());
        self.found = Vec::new();
        for message in found {
            if !known.contains(&message.session.id) {
                known.push(message.session.id.clone());
                self.found.push(message);
            }
        }
        if self.list.len() == 0 && !self.found.is_empty() {
            self.found_marked = Some(0);
        }
        Vec::new()
    }

    fn handle_list(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if let InputEvent::Key(key) = event {
            if let Some(step) = self.handle_command(*key) {
                return step;
            }
            if self.move_between(*key) {
                return PanelStep::Stay;
            }
            if key.code == KeyCode::Enter {
                return match self.marked() {
                    Some(choice) => PanelStep::CloseWith(vec![Action::Ui(UiAction::Resume(
                        Box::new(choice.clone()),
                        None,
                    ))]),
                    None => PanelStep::Stay,
                };
            }
        }
        match self.list.handle(event, ctx) {
            ListStep::Filtered => PanelStep::Act(self.filtered()),
            ListStep::Chosen(_) | ListStep::Moved | ListStep::Unknown => PanelStep::Stay,
        }
    }

    /// Moves between the list and what was found below it.
    fn move_between(&mut self, key: Key) -> bool {
        let last = self.list.len().checked_sub(1);
        let is_last = self.list.marked_idx() == last.unwrap_or(0);
        self.found_marked = match (key.code, self.found_marked) {
            (KeyCode::Down, Some(idx)) => Some((idx + 1).min(self.found.len().saturating_sub(1))),
            (KeyCode::Up, Some(0)) if last.is_some() => None,
            (KeyCode::Up, Some(idx)) => Some(idx.saturating_sub(1)),
            (KeyCode::Down, None) if is_last && !self.found.is_empty() => Some(0),
            _ => return false,
        };
        true
    }

    fn handle_command(&mut self, key: Key) -> Option<PanelStep> {
        Some(match (key.code, key.ctrl) {
            (KeyCode::Char('a'), true) => {
                self.scope = match self.scope {
                    PickerScope::Project => PickerScope::All,
                    PickerScope::All => PickerScope::Project,
                };
                let mut actions = vec![self.ask_sessions(Some(FIRST))];
                self.found.clear();
                actions.extend(self.search());
                PanelStep::Act(actions)
            }
            (KeyCode::Char('v'), true) | (KeyCode::Tab, false) => {
                let choice = self.marked()?.clone();
                let ask = Action::Effect(Effect::AskPanel(PanelRequest::Preview {
                    file: choice.file.clone(),
                    from: None,
                }));
                self.stage = ResumeView::Preview { choice, blocks: None, scroll: Scroll::default() };
                PanelStep::Act(vec![ask])
            }
            (KeyCode::Right, false) if self.list.field().is_at_end() => {
                let choice = self.marked()?.clone();
                let ask =
                    Action::Effect(Effect::AskPanel(PanelRequest::Branches { file: choice.file.clone() }));
                self.stage = ResumeView::Branches(BranchList::new(choice));
                PanelStep::Act(vec![ask])
            }
            (KeyCode::Char('r'), true) => {
                let choice = self.marked()?.clone();
                self.stage = ResumeView::Rename { choice, name: TextField::default() };
                PanelStep::Stay
            }
            _ => return None,
        })
    }

    fn handle_rename(&mut self, event: &InputEvent) -> PanelStep {
        let ResumeView::Rename { choice, name } = &mut self.stage else { return PanelStep::Stay };
        match event {
            InputEvent::Paste(text) => name.insert(text),
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                let (choice, title) = (choice.clone(), name.text().trim().to_owned());
                self.stage = ResumeView::List;
                return match title.is_empty() {
                    true => PanelStep::Stay,
                    false => {
                        PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::RenameSession {
                            choice: Box::new(choice),
                            title,
                        }))])
                    }
                };
            }
            InputEvent::Key(key) => drop(name.handle(*key)),
            _ => {}
        }
        PanelStep::Stay
    }

    fn handle_preview(&mut self, event: &InputEvent) -> PanelStep {
        let ResumeView::Preview { choice, scroll, .. } = &mut self.stage else { return PanelStep::Stay };
        match event {
            InputEvent::Key(key) if key.code == KeyCode::Enter => {
                PanelStep::CloseWith(vec![Action::Ui(UiAction::Resume(Box::new(choice.clone()), None))])
            }
            event => {
                scroll.handle(event);
                PanelStep::Stay
            }
        }
    }

    fn handle_branches(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let ResumeView::Branches(branches) = &mut self.stage else { return PanelStep::Stay };
        if matches!(event, InputEvent::Key(key) if key.code == KeyCode::Left) {
            self.stage = ResumeView::List;
            return PanelStep::Stay;
        }
        branches.handle(event, ctx)
    }

    fn list_view(&self, size: Size) -> PanelView {
        let (place, other) = match self.scope {
            PickerScope::Project => ("this project", "all projects"),
            PickerScope::All => ("all projects", "this project"),
        };
        let count = if self.is_whole { format!("{}", self.sessions.len()) } else { "…".to_owned() };
        let hint = format!(
            "Enter resume · → branches · Ctrl+V preview · Ctrl+R rename · Ctrl+A {other} · Esc close"
        );
        let mut view = PanelView::new(&format!("Resume a session · {place} ({count})"), &hint);
        view.push_field("Search: ", self.list.field());
        let room = view.room(size);
        let n_found = self.found.len().min(room / 2);
        let room_of_list = room.saturating_sub(if n_found > 0 { n_found + 1 } else { 0 }).max(1);
        let is_all = self.scope == PickerScope::All;
        let is_in_list = self.found_marked.is_none();
        view.body = self.list.rows_marked(room_of_list, is_in_list, |place| {
            self.sessions
                .get(place)
                .map_or_else(Row::default, |choice| choice_row(choice, is_all, size.width))
        });
        if let Some(problem) = &self.problem {
            view.body.push(line(problem, warning()));
        } else if self.list.len() == 0 && self.found.is_empty() {
            view.body.push(line(self.empty_text(), faint()));
        }
        if n_found > 0 {
            view.body.push(line("Said in other sessions:", faint()));
            let marked = self.found_marked.unwrap_or(0);
            let rows = super::list_rows(self.found.len(), marked, n_found, |idx, is_marked| {
                let row = self.found.get(idx).map_or_else(Row::default, found_row);
                super::mark_row(row, is_marked && self.found_marked.is_some())
            });
            view.body.extend(rows);
        }
        view
    }

    fn empty_text(&self) -> &'static str {
        match (self.is_whole, self.searching.is_some(), self.sessions.is_empty(), self.scope) {
            (false, ..) => "Reading the sessions…",
            (true, true, ..) => "Searching what was said…",
            (true, false, true, PickerScope::Project) => {
                "There are no other sessions of this project; Ctrl+A looks everywhere"
            }
            (true, false, true, PickerScope::All) => "There are no other sessions",
            (true, false, false, _) => "Nothing fits",
        }
    }
}

impl Panel for ResumePanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        match self.stage {
            ResumeView::List if ctx.is_cancel() => {
                PanelStep::CloseWith(vec![Action::Ui(UiAction::PickerClosed)])
            }
            _ if ctx.is_cancel() => {
                self.stage = ResumeView::List;
                PanelStep::Stay
            }
            ResumeView::List => self.handle_list(event, ctx),
            ResumeView::Preview { .. } => self.handle_preview(event),
            ResumeView::Rename { .. } => self.handle_rename(event),
            ResumeView::Branches(_) => self.handle_branches(event, ctx),
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Sessions { scope, sessions, is_whole } if scope == self.scope => {
                return self.take_sessions(sessions, is_whole);
            }
            PanelData::FoundMessages { text, found } => return self.take_found(&text, found),
            PanelData::Preview { file, blocks: read } => {
                if let ResumeView::Preview { choice, blocks, .. } = &mut self.stage
                    && choice.file == file
                {
                    *blocks = Some(read);
                }
            }
            PanelData::Branches { file, branches } => {
                if let ResumeView::Branches(list) = &mut self.stage {
                    list.take(&file, branches);
                }
            }
            PanelData::Renamed => return vec![self.ask_sessions(None)],
            PanelData::Failed(why) => {
                self.stage = ResumeView::List;
                self.searching = None;
                self.is_whole = true;
                self.problem = Some(why);
            }
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        match &self.stage {
            ResumeView::List => self.list_view(size),
            ResumeView::Rename { choice, name } => {
                let mut view =
                    PanelView::new(&format!("A name for: {}", choice.title), "Enter keep · Esc back");
                view.push_field("Name: ", name);
                view
            }
            ResumeView::Branches(branches) => branches.view(size),
            ResumeView::Preview { choice, blocks, scroll } => {
                preview_view(choice, blocks.as_deref(), scroll, ctx, size)
            }
        }
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }

    fn is_typing(&self) -> bool {
        !matches!(self.stage, ResumeView::Branches(_))
    }
}

/// Shows the last things that were said in a session.
pub(super) fn preview_view(
    choice: &SessionChoice,
    blocks: Option<&[Block]>,
    scroll: &Scroll,
    ctx: &RenderContext,
    size: Size,
) -> PanelView {
    let mut view = PanelView::new(&choice.title, "↑↓ PgUp PgDn scroll · Enter resume · Esc back");
    let place = choice.shown_cwd.as_deref().unwrap_or_default();
    view.head.push(line(&format!("{} · {} · {place}", choice.time, messages(choice.n_messages)), faint()));
    let room = view.room(size);
    let rows = match blocks {
        None => vec![line("Reading…", faint())],
        Some([]) => {
            vec![line("Nothing stands on the branch at hand; → in the list shows the others", faint())]
        }
        Some(blocks) => {
            let mut rows = Vec::new();
            for block in blocks {
                rows.extend(render_block(block, ctx));
                rows.push(Row::default());
            }
            rows
        }
    };
    view.body = scroll.rows(rows, room);
    view
}

fn messages(n: u64) -> String {
    loci_stdx::counted(n, "message", "messages")
}

/// A session in a row: when, what about, and where as far as there is room.
fn choice_row(choice: &SessionChoice, has_place: bool, columns: u16) -> Row {
    let branch = choice.branch.as_ref().map(|branch| format!(" · {branch}")).unwrap_or_default();
    let place = match (has_place, &choice.shown_cwd) {
        (true, Some(cwd)) => format!(" · {cwd}"),
        _ => String::new(),
    };
    let below = match choice.depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth.min(MOST_INDENT) - 1)),
    };
    let mark = if choice.is_branch { "⑂ " } else { "" };
    let when = format!("{:<9}", choice.ago);
    let facts = sanitize_line(&format!("  {}{branch}{place}", messages(choice.n_messages)));
    let room = usize::from(columns).saturating_sub(2 + width(&when));
    let title = sanitize_line(&format!("{below}{mark}{}", choice.title));
    let has_facts = room > 60 && width(&title) + 10 < room;
    let when = if when.ends_with(' ') { when } else { when + " " };
    let mut spans = vec![Span::styled(when, faint()), Span::plain(title)];
    if has_facts {
        spans.push(Span::styled(facts, faint()));
    }
    Row::new(spans)
}

fn found_row(found: &FoundMessage) -> Row {
    Row::new(vec![
        Span::styled(sanitize_line(&format!("{:<8} {}: ", found.session.ago, found.voice)), faint()),
        Span::plain(sanitize_line(&found.snippet)),
    ])
}
