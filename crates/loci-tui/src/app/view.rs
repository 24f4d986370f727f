//! What is seen: the rows that have become final, and the live region with the prompt, or what stands in its place.

use super::App;
use super::fullscreen::FullView;
use super::panel_host::PanelRows;
use super::recall::SearchKind;
use super::spoken_menu::{number_list, spoken_dialog};
use crate::dialog::DialogView;
use crate::input::VimMode;
use crate::key::KeyCode;
use crate::keymap::{Action as KeyAction, Context};
use crate::layout::{cut, marked_row};
use crate::screen::{Frame, Size, cut_to_caret, live_limit, split_live};
use crate::status::Footer;
use crate::text::Row;

/// In a lower window there are no tips.
const LEAST_FOR_TIPS: u16 = 16;

/// What is said below a search of earlier prompts.
const SEARCH_HINT: &str = "Enter puts it into the prompt · Ctrl+R older · Ctrl+S where · Ctrl+C cancel";

impl App {
    /// Returns what is to be shown next. What is final is returned once.
    pub fn view(&mut self, size: Size) -> Frame {
        let (transcript, ctx) = self.transcript_parts(size.width);
        let mut frame = match transcript.dump_frame(&ctx.render, size.width) {
            Some(frame) => frame,
            None => {
                let committed = transcript.take_committed(&ctx, size.height);
                let live = transcript.live_conversation(&ctx, size.height);
                self.live_frame(committed, live, size)
            }
        };
        self.preferences.color_rows(frame.committed.iter_mut().chain(&mut frame.live));
        frame
    }

    /// Returns what stays when the interface is left: everything that was said, and no live region.
    pub(super) fn last_view(&mut self, size: Size) -> Frame {
        let mouse = self.preferences.options.fullscreen.mouse;
        self.transcript.conversation.end_turn(self.now);
        self.transcript.set_fullscreen(false, mouse);
        self.transcript.conversation.stop_waiting();
        let (transcript, ctx) = self.transcript_parts(size.width);
        let committed = transcript.take_committed(&ctx, size.height);
        Frame { committed, is_caret_visible: true, ..Frame::default() }
    }

    /// Returns the whole screen, where something takes it; a question that waits is answered first.
    pub(super) fn full_screen(&mut self, size: Size) -> Option<FullView> {
        if !self.dialogs.is_empty() {
            self.transcript.leave_dump();
        }
        let mut view = match self.dialogs.is_empty() && self.transcript.pager.is_some() {
            true => {
                let (transcript, ctx) = self.transcript_parts(size.width);
                transcript.pager_view(size, &ctx.render)
            }
            false if self.transcript.owns_screen() => {
                let (transcript, ctx) = self.transcript_parts(size.width);
                transcript.take_to_log(&ctx);
                let frame = self.live_frame(Vec::new(), Vec::new(), size);
                let follows = self.preferences.interface.follows_output;
                let key = self.keymap.keys_of(Context::Scroll, KeyAction::ScrollBottom).into_iter().next();
                let (transcript, ctx) = self.transcript_parts(size.width);
                transcript.fullscreen_view(&ctx, pinned_rows(&frame, size), follows, key.as_deref(), size)
            }
            false => None,
        }?;
        self.preferences.color_rows(&mut view.rows);
        Some(view)
    }

    /// Returns a frame: below `live` comes what is under way, and the prompt or what stands in its place.
    fn live_frame(&mut self, committed: Vec<Row>, mut live: Vec<Row>, size: Size) -> Frame {
        let is_still = self.preferences.is_still(!self.dialogs.is_empty());
        let ctx = self.render_context(size.width);
        if self.preferences.is_plain() {
            // What may still change would be printed with each change.
            live.clear();
        } else if let Some(work) = &self.session.work {
            live.push(Row::default());
            live.push(cut(&work.row(self.now, is_still, size.width), size.width));
            if size.height >= LEAST_FOR_TIPS {
                live.extend(work.tip_row(self.now).map(|row| cut(&row, size.width)));
            }
        }
        live.extend(self.background.front.rows(&ctx, size.width));
        live.extend(self.tasks.rows(size.width));
        let follows_mark = self.preferences.options.follows_mark;
        if let Some(mut view) = self.dialogs.view(&ctx) {
            if self.preferences.is_spoken() {
                return spoken_dialog(committed, view, self.dialogs.label(), self.menu_answer.typed());
            }
            view.hint = self.dialogs.hint(view.hint.take(), self.now);
            return dialog_frame(committed, live, view, size, follows_mark);
        }
        if let Some(mut panel) = self.panel.rows(&ctx, size) {
            if follows_mark && !panel.is_typed {
                panel.caret = marked_row(&panel.rows).map(|row| (row, 0)).or(panel.caret);
            }
            if self.preferences.is_spoken() {
                number_list(&mut panel.rows, &mut panel.caret, self.menu_answer.typed());
            }
            return panel_frame(committed, live, panel, size);
        }
        live.push(Row::default());
        live.extend(self.queue.rows(size.width));
        let top = live.len();
        let kind = self.transcript.search_kind();
        let (rows, (row, column)) = self.prompt.rows(size, &self.session.commands, kind);
        live.extend(rows);
        let is_tall = self.prompt.is_tall();
        if !is_tall {
            live.extend(self.status.rows(size.width));
        }
        live.push(cut(&self.footer().row(), size.width));
        Frame {
            committed,
            live,
            caret: Some((top + row, column)),
            is_caret_visible: true,
            keeps_height: self.session.is_working(),
            is_tall,
        }
    }

