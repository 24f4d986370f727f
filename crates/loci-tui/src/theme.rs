//! Looks by role, and what a terminal can show of them.
//!
//! The terminal's own sixteen colours carry everything by default, so that the user's theme decides; backgrounds of
//! changed words alone are mixed where the terminal has more. No meaning is carried by a colour alone.

use std::time::Duration;

use crate::text::{Color, Style};

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
    /// Returns what the environment says: `NO_COLOR`, `CLICOLOR`, `FORCE_COLOR`, `COLORTERM`, `TERM`.
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

/// What is behind the letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Background {
    /// Dark, or not known.
    #[default]
    Dark,
    /// Light.
    Light,
}

impl Background {
    /// Returns what a background colour is, as the terminal told it (OSC 11).
    pub fn from_rgb((r, g, b): (u8, u8, u8)) -> Self {
        let brightness = 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b);
        if brightness > 127_500 { Self::Light } else { Self::Dark }
    }
}

/// What a piece of text is, for its look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// What is less important.
    Faint,
    /// What draws the eye: the prompt's mark, a selection, a mode.
    Accent,
    /// What the person wrote.
    Prompt,
    /// The name of a tool, a label.
    Label,
    /// What went well.
    Success,
    /// What may go wrong.
    Warning,
    /// What went wrong.
    Error,
    /// A heading.
    Heading,
    /// Code within text.
    InlineCode,
    /// A link.
    Link,
    /// What is quoted.
    Quote,
    /// What the model thought.
    Thinking,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// The words that make an added line differ.
    AddedWord,
    /// The words that make a removed line differ.
    RemovedWord,
    /// The chosen row of a list.
    Selected,
    /// A word of the language, in code.
    Keyword,
    /// A string, in code.
    StringLiteral,
    /// A comment, in code.
    Comment,
    /// A number or constant, in code.
    Constant,
    /// The name of a function, in code.
    Function,
    /// The name of a type, in code.
    TypeName,
}

/// Which look each role has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    depth: ColorDepth,
    background: Background,
}

impl Theme {
    /// Makes the default theme for a terminal.
    pub fn new(depth: ColorDepth, background: Background) -> Self {
        Self { depth, background }
    }

    /// Returns how many colours it uses.
    pub fn depth(&self) -> ColorDepth {
        self.depth
    }

    /// Returns the look of a role.
    pub fn style(&self, role: Role) -> Style {
        let plain = Style::default();
        let colored = |n: u8| Style { fg: Color::Ansi(n), ..plain };
        let style = match role {
            Role::Text => plain,
            Role::Faint => Style { is_dim: true, ..plain },
            Role::Accent => colored(6),
            Role::Prompt | Role::Label => Style { is_bold: true, ..plain },
            Role::Success => colored(2),
            Role::Warning => colored(3),
            Role::Error => colored(1),
            Role::Heading => Style { is_bold: true, ..colored(5) },
            Role::InlineCode => colored(6),
            Role::Link => Style { is_underlined: true, ..colored(4) },
            Role::Quote => Style { is_italic: true, ..plain },
            Role::Thinking => Style { is_dim: true, is_italic: true, ..plain },
            Role::Added => colored(2),
            Role::Removed => colored(1),
            Role::AddedWord => self.changed_word(colored(2), [(28, (0, 80, 30)), (157, (172, 242, 189))]),
            Role::RemovedWord => self.changed_word(colored(1), [(88, (110, 20, 25)), (217, (255, 190, 190))]),
            Role::Selected => Style { is_bold: true, ..colored(6) },
            Role::Keyword => colored(5),
            Role::StringLiteral => colored(2),
            Role::Comment => Style { is_dim: true, is_italic: true, ..plain },
            Role::Constant => colored(3),
            Role::Function => colored(4),
            Role::TypeName => colored(6),
        };
        self.adapt(style)
    }

    /// Returns a look with the colours that the terminal has.
    pub fn adapt(&self, style: Style) -> Style {
        Style { fg: self.adapt_color(style.fg), bg: self.adapt_color(style.bg), ..style }
    }

