//! A session that somebody chose while another runs: resumed, at an earlier message or at its end, or as a branch.

use std::time::Instant;

use loci_core::permission::Mode;
use loci_core::session::Totals;
use loci_engine::NewSession;

use crate::options::{RunOptions, SessionOptions, SessionSource};
use crate::sessions::command::{CommandContext, RewindRequest, rewind_conversation};
use crate::start::{SessionStart, StartFailure, StartedSession};
use crate::user_error::UserError;

/// Which session is to take the place of the one at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SwitchTarget {
    /// Its id, title or file.
    pub session: String,
    /// The message it goes on from, where that is not the last.
    pub at: Option<String>,
    /// Whether a copy of it goes on.
    pub is_fork: bool,
    /// What to call it.
    pub title: Option<String>,
    /// Whether it is taken from another process that is using it.
    pub takes_over: bool,
    /// What goes back before it goes on; only for the session at hand, once it has ended.
    pub rewind: Option<RewindRequest>,
}

/// A session that can be switched to, and what the front end should know about it.
pub struct OpenedSession {
    /// The session.
    pub session: NewSession,
    /// The model that will be asked.
    pub model: String,
    /// The mode it begins in.
    pub mode: Mode,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What was done on the way.
    pub notes: Vec<String>,
}

/// Why a session cannot be switched to.
#[derive(Debug)]
pub enum SwitchError {
    /// Another process uses it, and what is known of that.
    InUse(String),
    /// Anything else.
    Failed(UserError),
}

impl From<UserError> for SwitchError {
    fn from(error: UserError) -> Self {
        Self::Failed(error)
    }
}

/// Makes a session ready that is to take the place of the one at hand; `totals` is what the process has used so far.
pub fn open_session(
    ctx: &CommandContext,
    target: &SwitchTarget,
    totals: &Totals,
) -> Result<OpenedSession, SwitchError> {
    let notes = match &target.rewind {
        Some(request) => rewind_conversation(ctx, request)?,
        None => Vec::new(),
    };
    let options = RunOptions {
        session: SessionOptions {
            source: SessionSource::Named(target.session.clone()),
            is_fork: target.is_fork,
            at: target.at.clone(),
            drops_turn: None,
            id: None,
            title: target.title.clone(),
            takes_over: target.takes_over,
        },
        ..ctx.options.clone()
    };
    let start = SessionStart::new(ctx.inherited.clone(), options, ctx.client.clone(), Instant::now());
    let mut prepared = start.unattended().here().prepare().map_err(|failure| match failure {
        StartFailure::Past { holder: Some(holder), .. } => SwitchError::InUse(holder),
        failure => SwitchError::Failed(failure.into()),
    })?;
    prepared.composed.config.identity.carried.clone_from(totals);
    let StartedSession { mut session, models, mode, warnings, .. } = prepared.begin();
    if target.is_fork {
        // Somebody asked for a copy: it is there, and can be gone back in, before anything is said in it.
        session.session.keep_fork();
    }
    Ok(OpenedSession { session, model: models.into_iter().next().unwrap_or_default(), mode, warnings, notes })
}
