//! The inline writer: what the terminal shows of the live region, and the bytes from there to the next frame.
//!
//! Final rows and the live region are one list of rows that begins where the live region began; it is compared with what
//! the terminal shows there. So a row that becomes final where it already stands costs nothing. Rows that are new are
//! fed at the bottom, where the terminal scrolls, in order: nothing leaves the screen before it is what it shall stay.
//!
//! Blanks at the end of a row are not written: some terminals wrap them with their row when the window gets narrower, some
//! drop them, and how many rows there are above the cursor then could not be known. tmux does so with cells that were
//! erased, too: there a row that gets shorter is erased as a whole and written anew, which frees its cells.

use std::borrow::Cow;

use loci_stdx::Vars;

use super::in_flight::{InFlight, Recovery, SentFrame};
use super::pen::Pen;
use super::{Frame, Size, row_diff};
use crate::text::{Row, clusters};

/// What a terminal can do, as far as drawing is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterOptions {
    /// It paints a frame at once (mode 2026), as it said when asked.
    pub is_synchronized: bool,
    /// It wraps rows anew when its width changes. xterm, screen and the Linux console do not.
    pub reflows: bool,
    /// It inserts rows (`CSI L`) well. Otherwise what moves down is written again.
    pub inserts_rows: bool,
    /// It takes links (OSC 8).
    pub has_hyperlinks: bool,
    /// It has italics. GNU screen shows them in reverse.
    pub has_italics: bool,
    /// Rows that differ are written whole: for ConPTY.
    pub writes_whole_rows: bool,
    /// Erased cells at the end of a row still belong to it when it is wrapped anew, unless all of the row was erased: tmux.
    pub keeps_erased_cells: bool,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            is_synchronized: false,
            reflows: true,
            inserts_rows: !cfg!(windows),
            has_hyperlinks: true,
            has_italics: true,
            writes_whole_rows: cfg!(windows),
            keeps_erased_cells: false,
        }
    }
}

impl WriterOptions {
    /// Returns what variables say of the terminal: xterm, GNU screen and the console of Linux leave rows alone when the width
    /// changes; tmux, also at the other end of an ssh, keeps erased cells; what is behind ConPTY is given whole rows and inserts
    /// none; `CLAUDE_CODE_FORCE_SYNC_OUTPUT` speaks for a terminal that paints frames at once and does not say so.
    pub fn from_vars(vars: &Vars) -> Self {
        let has = |name: &str| vars.non_empty(name).is_some();
        let is_console = vars.get("TERM") == Some("linux");
        let is_tmux = has("TMUX");
        let is_multiplexer =
            ["tmux", "screen"].iter().any(|name| vars.get("TERM").is_some_and(|it| it.starts_with(name)));
        let is_screen =
            !is_tmux && (has("STY") || vars.get("TERM").is_some_and(|it| it.starts_with("screen")));
        let is_conpty = cfg!(windows) || has("WT_SESSION");
        let keeps_rows = is_console || !is_tmux && (has("XTERM_VERSION") || has("STY"));
        Self {
            is_synchronized: vars.is_truthy("CLAUDE_CODE_FORCE_SYNC_OUTPUT"),
            reflows: !keeps_rows,
            inserts_rows: !is_conpty,
            has_hyperlinks: !is_console,
            has_italics: !is_screen,
            writes_whole_rows: is_conpty,
            keeps_erased_cells: is_tmux || is_multiplexer,
        }
    }
}

/// Returns how many rows the live region may have on a screen when no dialog needs more.
pub fn live_limit(height: u16) -> usize {
    let height = usize::from(height);
    (height / 2).max(height.min(5)).max(1)
}

