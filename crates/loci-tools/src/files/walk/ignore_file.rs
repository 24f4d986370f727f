//! Ignore files that are no files: a FIFO or a device named `.gitignore` would be opened and waited for.

use std::io::Read;
use std::path::Path;

use loci_stdx::open_regular;

/// The name that the walk adds to those the library knows.
pub(super) const CUSTOM: &str = ".rgignore";

const NAMES: [&str; 4] = [".gitignore", ".ignore", CUSTOM, ".git/info/exclude"];

/// How much of a file is read that should hold one path.
const PATH_BYTES: u64 = 4096;

/// Tells whether reading the ignore files of a directory could wait for ever, or never end.
pub(super) fn would_block(dir: &Path) -> bool {
    NAMES.iter().any(|name| is_special(&dir.join(name))) || has_special_link(dir)
}

/// Tells the same of a directory and those above it, whose ignore files count in it.
pub(super) fn would_block_above(dir: &Path) -> bool {
    dir.ancestors().any(would_block)
}

/// Tells whether something is there that is neither a file nor a directory; a symlink is what it leads to.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Follows the `.git` file of a worktree to the files that are read there. The library takes a relative path as one from
/// the process's own directory, so both are looked at.
fn has_special_link(dir: &Path) -> bool {
    let link = dir.join(".git");
    if !link.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let Some(line) = first_line(&link) else { return false };
    let Some(git_dir) = line.strip_prefix("gitdir: ").map(Path::new) else { return false };
    [dir.join(git_dir), git_dir.to_path_buf()].iter().any(|git_dir| {
        let common = git_dir.join("commondir");
        let is_special_exclude = |common: String| is_special(&git_dir.join(common).join("info/exclude"));
        is_special(&common) || first_line(&common).is_some_and(is_special_exclude)
    })
}

fn first_line(file: &Path) -> Option<String> {
    let mut text = String::new();
    open_regular(file).ok()?.take(PATH_BYTES).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned)
}
