//! The transcript pager (Ctrl+O): everything that was said, whole, on a screen of its own.
//!
//! It is a virtual list: its position is a block and a row within it, and only blocks that are seen, or passed on the way,
//! are made into rows, so that a key costs the same however long the conversation is. What is being said appears at its end
//! as it comes. It shows what the interface remembers; Ctrl+E reads all of the session.

mod source;
#[cfg(test)]
mod tests;

pub(crate) use source::PagerSource;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::dialog::TextField;
use crate::key::{InputEvent, Key, KeyCode};
use crate::keymap::Action as KeyAction;
use crate::layout::{cells, cut, faint, line};
use crate::render::{RenderContext, has_gap, render_block};
use crate::screen::Size;
use crate::text::{Row, Span, Style};

/// How many blocks are kept as rows.
const MOST_CACHED: usize = 256;

/// A whole screen: its rows, and where the caret stands.
pub(crate) type FullView = (Vec<Row>, Option<(usize, u16)>);

/// Where the first row that is seen is: a block, and a row of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Position {
    block: usize,
    row: usize,
}

/// The pager.
#[derive(Debug, Default)]
pub(crate) struct Pager {
    position: Position,
    /// Whether the end stays in sight while more comes.
    is_at_end: bool,
    /// What is looked for.
    search: String,
    /// The search that is being typed.
    typing: Option<TextField>,
    /// Where it was found last.
    found: Option<Position>,
    is_help_shown: bool,
    /// What was said to a key, until the next one.
    note: Option<&'static str>,
    /// The size at the last drawing.
    size: Option<Size>,
    cache: RefCell<RowCache>,
}

/// Rows of blocks that do not change, for a width.
#[derive(Debug, Default)]
struct RowCache {
    width: usize,
    rows: HashMap<usize, Rc<Vec<Row>>>,
}

/// What a key asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PagerStep {
    /// It stays.
    Stay,
    /// It is closed.
    Close,
    /// All of the session is to be read.
    ShowAll,
    /// What it shows goes to the scrollback.
    Dump,
    /// What it shows is opened in an editor.
    OpenInEditor,
}

impl Pager {
    /// Opens at the end.
    pub(crate) fn new() -> Self {
        Self { is_at_end: true, ..Self::default() }
    }

    /// Takes up that it shows other blocks now: at their end.
    pub(crate) fn renew(&mut self) {
        (self.found, self.note, self.is_at_end) = (None, None, true);
        self.cache.borrow_mut().rows.clear();
    }

    /// Says that something did not work.
    pub(crate) fn set_note(&mut self, note: &'static str) {
        self.note = Some(note);
    }

    /// Takes what was typed.
    pub(crate) fn handle(
        &mut self,
        event: &InputEvent,
        action: Option<KeyAction>,
        source: &PagerSource<'_>,
        ctx: &RenderContext,
    ) -> PagerStep {
        self.note = None;
        if let Some(field) = &mut self.typing {
            match event {
                InputEvent::Paste(text) => field.insert(text),
                InputEvent::Key(key) => self.type_search(*key, source, ctx),
                _ => {}
            }
            return PagerStep::Stay;
        }
        let InputEvent::Key(key) = event else { return PagerStep::Stay };
        if std::mem::take(&mut self.is_help_shown) {
            return PagerStep::Stay;
        }
        match action {
            Some(KeyAction::TranscriptExit | KeyAction::AppToggleTranscript | KeyAction::AppInterrupt) => {
                return PagerStep::Close;
            }
            Some(KeyAction::TranscriptToggleShowAll) => return PagerStep::ShowAll,
            _ => {}
        }
        self.handle_key(*key, source, ctx)
    }

