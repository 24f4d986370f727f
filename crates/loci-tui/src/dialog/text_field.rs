//! One line of text inside a dialog or a panel.

use unicode_segmentation::UnicodeSegmentation;

use crate::key::{Key, KeyCode};

/// A line that is typed into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TextField {
    text: String,
    /// A byte position between two clusters.
    caret: usize,
}

impl TextField {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns what stands before the caret.
    pub(crate) fn before_caret(&self) -> &str {
        self.text.get(..self.caret).unwrap_or_default()
    }

    /// Tells whether the caret stands behind all of it.
    pub(crate) fn is_at_end(&self) -> bool {
        self.caret == self.text.len()
    }

    /// Puts another text in the place of all of it, with its line ends.
    pub(crate) fn set(&mut self, text: &str) {
        text.trim_end().clone_into(&mut self.text);
        self.caret = self.text.len();
    }

    /// Returns the text, and what of it stands before the caret, with line ends as marks.
    pub(crate) fn display_text(&self) -> (String, String) {
        let marked = |text: &str| text.replace('\n', "⏎");
        (marked(&self.text), marked(self.before_caret()))
    }

    /// Adds text at the caret; line ends become blanks.
    pub(crate) fn insert(&mut self, text: &str) {
        let line: String = text.chars().map(|c| if c == '\n' { ' ' } else { c }).collect();
        self.text.insert_str(self.caret, &line);
        self.caret += line.len();
    }

    /// Takes a key; tells whether it meant something here.
    pub(crate) fn handle(&mut self, key: Key) -> bool {
        match (key.code, key.ctrl || key.alt || key.sup) {
            (KeyCode::Char(c), false) => self.insert(c.encode_utf8(&mut [0; 4])),
            (KeyCode::Backspace, false) => {
                let start = self.previous();
                self.text.replace_range(start..self.caret, "");
                self.caret = start;
            }
            (KeyCode::Delete, false) => {
                let end = self.next();
                self.text.replace_range(self.caret..end, "");
            }
            (KeyCode::Left, false) => self.caret = self.previous(),
            (KeyCode::Right, false) => self.caret = self.next(),
            (KeyCode::Home, _) => self.caret = 0,
            (KeyCode::End, _) => self.caret = self.text.len(),
            (KeyCode::Char('a'), _) if key.ctrl => self.caret = 0,
            (KeyCode::Char('e'), _) if key.ctrl => self.caret = self.text.len(),
            (KeyCode::Char('u'), _) if key.ctrl => {
                self.text.replace_range(..self.caret, "");
                self.caret = 0;
            }
            (KeyCode::Char('k'), _) if key.ctrl => self.text.truncate(self.caret),
            (KeyCode::Char('w'), _) if key.ctrl => self.delete_word(),
            _ => return false,
        }
        true
    }

    fn delete_word(&mut self) {
        let before = self.before_caret().trim_end();
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |idx| idx + before[idx..].chars().next().map_or(1, char::len_utf8));
        self.text.replace_range(start..self.caret, "");
        self.caret = start;
    }

    fn previous(&self) -> usize {
        self.before_caret().grapheme_indices(true).next_back().map_or(0, |(idx, _)| idx)
    }

    fn next(&self) -> usize {
        let after = self.text.get(self.caret..).unwrap_or_default();
        self.caret + after.graphemes(true).next().map_or(0, str::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys, `<` and `>` being arrows, `~` backspace and `^w` as `|`.
    fn typed(keys: &str) -> String {
        let mut field = TextField::default();
        for c in keys.chars() {
            let key = match c {
                '<' => Key::plain(KeyCode::Left),
                '>' => Key::plain(KeyCode::Right),
                '~' => Key::plain(KeyCode::Backspace),
                '|' => Key { ctrl: true, ..Key::plain(KeyCode::Char('w')) },
                c => Key::plain(KeyCode::Char(c)),
            };
            field.handle(key);
        }
        field.text().to_owned()
    }

    #[test]
    fn edits_step_by_cluster() {
        for (keys, expected) in [
            ("ab<c", "acb"),
            ("ab~", "a"),
            ("e\u{301}~x", "x"),
            ("日本<~", "本"),
            ("one two|", "one "),
            ("<~a", "a"),
        ] {
            assert_eq!(typed(keys), expected, "{keys}");
        }
    }
}