    /// The look of changed words: a background, dark or light, where there are colours for it, else a line below.
    fn changed_word(&self, style: Style, [dark, light]: [(u8, (u8, u8, u8)); 2]) -> Style {
        let (indexed, (r, g, b)) = match self.background {
            Background::Dark => dark,
            Background::Light => light,
        };
        match self.depth {
            ColorDepth::None | ColorDepth::Ansi => Style { is_bold: true, is_underlined: true, ..style },
            ColorDepth::Indexed => Style { bg: Color::Indexed(indexed), fg: Color::Default, ..style },
            ColorDepth::True => Style { bg: Color::Rgb(r, g, b), fg: Color::Default, ..style },
        }
    }

    fn adapt_color(&self, color: Color) -> Color {
        match (self.depth, color) {
            (_, Color::Default) | (ColorDepth::None, _) => Color::Default,
            (ColorDepth::True, color) | (_, color @ Color::Ansi(_)) => color,
            (ColorDepth::Indexed, Color::Rgb(r, g, b)) => Color::Indexed(cube_index(r, g, b)),
            (ColorDepth::Indexed, color) => color,
            (ColorDepth::Ansi, Color::Indexed(n @ 0..16)) => Color::Ansi(n),
            (ColorDepth::Ansi, Color::Indexed(n)) => {
                let (r, g, b) = cube_color(n);
                Color::Ansi(nearest_ansi(r, g, b))
            }
            (ColorDepth::Ansi, Color::Rgb(r, g, b)) => Color::Ansi(nearest_ansi(r, g, b)),
        }
    }
}

/// Returns the sign of the spinner after a time; a still one where motion is not wanted.
pub fn spinner(elapsed: Duration, is_motion_reduced: bool) -> &'static str {
    const SIGNS: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    if is_motion_reduced {
        return "•";
    }
    let tick = elapsed.as_millis() / 100 % 10;
    SIGNS[usize::try_from(tick).unwrap_or_default()]
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

    #[test]
    fn colours_become_the_nearest_that_the_terminal_has() {
        let red = Style { fg: Color::Rgb(255, 10, 10), bg: Color::Indexed(21), ..Style::default() };
        let cases = [
            (ColorDepth::None, Color::Default, Color::Default),
            (ColorDepth::Ansi, Color::Ansi(9), Color::Ansi(12)),
            (ColorDepth::Indexed, Color::Indexed(196), Color::Indexed(21)),
            (ColorDepth::True, Color::Rgb(255, 10, 10), Color::Indexed(21)),
        ];
        for (depth, fg, bg) in cases {
            let style = Theme::new(depth, Background::Dark).adapt(red);
            assert_eq!((style.fg, style.bg), (fg, bg), "{depth:?}");
        }
    }

    #[test]
    fn changed_words_have_a_background_that_fits_the_terminal() {
        let style = |depth, background, role| Theme::new(depth, background).style(role);
        let cases = [
            (ColorDepth::Indexed, Background::Dark, Color::Indexed(28), Color::Indexed(88)),
            (ColorDepth::Indexed, Background::Light, Color::Indexed(157), Color::Indexed(217)),
            (ColorDepth::True, Background::Dark, Color::Rgb(0, 80, 30), Color::Rgb(110, 20, 25)),
            (ColorDepth::True, Background::Light, Color::Rgb(172, 242, 189), Color::Rgb(255, 190, 190)),
        ];
        for (depth, background, added, removed) in cases {
            assert_eq!(style(depth, background, Role::AddedWord).bg, added, "{depth:?} {background:?}");
            assert_eq!(style(depth, background, Role::RemovedWord).bg, removed, "{depth:?} {background:?}");
        }
        for background in [Background::Dark, Background::Light] {
            let word = style(ColorDepth::Ansi, background, Role::AddedWord);
            assert_eq!((word.fg, word.bg, word.is_underlined), (Color::Ansi(2), Color::Default, true));
            assert_eq!(style(ColorDepth::Ansi, background, Role::Removed).fg, Color::Ansi(1));
        }
    }

    #[test]
    fn theme_without_colours_has_none() {
        let theme = Theme::new(ColorDepth::None, Background::Light);
        for role in [Role::Error, Role::AddedWord, Role::Link, Role::Keyword, Role::Selected] {
            let style = theme.style(role);
            assert_eq!((style.fg, style.bg), (Color::Default, Color::Default), "{role:?}");
        }
    }

    #[test]
    fn spinner_turns_with_time_unless_motion_is_reduced() {
        assert_ne!(spinner(Duration::from_millis(0), false), spinner(Duration::from_millis(100), false));
        assert_eq!(spinner(Duration::from_millis(0), true), spinner(Duration::from_millis(100), true));
    }
}
