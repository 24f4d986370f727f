//! Judging one simple command against the table: known program, known flags, known operands.

use crate::table::{Operands, Spec, TABLE};
use crate::value::Value;
use crate::{find, git, special};

/// Marks a word that is a glob; no other word holds it, since the parser refuses control characters.
const GLOB: char = '\u{1}';

/// Returns a path as reads are told of, with what would make it a glob for a program that expands them by itself.
pub(crate) fn with_wildcards(path: &str) -> String {
    if path.contains(['*', '?', '[']) { format!("{GLOB}{path}") } else { path.to_owned() }
}

/// Programs without a flag that writes or runs, so that a file named like a flag does no harm.
#[rustfmt::skip]
const GLOB_SAFE: &[&str] = &[
    "ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "stat", "du", "df", "diff", "cmp", "comm", "cut", "nl", "rev",
    "tac", "paste", "fold", "md5sum", "sha1sum", "sha256sum", "base64", "od", "hexdump", "strings", "realpath", "readlink",
    "basename", "dirname", "echo",
];

/// Returns the paths a command would read when it is known to change nothing, else `None`.
pub(crate) fn reads_of(values: &[Value]) -> Option<Vec<Value>> {
    let program = values.first()?.known()?;
    let words: Vec<String> = values
        .iter()
        .map(|value| match (&value.pattern, value.known()) {
            (Some(pattern), _) => GLOB_SAFE.contains(&program).then(|| format!("{GLOB}{pattern}")),
            (None, Some(text)) => Some(text.to_owned()),
            // What echo prints may be anything.
            (None, None) => (program == "echo").then(String::new),
        })
        .collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut paths = reads_of_words(&words)?;
    // The shell looks into directories to expand a glob, whatever becomes of the names.
    let globs = words.iter().filter(|word| word.starts_with(GLOB));
    let others: Vec<String> =
        globs.map(|word| (*word).to_owned()).filter(|word| !paths.contains(word)).collect();
    paths.extend(others);
    Some(paths.iter().map(|path| as_value(path)).collect())
}

fn as_value(path: &str) -> Value {
    match path.strip_prefix(GLOB) {
        Some(pattern) => {
            Value { pattern: Some(pattern.to_owned()), is_literal: false, ..Value::literal(pattern) }
        }
        None => Value::literal(path),
    }
}

fn reads_of_words(words: &[&str]) -> Option<Vec<String>> {
    let (program, arguments) = words.split_first()?;
    match *program {
        "git" => git::reads_of(arguments),
        "find" => find::reads_of(arguments),
        _ => match TABLE.iter().find(|spec| spec.name == *program) {
            Some(spec) => operand_reads(spec, parse(spec, arguments)?),
            None => special::reads_of(program, arguments),
        },
    }
}

/// A command line taken apart by its spec.
#[derive(Debug, Default)]
pub(crate) struct Parsed<'a> {
    /// Flags by letter or long name, values left out.
    pub(crate) flags: Vec<String>,
    /// Values of flags that name a file.
    pub(crate) paths: Vec<&'a str>,
    /// Values of flags that say which files a search looks into.
    pub(crate) chosen: Vec<&'a str>,
    /// Everything that is not a flag.
    pub(crate) operands: Vec<&'a str>,
}

impl Parsed<'_> {
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|flag| names.contains(&flag.as_str()))
    }
}

/// What follows a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arity {
    None,
    /// Attached, or the next word.
    Value,
    /// As `Value`, and it names a file that is read.
    Path,
    Glob,
    /// Attached or absent.
    Optional,
}

impl Arity {
    fn of(mark: Option<char>) -> Self {
        match mark {
            Some(':') => Self::Value,
            Some('@') => Self::Path,
            Some('*') => Self::Glob,
            Some('?') => Self::Optional,
            _ => Self::None,
        }
    }
}

/// Takes the arguments apart; `None` at the first flag that is not in the spec.
pub(crate) fn parse<'a>(spec: &Spec, arguments: &[&'a str]) -> Option<Parsed<'a>> {
    let mut parsed = Parsed::default();
    let mut rest = arguments.iter().copied();
    while let Some(word) = rest.next() {
        if word == "--" {
            parsed.operands.extend(rest.by_ref());
        } else if let Some(long) = word.strip_prefix("--") {
            parse_long(spec, long, &mut rest, &mut parsed)?;
        } else if let Some(cluster) = word.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            parse_cluster(spec, cluster, &mut rest, &mut parsed)?;
        } else {
            parsed.operands.push(word);
        }
    }
    Some(parsed)
}

fn parse_long<'a>(
    spec: &Spec,
    long: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
    parsed: &mut Parsed<'a>,
) -> Option<()> {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let arity = long_arity(spec, name)?;
    parsed.flags.push(name.to_owned());
    match (arity, value) {
        (Arity::None, Some(_)) => return None,
        (Arity::Value, None) => {
            next_value(rest)?;
        }
        (Arity::Path, None) => parsed.paths.push(next_value(rest)?),
        (Arity::Path, Some(path)) => parsed.paths.push(path),
        (Arity::Glob, None) => parsed.chosen.push(next_value(rest)?),
        (Arity::Glob, Some(glob)) => parsed.chosen.push(glob),
        (Arity::None | Arity::Optional, None) | (Arity::Value | Arity::Optional, Some(_)) => {}
    }
    Some(())
}

