//! What a call asks to change in a file, as far as its input alone says: for all who show it before it runs.

use serde_json::Value;

/// A change of one file that a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedChange<'a> {
    /// The file, as the call names it.
    pub path: &'a str,
    /// What is to become of its text.
    pub text: AskedText<'a>,
}

/// What is to become of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedText<'a> {
    /// This is all of it.
    Whole(&'a str),
    /// A part gives way to another.
    Replaced {
        /// What goes; nothing, where the file is to be made.
        old: &'a str,
        /// What comes.
        new: &'a str,
        /// Whether it does so wherever it stands, and not once only.
        is_everywhere: bool,
    },
}

impl<'a> AskedChange<'a> {
    /// Reads the change of a call; `None` for other tools, and for calls that do not say what they want.
    pub fn from_call(tool: &str, input: &'a Value) -> Option<Self> {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let asked = match tool {
            "Write" => AskedText::Whole(text("content")?),
            "Edit" => AskedText::Replaced {
                old: text("old_string")?,
                new: text("new_string")?,
                is_everywhere: input.get("replace_all").and_then(Value::as_bool).unwrap_or_default(),
            },
            _ => return None,
        };
        Some(Self { path: text("file_path")?, text: asked })
    }
}

impl AskedText<'_> {
    /// Returns the text that a file with this one would have; `None` where it does not have what is to be replaced.
    pub fn apply(&self, before: &str) -> Option<String> {
        match *self {
            Self::Whole(text) => Some(text.to_owned()),
            Self::Replaced { old, .. } if old.is_empty() || !before.contains(old) => None,
            Self::Replaced { old, new, is_everywhere: true } => Some(before.replace(old, new)),
            Self::Replaced { old, new, is_everywhere: false } => Some(before.replacen(old, new, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn change_of_a_call_is_read_and_applied() {
        let edit = json!({"file_path": "/a", "old_string": "x", "new_string": "y"});
        let everywhere =
            json!({"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": true});
        for (tool, input, expected) in [
            ("Write", json!({"file_path": "/a", "content": "z"}), Some("z")),
            ("Edit", edit.clone(), Some("y x")),
            ("Edit", everywhere, Some("y y")),
            ("Edit", json!({"file_path": "/a", "old_string": "q", "new_string": "y"}), None),
            ("Edit", json!({"file_path": "/a", "old_string": "", "new_string": "y"}), None),
            ("Edit", json!({"file_path": "/a", "old_string": "x"}), None),
            ("Write", json!({"content": "z"}), None),
            ("Read", edit, None),
        ] {
            let change = AskedChange::from_call(tool, &input);
            assert!(change.is_none_or(|change| change.path == "/a"), "{tool} {input}");
            let after = change.and_then(|change| change.text.apply("x x"));
            assert_eq!(after.as_deref(), expected, "{tool} {input}");
        }
    }
}
