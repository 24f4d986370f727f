//! The branches within a session: what was tried, left by a rewind or an edit, and can be gone on with.

use std::path::Path;

use loci_app::sessions::picker::{BranchChoice, SessionChoice};

use super::super::{ListMark, PanelContext, PanelStep, PanelView, mark_row};
use crate::app::{Action, UiAction};
use crate::key::InputEvent;
use crate::keymap::Action as KeyAction;
use crate::layout::{faint, line};
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line};

/// The branches of a session, once they are known.
#[derive(Debug)]
pub(super) struct BranchList {
    choice: SessionChoice,
    branches: Option<Vec<BranchChoice>>,
    mark: ListMark,
}

impl BranchList {
    pub(super) fn new(choice: SessionChoice) -> Self {
        Self { choice, branches: None, mark: ListMark::default() }
    }

    /// Takes the branches, where they are those of this session.
    pub(super) fn take(&mut self, file: &Path, branches: Vec<BranchChoice>) {
        if self.choice.file == file {
            self.branches = Some(branches);
        }
    }

    pub(super) fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        let branches = self.branches.as_deref().unwrap_or_default();
        match ctx.action {
            _ if self.mark.handle_event(branches.len(), event, ctx.action) => {}
            Some(KeyAction::SelectAccept) => {
                let Some(branch) = branches.get(self.mark.at) else { return PanelStep::Stay };
                // The branch that goes on by itself needs no word about where.
                let at = Some(branch.leaf.clone()).filter(|_| !branch.is_current);
                return PanelStep::CloseWith(vec![Action::Ui(UiAction::Resume(
                    Box::new(self.choice.clone()),
                    at,
                ))]);
            }
            _ => {}
        }
        PanelStep::Stay
    }

    pub(super) fn view(&self, size: Size) -> PanelView {
        let title = format!("Branches of: {}", self.choice.title);
        let mut view = PanelView::new(&title, "Enter go on with it · ← or Esc back");
        let room = view.room(size);
        let branches = self.branches.as_deref().unwrap_or_default();
        view.body = self.mark.rows(branches.len(), room, |idx, is_marked| {
            mark_row(branches.get(idx).map_or_else(Row::default, branch_row), is_marked)
        });
        if branches.is_empty() {
            let text = if self.branches.is_some() { "Nothing was said in it" } else { "Reading…" };
            view.body = vec![line(text, faint())];
        }
        view
    }
}

fn branch_row(branch: &BranchChoice) -> Row {
    let state = if branch.is_current { "  goes on by itself" } else { "" };
    Row::new(vec![
        Span::styled(format!("{}  ", sanitize_line(&branch.time)), faint()),
        Span::plain(sanitize_line(&branch.line)),
        Span::styled(
            format!("  {}{state}", loci_stdx::counted(branch.n_entries as u64, "entry", "entries")),
            faint(),
        ),
    ])
}
