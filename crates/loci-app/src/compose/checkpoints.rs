//! Whether and where what files held is kept: settings, variables, flags.

use loci_core::file_history::Snapshot;
use loci_engine::FileHistoryStores;
use loci_settings::Settings;
use loci_stdx::Env;
use loci_storage::history::{FileHistory, TreeHistory};
use loci_storage::layout::{ConfigHome, SessionPlace};

use crate::options::RunOptions;

/// Makes the file history of a session, where it is wanted; `known` are the session's snapshots so far.
pub fn file_history(
    env: &Env,
    home: &ConfigHome,
    options: &RunOptions,
    settings: &Settings,
    place: &SessionPlace,
    known: Vec<Snapshot>,
) -> Option<FileHistoryStores> {
    is_on(env, options, settings).then(|| FileHistoryStores {
        shared: FileHistory::new(home, place.id(), &env.cwd, known),
        tree: TreeHistory::new(home, place.id(), &env.cwd, env),
    })
}

/// Tells whether file history is on. Runs without a terminal must ask for it, by flag or by variable; a setting or a
/// variable that says no wins, and a session that is not saved has nothing to bring back.
pub fn is_on(env: &Env, options: &RunOptions, settings: &Settings) -> bool {
    let is_asked_for =
        options.keeps_checkpoints || env.vars.is_truthy("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING");
    let is_forbidden = settings.file_checkpointing_enabled == Some(false)
        || env.vars.is_truthy("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING");
    is_asked_for && !is_forbidden && options.is_persistent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_need_opt_in_and_any_opt_out_wins() {
        let enable = ("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
        let disable = ("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "1");
        let usual = RunOptions::default();
        let asking = RunOptions { keeps_checkpoints: true, ..usual.clone() };
        let unsaved = RunOptions { is_persistent: false, ..usual.clone() };
        for (vars, options, setting, expected) in [
            (&[][..], &usual, None, false),
            (&[], &usual, Some(true), false),
            (&[enable], &usual, None, true),
            (&[], &asking, None, true),
            (&[enable], &usual, Some(false), false),
            (&[enable, disable], &usual, Some(true), false),
            (&[disable], &asking, None, false),
            (&[enable], &unsaved, None, false),
        ] {
            let mut env = Env::for_test("/home", "/p");
            env.vars = vars.iter().copied().collect();
            let settings = Settings { file_checkpointing_enabled: setting, ..Settings::default() };
            assert_eq!(is_on(&env, options, &settings), expected, "{vars:?} {setting:?}");
        }
    }
}
