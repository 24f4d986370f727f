//! The fullscreen renderer: the same blocks as inline, on the alternate screen, with the prompt pinned at the bottom.
//!
//! The conversation is a virtual list; the mouse scrolls it, selects in it, and expands what is shown in part. What was said
//! here is written to the terminal's own screen when it is left. Whether it is used is decided in `renderer`.

mod lower_mouse;
mod mouse;
mod scrolling;
mod selection;
mod source;
mod wheel;

pub(super) use lower_mouse::{choosing_key, number_at, steps};
pub(crate) use source::log_rows;

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use self::mouse::Press;
use self::selection::{Selection, highlighted};
use self::source::{FocusedTurn, ScreenSource};
use self::wheel::Wheel;
use super::conversation::Item;
use super::transcript_view::{Spacing, TranscriptView, ViewContext};
use super::virtual_list::{BlockRows, Position, RowSource, VirtualList, broken};
use crate::block::Block;
use crate::layout::{cells, cut};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style};

/// A whole screen.
#[derive(Debug, Default)]
pub(crate) struct FullView {
    /// Its rows.
    pub(crate) rows: Vec<Row>,
    /// Where the caret stands.
    pub(crate) caret: Option<(usize, u16)>,
    /// How many rows at the top scroll.
    pub(crate) n_scrolling: usize,
}

/// What the fullscreen renderer knows beside the conversation.
#[derive(Debug)]
pub(super) struct Fullscreen {
    list: VirtualList,
    /// Blocks that are shown whole.
    expanded: HashSet<usize>,
    selection: Option<Selection>,
    /// The button that is held, or was pressed last.
    press: Option<Press>,
    wheel: Wheel,
    /// The places of the rows that are seen.
    seen: Vec<Position>,
    /// The rows below the conversation, and where the caret stands in them.
    lower: Vec<Row>,
    lower_caret: Option<(usize, u16)>,
    /// The columns in the last of those rows that lead to the end.
    pill: Option<Range<usize>>,
    /// The number behind the last block when the end was last in sight.
    n_seen: usize,
    /// The first block that the terminal's own screen does not have.
    pub(super) first_unwritten: usize,
    /// Whether the transcript was written to the scrollback, and is looked at there.
    pub(super) is_dump_shown: bool,
    width: u16,
    /// How many blocks there were when the focus view was last drawn.
    n_focused: Option<usize>,
}

impl Fullscreen {
    /// Begins with what is said from a number on; all before it was written inline.
    pub(super) fn new(first_unwritten: usize) -> Self {
        Self {
            list: VirtualList::at_end(),
            expanded: HashSet::new(),
            selection: None,
            press: None,
            wheel: Wheel::default(),
            seen: Vec::new(),
            lower: Vec::new(),
            lower_caret: None,
            pill: None,
            n_seen: first_unwritten,
            first_unwritten,
            is_dump_shown: false,
            width: 80,
            n_focused: None,
        }
    }
}

#[cfg(test)]
impl Fullscreen {
    pub(super) fn n_cached(&self) -> usize {
        self.list.n_cached()
    }
}

impl TranscriptView {
    /// Returns the whole screen, with these rows pinned at the bottom; none where the renderer is another.
    pub(super) fn fullscreen_view(
        &mut self,
        view: &ViewContext<'_>,
        (lower, caret): (Vec<Row>, Option<(usize, u16)>),
        follows: bool,
        key: Option<&str>,
        size: Size,
    ) -> Option<FullView> {
        let ctx = &view.render;
        let height = usize::from(size.height).max(1);
        let n_scrolling = height - lower.len();
        let (live, focus) = self.list_parts(view);
        let n_logged = self.log.numbers().end;
        let screen = self.fullscreen.as_deref_mut()?;
        (screen.lower, screen.lower_caret) = (lower.clone(), caret);
        let Fullscreen { list, expanded, selection, seen, pill, n_seen, width, n_focused, .. } = screen;
        *width = size.width;
        if list.set_layout(ctx, n_scrolling) {
            *selection = None;
        }
        // What the focus view shows of a block depends on those behind it.
        let is_focused = focus.is_some().then_some(n_logged);
        if std::mem::replace(n_focused, is_focused) != is_focused {
            list.forget_rows();
        }
        let source = ScreenSource { log: &self.log, live, expanded, focus };
        let visible = list.visible(&source, ctx);
        let end = source.numbers().end;
        if list.is_at_end {
            *n_seen = end;
            if !follows {
                list.hold(&source, ctx);
            }
        }
        *seen = visible.iter().map(|(at, _)| *at).collect();
        let mut rows: Vec<Row> = visible
            .into_iter()
            .map(|(at, row)| match selection.as_ref().and_then(|selection| selection.columns(at)) {
                Some(columns) => highlighted(&row, columns),
                None => row,
            })
            .collect();
        rows.resize(n_scrolling, Row::default());
        let last = list.end(&source, ctx);
        let is_away = list.settled(&source, ctx) < last && n_scrolling > 1;
        *pill = is_away.then(|| show_pill(&mut rows, end.saturating_sub(*n_seen), key, size.width));
        rows.extend(lower);
        let caret = caret.map(|(row, column)| (n_scrolling + row, column));
        Some(FullView { rows, caret, n_scrolling })
    }

