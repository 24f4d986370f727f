//! Which renderer shows the conversation: inline in the terminal's own scrollback, or fullscreen.
//!
//! Variables win over `/tui`'s setting at the start; `/tui` wins from then on. Plain lines, for a screen reader or a dumb
//! terminal, are never given up for fullscreen.

use loci_stdx::Vars;

use super::fullscreen::Fullscreen;
use super::{App, Effect, PlainMode};
use crate::block::NoticeLevel;
use crate::interface_settings::{ViewMode, parse_scroll_speed};
use crate::panel::PanelRequest;

/// How much of the mouse the fullscreen renderer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MouseCapture {
    /// The wheel and the buttons.
    #[default]
    All,
    /// The wheel alone (`CLAUDE_CODE_DISABLE_MOUSE_CLICKS`).
    Wheel,
    /// Nothing (`CLAUDE_CODE_DISABLE_MOUSE`).
    Off,
}

/// What variables say of the fullscreen renderer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FullscreenOptions {
    /// Whether it is used, where a variable says so.
    pub forced: Option<bool>,
    /// Whether the person's settings ask for it; known before anything is painted.
    pub is_wanted: bool,
    /// How much of the mouse it takes.
    pub mouse: MouseCapture,
    /// Rows for a step of the wheel, in hundredths (`CLAUDE_CODE_SCROLL_SPEED`).
    pub scroll_speed: Option<u32>,
    /// Whether each frame writes every cell (`CLAUDE_CODE_ALT_SCREEN_FULL_REPAINT`).
    pub repaints_all: bool,
}

impl FullscreenOptions {
    /// Reads the variables.
    pub fn from_vars(vars: &Vars) -> Self {
        let says_no = |name: &str| vars.non_empty(name).is_some() && !vars.is_truthy(name);
        let forced =
            if vars.is_truthy("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN") || says_no("CLAUDE_CODE_NO_FLICKER") {
                Some(false)
            } else {
                vars.is_truthy("CLAUDE_CODE_NO_FLICKER").then_some(true)
            };
        let mouse = if vars.is_truthy("CLAUDE_CODE_DISABLE_MOUSE") {
            MouseCapture::Off
        } else if vars.is_truthy("CLAUDE_CODE_DISABLE_MOUSE_CLICKS") {
            MouseCapture::Wheel
        } else {
            MouseCapture::All
        };
        Self {
            forced,
            is_wanted: false,
            mouse,
            scroll_speed: vars.non_empty("CLAUDE_CODE_SCROLL_SPEED").and_then(parse_scroll_speed),
            repaints_all: vars.is_truthy("CLAUDE_CODE_ALT_SCREEN_FULL_REPAINT"),
        }
    }
}

impl App {
    /// Tells whether the fullscreen renderer shows the conversation.
    pub(super) fn is_fullscreen(&self) -> bool {
        self.fullscreen.is_some()
    }

    /// Tells whether everything is drawn on the alternate screen, with nothing of it on the terminal's own.
    pub(crate) fn owns_screen(&self) -> bool {
        self.fullscreen.as_ref().is_some_and(|screen| !screen.is_dump_shown)
    }

    /// Tells whether reports of the mouse are wanted.
    pub(crate) fn wants_mouse(&self) -> bool {
        self.owns_screen() && self.options.fullscreen.mouse != MouseCapture::Off
    }

    /// Tells whether each frame writes every cell.
    pub(crate) fn repaints_all(&self) -> bool {
        self.options.fullscreen.repaints_all
    }

    /// Takes up what variables, `/tui` and settings say.
    pub(super) fn choose_renderer(&mut self) {
        let wanted = self.chosen_fullscreen.or(self.options.fullscreen.forced);
        let wanted =
            wanted.unwrap_or(self.interface.is_fullscreen.unwrap_or(self.options.fullscreen.is_wanted));
        self.set_fullscreen(wanted && self.options.plain.is_none());
    }

    fn set_fullscreen(&mut self, is_on: bool) {
        if is_on == self.is_fullscreen() {
            return;
        }
        // What was shown of an answer is on the other screen.
        self.conversation.restart_answers();
        let end = self.log.numbers().end;
        match self.fullscreen.take() {
            Some(screen) => self.unwritten = Some(screen.first_unwritten),
            None => {
                let first = self.unwritten.take().unwrap_or(end);
                self.fullscreen = Some(Box::new(Fullscreen::new(first)));
                self.tell_about_mouse();
            }
        }
    }

    /// Leaves the fullscreen renderer for good: what was said in it is to be written below.
    pub(super) fn leave_fullscreen(&mut self) {
        self.set_fullscreen(false);
    }

    /// Says once that the mouse is taken, and how to get it back; not in the middle of an answer.
    pub(super) fn tell_about_mouse(&mut self) {
        let is_taken = self.is_fullscreen() && self.options.fullscreen.mouse != MouseCapture::Off;
        let is_time = is_taken && !self.conversation.has_answer();
        if is_time && !std::mem::replace(&mut self.has_told_mouse, true) {
            let text = "Fullscreen: the wheel scrolls, a drag selects and copies, a click expands. Shift and a drag select \
                        as your terminal does. CLAUDE_CODE_DISABLE_MOUSE=1 leaves the mouse alone; `/tui default` goes \
                        back to the scrollback";
            self.notice(NoticeLevel::Info, text);
        }
    }

