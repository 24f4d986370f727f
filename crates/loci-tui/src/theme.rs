//! Looks by role, and what a terminal can show of them.
//!
//! A theme is a palette: a colour for each token (`palette` has the tokens and the presets, `custom` reads files with
//! palettes of one's own). Without a setting the terminal's own sixteen colours carry everything, so that the terminal's
//! theme decides; backgrounds of changed words alone are mixed where the terminal has more. No meaning is carried by a
//! colour alone. Rows that are laid out without a theme at hand name tokens ([`Color::Themed`]); [`Theme::adapt`] makes
//! colours of them.

mod custom;
mod depth;
mod palette;

use std::time::Duration;

use crate::text::{Color, Style};

pub use custom::ThemeFile;
pub use depth::ColorDepth;
pub use palette::{Palette, Preset, ThemeToken};

/// What is behind the letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backdrop {
    /// Dark, or not known.
    #[default]
    Dark,
    /// Light.
    Light,
}

impl Backdrop {
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
    backdrop: Backdrop,
    palette: Palette,
}

impl Theme {
    /// Makes the theme of the terminal's own colours.
    pub fn new(depth: ColorDepth, backdrop: Backdrop) -> Self {
        Self { depth, backdrop, palette: Palette::TERMINAL }
    }

    /// Makes a theme that comes with loci.
    pub fn from_preset(depth: ColorDepth, preset: Preset) -> Self {
        Self { depth, backdrop: preset.backdrop(), palette: preset.palette(depth) }
    }

    /// Makes the theme that a setting names; `backdrop` is the terminal's, `files` are themes of one's own. Where there
    /// is no such theme, the error says so.
    pub fn from_setting(
        name: Option<&str>,
        files: &[ThemeFile],
        depth: ColorDepth,
        backdrop: Backdrop,
    ) -> Result<Self, String> {
        let Some(name) = name else { return Ok(Self::new(depth, backdrop)) };
        if name == "auto" {
            let preset = match backdrop {
                Backdrop::Dark => Preset::Dark,
                Backdrop::Light => Preset::Light,
            };
            return Ok(Self::from_preset(depth, preset));
        }
        if let Some(preset) = Preset::from_name(name) {
            return Ok(Self::from_preset(depth, preset));
        }
        let file = files.iter().find(|file| name.strip_prefix("custom:") == Some(&file.slug));
        let file =
            file.ok_or_else(|| format!("There is no theme `{name}`; `/theme` lists those there are"))?;
        let base = Self::from_preset(depth, file.base);
        Ok(Self { palette: base.palette.with(&file.overrides), ..base })
    }

    /// Returns how many colours it uses.
    pub fn depth(&self) -> ColorDepth {
        self.depth
    }

    /// Returns the look of a role.
    pub fn style(&self, role: Role) -> Style {
        let plain = Style::default();
        let colored = |token: ThemeToken| Style { fg: Color::Themed(token), ..plain };
        let style = match role {
            Role::Text => colored(ThemeToken::Text),
            Role::Faint => Style { is_dim: true, ..colored(ThemeToken::Inactive) },
            Role::Accent => colored(ThemeToken::Claude),
            Role::Prompt => Style { is_bold: true, ..colored(ThemeToken::BriefLabelYou) },
            Role::Label => Style { is_bold: true, ..colored(ThemeToken::Text) },
            Role::Success => colored(ThemeToken::Success),
            Role::Warning => colored(ThemeToken::Warning),
            Role::Error => colored(ThemeToken::Error),
            Role::Heading => Style { is_bold: true, ..colored(ThemeToken::Heading) },
            Role::InlineCode => colored(ThemeToken::Permission),
            Role::Link => Style { is_underlined: true, ..colored(ThemeToken::Link) },
            Role::Quote => Style { is_italic: true, ..colored(ThemeToken::Subtle) },
            Role::Thinking => Style { is_dim: true, is_italic: true, ..colored(ThemeToken::Inactive) },
            Role::Added => self.changed_line(ThemeToken::DiffAdded, ThemeToken::Success),
            Role::Removed => self.changed_line(ThemeToken::DiffRemoved, ThemeToken::Error),
            Role::AddedWord => {
                let mixed = [(28, (0, 80, 30)), (157, (172, 242, 189))];
                self.changed_word(ThemeToken::DiffAddedWord, ThemeToken::Success, mixed)
            }
            Role::RemovedWord => {
                let mixed = [(88, (110, 20, 25)), (217, (255, 190, 190))];
                self.changed_word(ThemeToken::DiffRemovedWord, ThemeToken::Error, mixed)
            }
            Role::Selected => Style { is_bold: true, ..colored(ThemeToken::Suggestion) },
            Role::Keyword => colored(ThemeToken::SyntaxKeyword),
            Role::StringLiteral => colored(ThemeToken::SyntaxString),
            Role::Comment => Style { is_dim: true, is_italic: true, ..colored(ThemeToken::Inactive) },
            Role::Constant => colored(ThemeToken::SyntaxConstant),
            Role::Function => colored(ThemeToken::SyntaxFunction),
            Role::TypeName => colored(ThemeToken::SyntaxType),
        };
        self.adapt(style)
    }

    /// Returns a look with the colours of the theme, as far as the terminal has them.
    pub fn adapt(&self, style: Style) -> Style {
        let fg = self.adapt_color(style.fg);
        // What has a colour of its own to be faint in is not made fainter still.
        let is_faint_color = style.fg == Color::Themed(ThemeToken::Inactive) && fg != Color::Default;
        let is_dim = style.is_dim && !is_faint_color;
        Style { fg, bg: self.adapt_color(style.bg), is_dim, ..style }
    }