    fn handle_key(&mut self, key: Key, source: &PagerSource<'_>, ctx: &RenderContext) -> PagerStep {
        let page = self.page();
        match (key.code, key.ctrl) {
            (KeyCode::Down, _) | (KeyCode::Char('j'), false) => self.down(1, source, ctx),
            (KeyCode::Up, _) | (KeyCode::Char('k'), false) => self.up(1, source, ctx),
            (KeyCode::PageDown | KeyCode::Char(' '), false) => self.down(page, source, ctx),
            (KeyCode::PageUp, _) | (KeyCode::Char('b'), false) => self.up(page, source, ctx),
            (KeyCode::Char('d'), true) => self.down(page / 2, source, ctx),
            (KeyCode::Char('u'), true) => self.up(page / 2, source, ctx),
            (KeyCode::Home, _) | (KeyCode::Char('g'), false) => self.go(Position::default()),
            (KeyCode::End, _) | (KeyCode::Char('G'), false) => self.is_at_end = true,
            (KeyCode::Char('/'), false) => self.typing = Some(TextField::default()),
            (KeyCode::Char('n'), false) => self.find(Direction::On, source, ctx),
            (KeyCode::Char('N'), false) => self.find(Direction::Back, source, ctx),
            (KeyCode::Char('}'), false) => self.next_prompt(source, ctx),
            (KeyCode::Char('{'), false) => self.previous_prompt(source, ctx),
            (KeyCode::Char('?'), false) => self.is_help_shown = true,
            (KeyCode::Char('['), false) => return PagerStep::Dump,
            (KeyCode::Char('v'), false) => return PagerStep::OpenInEditor,
            _ => {}
        }
        PagerStep::Stay
    }

    fn type_search(&mut self, key: Key, source: &PagerSource<'_>, ctx: &RenderContext) {
        let Some(field) = &mut self.typing else { return };
        match key.code {
            KeyCode::Esc => self.typing = None,
            KeyCode::Char('c') if key.ctrl => self.typing = None,
            KeyCode::Enter => {
                self.search = field.text().to_lowercase();
                (self.typing, self.found) = (None, None);
                self.find(Direction::On, source, ctx);
            }
            _ => drop(field.handle(key)),
        }
    }

    fn page(&self) -> usize {
        self.size.map_or(10, |size| usize::from(size.height).saturating_sub(2)).max(1)
    }

    fn go(&mut self, position: Position) {
        self.position = position;
        self.is_at_end = false;
    }

    /// Returns the rows of a block, with the blank row that stands before it.
    fn rows(&self, idx: usize, source: &PagerSource<'_>, ctx: &RenderContext) -> Rc<Vec<Row>> {
        let mut cache = self.cache.borrow_mut();
        if cache.width != ctx.width || cache.rows.len() > MOST_CACHED {
            *cache = RowCache { width: ctx.width, rows: HashMap::new() };
        }
        if let Some(rows) = cache.rows.get(&idx) {
            return Rc::clone(rows);
        }
        let Some(block) = source.get(idx) else { return Rc::default() };
        let has_blank =
            idx.checked_sub(1).and_then(|before| source.get(before)).is_some_and(|it| has_gap(it, block));
        let mut rows: Vec<Row> = Vec::new();
        if has_blank {
            rows.push(Row::default());
        }
        for row in render_block(block, ctx) {
            rows.extend(broken(row, ctx.width));
        }
        let rows = Rc::new(rows);
        if source.is_stable(idx) {
            cache.rows.insert(idx, Rc::clone(&rows));
        }
        rows
    }

    fn down(&mut self, n: usize, source: &PagerSource<'_>, ctx: &RenderContext) {
        let mut left = n;
        let mut at = self.settled(source, ctx);
        while left > 0 && at.block < source.len() {
            let n_rows = self.rows(at.block, source, ctx).len();
            let step = left.min(n_rows.saturating_sub(at.row));
            left -= step;
            at.row += step;
            if at.row >= n_rows {
                at = Position { block: at.block + 1, row: 0 };
            }
        }
        let end = self.end(source, ctx);
        self.go(at.min(end));
        self.is_at_end = at >= end;
    }

