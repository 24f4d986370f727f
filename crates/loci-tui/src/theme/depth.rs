//! How many colours a terminal has, and the nearest of them.

use crate::text::Color;

/// How many colours a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColorDepth {
    /// None, or none are wanted.
    None,
    /// The sixteen.
    Ansi,
    /// 256.
    Indexed,
    /// True colour.
    True,
}

impl ColorDepth {
    /// Returns what the environment says: `NO_COLOR`, `CLICOLOR`, `FORCE_COLOR`, `COLORTERM`, `TERM`. A multiplexer may not pass true colour on, unless a variable says so
    /// (`CLAUDE_CODE_TMUX_TRUECOLOR`).
    pub fn from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let has = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        if has("NO_COLOR") || variable("CLICOLOR").as_deref() == Some("0") || term == "dumb" {
            return Self::None;
        }
        match variable("FORCE_COLOR").as_deref() {
            Some("0" | "false") => return Self::None,
            Some("1") => return Self::Ansi,
            Some("2") => return Self::Indexed,
            Some("3") => return Self::True,
            _ => {}
        }
        let is_multiplexer = term.starts_with("screen") || term.starts_with("tmux");
        let is_off = |value: &str| ["0", "false", "no", "off"].contains(&value.to_ascii_lowercase().as_str());
        let is_passed_on =
            variable("CLAUDE_CODE_TMUX_TRUECOLOR").is_some_and(|it| !it.is_empty() && !is_off(&it));
        if is_multiplexer && is_passed_on {
            return Self::True;
        }
        let color_term = variable("COLORTERM").unwrap_or_default();
        if term.contains("direct")
            || (!is_multiplexer && matches!(color_term.as_str(), "truecolor" | "24bit"))
        {
            Self::True
        } else if term.contains("256color") {
            Self::Indexed
        } else {
            Self::Ansi
        }
    }
}

impl ColorDepth {
    /// Returns the nearest colour that the terminal has.
    pub(super) fn nearest(self, color: Color) -> Color {
        match (self, color) {
            (_, Color::Default) | (Self::None, _) => Color::Default,
            (Self::True, color) | (_, color @ (Color::Ansi(_) | Color::Themed(_))) => color,
            (Self::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(cube_index(r, g, b)),
            (Self::Indexed, color) => color,
            (Self::Ansi, Color::Indexed(n @ 0..16)) => Color::Ansi(n),
            (Self::Ansi, Color::Indexed(n)) => {
                let (r, g, b) = cube_color(n);
                Color::Ansi(nearest_ansi(r, g, b))
            }
            (Self::Ansi, Color::Rgb(r, g, b)) => Color::Ansi(nearest_ansi(r, g, b)),
        }
    }
}

/// The nearest colour of the cube of 216 within the 256.
fn cube_index(r: u8, g: u8, b: u8) -> u8 {
    let level = |c: u8| {
        if c < 48 {
            0
        } else if c < 115 {
            1
        } else {
            (c - 35) / 40
        }
    };
    16 + 36 * level(r) + 6 * level(g) + level(b)
}

fn cube_color(n: u8) -> (u8, u8, u8) {
    if n >= 232 {
        let grey = 8 + 10 * (n - 232);
        return (grey, grey, grey);
    }
    let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    let n = n.saturating_sub(16);
    (level(n / 36), level(n / 6 % 6), level(n % 6))
}

fn nearest_ansi(r: u8, g: u8, b: u8) -> u8 {
    let brightest = r.max(g).max(b);
    if brightest < 48 {
        return 0;
    }
    let is_lit = |c: u8| u8::from(c > brightest / 2);
    let hue = is_lit(r) | is_lit(g) << 1 | is_lit(b) << 2;
    match (hue, brightest) {
        (7, ..128) => 8,
        (hue, 200..) => hue + 8,
        (hue, _) => hue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_depth_follows_the_environment() {
        let cases: &[(&[(&str, &str)], ColorDepth)] = &[
            (&[("TERM", "xterm-256color")], ColorDepth::Indexed),
            (&[("TERM", "xterm")], ColorDepth::Ansi),
            (&[], ColorDepth::Ansi),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], ColorDepth::True),
            (&[("TERM", "tmux-256color"), ("COLORTERM", "truecolor")], ColorDepth::Indexed),
            (&[("TERM", "tmux-256color"), ("CLAUDE_CODE_TMUX_TRUECOLOR", "1")], ColorDepth::True),
            (&[("TERM", "tmux-256color"), ("CLAUDE_CODE_TMUX_TRUECOLOR", "0")], ColorDepth::Indexed),
            (&[("TERM", "xterm-direct")], ColorDepth::True),
            (&[("TERM", "dumb"), ("COLORTERM", "truecolor")], ColorDepth::None),
            (&[("TERM", "xterm"), ("NO_COLOR", "1")], ColorDepth::None),
            (&[("TERM", "xterm"), ("NO_COLOR", "")], ColorDepth::Ansi),
            (&[("TERM", "xterm"), ("CLICOLOR", "0")], ColorDepth::None),
            (&[("TERM", "xterm"), ("FORCE_COLOR", "3")], ColorDepth::True),
        ];
        for (variables, expected) in cases {
            let lookup = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(ColorDepth::from_env(lookup), *expected, "{variables:?}");
        }
    }
}
