//! `/usage`, also `/cost` and `/stats`: what the session has used so far, work beside the conversation included.

use std::time::Duration;

use loci_core::model::is_price_unknown;
use loci_core::session::{ChangedLines, Totals};
use loci_core::usage::ModelUsage;
use loci_engine::{LocalOutcome, SessionSnapshot};

use super::{cell, format_duration};

/// What a session has used.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageReport {
    /// At list price, in US dollars.
    pub cost_usd: f64,
    /// Waiting for the API.
    pub api: Duration,
    /// Since the process started.
    pub wall: Duration,
    /// Lines of files that changed.
    pub lines: ChangedLines,
    /// By model, the dearest first.
    pub models: Vec<(String, ModelUsage)>,
}

impl UsageReport {
    /// Makes the report of a session.
    pub fn new(totals: &Totals, wall: Duration) -> Self {
        let mut models: Vec<_> =
            totals.by_model.iter().map(|(model, usage)| (model.clone(), usage.clone())).collect();
        models.sort_by(|(_, left), (_, right)| right.cost_usd.total_cmp(&left.cost_usd));
        Self { cost_usd: totals.cost_usd(), api: totals.api, wall, lines: totals.lines, models }
    }

    /// Returns what one model cost, for people.
    pub fn price(model: &str, usage: &ModelUsage) -> String {
        match is_price_unknown(model, usage) {
            true => "price unknown".to_owned(),
            false => format!("${:.4}", usage.cost_usd),
        }
    }

    /// Returns it for people.
    pub fn to_markdown(&self) -> String {
        let ChangedLines { added, removed } = self.lines;
        let mut text = format!(
            "## Usage\n\n- Total cost: ${:.4} at list price\n- Duration: {} waiting for the API, {} in all\n\
             - Lines changed: {added} added, {removed} removed\n",
            self.cost_usd,
            format_duration(self.api),
            format_duration(self.wall)
        );
        if self.models.is_empty() {
            text.push_str("\nNothing was asked of a model yet.\n");
            return text;
        }
        text.push_str("\n| Model | Input | Output | Cache read | Cache write | Cost |\n|---|---:|---:|---:|---:|---:|\n");
        for (model, usage) in &self.models {
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                cell(model),
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens,
                Self::price(model, usage),
            ));
        }
        text.push_str("\nAgents, summaries and other work beside the conversation are included. `loci stats` counts all sessions.\n");
        text
    }
}

/// Carries the command out.
pub(super) fn run(session: &SessionSnapshot) -> LocalOutcome {
    LocalOutcome::text(UsageReport::new(&session.totals, session.wall).to_markdown())
}
