//! `git` subcommands that only read. Global flags are never known, so `git -c …` and `git -C …` are not here.
//!
//! Revisions and paths look alike: every word that is no flag is reported as a read, and so is the part behind a
//! colon (`HEAD:secrets/key`). Whether the repository's own configuration makes git run programs (S-23) cannot be
//! told from the command line; whoever has a disk must look.

use crate::read_only::{Parsed, parse, with_wildcards};
use crate::table::{Operands, Spec};
use crate::value::Value;

/// Returns the paths a git command would read when it changes nothing.
pub(crate) fn reads_of(arguments: &[&str]) -> Option<Vec<String>> {
    let (subcommand, arguments) = arguments.split_first()?;
    let (spec, arguments) = find_spec(subcommand, arguments)?;
    let parsed = parse(spec, arguments)?;
    let n_operands = parsed.operands.len();
    let lists = parsed.has(&["list", "l"]);
    let is_read = match spec.name {
        "branch" => is_branch_list(&parsed, arguments),
        "tag" => lists || n_operands == 0,
        "remote" | "worktree list" => n_operands == 0,
        "remote get-url" => n_operands == 1,
        "config --get" | "config get" => n_operands == 1,
        "reflog" => n_operands == 0 || parsed.operands[0] == "show",
        _ => true,
    };
    if !is_read || arguments.iter().any(|word| checks_signature(word)) {
        return None;
    }
    let mut reads = vec![".".to_owned()];
    let values = arguments.iter().filter(|word| !word.starts_with('-'));
    for word in values.chain(parsed.operands.iter().filter(|word| word.starts_with('-'))) {
        reads.push((*word).to_owned());
        reads.extend(behind_colons(word).map(str::to_owned));
    }
    // The pattern of `grep` is none of paths, nor are those of branches.
    let takes_paths =
        matches!(spec.name, "blame" | "diff" | "grep" | "log" | "ls-files" | "rev-list" | "show" | "status");
    let pathspecs = parsed.operands.iter().skip(usize::from(spec.name == "grep")).filter(|_| takes_paths);
    reads.extend(pathspecs.filter_map(|word| pathspec(word)).map(with_wildcards));
    Some(reads)
}

/// Returns what stands behind each colon: `HEAD:path`, `:0:path`.
pub(crate) fn behind_colons(word: &str) -> impl Iterator<Item = &str> {
    word.match_indices(':').map(|(at, _)| &word[at + 1..]).filter(|path| !path.is_empty())
}

/// Returns what a pathspec names if it is more than a path: git expands it by itself, in quotes too, and there are magic
/// words before it.
pub(crate) fn pathspec(word: &str) -> Option<&str> {
    let behind_magic = match word.strip_prefix(":(") {
        Some(rest) => rest.split_once(')').map(|(_, path)| path),
        None => word.strip_prefix(":/"),
    };
    behind_magic.or_else(|| word.contains(['*', '?', '[']).then_some(word))
}

/// A format that tells of signatures has another program check them.
fn checks_signature(word: &str) -> bool {
    word.contains("%G") || word.contains("%(signature")
}

