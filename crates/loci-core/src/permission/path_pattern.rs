//! Path patterns of Read and Edit rules: gitignore's, from one of four anchors (S-28).
//!
//! `//p` starts at the root, `~/p` at home, `/p` at the directory of the settings the rule came from, `p` and `./p`
//! at the directory the session started in. `*` and `?` stay within a segment, `**` crosses segments, `[…]` is a
//! class, `\` takes away a special meaning. A pattern of one segment matches at any depth below its anchor. A
//! pattern that matches a directory matches what is in it. Nothing outside the anchor ever matches.
//!
//! What depends on the list: restricting rules ignore letter case, take `dir/**` at any depth and for `dir` itself
//! too; allowing rules take it below the anchor only, and a wildcard at the end of theirs does not reach deeper.
//!
//! By hand, because the crates for gitignore patterns (`ignore`, `globset`) know neither anchors of our kind nor what
//! depends on the list, and a rule that matches a little more or less than people read is a hole.

use std::path::{Component, Path};

use super::RuleList;

/// A pattern, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathPattern {
    anchor: Anchor,
    segments: Vec<Segment>,
    is_restricting: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Anchor {
    Root,
    Home,
    /// Where the rule was written.
    Source(Vec<String>),
    /// Where the session started.
    Start,
}

/// One segment; in a pattern that restricts, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`.
    Deep,
    /// A name that stands for itself.
    Name(String),
    /// One with special characters.
    Wild(Vec<char>),
}

impl Segment {
    fn new(text: &str, is_restricting: bool) -> Self {
        let text = if is_restricting { text.to_lowercase() } else { text.to_owned() };
        match text.as_str() {
            "**" => Self::Deep,
            plain if !plain.contains(['*', '?', '[', '\\']) => Self::Name(text),
            wild => Self::Wild(wild.chars().collect()),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Deep => true,
            Self::Name(own) => own == name,
            Self::Wild(pattern) => matches_chars(pattern, &name.chars().collect::<Vec<_>>()),
        }
    }

    /// Returns true for one that may stand for many names.
    fn is_wild(&self) -> bool {
        matches!(self, Self::Wild(pattern) if pattern.iter().any(|c| matches!(c, '*' | '?' | '[')))
    }
}

/// The directories anchors stand for.
#[derive(Debug, Clone)]
pub(super) struct Anchors {
    start: Vec<String>,
    home: Vec<String>,
}

impl Anchors {
    pub(super) fn new(start: &Path, home: &Path) -> Self {
        Self { start: names_of(start), home: names_of(home) }
    }
}

/// The names of an absolute path, taken apart once for all patterns it is compared with.
#[derive(Debug, Clone)]
pub(super) struct Names {
    names: Vec<String>,
    folded: Vec<String>,
}

impl Names {
    pub(super) fn from_path(path: &Path) -> Self {
        let names = names_of(path);
        let folded = names.iter().map(|name| name.to_lowercase()).collect();
        Self { names, folded }
    }
}

fn names_of(path: &Path) -> Vec<String> {
    let normal = |part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    path.components().filter_map(normal).collect()
}

impl PathPattern {
    /// Reads a pattern; `None` when nothing is left of it.
    pub(super) fn parse(text: &str, list: RuleList, source_dir: &Path) -> Option<Self> {
        let is_restricting = list != RuleList::Allow;
        let (anchor, rest, is_anchored) = if let Some(rest) = text.strip_prefix("//") {
            (Anchor::Root, rest, true)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Anchor::Home, rest, true)
        } else if text == "~" {
            (Anchor::Home, "**", true)
        } else if let Some(rest) = text.strip_prefix('/') {
            (Anchor::Source(names_of(source_dir)), rest, true)
        } else if let Some(rest) = text.strip_prefix("./") {
            (Anchor::Start, rest, !is_restricting)
        } else {
            (Anchor::Start, text, false)
        };
        let is_dir = rest.ends_with('/');
        let mut segments: Vec<&str> =
            rest.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if segments.is_empty() && !is_anchored {
            return None;
        }
        let n_named = segments.iter().rev().skip_while(|part| **part == "**").count();
        let floats = match n_named {
            1 if is_anchored => false,
            // `dir/**` and `dir/` name a directory: at any depth when they restrict, here when they allow.
            1 if segments.len() > 1 || is_dir => is_restricting,
            1 => true,
            _ => false,
        };
        if floats && segments.first().is_some_and(|part| *part != "**") {
            segments.insert(0, "**");
        }
        if is_dir || segments.is_empty() {
            segments.push("**");
        }
        let segments = segments.into_iter().map(|part| Segment::new(part, is_restricting)).collect();
        Some(Self { anchor, segments, is_restricting })
    }

    /// Returns true when the pattern matches a path, by this spelling.
    pub(super) fn matches(&self, path: &Names, anchors: &Anchors) -> bool {
        let base: &[String] = match &self.anchor {
            Anchor::Root => &[],
            Anchor::Home => &anchors.home,
            Anchor::Source(dir) => dir,
            Anchor::Start => &anchors.start,
        };
        if !path.names.starts_with(base) {
            return false;
        }
        let below = if self.is_restricting { &path.folded[base.len()..] } else { &path.names[base.len()..] };
        matches_segments(&self.segments, below, self.is_restricting)
    }
}

