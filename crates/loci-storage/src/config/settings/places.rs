//! Where settings files lie for one working directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loci_stdx::Env;

use super::GivenSettings;
use super::trust::{self, Checkout};
use crate::layout::ConfigHome;

/// Where an administrator puts settings for everybody on a machine.
#[cfg(not(target_os = "macos"))]
pub const MANAGED_DIR: &str = "/etc/claude-code";
/// Where an administrator puts settings for everybody on a machine.
#[cfg(target_os = "macos")]
pub const MANAGED_DIR: &str = "/Library/Application Support/ClaudeCode";

/// Which of the user's and the project's files are read; the administrator's always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsSources {
    /// The user's own.
    pub user: bool,
    /// The project's.
    pub project: bool,
    /// The user's for this project.
    pub local: bool,
}

impl SettingsSources {
    /// Everything there is.
    pub const ALL: Self = Self { user: true, project: true, local: true };
    /// Nothing but what the administrator says.
    pub const NONE: Self = Self { user: false, project: false, local: false };

    /// Reads a list as `--setting-sources` has it; unknown names are an error.
    pub fn parse(list: &str) -> Result<Self, String> {
        let mut sources = Self::NONE;
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "user" => sources.user = true,
                "project" => sources.project = true,
                "local" => sources.local = true,
                other => return Err(other.to_owned()),
            }
        }
        Ok(sources)
    }
}

/// The places of all settings files that bear on a working directory.
#[derive(Debug, Clone)]
pub struct SettingsPlaces {
    /// The user's file.
    pub user: PathBuf,
    /// The project's shared file.
    pub project: PathBuf,
    /// The user's file for the project, the one that is written to.
    pub local: PathBuf,
    /// One that may have been left in the start directory, which is still read.
    pub left_local: Option<PathBuf>,
    /// The administrator's directory.
    pub managed_dir: PathBuf,
    /// The global state file, which knows what the user trusts.
    pub state_file: PathBuf,
    /// What is read.
    pub sources: SettingsSources,
    /// What the administrator's program printed; it takes the place of the administrator's files.
    pub policy: Option<GivenSettings>,
    pub(super) cwd: PathBuf,
    pub(super) home_dir: PathBuf,
    pub(super) checkout: Option<Checkout>,
}

impl SettingsPlaces {
    /// Finds the places for the working directory of `env`.
    pub fn new(env: &Env, home: &ConfigHome, managed_dir: &Path, sources: SettingsSources) -> Self {
        let checkout = trust::checkout_of(&env.cwd);
        let here = env.cwd.join(".claude").join("settings.local.json");
        let root = checkout.as_ref().map(|checkout| checkout.main.as_path());
        let at_root = root.filter(|root| *root != env.home && is_ours_throughout(root));
        let local = at_root.map(|root| root.join(".claude").join("settings.local.json"));
        let local = local.unwrap_or_else(|| here.clone());
        Self {
            user: home.user_settings(),
            project: env.cwd.join(".claude").join("settings.json"),
            left_local: (local != here).then_some(here),
            local,
            managed_dir: managed_dir.to_owned(),
            state_file: home.state_file().to_owned(),
            sources,
            policy: None,
            cwd: env.cwd.clone(),
            home_dir: env.home.clone(),
            checkout,
        }
    }

    /// Returns the root of the working tree around the working directory, or that directory itself.
    pub fn tree_root(&self) -> &Path {
        self.checkout.as_ref().map_or(&self.cwd, |checkout| &checkout.tree)
    }

    /// Returns the root of the main checkout, where the working directory is in one of its worktrees.
    pub fn main_checkout(&self) -> Option<&Path> {
        self.checkout.as_ref().filter(|checkout| checkout.main != checkout.tree).map(|it| it.main.as_path())
    }

    /// Returns the local files, lowest precedence first.
    pub fn locals(&self) -> impl Iterator<Item = &Path> {
        self.left_local.iter().chain([&self.local]).map(PathBuf::as_path)
    }

    /// Returns the administrator's files, lowest precedence first.
    pub fn managed_files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.managed_dir.join("managed-settings.json")];
        let Ok(entries) = fs::read_dir(self.drop_in_dir()) else { return files };
        let is_wanted = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".json") && !name.starts_with('.')
        };
        let mut drop_ins: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_wanted).collect();
        drop_ins.sort();
        files.extend(drop_ins);
        files
    }

    pub(super) fn drop_in_dir(&self) -> PathBuf {
        self.managed_dir.join("managed-settings.d")
    }

    /// Returns a path as people know it, with `~` for the home directory.
    pub fn display_path(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home_dir) {
            Ok(rest) if !self.home_dir.as_os_str().is_empty() => format!("~/{}", rest.display()),
            _ => path.display().to_string(),
        }
    }

    /// Tells whether a local file may have come with the repository: git tracks it, a link leads to it, or it
    /// belongs to somebody else. When that cannot be told, it may.
    pub(super) fn is_supplied(&self, path: &Path) -> bool {
        let dir = path.parent().unwrap_or(path);
        if !is_ours(dir) || !is_ours(path) {
            return true;
        }
        self.checkout.as_ref().is_some_and(|checkout| checkout.tracks(path))
    }
}

fn is_ours_throughout(root: &Path) -> bool {
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    [root.to_owned(), root.join(".git"), root.join(".claude")]
        .iter()
        .all(|path| !exists(path) || owner_is_us(path))
}

fn owner_is_us(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Tells whether something is ours and no link.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_symlink()) && owner_is_us(path)
}