/// Finds a subcommand, or one of two words.
fn find_spec<'a, 'w>(word: &str, arguments: &'a [&'w str]) -> Option<(&'static Spec, &'a [&'w str])> {
    let two = arguments.first().map(|second| format!("{word} {second}"));
    let spec = SUBCOMMANDS.iter().find(|spec| Some(spec.name) == two.as_deref());
    match spec {
        Some(spec) => Some((spec, &arguments[1..])),
        None => SUBCOMMANDS.iter().find(|spec| spec.name == word).map(|spec| (spec, arguments)),
    }
}

/// Returns how many words behind `git` are global options.
pub(crate) fn sensitive_words(values: &[Value]) -> usize {
    const WITH_VALUE: &[&str] = &[
        "-c",
        "-C",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--exec-path",
        "--config-env",
        "--super-prefix",
    ];
    let mut n = 0;
    while let Some(value) = values.get(n + 1).filter(|value| value.text.starts_with('-')) {
        n += if WITH_VALUE.contains(&value.text.as_str()) { 2 } else { 1 };
    }
    n
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
    subcommand("cat-file", "tpse", &[]),
    subcommand("config --get", "z", &["local", "global", "show-origin", "null", "type:"]),
    subcommand("config get", "z", &["local", "global", "show-origin", "null", "type:", "all"]),
    subcommand("describe", "", &["all", "tags", "contains", "abbrev?", "candidates:", "exact-match", "long", "match:",
        "exclude:", "always", "dirty?", "first-parent"]),
    Spec { takes_number: true, ..subcommand("diff", LOG_SHORT, LOG_LONG) },
    subcommand("for-each-ref", "", &["count:", "sort:", "format:", "points-at:", "merged?", "no-merged?", "contains?",
        "no-contains?", "ignore-case", "color?", "exclude:"]),
    subcommand("grep", "iIwvhHlLFEGPcnqe:A:B:C:W", &["cached", "untracked", "ignore-case", "word-regexp", "invert-match",
        "line-number", "column", "files-with-matches", "name-only", "files-without-match", "count", "fixed-strings",
        "extended-regexp", "basic-regexp", "perl-regexp", "break", "heading", "show-function", "function-context",
        "only-matching", "color?", "no-color", "and", "or", "not", "all-match", "quiet", "max-depth:", "text"]),
    Spec { takes_number: true, ..subcommand("log", LOG_SHORT, LOG_LONG) },
    subcommand("ls-files", "cdmoiskuztvx:", &["cached", "deleted", "modified", "others", "ignored", "stage",
        "killed", "unmerged", "exclude:", "exclude-standard", "full-name", "error-unmatch", "directory", "eol",
        "abbrev?", "deduplicate"]),
    subcommand("merge-base", "a", &["all", "octopus", "is-ancestor", "independent", "fork-point"]),
    Spec { takes_number: true, ..subcommand("reflog", LOG_SHORT, LOG_LONG) },
    subcommand("remote", "v", &["verbose"]),
    subcommand("remote get-url", "", &["push", "all"]),
    Spec { takes_number: true, ..subcommand("rev-list", "n:", &["all", "branches?", "tags?", "remotes?", "count", "max-count:",
        "skip:", "since:", "until:", "after:", "before:", "author:", "committer:", "grep:", "merges", "no-merges",
        "first-parent", "reverse", "left-right", "cherry-pick", "topo-order", "date-order", "oneline", "abbrev-commit",
        "parents", "children", "not", "objects", "left-only", "right-only"]) },
    subcommand("rev-parse", "q", &["abbrev-ref?", "show-toplevel", "git-dir", "absolute-git-dir", "git-common-dir",
        "is-inside-work-tree", "is-inside-git-dir", "is-bare-repository", "short?", "verify", "quiet", "symbolic",
        "symbolic-full-name", "show-prefix", "show-cdup", "all", "branches?", "tags?", "remotes?"]),
    Spec { takes_number: true, ..subcommand("show", LOG_SHORT, LOG_LONG) },
    subcommand("shortlog", "nsec", &["numbered", "summary", "email", "committer", "all", "since:", "until:", "no-merges",
        "group:"]),
    Spec { takes_number: true, ..subcommand("stash list", LOG_SHORT, LOG_LONG) },
    subcommand("tag", "ln?i", &["list", "sort:", "format:", "contains?", "no-contains?", "merged?", "no-merged?",
        "points-at:", "column?", "no-column", "ignore-case", "color?"]),
    subcommand("worktree list", "vz", &["verbose", "porcelain"]),
    subcommand("status", "sbu?vz", &["short", "branch", "show-stash", "porcelain?", "long", "verbose",
        "untracked-files?", "ignored?", "ahead-behind", "no-ahead-behind", "renames", "no-renames", "column?",
        "no-column"]),
];
