//! Which renderer shows the conversation: inline in the terminal's own scrollback, or fullscreen.
//!
//! Variables win over `/tui`'s setting at the start; `/tui` wins from then on. Plain lines, for a screen reader or a dumb
//! terminal, are never given up for fullscreen.

use loci_stdx::Vars;

use crate::interface_settings::parse_scroll_speed;

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
