//! The transcript pager (Ctrl+O): everything that was said, whole, on a screen of its own.
//!
//! It is a virtual list, so that a key costs the same however long the conversation is. What is being said appears at its end
//! as it comes. It shows what the interface remembers; Ctrl+E reads all of the session.

mod source;
#[cfg(test)]
mod tests;

pub(crate) use source::PagerSource;

use super::fullscreen::FullView;
use super::virtual_list::{Position, RowSource, VirtualList};
use crate::dialog::TextField;
use crate::key::{InputEvent, Key, KeyCode, MouseAction};
use crate::keymap::Action as KeyAction;
use crate::layout::{bold, cells, code, cut, faint, line};
use crate::panel::{Scroll, fit_hint};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, Style};

/// The pager.
#[derive(Debug, Default)]
pub(crate) struct Pager {
    list: VirtualList,
    /// What is looked for.
    search: String,
    /// The search that is being typed.
    typing: Option<TextField>,
    /// Where it was found last.
    found: Option<Position>,
    is_help_shown: bool,
    help_scroll: Scroll,
    /// What was said to a key, until the next one.
    note: Option<&'static str>,
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
        Self { list: VirtualList::at_end(), ..Self::default() }
    }

    /// Takes up that it shows other blocks now: at their end.
    pub(crate) fn renew(&mut self) {
        (self.found, self.note, self.list) = (None, None, VirtualList::at_end());
    }

    /// Says that something did not work.
    pub(crate) fn set_note(&mut self, note: &'static str) {
        self.note = Some(note);
    }

    /// Scrolls by rows of the wheel.
    pub(crate) fn scroll(
        &mut self,
        way: MouseAction,
        n: usize,
        source: &PagerSource<'_>,
        ctx: &RenderContext,
    ) {
        match way {
            MouseAction::WheelUp => self.list.up(n, source, ctx),
            MouseAction::WheelDown => self.list.down(n, source, ctx),
            MouseAction::Press(_) | MouseAction::Release(_) | MouseAction::Drag(_) => {}
        }
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
        if self.is_help_shown {
            self.is_help_shown = self.help_scroll.handle(event);
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
            (KeyCode::Down, _) | (KeyCode::Char('j'), false) => self.list.down(1, source, ctx),
            (KeyCode::Up, _) | (KeyCode::Char('k'), false) => self.list.up(1, source, ctx),
            (KeyCode::PageDown | KeyCode::Char(' '), false) | (KeyCode::Char('f'), true) => {
                self.list.down(page, source, ctx);
            }
            (KeyCode::PageUp, _) | (KeyCode::Char('b'), _) => self.list.up(page, source, ctx),
            (KeyCode::Char('d'), true) => self.list.down(page / 2, source, ctx),
            (KeyCode::Char('u'), true) => self.list.up(page / 2, source, ctx),
            (KeyCode::Home, _) | (KeyCode::Char('g'), false) => self.list.go_to_start(source),
            (KeyCode::End, _) | (KeyCode::Char('G'), false) => self.list.is_at_end = true,
            (KeyCode::Char('/'), false) => self.typing = Some(TextField::default()),
            (KeyCode::Char('n'), false) => self.find(Direction::On, source, ctx),
            (KeyCode::Char('N'), false) => self.find(Direction::Back, source, ctx),
            (KeyCode::Char('}'), false) => self.next_prompt(source, ctx),
            (KeyCode::Char('{'), false) => self.previous_prompt(source, ctx),
            (KeyCode::Char('?'), false) => (self.is_help_shown, self.help_scroll) = (true, Scroll::default()),
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
        self.list.height().saturating_sub(1).max(1)
    }

    fn next_prompt(&mut self, source: &PagerSource<'_>, ctx: &RenderContext) {
        let at = self.list.settled(source, ctx);
        let next = (at.block + 1..source.numbers().end).find(|number| source.is_prompt(*number));
        match next {
            Some(block) => {
                let end = self.list.end(source, ctx);
                self.list.go(Position { block, row: 0 }.min(end));
            }
            None => self.note = Some("No prompt behind this"),
        }
    }

    fn previous_prompt(&mut self, source: &PagerSource<'_>, ctx: &RenderContext) {
        let at = self.list.settled(source, ctx);
        let first = if at.row > 0 { at.block + 1 } else { at.block };
        let numbers = source.numbers();
        match (numbers.start..first.min(numbers.end)).rev().find(|number| source.is_prompt(*number)) {
            Some(block) => self.list.go(Position { block, row: 0 }),
            None => self.note = Some("No prompt before this"),
        }
    }

    /// Goes to the next place, or the one before, where the search is found; behind the last it goes on from the first.
    fn find(&mut self, direction: Direction, source: &PagerSource<'_>, ctx: &RenderContext) {
        if self.search.is_empty() {
            return;
        }
        let from = match self.found {
            Some(found) => SearchFrom::Behind(found),
            None => SearchFrom::Here(self.list.settled(source, ctx)),
        };
        let (hit, note) = match self.next_hit(direction, from, source, ctx) {
            Some(hit) => (Some(hit), None),
            None => (self.next_hit(direction, SearchFrom::TheEnd, source, ctx), Some(direction.wrap_note())),
        };
        let Some(hit) = hit else {
            self.note = Some(match source.n_left_out() {
                0 => "Not found",
                _ => "Not found in what is shown here · Ctrl+E reads all of the session",
            });
            return;
        };
        self.note = note;
        self.found = Some(hit);
        self.list.go(hit);
        self.list.up(self.page() / 2, source, ctx);
    }

    fn next_hit(
        &self,
        direction: Direction,
        from: SearchFrom,
        source: &PagerSource<'_>,
        ctx: &RenderContext,
    ) -> Option<Position> {
        let numbers = source.numbers();
        let blocks: Box<dyn Iterator<Item = usize>> = match (direction, from.position()) {
            (Direction::On, at) => Box::new(at.map_or(numbers.start, |at| at.block)..numbers.end),
            (Direction::Back, None) => Box::new(numbers.rev()),
            (Direction::Back, Some(at)) => Box::new((numbers.start..=at.block).rev()),
        };
        for block in blocks.filter(|idx| source.contains(*idx, &self.search)) {
            let rows = self.list.rows(block, source, ctx);
            let is_hit = |(_, row): &(usize, &Row)| row.text().to_lowercase().contains(&self.search);
            let hits: Vec<usize> = rows.iter().enumerate().filter(is_hit).map(|(row, _)| row).collect();
            let mut hits = hits.into_iter().map(|row| Position { block, row });
            let hit = match (direction, from) {
                (Direction::On, SearchFrom::Behind(found)) => hits.find(|hit| *hit > found),
                (Direction::On, SearchFrom::Here(at)) => hits.find(|hit| *hit >= at),
                (Direction::On, SearchFrom::TheEnd) => hits.next(),
                (Direction::Back, SearchFrom::Behind(at) | SearchFrom::Here(at)) => {
                    hits.rfind(|hit| *hit < at)
                }
                (Direction::Back, SearchFrom::TheEnd) => hits.next_back(),
            };
            if hit.is_some() {
                return hit;
            }
        }
        None
    }

    /// Returns the rows of the screen, and where the caret stands.
    pub(crate) fn view(&mut self, source: &PagerSource<'_>, ctx: &RenderContext, size: Size) -> FullView {
        let height = usize::from(size.height).saturating_sub(1);
        self.list.set_layout(ctx, height);
        if self.is_help_shown {
            let rows = self.help_scroll.rows(help_rows(size.width), height);
            let mut rows: Vec<Row> = rows.iter().map(|row| cut(row, size.width)).collect();
            rows.resize(height, Row::default());
            rows.push(cut(&line("any other key goes back", faint()), size.width));
            return FullView { rows, ..FullView::default() };
        }
        let at = self.list.settled(source, ctx);
        let seen = self.list.visible(source, ctx);
        let mut rows: Vec<Row> = seen.iter().map(|(_, row)| highlighted(row, &self.search)).collect();
        rows.resize(height, Row::default());
        let (status, column) = self.status(at, source);
        let status = line(&status, faint());
        let is_hint = column.is_none() && self.note.is_none();
        let status = if is_hint { fit_hint(status, size.width) } else { status };
        rows.push(cut(&status, size.width));
        FullView { rows, caret: column.map(|column| (height, column)), n_scrolling: height }
    }

    fn status(&self, at: Position, source: &PagerSource<'_>) -> (String, Option<u16>) {
        if let Some(field) = &self.typing {
            return (format!("/{}", field.text()), Some(1 + cells(field.before_caret())));
        }
        if let Some(note) = self.note {
            return (note.to_owned(), None);
        }
        let numbers = source.numbers();
        let percent = match (self.list.is_at_end, numbers.len()) {
            (true, _) | (_, 0) => 100,
            (false, n) => at.block.saturating_sub(numbers.start) * 100 / n,
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

impl Direction {
    fn wrap_note(self) -> &'static str {
        match self {
            Direction::On => "Nothing further on: from the beginning",
            Direction::Back => "Nothing further back: from the end",
        }
    }
}

/// Where a search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchFrom {
    /// With what is in sight.
    Here(Position),
    /// With what follows a place where it was found.
    Behind(Position),
    /// At the end from which it comes.
    TheEnd,
}

impl SearchFrom {
    fn position(self) -> Option<Position> {
        match self {
            SearchFrom::Here(at) | SearchFrom::Behind(at) => Some(at),
            SearchFrom::TheEnd => None,
        }
    }
}

/// The keys, and what they do.
const HELP: &[(&str, &str)] = &[
    ("↑ ↓  j k", "a row"),
    ("Space b  PgDn PgUp", "a page (Ctrl+F Ctrl+B, too)"),
    ("Ctrl+D  Ctrl+U", "half a page"),
    ("g G  Home End", "beginning, end"),
    ("/", "search; n and N go to the next place and to the one before"),
    ("{ }", "previous and next prompt"),
    ("Ctrl+E", "read all of the session"),
    ("[", "write what is shown to the scrollback of the terminal"),
    ("v", "open what is shown in your editor"),
    ("q  Esc  Ctrl+O", "close"),
];

/// Returns the keys for a width: what they do stands behind them, or below where there is no room.
fn help_rows(width: u16) -> Vec<Row> {
    let title = line("Transcript", bold());
    let of_key = |(keys, about): &(&str, &str)| match width {
        ..60 => vec![line(keys, code()), line(&format!("  {about}"), Style::default())],
        _ => vec![Row::new(vec![Span::styled(format!("  {keys:<20}"), code()), Span::plain(*about)])],
    };
    std::iter::once(title).chain(HELP.iter().flat_map(of_key)).collect()
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