    fn up(&mut self, n: usize, source: &PagerSource<'_>, ctx: &RenderContext) {
        let mut left = n;
        let mut at = self.settled(source, ctx);
        while left > 0 && at > Position::default() {
            let step = left.min(at.row);
            left -= step;
            at.row -= step;
            if at.row == 0 && left > 0 {
                let Some(block) = at.block.checked_sub(1) else { break };
                at = Position { block, row: self.rows(block, source, ctx).len() };
            }
        }
        self.go(at);
    }

    /// Returns the position from which the end is just seen.
    fn end(&self, source: &PagerSource<'_>, ctx: &RenderContext) -> Position {
        let mut left = self.size.map_or(1, |size| usize::from(size.height).saturating_sub(1)).max(1);
        for block in (0..source.len()).rev() {
            let n_rows = self.rows(block, source, ctx).len();
            if n_rows >= left {
                return Position { block, row: n_rows - left };
            }
            left -= n_rows;
        }
        Position::default()
    }

    /// Returns where it stands, with the end in sight where that is wanted.
    fn settled(&self, source: &PagerSource<'_>, ctx: &RenderContext) -> Position {
        match self.is_at_end {
            true => self.end(source, ctx),
            false => self.position,
        }
    }

    fn next_prompt(&mut self, source: &PagerSource<'_>, ctx: &RenderContext) {
        let at = self.settled(source, ctx);
        let next = (at.block + 1..source.len()).find(|idx| source.is_prompt(*idx));
        match next {
            Some(block) => {
                let end = self.end(source, ctx);
                self.go(Position { block, row: 0 }.min(end));
            }
            None => self.note = Some("No prompt behind this"),
        }
    }

    fn previous_prompt(&mut self, source: &PagerSource<'_>, ctx: &RenderContext) {
        let at = self.settled(source, ctx);
        let first = if at.row > 0 { at.block + 1 } else { at.block };
        match (0..first.min(source.len())).rev().find(|idx| source.is_prompt(*idx)) {
            Some(block) => self.go(Position { block, row: 0 }),
            None => self.note = Some("No prompt before this"),
        }
    }

    /// Goes to the next place, or the one before, where the search is found.
    fn find(&mut self, direction: Direction, source: &PagerSource<'_>, ctx: &RenderContext) {
        if self.search.is_empty() {
            return;
        }
        let at = self.settled(source, ctx);
        let blocks: Box<dyn Iterator<Item = usize>> = match direction {
            Direction::On => Box::new(self.found.unwrap_or(at).block..source.len()),
            Direction::Back => Box::new((0..=self.found.unwrap_or(at).block).rev()),
        };
        for block in blocks.filter(|idx| source.contains(*idx, &self.search)) {
            let rows = self.rows(block, source, ctx);
            let hits = (0..rows.len()).filter(|row| rows[*row].text().to_lowercase().contains(&self.search));
            let mut hits = hits.map(|row| Position { block, row });
            let hit = match (direction, self.found) {
                (Direction::On, Some(found)) => hits.find(|hit| *hit > found),
                (Direction::On, None) => hits.next(),
                (Direction::Back, Some(found)) => hits.rfind(|hit| *hit < found),
                (Direction::Back, None) => hits.rfind(|hit| *hit < at),
            };
            if let Some(hit) = hit {
                self.found = Some(hit);
                self.go(hit);
                self.up(self.page() / 2, source, ctx);
                return;
            }
        }
        self.note = Some(match direction {
            Direction::On => "Not found further on",
            Direction::Back => "Not found further back",
        });
    }

