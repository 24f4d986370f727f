//! Matching a `*` pattern against text of which parts may be unknown.
//!
//! Text found in a shell line can hold [`HOLE`]: a part whose value is only known when the line runs. A pattern
//! matches such text certainly when its own stars cover the holes, and possibly when some value of the holes would
//! make it match. Restricting rules look at both; allowing rules only at the first.
//!
//! By hand, because no crate for globs matches against text with unknown parts.

use crate::tool::HOLE;

/// How well a pattern fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It does not match, whatever the unknown parts are.
    No,
    /// It matches for some value of the unknown parts.
    Possible,
    /// It matches.
    Certain,
}

/// A pattern for commands, read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandPattern {
    text: String,
    /// Of `prefix:*` and `prefix *`: the prefix alone, and followed by a space.
    prefixed: Option<[String; 2]>,
}

impl CommandPattern {
    pub(super) fn new(text: &str) -> Self {
        let prefix = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *"));
        let prefixed = prefix.map(|prefix| [prefix.to_owned(), format!("{prefix} *")]);
        Self { text: text.to_owned(), prefixed }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns true when the pattern matches whatever the unknown parts are.
    pub(super) fn matches(&self, command: &str) -> bool {
        let command = command.trim();
        match &self.prefixed {
            Some([alone, spaced]) => {
                !parts_early(alone, command) && (matches(alone, command) || matches(spaced, command))
            }
            None => matches(&self.text, command),
        }
    }

    /// Matches a command as [`fit_command`] does.
    pub(super) fn fit(&self, command: &str) -> Fit {
        let command = command.trim();
        match &self.prefixed {
            Some([alone, _]) if parts_early(alone, command) => Fit::No,
            Some([alone, spaced]) => fit(alone, command).max(fit(spaced, command)),
            None => fit(&self.text, command),
        }
    }
}

/// Matches a command pattern. A pattern without `*` is the whole command; `prefix:*` and `prefix *` at the end mean
/// the prefix alone or followed by a space; any other `*` stands for any run of characters.
pub(super) fn fit_command(pattern: &str, command: &str) -> Fit {
    let command = command.trim();
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match prefix {
        Some(prefix) => fit(prefix, command).max(fit(&format!("{prefix} *"), command)),
        None => fit(pattern, command),
    }
}

/// Matches a pattern in which only `*` is special.
pub(super) fn fit(pattern: &str, text: &str) -> Fit {
    if parts_early(pattern, text) {
        Fit::No
    } else if matches(pattern, text) {
        Fit::Certain
    } else if text.contains(HOLE) && could_match(pattern, text) {
        Fit::Possible
    } else {
        Fit::No
    }
}

/// Matches by literal parts, left to right; the last must end the text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, more)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let (between, last) = more.rsplit_once('*').map_or((None, more), |(between, last)| (Some(between), last));
    for part in between.into_iter().flat_map(|between| between.split('*')) {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns true when they differ before the first star and the first hole: nearly all pairs of a long list do.
fn parts_early(pattern: &str, text: &str) -> bool {
    let wanted = pattern.bytes().take_while(|byte| *byte != b'*');
    let difference = wanted.zip(text.bytes()).find(|(wanted, found)| wanted != found);
    difference.is_some_and(|(_, found)| found != HOLE as u8)
}

/// Returns true when the pattern and the text, both with parts that stand for anything, have a text in common.
fn could_match(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // reach[n]: the pattern so far fits the first n characters of the text.
    let mut reach = vec![false; text.len() + 1];
    let mut next = reach.clone();
    reach[0] = true;
    spread_holes(&mut reach, &text);
    for wanted in pattern.chars() {
        let Some(first) = reach.iter().position(|is_reached| *is_reached) else { return false };
        next.fill(false);
        if wanted == '*' {
            next[first..].fill(true);
        } else {
            for at in (first..=text.len()).filter(|at| reach[*at]) {
                match text.get(at) {
                    Some(&HOLE) => next[at] = true,
                    Some(found) if *found == wanted => next[at + 1] = true,
                    _ => {}
                }
                // A hole just passed may have held this character too.
                if at > 0 && text[at - 1] == HOLE {
                    next[at] = true;
                }
            }
            spread_holes(&mut next, &text);
        }
        std::mem::swap(&mut reach, &mut next);
    }
    reach[text.len()]
}

/// A hole may be empty.
fn spread_holes(reach: &mut [bool], text: &[char]) {
    for at in 0..text.len() {
        if reach[at] && text[at] == HOLE {
            reach[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_patterns() {
        for (pattern, command, expected) in [
            ("ls", "ls", Fit::Certain),
            ("ls", "ls -la", Fit::No),
            ("ls *", "ls", Fit::Certain),
            ("ls *", "ls -la", Fit::Certain),
            ("ls *", "lsof", Fit::No),
            ("ls:*", "ls -la", Fit::Certain),
            ("ls:*", "lsof", Fit::No),
            ("ls*", "lsof", Fit::Certain),
            ("npm run *:prod", "npm run build:prod", Fit::Certain),
            ("npm run *:prod", "npm run build:dev", Fit::No),
            ("git * main", "git push origin main", Fit::Certain),
            ("* --version", "node --version", Fit::Certain),
            ("a*b*c", "a1b2c", Fit::Certain),
            ("a*b*c", "a1c", Fit::No),
            ("a*a", "a", Fit::No),
            ("a*b", "a*cb", Fit::Certain),
            ("a*b", "a*c\0", Fit::Possible),
            ("a*b*", "ab", Fit::Certain),
            ("a**b", "ab", Fit::Certain),
            ("a**b", "a", Fit::No),
            ("a:*", "a:b", Fit::No),
            ("*", "anything at all", Fit::Certain),
            ("git push *", "git push \0", Fit::Certain),
            ("git push *", "git \0", Fit::Possible),
            ("git push *", "\0", Fit::Possible),
            ("git push *", "\0touch z", Fit::Possible),
            ("touch *", "\0touch z", Fit::Possible),
            ("touch z", "touch \0", Fit::Possible),
            ("touch *", "to\0 z", Fit::Possible),
            ("touch *", "tx\0 z", Fit::No),
            ("touch *", "ls \0", Fit::No),
        ] {
            assert_eq!(fit_command(pattern, command), expected, "{pattern} ~ {command:?}");
            let read = CommandPattern::new(pattern);
            assert_eq!(read.fit(command), expected, "{pattern} ~ {command:?}");
            assert_eq!(read.matches(command), expected == Fit::Certain, "{pattern} ~ {command:?}");
        }
    }
}
