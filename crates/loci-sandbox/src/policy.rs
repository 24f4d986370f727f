//! What a sandboxed command may read, write and reach: a value, made of the session and its settings and of nothing else.
//!
//! A policy knows no disk: it names paths, and the helper looks at them when it applies it ([`crate::plan`]). Writable
//! roots are the session's own directories; nothing that a call says gets in here.

mod protected;
mod secrets;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub(crate) use protected::{absent_git_paths, git_paths, is_bare_name, placeholder_kind};
pub use protected::{protected_paths, steers_tools};
pub(crate) use secrets::is_public;
pub use secrets::secret_paths;

/// What holds a command once it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Which layers hold it.
    pub layers: Layers,
    /// What it may read and write; without rules it may do what the user may.
    pub files: Option<FileRules>,
    /// What it may reach.
    pub network: Network,
    /// Whether it may open Unix sockets.
    pub allows_unix_sockets: bool,
    /// Where the helper is to fail, for tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// What of a sandbox can be made before its program is known: all of a policy but its paths. One that was prepared is used
/// for a policy that asks for just this, and for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Which layers hold the program.
    pub layers: Layers,
    /// Whether there are rules for files.
    pub has_files: bool,
    /// What it may reach.
    pub network: Network,
    /// Whether it may open Unix sockets.
    pub allows_unix_sockets: bool,
    /// Where the helper is to fail, for tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

impl Preparation {
    /// Returns what a policy asks for.
    pub fn of(policy: &Policy) -> Self {
        let Policy { layers, files, network, allows_unix_sockets, fault } = policy;
        Self {
            layers: *layers,
            has_files: files.is_some(),
            network: *network,
            allows_unix_sockets: *allows_unix_sockets,
            fault: *fault,
        }
    }
}

/// The layers of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    /// Namespaces and mounts.
    pub namespaces: Namespaces,
    /// Landlock.
    pub landlock: bool,
    /// The filter of system calls.
    pub seccomp: bool,
}

/// How a command is kept apart from the machine's processes, mounts and network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Namespaces {
    /// Not at all.
    None,
    /// With the `/proc` of the machine, where a container allows no other.
    OldProc,
    /// With a `/proc` of its own.
    Full,
}

impl Layers {
    /// All layers.
    pub const FULL: Self = Self { namespaces: Namespaces::Full, landlock: true, seccomp: true };
    /// What needs no namespaces.
    pub const WEAK: Self = Self { namespaces: Namespaces::None, landlock: true, seccomp: true };

    /// Returns true when mounts hold the command.
    pub fn has_mounts(self) -> bool {
        self.namespaces != Namespaces::None
    }
}

/// What a command may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// Nothing but itself.
    Closed,
    /// What the proxy lets through, on two ports of a loopback of its own.
    Proxy,
}

/// The paths of a policy: absolute, the writable ones without symlinks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRules {
    /// Directories, or files, that may be written.
    pub roots: Vec<PathBuf>,
    /// What stays unwritable inside them, whether it exists or not.
    pub shut: Vec<PathBuf>,
    /// Directories inside what is shut that may be written all the same, where they exist.
    pub reopened: Vec<PathBuf>,
    /// What may not be read.
    pub unreadable: Vec<PathBuf>,
    /// Directories among that which hold private and public files side by side: only the private ones may not be read.
    pub mixed: Vec<PathBuf>,
    /// What may be read inside that all the same.
    pub readable: Vec<PathBuf>,
}

/// What the file rules of a session are made of.
#[derive(Debug, Clone, Default)]
pub struct SessionPlaces {
    /// The directories of the session, symlinks resolved; the first is where it started.
    pub dirs: Vec<PathBuf>,
    /// Its temporary directory, which is the command's `$TMPDIR`.
    pub scratch: PathBuf,
    /// Directories of git that its directories use although they lie elsewhere, as those of a linked worktree do.
    pub git_dirs: Vec<PathBuf>,
    /// The user's home.
    pub home: PathBuf,
    /// Where settings and sessions are kept.
    pub config_home: PathBuf,
}

/// What settings say of paths: all absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSettings {
    /// May be written too.
    pub allow_write: Vec<PathBuf>,
    /// May not be written.
    pub deny_write: Vec<PathBuf>,
    /// May be read all the same.
    pub allow_read: Vec<PathBuf>,
    /// May not be read.
    pub deny_read: Vec<PathBuf>,
    /// Which setting of which file says so, of what is forbidden; for words to people.
    pub sources: Vec<PathSource>,
}

/// Where it is said that a path is forbidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSource {
    /// The path.
    pub path: PathBuf,
    /// Setting, file and line.
    pub text: String,
}

impl PathSettings {
    /// Returns the setting that forbids a path; none where nobody's setting does.
    pub fn source(&self, path: &Path) -> Option<&str> {
        self.sources.iter().find(|it| it.path == path).map(|it| it.text.as_str())
    }
}