/// Draws frames inline.
#[derive(Debug)]
pub struct Writer {
    options: WriterOptions,
    size: Size,
    /// The rows of the live region as the terminal shows them, each no longer than the width; never empty.
    shown: Vec<Row>,
    /// Where the cursor is: row of `shown`, and column.
    cursor: (usize, usize),
    is_cursor_visible: bool,
    /// Where the terminal said its cursor is, since its size changed.
    report: Option<(u16, u16)>,
    /// The frames that were not answered for, where the terminal is asked.
    in_flight: Option<InFlight>,
    /// Rows may have moved, whatever the size is.
    is_moved: bool,
}

impl Writer {
    /// Makes a writer for a terminal whose cursor is at the start of an empty row.
    pub fn new(size: Size, options: WriterOptions) -> Self {
        let shown = vec![Row::default()];
        Self {
            options,
            size,
            shown,
            cursor: (0, 0),
            is_cursor_visible: true,
            report: None,
            in_flight: None,
            is_moved: false,
        }
    }

    /// Has frames remembered until [`answer_frame`](Self::answer_frame) tells for which size the terminal carried them out.
    pub fn track_frames(&mut self, is_on: bool) {
        self.in_flight = is_on.then(InFlight::default);
    }

    /// Tells whether frames are remembered.
    pub fn tracks_frames(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Takes the size that the terminal had behind the oldest frame that was not answered for; tells whether that is the size
    /// the frame was made for.
    pub fn answer_frame(&mut self, size: Size) -> bool {
        let is_right = self.in_flight.as_mut().is_none_or(|frames| frames.answer(size));
        self.is_moved |= !is_right;
        is_right
    }

    /// Has the live region looked for as after a change of the size.
    pub fn expect_moved_rows(&mut self) {
        self.is_moved = true;
    }

    /// Changes what is known of the terminal, as its answers come.
    pub fn set_options(&mut self, options: WriterOptions) {
        self.options = options;
    }

    /// Returns what is known of the terminal.
    pub fn options(&self) -> WriterOptions {
        self.options
    }

    /// Takes the terminal's answer about its cursor, from zero, that came after a resize and before the next frame.
    pub fn report_cursor(&mut self, row: u16, column: u16) {
        self.report = Some((row, column));
    }

    /// Returns the bytes that bring the terminal from what it shows to a frame; none where nothing differs.
    pub fn draw(&mut self, frame: &Frame, size: Size) -> Vec<u8> {
        let mut pen = Pen::new(self.cursor.0, self.cursor.1, &self.options);
        let (laid_for, cursor) = (self.size, self.cursor);
        let is_anew = size != self.size || self.is_moved;
        let before = self.in_flight.is_some().then(|| self.shown.clone());
        let owed = if is_anew { self.take_size(size, &mut pen) } else { Vec::new() };
        self.report = None;
        let width = self.width();
        let committed = owed.iter().chain(&frame.committed);
        let final_rows: Vec<Cow<'_, Row>> = committed.map(Row::without_end_blanks).collect();
        let committed: Vec<Vec<Row>> = final_rows.iter().map(|row| row_diff::split(row, width)).collect();
        let n_committed: usize = committed.iter().map(Vec::len).sum();
        let (live, caret) = self.live_rows(frame, n_committed);
        let target = Target { final_rows: &final_rows, parts: &committed, live: &live };
        self.insert_rows(&mut pen, &target);
        self.write_rows(&mut pen, &target);
        let n_rows = n_committed + live.len();
        if self.shown.len() > n_rows {
            pen.move_to_row(n_rows);
            pen.move_to_column(0);
            pen.erase_below();
        }
        let (row, column) = caret.unwrap_or((live.len() - 1, 0));
        pen.move_to_row(n_committed + row);
        pen.move_to_column(column);
        let committed = before.as_ref().map(|_| final_rows.into_iter().map(Cow::into_owned).collect());
        self.shown = live;
        self.cursor = (row, column);
        let bytes = self.finish_frame(pen, frame.is_caret_visible && caret.is_some());
        if let (Some(frames), Some(shown), Some(committed)) = (&mut self.in_flight, before, committed) {
            let bytes = bytes.clone();
            frames.push(SentFrame { size, shown, laid_for, cursor, committed, bytes, is_anew, ran_at: None });
        }
        bytes
    }

    /// Returns the bytes that take the live region away, with the cursor visible where it began: on the way out, before
    /// another program gets the terminal, and before the process is stopped.
    pub fn leave(&mut self) -> Vec<u8> {
        let mut pen = Pen::new(self.cursor.0, self.cursor.1, &self.options);
        if self.shown != [Row::default()] {
            pen.move_to_row(0);
            pen.erase_from_row();
        }
        self.start_anew();
        self.finish_frame(pen, true)
    }

    /// Returns the bytes that start the live region below whatever another program wrote: in the row of the cursor if
    /// that is empty, else in the next.
    pub fn start_below(&mut self, size: Size) -> Vec<u8> {
        self.size = size;
        self.start_anew();
        self.is_cursor_visible = true;
        // Blanks up to the last column wrap into the next row, unless the cursor was in the first column.
        let mut bytes = vec![b' '; self.width() - 1];
        bytes.extend_from_slice(b"\r\x1b[K");
        bytes
    }

    /// Returns the bytes that scroll everything on the screen into the scrollback and start at its top: for `/clear`
    /// and a wholly repainted history.
    pub fn scroll_away(&mut self) -> Vec<u8> {
        let mut bytes = self.leave();
        bytes.extend(std::iter::repeat_n(b'\n', usize::from(self.size.height)));
        bytes.extend_from_slice(b"\x1b[H");
        bytes
    }

    /// Nothing of what stands above is ours any more.
    fn start_anew(&mut self) {
        self.shown = vec![Row::default()];
        self.cursor = (0, 0);
        self.is_moved = false;
        if let Some(frames) = &mut self.in_flight {
            frames.clear();
        }
    }

    fn width(&self) -> usize {
        usize::from(self.size.width).max(1)
    }

    /// Cuts the live region to its rows on the screen, fills it up where it keeps its height, and says where the caret is.
    fn live_rows(&self, frame: &Frame, n_committed: usize) -> (Vec<Row>, Option<(usize, usize)>) {
        let height = usize::from(self.size.height).max(1);
        let (mut live, mut caret) = split_live(frame, self.width());
        let limit = if frame.is_tall { height } else { live_limit(self.size.height).min(height) };
        caret = cut_to_caret(&mut live, caret, limit);
        let n_rows = n_committed + live.len();
        if frame.keeps_height && n_rows < self.shown.len() {
            let gap = self.shown.len() - n_rows;
            live.splice(0..0, std::iter::repeat_n(Row::default(), gap));
            caret = caret.map(|(row, column)| (row + gap, column));
        }
        (live, caret)
    }

    /// Makes room for new rows above some that only move down, where that is cheaper than writing these again.
    fn insert_rows(&mut self, pen: &mut Pen, target: &Target<'_>) {
        let n_rows = target.n_rows();
        let n_new = n_rows.saturating_sub(self.shown.len());
        let fits =
            n_rows <= usize::from(self.size.height) && target.parts.iter().all(|parts| parts.len() == 1);
        if n_new == 0 || !fits || !self.options.inserts_rows {
            return;
        }
        let at = cheapest_insertion(&self.shown, &target.rows());
        if at == self.shown.len() {
            return;
        }
        pen.move_to_row(self.shown.len() - 1);
        pen.feed_rows(n_new);
        pen.move_to_row(at);
        pen.insert_rows(n_new);
        self.shown.splice(at..at, std::iter::repeat_n(Row::default(), n_new));
    }

    fn write_rows(&self, pen: &mut Pen, target: &Target<'_>) {
        let blank = Row::default();
        let mut at = 0;
        let mut n_existing = self.shown.len();
        for (row, parts) in target.final_rows.iter().zip(target.parts) {
            if let [part] = parts.as_slice() {
                let old = self.shown.get(at);
                self.write_row(pen, at, old.unwrap_or(&blank), part, &mut n_existing);
            } else {
                self.erase_gaps(pen, at, parts);
                go_to(pen, at, &mut n_existing);
                row_diff::write_wrapped(pen, row, self.width());
                n_existing = n_existing.max(at + parts.len());
            }
            at += parts.len();
        }
        for row in target.live {
            self.write_row(pen, at, self.shown.get(at).unwrap_or(&blank), row, &mut n_existing);
            at += 1;
        }
    }

    /// Erases what shows in the cells that a wrapped row leaves alone: the last of a row in which a wide sign had no room.
    fn erase_gaps(&self, pen: &mut Pen, at: usize, parts: &[Row]) {
        if self.options.keeps_erased_cells {
            for row in at..self.shown.len().min(at + parts.len()) {
                pen.move_to_row(row);
                pen.erase_row();
            }
            return;
        }
        for (idx, part) in parts.iter().enumerate().take(parts.len() - 1) {
            if part.width() < self.width() && at + idx < self.shown.len() {
                pen.move_to_row(at + idx);
                pen.move_to_column(part.width());
                pen.erase_to_row_end();
            }
        }
    }

    fn write_row(&self, pen: &mut Pen, at: usize, old: &Row, new: &Row, n_existing: &mut usize) {
        if at < *n_existing && old == new {
            return;
        }
        go_to(pen, at, n_existing);
        if self.options.keeps_erased_cells && new.width() < old.width() {
            pen.erase_row();
            return row_diff::write_difference(pen, &Row::default(), new, self.width(), false);
        }
        row_diff::write_difference(pen, old, new, self.width(), self.options.writes_whole_rows);
    }

    /// Takes the live region as a terminal of the old size left it away, for a terminal of the new size; returns final rows that are
    /// to be written once more.
    fn take_size(&mut self, size: Size, pen: &mut Pen) -> Vec<Row> {
        let reflows = self.reflows_now(size);
        let recovery = self.in_flight.as_mut().and_then(|frames| frames.recover(size, reflows));
        let Recovery { owed, rows_above } = recovery.unwrap_or_else(|| Recovery {
            owed: Vec::new(),
            rows_above: self.rows_above_cursor(size, reflows),
        });
        let reachable = self.report.map_or(size.height.saturating_sub(1), |(row, _)| row);
        pen.row = rows_above.min(usize::from(reachable));
        pen.column = None;
        pen.move_to_row(0);
        pen.erase_from_row();
        self.size = size;
        self.shown = vec![Row::default()];
        self.cursor = (0, 0);
        self.is_moved = false;
        owed
    }

    /// Tells whether the terminal has wrapped its rows anew for a size.
    fn reflows_now(&self, size: Size) -> bool {
        let width = usize::from(size.width).max(1);
        let column = self.cursor.1;
        match self.report {
            // The cursor tells: wrapped with its row, or pushed to the last column.
            Some((_, reported)) if column >= width && column % width != width - 1 => {
                usize::from(reported) == column % width
            }
            _ => self.options.reflows,
        }
    }

    /// Returns how many rows of the live region stand above the cursor in a terminal that got another size.
    fn rows_above_cursor(&self, size: Size, reflows: bool) -> usize {
        let width = usize::from(size.width).max(1);
        let (row, column) = self.cursor;
        if !reflows {
            return row;
        }
        let n_cells = self.shown.get(row).map_or(0, Row::width);
        let is_wrapped = column < n_cells || self.report.is_some_and(|(_, column)| column == 0);
        // Behind the text of its row the cursor stays in the last of the rows that it is wrapped to, in some terminals.
        let column = if is_wrapped { column } else { column.min(n_cells.max(1) - 1) };
        let rows = self.shown.iter().take(row);
        rows.map(|row| row_diff::split(row, width).len()).sum::<usize>() + column / width
    }

    fn finish_frame(&mut self, pen: Pen, is_cursor_visible: bool) -> Vec<u8> {
        let was_visible = std::mem::replace(&mut self.is_cursor_visible, is_cursor_visible);
        pen.finish_frame(was_visible, is_cursor_visible, self.options.is_synchronized)
    }
}

/// Cuts the live region of a frame into rows of a width, at least one, and says where the caret is in them.
pub(crate) fn split_live(frame: &Frame, width: usize) -> (Vec<Row>, Option<(usize, usize)>) {
    let mut live = Vec::with_capacity(frame.live.len());
    let mut caret = None;
    for (idx, row) in frame.live.iter().enumerate() {
        if let Some((caret_row, column)) = frame.caret
            && caret_row == idx
        {
            let column = usize::from(column);
            let last = row.width().saturating_sub(1) / width;
            let part = (column / width).min(last);
            caret = Some((live.len() + part, (column - part * width).min(width - 1)));
        }
        let has_caret = frame.caret.is_some_and(|(caret_row, _)| caret_row == idx);
        let row = if has_caret { Cow::Borrowed(row) } else { row.without_end_blanks() };
        live.extend(row_diff::split(&row, width));
    }
    if live.is_empty() {
        live.push(Row::default());
    }
    (live, caret)
}

/// Cuts rows at their top to a number, but keeps the row of the caret; returns where the caret is then.
pub(crate) fn cut_to_caret<C>(
    rows: &mut Vec<Row>,
    caret: Option<(usize, C)>,
    limit: usize,
) -> Option<(usize, C)> {
    if rows.len() <= limit {
        return caret;
    }
    let start = caret.as_ref().map_or(usize::MAX, |(row, _)| *row).min(rows.len() - limit);
    *rows = rows.drain(start..start + limit).collect();
    caret.map(|(row, column)| (row - start, column))
}

/// Moves to a row, which is fed if it is the one below the last that exists.
fn go_to(pen: &mut Pen, at: usize, n_existing: &mut usize) {
    if at < *n_existing {
        pen.move_to_row(at);
    } else {
        pen.move_to_row(at.saturating_sub(1));
        pen.feed_row();
        *n_existing = at + 1;
    }
}

/// What is to be shown from the top of the old live region on.
struct Target<'a> {
    final_rows: &'a [Cow<'a, Row>],
    /// The rows that the terminal makes of each final row.
    parts: &'a [Vec<Row>],
    live: &'a [Row],
}

