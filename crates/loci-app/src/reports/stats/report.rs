//! The same figures looked at from each side: by model, by project, by day, and by all three.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use loci_core::usage::ModelUsage;
use loci_stdx::{Date, counted};
use loci_storage::sessions::{Statistics, UsageRow};
use serde_json::{Value, json};

use super::chart::{self, Line};
use crate::reports::display as format;

/// How many rows of a table people are shown.
const MOST_ROWS: usize = 15;
/// How many days are drawn.
const MOST_DAYS: usize = 30;

/// What was used, all in all or under one heading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Used {
    /// Sessions.
    pub n_sessions: u64,
    /// Turns.
    pub n_turns: u64,
    /// Responses of models.
    pub n_responses: u64,
    /// Tokens and cost.
    pub usage: ModelUsage,
    /// The session counted last: the rows of one follow one another.
    last_session: Option<usize>,
}

impl Used {
    fn add(&mut self, row: &UsageRow) {
        if self.last_session.replace(row.session) != Some(row.session) {
            self.n_sessions += 1;
        }
        self.n_turns += row.n_turns;
        self.n_responses += row.n_responses;
        self.usage.add_all(&row.usage);
    }

    /// Returns all tokens.
    pub fn n_tokens(&self) -> u64 {
        let usage = &self.usage;
        usage.input_tokens
            + usage.output_tokens
            + usage.cache_read_input_tokens
            + usage.cache_creation_input_tokens
    }

    fn json(&self) -> Value {
        let usage = &self.usage;
        json!({
            "sessions": self.n_sessions,
            "turns": self.n_turns,
            "responses": self.n_responses,
            "tokens": self.n_tokens(),
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
            "cacheReadInputTokens": usage.cache_read_input_tokens,
            "cacheCreationInputTokens": usage.cache_creation_input_tokens,
            "webSearchRequests": usage.web_search_requests,
            "costUSD": usage.cost_usd,
        })
    }
}

/// A day, a project and a model.
pub type Cell = (Option<Date>, String, String);

/// All figures.
pub struct Report {
    pub(super) all: Used,
    pub(super) by_model: BTreeMap<String, Used>,
    pub(super) by_project: BTreeMap<String, Used>,
    pub(super) by_day: BTreeMap<Option<Date>, Used>,
    /// By day, project and model.
    pub by_cell: BTreeMap<Cell, Used>,
    /// Models without a price.
    pub unpriced: BTreeSet<String>,
}

impl Report {
    /// Puts statistics together.
    pub fn of(statistics: &Statistics) -> Self {
        let mut report = Self {
            all: Used::default(),
            by_model: BTreeMap::new(),
            by_project: BTreeMap::new(),
            by_day: BTreeMap::new(),
            by_cell: BTreeMap::new(),
            unpriced: BTreeSet::new(),
        };
        statistics.rows.iter().for_each(|row| report.add(row));
        report
    }

    fn add(&mut self, row: &UsageRow) {
        let project = row.project.to_string();
        let model = row.model.as_deref().unwrap_or_default().to_owned();
        if row.model.is_some() && !row.is_priced {
            self.unpriced.insert(model.clone());
        }
        self.all.add(row);
        self.by_model.entry(model.clone()).or_default().add(row);
        self.by_project.entry(project.clone()).or_default().add(row);
        self.by_day.entry(row.day).or_default().add(row);
        self.by_cell.entry((row.day, project, model)).or_default().add(row);
    }

    /// Tells whether there is nothing to count.
    pub fn is_empty(&self) -> bool {
        self.all.n_sessions == 0
    }

    /// Returns everything; what has no day, project or model is under null.
    pub fn json(&self) -> Value {
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let with = |key: &str, value: Value, used: &Used| {
            let mut row = json!({key: value});
            merge(&mut row, used.json());
            row
        };
        let mut whole = self.all.json();
        whole["unpricedModels"] = json!(self.unpriced);
        whole["priceUnknown"] = json!(!self.unpriced.is_empty());
        let model = |(name, used): (&String, &Used)| {
            let mut row = with("model", json!(some(name)), used);
            row["priceUnknown"] = json!(self.unpriced.contains(name));
            row
        };
        whole["models"] = self.by_model.iter().map(model).collect();
        whole["projects"] =
            self.by_project.iter().map(|(it, used)| with("project", json!(some(it)), used)).collect();
        whole["days"] = self
            .by_day
            .iter()
            .map(|(it, used)| with("day", json!(it.map(|day| day.to_string())), used))
            .collect();
        whole
    }

    /// Returns tables with bars, for people.
    pub fn text(&self, home: &Path) -> String {
        let all = &self.all;
        let mut text = format!(
            "{}, {}, {}, {} tokens, {} at list price\n",
            counted(all.n_sessions, "session", "sessions"),
            counted(all.n_turns, "turn", "turns"),
            counted(all.n_responses, "response", "responses"),
            chart::short(all.n_tokens()),
            format::dollars(all.usage.cost_usd)
        );
        let measure = chart::Measure::of(all);
        let day_off = Used::default();
        let sides =
            [("MODEL", self.models()), ("PROJECT", self.projects(home)), ("DAY", self.days(&day_off))];
        for (title, lines) in sides {
            text.push_str(&chart::table(title, &lines, measure));
        }
        if !self.unpriced.is_empty() {
            let names: Vec<String> = self.unpriced.iter().map(|name| format::plain(name)).collect();
            text.push_str(&format!("\nPrice unknown, counted as $0.00: {}\n", names.join(", ")));
        }
        text
    }

