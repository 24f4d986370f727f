//! References of a repository, read from their files.

use std::path::Path;

use loci_stdx::read_regular_to_string;

use super::objects::ObjectId;

/// How a repository keeps its references: a file each, or together in `packed-refs`.
pub(super) struct Refs<'a> {
    common: &'a Path,
    packed: String,
}

impl<'a> Refs<'a> {
    /// Reads what is packed; nothing for a repository with another kind of store.
    pub(super) fn open(common: &'a Path) -> Option<Self> {
        if std::fs::symlink_metadata(common.join("reftable")).is_ok() {
            return None;
        }
        let packed = read_regular_to_string(common.join("packed-refs")).unwrap_or_default();
        Some(Self { common, packed })
    }

    /// Returns the commit that a reference stands for.
    pub(super) fn target(&self, name: &str) -> Option<ObjectId> {
        let text = self.file(name).or_else(|| self.packed(name))?;
        ObjectId::parse(text.trim_end())
    }

    /// Tells whether there is no such reference, of whatever kind.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.file(name).is_none() && self.packed(name).is_none()
    }

    /// Tells whether there is a branch of that name.
    fn has_branch(&self, name: &str) -> bool {
        self.target(&format!("refs/heads/{name}")).is_some()
    }

    /// Returns the main branch: where the remote's `HEAD` points, else `main`, else `master`.
    pub(super) fn main_branch(&self) -> Option<String> {
        let remote = self.file("refs/remotes/origin/HEAD").and_then(|text| {
            let name = text.trim_end().strip_prefix("ref:")?.trim().to_owned();
            // A branch that is gone says nothing.
            self.target(&name)?;
            name.strip_prefix("refs/remotes/origin/").map(str::to_owned)
        });
        remote
            .or_else(|| ["main", "master"].into_iter().find(|name| self.has_branch(name)).map(str::to_owned))
    }

    fn file(&self, name: &str) -> Option<String> {
        // A name leads nowhere else.
        let is_plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
        is_plain.then(|| read_regular_to_string(self.common.join(name)).ok()).flatten()
    }

    fn packed(&self, name: &str) -> Option<String> {
        self.packed.lines().find_map(|line| {
            let (id, packed) = line.split_once(' ')?;
            (packed == name).then(|| id.to_owned())
        })
    }
}
