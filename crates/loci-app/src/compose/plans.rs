//! Where plans are made: `plansDirectory` of the settings, else `plans/` of the config home.

use std::path::{Component, Path, PathBuf};

use loci_engine::PlanConfig;
use loci_settings::Settings;
use loci_stdx::Env;
use loci_storage::layout::{ConfigHome, SessionTmp};
use loci_storage::project::find_repository;
use loci_tools::real_path;

use crate::options::RunOptions;

/// Says how a session plans, and what the user should know about it.
pub(crate) fn plan_config(
    env: &Env,
    home: &ConfigHome,
    options: &RunOptions,
    settings: &Settings,
    tmp: &SessionTmp,
) -> (PlanConfig, Option<String>) {
    let instructions = options.initialize.as_ref().and_then(|it| it.plan_mode_instructions.clone());
    if !options.is_persistent {
        // Such a session leaves nothing behind.
        let dir = tmp.tool_results_dir().with_file_name("plans");
        return (PlanConfig { dir, instructions }, None);
    }
    let usual = home.root().join("plans");
    let chosen = settings.plans_directory.as_deref().filter(|dir| !dir.trim().is_empty());
    let (dir, warning) = match chosen.map(|chosen| (chosen, inside_project(env, chosen))) {
        None => (usual, None),
        Some((_, Some(dir))) => (dir, None),
        Some((chosen, None)) => {
            let text = format!(
                "plansDirectory: `{chosen}` leads out of the project; plans are kept in `{}`",
                usual.display()
            );
            (usual, Some(text))
        }
    };
    (PlanConfig { dir, instructions }, warning)
}

/// Returns a directory of the project; none when the path leads out of it, by steps or by a link.
fn inside_project(env: &Env, chosen: &str) -> Option<PathBuf> {
    let root = find_repository(&env.cwd).map_or_else(|| env.cwd.clone(), |repository| repository.root);
    let chosen = Path::new(chosen);
    let relative = chosen.strip_prefix(&root).unwrap_or(chosen);
    let is_below = relative.components().all(|it| matches!(it, Component::Normal(_) | Component::CurDir));
    let dir = root.join(relative);
    (is_below && real_path(&dir).starts_with(&root)).then_some(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_directory_stays_in_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/", root.join("out")).unwrap();
        let env = Env::for_test("/h", &root);
        for (chosen, expected) in [
            ("./plans", Some(root.join("plans"))),
            ("docs/plans", Some(root.join("docs/plans"))),
            ("../plans", None),
            ("/elsewhere", None),
            ("out/plans", None),
        ] {
            assert_eq!(inside_project(&env, chosen), expected, "{chosen}");
        }
    }
}
