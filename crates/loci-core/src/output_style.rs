//! Output styles: how the model is to work and talk, in the place of the usual way or beside it.

use std::path::PathBuf;

use crate::front_matter::{self, FieldReader};

/// The name that means the usual way.
pub const DEFAULT_STYLE: &str = "default";

/// A style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputStyle {
    /// What it is chosen by.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether what the usual way says about doing the work stays.
    pub keeps_coding: bool,
    /// What the model is told.
    pub text: String,
    /// Whether it counts as long as the plugin that brings it is on.
    pub is_forced: bool,
    /// The file, if it is one.
    pub file: Option<PathBuf>,
}

/// Those that are part of loci: name and text.
const BUILTIN: [(&str, &str); 4] = [
    ("Proactive", include_str!("output_style/proactive.md")),
    ("Concise", include_str!("output_style/concise.md")),
    ("Explanatory", include_str!("output_style/explanatory.md")),
    ("Learning", include_str!("output_style/learning.md")),
];

/// Returns the styles that are part of loci, without the usual one.
pub fn builtin_styles() -> Vec<OutputStyle> {
    BUILTIN.iter().map(|(name, text)| parse_style(text, name, None)).collect()
}

/// Reads a style; it has the name of its file unless it says another.
pub fn parse_style(text: &str, file_name: &str, file: Option<PathBuf>) -> OutputStyle {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body) = front_matter::split(text).unwrap_or(("", text));
    // A head that cannot be read says nothing; the text counts all the same.
    let fields = front_matter::parse(head).unwrap_or_default().fields;
    let mut reader = FieldReader::new(&fields);
    OutputStyle {
        name: reader.text("name").unwrap_or_else(|| file_name.to_owned()),
        description: reader.text("description").unwrap_or_default(),
        keeps_coding: reader.switch("keep-coding-instructions").unwrap_or(false),
        text: body.trim().to_owned(),
        is_forced: reader.switch("force-for-plugin").unwrap_or(false),
        file,
    }
}

/// Finds a style by its name; of several, the first.
pub fn find_style<'a>(styles: &'a [OutputStyle], name: &str) -> Option<&'a OutputStyle> {
    let exact = styles.iter().find(|style| style.name == name);
    exact.or_else(|| styles.iter().find(|style| style.name.eq_ignore_ascii_case(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_of_loci_keep_what_is_said_about_doing_the_work() {
        for style in builtin_styles() {
            assert!(
                style.keeps_coding && !style.description.is_empty() && !style.text.is_empty(),
                "{style:?}"
            );
        }
    }

    #[test]
    fn style_is_called_by_its_field_or_its_file() {
        let named = parse_style("---\nname: Pirate\ndescription: Arr\n---\nTalk like one.\n", "p", None);
        assert_eq!((named.name.as_str(), named.keeps_coding), ("Pirate", false));
        assert_eq!(named.text, "Talk like one.");
        let plain = parse_style("Be short.", "short", None);
        assert_eq!((plain.name.as_str(), plain.text.as_str()), ("short", "Be short."));
        let styles = [named, plain];
        assert_eq!(find_style(&styles, "pirate").map(|it| it.name.as_str()), Some("Pirate"));
        assert_eq!(find_style(&styles, "none"), None);
    }
}
