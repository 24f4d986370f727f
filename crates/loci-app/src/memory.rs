//! Whether memories are kept, where, and how: settings, variables and flags.

pub mod edit;
pub mod review;

use std::path::Path;

use loci_core::permission::Rulebook;
use loci_settings::Settings;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_storage::memory::{MemoryJournal, MemoryPlace, memory_place};
use loci_tools::real_path;

use crate::compose::background_agents::switch;

/// The memories of a run.
pub struct Memory {
    /// Where they are.
    pub place: MemoryPlace,
    /// The one way to change them.
    pub journal: MemoryJournal,
    /// Whether a person looks at what is found before it counts.
    pub is_reviewed: bool,
}

impl Memory {
    /// Lets the session read memories, and write them unless they are reviewed first.
    pub fn admit(&self, rulebook: &mut Rulebook) {
        let spellings = |dir: &Path| [dir.to_owned(), real_path(dir)];
        let own = spellings(&self.place.dir);
        if !self.is_reviewed {
            rulebook.memory_dirs.extend(own.clone());
        }
        rulebook.read_dirs.extend(own);
        rulebook.read_dirs.extend(spellings(&self.journal.pending_dir()));
    }
}

/// Finds the memories of a run; none where they are switched off. A directory that cannot be used is said, and the run
/// goes on without memories. `root` is that of the main checkout.
pub fn open_memory(
    env: &Env,
    home: &ConfigHome,
    is_bare: bool,
    settings: &Settings,
    root: &Path,
) -> (Option<Memory>, Option<String>) {
    let chosen = &settings.auto_memory;
    // The variable says that they are off, so its opposite forces them on.
    let by_variable = switch(env, "CLAUDE_CODE_DISABLE_AUTO_MEMORY").map(|is_off| !is_off);
    let is_on = !is_bare && by_variable.or(chosen.enabled).unwrap_or(true);
    if !is_on {
        return (None, None);
    }
    match memory_place(env, home, root, chosen.directory.as_deref()) {
        Ok(place) => {
            let journal = MemoryJournal::new(home, &place.dir);
            let is_reviewed = chosen.review.as_deref() == Some("review-first");
            (Some(Memory { place, journal, is_reviewed }), None)
        }
        Err(error) => (None, Some(format!("{error}; see `loci config explain autoMemoryDirectory`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RunOptions;
    use crate::settings::is_bare;
    use loci_settings::AutoMemorySettings;

    #[test]
    fn variable_wins_over_setting_and_bare_wins_over_both() {
        let (on, off) = (Some(true), Some(false));
        for (asks_for_bare, vars, enabled, expected) in [
            (false, &[][..], None, true),
            (false, &[], off, false),
            (false, &[("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")], on, false),
            (false, &[("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "0")], off, true),
            (true, &[("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "0")], on, false),
            (false, &[("CLAUDE_CODE_SIMPLE", "1")], on, false),
        ] {
            let options = RunOptions { is_bare: asks_for_bare, ..RunOptions::default() };
            let mut env = Env::for_test("/home", "/p");
            env.vars = vars.iter().copied().collect();
            let auto_memory = AutoMemorySettings { enabled, ..Default::default() };
            let settings = Settings { auto_memory, ..Settings::default() };
            let home = ConfigHome::from_env(&env);
            let (found, note) = open_memory(&env, &home, is_bare(&env, &options), &settings, Path::new("/p"));
            assert_eq!((found.is_some(), note), (expected, None), "{asks_for_bare} {vars:?} {enabled:?}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_said() {
        let env = Env::for_test("/home", "/p");
        let auto_memory = AutoMemorySettings { directory: Some("/".to_owned()), ..Default::default() };
        let settings = Settings { auto_memory, ..Settings::default() };
        let home = ConfigHome::from_env(&env);
        let (found, note) = open_memory(&env, &home, false, &settings, Path::new("/p"));
        assert!(found.is_none() && note.is_some_and(|note| note.contains("autoMemoryDirectory")));
    }
}