    fn models(&self) -> Vec<Line<'_>> {
        let named = self.by_model.iter().map(|(name, used)| match name.as_str() {
            "" => ("(no answer)".to_owned(), used, true),
            _ => (name.clone(), used, !self.unpriced.contains(name)),
        });
        dearest(named.collect())
    }

    fn projects(&self, home: &Path) -> Vec<Line<'_>> {
        let named = self.by_project.iter().map(|(dir, used)| match dir.as_str() {
            "" => ("(unknown)".to_owned(), used, true),
            _ => (format::path(home, dir), used, true),
        });
        dearest(named.collect())
    }

    /// Returns the last days up to the last one with something in it, days off included.
    fn days<'a>(&'a self, day_off: &'a Used) -> Vec<Line<'a>> {
        let known: Vec<Date> = self.by_day.keys().flatten().copied().collect();
        let (Some(first), Some(last)) = (known.first(), known.last()) else { return Vec::new() };
        let mut days: Vec<Date> = std::iter::successors(Some(*last), |day| day.yesterday().ok())
            .take_while(|day| day >= first)
            .take(MOST_DAYS)
            .collect();
        days.reverse();
        let n_earlier = known.iter().filter(|day| Some(*day) < days.first()).count() as u64;
        let earlier = format!("({} before; --until, --csv)", counted(n_earlier, "day", "days"));
        let line = |day: Date| Line::Figures {
            name: day.to_string(),
            used: self.by_day.get(&Some(day)).unwrap_or(day_off),
            has_cost: true,
        };
        let earlier = (n_earlier > 0).then_some(Line::Note(earlier));
        earlier.into_iter().chain(days.into_iter().map(line)).collect()
    }
}

/// Leaves the dearest of names, figures and whether they have a cost.
fn dearest(mut named: Vec<(String, &Used, bool)>) -> Vec<Line<'_>> {
    named.sort_by(|(left_name, left, _), (right_name, right, _)| {
        let cost = right.usage.cost_usd.total_cmp(&left.usage.cost_usd);
        cost.then(right.n_tokens().cmp(&left.n_tokens())).then_with(|| left_name.cmp(right_name))
    });
    let n_more = named.len().saturating_sub(MOST_ROWS);
    let more = (n_more > 0).then(|| Line::Note(format!("(and {n_more} more; --json, --csv)")));
    let lines = named.into_iter().take(MOST_ROWS);
    lines.map(|(name, used, has_cost)| Line::Figures { name, used, has_cost }).chain(more).collect()
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn row(session: usize, day: &str, project: &str, model: &str, cost: f64) -> UsageRow {
        UsageRow {
            session,
            day: day.parse().ok(),
            project: project.into(),
            model: Some(Arc::from(model)),
            is_priced: cost > 0.0,
            n_turns: 1,
            n_responses: 2,
            usage: ModelUsage { input_tokens: 100, cost_usd: cost, ..ModelUsage::default() },
        }
    }

    fn report(rows: Vec<UsageRow>) -> Report {
        Report::of(&Statistics { rows, unread: Vec::new() })
    }

    #[test]
    fn a_session_counts_once_under_each_heading() {
        let report = report(vec![
            row(0, "2026-01-01", "/a", "x", 1.0),
            row(0, "2026-01-01", "/a", "y", 2.0),
            row(0, "2026-01-02", "/a", "x", 1.0),
            row(1, "2026-01-02", "/b", "x", 0.5),
        ]);
        let n_sessions = |used: &Used| used.n_sessions;
        assert_eq!((report.all.n_sessions, report.all.n_turns, report.all.n_responses), (2, 4, 8));
        assert_eq!(report.by_model.values().map(n_sessions).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(report.by_project.values().map(n_sessions).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(report.by_day.values().map(n_sessions).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn days_off_are_drawn_and_many_days_are_cut() {
        let few = report(vec![row(0, "2026-01-01", "/a", "x", 1.0), row(0, "2026-01-04", "/a", "x", 1.0)]);
        let empty = Used::default();
        let names = |report: &Report| -> Vec<String> {
            report.days(&empty).iter().map(|line| line.name().to_owned()).collect()
        };
        assert_eq!(names(&few), ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]);
        let many = report(vec![row(0, "2020-01-01", "/a", "x", 1.0), row(0, "2026-01-31", "/a", "x", 1.0)]);
        let names = names(&many);
        assert_eq!((names.len(), names[1].as_str()), (31, "2026-01-02"));
        assert_eq!(names[0], "(1 day before; --until, --csv)");
    }

    #[test]
    fn the_dearest_are_shown_and_the_rest_is_named() {
        let rows = (0..20).map(|n| row(n, "2026-01-01", &format!("/{n}"), "x", n as f64 + 1.0)).collect();
        let report = report(rows);
        let lines = report.projects(Path::new("/home/dev"));
        let names: Vec<&str> = lines.iter().map(Line::name).collect();
        assert_eq!((names[0], names[14], names[15]), ("/19", "/5", "(and 5 more; --json, --csv)"));
    }
}
