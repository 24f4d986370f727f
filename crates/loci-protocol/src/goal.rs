//! A goal: a condition that a session works towards until it holds, and how far it is.

use std::time::Duration;

use loci_core::serde_form::millis;
use serde::{Deserialize, Serialize};

/// A goal, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// What is to hold.
    pub condition: String,
    /// When it was set, on the clock's monotonic scale.
    #[serde(rename = "since_ms", with = "millis")]
    pub since: Duration,
    /// How often it was looked at.
    pub n_checks: u32,
    /// What was said of it last.
    pub reason: Option<String>,
    /// How it ended; none while it is worked towards.
    pub end: Option<GoalEnd>,
}

/// How a goal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalEnd {
    /// It holds.
    Reached,
    /// It never can.
    Impossible,
}

/// What is said of a goal before a turn ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalVerdict {
    /// It holds.
    Reached,
    /// Not yet: the work goes on.
    NotYet,
    /// It never can.
    Impossible,
    /// Nothing happened for a while: the person has the word, the goal stays.
    Stalled,
    /// It could not be found out: the turn ends, the goal stays.
    Unknown,
}