    fn footer(&self) -> Footer<'_> {
        let input = &self.prompt.input;
        let armed = self.prompt.armed_code().and_then(|code| match code {
            KeyCode::Char('c') => Some("Press Ctrl+C again to leave"),
            KeyCode::Char('d') => Some("Press Ctrl+D again to leave"),
            KeyCode::Esc if !input.is_empty() => Some("Press Esc again to clear the prompt"),
            KeyCode::Esc if self.session.has_turns => Some("Press Esc again to go back to a prompt"),
            _ => None,
        });
        let is_row = self.transcript.search_kind() == SearchKind::Row;
        let search = (self.prompt.recall.is_searching() && is_row).then_some(SEARCH_HINT);
        let (interface, options) = (&self.preferences.interface, &self.preferences.options);
        Footer {
            mode: self.session.mode,
            vim: input.vim_mode().filter(|_| !self.status.line.hides_vim_mode()).map(VimMode::name),
            flash: armed.or(search).or(self.status.flashed()),
            chord: self.keymap.pending(),
            context: self.session.context,
            goal: self.session.goal_time(self.now),
            n_background: self.background.n_working(),
            sandbox: self.session.sandbox.as_deref(),
            pull_request: self.status.badge(interface.pr_url_template.as_deref(), options.has_badge_link),
            model: &self.session.model,
            has_hint: input.is_empty() && !self.prompt.is_help_shown,
        }
    }
}

/// Returns the frame with a dialog in the place of the prompt: it comes first, and the conversation above it gets what room is
/// left, up to a third.
fn dialog_frame(
    committed: Vec<Row>,
    mut live: Vec<Row>,
    view: DialogView,
    size: Size,
    follows_mark: bool,
) -> Frame {
    let height = usize::from(size.height).max(1);
    let (rows, mut caret) = view.fit(height.saturating_sub(1).max(1));
    if follows_mark {
        caret = caret.or_else(|| marked_row(&rows).map(|row| (row, 0)));
    }
    let room = height.saturating_sub(rows.len() + 1).min(height / 3);
    live.drain(..live.len().saturating_sub(room));
    if !live.is_empty() {
        live.push(Row::default());
    }
    let top = live.len();
    live.extend(rows.iter().map(|row| cut(row, size.width)));
    modal_frame(committed, live, caret.map(|(row, column)| (top + row, column)))
}

/// Returns the frame with a panel in the place of the prompt.
fn panel_frame(committed: Vec<Row>, mut live: Vec<Row>, panel: PanelRows, size: Size) -> Frame {
    let height = usize::from(size.height).max(1);
    let room = height.saturating_sub(panel.rows.len() + 2).min(height / 3);
    live.drain(..live.len().saturating_sub(room));
    if panel.rows.len() + live.len() < height {
        live.push(Row::default());
    }
    let top = live.len();
    live.extend(panel.rows);
    modal_frame(committed, live, panel.caret.map(|(row, column)| (top + row, column)))
}

/// Returns the frame of something that stands in the place of the prompt.
fn modal_frame(committed: Vec<Row>, live: Vec<Row>, caret: Option<(usize, u16)>) -> Frame {
    Frame { committed, live, caret, is_caret_visible: caret.is_some(), is_tall: true, ..Frame::default() }
}

/// Returns what is pinned at the bottom in fullscreen, and where the caret stands in it.
fn pinned_rows(frame: &Frame, size: Size) -> (Vec<Row>, Option<(usize, u16)>) {
    let (mut rows, caret) = split_live(frame, usize::from(size.width).max(1));
    let height = usize::from(size.height).max(1);
    let most = (height * 2 / 3).max(live_limit(size.height)).min(height);
    let caret = cut_to_caret(&mut rows, caret, if frame.is_tall { height } else { most });
    let caret = caret.filter(|_| frame.is_caret_visible);
    (rows, caret.map(|(row, column)| (row, u16::try_from(column).unwrap_or(u16::MAX))))
}
