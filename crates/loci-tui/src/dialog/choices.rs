//! A list of answers of which one is chosen: arrows, digits, Enter.

use crate::key::{Key, KeyCode};
use crate::keymap::{Action as KeyAction, is_letter};
use crate::layout::{mark_of, marked, paragraph};
use crate::text::{Row, Style};

/// Answers, one of which is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choices {
    labels: Vec<String>,
    marked: usize,
}

impl Choices {
    /// Offers these answers; the first is marked.
    pub(crate) fn new(labels: Vec<String>) -> Self {
        Self { labels, marked: 0 }
    }

    /// Offers another answer, before the one that stands there.
    pub(crate) fn insert(&mut self, at: usize, label: String) {
        self.labels.insert(at.min(self.labels.len()), label);
    }

    /// Returns what one says.
    pub(crate) fn label(&self, idx: usize) -> &str {
        self.labels.get(idx).map(String::as_str).unwrap_or_default()
    }

    /// Tells whether the first is marked.
    pub(crate) fn is_first_marked(&self) -> bool {
        self.marked == 0
    }

    /// Marks one.
    pub(crate) fn mark(&mut self, idx: usize) {
        self.marked = idx.min(self.labels.len().saturating_sub(1));
    }

    /// Takes a key that is bound to this action; returns the answer that it chose.
    pub(crate) fn choose(&mut self, action: Option<KeyAction>, key: Key) -> Option<usize> {
        let n = self.labels.len().max(1);
        match action {
            Some(KeyAction::ConfirmPrevious | KeyAction::SelectPrevious) => {
                self.marked = (self.marked + n - 1) % n;
            }
            Some(KeyAction::ConfirmNext | KeyAction::SelectNext) => self.marked = (self.marked + 1) % n,
            Some(KeyAction::ConfirmYes | KeyAction::SelectAccept) if !is_letter(key) => {
                return Some(self.marked);
            }
            Some(_) => {}
            None if matches!(key.code, KeyCode::Char('1'..='9')) => return self.handle(key),
            None => {}
        }
        None
    }

    /// Takes a key as it is by default; returns the answer that it chose.
    pub(crate) fn handle(&mut self, key: Key) -> Option<usize> {
        let n = self.labels.len().max(1);
        match key.code {
            KeyCode::Up => self.marked = (self.marked + n - 1) % n,
            KeyCode::Down => self.marked = (self.marked + 1) % n,
            KeyCode::Char('p') if key.ctrl => self.marked = (self.marked + n - 1) % n,
            KeyCode::Char('n') if key.ctrl => self.marked = (self.marked + 1) % n,
            KeyCode::Enter => return Some(self.marked),
            KeyCode::Char(digit @ '1'..='9') if !key.ctrl && !key.alt => {
                let idx = digit as usize - '1' as usize;
                return (idx < self.labels.len()).then(|| {
                    self.marked = idx;
                    idx
                });
            }
            _ => {}
        }
        None
    }

    /// Returns the rows, one or more an answer, and which of them the marked one begins with.
    pub(crate) fn rows(&self, width: u16) -> (Vec<Row>, usize) {
        choice_rows(&self.labels, self.marked, width)
    }
}

/// Returns answers with their numbers, one of them marked, and the row at which that one begins.
pub(crate) fn choice_rows(
    labels: impl IntoIterator<Item = impl AsRef<str>>,
    marked_idx: usize,
    width: u16,
) -> (Vec<Row>, usize) {
    let (mut rows, mut first) = (Vec::new(), 0);
    for (idx, label) in labels.into_iter().enumerate() {
        let is_marked = idx == marked_idx;
        if is_marked {
            first = rows.len();
        }
        let style = if is_marked { marked() } else { Style::default() };
        let lead = format!("{}{}. ", mark_of(is_marked), idx + 1);
        rows.extend(paragraph(&lead, label.as_ref(), style, width));
    }
    (rows, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_the_mark_and_choose() {
        let key = |code| Key::plain(code);
        for (keys, expected) in [
            (vec![KeyCode::Enter], Some(0)),
            (vec![KeyCode::Down, KeyCode::Enter], Some(1)),
            (vec![KeyCode::Up, KeyCode::Enter], Some(2)),
            (vec![KeyCode::Char('3')], Some(2)),
            (vec![KeyCode::Char('4')], None),
            (vec![KeyCode::Char('x')], None),
        ] {
            let mut choices = Choices::new(vec!["a".into(), "b".into(), "c".into()]);
            let chosen = keys.iter().find_map(|code| choices.handle(key(*code)));
            assert_eq!(chosen, expected, "{keys:?}");
        }
    }
}
