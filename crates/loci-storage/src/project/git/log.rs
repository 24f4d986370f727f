//! The last commits of a branch, newest first, as `git log --oneline` lists them, without starting git.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::path::Path;

use loci_stdx::read_regular_to_string;

use super::objects::{ObjectId, ObjectStore};

/// The most commits that are read for a list.
const MOST_READ: usize = 1_000;

/// A commit that is yet to be listed: the newest comes first, and of two from one second the one that was met first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    time: i64,
    met: Reverse<usize>,
    commit: Commit,
}

/// What a list needs of a commit.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    id: ObjectId,
    parents: Vec<ObjectId>,
    time: i64,
    subject: String,
}

/// Lists the last `n_commits` from `head` back; nothing, when git had better be asked.
pub(super) fn last_commits(
    store: &ObjectStore,
    common: &Path,
    head: ObjectId,
    n_commits: usize,
) -> Option<String> {
    let cut = shallow(common)?;
    let read = |id: ObjectId| {
        let mut commit = Commit::parse(id, &store.commit(id)?)?;
        if cut.contains(&id) {
            commit.parents.clear();
        }
        Some(commit)
    };
    let (mut waiting, mut met) = (BinaryHeap::new(), HashSet::from([head]));
    let first = read(head)?;
    waiting.push(Waiting { time: first.time, met: Reverse(0), commit: first });
    let mut lines = String::new();
    for n_listed in 1..=n_commits {
        let Some(Waiting { commit, .. }) = waiting.pop() else { break };
        lines += &format!("{} {}\n", store.abbreviate(commit.id)?, commit.subject);
        if n_listed == n_commits {
            break;
        }
        for parent in commit.parents {
            if met.insert(parent) {
                let commit = read(parent)?;
                waiting.push(Waiting { time: commit.time, met: Reverse(met.len()), commit });
            }
        }
        if met.len() > MOST_READ {
            return None;
        }
    }
    Some(lines)
}

/// Returns the commits behind which a shallow clone has none.
fn shallow(common: &Path) -> Option<HashSet<ObjectId>> {
    let path = common.join("shallow");
    if std::fs::symlink_metadata(&path).is_err() {
        return Some(HashSet::new());
    }
    read_regular_to_string(path).ok()?.lines().map(ObjectId::parse).collect()
}

impl Commit {
    /// Reads a commit; nothing for one in another encoding.
    fn parse(id: ObjectId, bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (head, message) = text.split_once("\n\n")?;
        let (mut parents, mut time) = (Vec::new(), None);
        for line in head.lines() {
            match line.split_once(' ') {
                Some(("parent", id)) => parents.push(ObjectId::parse(id)?),
                Some(("committer", who)) => time = who.rsplit(' ').nth(1)?.parse().ok(),
                Some(("encoding", _)) => return None,
                _ => {}
            }
        }
        let paragraph = message.trim_start_matches('\n').lines().take_while(|line| !line.trim().is_empty());
        let subject = paragraph.map(str::trim_end).collect::<Vec<_>>().join(" ");
        Some(Self { id, parents, time: time?, subject })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_is_the_first_paragraph_on_one_line() {
        let id = ObjectId::parse(&"ab".repeat(20)).unwrap();
        let head = "tree 1\nparent 0123456789012345678901234567890123456789\nauthor a <a@b> 1 +0000\n\
                    committer Some One <s@o> 1700000000 +0100\ngpgsig -----BEGIN\n line\n";
        for (message, expected) in [("one\n", "one"), ("\n\n one \ntwo\n\nthree\n", " one two"), ("", "")] {
            let commit = Commit::parse(id, format!("{head}\n{message}").as_bytes()).unwrap();
            assert_eq!(
                (commit.subject.as_str(), commit.time, commit.parents.len()),
                (expected, 1_700_000_000, 1)
            );
        }
        assert!(Commit::parse(id, format!("{head}encoding latin1\n\nx").as_bytes()).is_none());
    }
}