/// Finds a long flag by its full name; abbreviations are not known, so they are not read-only.
fn long_arity(spec: &Spec, name: &str) -> Option<Arity> {
    spec.long.iter().find_map(|entry| {
        let mark = entry.strip_prefix(name)?;
        let mut marks = mark.chars();
        let arity = Arity::of(marks.next());
        (mark.is_empty() || (arity != Arity::None && marks.next().is_none())).then_some(arity)
    })
}

fn parse_cluster<'a>(
    spec: &Spec,
    cluster: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
    parsed: &mut Parsed<'a>,
) -> Option<()> {
    if spec.takes_number && cluster.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(());
    }
    for (at, letter) in cluster.char_indices() {
        let arity = short_arity(spec, letter)?;
        parsed.flags.push(letter.to_string());
        let attached = &cluster[at + letter.len_utf8()..];
        match arity {
            Arity::None => continue,
            Arity::Optional => {}
            Arity::Value | Arity::Path | Arity::Glob => {
                let value = if attached.is_empty() { next_value(rest)? } else { attached };
                match arity {
                    Arity::Path => parsed.paths.push(value),
                    Arity::Glob => parsed.chosen.push(value),
                    _ => {}
                }
            }
        }
        return Some(());
    }
    Some(())
}

fn short_arity(spec: &Spec, letter: char) -> Option<Arity> {
    let at = spec.short.find(letter).filter(|_| letter.is_ascii_alphanumeric())?;
    Some(Arity::of(spec.short[at + 1..].chars().next()))
}

/// Takes the next word as a value. One that looks like a flag is not taken: should the program see it
/// otherwise than we do, a flag would slip through.
fn next_value<'a>(rest: &mut impl Iterator<Item = &'a str>) -> Option<&'a str> {
    rest.next().filter(|value| !value.starts_with(['-', GLOB]))
}

/// Combinations of flags and operands that reach further than each alone.
fn reaches_out(spec: &Spec, parsed: &Parsed<'_>) -> bool {
    match spec.name {
        // Links to directories would be followed down.
        "ls" => parsed.has(&["R", "recursive"]) && parsed.has(&["L", "dereference"]),
        // A file of arguments, which comes out in complaints about them.
        "strings" => parsed.operands.iter().any(|word| word.starts_with('@')),
        // A host, which would be looked up.
        "lsof" => parsed.operands.iter().any(|word| word.contains('@')),
        _ => false,
    }
}

fn operand_reads(spec: &Spec, parsed: Parsed<'_>) -> Option<Vec<String>> {
    if reaches_out(spec, &parsed) {
        return None;
    }
    let operands = parsed.operands.as_slice();
    let paths: &[&str] = match spec.operands {
        Operands::None if operands.is_empty() => &[],
        Operands::Text => &[],
        Operands::Format if operands.len() <= 1 && operands.iter().all(|word| word.starts_with('+')) => &[],
        Operands::Paths => operands,
        Operands::PathsOrHere if operands.is_empty() => &["."],
        Operands::PathsOrHere => operands,
        Operands::OnePath if operands.len() <= 1 => operands,
        Operands::PatternThenPaths => pattern_paths(&parsed)?,
        Operands::PatternThenPathsOrHere => match pattern_paths(&parsed).unwrap_or_default() {
            [] => &["."],
            paths => paths,
        },
        Operands::None | Operands::Format | Operands::OnePath => return None,
    };
    let reads = paths.iter().chain(&parsed.paths).filter(|path| **path != "-");
    let chosen = parsed.chosen.iter().filter_map(|glob| chosen_files(glob)).map(with_wildcards);
    Some(reads.map(|path| (*path).to_owned()).chain(chosen).collect())
}

/// Returns what a search looks into by name, at whatever depth. One that leaves files out looks into no more, and one that
/// names whole trees, links and all, says no more than where the search begins.
pub(crate) fn chosen_files(glob: &str) -> Option<&str> {
    let is_glob = glob.contains(['*', '?', '[']);
    let names_all =
        glob.chars().all(|c| "*.?/".contains(c)) || glob.starts_with(".*") || glob.starts_with(".?");
    let is_broad = glob.starts_with('!') || names_all || (is_glob && glob.contains('/'));
    (!is_broad).then(|| glob.trim_start_matches('/'))
}

/// Returns grep's files: all operands when a flag gave the pattern, else all but the first.
fn pattern_paths<'a, 'b>(parsed: &'b Parsed<'a>) -> Option<&'b [&'a str]> {
    let has_pattern = parsed.has(&["e", "regexp", "f", "file", "files"]);
    let paths = if has_pattern { &parsed.operands[..] } else { parsed.operands.split_first()?.1 };
    let searches_here = paths.is_empty() && parsed.has(&["r", "recursive"]);
    Some(if searches_here { &["."] } else { paths })
}
