//! One memory as a file: front matter and text.

use std::ops::Range;

use loci_core::front_matter;

use super::form::without_bom;

/// What a memory is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryKind {
    /// Who the user is.
    User,
    /// How to work.
    Feedback,
    /// Who does what and why, beyond what the code says.
    Project,
    /// Where things lie outside the project.
    Reference,
}

impl MemoryKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::User, Self::Feedback, Self::Project, Self::Reference];

    /// Returns its name in front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(text))
    }
}

/// A memory, read leniently: what is missing or unknown is said, never refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryFile {
    /// What it is called.
    pub name: Option<String>,
    /// What it says, in a line.
    pub description: Option<String>,
    /// What it is about.
    pub kind: Option<MemoryKind>,
    /// When it was last written.
    pub modified: Option<String>,
    /// Its text.
    pub body: String,
    /// What is wrong with its form.
    pub problems: Vec<String>,
}

impl MemoryFile {
    /// Reads a file.
    pub fn parse(text: &str) -> Self {
        let Some(Parts { matter, body }) = parts(text) else {
            let problems = vec!["it has no front matter".to_owned()];
            return Self { body: without_bom(text).to_owned(), problems, ..Self::default() };
        };
        let field = |key: &str| field(&text[matter.clone()], key);
        let mut file = Self {
            name: field("name"),
            description: field("description"),
            modified: field("modified"),
            body: text[body..].to_owned(),
            ..Self::default()
        };
        match field("type") {
            None => file.problems.push("it has no `type`".to_owned()),
            Some(text) => {
                file.kind = MemoryKind::parse(&text);
                if file.kind.is_none() {
                    file.problems.push(format!("its `type` is none of the four: `{text}`"));
                }
            }
        }
        for (key, value) in [("name", &file.name), ("description", &file.description)] {
            if value.is_none() {
                file.problems.push(format!("it has no `{key}`"));
            }
        }
        file
    }
}

/// Returns the text with its `modified` stamp set; `None` when it has no front matter, which is never added.
pub fn with_modified_time(text: &str, now: &str) -> Option<String> {
    let matter = parts(text)?.matter;
    let mut at = matter.start;
    for line in text[matter].split_inclusive('\n') {
        if line.starts_with("modified:") {
            let end = at + line.trim_end_matches(['\r', '\n']).len();
            return Some(format!("{}modified: {now}{}", &text[..at], &text[end..]));
        }
        at += line.len();
    }
    let ending = if text[..at].ends_with("\r\n") { "\r\n" } else { "\n" };
    Some(format!("{}modified: {now}{ending}{}", &text[..at], &text[at..]))
}

/// Where the parts of a text with front matter lie.
struct Parts {
    /// The lines between two fences at the beginning.
    matter: Range<usize>,
    /// What follows them.
    body: usize,
}

fn parts(text: &str) -> Option<Parts> {
    let rest = without_bom(text);
    let (matter, body) = front_matter::split(rest)?;
    let start = text.len() - rest.len() + rest.find('\n')? + 1;
    Some(Parts { matter: start..start + matter.len(), body: text.len() - body.len() })
}

/// Returns the value of a key, wherever it is indented to.
fn field(matter: &str, key: &str) -> Option<String> {
    let value = matter.lines().find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix(':'))?;
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value).trim();
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: &str = "---\nname: role\ndescription: \"a tester: of things\"\ntype: User\nextra: kept\n---\nBody\n---\nmore\n";

    #[test]
    fn files_are_read_leniently() {
        let file = MemoryFile::parse(WHOLE);
        assert_eq!(file.name.as_deref(), Some("role"));
        assert_eq!(file.description.as_deref(), Some("a tester: of things"));
        assert_eq!((file.kind, file.body.as_str()), (Some(MemoryKind::User), "Body\n---\nmore\n"));
        assert_eq!(file.problems, [""; 0]);
        for (text, problem) in [
            ("just text", "it has no front matter"),
            ("---\nname: x\n", "it has no front matter"),
            ("---\nname: x\ndescription: y\n---\n", "it has no `type`"),
            ("---\nname: x\ndescription: y\ntype: other\n---\n", "its `type` is none of the four: `other`"),
            ("---\r\ntype: user\r\ndescription: y\r\n---\r\n", "it has no `name`"),
            ("---\n---\n", "it has no `type`"),
        ] {
            assert_eq!(
                MemoryFile::parse(text).problems.first().map(String::as_str),
                Some(problem),
                "{text:?}"
            );
        }
        let nested = MemoryFile::parse("---\nname: x\ndescription: y\nmetadata:\n  type: project\n---\n");
        assert_eq!(nested.kind, Some(MemoryKind::Project));
    }

    /// Invariant 6 of `docs/design/memory.md`.
    #[test]
    fn a_stamp_changes_nothing_else() {
        for (text, expected) in [
            ("---\nname: x\n---\nB\n", Some("---\nname: x\nmodified: T\n---\nB\n")),
            ("---\nmodified: old\nname: x\n---\n", Some("---\nmodified: T\nname: x\n---\n")),
            ("---\r\nname: x\r\n---\r\nB", Some("---\r\nname: x\r\nmodified: T\r\n---\r\nB")),
            ("---\n---\nB", Some("---\nmodified: T\n---\nB")),
            ("---\n-\n---\n", Some("---\n-\nmodified: T\n---\n")),
            ("---\na: x\r\nb: y\n---\r\nB", Some("---\na: x\r\nb: y\nmodified: T\n---\r\nB")),
            ("---\nmodified: old\r\na: x\n---\n", Some("---\nmodified: T\r\na: x\n---\n")),
            ("\u{feff}---\r\na: x\r\n---", Some("\u{feff}---\r\na: x\r\nmodified: T\r\n---")),
            ("no front matter", None),
            ("---\nnever closed", None),
        ] {
            assert_eq!(with_modified_time(text, "T").as_deref(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn stamping_twice_is_stamping_once(text in "\u{feff}?(---\r?\n)?([-a-z: ]{0,9}\r?\n){0,5}(---\r?\n)?[ -~\n]{0,40}") {
            if let Some(once) = with_modified_time(&text, "T") {
                prop_assert_eq!(with_modified_time(&once, "T"), Some(once.clone()));
                prop_assert_eq!(MemoryFile::parse(&once).body, MemoryFile::parse(&text).body);
                // A line came, or one has other words; all others are there to the byte.
                let others = |text: &str| -> Vec<String> {
                    let lines = text.split_inclusive('\n');
                    lines.filter(|line| !line.starts_with("modified:")).map(str::to_owned).collect()
                };
                prop_assert_eq!(others(&once), others(&text));
            }
        }
    }
}
