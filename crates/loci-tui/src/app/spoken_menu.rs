//! Menus for whoever listens: a numbered list, and an answer that is typed and ended with Enter.
//!
//! What a dialog or a list marks with `❯` and moves with the arrows is chosen here by its number: the keys between are pressed,
//! so that no dialog has to know that somebody listens. `yes` and `no` mean the first answer that begins with the word,
//! wherever it stands: at the warning before everything runs, no is the first.

use super::fullscreen::{choosing_key, number_at, steps};
use crate::dialog::DialogView;
use crate::key::KeyCode;
use crate::layout::{MARK, NO_MARK, is_unmarked_row, without_mark as without_list_mark};
use crate::screen::Frame;
use crate::text::Row;

/// A menu that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpokenMenu {
    /// How many there are to choose from.
    n: usize,
    /// Which of them is marked, from one.
    marked: usize,
    kind: MenuKind,
    /// What they say, by their numbers; nothing is known of those of a list.
    answers: Vec<(usize, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MenuKind {
    /// One answer, by its number or in a word.
    Answer,
    /// Several may be chosen; Enter alone goes on.
    Several,
    /// A list of a panel, which letters narrow down.
    List,
}

impl SpokenMenu {
    /// Returns the first answer that begins with a word; none where no answer does.
    fn answer_saying(&self, word: &str) -> Option<Vec<usize>> {
        let says = |text: &str| {
            let first = text.split(|c: char| !c.is_alphanumeric()).next();
            first.is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        self.answers.iter().find(|(_, text)| says(text)).map(|(number, _)| vec![*number])
    }
}

/// What came of a key of an answer that is typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MenuStep {
    /// It was taken.
    Taken,
    /// Something is said to it.
    Say(String),
    /// These keys choose what was typed.
    Press(Vec<KeyCode>),
}

/// The answer to a menu that is being typed, where somebody listens.
#[derive(Debug, Default)]
pub(super) struct MenuAnswer {
    typed: String,
}

impl MenuAnswer {
    /// Returns what is typed of it.
    pub(super) fn typed(&self) -> &str {
        &self.typed
    }

    /// Takes a key of an answer; none where it means something else.
    pub(super) fn handle(&mut self, code: KeyCode, menu: &SpokenMenu) -> Option<MenuStep> {
        match code {
            KeyCode::Char(c)
                if c.is_ascii_digit() || menu.kind == MenuKind::Answer && c.is_ascii_alphabetic() =>
            {
                self.typed.push(c);
            }
            KeyCode::Char(c @ (',' | ' ')) if menu.kind == MenuKind::Several && !self.typed.is_empty() => {
                self.typed.push(c);
            }
            KeyCode::Backspace if !self.typed.is_empty() => drop(self.typed.pop()),
            KeyCode::Enter if !self.typed.is_empty() => return Some(self.choose(menu)),
            KeyCode::Enter if menu.kind == MenuKind::Answer => return Some(MenuStep::Say(range(menu.n))),
            // What goes on is the last of them.
            KeyCode::Enter if menu.kind == MenuKind::Several => {
                let keys = steps(menu.marked, menu.n).chain([KeyCode::Enter]);
                return Some(MenuStep::Press(keys.collect()));
            }
            _ => {
                self.typed.clear();
                return None;
            }
        }
        Some(MenuStep::Taken)
    }

    fn choose(&mut self, menu: &SpokenMenu) -> MenuStep {
        let answer = std::mem::take(&mut self.typed).to_lowercase();
        let parse = |number: &str| number.parse().ok().filter(|number| (1..=menu.n).contains(number));
        let words = answer.split([',', ' ']).filter(|word| !word.is_empty());
        let numbers: Option<Vec<usize>> = match (answer.as_str(), menu.kind) {
            ("y" | "yes", MenuKind::Answer) => menu.answer_saying("yes"),
            ("n" | "no", MenuKind::Answer) => menu.answer_saying("no"),
            (_, _) => words.map(parse).collect(),
        };
        let Some(numbers) = numbers else { return MenuStep::Say(range(menu.n)) };
        let mut keys = Vec::new();
        let mut marked = menu.marked;
        for number in numbers {
            let answer = menu.answers.iter().find(|(known, _)| *known == number);
            let chooses = answer.map_or(Some(KeyCode::Enter), |(_, text)| choosing_key(text));
            keys.extend(steps(marked, number).chain(chooses));
            marked = number;
        }
        MenuStep::Press(keys)
    }
}

/// Returns a dialog as whoever listens hears it: what is asked, the answers by their numbers, and what is typed.
pub(super) fn spoken_dialog(committed: Vec<Row>, view: DialogView, label: &str, typed: &str) -> Frame {
    let menu = dialog_menu(&view).filter(|_| view.caret.is_none());
    let DialogView { mut head, body, foot, caret, .. } = view;
    if let Some(row) = head.iter_mut().find(|row| !row.spans.is_empty()) {
        row.spans.insert(0, crate::text::Span::plain(label));
    }
    let mut live: Vec<Row> = head.into_iter().chain(body).collect();
    let top = live.len();
    live.extend(foot.into_iter().map(without_mark));
    let mut caret = caret.map(|(row, column)| (top + row, column.saturating_sub(2)));
    if let Some(menu) = menu {
        let several =
            if menu.kind == MenuKind::Several { ", several with commas, Enter alone to go on" } else { "" };
        let text = format!("Enter selection, 1 to {}{several}, or Escape to cancel: {typed}", menu.n);
        caret = Some((live.len(), crate::layout::cells(&text)));
        live.push(Row::plain(text));
    }
    Frame { committed, live, caret, is_caret_visible: true, is_tall: true, ..Frame::default() }
}

/// Puts numbers to the rows of a list, and what is typed below it.
pub(super) fn number_list(rows: &mut Vec<Row>, caret: &mut Option<(usize, u16)>, typed: &str) {
    if let Some((first, _, n)) = list_rows(rows) {
        for (idx, row) in rows.iter_mut().skip(first).take(n).enumerate() {
            let text = row.text();
            let mark = if text.starts_with(MARK) { MARK } else { NO_MARK };
            let rest = without_list_mark(&text).unwrap_or(&text);
            *row = Row::plain(format!("{mark}{}. {rest}", idx + 1));
        }
    }
    if !typed.is_empty() {
        let text = format!("Selection: {typed}");
        *caret = Some((rows.len(), crate::layout::cells(&text)));
        rows.push(Row::plain(text));
    }
}

/// Returns the menu that the rows of a panel are; the numbers are those that were told.
pub(super) fn list_menu(rows: &[Row]) -> Option<SpokenMenu> {
    let (first, marked, n) = list_rows(rows)?;
    Some(SpokenMenu { n, marked: marked - first + 1, kind: MenuKind::List, answers: Vec::new() })
}

fn range(n: usize) -> String {
    format!("Type a number from 1 to {n}, then Enter")
}

/// Returns the menu that a dialog is.
pub(super) fn dialog_menu(view: &DialogView) -> Option<SpokenMenu> {
    let is_several = |row: &Row| row.text().contains(". [ ] ") || row.text().contains(". [x] ");
    let kind = if view.foot.iter().any(is_several) { MenuKind::Several } else { MenuKind::Answer };
    let mut answers: Vec<(usize, String)> =
        (0..view.foot.len()).filter_map(|idx| number_at(&view.foot, idx)).collect();
    answers.dedup();
    let n = answers.iter().map(|(number, _)| *number).max()?;
    let at = view.foot.iter().position(|row| row.text().starts_with(MARK))?;
    Some(SpokenMenu { n, marked: number_at(&view.foot, at)?.0, kind, answers })
}

/// Returns the rows of a list: the first, the marked one, and how many they are.
fn list_rows(rows: &[Row]) -> Option<(usize, usize, usize)> {
    let marked = rows.iter().position(|row| row.text().starts_with(MARK))?;
    let is_row = |row: &&Row| is_unmarked_row(&row.text());
    let n_above = rows.get(..marked)?.iter().rev().take_while(is_row).count();
    let n_below = rows.get(marked + 1..)?.iter().take_while(is_row).count();
    Some((marked - n_above, marked, n_above + 1 + n_below))
}

/// Takes the mark of an answer away: it is chosen by its number.
fn without_mark(row: Row) -> Row {
    let text = row.text();
    let rest = text.strip_prefix(MARK).or_else(|| text.strip_prefix(NO_MARK)).unwrap_or(&text);
    Row::plain(rest.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(kind: MenuKind, answers: &[&str]) -> SpokenMenu {
        let answers = answers.iter().enumerate().map(|(idx, text)| (idx + 1, (*text).to_owned())).collect();
        SpokenMenu { n: 3, marked: 1, kind, answers }
    }

    fn typed(text: &str, menu: &SpokenMenu) -> Option<MenuStep> {
        let mut answer = MenuAnswer::default();
        for c in text.chars() {
            assert_eq!(answer.handle(KeyCode::Char(c), menu), Some(MenuStep::Taken), "{text}");
        }
        answer.handle(KeyCode::Enter, menu)
    }

    #[test]
    fn word_or_number_chooses_an_answer() {
        use KeyCode::{Down, Enter};
        let menu = menu(MenuKind::Answer, &["No, leave", "Yes, and always", "Yes"]);
        for (text, expected) in
            [("3", vec![Down, Down, Enter]), ("yes", vec![Down, Enter]), ("N", vec![Enter])]
        {
            assert_eq!(typed(text, &menu), Some(MenuStep::Press(expected)), "{text}");
        }
        assert!(matches!(typed("4", &menu), Some(MenuStep::Say(_))));
        assert!(matches!(typed("", &menu), Some(MenuStep::Say(_))));
    }
}