    /// Returns the rows of the screen, and where the caret stands.
    pub(crate) fn view(&mut self, source: &PagerSource<'_>, ctx: &RenderContext, size: Size) -> FullView {
        self.size = Some(size);
        let height = usize::from(size.height).saturating_sub(1);
        if self.is_help_shown {
            let mut rows: Vec<Row> =
                HELP.iter().map(|text| cut(&line(text, Style::default()), size.width)).collect();
            rows.truncate(height);
            rows.resize(height, Row::default());
            rows.push(cut(&line("any key goes back", faint()), size.width));
            return (rows, None);
        }
        let at = self.settled(source, ctx);
        let mut rows = Vec::new();
        let mut skip = at.row;
        for block in at.block..source.len() {
            for row in self.rows(block, source, ctx).iter().skip(skip) {
                rows.push(highlighted(row, &self.search));
            }
            skip = 0;
            if rows.len() >= height {
                break;
            }
        }
        rows.truncate(height);
        rows.resize(height, Row::default());
        let (status, column) = self.status(at, source);
        rows.push(cut(&line(&status, faint()), size.width));
        (rows, column.map(|column| (height, column)))
    }

    fn status(&self, at: Position, source: &PagerSource<'_>) -> (String, Option<u16>) {
        if let Some(field) = &self.typing {
            return (format!("/{}", field.text()), Some(1 + cells(field.before_caret())));
        }
        if let Some(note) = self.note {
            return (note.to_owned(), None);
        }
        let percent = match (self.is_at_end, source.len()) {
            (true, _) | (_, 0) => 100,
            (false, n) => at.block * 100 / n,
        };
        let part = if source.n_left_out() > 0 { " · Ctrl+E shows all" } else { "" };
        (format!("transcript · {percent}%{part} · / search · {{ }} prompts · ? help · q close"), None)
    }
}

/// Which way a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    On,
    Back,
}

const HELP: &[&str] = &[
    "Transcript",
    "",
    "  ↑ ↓  j k           a row            Space b  PgDn PgUp   a page",
    "  Ctrl+D  Ctrl+U     half a page      g G  Home End        beginning, end",
    "  /                  search           n N                  next, previous",
    "  { }                previous and next prompt",
    "  Ctrl+E             read all of the session",
    "  [                  write what is shown to the scrollback of the terminal",
    "  v                  open what is shown in your editor",
    "  q  Esc  Ctrl+O     close",
];

/// Breaks a row that is left to the terminal to wrap elsewhere.
fn broken(row: Row, width: usize) -> Vec<Row> {
    if row.width() <= width.max(1) {
        return vec![Row { is_overlong: false, ..row }];
    }
    let mut rows = vec![Row::default()];
    let mut column = 0;
    for span in row.spans {
        let mut text = String::new();
        for cluster in crate::text::clusters(&span.text) {
            let wide = crate::text::width(cluster);
            if column + wide > width.max(1) && column > 0 {
                if let Some(last) = rows.last_mut() {
                    last.push(Span { text: std::mem::take(&mut text), ..span.clone() });
                }
                rows.push(Row::default());
                column = 0;
            }
            text.push_str(cluster);
            column += wide;
        }
        if let Some(last) = rows.last_mut().filter(|_| !text.is_empty()) {
            last.push(Span { text, ..span.clone() });
        }
    }
    rows
}

/// Shows where the search is found in a row.
fn highlighted(row: &Row, search: &str) -> Row {
    if search.is_empty() {
        return row.clone();
    }
    let mut spans = Vec::new();
    for span in &row.spans {
        let lower = span.text.to_lowercase();
        // Letters whose small form has another length would move the places.
        if lower.len() != span.text.len() || !lower.contains(search) {
            spans.push(span.clone());
            continue;
        }
        let mut from = 0;
        for (at, found) in lower.match_indices(search) {
            let piece = |range: std::ops::Range<usize>| span.text.get(range).unwrap_or_default().to_owned();
            spans.push(Span { text: piece(from..at), ..span.clone() });
            let style = Style { is_reversed: true, ..span.style };
            spans.push(Span { text: piece(at..at + found.len()), style, link: span.link.clone() });
            from = at + found.len();
        }
        spans.push(Span { text: span.text.get(from..).unwrap_or_default().to_owned(), ..span.clone() });
    }
    Row::new(spans)
}
