//! What the mouse does below the conversation: a click moves the caret of the prompt, chooses an answer of a dialog or a row of a
//! list; the wheel scrolls a dialog and goes through a panel.
//!
//! Dialogs and lists mark one row with `❯` and go from one to the next by the arrows, so a click is as many arrows as there are
//! rows between, and then what chooses. Nothing of a dialog has to know that there is a mouse.

use super::super::keys::selection_note;
use super::super::renderer::MouseCapture;
use super::super::{App, Effect};
use super::Fullscreen;
use super::mouse::Clicked;
use super::wheel::WheelSettings;
use crate::input::MENU_MARK;
use crate::key::{KeyCode, Mouse, MouseAction};
use crate::layout::{MARK, NO_MARK, is_unmarked_row};
use crate::text::Row;

impl App {
    /// Takes what the mouse did; only the fullscreen renderer hears of it.
    pub(in crate::app) fn mouse_moved(&mut self, mouse: Mouse) -> Vec<Effect> {
        let Some(width) = self.transcript.screen_width() else { return Vec::new() };
        let hears_clicks = self.preferences.options.fullscreen.mouse == MouseCapture::All;
        let is_wheel = matches!(mouse.action, MouseAction::WheelUp | MouseAction::WheelDown);
        let has_pager = self.transcript.pager.is_some();
        if !has_pager
            && (hears_clicks || is_wheel)
            && let Some(effects) = self.mouse_below(mouse)
        {
            return effects;
        }
        let settings = WheelSettings {
            speed: self.preferences.interface.scroll_speed.or(self
                .preferences
                .options
                .fullscreen
                .scroll_speed),
            accelerates: self.preferences.interface.accelerates_wheel,
        };
        let now = self.now;
        let width = self.transcript.pager_width().unwrap_or(width);
        let (transcript, ctx) = self.transcript_parts(width);
        if is_wheel {
            transcript.turn_wheel(mouse.action, settings, now, &ctx);
            return Vec::new();
        }
        if has_pager || !hears_clicks {
            return Vec::new();
        }
        match transcript.clicked(mouse, now, &ctx) {
            Some(Clicked::Page(page)) => vec![Effect::OpenPage(page)],
            Some(Clicked::Selected(text)) => self.copy(text, selection_note),
            None => Vec::new(),
        }
    }

    /// Takes what the mouse did below the conversation; none where it is not for what stands there.
    fn mouse_below(&mut self, mouse: Mouse) -> Option<Vec<Effect>> {
        let screen = self.transcript.fullscreen.as_ref()?;
        let row = usize::from(mouse.row).checked_sub(screen.list.height())?;
        let has_dialog = !self.dialogs.is_empty();
        match mouse.action {
            MouseAction::WheelUp | MouseAction::WheelDown if has_dialog => {
                self.dialogs.wheel(mouse);
                Some(Vec::new())
            }
            MouseAction::WheelUp if self.panel.is_open() => Some(self.press_keys([KeyCode::Up])),
            MouseAction::WheelDown if self.panel.is_open() => Some(self.press_keys([KeyCode::Down])),
            // Answers with what was clicked, or moves to the field that was.
            MouseAction::Press(0) if has_dialog => {
                let keys = screen.answer_keys(row).filter(|_| self.dialogs.is_armed(self.now));
                Some(self.press_keys(keys.unwrap_or_default()))
            }
            MouseAction::Press(0) if self.panel.is_open() => {
                let keys = screen.list_keys(row, 0, (MARK, KeyCode::Enter));
                Some(self.press_keys(keys.unwrap_or_default()))
            }
            MouseAction::Press(0) if self.prompt.recall.is_searching() => None,
            // Puts the caret where the prompt was clicked, or takes what was clicked of what completes it.
            MouseAction::Press(0) => {
                let (caret_row, _) = screen.lower_caret?;
                let n_rows = isize::try_from(row).unwrap_or(0) - isize::try_from(caret_row).unwrap_or(0);
                if self.prompt.input.click(n_rows, mouse.column) {
                    return Some(self.refresh_completion());
                }
                let is_open = self.prompt.completion.is_open();
                let keys = screen.list_keys(row, caret_row + 1, (MENU_MARK, KeyCode::Tab));
                Some(keys.filter(|_| is_open).map(|keys| self.press_keys(keys)).unwrap_or_default())
            }
            MouseAction::WheelUp
            | MouseAction::WheelDown
            | MouseAction::Press(_)
            | MouseAction::Release(_)
            | MouseAction::Drag(_) => None,
        }
    }
}

impl Fullscreen {
    /// Returns the keys that answer with what was clicked; none where that is no answer.
    fn answer_keys(&self, row: usize) -> Option<Vec<KeyCode>> {
        let rows = &self.lower;
        let marked = rows.iter().position(|row| row.text().starts_with(MARK))?;
        let (from, _) = number_at(rows, marked)?;
        let (to, text) = number_at(rows, row)?;
        Some(steps(from, to).chain(choosing_key(&text)).collect())
    }

    /// Returns the keys that choose the row of a list that was clicked; the list is below a row, has this mark, and is chosen
    /// from by this key.
    fn list_keys(&self, row: usize, top: usize, (mark, chooses): (&str, KeyCode)) -> Option<Vec<KeyCode>> {
        let texts: Vec<String> = self.lower.iter().map(Row::text).collect();
        let marked = top + texts.iter().skip(top).position(|text| text.starts_with(mark))?;
        if row == marked {
            return Some(vec![chooses]);
        }
        let between = if row < marked { row..marked } else { marked + 1..row + 1 };
        let is_list = texts.get(between).is_some_and(|rows| rows.iter().all(|text| is_unmarked_row(text)));
        is_list.then(|| steps(marked, row).chain([chooses]).collect())
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
