//! Output styles: how the model is to work and talk, in the place of the usual way or beside it.

use std::path::PathBuf;

use crate::front_matter::{self, FieldReader, FrontMatter};

/// The name that means the usual way.
pub const DEFAULT_STYLE: &str = "default";

/// The fields that have a meaning.
const FIELDS: [&str; 4] = ["name", "description", "keep-coding-instructions", "force-for-plugin"];

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
    /// What its front matter says in vain.
    pub notes: Vec<String>,
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
    let (FrontMatter { fields, mut notes }, why) = match front_matter::parse(head) {
        Ok(front_matter) => (front_matter, None),
        Err(why) => (FrontMatter::default(), Some(format!("its front matter cannot be read: {why}"))),
    };
    notes.extend(why);
    let unknown = fields.keys().filter(|key| !FIELDS.contains(&key.as_str()));
    notes.extend(unknown.map(|key| format!("`{key}` has no meaning here")));
    let mut reader = FieldReader::new(&fields);
    let mut style = OutputStyle {
        name: reader.text("name").unwrap_or_else(|| file_name.to_owned()),
        description: reader.text("description").unwrap_or_default(),
        keeps_coding: reader.switch("keep-coding-instructions").unwrap_or(false),
        text: body.trim().to_owned(),
        is_forced: reader.switch("force-for-plugin").unwrap_or(false),
        file,
        notes: Vec::new(),
    };
    notes.extend(reader.into_notes());
    style.notes = notes;
    style
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
                style.keeps_coding
                    && !style.description.is_empty()
                    && !style.text.is_empty()
                    && style.notes.is_empty(),
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
        for (head, note) in [
            ("keep-coding-instructions: perhaps", "`keep-coding-instructions: perhaps` is not understood"),
            ("keepCodingInstructions: true", "`keepCodingInstructions` has no meaning here"),
            ("- a list", "its front matter cannot be read"),
        ] {
            let odd = parse_style(&format!("---\n{head}\n---\nBe short."), "odd", None);
            assert_eq!((odd.text.as_str(), odd.keeps_coding), ("Be short.", false));
            assert!(odd.notes.len() == 1 && odd.notes[0].starts_with(note), "{:?}", odd.notes);
        }
        let styles = [named, plain];
        assert_eq!(find_style(&styles, "pirate").map(|it| it.name.as_str()), Some("Pirate"));
        assert_eq!(find_style(&styles, "none"), None);
    }
}
