//! `/debug`: what the last turn spent its time on, as a timeline, and what was slowest: "why is this slow".

use std::time::Duration;

use loci_engine::{LocalOutcome, SessionSnapshot, SpanKind, TimelineSpan, TurnTimeline};
use loci_stdx::counted;

use super::{cell, format_duration};

/// How wide the picture of the text is.
const COLUMNS: usize = 40;
/// How many of the slowest are named.
const MOST_SLOW: usize = 3;
/// The most spans of the text.
const MOST_ROWS: usize = 60;

/// How long a turn spent on each kind of thing, the longest first. What runs side by side counts once.
pub fn by_kind(timeline: &TurnTimeline) -> Vec<(SpanKind, Duration, usize)> {
    let of_kind = |kind: SpanKind| {
        let spans: Vec<&TimelineSpan> = timeline.spans.iter().filter(|span| span.kind == kind).collect();
        (kind, covered(&spans, timeline.total), spans.len())
    };
    let mut kinds: Vec<_> = SpanKind::ALL.into_iter().map(of_kind).filter(|(_, _, n)| *n > 0).collect();
    kinds.sort_by_key(|(_, time, _)| std::cmp::Reverse(*time));
    kinds
}

/// Returns how much time some spans cover together.
fn covered(spans: &[&TimelineSpan], total: Duration) -> Duration {
    let mut parts: Vec<(Duration, Duration)> =
        spans.iter().map(|span| (span.start, span.start + span.duration(total))).collect();
    parts.sort_unstable();
    let mut end = Duration::ZERO;
    let mut sum = Duration::ZERO;
    for (from, to) in parts {
        let from = from.max(end);
        sum += to.saturating_sub(from);
        end = end.max(to);
    }
    sum
}

/// Says what the turn waited for most, and what would help.
pub fn findings(timeline: &TurnTimeline) -> Vec<String> {
    let mut said = Vec::new();
    let mut slow: Vec<&TimelineSpan> = timeline.spans.iter().collect();
    slow.sort_by_key(|span| std::cmp::Reverse(span.duration(timeline.total)));
    for span in slow.into_iter().take(MOST_SLOW).filter(|span| !span.duration(timeline.total).is_zero()) {
        let took = format_duration(span.duration(timeline.total));
        said.push(format!("{} took {took}: {}", span.kind.name(), span.label));
    }
    let time = |kind: SpanKind| {
        by_kind(timeline).into_iter().find(|(it, ..)| *it == kind).map_or(Duration::ZERO, |(_, time, _)| time)
    };
    let is_much = |time: Duration| time * 4 > timeline.total && time > Duration::from_secs(1);
    if is_much(time(SpanKind::Question)) {
        said.push(
            "Much of the time it waited for you: `/fewer-permission-prompts` proposes rules".to_owned(),
        );
    }
    if is_much(time(SpanKind::Retry)) {
        said.push("Much of the time it waited to repeat requests that the server did not take".to_owned());
    }
    if is_much(time(SpanKind::Hook)) {
        said.push("Hooks took much of the time: `/hooks` lists them".to_owned());
    }
    let waited: Duration = timeline
        .spans
        .iter()
        .filter(|span| span.kind == SpanKind::Request)
        .filter_map(|span| Some(span.first?.saturating_sub(span.start)))
        .sum();
    if is_much(waited) {
        said.push(format!("The model took {} to begin its answers", format_duration(waited)));
    }
    said
}

/// Draws where a span lies in the turn, so many columns wide: `░` before the answer began, `█` behind that.
pub fn bar(span: &TimelineSpan, total: Duration, columns: usize) -> String {
    let place = |time: Duration| {
        let part = time.as_secs_f64() / total.as_secs_f64().max(0.001);
        ((part * columns as f64).round() as usize).min(columns)
    };
    let (from, to) = (place(span.start), place(span.start + span.duration(total)));
    let from = from.min(columns.saturating_sub(1));
    let to = to.max(from + 1).min(columns);
    let first = span.first.map_or(from, place).clamp(from, to);
    let cell = |column: usize| match column {
        column if column < from || column >= to => ' ',
        column if column < first => '░',
        _ => '█',
    };
    (0..columns).map(cell).collect()
}

/// Carries the command out.
pub(super) fn run(session: &SessionSnapshot) -> LocalOutcome {
    LocalOutcome::text(
        session
            .timeline
            .as_ref()
            .map_or_else(|| "Nothing was asked of a model yet.\n".to_owned(), to_markdown),
    )
}

fn to_markdown(timeline: &TurnTimeline) -> String {
    let state = if timeline.is_over { "took" } else { "has taken" };
    let mut text = format!("## The last turn {state} {}\n\n", format_duration(timeline.total));
    for (kind, time, n) in by_kind(timeline) {
        let times = counted(n as u64, "time", "times");
        text.push_str(&format!("- {}: {} ({times})\n", kind.name(), format_duration(time)));
    }
    text.push_str("\n```text\n");
    for span in timeline.spans.iter().take(MOST_ROWS) {
        let took = format_duration(span.duration(timeline.total));
        let note = span.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        text.push_str(&format!(
            "{} {:>10}  {} {}{}\n",
            bar(span, timeline.total, COLUMNS),
            took,
            span.kind.name(),
            cell(&span.label),
            cell(&note)
        ));
    }
    text.push_str("```\n");
    let n_left = timeline.spans.len().saturating_sub(MOST_ROWS);
    if n_left > 0 {
        text.push_str(&format!("\n{n_left} more are not shown\n"));
    }
    findings(timeline).iter().for_each(|line| text.push_str(&format!("\n- {line}")));
    text.push_str("\n\n`loci --debug` writes a trace of everything to the config home.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline() -> TurnTimeline {
        let seconds = |n: u64| Duration::from_secs(n);
        let span = |kind, label: &str, start, end| {
            TimelineSpan::new(kind, label, seconds(start), Some(seconds(end)))
        };
        let mut request = span(SpanKind::Request, "m", 0, 10);
        request.first = Some(seconds(8));
        TurnTimeline {
            model: "m".into(),
            total: seconds(20),
            is_over: true,
            spans: vec![
                request,
                span(SpanKind::Question, "Bash", 10, 17),
                span(SpanKind::Call, "Read a", 17, 19),
                span(SpanKind::Call, "Read b", 18, 20),
            ],
        }
    }

    #[test]
    fn time_is_summed_by_kind_and_what_runs_side_by_side_counts_once() {
        let kinds: Vec<(&str, u64, usize)> = by_kind(&timeline())
            .into_iter()
            .map(|(kind, time, n)| (kind.name(), time.as_secs(), n))
            .collect();
        assert_eq!(kinds, [("model", 10, 1), ("you", 7, 1), ("call", 3, 2)]);
        let said = findings(&timeline()).join("\n");
        for expected in ["model took 10 s", "fewer-permission-prompts", "8.0 s to begin"] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }

    #[test]
    fn bars_lie_where_the_time_was_spent() {
        let timeline = timeline();
        let bars: Vec<String> = timeline.spans.iter().map(|span| bar(span, timeline.total, 20)).collect();
        assert_eq!(
            bars,
            ["░░░░░░░░██          ", "          ███████   ", "                 ██ ", "                  ██"]
        );
        let instant =
            TimelineSpan::new(SpanKind::Hook, "h", Duration::from_secs(20), Some(Duration::from_secs(20)));
        assert_eq!(bar(&instant, timeline.total, 20).trim(), "█", "whatever is there is seen");
        assert_eq!(bar(&instant, Duration::ZERO, 0), "");
    }
}
