//! `/context`: a picture of what fills the window, the figures beside it, what would make room, and how it has filled over
//! time.

use std::sync::Arc;

use loci_app::commands::context::{headline, legend, symbol};
use loci_app::commands::short_tokens;
use loci_app::sessions::command::{ContextPart, ContextPoint, columns, condensed};
use loci_engine::{ContextCategory, ContextCell, ContextUsage, SessionSnapshot};

use super::{Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs, ask_snapshot};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, KeyCode};
use crate::keymap::Context;
use crate::layout::{bold, faint, line, paragraph};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Color, Row, Span, Style, sanitize_line, width};

/// Cells of the picture in a row, where there is room, and rows.
const COLUMNS: usize = 20;
const ROWS: usize = 10;
/// From this width on the figures stand beside the picture.
const WIDE: u16 = 70;

/// What is seen.
const TITLES: &[&str] = &["Now", "Over time"];
/// How high the picture over time is.
const HISTORY_ROWS: usize = 10;

/// What is seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContextView {
    /// What fills the window.
    Now,
    /// The same with every piece.
    All,
    /// How it has filled.
    OverTime,
}

/// What fills the window.
#[derive(Debug)]
pub(crate) struct ContextPanel {
    session: Option<Arc<SessionSnapshot>>,
    /// Whether every piece is listed.
    is_whole: bool,
    problem: Option<String>,
    tabs: Tabs,
    /// How it has filled, once that was read.
    history: Option<Vec<ContextPoint>>,
    scroll: Scroll,
}

impl ContextPanel {
    /// Shows it once it is known.
    pub(crate) fn new(first: ContextView) -> Self {
        let shown = usize::from(first == ContextView::OverTime);
        Self {
            session: None,
            is_whole: first == ContextView::All,
            problem: None,
            tabs: Tabs::at(TITLES, shown),
            history: None,
            scroll: Scroll::default(),
        }
    }

    fn rows(&self, usage: &ContextUsage, size: Size) -> Vec<Row> {
        let is_wide = size.width >= WIDE;
        let columns = if is_wide { COLUMNS } else { (usize::from(size.width) / 2).clamp(1, COLUMNS) };
        let n_rows = if is_wide { ROWS } else { ROWS / 2 };
        let cells = usage.grid(columns * n_rows);
        let picture =
            cells.chunks(columns).map(|cells| Row::new(cells.iter().copied().map(cell_span).collect()));
        let figures = legend(usage).into_iter().map(|row| figure(row, usage.fullness.window));
        let mut rows = match is_wide {
            true => beside(picture.collect(), figures.collect(), columns * 2 + 2),
            false => picture.chain([Row::default()]).chain(figures).collect(),
        };
        let suggestions = usage.suggestions();
        if !suggestions.is_empty() {
            rows.push(Row::default());
        }
        rows.extend(suggestions.iter().flat_map(|text| paragraph("- ", text, Style::default(), size.width)));
        if self.is_whole {
            rows.extend(pieces(usage));
        }
        rows
    }
}

impl Panel for ContextPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if self.tabs.handle(ctx.action) {
            self.scroll = Scroll::default();
            return PanelStep::Act(self.ask_history());
        }
        if self.scroll.handle(event) {
            return PanelStep::Stay;
        }
        let InputEvent::Key(key) = event else { return PanelStep::Stay };
        match key.code {
            KeyCode::Char('a') if self.tabs.shown() == 0 => self.is_whole = !self.is_whole,
            KeyCode::Char('r') => return PanelStep::Act(vec![ask_snapshot()]),
            _ => {}
        }
        PanelStep::Stay
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                (self.session, self.history) = (Some(snapshot), None);
                return self.ask_history();
            }
            PanelData::ContextHistory(history) => self.history = Some(history),
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let Some(session) = &self.session else {
            let mut view = PanelView::new("Context", "Esc close");
            view.body = vec![line(self.problem.as_deref().unwrap_or("Reading…"), faint())];
            return view;
        };
        let hint = match (self.tabs.shown(), self.is_whole) {
            (0, false) => "↑↓ scroll · a every piece · Tab over time · r read again · Esc close",
            (0, true) => "↑↓ scroll · a less · Tab over time · r read again · Esc close",
            _ => "↑↓ scroll · Tab now · r read again · Esc close",
        };
        let mut view = PanelView::new(&format!("Context · {}", headline(&session.context)), hint);
        view.head.push(self.tabs.row(size.width));
        let rows = match self.tabs.shown() {
            0 => self.rows(&session.context, size),
            _ => self.history_rows(&session.context, size),
        };
        let room = view.room(size);
        view.body = self.scroll.rows(rows, room);
        view
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Tabs, Context::Select, Context::Global]
    }
}

