//! `/usage`: what this session has used, and what all sessions have, as plots by day, by model and by project.

use loci_app::commands::{ReportTopic, short_tokens};
use loci_app::reports::stats::{PlotBar, UsagePlots};
use loci_stdx::counted;

use super::report::report_rows;
use super::{Panel, PanelContext, PanelData, PanelRequest, PanelStep, PanelView, Scroll, Tabs, ask_snapshot};
use crate::app::{Action, Effect};
use crate::key::{InputEvent, KeyCode};
use crate::layout::{code, faint, line, paragraph};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Row, Span, sanitize_line, width};

const TITLES: &[&str] = &["Session", "Days", "Models", "Projects"];
/// How high the plot of days is.
const DAY_ROWS: usize = 8;
/// The eighths of a cell, upwards and to the right.
const UP: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
const RIGHT: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// What bars stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Cost,
    Tokens,
}

impl Measure {
    fn amount(self, bar: &PlotBar) -> f64 {
        match self {
            Self::Cost => bar.cost_usd,
            Self::Tokens => bar.tokens as f64,
        }
    }

    fn format_value(self, bar: &PlotBar) -> String {
        match self {
            Self::Cost => format!("${:.2}", bar.cost_usd),
            Self::Tokens => short_tokens(bar.tokens),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost at list price",
            Self::Tokens => "tokens",
        }
    }
}

/// What was used.
#[derive(Debug)]
pub(crate) struct UsagePanel {
    tabs: Tabs,
    /// What is said of the session.
    session: Option<String>,
    plots: Option<UsagePlots>,
    problem: Option<String>,
    measure: Measure,
    scroll: Scroll,
}

impl UsagePanel {
    /// Shows the session first.
    pub(crate) fn new() -> Self {
        Self {
            tabs: Tabs::new(TITLES),
            session: None,
            plots: None,
            problem: None,
            measure: Measure::Cost,
            scroll: Scroll::default(),
        }
    }

    fn plot_rows(&self, size: Size) -> Vec<Row> {
        let Some(plots) = &self.plots else {
            return vec![line(self.problem.as_deref().unwrap_or("Counting all sessions…"), faint())];
        };
        let all = &plots.all;
        let head = format!(
            "{}, {}, {} tokens, ${:.2} at list price; shown: {}",
            counted(all.sessions, "session", "sessions"),
            counted(all.turns, "turn", "turns"),
            short_tokens(all.tokens),
            all.cost_usd,
            self.measure.name()
        );
        let mut rows = paragraph("", &head, faint(), size.width);
        rows.push(Row::default());
        rows.extend(match self.tabs.shown() {
            1 => self.day_rows(&plots.days, size),
            2 => self.bar_rows(&plots.models, size),
            _ => self.bar_rows(&plots.projects, size),
        });
        if !plots.unpriced.is_empty() && self.measure == Measure::Cost {
            let text = format!("Price unknown, counted as $0.00: {}", plots.unpriced.join(", "));
            rows.extend(paragraph("", &text, faint(), size.width));
        }
        rows
    }

    /// A column for each day, upwards.
    fn day_rows(&self, days: &[PlotBar], size: Size) -> Vec<Row> {
        let room = usize::from(size.width).saturating_sub(9).max(1);
        let shown = days.get(days.len().saturating_sub(room)..).unwrap_or_default();
        let most = shown.iter().map(|day| self.measure.amount(day)).fold(0.0, f64::max);
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else {
            return vec![line("There is nothing to count yet", faint())];
        };
        let top = shown.iter().find(|day| self.measure.amount(day) >= most);
        let mut rows = Vec::new();
        for row in (0..DAY_ROWS).rev() {
            let label =
                if row + 1 == DAY_ROWS { top.map(|day| self.measure.format_value(day)) } else { None };
            let cells: String =
                shown.iter().map(|day| up_cell(self.measure.amount(day), most, row)).collect();
            rows.push(Row::new(vec![
                Span::styled(format!("{:>8} ", label.unwrap_or_default()), faint()),
                Span::styled(cells, code()),
            ]));
        }
        rows.push(line(&format!("{:>8} {}", "", "─".repeat(shown.len())), faint()));
        rows.extend(paragraph("", &format!("{} to {}", first.name, last.name), faint(), size.width));
        rows
    }

    /// A bar for each, to the right.
    fn bar_rows(&self, bars: &[PlotBar], size: Size) -> Vec<Row> {
        let most = bars.iter().map(|bar| self.measure.amount(bar)).fold(0.0, f64::max);
        let room = usize::from(size.width);
        let name_width =
            bars.iter().map(|bar| width(&sanitize_line(&bar.name))).max().unwrap_or(0).min(room / 3);
        let bar_width = room.saturating_sub(name_width + 11).clamp(1, 60);
        let rows = bars.iter().map(|bar| {
            let name = loci_stdx::single_line(&sanitize_line(&bar.name), name_width.max(1));
            let pad = " ".repeat(name_width.saturating_sub(width(&name)));
            Row::new(vec![
                Span::plain(format!("{name}{pad} ")),
                Span::styled(format!("{:>8} ", self.measure.format_value(bar)), faint()),
                Span::styled(right_bar(self.measure.amount(bar), most, bar_width), code()),
            ])
        });
        let rows: Vec<Row> = rows.collect();
        match rows.is_empty() {
            true => vec![line("There is nothing to count yet", faint())],
            false => rows,
        }
    }
}

