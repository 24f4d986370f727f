//! Sessions that take the place of another: a new one when the user clears the conversation, or one that was chosen.

mod switch;

pub use switch::{OpenedSession, SwitchError, SwitchTarget, open_session};

use std::time::Instant;

use loci_engine::{NewSession, RenewSession};
use loci_llm::Client;
use loci_stdx::Env;

use super::{SessionStart, StartFailure};
use crate::options::RunOptions;
use crate::user_error::UserError;

/// Returns what makes a session that takes another's place: a fresh one, from settings as they are then.
pub fn fresh_sessions(inherited: Env, options: RunOptions, client: Option<Client>) -> RenewSession {
    // Whoever was there when the session began has seen what its files hold.
    let accepts_unknown_settings = options.accepts_unknown_settings || options.is_interactive;
    let options = RunOptions { accepts_unknown_settings, ..options };
    Box::new(move |state| {
        let renew = || -> Result<NewSession, StartFailure> {
            let start = SessionStart::new(inherited.clone(), options.clone(), client.clone(), Instant::now());
            let mut prepared = start.unattended().renewal().prepare()?;
            let config = &mut prepared.composed.config;
            config.rulebook.mode = state.mode;
            config.start_source = "clear";
            config.identity.model_override.clone_from(&state.model);
            config.identity.effort_override.clone_from(&state.effort);
            if state.effort.is_some() {
                config.model.effort.clone_from(&state.effort);
            }
            config.identity.carried.clone_from(&state.totals);
            Ok(prepared.begin().session)
        };
        renew().map_err(|failure| UserError::from(failure).message().to_owned())
    })
}
