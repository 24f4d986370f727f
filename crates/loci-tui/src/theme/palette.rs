//! The colours that a theme consists of, and the themes that come with loci.

use super::{Backdrop, ColorDepth};
use crate::named::named;
use crate::text::Color;

named! {
    /// A colour of a theme, by the name that theme files have for it. `heading`, `link` and those that begin with `syntax`
    /// are ours; all other names are shared with theme files of others.
    ThemeToken {
        Claude = "claude",
        Text = "text",
        Inactive = "inactive",
        Subtle = "subtle",
        Suggestion = "suggestion",
        Permission = "permission",
        Remember = "remember",
        Success = "success",
        Error = "error",
        Warning = "warning",
        PlanMode = "planMode",
        AutoAccept = "autoAccept",
        BashBorder = "bashBorder",
        PromptBorder = "promptBorder",
        DiffAdded = "diffAdded",
        DiffRemoved = "diffRemoved",
        DiffAddedWord = "diffAddedWord",
        DiffRemovedWord = "diffRemovedWord",
        UserMessageBackground = "userMessageBackground",
        SelectionBg = "selectionBg",
        RateLimitFill = "rate_limit_fill",
        RateLimitEmpty = "rate_limit_empty",
        BriefLabelYou = "briefLabelYou",
        BriefLabelClaude = "briefLabelClaude",
        RainbowRed = "rainbow_red",
        RainbowOrange = "rainbow_orange",
        RainbowYellow = "rainbow_yellow",
        RainbowGreen = "rainbow_green",
        RainbowBlue = "rainbow_blue",
        RainbowIndigo = "rainbow_indigo",
        RainbowViolet = "rainbow_violet",
        Heading = "heading",
        Link = "link",
        SyntaxKeyword = "syntaxKeyword",
        SyntaxString = "syntaxString",
        SyntaxConstant = "syntaxConstant",
        SyntaxFunction = "syntaxFunction",
        SyntaxType = "syntaxType",
    }
}

named! {
    /// A theme that comes with loci, by the name that settings have for it. Those of high contrast are ours.
    Preset {
        Dark = "dark",
        Light = "light",
        DarkDaltonized = "dark-daltonized",
        LightDaltonized = "light-daltonized",
        DarkAnsi = "dark-ansi",
        LightAnsi = "light-ansi",
        DarkHighContrast = "dark-high-contrast",
        LightHighContrast = "light-high-contrast",
    }
}

/// A colour for each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette([Color; ThemeToken::ALL.len()]);

impl Palette {
    /// The terminal's own colours.
    pub const TERMINAL: Self = Self::from_colors(&[
        (ThemeToken::Claude, Color::Ansi(6)),
        (ThemeToken::Suggestion, Color::Ansi(6)),
        (ThemeToken::Permission, Color::Ansi(6)),
        (ThemeToken::Remember, Color::Ansi(4)),
        (ThemeToken::Success, Color::Ansi(2)),
        (ThemeToken::Error, Color::Ansi(1)),
        (ThemeToken::Warning, Color::Ansi(3)),
        (ThemeToken::PlanMode, Color::Ansi(6)),
        (ThemeToken::AutoAccept, Color::Ansi(6)),
        (ThemeToken::RateLimitFill, Color::Ansi(6)),
        (ThemeToken::RainbowRed, Color::Ansi(1)),
        (ThemeToken::RainbowOrange, Color::Ansi(9)),
        (ThemeToken::RainbowYellow, Color::Ansi(3)),
        (ThemeToken::RainbowGreen, Color::Ansi(2)),
        (ThemeToken::RainbowBlue, Color::Ansi(6)),
        (ThemeToken::RainbowIndigo, Color::Ansi(4)),
        (ThemeToken::RainbowViolet, Color::Ansi(5)),
        (ThemeToken::Heading, Color::Ansi(5)),
        (ThemeToken::Link, Color::Ansi(4)),
        (ThemeToken::SyntaxKeyword, Color::Ansi(5)),
        (ThemeToken::SyntaxString, Color::Ansi(2)),
        (ThemeToken::SyntaxConstant, Color::Ansi(3)),
        (ThemeToken::SyntaxFunction, Color::Ansi(4)),
        (ThemeToken::SyntaxType, Color::Ansi(6)),
    ]);

