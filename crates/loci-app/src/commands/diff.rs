//! `/diff`: what the working tree has changed since the last commit, file by file.

use loci_engine::LocalOutcome;
use loci_storage::project::working_changes;

use super::{SessionCommands, cell};

/// The most files that are listed as unknown to git.
const MOST_UNKNOWN: usize = 200;

/// What changed in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path, within the repository.
    pub path: String,
    /// Lines more.
    pub added: usize,
    /// Lines less.
    pub removed: usize,
    /// The lines of the diff, as git writes them; none for a file that git does not know.
    pub lines: Vec<String>,
}

/// Reads what changed; the error says why that cannot be told.
pub fn changed_files(commands: &SessionCommands) -> Result<Vec<ChangedFile>, String> {
    let (diff, unknown) = working_changes(&commands.env.cwd, &commands.env)
        .ok_or_else(|| "This directory is in no git repository, or git does not answer".to_owned())?;
    let mut files = parse_diff(&diff);
    let fresh = unknown.into_iter().take(MOST_UNKNOWN);
    files.extend(fresh.map(|path| ChangedFile { path, added: 0, removed: 0, lines: Vec::new() }));
    Ok(files)
}

/// Splits a unified diff into files.
fn parse_diff(diff: &str) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut is_in_hunk = false;
    for line in diff.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let path = names.rsplit_once(" b/").map_or(names, |(_, path)| path);
            let path = path.trim_end_matches('"').to_owned();
            files.push(ChangedFile { path, added: 0, removed: 0, lines: Vec::new() });
            is_in_hunk = false;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        is_in_hunk |= line.starts_with("@@");
        if !is_in_hunk && !line.starts_with("Binary") {
            continue;
        }
        file.added += usize::from(is_in_hunk && line.starts_with('+'));
        file.removed += usize::from(is_in_hunk && line.starts_with('-'));
        file.lines.push(line.to_owned());
    }
    files
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands) -> LocalOutcome {
    let files = match changed_files(commands) {
        Ok(files) => files,
        Err(why) => return LocalOutcome::error(why),
    };
    if files.is_empty() {
        return LocalOutcome::text("Nothing has changed since the last commit");
    }
    let mut text =
        "## Changes since the last commit\n\n| File | Added | Removed |\n|---|---:|---:|\n".to_owned();
    for file in &files {
        let path = cell(&file.path);
        match file.lines.is_empty() {
            true => text.push_str(&format!("| {path} | new to git | |\n")),
            false => text.push_str(&format!("| {path} | {} | {} |\n", file.added, file.removed)),
        }
    }
    LocalOutcome::text(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_is_split_into_files_with_their_counts() {
        let diff = "diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\n+++ b/a b.txt\n@@ -1,2 +1,2 @@\n one\n\
                    -two\n+2\n++3\ndiff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n";
        let files = parse_diff(diff);
        let found: Vec<_> =
            files.iter().map(|it| (it.path.as_str(), it.added, it.removed, it.lines.len())).collect();
        assert_eq!(found, [("a b.txt", 2, 1, 5), ("x.png", 0, 0, 1)]);
        assert!(parse_diff("").is_empty());
    }
}