    /// The look of a changed line: a background where the palette has one, else the colour of the letters.
    fn changed_line(&self, background: ThemeToken, letters: ThemeToken) -> Style {
        match self.palette.get(background) {
            Color::Default => Style { fg: Color::Themed(letters), ..Style::default() },
            _ => Style { bg: Color::Themed(background), ..Style::default() },
        }
    }

    /// The look of changed words: a background, dark or light, where there are colours for it, else a line below.
    fn changed_word(
        &self,
        background: ThemeToken,
        letters: ThemeToken,
        [dark, light]: [(u8, (u8, u8, u8)); 2],
    ) -> Style {
        if self.palette.get(background) != Color::Default {
            return Style { bg: Color::Themed(background), is_bold: true, ..Style::default() };
        }
        let (indexed, (r, g, b)) = match self.backdrop {
            Backdrop::Dark => dark,
            Backdrop::Light => light,
        };
        match self.depth {
            ColorDepth::None | ColorDepth::Ansi => {
                let fg = Color::Themed(letters);
                Style { fg, is_bold: true, is_underlined: true, ..Style::default() }
            }
            ColorDepth::Indexed => Style { bg: Color::Indexed(indexed), ..Style::default() },
            ColorDepth::True => Style { bg: Color::Rgb(r, g, b), ..Style::default() },
        }
    }

    fn adapt_color(&self, color: Color) -> Color {
        let color = match color {
            Color::Themed(token) => self.palette.get(token),
            color => color,
        };
        self.depth.nearest(color)
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

#[cfg(test)]
mod tests {
    use super::*;

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
            let style = Theme::new(depth, Backdrop::Dark).adapt(red);
            assert_eq!((style.fg, style.bg), (fg, bg), "{depth:?}");
        }
    }

    #[test]
    fn changed_words_have_a_background_that_fits_the_terminal() {
        let style = |depth, background, role| Theme::new(depth, background).style(role);
        let cases = [
            (ColorDepth::Indexed, Backdrop::Dark, Color::Indexed(28), Color::Indexed(88)),
            (ColorDepth::Indexed, Backdrop::Light, Color::Indexed(157), Color::Indexed(217)),
            (ColorDepth::True, Backdrop::Dark, Color::Rgb(0, 80, 30), Color::Rgb(110, 20, 25)),
            (ColorDepth::True, Backdrop::Light, Color::Rgb(172, 242, 189), Color::Rgb(255, 190, 190)),
        ];
        for (depth, background, added, removed) in cases {
            assert_eq!(style(depth, background, Role::AddedWord).bg, added, "{depth:?} {background:?}");
            assert_eq!(style(depth, background, Role::RemovedWord).bg, removed, "{depth:?} {background:?}");
        }
        for background in [Backdrop::Dark, Backdrop::Light] {
            let word = style(ColorDepth::Ansi, background, Role::AddedWord);
            assert_eq!((word.fg, word.bg, word.is_underlined), (Color::Ansi(2), Color::Default, true));
            assert_eq!(style(ColorDepth::Ansi, background, Role::Removed).fg, Color::Ansi(1));
        }
    }

    #[test]
    fn theme_without_colours_has_none() {
        let theme = Theme::new(ColorDepth::None, Backdrop::Light);
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

    #[test]
    fn settings_name_themes_and_files_are_laid_over_their_base() {
        let file = ThemeFile::parse("night", r##"{"base": "light", "overrides": {"error": "#102030"}}"##);
        let files = [file];
        let theme = |name, background| Theme::from_setting(name, &files, ColorDepth::True, background);
        let (dark, light) = (Backdrop::Dark, Backdrop::Light);
        assert_eq!(theme(None, dark), Ok(Theme::new(ColorDepth::True, dark)));
        assert_eq!(theme(Some("auto"), dark), theme(Some("dark"), light));
        assert_eq!(theme(Some("auto"), light), theme(Some("light"), dark));
        let custom = theme(Some("custom:night"), dark).unwrap();
        assert_eq!(custom.style(Role::Error).fg, Color::Rgb(16, 32, 48));
        assert_eq!(custom.style(Role::Success), theme(Some("light"), dark).unwrap().style(Role::Success));
        for unknown in ["custom:day", "nosuch", ""] {
            assert!(theme(Some(unknown), dark).unwrap_err().contains("There is no theme"), "{unknown}");
        }
    }

    #[test]
    fn every_preset_has_a_look_of_its_own_for_what_was_added_and_removed() {
        for preset in Preset::ALL {
            for depth in [ColorDepth::Ansi, ColorDepth::Indexed, ColorDepth::True] {
                let theme = Theme::from_preset(depth, *preset);
                let pairs = [
                    (Role::Added, Role::Removed),
                    (Role::AddedWord, Role::RemovedWord),
                    (Role::Success, Role::Error),
                    (Role::Added, Role::AddedWord),
                ];
                for (one, other) in pairs {
                    assert_ne!(theme.style(one), theme.style(other), "{preset:?} {depth:?} {one:?}");
                }
                for token in ThemeToken::ALL {
                    let style = theme.adapt(Style { fg: Color::Themed(*token), ..Style::default() });
                    assert!(!matches!(style.fg, Color::Themed(_)), "{token:?}");
                    let is_in_depth = match depth {
                        ColorDepth::Ansi => !matches!(style.fg, Color::Rgb(..) | Color::Indexed(_)),
                        ColorDepth::Indexed => !matches!(style.fg, Color::Rgb(..)),
                        ColorDepth::None | ColorDepth::True => true,
                    };
                    assert!(is_in_depth, "{preset:?} {depth:?} {token:?}");
                }
            }
        }
    }
}
