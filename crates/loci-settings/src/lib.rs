//! Settings as values: one table of keys, parsing that loses nothing readable, merging, explaining, editing.
//!
//! A settings file is text until [`Layer::parse`] makes a layer of it, with a [`Diagnostic`] for everything that
//! could not be used. [`merge`] joins layers by the rules of each [`Key`] and keeps every file's part, so that
//! a value can be explained. [`Settings`] is the typed view of what this version acts upon. [`edit`] changes one
//! key of a text and leaves every other byte alone. Finding and reading files is somebody else's work.
//!
//! What must stay true:
//! 1. A bad value costs that value only; a file that is not JSON gives what can still be read in it.
//! 2. A rule under `permissions.deny` or `permissions.ask` whose text is intact is never lost.
//! 3. What comes from a repository that is not trusted restricts, or does no harm, or does not count.
//! 4. Keys that are not known are kept where they are.

mod degrade;
mod diagnostic;
pub mod edit;
mod gate;
pub mod jsonc;
mod key;
mod layer;
mod merge;
mod recover;
mod schema;
pub mod variables;
mod view;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

pub use diagnostic::{Diagnostic, Severity};
pub use gate::Refusal;
pub use key::{Closed, Key, Kind, Merge, Scopes, Trust};
pub use layer::{Layer, UnknownKey};
pub use merge::{MergedSettings, Part, Role, Setting, merge};
pub use schema::json_schema;
pub use view::{
    AutoMemorySettings, CompactionSteps, LoosenedSetting, McpSettings, NetworkSettings, PermissionSettings,
    ProviderLimits, SandboxSettings, SessionMemorySettings, Settings, Sourced, TeamMemorySettings,
    WorktreeSettings,
};

/// Whose settings they are, lowest precedence first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The user's, for all projects.
    User,
    /// The project's, shared by all who work on it.
    Project,
    /// The user's for this project.
    Local,
    /// Given with `--settings`.
    CommandLine,
    /// The administrator's.
    Managed,
}

impl Scope {
    /// All scopes, lowest precedence first.
    pub const ALL: [Self; 5] = [Self::User, Self::Project, Self::Local, Self::CommandLine, Self::Managed];
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::CommandLine => "command line",
            Self::Managed => "managed",
        })
    }
}

/// Where a layer came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Whose it is.
    pub scope: Scope,
    /// The file as it is shown to people.
    pub name: Arc<str>,
    /// Whether the repository may have supplied it: the shared file does, and so does a local file that is
    /// tracked by git or reached through a link.
    pub is_from_repository: bool,
    /// Whether it is the global state file, which has keys of its own ([`Scopes::Global`]) and, in older homes, some that
    /// are settings now.
    pub is_state_file: bool,
}

impl Origin {
    /// Names a layer; what belongs to a project is taken to come from its repository.
    pub fn new(scope: Scope, name: impl Into<Arc<str>>) -> Self {
        Self { scope, name: name.into(), is_from_repository: scope == Scope::Project, is_state_file: false }
    }

    /// Names the values of the user's global state file.
    pub fn state_file(name: impl Into<Arc<str>>) -> Self {
        Self { is_state_file: true, ..Self::new(Scope::User, name) }
    }

    /// Marks the layer as one the repository supplies.
    pub fn from_repository(self) -> Self {
        Self { is_from_repository: true, ..self }
    }

    /// Returns the scope that decides what the layer may set.
    pub(crate) fn acting_scope(&self) -> Scope {
        match self.scope {
            Scope::Local if self.is_from_repository => Scope::Project,
            scope => scope,
        }
    }
}
