//! `git` subcommands that only read. Global flags are never known, so `git -c …` and `git -C …` are not here.
//!
//! Revisions and paths look alike: every word that is no flag is reported as a read, and so is the part behind a
//! colon (`HEAD:secrets/key`). Whether the repository's own configuration makes git run programs (S-23) cannot be
//! told from the command line; whoever has a disk must look.

use crate::read_only::{Parsed, parse};
use crate::table::{Operands, Spec};

/// Returns the paths a git command would read when it changes nothing.
pub(crate) fn reads_of(arguments: &[&str]) -> Option<Vec<String>> {
    let (subcommand, arguments) = arguments.split_first()?;
    let spec = SUBCOMMANDS.iter().find(|spec| spec.name == *subcommand)?;
    let parsed = parse(spec, arguments)?;
    if spec.name == "branch" && !is_branch_list(&parsed, arguments) {
        return None;
    }
    let mut reads = vec![".".to_owned()];
    let values = arguments.iter().filter(|word| !word.starts_with('-'));
    for word in values.chain(parsed.operands.iter().filter(|word| word.starts_with('-'))) {
        reads.push((*word).to_owned());
        reads.extend(word.split_once(':').map(|(_, path)| path.to_owned()));
    }
    Some(reads)
}

/// An operand names a new branch, unless `--list` makes it a pattern or it is the commit that one of the
/// filters takes.
fn is_branch_list(parsed: &Parsed<'_>, arguments: &[&str]) -> bool {
    const WITH_COMMIT: &[&str] = &["--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
    let n_commits = arguments
        .windows(2)
        .filter(|pair| WITH_COMMIT.contains(&pair[0]) && !pair[1].starts_with('-'))
        .count();
    parsed.has(&["list"]) || parsed.operands.len() <= n_commits
}

const fn subcommand(name: &'static str, short: &'static str, long: &'static [&'static str]) -> Spec {
    Spec { name, short, long, operands: Operands::Paths, takes_number: false }
}

/// Flags of `log` and `show`, those of `diff` among them. `-O`, `--output`, `--ext-diff`, `--textconv` and
/// `--no-index` are left out.
#[rustfmt::skip]
const LOG_LONG: &[&str] = &[
    "oneline", "patch", "no-patch", "stat?", "shortstat", "numstat", "dirstat?", "summary", "name-only", "name-status",
    "graph", "decorate?", "no-decorate", "all", "branches?", "tags?", "remotes?", "author:", "committer:", "grep:",
    "since:", "until:", "after:", "before:", "max-count:", "skip:", "format?", "pretty?", "abbrev-commit",
    "no-abbrev-commit", "abbrev?", "merges", "no-merges", "first-parent", "reverse", "date:", "relative-date",
    "follow", "regexp-ignore-case", "extended-regexp", "fixed-strings", "all-match", "invert-grep", "no-color",
    "color?", "cached", "staged", "merge-base", "unified:", "ignore-all-space", "ignore-space-change",
    "ignore-blank-lines", "ignore-space-at-eol", "word-diff?", "color-words?", "diff-filter:", "find-renames?",
    "find-copies?", "no-renames", "raw", "check", "exit-code", "quiet", "minimal", "histogram", "patience",
    "function-context", "full-index", "binary", "no-ext-diff", "no-textconv", "name-rev", "left-right", "cherry-pick",
    "topo-order", "date-order", "author-date-order", "no-prefix", "compact-summary", "no-notes", "source",
];
const LOG_SHORT: &str = "pusn:S:G:U:L:iEFwbzRqM?C?D";

#[rustfmt::skip]
const SUBCOMMANDS: &[Spec] = &[
    subcommand("blame", "L:ltsewnfpbM?C?c", &["porcelain", "line-porcelain", "date:", "abbrev:", "show-email",
        "show-name", "show-number", "root", "first-parent"]),
    subcommand("branch", "arvl", &["all", "remotes", "verbose", "list", "show-current", "contains?", "no-contains?",
        "merged?", "no-merged?", "points-at?", "sort:", "format:", "color?", "no-color", "column?", "no-column",
        "ignore-case", "abbrev?", "no-abbrev"]),
    Spec { takes_number: true, ..subcommand("diff", LOG_SHORT, LOG_LONG) },
    Spec { takes_number: true, ..subcommand("log", LOG_SHORT, LOG_LONG) },
    subcommand("ls-files", "cdmoiskuztvx:", &["cached", "deleted", "modified", "others", "ignored", "stage",
        "killed", "unmerged", "exclude:", "exclude-standard", "full-name", "error-unmatch", "directory", "eol",
        "abbrev?", "deduplicate"]),
    subcommand("rev-parse", "q", &["abbrev-ref?", "show-toplevel", "git-dir", "absolute-git-dir", "git-common-dir",
        "is-inside-work-tree", "is-inside-git-dir", "is-bare-repository", "short?", "verify", "quiet", "symbolic",
        "symbolic-full-name", "show-prefix", "show-cdup", "all", "branches?", "tags?", "remotes?"]),
    Spec { takes_number: true, ..subcommand("show", LOG_SHORT, LOG_LONG) },
    subcommand("status", "sbu?vz", &["short", "branch", "show-stash", "porcelain?", "long", "verbose",
        "untracked-files?", "ignored?", "ahead-behind", "no-ahead-behind", "renames", "no-renames", "column?",
        "no-column"]),
];
