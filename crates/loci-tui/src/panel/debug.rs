//! `/debug`: the last turn as a timeline: requests, waits, hooks, calls and questions, where the time went, and why.

use std::sync::Arc;
use std::time::Duration;

use loci_app::commands::debug::{bar, by_kind, findings};
use loci_app::commands::format_duration;
use loci_engine::{SessionSnapshot, SpanKind, TimelineSpan, TurnTimeline};

use super::{Panel, PanelContext, PanelData, PanelStep, PanelView, Scroll, ask_snapshot};
use crate::app::Action;
use crate::key::InputEvent;
use crate::keymap::Context;
use crate::layout::{faint, line, paragraph, warning};
use crate::render::RenderContext;
use crate::screen::Size;
use crate::text::{Color, Row, Span, Style, sanitize_line};

/// The bars take at most so much of a row.
const MOST_COLUMNS: usize = 48;

/// How often a turn that is under way is looked at again.
const REFRESH: Duration = Duration::from_secs(1);

/// The last turn.
#[derive(Debug, Default)]
pub(crate) struct DebugPanel {
    session: Option<Arc<SessionSnapshot>>,
    problem: Option<String>,
    scroll: Scroll,
}

impl DebugPanel {
    fn rows(timeline: &TurnTimeline, size: Size) -> Vec<Row> {
        let width = usize::from(size.width);
        let columns = (width / 2).min(MOST_COLUMNS);
        let mut rows: Vec<Row> = by_kind(timeline)
            .into_iter()
            .map(|(kind, time, n)| {
                let times = if n == 1 { "once".to_owned() } else { format!("{n} times") };
                let text = format!("{}  {}, {times}", kind.name(), format_duration(time));
                Row::new(vec![Span::styled("■ ", kind_style(kind)), Span::plain(text)])
            })
            .collect();
        rows.push(Row::default());
        rows.extend(findings(timeline).iter().flat_map(|text| paragraph("- ", text, warning(), size.width)));
        rows.push(Row::default());
        rows.extend(timeline.spans.iter().map(|span| span_row(span, timeline, columns)));
        rows
    }
}

impl Panel for DebugPanel {
    fn handle(&mut self, event: &InputEvent, ctx: &PanelContext) -> PanelStep {
        self.scroll.handle_panel(event, ctx)
    }

    fn receive(&mut self, data: PanelData) -> Vec<Action> {
        match data {
            PanelData::Snapshot(snapshot) => self.session = Some(snapshot),
            PanelData::Failed(why) => self.problem = Some(why),
            _ => {}
        }
        Vec::new()
    }

    fn view(&self, _ctx: &RenderContext, size: Size) -> PanelView {
        let timeline = self.session.as_ref().and_then(|session| session.timeline.as_ref());
        let Some(timeline) = timeline else {
            let mut view = PanelView::new("Why is this slow", "Esc close");
            let text = match &self.session {
                Some(_) => "Nothing was asked of a model yet",
                None => self.problem.as_deref().unwrap_or("Reading…"),
            };
            view.body = vec![line(text, faint())];
            return view;
        };
        let state = if timeline.is_over { "took" } else { "has taken" };
        let title = format!("The last turn {state} {}", format_duration(timeline.total));
        let mut view = PanelView::new(&title, "↑↓ scroll · r read again · Esc close");
        let room = view.room(size);
        view.body = self.scroll.rows(Self::rows(timeline, size), room);
        view
    }

    fn refresh_every(&self) -> Option<Duration> {
        let timeline = self.session.as_ref()?.timeline.as_ref()?;
        (!timeline.is_over).then_some(REFRESH)
    }

    fn refresh(&self) -> Vec<Action> {
        vec![ask_snapshot()]
    }

    fn contexts(&self) -> &'static [Context] {
        &[Context::Select, Context::Global]
    }
}

fn span_row(span: &TimelineSpan, timeline: &TurnTimeline, columns: usize) -> Row {
    let note = span.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
    let took = format_duration(span.duration(timeline.total));
    let label = sanitize_line(&format!("{} {}{note}", span.kind.name(), span.label));
    Row::new(vec![
        Span::styled(bar(span, timeline.total, columns), kind_style(span.kind)),
        Span::styled(format!(" {took:>9} "), faint()),
        Span::plain(label),
    ])
}

/// The colour only helps: the word says what it is.
fn kind_style(kind: SpanKind) -> Style {
    let color = match kind {
        SpanKind::Request => 4,
        SpanKind::Retry => 1,
        SpanKind::Call => 2,
        SpanKind::Question => 3,
        SpanKind::Hook => 5,
        SpanKind::Compaction => 6,
    };
    Style { fg: Color::Ansi(color), ..Style::default() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Shown, snapshot};
    use super::*;
    use crate::key::KeyCode;

    #[test]
    fn timeline_is_drawn_at_any_width() {
        for (width, height) in [(20, 8), (50, 16), (80, 20), (120, 30)] {
            let mut shown = Shown::new(DebugPanel::default(), width, height);
            assert!(shown.text().contains("Reading…"), "{}", shown.text());
            shown.receive(PanelData::Snapshot(snapshot()));
            assert!(shown.text().contains("Nothing was"), "{}", shown.text());
            let seconds = |n: u64| Duration::from_secs(n);
            let call =
                TimelineSpan::new(SpanKind::Call, "Bash ma\u{1b}[2Jke 日本", seconds(5), Some(seconds(10)));
            let timeline = TurnTimeline {
                model: "m".into(),
                total: seconds(10),
                is_over: true,
                spans: vec![TimelineSpan::new(SpanKind::Request, "m", seconds(0), Some(seconds(5))), call],
            };
            let with = SessionSnapshot { timeline: Some(timeline), ..SessionSnapshot::clone(&snapshot()) };
            shown.receive(PanelData::Snapshot(Arc::new(with)));
            shown.assert_clean();
            assert!(shown.text().contains("last turn took"), "{}", shown.text());
            shown.key(KeyCode::End, None);
            assert!(shown.text().contains('█'), "{width}: {}", shown.text());
            shown.assert_clean();
        }
    }
}
