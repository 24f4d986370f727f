//! What sessions have used, as plots: by day, by model and by project.

use std::path::Path;

use loci_stdx::{Date, Env, TimeZone};
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{StatisticsQuery, session_statistics};

use super::report::{Report, Used};
use crate::compose::own_catalog;
use crate::reports::display as format;
use crate::user_error::UserError;

/// How many days are drawn.
const MOST_DAYS: usize = 60;
/// How many bars of another kind.
const MOST_BARS: usize = 50;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotBar {
    /// What it stands for.
    pub name: String,
    /// At list price, in US dollars.
    pub cost_usd: f64,
    /// All tokens.
    pub tokens: u64,
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
}

impl PlotBar {
    fn new(name: String, used: &Used) -> Self {
        Self {
            name,
            cost_usd: used.usage.cost_usd,
            tokens: used.n_tokens(),
            sessions: used.n_sessions,
            turns: used.n_turns,
        }
    }
}

/// All plots.
#[derive(Debug, Clone, PartialEq)]
pub struct UsagePlots {
    /// The whole.
    pub all: PlotBar,
    /// Day by day, the oldest first, days off included.
    pub days: Vec<PlotBar>,
    /// The dearest first.
    pub models: Vec<PlotBar>,
    /// The dearest first.
    pub projects: Vec<PlotBar>,
    /// Models without a price.
    pub unpriced: Vec<String>,
}

/// Counts what all sessions have used.
pub fn usage_plots(env: &Env, home: &ConfigHome) -> Result<UsagePlots, UserError> {
    let query = StatisticsQuery { models: own_catalog(env), ..StatisticsQuery::new(TimeZone::system()) };
    let statistics = session_statistics(home, &query).map_err(|error| UserError::from_error(&error))?;
    Ok(UsagePlots::new(&Report::of(&statistics), &env.home))
}

impl UsagePlots {
    fn new(report: &Report, home: &Path) -> Self {
        let model = |(name, used): (&String, &Used)| {
            PlotBar::new(if name.is_empty() { "(no answer)".to_owned() } else { name.clone() }, used)
        };
        let project = |(dir, used): (&String, &Used)| {
            PlotBar::new(if dir.is_empty() { "(unknown)".to_owned() } else { format::path(home, dir) }, used)
        };
        Self {
            all: PlotBar::new("all".to_owned(), &report.all),
            days: days(report),
            models: dearest(report.by_model.iter().map(model).collect()),
            projects: dearest(report.by_project.iter().map(project).collect()),
            unpriced: report.unpriced.iter().cloned().collect(),
        }
    }
}

/// Returns the last days up to the last one with something in it.
fn days(report: &Report) -> Vec<PlotBar> {
    let known: Vec<Date> = report.by_day.keys().flatten().copied().collect();
    let (Some(first), Some(last)) = (known.first(), known.last()) else { return Vec::new() };
    let off = Used::default();
    let mut days: Vec<PlotBar> = std::iter::successors(Some(*last), |day| day.yesterday().ok())
        .take_while(|day| day >= first)
        .take(MOST_DAYS)
        .map(|day| PlotBar::new(day.to_string(), report.by_day.get(&Some(day)).unwrap_or(&off)))
        .collect();
    days.reverse();
    days
}

fn dearest(mut bars: Vec<PlotBar>) -> Vec<PlotBar> {
    bars.sort_by(|left, right| {
        right
            .cost_usd
            .total_cmp(&left.cost_usd)
            .then(right.tokens.cmp(&left.tokens))
            .then(left.name.cmp(&right.name))
    });
    bars.truncate(MOST_BARS);
    bars
}
