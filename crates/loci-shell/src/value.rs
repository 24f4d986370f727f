//! From words to what programs get: braces expanded, home and directory filled in, holes for what is not known.

use std::path::Path;

use loci_core::tool::HOLE;

use crate::syntax::{Piece, Word};

/// The most words one word with braces may become.
const MAX_WORDS: usize = 64;

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// The text, with holes for unknown parts and for what a glob may match.
    pub(crate) text: String,
    /// The text with glob characters left in and escaped where they were quoted, when it is a glob.
    pub(crate) pattern: Option<String>,
    /// Whether it is exactly what was written: no expansion of any kind.
    pub(crate) is_literal: bool,
    /// The word for people and rules: as written, needless quotes removed.
    pub(crate) shown: String,
}

impl Value {
    /// A text that stands for itself.
    pub(crate) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), pattern: None, is_literal: true, shown: text.to_owned() }
    }

    /// Something only the run will tell.
    pub(crate) fn hole() -> Self {
        Self { text: HOLE.to_string(), pattern: None, is_literal: false, shown: "…".to_owned() }
    }

    /// Returns the text when all of it is known.
    pub(crate) fn known(&self) -> Option<&str> {
        (!self.text.contains(HOLE)).then_some(self.text.as_str())
    }
}

/// What words are expanded against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) home: Option<&'a Path>,
    pub(crate) cwd: Option<&'a Path>,
    /// Whether `echo` and `printf` print what they are given, in one word.
    pub(crate) prints: bool,
}

/// Returns the arguments a word becomes.
pub(crate) fn values(word: &Word, around: Surroundings<'_>) -> Vec<Value> {
    let mut words = Vec::new();
    let is_whole = expand_braces(&word.pieces, &mut words);
    if !is_whole {
        return vec![Value { shown: word.source.clone(), ..Value::hole() }];
    }
    let is_braced = words.len() != 1 || words[0] != word.pieces;
    let values = words.iter().map(|pieces| value(pieces, word, around, is_braced));
    values.collect()
}

/// Joins arguments the way rules are written, with holes for what is not known.
pub(crate) fn join(values: &[Value]) -> String {
    let mut out = String::new();
    for value in values {
        // A word that may be empty or several takes the blanks around it along.
        let is_hole = value.text.chars().eq([HOLE]);
        let is_behind_hole = out.chars().eq([HOLE]);
        let needs_no_space = out.is_empty() || is_behind_hole || (is_hole && out.ends_with(HOLE));
        if !needs_no_space {
            out.push(' ');
        }
        out.push_str(&value.text);
    }
    out
}

/// Joins arguments as people read them.
pub(crate) fn show(values: &[Value]) -> String {
    values.iter().map(|value| value.shown.as_str()).collect::<Vec<_>>().join(" ")
}

fn value(pieces: &[Piece], word: &Word, around: Surroundings<'_>, is_braced: bool) -> Value {
    let (mut text, mut pattern) = (String::new(), String::new());
    let (mut is_literal, mut is_glob) = (!is_braced && !word.is_fancy, false);
    let mut pieces = pieces;
    if let Some((home, rest)) = tilde(pieces, around) {
        is_literal = false;
        pieces = rest;
        push_known(home, &mut text, &mut pattern);
    }
    let globs = glob_positions(pieces);
    let homes = assigned_homes(pieces);
    for (idx, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Plain('~') if homes.contains(&idx) => {
                is_literal = false;
                let is_own = matches!(pieces.get(idx + 1), None | Some(Piece::Plain('/' | ':')));
                push_known(around.home.filter(|_| is_own), &mut text, &mut pattern);
            }
            Piece::Plain(c) if globs.contains(&idx) => {
                is_glob = true;
                text.push(HOLE);
                pattern.push(*c);
            }
            Piece::Plain(c) | Piece::Quoted(c) => {
                text.push(*c);
                if "*?[]\\".contains(*c) {
                    pattern.push('\\');
                }
                pattern.push(*c);
            }
            Piece::Variable(name) => {
                is_literal = false;
                let known = match name.as_str() {
                    "HOME" => around.home,
                    "PWD" => around.cwd,
                    _ => None,
                };
                push_known(known, &mut text, &mut pattern);
            }
            Piece::Output(printed) if around.prints => {
                is_literal = false;
                push_known(Some(Path::new(printed)), &mut text, &mut pattern);
            }
            Piece::Output(_) | Piece::Unknown => {
                is_literal = false;
                push_known(None, &mut text, &mut pattern);
            }
        }
    }
    let has_holes = pattern.contains(HOLE);
    let needless = is_literal && !is_glob && !text.is_empty() && text.chars().all(is_plain);
    Value {
        shown: if needless { text.clone() } else { word.source.clone() },
        pattern: (is_glob && !has_holes).then_some(pattern),
        is_literal: is_literal && !is_glob,
        text,
    }
}

fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_-./=:,+@%".contains(c)
}

fn push_known(known: Option<&Path>, text: &mut String, pattern: &mut String) {
    match known.and_then(Path::to_str) {
        Some(path) => {
            text.push_str(path);
            pattern.push_str(path);
        }
        None => {
            text.push(HOLE);
            pattern.push(HOLE);
        }
    }
}

