//! What is told of hooks that run.

use std::borrow::Cow;

use loci_core::hooks::{BlockEffect, HandlerEnd, HookAnswer, HookEvent};
use serde::{Deserialize, Serialize};

/// A hook that is being run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRunStarted {
    /// The run's id.
    pub id: String,
    /// The event, and what its matcher is compared with.
    pub name: String,
    /// The event.
    pub event: HookEvent,
    /// What people are shown while it runs, where it says so.
    pub status: Option<String>,
}

/// A hook that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRunEnded {
    /// Which.
    pub run: HookRunStarted,
    /// What it printed, or answered.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
    /// Its code, where it is a command.
    pub exit_code: Option<i32>,
    /// `success`, `error` or `cancelled`.
    pub outcome: Cow<'static, str>,
    /// What it objected to, where the user would not see it otherwise: the model alone is told, or nobody. What goes wrong
    /// is an [`Event::Warning`](super::Event::Warning), and what a hook refuses says so where it does not happen.
    pub objection: Option<String>,
    /// What it wants the user to be told, or what went wrong with it, where there is such a thing.
    pub message: Option<String>,
    /// Whether it wants everything to stop.
    pub is_stop: bool,
}

/// A hook that still runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRunProgress {
    /// Which.
    pub run: HookRunStarted,
    /// What it has printed so far.
    pub stdout: String,
    /// What it has complained about so far.
    pub stderr: String,
}

impl HookRunProgress {
    /// Tells what a run has printed so far.
    pub fn new(run: HookRunStarted, stdout: &str, stderr: &str) -> Self {
        Self { run, stdout: cut_output(stdout), stderr: cut_output(stderr) }
    }
}

/// How much of an output of a hook front ends are told.
const HOOK_OUTPUT_LIMIT: usize = 10_000;

fn cut_output(text: &str) -> String {
    text.chars().take(HOOK_OUTPUT_LIMIT).collect()
}

impl HookRunEnded {
    /// Tells how a run ended.
    pub fn new(run: HookRunStarted, end: &HandlerEnd, answer: &HookAnswer) -> Self {
        let cut = cut_output;
        let (stdout, stderr, exit_code) = match end {
            HandlerEnd::Exited { code, stdout, stderr } => (cut(stdout), cut(stderr), Some(*code)),
            HandlerEnd::Responded { body, .. } => (cut(body), String::new(), None),
            HandlerEnd::Replied(value) => (cut(&value.to_string()), String::new(), None),
            HandlerEnd::Judged { reason, .. } => (cut(reason), String::new(), None),
            HandlerEnd::Failed(why) => (String::new(), cut(why), None),
            HandlerEnd::TimedOut { .. } | HandlerEnd::Cancelled => (String::new(), String::new(), None),
        };
        let outcome = match end {
            HandlerEnd::Cancelled | HandlerEnd::TimedOut { .. } => "cancelled",
            HandlerEnd::Exited { code, .. } if *code != 0 => "error",
            _ if answer.error.is_some() => "error",
            _ => "success",
        };
        let objection = answer.block.as_ref().filter(|_| is_unseen(run.event)).map(|why| cut(why));
        let message = answer.error.as_ref().or(answer.message.as_ref()).map(|text| cut(text));
        let is_stop = answer.stop.is_some();
        Self { run, stdout, stderr, exit_code, outcome: outcome.into(), objection, message, is_stop }
    }
}

/// Tells whether an objection to an event is seen nowhere else. One to a text on its way to the screen would stand between
/// its lines.
fn is_unseen(event: HookEvent) -> bool {
    match event.facts().block {
        BlockEffect::GoesOn | BlockEffect::ToldModel => true,
        BlockEffect::Ignored => event != HookEvent::MessageDisplay,
        BlockEffect::Refuses | BlockEffect::EndsTurn | BlockEffect::ToldUser => false,
    }
}
