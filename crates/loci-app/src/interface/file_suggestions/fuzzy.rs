//! How well a path fits what is typed.
//!
//! The letters of the query must come in their order; letters that follow each other, that begin a word or the name of
//! the file count more, and letters that are passed over count less. ASCII letters fit whatever their case.
//!
//! By hand, although `nucleo-matcher` and `fuzzy-matcher` exist: most paths are dismissed by the mask of their letters
//! before they are looked at (`file_index`), and what is left needs one page, and no tables of Unicode.

/// What one letter is worth.
const LETTER: i32 = 16;
/// Beginning a word of the path.
const WORD: i32 = 8;
/// Following the letter before.
const RUN: i32 = 10;
/// Being in the name of the file.
const NAME: i32 = 60;
/// Beginning the name of the file.
const NAME_START: i32 = 30;
/// Being the whole name of the file, or all before its ending.
const WHOLE_NAME: i32 = 80;

/// What is looked for, made ready.
#[derive(Debug)]
pub(super) struct Query {
    lower: Vec<u8>,
    mask: u64,
    has_slash: bool,
}

/// A path, made ready.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    /// As it is.
    pub(super) path: &'a [u8],
    /// With small ASCII letters.
    pub(super) lower: &'a [u8],
    /// Which letters are in it.
    pub(super) mask: u64,
}

impl Query {
    pub(super) fn new(text: &str) -> Self {
        let lower = text.to_ascii_lowercase().into_bytes();
        Self { mask: mask(&lower), has_slash: lower.contains(&b'/'), lower }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lower.is_empty()
    }

    /// Returns how well a path fits, if it does; more is better.
    pub(super) fn score(&self, candidate: Candidate<'_>) -> Option<i32> {
        if candidate.mask & self.mask != self.mask {
            return None;
        }
        let end = candidate.lower.len() - usize::from(candidate.lower.ends_with(b"/"));
        let name = memchr::memrchr(b'/', &candidate.lower[..end]).map_or(0, |at| at + 1);
        let in_name = if self.has_slash {
            None
        } else {
            self.score_within(candidate, name, end).map(|score| score + NAME)
        };
        let score = in_name.or_else(|| self.score_within(candidate, 0, candidate.lower.len()))?;
        let rest = &candidate.lower[name..end];
        let whole = rest == self.lower
            || (rest.starts_with(&self.lower) && rest.get(self.lower.len()) == Some(&b'.'));
        let bonus = match whole {
            true => WHOLE_NAME + NAME_START,
            false if rest.starts_with(&self.lower) => NAME_START,
            false => 0,
        };
        let length = i32::try_from(candidate.lower.len()).unwrap_or(i32::MAX);
        Some(score.saturating_add(bonus).saturating_sub(length / 2))
    }

    /// Finds the letters in a part of the path: the first place where they end, and from there back the nearest start.
    fn score_within(&self, candidate: Candidate<'_>, from: usize, to: usize) -> Option<i32> {
        let part = &candidate.lower[from..to];
        let mut end = 0;
        for byte in &self.lower {
            end += memchr::memchr(*byte, &part[end..])? + 1;
        }
        let mut at = end;
        let mut score = 0;
        let mut last: Option<usize> = None;
        for byte in self.lower.iter().rev() {
            at = memchr::memrchr(*byte, &part[..at])?;
            score += LETTER;
            if begins_word(candidate.path, from + at) {
                score += WORD;
            }
            score += match last {
                Some(last) if last == at + 1 => RUN,
                Some(last) => -i32::try_from((last - at).min(12)).unwrap_or(12),
                None => 0,
            };
            last = Some(at);
        }
        Some(score)
    }
}

/// Which letters are in a text, a bit each.
pub(super) fn mask(lower: &[u8]) -> u64 {
    lower.iter().fold(0, |mask, byte| {
        mask | match byte {
            b'a'..=b'z' => 1 << (byte - b'a'),
            b'0'..=b'9' => 1 << (26 + byte - b'0'),
            b'.' => 1 << 36,
            b'_' => 1 << 37,
            b'-' => 1 << 38,
            b'/' => 1 << 39,
            _ => 1 << (40 + byte % 24),
        }
    })
}

fn begins_word(path: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| path[before]) else { return true };
    matches!(before, b'/' | b'_' | b'-' | b'.' | b' ')
        || (before.is_ascii_lowercase() && path[at].is_ascii_uppercase())
}
