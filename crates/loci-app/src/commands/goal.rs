//! `/goal [condition|clear]`: how far the goal of the session is, and taking it away. The engine sets one itself, since that
//! begins a turn.

use loci_engine::{CLEAR_WORDS, Goal, GoalEnd, LocalEffect, LocalOutcome, SessionSnapshot, goal_refusal};
use loci_stdx::counted;

use super::format_duration;

/// Carries the command out.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    match argument {
        "" => LocalOutcome::text(to_markdown(session)),
        word if CLEAR_WORDS.contains(&word) => LocalOutcome::default().with(LocalEffect::ClearGoal),
        _ => LocalOutcome::error(goal_refusal(&session.settings).unwrap_or("No goal can be set here")),
    }
}

fn to_markdown(session: &SessionSnapshot) -> String {
    let Some(Goal { condition, since, n_checks, reason, end }) = &session.goal else {
        return "No goal set. `/goal CONDITION` sets one: loci works until it holds\n".to_owned();
    };
    let state = match end {
        None => "worked towards",
        Some(GoalEnd::Reached) => "reached",
        Some(GoalEnd::Impossible) => "given up: it cannot be met",
    };
    let mut text = format!("## Goal ({state})\n\n> {}\n\n", condition.replace('\n', "\n> "));
    if end.is_none() {
        text.push_str(&format!("- Running for {}\n", format_duration(session.now.saturating_sub(*since))));
    }
    text.push_str(&format!("- Checked {}\n", counted(u64::from(*n_checks), "time", "times")));
    if let Some(reason) = reason {
        text.push_str(&format!("- Last said: {reason}\n"));
    }
    if end.is_none() {
        text.push_str("\n`/goal clear` takes it away.\n");
    }
    text
}
