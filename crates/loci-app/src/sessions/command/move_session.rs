//! `/cd`: the session moves to another directory, with all that was said in it.
//!
//! Where it may go is found out while it runs ([`move_target`]); its files move once it has ended ([`move_session`]), and it
//! goes on there with the settings, instructions and trust of that directory.

use std::path::{Path, PathBuf};

use loci_core::path::expand_home;
use loci_core::permission::MoveRefusal;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{relocate_session, resolve_session};

use super::CommandContext;
use crate::compose::Permissions;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// Returns the directory that the session would move to, symlinks resolved; the error says why it may not.
pub fn move_target(ctx: &CommandContext, typed: &str) -> Result<PathBuf, UserError> {
    let typed = typed.trim().trim_matches(['"', '\'']);
    let path = ctx.env.cwd.join(expand_home(&ctx.env.home, typed));
    let failed = |why: String| {
        UserError::new(format!("The session cannot move to `{}`: {why}", path.display()))
            .hint("Say `/cd` with the path of a directory, `~` and relative ones included.")
    };
    let real = path.canonicalize().map_err(|error| failed(error.to_string()))?;
    if !real.is_dir() {
        return Err(failed("it is no directory".to_owned()));
    }
    if real == ctx.env.cwd {
        return Err(failed("it is there already".to_owned()));
    }
    let run = RunSettings::load(&ctx.inherited, &ctx.options)?;
    let rules =
        Permissions::new(&run.env, &ctx.options.permissions, &run.settings.permissions, None)?.rulebook;
    match rules.why_no_move(&path, &real) {
        None => Ok(real),
        Some(MoveRefusal::Denied(rule)) => Err(failed(format!("the rule {rule} forbids it"))),
        Some(MoveRefusal::NotListed) => {
            Err(failed("no `Cd(…)` rule that allows names it, and some name others".to_owned()))
        }
    }
}

/// Moves the files of a session that has ended to those of the directory that `env` is in.
pub fn move_session(env: &Env, from: &Path, session: &str) -> Result<(), UserError> {
    let home = ConfigHome::from_env(env);
    let failed = |error: &dyn std::error::Error| {
        UserError::from_error(error).hint(format!("`loci -r {session}` goes on with it where it was."))
    };
    let place = resolve_session(&home, from, session).map_err(|error| failed(&error))?;
    relocate_session(&home, &place, &env.cwd, env.clock.now()).map(drop).map_err(|error| failed(&error))
}
