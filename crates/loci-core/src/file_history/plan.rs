//! The plan of a rewind: from what was recorded since a point to what must be done, before anything is done.
//!
//! The records since the point say what each path was before (the **target**) and what they left there (what is
//! **expected**). A path that is what is expected goes back to its target. One that is something else was changed by
//! someone else since; one whose records do not join was changed by someone else in between. Both are conflicts, and
//! only the user's word overrides them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::state::{HistoryLine, PathChange, PathState, PathText};

/// A path that a rewind is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The path.
    pub path: PathBuf,
    /// What it was at the point.
    pub target: PathState,
    /// What the session left there.
    pub expected: PathState,
    /// Whether someone else changed it between two changes of the session.
    pub is_mixed: bool,
    /// The project of its first change.
    pub root: PathBuf,
}

/// Why a path is not simply brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// It is not what the session left there.
    ChangedSince,
    /// Someone else changed it between two changes of the session.
    ChangedBetween,
    /// What it held was not kept.
    NotKept,
    /// A link stands where a directory was.
    LinkInTheWay,
    /// It has other names, which would not be changed with it.
    HasOtherNames,
}

impl Conflict {
    /// Says it to people.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ChangedSince => "changed since by someone else",
            Self::ChangedBetween => "changed in between by someone else",
            Self::NotKept => "what it held was not kept",
            Self::LinkInTheWay => "a symlink or something else stands in its way",
            Self::HasOtherNames => "has other hard links",
        }
    }

    /// Returns true when the user may insist.
    pub fn can_be_overridden(self) -> bool {
        match self {
            Self::ChangedSince | Self::ChangedBetween | Self::HasOtherNames => true,
            Self::NotKept | Self::LinkInTheWay => false,
        }
    }
}

/// Folds records into one wish for each path, in the order of paths. `is_same` compares states whose contents are
/// kept in different places.
pub fn wanted(
    lines: &[HistoryLine],
    mut is_same: impl FnMut(&Path, &PathState, &PathState) -> bool,
) -> Vec<Wanted> {
    let mut paths: BTreeMap<PathText, Wanted> = BTreeMap::new();
    for (root, change) in changes(lines) {
        match paths.get_mut(&change.path) {
            Some(known) => {
                known.is_mixed |= !is_same(root, &known.expected, &change.before);
                known.expected = change.after.clone();
            }
            None => {
                let wanted = Wanted {
                    path: change.path.as_path().to_owned(),
                    target: change.before.clone(),
                    expected: change.after.clone(),
                    is_mixed: false,
                    root: root.to_owned(),
                };
                paths.insert(change.path.clone(), wanted);
            }
        }
    }
    paths.into_values().filter(|it| it.is_mixed || it.target != it.expected).collect()
}