impl Target<'_> {
    fn n_rows(&self) -> usize {
        self.parts.iter().map(Vec::len).sum::<usize>() + self.live.len()
    }

    fn rows(&self) -> Vec<&Row> {
        self.parts.iter().flatten().chain(self.live).collect()
    }
}

/// Returns where rows are best inserted into `shown` on the way to the longer `target`; its length is: nowhere.
fn cheapest_insertion(shown: &[Row], target: &[&Row]) -> usize {
    const INSERTION: usize = 16;
    let n_new = target.len() - shown.len();
    // From `at` on, rows are compared with their places further down; so all start there.
    let mut cost: usize = shown.iter().zip(&target[n_new..]).map(|(old, new)| cost_of(old, new)).sum();
    let (mut best, mut best_cost) = (0, cost + INSERTION);
    for at in 1..=shown.len() {
        cost -= cost_of(&shown[at - 1], target[at - 1 + n_new]);
        cost += cost_of(&shown[at - 1], target[at - 1]);
        let total = if at == shown.len() { cost } else { cost + INSERTION };
        if total <= best_cost {
            (best, best_cost) = (at, total);
        }
    }
    best
}

/// About how many bytes it takes to write a row over another.
fn cost_of(old: &Row, new: &Row) -> usize {
    if old == new {
        return 0;
    }
    let same = old.spans.iter().zip(&new.spans).take_while(|(old, new)| old == new).count();
    let bytes = |row: &Row| row.spans.iter().skip(same).map(|span| span.text.len()).sum::<usize>();
    let common = match (old.spans.get(same), new.spans.get(same)) {
        (Some(old), Some(new)) if old.style == new.style => clusters(&old.text)
            .zip(clusters(&new.text))
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len())
            .sum(),
        _ => 0,
    };
    8 + bytes(new).saturating_sub(common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_tell_what_a_terminal_does_with_rows() {
        let options = |vars: &[(&str, &str)]| WriterOptions::from_vars(&vars.iter().copied().collect());
        assert_eq!(options(&[("TERM", "xterm-256color")]), WriterOptions::default());
        for (vars, reflows) in [
            (&[("TERM", "linux")][..], false),
            (&[("TERM", "xterm"), ("XTERM_VERSION", "XTerm(390)")][..], false),
            (&[("TERM", "screen"), ("STY", "1.pts")][..], false),
            (&[("TERM", "screen"), ("TMUX", "/t"), ("XTERM_VERSION", "XTerm(390)")][..], true),
        ] {
            assert_eq!(options(vars).reflows, reflows, "{vars:?}");
        }
        let conpty = options(&[("WT_SESSION", "x")]);
        assert!(conpty.writes_whole_rows && !conpty.inserts_rows, "{conpty:?}");
        assert!(options(&[("CLAUDE_CODE_FORCE_SYNC_OUTPUT", "1")]).is_synchronized);
        for (vars, has_italics) in [
            (&[("TERM", "xterm-256color"), ("STY", "1.pts")][..], false),
            // At the other end of an ssh.
            (&[("TERM", "screen.xterm-256color")], false),
            (&[("TERM", "screen-256color"), ("TMUX", "/t")], true),
            (&[("TERM", "tmux-256color")], true),
        ] {
            assert_eq!(options(vars).has_italics, has_italics, "{vars:?}");
        }
        for (vars, keeps) in [
            (&[("TERM", "screen-256color"), ("TMUX", "/t")][..], true),
            (&[("TERM", "tmux-256color")][..], true),
            (&[("TERM", "xterm-256color"), ("TMUX", "/t")][..], true),
            (&[("TERM", "xterm-256color")][..], false),
        ] {
            assert_eq!(options(vars).keeps_erased_cells, keeps, "{vars:?}");
        }
    }

    #[test]
    fn row_that_gets_shorter_leaves_no_erased_cells_where_they_would_be_wrapped() {
        let size = Size { width: 20, height: 9 };
        let draw = |keeps_erased_cells, before: Frame, after: Frame| {
            let mut writer =
                Writer::new(size, WriterOptions { keeps_erased_cells, ..WriterOptions::default() });
            writer.draw(&before, size);
            String::from_utf8(writer.draw(&after, size)).unwrap()
        };
        let live = |rows: &[&str]| Frame {
            live: rows.iter().map(|it| Row::plain(*it)).collect(),
            ..Frame::default()
        };
        let (long, short) = (live(&["a long row", "below"]), live(&["a row", "below"]));
        assert!(draw(false, long.clone(), short.clone()).contains("\x1b[3Grow\x1b[K"));
        let bytes = draw(true, long.clone(), short);
        assert!(bytes.contains("\x1b[2Ka row") && !bytes.contains("\x1b[K"), "{bytes:?}");
        let bytes = draw(true, live(&["a row", "below"]), long.clone());
        assert!(!bytes.contains("\x1b[2K"), "what gets longer is only written: {bytes:?}");
        // A row that the terminal wraps takes the place of both.
        let committed = vec![Row::plain("one word over the end")];
        let bytes = draw(true, long, Frame { committed, live: vec![Row::plain(">")], ..Frame::default() });
        assert_eq!(bytes.matches("\x1b[2K").count(), 2, "{bytes:?}");
    }
}
