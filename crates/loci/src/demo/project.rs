//! The scratch project: a small shell library with a bug, and a test that shows it.

use std::fs;
use std::path::PathBuf;

use loci_app::UserError;
use loci_stdx::Env;

/// The command that runs the tests.
pub(super) const TEST_COMMAND: &str = "bash test.sh";
/// The permission rule for it.
pub(super) const TEST_RULE: &str = "Bash(bash test.sh)";

const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("project/README.md")),
    ("CLAUDE.md", include_str!("project/CLAUDE.md")),
    ("lib/duration.sh", include_str!("project/duration.sh")),
    ("test.sh", include_str!("project/test.sh")),
];

/// Makes the project in a fresh temporary directory and returns its real path.
pub(super) fn create(env: &Env) -> Result<PathBuf, UserError> {
    let base = PathBuf::from(env.vars.non_empty("TMPDIR").unwrap_or("/tmp"));
    let dir = base.join(format!("loci-demo-{}", env.random.alphanumeric(8)));
    let failed = |error: std::io::Error| {
        UserError::new(format!("Failed to make the demo project: `{}`: {error}", dir.display()))
            .hint("Set TMPDIR to a directory you can write to.")
    };
    for (name, text) in FILES {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&dir)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
    }
    dir.canonicalize().map_err(failed)
}