    /// Returns the colour of a token, which is never another token.
    pub const fn get(&self, token: ThemeToken) -> Color {
        self.0[token as usize]
    }

    /// Returns the palette with other colours for some tokens.
    #[must_use]
    pub fn with(mut self, colors: &[(ThemeToken, Color)]) -> Self {
        for (token, color) in colors {
            self.0[*token as usize] = *color;
        }
        self
    }

    /// Makes a palette of these colours; all else has the terminal's own.
    const fn from_colors(colors: &[(ThemeToken, Color)]) -> Self {
        let mut all = [Color::Default; ThemeToken::ALL.len()];
        let mut idx = 0;
        while idx < colors.len() {
            all[colors[idx].0 as usize] = colors[idx].1;
            idx += 1;
        }
        Self(all)
    }
}

impl Preset {
    /// Returns what it is made to stand on.
    pub fn backdrop(self) -> Backdrop {
        match self {
            Self::Dark | Self::DarkDaltonized | Self::DarkAnsi | Self::DarkHighContrast => Backdrop::Dark,
            Self::Light | Self::LightDaltonized | Self::LightAnsi | Self::LightHighContrast => {
                Backdrop::Light
            }
        }
    }

    /// Returns its colours for a terminal. One of sixteen colours has its own, which somebody chose to be readable there.
    pub(super) fn palette(self, depth: ColorDepth) -> Palette {
        let is_small = matches!(depth, ColorDepth::None | ColorDepth::Ansi);
        match self {
            Self::DarkDaltonized | Self::LightDaltonized if is_small => Palette::TERMINAL
                .with(&[(ThemeToken::Success, Color::Ansi(4)), (ThemeToken::Error, Color::Ansi(3))]),
            Self::DarkAnsi | Self::LightAnsi => Palette::TERMINAL,
            _ if is_small => Palette::TERMINAL,
            Self::Dark => DARK,
            Self::Light => LIGHT,
            Self::DarkDaltonized => DARK.with(DALTONIZED_ON_DARK),
            Self::LightDaltonized => LIGHT.with(DALTONIZED_ON_LIGHT),
            Self::DarkHighContrast => DARK_HIGH_CONTRAST,
            Self::LightHighContrast => LIGHT_HIGH_CONTRAST,
        }
    }
}

