//! Front matter: the lines between two fences at the beginning of a Markdown file.

mod fields;
mod yaml;

pub(crate) use fields::{FieldReader, take_text, text_of};
pub(crate) use yaml::{FieldList, parse_fields};
pub use yaml::{FrontMatter, parse};

/// Splits front matter from what follows; `None` where the text does not begin with it.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let first_end = memchr::memchr(b'\n', text.as_bytes())?;
    if !is_fence(&text[..first_end]) {
        return None;
    }
    let rest = &text[first_end + 1..];
    let mut at = 0;
    while at < rest.len() {
        let end = memchr::memchr(b'\n', &rest.as_bytes()[at..]).map_or(rest.len(), |end| at + end + 1);
        if is_fence(&rest[at..end]) {
            return Some((&rest[..at], &rest[end..]));
        }
        at = end;
    }
    None
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim_end().is_empty())
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
