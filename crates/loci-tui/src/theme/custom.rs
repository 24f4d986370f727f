//! Themes of one's own: files in `<config home>/themes/`, one each.
//!
//! ```text
//! {"name": "Night", "base": "dark", "overrides": {"claude": "#bd93f9", "error": "ansi:redBright"}}
//! ```
//!
//! All fields may be missing. Tokens that are not known and colours that cannot be read are passed over, so that a slip of
//! the pen breaks nothing; [`ThemeFile::problems`] says what was.

use serde_json::Value;

use super::palette::{Preset, ThemeToken};
use crate::text::Color;

/// The sixteen colours, by the names that theme files have for them.
const ANSI_NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "white",
    "blackBright",
    "redBright",
    "greenBright",
    "yellowBright",
    "blueBright",
    "magentaBright",
    "cyanBright",
    "whiteBright",
];

/// A theme of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThemeFile {
    /// What settings call it by, behind `custom:`; the name of its file, with its plugin's before it.
    pub slug: String,
    /// What people call it by.
    pub name: String,
    /// What it changes.
    pub base: Preset,
    /// The colours that it changes.
    pub overrides: Vec<(ThemeToken, Color)>,
    /// What was passed over, one sentence each.
    pub problems: Vec<String>,
}

impl ThemeFile {
    /// Reads a file.
    pub fn parse(slug: &str, json: &str) -> Self {
        let mut problems = Vec::new();
        let value = serde_json::from_str(json).unwrap_or_else(|error| {
            problems.push(format!("it is not JSON: {error}"));
            Value::Null
        });
        let base = value.get("base").and_then(Value::as_str).map(|name| {
            let preset = Preset::from_name(name);
            if preset.is_none() {
                problems.push(format!("`{name}` is no theme to begin with"));
            }
            preset.unwrap_or(Preset::Dark)
        });
        let mut overrides = Vec::new();
        for (token, color) in value.get("overrides").and_then(Value::as_object).into_iter().flatten() {
            match (ThemeToken::from_name(token), color.as_str().and_then(parse_color)) {
                (Some(token), Some(color)) => overrides.push((token, color)),
                (_, None) => problems.push(format!("`{token}` has no colour that can be read: {color}")),
                // Others draw things that loci does not have.
                (None, Some(_)) => {}
            }
        }
        let name = value.get("name").and_then(Value::as_str).filter(|name| !name.trim().is_empty());
        Self {
            slug: slug.to_owned(),
            name: name.unwrap_or(slug).to_owned(),
            base: base.unwrap_or(Preset::Dark),
            overrides,
            problems,
        }
    }
}

/// Reads a colour: `#rrggbb`, `#rgb`, `rgb(r,g,b)`, `ansi256(n)` or `ansi:<name>`.
fn parse_color(text: &str) -> Option<Color> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix('#') {
        let digits: Vec<u8> = digits
            .chars()
            .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
            .collect::<Option<_>>()?;
        return match digits[..] {
            [r, g, b] => Some(Color::Rgb(r * 17, g * 17, b * 17)),
            [r, s, g, h, b, c] => Some(Color::Rgb(r * 16 + s, g * 16 + h, b * 16 + c)),
            _ => None,
        };
    }
    if let Some(name) = text.strip_prefix("ansi:") {
        let place = ANSI_NAMES.iter().position(|known| *known == name)?;
        return u8::try_from(place).ok().map(Color::Ansi);
    }
    let inside = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(number) = inside("ansi256") {
        return number.trim().parse().ok().map(Color::Indexed);
    }
    let parts: Option<Vec<u8>> = inside("rgb")?.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts?[..] {
        [r, g, b] => Some(Color::Rgb(r, g, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_in_every_notation() {
        for (text, expected) in [
            ("#bd93f9", Some(Color::Rgb(0xbd, 0x93, 0xf9))),
            ("#fa0", Some(Color::Rgb(0xff, 0xaa, 0))),
            ("rgb(1, 2,3)", Some(Color::Rgb(1, 2, 3))),
            ("ansi256(208)", Some(Color::Indexed(208))),
            ("ansi:red", Some(Color::Ansi(1))),
            ("ansi:cyanBright", Some(Color::Ansi(14))),
            ("red", None),
            ("#ab", None),
            ("#ggg", None),
            ("#äöü", None),
            ("rgb(1,2)", None),
            ("rgb(1,2,300)", None),
            ("ansi256(256)", None),
            ("ansi:pink", None),
            ("", None),
        ] {
            assert_eq!(parse_color(text), expected, "{text}");
        }
    }

    #[test]
    fn unusable_theme_value_is_passed_over_and_told() {
        let file = ThemeFile::parse(
            "mine",
            r##"{"name": "Mine", "base": "light", "overrides": {"error": "#fff", "claude": "pink", "nosuch": "#000"}}"##,
        );
        assert_eq!((file.name.as_str(), file.base), ("Mine", Preset::Light));
        assert_eq!(file.overrides, [(ThemeToken::Error, Color::Rgb(255, 255, 255))]);
        assert_eq!(file.problems.len(), 1, "{:?}", file.problems);
        let bare = ThemeFile::parse("bare", "{}");
        assert_eq!((bare.name.as_str(), bare.base, bare.problems.len()), ("bare", Preset::Dark, 0));
        for broken in ["", "[", "3"] {
            assert!(ThemeFile::parse("x", broken).overrides.is_empty());
        }
        assert_eq!(ThemeFile::parse("x", r#"{"base": "sepia"}"#).problems.len(), 1);
    }
}