const fn hex(rgb: u32) -> Color {
    Color::Rgb((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8)
}

const DARK: Palette = Palette::from_colors(&[
    (ThemeToken::Claude, hex(0x5fc7c7)),
    (ThemeToken::Inactive, hex(0x8f959e)),
    (ThemeToken::Subtle, hex(0xa7adb5)),
    (ThemeToken::Suggestion, hex(0x8ab4f8)),
    (ThemeToken::Permission, hex(0x9cc4ff)),
    (ThemeToken::Remember, hex(0x8ab4f8)),
    (ThemeToken::Success, hex(0x6cc77a)),
    (ThemeToken::Error, hex(0xff7b72)),
    (ThemeToken::Warning, hex(0xe3b341)),
    (ThemeToken::PlanMode, hex(0x56b6a8)),
    (ThemeToken::AutoAccept, hex(0xb494f0)),
    (ThemeToken::BashBorder, hex(0xf778ba)),
    (ThemeToken::PromptBorder, hex(0x8f959e)),
    (ThemeToken::DiffAdded, hex(0x17351f)),
    (ThemeToken::DiffRemoved, hex(0x3d1a1d)),
    (ThemeToken::DiffAddedWord, hex(0x24683a)),
    (ThemeToken::DiffRemovedWord, hex(0x7d2b32)),
    (ThemeToken::UserMessageBackground, hex(0x2a2f37)),
    (ThemeToken::SelectionBg, hex(0x264f78)),
    (ThemeToken::RateLimitFill, hex(0x8ab4f8)),
    (ThemeToken::RateLimitEmpty, hex(0x3a4048)),
    (ThemeToken::BriefLabelYou, hex(0x8ab4f8)),
    (ThemeToken::BriefLabelClaude, hex(0x5fc7c7)),
    (ThemeToken::RainbowRed, hex(0xff6b6b)),
    (ThemeToken::RainbowOrange, hex(0xffa94d)),
    (ThemeToken::RainbowYellow, hex(0xffe066)),
    (ThemeToken::RainbowGreen, hex(0x69db7c)),
    (ThemeToken::RainbowBlue, hex(0x74c0fc)),
    (ThemeToken::RainbowIndigo, hex(0x91a7ff)),
    (ThemeToken::RainbowViolet, hex(0xda77f2)),
    (ThemeToken::Heading, hex(0xd2a8ff)),
    (ThemeToken::Link, hex(0x79c0ff)),
    (ThemeToken::SyntaxKeyword, hex(0xff9492)),
    (ThemeToken::SyntaxString, hex(0x9ecbff)),
    (ThemeToken::SyntaxConstant, hex(0xe3b341)),
    (ThemeToken::SyntaxFunction, hex(0xd2a8ff)),
    (ThemeToken::SyntaxType, hex(0x7ee0c0)),
]);

const LIGHT: Palette = Palette::from_colors(&[
    (ThemeToken::Claude, hex(0x0b7285)),
    (ThemeToken::Inactive, hex(0x6a737d)),
    (ThemeToken::Subtle, hex(0x57606a)),
    (ThemeToken::Suggestion, hex(0x0550ae)),
    (ThemeToken::Permission, hex(0x0a58ca)),
    (ThemeToken::Remember, hex(0x0550ae)),
    (ThemeToken::Success, hex(0x1a7f37)),
    (ThemeToken::Error, hex(0xcf222e)),
    (ThemeToken::Warning, hex(0x9a6700)),
    (ThemeToken::PlanMode, hex(0x0f766e)),
    (ThemeToken::AutoAccept, hex(0x6f42c1)),
    (ThemeToken::BashBorder, hex(0xbf3989)),
    (ThemeToken::PromptBorder, hex(0x6a737d)),
    (ThemeToken::DiffAdded, hex(0xdafbe1)),
    (ThemeToken::DiffRemoved, hex(0xffebe9)),
    (ThemeToken::DiffAddedWord, hex(0x9be9a8)),
    (ThemeToken::DiffRemovedWord, hex(0xffb3ad)),
    (ThemeToken::UserMessageBackground, hex(0xeef1f4)),
    (ThemeToken::SelectionBg, hex(0xb6d7ff)),
    (ThemeToken::RateLimitFill, hex(0x0550ae)),
    (ThemeToken::RateLimitEmpty, hex(0xd0d7de)),
    (ThemeToken::BriefLabelYou, hex(0x0550ae)),
    (ThemeToken::BriefLabelClaude, hex(0x0b7285)),
    (ThemeToken::RainbowRed, hex(0xd6336c)),
    (ThemeToken::RainbowOrange, hex(0xc2410c)),
    (ThemeToken::RainbowYellow, hex(0x9a6700)),
    (ThemeToken::RainbowGreen, hex(0x267a36)),
    (ThemeToken::RainbowBlue, hex(0x1971c2)),
    (ThemeToken::RainbowIndigo, hex(0x3b5bdb)),
    (ThemeToken::RainbowViolet, hex(0x9c36b5)),
    (ThemeToken::Heading, hex(0x6639ba)),
    (ThemeToken::Link, hex(0x0969da)),
    (ThemeToken::SyntaxKeyword, hex(0xb31d28)),
    (ThemeToken::SyntaxString, hex(0x0a3069)),
    (ThemeToken::SyntaxConstant, hex(0x9a6700)),
    (ThemeToken::SyntaxFunction, hex(0x6639ba)),
    (ThemeToken::SyntaxType, hex(0x0f766e)),
]);

/// Blue and orange in the place of green and red.
const DALTONIZED_ON_DARK: &[(ThemeToken, Color)] = &[
    (ThemeToken::Success, hex(0x58a6ff)),
    (ThemeToken::Error, hex(0xffa657)),
    (ThemeToken::Warning, hex(0xf2e05c)),
    (ThemeToken::DiffAdded, hex(0x0c2d4d)),
    (ThemeToken::DiffRemoved, hex(0x40270b)),
    (ThemeToken::DiffAddedWord, hex(0x1558a0)),
    (ThemeToken::DiffRemovedWord, hex(0x8a4b08)),
    (ThemeToken::SyntaxKeyword, hex(0xffa657)),
];

const DALTONIZED_ON_LIGHT: &[(ThemeToken, Color)] = &[
    (ThemeToken::Success, hex(0x0550ae)),
    (ThemeToken::Error, hex(0xb35900)),
    (ThemeToken::Warning, hex(0x6e5600)),
    (ThemeToken::DiffAdded, hex(0xddf4ff)),
    (ThemeToken::DiffRemoved, hex(0xfff1e0)),
    (ThemeToken::DiffAddedWord, hex(0x9dd4ff)),
    (ThemeToken::DiffRemovedWord, hex(0xffc680)),
    (ThemeToken::SyntaxKeyword, hex(0xb35900)),
];

const DARK_HIGH_CONTRAST: Palette = Palette::from_colors(&[
    (ThemeToken::Claude, hex(0x00ffff)),
    (ThemeToken::Text, hex(0xffffff)),
    (ThemeToken::Inactive, hex(0xe0e0e0)),
    (ThemeToken::Subtle, hex(0xf0f0f0)),
    (ThemeToken::Suggestion, hex(0xffff00)),
    (ThemeToken::Permission, hex(0x00ffff)),
    (ThemeToken::Remember, hex(0x9ad0ff)),
    (ThemeToken::Success, hex(0x00ff5f)),
    (ThemeToken::Error, hex(0xff8c8c)),
    (ThemeToken::Warning, hex(0xffd75f)),
    (ThemeToken::PlanMode, hex(0x00ffff)),
    (ThemeToken::AutoAccept, hex(0xff9cff)),
    (ThemeToken::BashBorder, hex(0xff9cff)),
    (ThemeToken::PromptBorder, hex(0xffffff)),
    (ThemeToken::DiffAdded, hex(0x003d12)),
    (ThemeToken::DiffRemoved, hex(0x520000)),
    (ThemeToken::DiffAddedWord, hex(0x007a24)),
    (ThemeToken::DiffRemovedWord, hex(0xa80000)),
    (ThemeToken::UserMessageBackground, hex(0x303030)),
    (ThemeToken::SelectionBg, hex(0x0047b3)),
    (ThemeToken::RateLimitFill, hex(0x00ffff)),
    (ThemeToken::RateLimitEmpty, hex(0x606060)),
    (ThemeToken::BriefLabelYou, hex(0xffff00)),
    (ThemeToken::BriefLabelClaude, hex(0x00ffff)),
    (ThemeToken::RainbowRed, hex(0xff8c8c)),
    (ThemeToken::RainbowOrange, hex(0xffb366)),
    (ThemeToken::RainbowYellow, hex(0xffff66)),
    (ThemeToken::RainbowGreen, hex(0x66ff66)),
    (ThemeToken::RainbowBlue, hex(0x66e0ff)),
    (ThemeToken::RainbowIndigo, hex(0xa6b8ff)),
    (ThemeToken::RainbowViolet, hex(0xff9cff)),
    (ThemeToken::Heading, hex(0xffff00)),
    (ThemeToken::Link, hex(0x66e0ff)),
    (ThemeToken::SyntaxKeyword, hex(0xffb366)),
    (ThemeToken::SyntaxString, hex(0x66ff66)),
    (ThemeToken::SyntaxConstant, hex(0xffff66)),
    (ThemeToken::SyntaxFunction, hex(0x66e0ff)),
    (ThemeToken::SyntaxType, hex(0xff9cff)),
]);

const LIGHT_HIGH_CONTRAST: Palette = Palette::from_colors(&[
    (ThemeToken::Claude, hex(0x00305c)),
    (ThemeToken::Text, hex(0x000000)),
    (ThemeToken::Inactive, hex(0x303030)),
    (ThemeToken::Subtle, hex(0x202020)),
    (ThemeToken::Suggestion, hex(0x00208c)),
    (ThemeToken::Permission, hex(0x00208c)),
    (ThemeToken::Remember, hex(0x00208c)),
    (ThemeToken::Success, hex(0x004d1a)),
    (ThemeToken::Error, hex(0x8c0000)),
    (ThemeToken::Warning, hex(0x663d00)),
    (ThemeToken::PlanMode, hex(0x004d4d)),
    (ThemeToken::AutoAccept, hex(0x4b0082)),
    (ThemeToken::BashBorder, hex(0x800040)),
    (ThemeToken::PromptBorder, hex(0x000000)),
    (ThemeToken::DiffAdded, hex(0xc8f7d0)),
    (ThemeToken::DiffRemoved, hex(0xffd6d6)),
    (ThemeToken::DiffAddedWord, hex(0x7fe08f)),
    (ThemeToken::DiffRemovedWord, hex(0xff9a9a)),
    (ThemeToken::UserMessageBackground, hex(0xe0e0e0)),
    (ThemeToken::SelectionBg, hex(0x99c2ff)),
    (ThemeToken::RateLimitFill, hex(0x00208c)),
    (ThemeToken::RateLimitEmpty, hex(0xa0a0a0)),
    (ThemeToken::BriefLabelYou, hex(0x00208c)),
    (ThemeToken::BriefLabelClaude, hex(0x00305c)),
    (ThemeToken::RainbowRed, hex(0x8c0000)),
    (ThemeToken::RainbowOrange, hex(0x803300)),
    (ThemeToken::RainbowYellow, hex(0x665200)),
    (ThemeToken::RainbowGreen, hex(0x004d1a)),
    (ThemeToken::RainbowBlue, hex(0x003d80)),
    (ThemeToken::RainbowIndigo, hex(0x1a1a80)),
    (ThemeToken::RainbowViolet, hex(0x5c0073)),
    (ThemeToken::Heading, hex(0x4b0082)),
    (ThemeToken::Link, hex(0x00208c)),
    (ThemeToken::SyntaxKeyword, hex(0x803300)),
    (ThemeToken::SyntaxString, hex(0x004d1a)),
    (ThemeToken::SyntaxConstant, hex(0x665200)),
    (ThemeToken::SyntaxFunction, hex(0x00208c)),
    (ThemeToken::SyntaxType, hex(0x5c0073)),
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_may_name_every_theme_that_comes_with_loci() {
        let names: Vec<&str> =
            std::iter::once("auto").chain(Preset::ALL.iter().map(|preset| preset.name())).collect();
        assert_eq!(names, loci_app::settings::editor::THEMES);
    }

    fn luminance(color: Color) -> f64 {
        let Color::Rgb(r, g, b) = color else { panic!("{color:?}") };
        let linear = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    fn contrast(one: Color, other: Color) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn letters_stand_out_from_the_background() {
        let letters = ThemeToken::ALL.iter().filter(|token| {
            !matches!(
                token,
                ThemeToken::DiffAdded
                    | ThemeToken::DiffRemoved
                    | ThemeToken::DiffAddedWord
                    | ThemeToken::DiffRemovedWord
                    | ThemeToken::UserMessageBackground
                    | ThemeToken::SelectionBg
                    | ThemeToken::RateLimitEmpty
            )
        });
        let letters: Vec<ThemeToken> = letters.copied().collect();
        for preset in Preset::ALL.iter().filter(|preset| !preset.name().ends_with("ansi")) {
            let (behind, least) = match (preset.backdrop(), preset.name().contains("contrast")) {
                (Backdrop::Dark, false) => (hex(0x1e1e1e), 4.5),
                (Backdrop::Dark, true) => (hex(0x1e1e1e), 7.0),
                (Backdrop::Light, false) => (hex(0xffffff), 4.5),
                (Backdrop::Light, true) => (hex(0xffffff), 7.0),
            };
            let palette = preset.palette(ColorDepth::True);
            for token in &letters {
                let color = palette.get(*token);
                if color != Color::Default {
                    let seen = contrast(color, behind);
                    assert!(seen >= least, "{} {}: {seen:.1}", preset.name(), token.name());
                }
            }
        }
    }
}