fn matches_segments(segments: &[Segment], names: &[String], is_restricting: bool) -> bool {
    let Some((segment, rest)) = segments.split_first() else {
        return true;
    };
    if *segment == Segment::Deep {
        return match rest.is_empty() {
            // `dir/**` is what is in the directory; to restrict, the directory itself too.
            true => is_restricting || !names.is_empty(),
            false => (0..=names.len()).any(|at| matches_segments(rest, &names[at..], is_restricting)),
        };
    }
    let Some((name, below)) = names.split_first() else {
        return false;
    };
    if !segment.matches(name) {
        return false;
    }
    if rest.is_empty() && segment.is_wild() && !is_restricting {
        return below.is_empty();
    }
    matches_segments(rest, below, is_restricting)
}

/// Matches one segment: `*`, `?`, `[a-z]`, `[!a]` and `\`.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    matches_chars(&pattern, &name)
}

fn matches_chars(pattern: &[char], name: &[char]) -> bool {
    // Where to go on when what follows the last star does not fit.
    let mut retry: Option<(usize, usize)> = None;
    let (mut at, mut seen) = (0, 0);
    loop {
        if pattern.get(at) == Some(&'*') {
            at += 1;
            retry = Some((at, seen));
            continue;
        }
        let step = match name.get(seen) {
            Some(c) => one(&pattern[at..], *c),
            None if at == pattern.len() => return true,
            None => return false,
        };
        match (step, retry) {
            (Some(width), _) => {
                at += width;
                seen += 1;
            }
            (None, Some((after, from))) => {
                retry = Some((after, from + 1));
                (at, seen) = (after, from + 1);
            }
            (None, None) => return false,
        }
    }
}

/// Returns how much of the pattern one character takes.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '\\' if pattern.len() > 1 => (pattern[1] == c).then_some(2),
        '[' => match class(pattern, c) {
            Some((width, is_in)) => is_in.then_some(width),
            None => (c == '[').then_some(1),
        },
        other => (*other == c).then_some(1),
    }
}

/// Reads `[…]`: its width, and whether it holds the character. `None` when it is not closed.
fn class(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let mut at = 1;
    let negated = matches!(pattern.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let (mut is_in, mut is_first) = (false, true);
    loop {
        match *pattern.get(at)? {
            ']' if !is_first => return Some((at + 1, is_in != negated)),
            low => match (pattern.get(at + 1), pattern.get(at + 2)) {
                (Some('-'), Some(high)) if *high != ']' => {
                    is_in |= (low..=*high).contains(&c);
                    at += 3;
                }
                _ => {
                    is_in |= low == c;
                    at += 1;
                }
            },
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: RuleList, pattern: &str, path: &str) -> bool {
        let anchors = Anchors::new(Path::new("/p"), Path::new("/home/dev"));
        let pattern = PathPattern::parse(pattern, list, Path::new("/conf")).unwrap();
        pattern.matches(&Names::from_path(Path::new(path)), &anchors)
    }

    #[test]
    fn anchors_and_depth() {
        for (pattern, path, deny, allow) in [
            (".env", "/p/.env", true, true),
            (".env", "/p/sub/.env", true, true),
            (".env", "/p/.ENV", true, false),
            (".env", "/q/.env", false, false),
            (".env", "/p/.env.local", false, false),
            ("*.csv", "/p/sub/data.csv", true, true),
            ("secrets/**", "/p/secrets/key.txt", true, true),
            ("secrets/**", "/p/secrets/deep/key.txt", true, true),
            ("secrets/**", "/p/vendor/secrets/k", true, false),
            ("secrets/**", "/p/secrets", true, false),
            ("secrets/**", "/p/secretsx/k", false, false),
            ("secrets/**", "/p/Secrets.txt", false, false),
            ("secrets/", "/p/a/secrets/k", true, false),
            ("secrets", "/p/a/secrets/k", true, true),
            ("**/secrets/**", "/p/a/secrets/k", true, true),
            ("a/b/**", "/p/a/b/c", true, true),
            ("a/b/**", "/p/x/a/b/c", false, false),
            ("./docs/*.md", "/p/docs/a.md", true, true),
            ("./docs/*.md", "/p/docs/sub/b.md", false, false),
            ("docs/*", "/p/docs/sub/b.md", true, false),
            ("docs/*", "/p/docs/b.md", true, true),
            ("/conf.json", "/conf/conf.json", true, true),
            ("/conf.json", "/p/conf.json", false, false),
            ("/a/**", "/conf/a/b", true, true),
            ("//etc/**", "/etc/passwd", true, true),
            ("//etc/**", "/p/etc/passwd", false, false),
            ("//", "/anything/at/all", true, true),
            ("~/.ssh/**", "/home/dev/.ssh/id", true, true),
            ("~/notes.txt", "/home/dev/sub/notes.txt", false, false),
            ("notes/\\[1\\] list.md", "/p/notes/[1] list.md", true, true),
            ("a[0-9].txt", "/p/x/a7.txt", true, true),
            ("a[!0-9].txt", "/p/a7.txt", false, false),
            ("**", "/p/any/thing", true, true),
            ("src/**/x.rs", "/p/src/x.rs", true, true),
            ("src/**/x.rs", "/p/src/a/b/x.rs", true, true),
        ] {
            assert_eq!(check(RuleList::Deny, pattern, path), deny, "deny {pattern} ~ {path}");
            assert_eq!(check(RuleList::Allow, pattern, path), allow, "allow {pattern} ~ {path}");
        }
    }

    #[test]
    fn names() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[", "[", true),
            ("[]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("*.tar.*", "a.tar.tar.gz", true),
        ] {
            assert_eq!(matches_name(pattern, name), expected, "{pattern} ~ {name}");
        }
    }
}