    /// `/tui`: says which renderer is used, or switches to another and keeps that.
    pub(super) fn switch_renderer(&mut self, argument: Option<&str>) -> Vec<Effect> {
        let name = |is_fullscreen| if is_fullscreen { "fullscreen" } else { "default" };
        let wanted = match argument {
            None => {
                let why = match &self.options.plain {
                    Some(PlainMode::ScreenReader(source)) => format!(" (plain lines: {source})"),
                    Some(PlainMode::Dumb) => " (plain lines: the terminal knows no more)".to_owned(),
                    None => String::new(),
                };
                let text = format!(
                    "The renderer is {}{why}. `/tui fullscreen` and `/tui default` switch",
                    name(self.is_fullscreen())
                );
                self.notice(NoticeLevel::Info, text);
                return Vec::new();
            }
            Some("fullscreen") => true,
            Some("default") => false,
            Some(_) => {
                self.notice(NoticeLevel::Warning, "Say `/tui fullscreen` or `/tui default`");
                return Vec::new();
            }
        };
        if wanted && self.options.plain.is_some() {
            let text = "Everything is plain lines here, so the renderer stays; nothing was changed";
            self.notice(NoticeLevel::Info, text);
            return Vec::new();
        }
        self.chosen_fullscreen = Some(wanted);
        self.choose_renderer();
        self.flash(format!("The renderer is {} from now on, here and in new sessions", name(wanted)));
        vec![change_setting("tui", name(wanted))]
    }

    /// Returns how much is shown.
    pub(super) fn view_mode(&self) -> ViewMode {
        self.chosen_view.unwrap_or(self.interface.view_mode)
    }

    /// Tells whether only the last prompt, a line about its calls and the answer are shown.
    pub(super) fn is_focused(&self) -> bool {
        self.view_mode() == ViewMode::Focus
    }

    /// `/focus`: shows the last prompt, a line about its calls and the answer; or everything again.
    pub(super) fn toggle_focus(&mut self) -> Vec<Effect> {
        let (mode, name, text) = match self.is_focused() {
            true => (ViewMode::Default, "default", "Everything is shown again"),
            false => {
                (ViewMode::Focus, "focus", "Prompt, a line about the calls, and answer · /focus shows all")
            }
        };
        self.chosen_view = Some(mode);
        self.view_changed();
        self.flash(text);
        vec![change_setting("viewMode", name)]
    }

    /// `/scroll-speed`: says how far the wheel scrolls, or changes it.
    pub(super) fn set_scroll_speed(&mut self, argument: Option<&str>) -> Vec<Effect> {
        let known = self.interface.scroll_speed.or(self.options.fullscreen.scroll_speed).unwrap_or(300);
        let shown = |hundredths: u32| f64::from(hundredths) / 100.0;
        let Some(argument) = argument else {
            let text = format!(
                "A step of the wheel scrolls {} rows in fullscreen; `/scroll-speed 5` makes it five, up to 20",
                shown(known)
            );
            self.notice(NoticeLevel::Info, text);
            return Vec::new();
        };
        let Some(speed) = parse_scroll_speed(argument).filter(|speed| *speed > 0) else {
            self.notice(NoticeLevel::Warning, "Say a number of rows above 0 and up to 20: `/scroll-speed 3`");
            return Vec::new();
        };
        self.interface.scroll_speed = Some(speed);
        self.flash(format!("A step of the wheel scrolls {} rows", shown(speed)));
        vec![change_setting("env.CLAUDE_CODE_SCROLL_SPEED", &shown(speed).to_string())]
    }
}

fn change_setting(key: &str, value: &str) -> Effect {
    let (key, value) = (key.to_owned(), value.to_owned());
    Effect::AskPanel(PanelRequest::ChangeSetting { key, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_decide_in_their_order() {
        let options = |vars: &[(&str, &str)]| {
            FullscreenOptions::from_vars(&vars.iter().map(|(name, value)| (*name, *value)).collect())
        };
        for (vars, forced) in [
            (&[][..], None),
            (&[("CLAUDE_CODE_NO_FLICKER", "1")][..], Some(true)),
            (&[("CLAUDE_CODE_NO_FLICKER", "0")][..], Some(false)),
            (
                &[("CLAUDE_CODE_NO_FLICKER", "1"), ("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "1")][..],
                Some(false),
            ),
        ] {
            assert_eq!(options(vars).forced, forced, "{vars:?}");
        }
        assert_eq!(options(&[("CLAUDE_CODE_DISABLE_MOUSE_CLICKS", "1")]).mouse, MouseCapture::Wheel);
        let both = [("CLAUDE_CODE_DISABLE_MOUSE_CLICKS", "1"), ("CLAUDE_CODE_DISABLE_MOUSE", "1")];
        assert_eq!(options(&both).mouse, MouseCapture::Off);
    }
}