impl ContextPanel {
    /// Asks how it has filled, where that is looked at and not known.
    fn ask_history(&self) -> Vec<Action> {
        let Some(snapshot) =
            self.session.clone().filter(|_| self.tabs.shown() == 1 && self.history.is_none())
        else {
            return Vec::new();
        };
        vec![Action::Effect(Effect::AskPanel(PanelRequest::ContextHistory { snapshot }))]
    }

    /// A column for each answer: what the context was made of behind it.
    fn history_rows(&self, usage: &ContextUsage, size: Size) -> Vec<Row> {
        let Some(history) = &self.history else {
            return vec![line(self.problem.as_deref().unwrap_or("Reading…"), faint())];
        };
        if history.is_empty() {
            return vec![line("Nothing was answered yet", faint())];
        }
        let n_columns = usize::from(size.width).saturating_sub(8).max(1);
        let points = condensed(history, n_columns);
        let fullest = history.iter().map(ContextPoint::total).max().unwrap_or(0);
        let most = fullest.max(1);
        let mut rows: Vec<Row> = columns(&points, HISTORY_ROWS, most)
            .into_iter()
            .enumerate()
            .map(|(idx, cells)| {
                let label = match idx {
                    0 => short_tokens(most),
                    idx if idx + 1 == HISTORY_ROWS => "0".to_owned(),
                    _ => String::new(),
                };
                let mut spans = vec![Span::styled(format!("{label:>6} "), faint())];
                spans.extend(cells.into_iter().map(|part| match part {
                    Some(part) => Span::styled(part.letter().to_string(), part_style(part)),
                    None => Span::plain(" "),
                }));
                Row::new(spans)
            })
            .collect();
        let marks: String = points.iter().map(|point| if point.is_compacted { '▲' } else { '─' }).collect();
        rows.push(Row::new(vec![Span::styled(format!("{:>6} {marks}", ""), faint())]));
        let window = usage.fullness.window;
        let text = format!(
            "{} answers, at most {} of {} tokens; ▲ compacted",
            history.len(),
            short_tokens(fullest),
            short_tokens(window)
        );
        rows.extend(paragraph("", &text, faint(), size.width));
        let last = history.last().copied().unwrap_or(ContextPoint { parts: [0; 4], is_compacted: false });
        rows.extend(ContextPart::ALL.into_iter().zip(last.parts).map(|(part, tokens)| {
            Row::new(vec![
                Span::styled(format!("{} ", part.letter()), part_style(part)),
                Span::plain(format!("{}: {}", part.title(), short_tokens(tokens))),
            ])
        }));
        rows
    }
}

/// The colour only helps: the letter says what it is.
fn part_style(part: ContextPart) -> Style {
    let color = match part {
        ContextPart::Fixed => 4,
        ContextPart::Prompts => 6,
        ContextPart::Answers => 2,
        ContextPart::Results => 3,
    };
    Style { fg: Color::Ansi(color), ..Style::default() }
}

/// A letter says what a cell is; the colour only helps.
fn cell_span(cell: ContextCell) -> Span {
    Span::styled(format!("{} ", symbol(cell)), cell_style(cell))
}

fn cell_style(cell: ContextCell) -> Style {
    let color = |n| Style { fg: Color::Ansi(n), ..Style::default() };
    match cell {
        ContextCell::Used(category) => match category {
            ContextCategory::SystemPrompt => color(7),
            ContextCategory::Tools => color(4),
            ContextCategory::McpTools => color(6),
            ContextCategory::Agents => color(2),
            ContextCategory::Skills => color(3),
            ContextCategory::MemoryFiles => color(1),
            ContextCategory::Messages => color(5),
        },
        ContextCell::Free | ContextCell::Buffer => faint(),
    }
}

fn figure((cell, title, tokens): (ContextCell, &str, u64), window: u64) -> Row {
    let share = tokens as f64 * 100.0 / window.max(1) as f64;
    Row::new(vec![
        cell_span(cell),
        Span::plain(format!("{title}: ")),
        Span::styled(format!("{} ({share:.1}%)", short_tokens(tokens)), faint()),
    ])
}

