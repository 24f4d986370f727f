//! Node packages of a plugin: what its lockfile names is fetched into its copy, so that its hooks and servers find them.
//!
//! Nothing of the plugin or of its packages is run meanwhile: no scripts, and no package manager that a file of the plugin
//! could have run something else. A plugin is installed whether or not its packages are; why they are not is said.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use loci_stdx::{CommandFailure, CommandLimits, Env, read_regular_to_string, run_bounded};
use serde_json::Value;

use crate::compose::child_env::child_env;

/// How long a package manager has, and how much of its output is read.
const LIMITS: CommandLimits = CommandLimits { patience: Duration::from_secs(60), output: 64 * 1024 };
/// Lockfiles, the first of which counts, and how their packages are fetched.
const LOCKFILES: [(&str, &[&str]); 4] =
    [("bun.lock", BUN), ("bun.lockb", BUN), ("npm-shrinkwrap.json", NPM), ("package-lock.json", NPM)];
const BUN: &[&str] = &["bun", "install", "--frozen-lockfile", "--ignore-scripts"];
const NPM: &[&str] = &["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"];
/// Lockfiles of programs that a plugin could have run something while they fetch.
const UNUSED: [&str; 2] = ["yarn.lock", "pnpm-lock.yaml"];
/// Files that tell a package manager what to run.
const CONFIGURATION: [&str; 2] = [".npmrc", "bunfig.toml"];

/// Fetches the packages of a plugin into its directory; returns what to say.
pub(super) fn fetch_packages(env: &Env, dir: &Path) -> Option<String> {
    let manifest = read_regular_to_string(dir.join("package.json")).ok()?;
    let is_file = |name: &str| dir.join(name).symlink_metadata().is_ok_and(|it| it.is_file());
    let Some((lockfile, words)) = LOCKFILES.into_iter().find(|(name, _)| is_file(name)) else {
        return unlocked(&manifest, UNUSED.into_iter().find(|name| is_file(name)));
    };
    let refusal = CONFIGURATION.iter().find(|name| dir.join(name).symlink_metadata().is_ok());
    let why = match refusal {
        Some(file) => Err(format!("its `{file}` could have them run something")),
        None if names_repository(&dir.join(lockfile)) => {
            Err(format!("its `{lockfile}` names repositories, which could have git run something"))
        }
        None => fetch(env, dir, words),
    };
    Some(match why {
        Ok(()) => format!("Its Node packages were fetched ({})\n", words.join(" ")),
        Err(why) => format!("! its Node packages were not fetched: {why}\n"),
    })
}

/// Says that nobody fetches packages that are not locked, or not in a way that can be used.
fn unlocked(manifest: &str, lockfile: Option<&str>) -> Option<String> {
    let manifest: Value = serde_json::from_str(manifest).ok()?;
    let has_packages =
        manifest.get("dependencies").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
    let why = match lockfile {
        Some(name) => format!("`{name}` is not used, for what it names could be run"),
        None => "it has no lockfile".to_owned(),
    };
    has_packages.then(|| format!("! its Node packages were not fetched: {why}\n"))
}

fn names_repository(lockfile: &Path) -> bool {
    match std::fs::read(lockfile) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            ["git+", "git://", "git@", "github:", "gitlab:", "bitbucket:"].iter().any(|it| text.contains(it))
        }
        Err(_) => true,
    }
}

fn fetch(env: &Env, dir: &Path, words: &[&str]) -> Result<(), String> {
    let (program, args) = words.split_first().ok_or("there is no program for it")?;
    let mut command = Command::new(program);
    command.args(args).current_dir(dir).env_clear().envs(child_env(env));
    match run_bounded(command, &[], LIMITS) {
        Ok(output) if output.status.is_some_and(|it| it.success()) => Ok(()),
        Ok(_) => Err(format!("`{}` failed; run it in {} to see why", words.join(" "), dir.display())),
        Err(CommandFailure::NotFound) => Err(format!("there is no `{program}`")),
        Err(CommandFailure::TimedOut) => Err(format!("`{program}` took longer than a minute")),
        Err(CommandFailure::Start(error)) => Err(format!("`{program}` cannot be run: {error}")),
        Err(CommandFailure::Read) => Err(format!("what `{program}` says cannot be read")),
    }
}
