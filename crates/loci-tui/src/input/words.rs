//! Where words begin and end.
//!
//! Two flavours: the classic one takes words as Unicode divides text (`foo.ts` is one, `a/b` are two) and steps to the
//! beginning of the next; the readline one takes runs of letters and digits and steps to their end, and lets Ctrl+W take
//! everything back to a blank. A chip is always a word by itself.

use unicode_segmentation::UnicodeSegmentation;

use super::chip::is_chip_mark;

/// Which keys follow whom: the setting `keybindingFlavor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flavor {
    /// The keys of the reference.
    #[default]
    Classic,
    /// As GNU readline has them.
    Readline,
}

/// No word is longer; what is looked at for one is not either.
const WINDOW: usize = 4096;

/// Returns where Alt+B goes in a line.
pub(super) fn word_start_before(line: &str, byte: usize, flavor: Flavor) -> usize {
    let start = boundary_before(line, byte.saturating_sub(WINDOW));
    let pieces = pieces(&line[start..byte], flavor);
    let mut last = start;
    for (at, piece) in pieces.into_iter().rev() {
        last = start + at;
        if is_word(piece) {
            break;
        }
    }
    last
}

/// Returns where Alt+F goes in a line.
pub(super) fn word_end_after(line: &str, byte: usize, flavor: Flavor) -> usize {
    let end = boundary_before(line, (byte + WINDOW).min(line.len()));
    let pieces = pieces(&line[byte..end], flavor);
    let mut was_word = false;
    for (at, piece) in pieces {
        match flavor {
            Flavor::Readline if was_word => return byte + at,
            // To the beginning of the next word: past this one, and what is no word.
            Flavor::Classic if at > 0 && is_word(piece) => return byte + at,
            Flavor::Readline | Flavor::Classic => was_word |= is_word(piece),
        }
    }
    end
}

/// Returns where the run of signs that are no blanks begins, with the blanks behind it: what Ctrl+W of readline takes.
pub(super) fn blank_before(line: &str, byte: usize) -> usize {
    let before = line[..byte].trim_end();
    before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))
}

fn boundary_before(line: &str, byte: usize) -> usize {
    (0..=byte).rev().find(|byte| line.is_char_boundary(*byte)).unwrap_or(0)
}

fn is_word(piece: &str) -> bool {
    piece.chars().any(|char| char.is_alphanumeric() || is_chip_mark(char))
}

/// Divides text into words and what is between them, each with its place.
fn pieces(text: &str, flavor: Flavor) -> Vec<(usize, &str)> {
    match flavor {
        Flavor::Classic => text.split_word_bound_indices().collect(),
        Flavor::Readline => {
            let mut pieces: Vec<(usize, &str)> = Vec::new();
            let mut start = 0;
            let kind = |char: char| (char.is_alphanumeric(), is_chip_mark(char));
            let mut last = None;
            for (at, char) in text.char_indices() {
                if last.is_some_and(|last| last != kind(char) || is_chip_mark(char)) {
                    pieces.push((start, &text[start..at]));
                    start = at;
                }
                last = Some(kind(char));
            }
            if start < text.len() {
                pieces.push((start, &text[start..]));
            }
            pieces
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps through a line from one end to the other, marking each stop.
    fn stops(line: &str, step: impl Fn(&str, usize) -> usize, from: usize, to: usize) -> String {
        let mut marked: Vec<usize> = Vec::new();
        let mut at = from;
        while at != to {
            at = step(line, at);
            marked.push(at);
        }
        let mut shown = line.to_owned();
        marked.sort_unstable();
        marked.iter().rev().for_each(|at| shown.insert(*at, '|'));
        shown
    }

    fn forward(line: &str, flavor: Flavor) -> String {
        stops(line, |line, at| word_end_after(line, at, flavor), 0, line.len())
    }

    fn back(line: &str, flavor: Flavor) -> String {
        stops(line, |line, at| word_start_before(line, at, flavor), line.len(), 0)
    }

    #[test]
    fn classic_words() {
        assert_eq!(forward("fix src/utils/foo.ts now", Flavor::Classic), "fix |src/|utils/|foo.ts |now|");
        assert_eq!(back("fix src/utils/foo.ts now", Flavor::Classic), "|fix |src/|utils/|foo.ts |now");
        assert_eq!(back("it's  a_b  ", Flavor::Classic), "|it's  |a_b  ");
    }

    #[test]
    fn readline_words() {
        assert_eq!(forward("fix a_b/foo.ts  ", Flavor::Readline), "fix| a|_b|/foo|.ts|  |");
        assert_eq!(back("fix a_b/foo.ts", Flavor::Readline), "|fix |a_|b/|foo.|ts");
    }

    #[test]
    fn blank_before_takes_a_whole_path() {
        let line = "fix src/utils/foo.ts  ";
        assert_eq!(&line[..blank_before(line, line.len())], "fix ");
        assert_eq!(blank_before("word", 4), 0);
    }
}