/// Puts rows beside one another; the right ones begin at a column.
fn beside(left: Vec<Row>, right: Vec<Row>, column: usize) -> Vec<Row> {
    let n_rows = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    (0..n_rows)
        .map(|_| {
            let mut row = left.next().unwrap_or_default();
            if let Some(other) = right.next() {
                let blanks = column.saturating_sub(width(&row.text()));
                row.spans.push(Span::plain(" ".repeat(blanks)));
                row.spans.extend(other.spans);
            }
            row
        })
        .collect()
}

/// Lists every piece, the largest of a category first.
fn pieces(usage: &ContextUsage) -> Vec<Row> {
    let mut rows = Vec::new();
    for (category, tokens) in usage.categories() {
        rows.push(Row::default());
        rows.push(line(&format!("{} · {}", category.title(), short_tokens(tokens)), bold()));
        let mut items: Vec<_> = usage.items.iter().filter(|item| item.category == category).collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.tokens));
        rows.extend(items.into_iter().map(|item| {
            Row::new(vec![
                Span::styled(format!("{:>6}  ", short_tokens(item.tokens)), faint()),
                Span::plain(sanitize_line(&item.name)),
                Span::styled(sanitize_line(&format!("  {}", item.source)), faint()),
            ])
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use loci_engine::ContextItem;

    use super::super::testing::{Shown, snapshot};
    use super::*;

    fn filled() -> Arc<SessionSnapshot> {
        let mut it = SessionSnapshot::clone(&snapshot());
        let item = |category, name: &str, tokens| ContextItem::new(category, name, "built in", tokens);
        let items = vec![
            item(ContextCategory::SystemPrompt, "identity", 3_000),
            item(ContextCategory::Tools, "Bash", 9_000),
            item(ContextCategory::MemoryFiles, "/p/CLAUDE\u{1b}[2J.md", 30_000),
            item(ContextCategory::Messages, "Results of Read", 60_000),
        ];
        let mut fullness = it.context.fullness;
        fullness.tokens = 102_000;
        it.context = ContextUsage::new("claude-sonnet-4-5".to_owned(), items, fullness, true);
        Arc::new(it)
    }

    #[test]
    fn window_is_drawn_with_letters_and_figures_at_any_width() {
        for (width, height) in [(20, 5), (40, 12), (80, 24), (120, 40)] {
            let mut shown = Shown::new(ContextPanel::new(ContextView::Now), width, height);
            assert!(shown.text().contains("Reading…"));
            shown.receive(PanelData::Snapshot(filled()));
            shown.assert_clean();
            let text = shown.text();
            assert!(text.contains("Context"), "{text}");
            assert!(width < 40 || text.contains("S T ") || text.contains("S T\n"), "{text}");
            if width >= 80 {
                for expected in [
                    "System prompt: 3k (1.5%)",
                    "Messages: 60k",
                    "Autocompact buffer",
                    "102k of 200k tokens (51%)",
                ] {
                    assert!(text.contains(expected), "{expected}: {text}");
                }
            }
        }
    }

    #[test]
    fn keys_that_are_told_are_those_of_the_tab() {
        for (view, shown_tab, told, untold) in [
            (ContextView::Now, "[Now]", "a every piece · Tab over time", "Tab now"),
            (ContextView::All, "[Now]", "a less · Tab over time", "Tab now"),
            (ContextView::OverTime, "[Over time]", "Tab now", "every piece"),
        ] {
            let mut shown = Shown::new(ContextPanel::new(view), 100, 30);
            shown.receive(PanelData::Snapshot(filled()));
            let text = shown.text();
            assert!(text.contains(shown_tab) && text.contains(told) && !text.contains(untold), "{text}");
        }
    }

    #[test]
    fn every_piece_is_listed_on_a_key() {
        let mut shown = Shown::new(ContextPanel::new(ContextView::Now), 100, 60);
        shown.receive(PanelData::Snapshot(filled()));
        assert!(!shown.text().contains("identity"));
        shown.key(KeyCode::Char('a'), None);
        shown.assert_clean();
        assert!(
            shown.text().contains("Results of Read") && shown.text().contains("Bash"),
            "{}",
            shown.text()
        );
        assert!(shown.text().contains("/memory"), "what takes a lot is told: {}", shown.text());
    }
}