/// Returns every change of some lines with its project.
pub fn changes(lines: &[HistoryLine]) -> impl Iterator<Item = (&Path, &PathChange)> {
    let sets = lines.iter().filter_map(|line| match line {
        HistoryLine::Change(set) => Some(set),
        HistoryLine::Point { .. } => None,
    });
    sets.flat_map(|set| set.changes.iter().map(|change| (set.root.as_path(), change)))
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RewindStep {
    /// The path.
    pub path: PathText,
    /// What lies there now.
    pub from: PathState,
    /// What will.
    pub to: PathState,
    /// The project.
    pub root: PathText,
}

/// Puts steps in an order in which each can be done: what goes, deepest first; then directories, from the top; then
/// everything else.
pub fn in_order(mut steps: Vec<RewindStep>) -> Vec<RewindStep> {
    let depth = |step: &RewindStep| step.path.as_path().components().count();
    let rank = |step: &RewindStep| match &step.to {
        PathState::None => (0, usize::MAX - depth(step)),
        PathState::Dir { .. } => (1, depth(step)),
        PathState::File { .. } | PathState::Link { .. } | PathState::Other => (2, 0),
    };
    steps.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.path.cmp(&b.path)));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_history::{ChangeSet, FileContent};

    fn file(n: u8) -> PathState {
        PathState::File { content: FileContent::Blob([n; 32]), mode: 0o644, size: 1 }
    }

    fn state(name: &str) -> PathState {
        match name {
            "-" => PathState::None,
            "d" => PathState::Dir { mode: 0o755 },
            digit => file(digit.parse().unwrap()),
        }
    }

    /// Lines such as `p1` (a point) and `a:1>2` (a change).
    fn lines(text: &str) -> Vec<HistoryLine> {
        let line = |word: &str| match word.split_once(':') {
            None => HistoryLine::Point { prompt: word.into(), at: String::new() },
            Some((path, change)) => {
                let (before, after) = change.split_once('>').unwrap();
                let change = PathChange {
                    path: PathBuf::from("/p").join(path).into(),
                    before: state(before),
                    after: state(after),
                    from: None,
                };
                HistoryLine::Change(Box::new(ChangeSet {
                    prompt: None,
                    call: None,
                    by: "Bash".to_owned(),
                    at: String::new(),
                    root: PathBuf::from("/p").into(),
                    changes: vec![change],
                }))
            }
        };
        text.split(' ').map(line).collect()
    }

    /// The lines behind a point.
    fn since<'a>(lines: &'a [HistoryLine], prompt: &str) -> &'a [HistoryLine] {
        let is_point = |line: &HistoryLine| matches!(line, HistoryLine::Point { prompt: point, .. } if point.as_str() == prompt);
        let at = lines.iter().position(is_point).unwrap();
        &lines[at + 1..]
    }

    /// Says what is wanted at a point: `path target<expected`, and `!` where someone else was at work.
    fn check(text: &str, point: &str, expected: &str) {
        let lines = lines(text);
        let since = since(&lines, point);
        let show = |state: &PathState| match state {
            PathState::None => "-".to_owned(),
            PathState::File { content: FileContent::Blob(digest), .. } => digest[0].to_string(),
            other => format!("{other:?}"),
        };
        let told: Vec<String> = wanted(since, |_, a, b| a == b)
            .iter()
            .map(|it| {
                let name = it.path.file_name().unwrap().to_string_lossy();
                let mark = if it.is_mixed { "!" } else { "" };
                format!("{name} {}<{}{mark}", show(&it.target), show(&it.expected))
            })
            .collect();
        assert_eq!(told.join(", "), expected, "{text} at {point}");
    }

    #[test]
    fn rewind_point_restores_first_before_and_expects_last_after() {
        check("p1 a:->1 p2 a:1>2 b:->3", "p1", "a -<2, b -<3");
        check("p1 a:->1 p2 a:1>2 b:->3", "p2", "a 1<2, b -<3");
        check("p1 a:->1 p2", "p2", "");
        check("p1 a:1>2 a:2>1", "p1", "");
    }

    #[test]
    fn foreign_change_between_is_a_conflict() {
        check("p1 a:1>2 a:7>3", "p1", "a 1<3!");
        check("p1 a:1>2 a:7>1", "p1", "a 1<1!");
    }

    #[test]
    fn rewind_lines_count_as_changes() {
        check("p1 a:->1 p2 a:1>2 a:2>-", "p2", "a 1<-");
        check("p1 a:->1 p2 a:1>2 a:2>-", "p1", "");
    }

    #[test]
    fn steps_can_be_done_in_their_order() {
        let step = |path: &str, to: &str| RewindStep {
            path: PathBuf::from(path).into(),
            from: PathState::None,
            to: state(to),
            root: PathBuf::from("/p").into(),
        };
        let steps = [
            step("/p/a/b/c", "1"),
            step("/p/x", "-"),
            step("/p/a/b", "d"),
            step("/p/x/y", "-"),
            step("/p/a", "d"),
        ];
        let ordered = in_order(steps.to_vec());
        let paths: Vec<&str> = ordered.iter().map(|step| step.path.as_path().to_str().unwrap()).collect();
        assert_eq!(paths, ["/p/x/y", "/p/x", "/p/a", "/p/a/b", "/p/a/b/c"]);
    }
}
