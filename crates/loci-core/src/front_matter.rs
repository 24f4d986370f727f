//! Front matter: the lines between two fences at the beginning of a Markdown file.

mod fields;
mod yaml;

pub(crate) use fields::{FieldReader, text_of};
pub(crate) use yaml::{FieldList, parse_fields};
pub use yaml::{FrontMatter, parse};

/// Splits front matter from what follows; `None` where the text does not begin with it.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn fences_stand_alone() {
        for (text, expected) in [
            ("---\na: 1\n---\nbody\n", Some(("a: 1\n", "body\n"))),
            ("---\r\na: 1\r\n---\r\nbody", Some(("a: 1\r\n", "body"))),
            ("---\n---\n", Some(("", ""))),
            ("---\na: 1\n---  ", Some(("a: 1\n", ""))),
            ("---\na: 1\n ---\n--- x\n", None),
            ("--- \na: 1\n---\n", Some(("a: 1\n", ""))),
            (" ---\na: 1\n---\n", None),
            ("\n---\na: 1\n---\n", None),
            ("body", None),
            ("", None),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }
}