    /// Takes what can no longer change to the log.
    pub(super) fn take_to_log(&mut self, view: &ViewContext<'_>) {
        let has_before = self.last_final.is_some();
        self.conversation.stream_rows(&view.render, |idx| has_before || idx > 0);
        while let Some(item) = self.next_final(view) {
            let (block, rows) = match item {
                Item::Final(block) => (block, None),
                Item::Answer { source, streamed, .. } => (Block::Answer { markdown: source }, Some(streamed)),
                Item::Thinking { .. } | Item::Shell { .. } | Item::Call { .. } => continue,
            };
            self.last_final = Some(Spacing::of(&block));
            let number = self.log.numbers().end;
            self.keep_block(block, view.is_focused);
            // Code has its colours there.
            if let (Some(done), Some(screen)) = (rows, &self.fullscreen) {
                screen.list.keep(number, BlockRows { done, rest: Rc::default() });
            }
        }
        self.end_group(view);
    }

    /// Returns what the list shows behind the log, and what the focus view shows of it.
    fn list_parts(&self, view: &ViewContext<'_>) -> (Vec<BlockRows>, Option<FocusedTurn>) {
        let ctx = &view.render;
        let broken_rest = |entry: BlockRows| {
            let rest = broken(Rc::unwrap_or_clone(entry.rest), ctx.width);
            BlockRows { done: entry.done, rest: Rc::new(rest) }
        };
        let live = self.live_entries(view).into_iter().map(broken_rest).collect();
        let focus = view.is_focused.then(|| {
            let summary = self.tally.rows(ctx);
            FocusedTurn::of(&self.log, self.conversation.has_answer(), summary)
        });
        (live, focus)
    }

    /// Returns the width at which the screen was last drawn; none where the renderer is another.
    pub(super) fn screen_width(&self) -> Option<u16> {
        self.fullscreen.as_ref().map(|screen| screen.width)
    }

    /// Does something with the list; nothing where the renderer is another.
    fn with_list<T>(
        &mut self,
        view: &ViewContext<'_>,
        act: impl FnOnce(&mut VirtualList, &ScreenSource<'_>, &RenderContext) -> T,
    ) -> Option<T> {
        let (live, focus) = self.list_parts(view);
        let Fullscreen { list, expanded, .. } = self.fullscreen.as_deref_mut()?;
        let source = ScreenSource { log: &self.log, live, expanded, focus };
        Some(act(list, &source, &view.render))
    }
}

/// Puts the way to the end over the last row; returns the columns it takes.
fn show_pill(rows: &mut [Row], n_new: usize, key: Option<&str>, width: u16) -> Range<usize> {
    let what = match n_new {
        0 => "↓ Jump to the end".to_owned(),
        n => format!("↓ {n} new"),
    };
    let texts =
        [key.map(|key| format!(" {what} · {key} ")), Some(format!(" {what} ")), Some(" ↓ ".to_owned())];
    let text = texts.into_iter().flatten().find(|text| cells(text) <= width).unwrap_or_default();
    let style = Style { is_reversed: true, ..Style::default() };
    let room = usize::from(width.saturating_sub(cells(&text)));
    let start = room / 2;
    let row = Row::new(vec![Span::plain(" ".repeat(start)), Span::styled(text, style)]);
    let columns = start..row.width();
    if let Some(last) = rows.last_mut() {
        *last = cut(&row, width);
    }
    columns
}
