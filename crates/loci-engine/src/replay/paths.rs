//! Paths of the recording and where they lie now: whole paths in text, one written for the other.

use std::path::Path;

use serde_json::Value;

/// Pairs of directories: as recorded, and as it is here.
#[derive(Debug, Clone, Default)]
pub(super) struct Paths {
    pairs: Vec<(String, String)>,
}

impl Paths {
    pub(super) fn new<'a>(pairs: impl IntoIterator<Item = (&'a Path, &'a Path)>) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let pairs = pairs.into_iter().filter(|(recorded, here)| recorded != here);
        Self { pairs: pairs.map(|(recorded, here)| (text(recorded), text(here))).collect() }
    }

    /// Returns recorded arguments with paths as they are here.
    pub(super) fn to_here(&self, input: &Value) -> Value {
        let pairs: Vec<(&str, &str)> =
            self.pairs.iter().map(|(recorded, here)| (recorded.as_str(), here.as_str())).collect();
        in_value(input, &pairs)
    }

    /// Returns text of here with paths as they were recorded.
    pub(super) fn to_recorded(&self, text: &str) -> String {
        let pairs: Vec<(&str, &str)> =
            self.pairs.iter().map(|(recorded, here)| (here.as_str(), recorded.as_str())).collect();
        in_text(text, &pairs)
    }
}

fn in_value(value: &Value, pairs: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => Value::from(in_text(text, pairs)),
        Value::Array(items) => items.iter().map(|item| in_value(item, pairs)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), in_value(value, pairs))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn in_text(text: &str, pairs: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, from, to)) = first_path(text, text.len() - rest.len(), pairs) {
        let skipped = at - (text.len() - rest.len());
        out.push_str(&rest[..skipped]);
        out.push_str(to);
        rest = &rest[skipped + from.len()..];
    }
    out.push_str(rest);
    out
}

/// Finds the first whole path of any pair; of two at one place the longer.
fn first_path<'a>(
    text: &str,
    start: usize,
    pairs: &[(&'a str, &'a str)],
) -> Option<(usize, &'a str, &'a str)> {
    let found = pairs.iter().filter_map(|(from, to)| {
        let mut matches = text[start..].match_indices(from).map(|(at, _)| start + at);
        let at = matches.find(|at| is_whole(text, *at, from.len()))?;
        Some((at, *from, *to))
    });
    found.min_by_key(|(at, from, _)| (*at, usize::MAX - from.len()))
}

/// Tells a path from a part of a longer one.
fn is_whole(text: &str, at: usize, len: usize) -> bool {
    let is_name = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-');
    let before = text[..at].chars().next_back();
    let mut after = text[at + len..].chars();
    let (next, then) = (after.next(), after.next());
    let begins = !before.is_some_and(|char| is_name(char) || matches!(char, '/' | '.' | '~'));
    let ends = match next {
        Some('.') => !then.is_some_and(is_name),
        next => !next.is_some_and(is_name),
    };
    begins && ends
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths() -> Paths {
        Paths::new([
            (Path::new("/p"), Path::new("/tmp/s")),
            (Path::new("/p/sub/results"), Path::new("/tmp/r")),
            (Path::new("/same"), Path::new("/same")),
        ])
    }

    #[test]
    fn whole_paths_are_written_for_each_other() {
        for (recorded, here) in [
            ("/p", "/tmp/s"),
            ("cd /p && ls '/p/a b'", "cd /tmp/s && ls '/tmp/s/a b'"),
            ("x=/p/a:/p/b", "x=/tmp/s/a:/tmp/s/b"),
            ("/p/sub/results/1.txt", "/tmp/r/1.txt"),
            ("It lies in /p.", "It lies in /tmp/s."),
            ("/p.git /px /p-x /q/p ~/p ../p /same", "/p.git /px /p-x /q/p ~/p ../p /same"),
        ] {
            assert_eq!(paths().to_here(&json!(recorded)), json!(here));
            assert_eq!(paths().to_recorded(here), recorded);
        }
    }

    #[test]
    fn every_text_of_an_input_is_looked_at() {
        let input = json!({"/p": 1, "a": ["/p/x", {"b": "/p"}], "c": null});
        assert_eq!(paths().to_here(&input), json!({"/p": 1, "a": ["/tmp/s/x", {"b": "/tmp/s"}], "c": null}));
    }
}
