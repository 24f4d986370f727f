//! Where memories lie: a variable's word, a setting's, or beside the sessions of the main checkout.

use std::path::{Path, PathBuf};

use loci_core::path::{expand_home, normalise};
use loci_core::permission::is_protected;
use loci_stdx::Env;

use crate::layout::ConfigHome;

/// The variable that comes before everything.
const OVERRIDE: &str = "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE";

/// Where memories lie, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryPlace {
    /// The directory, absolute; it need not exist.
    pub dir: PathBuf,
    /// Who says so.
    pub source: MemorySource,
}

/// Who says where memories lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemorySource {
    /// A variable.
    Variable,
    /// A setting.
    Setting,
    /// Nobody: they lie with the project.
    Project,
}

/// Why a directory is not used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MemoryPlaceError {
    /// It is not absolute.
    #[error("Not an absolute path, so no memories are kept there: `{0}`")]
    Relative(String),
    /// Files there would do more than remember.
    #[error("Memories cannot be kept there, because tools write them unasked: `{}`", .0.display())]
    TooMuch(PathBuf),
}

/// Finds the directory. `root` is the main checkout's, or the project's outside a repository, so that worktrees and
/// subdirectories share it; `setting` counted already, a repository's own only when it is trusted.
pub fn memory_place(
    env: &Env,
    home: &ConfigHome,
    root: &Path,
    setting: Option<&str>,
) -> Result<MemoryPlace, MemoryPlaceError> {
    let (named, source) = match (env.vars.non_empty(OVERRIDE), setting) {
        (Some(dir), _) => (dir, MemorySource::Variable),
        (None, Some(dir)) => (dir, MemorySource::Setting),
        (None, None) => {
            let dir = home.project_dir(root).join("memory");
            return Ok(MemoryPlace { dir, source: MemorySource::Project });
        }
    };
    let path = expand_home(&env.home, named.trim());
    if !path.is_absolute() {
        return Err(MemoryPlaceError::Relative(named.to_owned()));
    }
    let dir = normalise(Path::new("/"), &path);
    // By both spellings: a link must not lead where a plain path may not.
    let real = dir.canonicalize().unwrap_or_else(|_| dir.clone());
    let is_fit = is_fit(env, home, &dir) && is_fit(env, home, &real);
    match is_fit {
        true => Ok(MemoryPlace { dir, source }),
        false => Err(MemoryPlaceError::TooMuch(dir)),
    }
}

/// Tools write here unasked, so it must not be a place whose files steer anything, nor hold one.
fn is_fit(env: &Env, home: &ConfigHome, dir: &Path) -> bool {
    let holds = |inner: &Path| inner.starts_with(dir);
    let is_among_sessions = dir.starts_with(home.projects_dir()) && dir.ends_with("memory");
    let is_in_home = dir.starts_with(home.root());
    !holds(&env.home)
        && !holds(&env.cwd)
        && !holds(home.root())
        && (is_among_sessions || (!is_in_home && !is_protected(&dir.join("memory.md"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        vars: &[(&str, &str)],
        setting: Option<&str>,
    ) -> Result<(String, MemorySource), MemoryPlaceError> {
        let mut env = Env::for_test("/home/dev", "/home/dev/p/sub");
        env.vars = vars.iter().copied().collect();
        let home = ConfigHome::from_env(&env);
        let place = memory_place(&env, &home, Path::new("/home/dev/p"), setting)?;
        Ok((place.dir.display().to_string(), place.source))
    }

    /// Invariant 4 of `docs/design/memory.md`.
    #[test]
    fn memory_dir_comes_from_variable_then_setting_then_main_checkout() {
        let usual = "/home/dev/.claude/projects/-home-dev-p/memory";
        let given = [(OVERRIDE, "/data/mem")];
        for (vars, setting, dir, source) in [
            (&[][..], None, usual, MemorySource::Project),
            (&[], Some("~/notes/mem"), "/home/dev/notes/mem", MemorySource::Setting),
            (&given, Some("~/notes/mem"), "/data/mem", MemorySource::Variable),
            (&[(OVERRIDE, "")], None, usual, MemorySource::Project),
            (&[], Some(usual), usual, MemorySource::Setting),
        ] {
            assert_eq!(find(vars, setting), Ok((dir.to_owned(), source)), "{vars:?} {setting:?}");
        }
    }

    /// Invariant 4 of `docs/design/memory.md`.
    #[test]
    fn memory_dir_may_not_be_a_directory_that_steers_tools() {
        assert_eq!(find(&[], Some("notes")), Err(MemoryPlaceError::Relative("notes".to_owned())));
        for dir in [
            "/",
            "/home",
            "~/",
            "/home/dev",
            "/home/dev/p",
            "/home/dev/p/sub",
            "/home/dev/p/sub/../../p",
            "~/.claude",
            "~/.claude/rules",
            "~/.claude/projects",
            "~/.claude/projects/-x",
            "/home/dev/p/.git/hooks",
            "/home/dev/q/.claude/agents",
        ] {
            assert!(matches!(find(&[], Some(dir)), Err(MemoryPlaceError::TooMuch(_))), "{dir}");
        }
    }
}