impl Panel for UsagePanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        if ctx.is_cancel() {
            return PanelStep::Close;
        }
        if self.tabs.handle(ctx.action) {
            self.scroll = Scroll::default();
            let is_unread = self.tabs.shown() > 0 && self.plots.is_none();
            return match is_unread {
                true => PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::Statistics))]),
                false => PanelStep::Stay,
            };
        }
        if self.scroll.handle(event) {
            return PanelStep::Stay;
        }
        match event {
            InputEvent::Key(key) if key.code == KeyCode::Char('m') => {
                self.measure = match self.measure {
                    Measure::Cost => Measure::Tokens,
                    Measure::Tokens => Measure::Cost,
                };
                PanelStep::Stay
            }
            InputEvent::Key(key) if key.code == KeyCode::Char('r') => PanelStep::Act(vec![ask_snapshot()]),
            _ => PanelStep::Stay,
        }
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => {
                return vec![Action::Effect(Effect::AskPanel(PanelRequest::Report {
                    topic: ReportTopic::Usage,
                    snapshot,
                }))];
            }
            PanelData::Report { topic: ReportTopic::Usage, markdown } => self.session = Some(markdown),
            PanelData::Statistics(plots) => {
                if plots.all.cost_usd <= 0.0 {
                    self.measure = Measure::Tokens;
                }
                self.plots = Some(plots);
            }
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, ctx: &RenderContext, size: Size) -> PanelView {
        let hint = match self.tabs.shown() {
            0 => "Tab days, models, projects · ↑↓ scroll · r read again · Esc close",
            _ => "Tab more · m cost or tokens · ↑↓ scroll · Esc close",
        };
        let mut view = PanelView::new("Usage", hint);
        view.head.push(self.tabs.row(size.width));
        let rows = match self.tabs.shown() {
            0 => report_rows(self.session.as_deref().or(self.problem.as_deref()), ctx),
            _ => self.plot_rows(size),
        };
        let room = view.room(size);
        view.body = self.scroll.rows(rows, room);
        view
    }
}

/// The cell of a column in a row counted from the bottom; whatever is there at all is seen.
fn up_cell(amount: f64, most: f64, row: usize) -> &'static str {
    if amount <= 0.0 || most <= 0.0 {
        return " ";
    }
    let eighths = ((amount / most * (DAY_ROWS * 8) as f64).round() as usize).max(1);
    UP.get(eighths.saturating_sub(row * 8).min(8)).copied().unwrap_or(" ")
}

fn right_bar(amount: f64, most: f64, columns: usize) -> String {
    if amount <= 0.0 || most <= 0.0 {
        return String::new();
    }
    let eighths = ((amount / most * (columns * 8) as f64).round() as usize).clamp(1, columns * 8);
    format!("{}{}", "█".repeat(eighths / 8), RIGHT.get(eighths % 8).copied().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;
    use crate::keymap::Action as KeyAction;

    fn bar(name: &str, cost_usd: f64) -> PlotBar {
        PlotBar { name: name.into(), cost_usd, tokens: (cost_usd * 1e6) as u64, sessions: 1, turns: 2 }
    }

    #[test]
    fn plots_are_drawn_by_day_model_and_project() {
        for (width, height) in [(20, 12), (50, 16), (80, 20), (120, 30)] {
            let mut shown = Shown::new(UsagePanel::new(), width, height);
            let snapshot = snapshot();
            let ask = PanelRequest::Report { topic: ReportTopic::Usage, snapshot: snapshot.clone() };
            assert_eq!(shown.receive(PanelData::Snapshot(snapshot)), [Action::Effect(Effect::AskPanel(ask))]);
            let markdown = "## Usage\n\n- Total cost: $1\n".to_owned();
            shown.receive(PanelData::Report { topic: ReportTopic::Usage, markdown });
            assert!(shown.text().contains("Total cost"), "{}", shown.text());
            let asked = PanelStep::Act(vec![Action::Effect(Effect::AskPanel(PanelRequest::Statistics))]);
            assert_eq!(shown.action(KeyAction::TabsNext), asked);
            assert!(shown.text().contains("Counting"), "{}", shown.text());
            let days = (0..90).map(|n| bar(&format!("2026-01-{n:02}"), f64::from(n % 7))).collect();
            let plots = UsagePlots {
                all: bar("all", 9.0),
                days,
                models: vec![bar("opus 日本\u{1b}[2J", 8.0), bar("haiku", 0.001)],
                projects: vec![bar("~/p", 9.0)],
                unpriced: vec!["local".into()],
            };
            shown.receive(PanelData::Statistics(plots));
            shown.assert_clean();
            shown.key(KeyCode::End, None);
            assert!(shown.text().contains('█') || shown.text().contains('─'), "{width}: {}", shown.text());
            assert_eq!(shown.action(KeyAction::TabsNext), PanelStep::Stay, "they are read once");
            shown.key(KeyCode::PageDown, None);
            shown.assert_clean();
            assert!(shown.text().contains('▏'), "the smallest is seen, {width}: {}", shown.text());
            shown.key(KeyCode::Char('m'), None);
            shown.assert_clean();
        }
    }

    #[test]
    fn columns_are_in_proportion() {
        let column = |amount| (0..DAY_ROWS).map(|row| up_cell(amount, 8.0, row)).collect::<String>();
        assert_eq!(column(8.0), "████████");
        assert_eq!(column(1.5), "█▄      ");
        assert_eq!(column(0.001), "▁       ");
        assert_eq!(column(0.0), "        ");
        assert_eq!((right_bar(1.0, 2.0, 4).as_str(), right_bar(0.0, 2.0, 4).as_str()), ("██", ""));
    }
}