impl FileRules {
    /// Makes the rules of a session.
    pub fn new(places: &SessionPlaces, settings: &PathSettings) -> Self {
        let mut roots = places.dirs.clone();
        roots.push(places.scratch.clone());
        roots.extend(places.git_dirs.iter().chain(&settings.allow_write).cloned());
        let is_denied = |root: &Path| settings.deny_write.iter().any(|it| root.starts_with(it));
        roots.retain(|root| *root == places.scratch || !is_denied(root));
        let roots = without_repetitions(roots);
        let mut shut: Vec<PathBuf> = Vec::new();
        let guarded = places.dirs.iter().chain(&settings.allow_write);
        shut.extend(guarded.flat_map(|dir| protected_paths(dir)));
        shut.extend(places.dirs.iter().flat_map(|dir| protected::paths_above(dir)));
        shut.extend(places.git_dirs.iter().flat_map(|dir| git_paths(dir)));
        shut.extend(protected::own_state(&places.config_home, &places.home));
        shut.extend(settings.deny_write.iter().cloned());
        let is_inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let is_scratch = |path: &Path| path.starts_with(&places.scratch);
        shut.retain(|path| is_inside(path) && !is_scratch(path));
        let shut = without_repetitions(shut);
        let reopened = places.dirs.iter().map(|dir| dir.join(".claude/worktrees")).collect();
        let mut unreadable = secret_paths(&places.home, &places.config_home);
        unreadable.extend(settings.deny_read.iter().cloned());
        // The more specific rule wins: what is named to be read is not hidden by an equal or a wider rule.
        unreadable.retain(|path| !settings.allow_read.contains(path));
        let readable =
            settings.allow_read.iter().filter(|path| unreadable.iter().any(|it| path.starts_with(it)));
        let readable = without_repetitions(readable.cloned().collect());
        // What somebody has denied is hidden whole.
        let mut mixed = secrets::mixed_paths(&places.home);
        let is_denied = |path: &Path| settings.deny_read.iter().any(|it| path.starts_with(it));
        mixed.retain(|path| unreadable.contains(path) && !is_denied(path));
        Self { roots, shut, reopened, unreadable: without_repetitions(unreadable), mixed, readable }
    }

    /// Returns the rule that keeps a path from being written; none where it may be.
    pub fn write_refusal(&self, path: &Path) -> Option<WriteRefusal> {
        if let Some(shut) = self.shut.iter().find(|it| path.starts_with(it) || it.starts_with(path)) {
            let is_reopened = self.reopened.iter().any(|it| path.starts_with(it));
            return (!is_reopened).then(|| WriteRefusal::Shut(shut.clone()));
        }
        let is_inside = self.roots.iter().any(|root| path.starts_with(root));
        (!is_inside).then_some(WriteRefusal::Outside)
    }

    /// Returns what hides a path; none where it may be read.
    pub fn read_refusal(&self, path: &Path) -> Option<&Path> {
        let hides = |list: &'_ [PathBuf]| -> Option<usize> {
            list.iter().filter(|it| path.starts_with(it)).map(|it| it.components().count()).max()
        };
        let hidden = hides(&self.unreadable)?;
        let is_shown = hides(&self.readable).is_some_and(|shown| shown > hidden)
            || hides(&self.roots).is_some_and(|shown| shown > hidden);
        let found =
            self.unreadable.iter().find(|it| path.starts_with(it) && it.components().count() == hidden);
        let is_public = |dir: &Path| {
            let name = path.strip_prefix(dir).ok().and_then(|it| it.iter().next());
            name.is_none_or(|name| name.to_str().is_some_and(is_public))
        };
        let may_be_read = |dir: &PathBuf| is_shown || self.mixed.contains(dir) && is_public(dir);
        found.filter(|dir| !may_be_read(dir)).map(PathBuf::as_path)
    }
}

/// Why a path may not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteRefusal {
    /// It lies outside the session's directories.
    Outside,
    /// This stays shut.
    Shut(PathBuf),
}

fn without_repetitions(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths
}

/// A failure that a test asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Where.
    pub at: HelperStep,
    /// How.
    pub kind: FaultKind,
}

/// How the helper is to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// The system refuses.
    Refused,
    /// It is killed.
    Killed,
}

/// The steps of the helper. Those up to the network are made before the program is known; placeholders and grants, outside,
/// beside those inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HelperStep {
    /// The rules of Landlock are begun.
    Ruleset,
    /// The first process of the namespaces is started.
    Init,
    /// The user is mapped.
    UserMap,
    /// Namespaces are entered.
    Namespaces,
    /// `/dev` is made.
    Devices,
    /// `/proc` is made.
    Proc,
    /// The loopback comes up and the proxy's ports are opened.
    Network,
    /// Placeholders are made for names that are missing.
    Placeholders,
    /// What Landlock gives of the machine's files is added to its rules.
    Grants,
    /// The machine's mounts become read-only.
    ReadOnly,
    /// Paths are hidden, opened and shut.
    Paths,
    /// Capabilities are dropped.
    Capabilities,
    /// Limits are set.
    Limits,
    /// Landlock holds.
    Landlock,
    /// The filter of system calls holds.
    Seccomp,
    /// The program is started.
    Exec,
}

impl HelperStep {
    /// All of them, in order.
    pub const ALL: [Self; 16] = [
        Self::Ruleset,
        Self::Init,
        Self::UserMap,
        Self::Namespaces,
        Self::Devices,
        Self::Proc,
        Self::Network,
        Self::Placeholders,
        Self::Grants,
        Self::ReadOnly,
        Self::Paths,
        Self::Capabilities,
        Self::Limits,
        Self::Landlock,
        Self::Seccomp,
        Self::Exec,
    ];

    /// Says what is attempted.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ruleset => "beginning the rules of Landlock",
            Self::Placeholders => "making placeholders for missing names",
            Self::Grants => "adding to the rules of Landlock",
            Self::Namespaces => "entering namespaces",
            Self::UserMap => "mapping the user",
            Self::Init => "entering namespaces of users and processes",
            Self::ReadOnly => "making mounts read-only",
            Self::Devices => "making /dev",
            Self::Proc => "making /proc",
            Self::Paths => "opening and shutting paths",
            Self::Network => "making the network",
            Self::Capabilities => "dropping capabilities",
            Self::Limits => "setting limits",
            Self::Landlock => "applying Landlock",
            Self::Seccomp => "filtering system calls",
            Self::Exec => "starting the program",
        }
    }
}

#[cfg(test)]
mod tests;