/// Takes a leading `~` off; other people's homes and `~+` are not known.
fn tilde<'w, 'a>(pieces: &'w [Piece], around: Surroundings<'a>) -> Option<(Option<&'a Path>, &'w [Piece])> {
    if pieces.first() != Some(&Piece::Plain('~')) {
        return None;
    }
    let end = pieces.iter().position(|piece| *piece == Piece::Plain('/')).unwrap_or(pieces.len());
    let name = &pieces[1..end];
    if name.iter().any(|piece| !matches!(piece, Piece::Plain(_))) {
        return None;
    }
    let path = match name {
        [] => around.home,
        [Piece::Plain('+')] => around.cwd,
        _ => None,
    };
    Some((path, &pieces[end..]))
}

/// Returns where a `~` is a home because the word looks like an assignment: `if=~/x`, `a=b:~`.
fn assigned_homes(pieces: &[Piece]) -> Vec<usize> {
    let is_name = |piece: &Piece| matches!(piece, Piece::Plain(c) if c.is_ascii_alphanumeric() || *c == '_');
    let Some(equals) = pieces.iter().position(|piece| *piece == Piece::Plain('=')) else { return Vec::new() };
    if equals == 0 || !pieces[..equals].iter().all(is_name) {
        return Vec::new();
    }
    let starts = |idx: &usize| matches!(pieces[idx - 1], Piece::Plain('=' | ':'));
    let tildes = (equals + 1..pieces.len()).filter(|idx| pieces[*idx] == Piece::Plain('~'));
    tildes.filter(starts).collect()
}

/// Returns where unquoted characters make the word a glob.
fn glob_positions(pieces: &[Piece]) -> Vec<usize> {
    let mut found = Vec::new();
    for (idx, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Plain('*' | '?') => found.push(idx),
            Piece::Plain('[') => {
                let close = pieces[idx + 1..].iter().position(|piece| *piece == Piece::Plain(']'));
                if let Some(length) = close.filter(|length| *length > 0) {
                    found.extend(idx..=idx + 1 + length);
                }
            }
            _ => {}
        }
    }
    found
}

/// Expands braces; false when there are too many words.
fn expand_braces(pieces: &[Piece], out: &mut Vec<Vec<Piece>>) -> bool {
    let Some((open, close, parts)) = brace_group(pieces) else {
        out.push(pieces.to_vec());
        return out.len() <= MAX_WORDS;
    };
    parts.iter().all(|part| {
        let word = [&pieces[..open], part.as_slice(), &pieces[close + 1..]].concat();
        expand_braces(&word, out)
    })
}

/// Finds the first group of braces that expands, and what it expands to.
fn brace_group(pieces: &[Piece]) -> Option<(usize, usize, Vec<Vec<Piece>>)> {
    for open in 0..pieces.len() {
        if pieces[open] != Piece::Plain('{') {
            continue;
        }
        let (mut depth, mut commas) = (0usize, Vec::new());
        for at in open + 1..pieces.len() {
            match pieces[at] {
                Piece::Plain('{') => depth += 1,
                Piece::Plain('}') if depth > 0 => depth -= 1,
                Piece::Plain(',') if depth == 0 => commas.push(at),
                Piece::Plain('}') => {
                    let inner = &pieces[open + 1..at];
                    let parts = if commas.is_empty() {
                        sequence(inner)
                    } else {
                        Some(split(pieces, open, at, &commas))
                    };
                    match parts {
                        Some(parts) => return Some((open, at, parts)),
                        None => break,
                    }
                }
                _ => {}
            }
        }
    }
    None
}

fn split(pieces: &[Piece], open: usize, close: usize, commas: &[usize]) -> Vec<Vec<Piece>> {
    let starts = std::iter::once(open).chain(commas.iter().copied());
    let ends = commas.iter().copied().chain(std::iter::once(close));
    starts.zip(ends).map(|(start, end)| pieces[start + 1..end].to_vec()).collect()
}

/// `1..5` and `a..e`; what is longer than a few words is left unknown.
fn sequence(inner: &[Piece]) -> Option<Vec<Vec<Piece>>> {
    let letter = |piece: &Piece| match piece {
        Piece::Plain(c) => Some(*c),
        _ => None,
    };
    let text: String = inner.iter().map(letter).collect::<Option<_>>()?;
    let (low, high) = text.split_once("..")?;
    let numbers = |low: i64, high: i64| {
        let range = low.min(high)..=low.max(high);
        let words = range.take(MAX_WORDS + 1).map(|n| n.to_string().chars().map(Piece::Quoted).collect());
        words.collect::<Vec<_>>()
    };
    match (low.parse::<i64>(), high.parse::<i64>()) {
        (Ok(low_number), Ok(high_number)) if !low.starts_with('0') => Some(numbers(low_number, high_number)),
        _ if low.is_empty() || high.is_empty() => None,
        _ => Some(vec![vec![Piece::Unknown]]),
    }
}
