//! Sessions of other programs: reading rollouts of Codex and importing them.
//!
//! `rollout` finds and reads them and never writes there; `import` makes a session of ours from one, which names its
//! origin.

mod import;
pub(crate) mod rollout;

pub use import::{
    ImportError, ImportId, ImportOptions, ImportedSession, import_rollout, import_rollout_observed,
};
pub use rollout::{RolloutError, find_rollout, load_rollout, rollout_text};
