//! What sessions have used, by model, project and day: the figures of `loci stats` and of the statistics in the terminal.

mod chart;
mod plots;
mod report;

pub use plots::{PlotBar, UsagePlots, usage_plots};
pub use report::{Cell, Report, Used};

use loci_stdx::{Env, TimeZone};
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{StatisticsQuery, session_statistics};

pub use crate::compose::own_catalog;

/// Returns the figures of all sessions as people read them.
pub fn statistics_text(env: &Env, home: &ConfigHome) -> String {
    let query = StatisticsQuery { models: own_catalog(env), ..StatisticsQuery::new(TimeZone::system()) };
    match session_statistics(home, &query) {
        Ok(statistics) if Report::of(&statistics).is_empty() => "There is nothing to count yet".to_owned(),
        Ok(statistics) => Report::of(&statistics).text(&env.home),
        Err(error) => crate::UserError::from_error(&error).message().to_owned(),
    }
}
