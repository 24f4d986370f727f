//! Which build this is, as `build.rs` found it.

use serde_json::{Value, json};

/// The commit, empty where it is not known.
const COMMIT: &str = env!("LOCI_COMMIT");
/// The profile it was built with.
const PROFILE: &str = env!("LOCI_PROFILE");
/// The machine it was built for.
const TARGET: &str = env!("LOCI_TARGET");

/// Names the build in a line.
pub(crate) fn describe() -> String {
    let commit = if COMMIT.is_empty() { "commit unknown" } else { COMMIT };
    format!("{commit}, {PROFILE}, {TARGET}")
}

/// Names the build for programs.
pub(crate) fn to_json() -> Value {
    let commit = (!COMMIT.is_empty()).then_some(COMMIT);
    json!({"version": env!("CARGO_PKG_VERSION"), "commit": commit, "profile": PROFILE, "target": TARGET})
}
