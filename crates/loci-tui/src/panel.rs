//! Panels: what a command shows in the place of the prompt until it is closed.
//!
//! A panel is a small state machine. [`Panel::handle`] takes what was typed and says what follows, [`Panel::view`] says
//! what is seen within a size. Nothing here reads a disk: what a panel needs it asks for with
//! [`Effect::AskPanel`](crate::app::Effect::AskPanel), and [`Panel::receive`] takes the answer, whenever it comes. Until
//! then, and after a failure, it has something to show.
//!
//! To add one: a file under `panel/`, a row in the engine's table of commands, an arm in `app/commands.rs`, and, where it
//! needs data, a [`PanelRequest`] with a function of `loci_app` that answers it (`panel/request.rs`).

mod agents;
mod config;
mod context;
mod copy;
mod debug;
mod diff;
mod effort;
mod export;
mod fewer_prompts;
mod help;
mod hooks;
mod items;
mod list;
mod mcp;
mod memory;
mod model;
mod permissions;
mod plugin;
mod plugin_options;
mod rename;
mod report;
mod request;
mod resume;
mod rewind;
mod sandbox;
mod scroll;
mod search;
mod side_question;
mod skills;
mod tabs;
mod tasks;
#[cfg(test)]
pub(crate) mod testing;
mod theme;
mod usage;

pub(crate) use agents::AgentsPanel;
pub(crate) use config::ConfigPanel;
pub(crate) use context::{ContextPanel, ContextView};
pub(crate) use copy::CopyPanel;
pub(crate) use debug::DebugPanel;
pub(crate) use diff::DiffPanel;
pub(crate) use effort::EffortPanel;
pub(crate) use export::ExportPanel;
pub(crate) use fewer_prompts::FewerPromptsPanel;
pub(crate) use help::HelpPanel;
pub(crate) use hooks::HooksPanel;
pub(crate) use items::{ItemList, ListItem};
pub(crate) use list::{FilteredList, ListMark, ListStep, list_rows, mark_row};
pub(crate) use mcp::McpPanel;
pub(crate) use memory::MemoryPanel;
pub(crate) use model::ModelPanel;
pub(crate) use permissions::PermissionsPanel;
pub(crate) use plugin::PluginPanel;
pub(crate) use rename::{RenamePanel, rename_actions};
pub(crate) use report::ReportPanel;
pub use request::{PanelData, PanelRequest};
pub(crate) use request::{answer, answer_at_start};
pub(crate) use resume::ResumePanel;
pub(crate) use rewind::{RewindPanel, SUMMARY_REQUEST};
pub(crate) use sandbox::SandboxPanel;
pub(crate) use scroll::Scroll;
pub(crate) use search::SearchPanel;
pub(crate) use side_question::{SideQuestionPanel, SideThread};
pub(crate) use skills::SkillsPanel;
pub(crate) use tabs::Tabs;
pub(crate) use tasks::TasksPanel;
pub(crate) use theme::ThemePanel;
pub(crate) use usage::UsagePanel;

use std::time::Duration;

use loci_engine::Command;

use crate::app::{Action, Effect};
use crate::key::InputEvent;
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{bold, cut, faint, line};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span};

/// Something that is looked at and acted on in the place of the prompt.
pub(crate) trait Panel: std::fmt::Debug {
    /// Takes what was typed.
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep;

    /// Takes the answer to something that was asked for; panels pass over what they did not ask for.
    fn receive(&mut self, _data: PanelData) -> Vec<Action> {
        Vec::new()
    }

    /// Tells whether it waits for the answer to this request of the engine.
    fn is_awaiting(&self, _request: &str) -> bool {
        false
    }

    /// Returns how often it asks anew while it is open; never, where it is told what changes.
    fn refresh_every(&self) -> Option<Duration> {
        None
    }

    /// Returns what it asks for then.
    fn refresh(&self) -> Vec<Action> {
        Vec::new()
    }

    /// Tells whether it asks anew when a server may have been connected, or be gone.
    fn follows_servers(&self) -> bool {
        false
    }

    /// Returns what is seen; `ctx` has the width and the looks, `size` the most that it may take.
    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView;

    /// Returns where keys are looked up, the first first.
    fn contexts(&self) -> &'static [Context] {
        &[Context::Tabs, Context::Select, Context::Global]
    }

    /// Tells whether characters are typed into a field, so that they are no keys of lists.
    fn is_typing(&self) -> bool {
        false
    }
}

/// Asks how the session stands; the answer is [`PanelData::Snapshot`].
pub(crate) fn ask_snapshot() -> Action {
    Action::Effect(Effect::Send(Command::Snapshot { request: "panel".to_owned() }))
}

/// What a panel knows of a key beside the key itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PanelContext {
    /// What the keymap binds it to in the contexts of the panel.
    pub(crate) action: Option<KeyAction>,
}

impl PanelContext {
    /// Tells whether the key closes what is open.
    pub(crate) fn is_cancel(&self) -> bool {
        matches!(
            self.action,
            Some(
                KeyAction::SelectCancel
                    | KeyAction::AppInterrupt
                    | KeyAction::HelpDismiss
                    | KeyAction::ConfirmNo
                    | KeyAction::TranscriptExit
                    | KeyAction::DiffDismiss
            )
        )
    }
}

/// What came of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum PanelStep {
    /// It stays open.
    Stay,
    /// It stays open, and something is to be done.
    Act(Vec<Action>),
    /// It is closed.
    Close,
    /// It is closed, and something is to be done.
    CloseWith(Vec<Action>),
}

