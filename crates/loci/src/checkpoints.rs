//! Whether and where what files held is kept: settings, variables, flags.

use loci_core::file_history::Snapshot;
use loci_core::settings::Settings;
use loci_engine::FileKeeping;
use loci_stdx::Env;
use loci_storage::{ConfigHome, FileHistory, SessionPlace, TreeHistory};

use crate::args::Args;

/// Makes the file history of a session, where it is wanted; `known` are the session's snapshots so far.
pub(crate) fn file_history(
    env: &Env,
    home: &ConfigHome,
    args: &Args,
    settings: &Settings,
    place: &SessionPlace,
    known: Vec<Snapshot>,
) -> Option<FileKeeping> {
    is_on(env, args, settings).then(|| FileKeeping {
        shared: FileHistory::new(home, place.id(), &env.cwd, known),
        tree: TreeHistory::new(home, place.id(), &env.cwd, env),
    })
}

/// Tells whether file history is on. Runs without a terminal must ask for it, by flag or by variable; a setting or a
/// variable that says no wins, and a session that is not saved has nothing to bring back.
pub(crate) fn is_on(env: &Env, args: &Args, settings: &Settings) -> bool {
    let is_asked_for =
        args.checkpoint_files || env.vars.is_truthy("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING");
    let is_forbidden = settings.file_checkpointing_enabled == Some(false)
        || env.vars.is_truthy("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING");
    is_asked_for && !is_forbidden && !args.no_session_persistence
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn it_must_be_asked_for_and_any_no_wins() {
        let enable = ("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
        let disable = ("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "1");
        for (vars, flags, setting, expected) in [
            (&[][..], "-p", None, false),
            (&[], "-p", Some(true), false),
            (&[enable], "-p", None, true),
            (&[], "-p --checkpoint-files", None, true),
            (&[enable], "-p", Some(false), false),
            (&[enable, disable], "-p", Some(true), false),
            (&[disable], "-p --checkpoint-files", None, false),
            (&[enable], "-p --no-session-persistence", None, false),
        ] {
            let mut env = Env::for_test("/home", "/p");
            env.vars = vars.iter().copied().collect();
            let args = Args::try_parse_from(std::iter::once("loci").chain(flags.split(' '))).unwrap();
            let settings = Settings { file_checkpointing_enabled: setting, ..Settings::default() };
            assert_eq!(is_on(&env, &args, &settings), expected, "{vars:?} {flags} {setting:?}");
        }
    }
}
