//! What the mouse does below the conversation: a click moves the caret of the prompt, chooses an answer of a dialog or a row of a
//! list; the wheel scrolls a dialog and goes through a panel.
//!
//! Dialogs and lists mark one row with `❯` and go from one to the next by the arrows, so a click is as many arrows as there are
//! rows between, and then what chooses. Nothing of a dialog has to know that there is a mouse.

use super::super::{App, Effect};
use crate::input::MENU_MARK;
use crate::key::{KeyCode, Mouse, MouseAction};
use crate::layout::{MARK, NO_MARK, is_unmarked_row};
use crate::text::Row;

impl App {
    /// Takes what the mouse did below the conversation; none where it is not for what stands there.
    pub(super) fn mouse_below(&mut self, mouse: Mouse) -> Option<Vec<Effect>> {
        let screen = self.fullscreen.as_ref()?;
        let row = usize::from(mouse.row).checked_sub(screen.list.height())?;
        match mouse.action {
            MouseAction::WheelUp | MouseAction::WheelDown => self.wheel_below(mouse),
            MouseAction::Press(0) if !self.dialogs.is_empty() => Some(self.click_dialog(row)),
            MouseAction::Press(0) if self.panel.is_some() => {
                Some(self.click_list(row, 0, (MARK, KeyCode::Enter)))
            }
            MouseAction::Press(0) if self.recall.is_searching() => None,
            MouseAction::Press(0) => Some(self.click_prompt(row, mouse.column)),
            MouseAction::Press(_) | MouseAction::Release(_) | MouseAction::Drag(_) => None,
        }
    }

    fn wheel_below(&mut self, mouse: Mouse) -> Option<Vec<Effect>> {
        if !self.dialogs.is_empty() {
            self.dialogs.wheel(mouse);
            return Some(Vec::new());
        }
        self.panel.as_ref()?;
        let code = if mouse.action == MouseAction::WheelUp { KeyCode::Up } else { KeyCode::Down };
        Some(self.press_keys([code]))
    }

    /// Answers with what was clicked, or moves to the field that was.
    fn click_dialog(&mut self, row: usize) -> Vec<Effect> {
        let Some(screen) = self.fullscreen.as_ref().filter(|_| self.dialogs.is_armed(self.now)) else {
            return Vec::new();
        };
        let rows = &screen.lower;
        let marked = rows.iter().position(|row| row.text().starts_with(MARK));
        let (Some(from), Some((to, text))) =
            (marked.and_then(|at| number_at(rows, at)), number_at(rows, row))
        else {
            return Vec::new();
        };
        let keys = steps(from.0, to).chain(choosing_key(&text));
        self.press_keys(keys)
    }

    /// Chooses the row of a list that was clicked; the list is below a row, has this mark, and is chosen from by this key.
    fn click_list(&mut self, row: usize, top: usize, (mark, chooses): (&str, KeyCode)) -> Vec<Effect> {
        let Some(screen) = &self.fullscreen else { return Vec::new() };
        let texts: Vec<String> = screen.lower.iter().map(Row::text).collect();
        let below = texts.iter().skip(top).position(|text| text.starts_with(mark));
        let Some(marked) = below.map(|at| top + at) else { return Vec::new() };
        if row == marked {
            return self.press_keys([chooses]);
        }
        let between = if row < marked { row..marked } else { marked + 1..row + 1 };
        let is_list = texts.get(between).is_some_and(|rows| rows.iter().all(|text| is_unmarked_row(text)));
        match is_list {
            true => self.press_keys(steps(marked, row).chain([chooses])),
            false => Vec::new(),
        }
    }

    /// Puts the caret where the prompt was clicked, or takes what was clicked of what completes it.
    fn click_prompt(&mut self, row: usize, column: u16) -> Vec<Effect> {
        let Some((caret_row, _)) = self.fullscreen.as_ref().and_then(|screen| screen.lower_caret) else {
            return Vec::new();
        };
        let n_rows = isize::try_from(row).unwrap_or(0) - isize::try_from(caret_row).unwrap_or(0);
        match (self.prompt.click(n_rows, column), self.completion.is_open()) {
            (true, _) => self.refresh_completion(),
            (false, true) => self.click_list(row, caret_row + 1, (MENU_MARK, KeyCode::Tab)),
            (false, false) => Vec::new(),
        }
    }
}

/// Returns the key that chooses an answer once it is marked: one of several is ticked, and a field is typed into.
pub(in crate::app) fn choosing_key(answer: &str) -> Option<KeyCode> {
    match answer {
        field if field.starts_with("Other: ") => None,
        tick if tick.starts_with("[ ] ") || tick.starts_with("[x] ") => Some(KeyCode::Char(' ')),
        _ => Some(KeyCode::Enter),
    }
}

/// Returns the arrows from one row to another.
pub(in crate::app) fn steps(from: usize, to: usize) -> impl Iterator<Item = KeyCode> {
    let code = if to < from { KeyCode::Up } else { KeyCode::Down };
    std::iter::repeat_n(code, from.abs_diff(to))
}

/// Returns the number of the answer that a row is of, which may go on over several rows, and what the answer says.
pub(in crate::app) fn number_at(rows: &[Row], row: usize) -> Option<(usize, String)> {
    for row in rows.get(..=row)?.iter().rev() {
        let text = row.text();
        let answer = text.strip_prefix(MARK).or_else(|| text.strip_prefix(NO_MARK))?;
        if let Some((number, rest)) = answer.split_once(". ")
            && let Ok(number) = number.parse()
        {
            return Some((number, rest.to_owned()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_of_a_row_is_found_over_the_rows_it_goes_on_in() {
        let texts =
            ["May it run?", "❯ 1. Yes", "  2. Yes, and always: a long", "     rule", "  3. [ ] No", "Esc no"];
        let rows: Vec<Row> = texts.map(Row::plain).into();
        let number = |row| number_at(&rows, row).map(|(number, _)| number);
        assert_eq!([0, 1, 2, 3, 4, 5, 9].map(number), [None, Some(1), Some(2), Some(2), Some(3), None, None]);
        assert_eq!(number_at(&rows, 4).unwrap().1, "[ ] No");
        assert_eq!(steps(3, 1).collect::<Vec<_>>(), [KeyCode::Up, KeyCode::Up]);
    }
}