/// What is seen of a panel: the head stays, the body is what fits.
#[derive(Debug, Default)]
pub(crate) struct PanelView {
    /// The title, then tabs, fields and the like.
    pub(crate) head: Vec<Row>,
    /// What it is about; at most [`room`](Self::room) rows of it are seen.
    pub(crate) body: Vec<Row>,
    /// Keys, where there is room.
    pub(crate) hint: Option<Row>,
    /// Where the caret stands: row counted from the first of the head, column.
    pub(crate) caret: Option<(usize, u16)>,
    /// Whether something is typed into the field that the caret stands in.
    pub(crate) is_typed: bool,
}

impl PanelView {
    /// Begins with a title and the keys.
    pub(crate) fn new(title: &str, hint: &str) -> Self {
        Self {
            head: vec![line(title, bold())],
            hint: Some(line(hint, faint())).filter(|_| !hint.is_empty()),
            ..Self::default()
        }
    }

    /// Adds a field that is typed into; the caret stands in it.
    pub(crate) fn push_field(&mut self, label: &str, field: &crate::dialog::TextField) {
        let column = crate::layout::cells(label) + crate::layout::cells(field.before_caret());
        self.caret = Some((self.head.len(), column));
        self.is_typed = !field.text().is_empty();
        self.head.push(line(&format!("{label}{}", field.text()), crate::text::Style::default()));
    }

    /// Returns how many rows of a height are left for the body.
    pub(crate) fn room(&self, size: Size) -> usize {
        let height = usize::from(size.height).max(1);
        let hint = usize::from(self.has_hint(height));
        height.saturating_sub(self.head.len() + hint).max(1)
    }

    /// The keys are told where the body keeps two rows.
    fn has_hint(&self, height: usize) -> bool {
        self.hint.is_some() && height >= self.head.len() + 3
    }

    /// Lays it out within a size; returns the rows and where the caret stands.
    pub(crate) fn fit(mut self, size: Size) -> (Vec<Row>, Option<(usize, u16)>) {
        let height = usize::from(size.height).max(1);
        let has_hint = self.has_hint(height);
        let room = self.room(size);
        self.body.truncate(room);
        let n_body = self.body.len().min(1);
        // In a small window the body keeps a row, and what is typed into is more than a title.
        while self.head.len() + n_body > height && !self.head.is_empty() {
            let drops_last = self.caret.is_none_or(|(row, _)| row + 1 != self.head.len());
            match drops_last {
                true => drop(self.head.pop()),
                false => {
                    self.head.remove(0);
                    self.caret = self.caret.map(|(row, column)| (row.saturating_sub(1), column));
                }
            }
        }
        let mut rows = self.head;
        rows.extend(self.body);
        rows.extend(self.hint.filter(|_| has_hint).map(|hint| fit_hint(hint, size.width)));
        rows.truncate(height);
        (rows.iter().map(|row| cut(row, size.width)).collect(), self.caret)
    }
}

/// Leaves keys out of the middle of what is too long, so that the way out of the panel stays.
pub(crate) fn fit_hint(hint: Row, width: u16) -> Row {
    const BETWEEN: &str = " · ";
    let text = hint.text();
    let (Some((keys, way_out)), [span]) = (text.rsplit_once(BETWEEN), hint.spans.as_slice()) else {
        return hint;
    };
    if crate::layout::cells(&text) <= width {
        return hint;
    }
    let mut shown = String::new();
    for key in keys.split(BETWEEN) {
        let longer = format!("{shown}{key}{BETWEEN}");
        if crate::layout::cells(&format!("{longer}…{BETWEEN}{way_out}")) > width {
            break;
        }
        shown = longer;
    }
    let rest = if shown.is_empty() { String::new() } else { format!("…{BETWEEN}") };
    Row::new(vec![Span::styled(format!("{shown}{rest}{way_out}"), span.style)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialog::TextField;

    #[test]
    fn keys_that_do_not_fit_leave_the_way_out() {
        for (width, expected) in [
            (60, "Enter look · r reconnect · e on or off · Esc close"),
            (49, "Enter look · r reconnect · … · Esc close"),
            (40, "Enter look · r reconnect · … · Esc close"),
            (39, "Enter look · … · Esc close"),
            (20, "Esc close"),
            (5, "Esc …"),
        ] {
            let view = PanelView::new("t", "Enter look · r reconnect · e on or off · Esc close");
            let (rows, _) = view.fit(Size { width, height: 9 });
            assert_eq!(rows.last().map(Row::text).as_deref(), Some(expected), "{width}");
        }
    }

    fn view() -> PanelView {
        let mut view = PanelView::new("title", "keys");
        view.push_field("? ", &TextField::default());
        view.body = (0..20).map(|idx| Row::plain(format!("b{idx}"))).collect();
        view
    }

    #[test]
    fn small_window_keeps_the_field_and_a_row_of_the_body() {
        for (height, expected) in [
            (1, vec!["b0"]),
            (2, vec!["? ", "b0"]),
            (3, vec!["title", "? ", "b0"]),
            (4, vec!["title", "? ", "b0", "b1"]),
            (5, vec!["title", "? ", "b0", "b1", "keys"]),
        ] {
            let (rows, caret) = view().fit(Size { width: 20, height });
            let texts: Vec<String> = rows.iter().map(Row::text).collect();
            assert_eq!(texts, expected);
            let caret_row = caret.and_then(|(row, _)| texts.get(row).cloned());
            assert!(height == 1 || caret_row.as_deref() == Some("? "), "{height}: {caret_row:?}");
        }
    }
}
