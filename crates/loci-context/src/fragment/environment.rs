//! Where the session runs.

use super::Fragment;

/// The machine and the project, as the model should know them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentContext {
    /// The working directory.
    pub cwd: String,
    /// Further directories of the session.
    pub extra_dirs: Vec<String>,
    /// Whether it is a git repository.
    pub is_repository: bool,
    /// `linux`, `macos`, …
    pub platform: String,
    /// The model's id.
    pub model: String,
}

pub(super) fn fragment(surroundings: &EnvironmentContext) -> Fragment {
    let mut lines = vec![
        "# Environment".to_owned(),
        format!("- Working directory: {}", surroundings.cwd),
        format!("- Git repository: {}", if surroundings.is_repository { "yes" } else { "no" }),
        format!("- Platform: {}", surroundings.platform),
        "- Shell of the Bash tool: bash".to_owned(),
        format!("- Model: {}", surroundings.model),
    ];
    if !surroundings.extra_dirs.is_empty() {
        lines.insert(2, format!("- Also part of this session: {}", surroundings.extra_dirs.join(", ")));
    }
    Fragment { name: "environment", text: lines.join("\n") }
}
