//! Reading fields of front matter as people write them, and noting what they do not mean.

use serde_json::{Map, Value};

/// Reads fields; what is not understood becomes a note.
pub(crate) struct FieldReader<'a> {
    fields: FieldSource<'a>,
    notes: Vec<String>,
}

/// Fields as a table, or as they stand in a file.
#[derive(Clone, Copy)]
pub(crate) enum FieldSource<'a> {
    Map(&'a Map<String, Value>),
    List(&'a [(String, Value)]),
}

impl<'a> From<&'a Map<String, Value>> for FieldSource<'a> {
    fn from(map: &'a Map<String, Value>) -> Self {
        Self::Map(map)
    }
}

impl<'a> From<&'a [(String, Value)]> for FieldSource<'a> {
    fn from(list: &'a [(String, Value)]) -> Self {
        Self::List(list)
    }
}

impl<'a> FieldSource<'a> {
    fn iter(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let (map, list) = match self {
            Self::Map(map) => (Some(map), [].as_slice()),
            Self::List(list) => (None, list),
        };
        map.into_iter().flatten().chain(list.iter().map(|(key, value)| (key, value)))
    }
}

impl<'a> FieldReader<'a> {
    /// Reads these fields.
    pub(crate) fn new(fields: impl Into<FieldSource<'a>>) -> Self {
        Self { fields: fields.into(), notes: Vec::new() }
    }

    /// Returns what was not understood.
    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// Notes values that are of another kind than what they are to be: a text, or a list of texts.
    pub(crate) fn note_kinds(&mut self, texts: &[&str], lists: &[&str]) {
        for (key, value) in self.fields.iter() {
            let is_text = || texts.contains(&key.as_str());
            let is_list = || lists.contains(&key.as_str());
            let odd = match value {
                Value::String(_) | Value::Null => continue,
                Value::Number(_) | Value::Bool(_) if is_list() => vec![value],
                Value::Object(_) if is_text() || is_list() => vec![value],
                Value::Array(_) if is_text() => vec![value],
                Value::Array(items) if is_list() => {
                    items.iter().filter(|item| text_of(item).is_none()).collect()
                }
                _ => continue,
            };
            let odd =
                odd.into_iter().map(|value| format!("`{key}: {value}` is not understood and has no effect"));
            self.notes.extend(odd);
        }
    }

    /// Finds a field. There are few, so that looking at each takes less than hashing the name.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        match self.fields {
            FieldSource::Map(map) => map.iter().find(|(name, _)| *name == key).map(|(_, value)| value),
            FieldSource::List(list) => list.iter().find(|(name, _)| name == key).map(|(_, value)| value),
        }
    }

    /// Returns a text that says something.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        match self.get(key)? {
            // Looked at before it is copied.
            Value::String(text) if text.trim().is_empty() => None,
            value => text_of(value),
        }
    }

    /// Returns a text that `parse` understands.
    pub(crate) fn parsed<T>(&mut self, key: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(key)?;
        let parsed = parse(text.trim());
        if parsed.is_none() {
            self.notes.push(format!("`{key}: {text}` is not understood and has no effect"));
        }
        parsed
    }

    /// Returns a number above zero.
    pub(crate) fn count(&mut self, key: &str) -> Option<u32> {
        self.parsed(key, |text| text.parse().ok().filter(|n| *n > 0))
    }

    /// Returns yes or no, which may be written in words.
    pub(crate) fn switch(&mut self, key: &str) -> Option<bool> {
        self.parsed(key, |text| match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        })
    }

    /// Returns a level of effort.
    pub(crate) fn effort(&mut self, key: &str) -> Option<String> {
        let is_level = |text: &str| matches!(text, "low" | "medium" | "high" | "xhigh" | "max");
        self.parsed(key, |text| is_level(text).then(|| text.to_owned()))
    }

    /// Returns a list, or one text with commas outside parentheses.
    pub(crate) fn names(&self, key: &str) -> Option<Vec<String>> {
        self.list(key, |c| c == ',')
    }

    /// Returns a list of permission rules, or one text with commas or spaces outside parentheses.
    pub(crate) fn rules(&self, key: &str) -> Option<Vec<String>> {
        self.list(key, |c| c == ',' || c.is_whitespace())
    }

    fn list(&self, key: &str, is_separator: fn(char) -> bool) -> Option<Vec<String>> {
        let trimmed = |name: &str| Some(name.trim()).filter(|name| !name.is_empty()).map(str::to_owned);
        Some(match self.get(key)? {
            Value::Array(items) => {
                items.iter().filter_map(text_of).filter_map(|name| trimmed(&name)).collect()
            }
            Value::String(text) => {
                split_outside_parentheses(text, is_separator).filter_map(trimmed).collect()
            }
            _ => return None,
        })
    }
}

fn split_outside_parentheses(text: &str, is_separator: fn(char) -> bool) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let separates = move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && is_separator(c)
    };
    text.split(separates)
}

/// Takes a text that says something out of fields that nobody reads any more.
pub(crate) fn take_text(fields: &mut [(String, Value)], key: &str) -> Option<String> {
    match fields.iter_mut().find(|(name, _)| name == key).map(|(_, value)| value)? {
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(std::mem::take(text)),
        value => text_of(value),
    }
}

/// Returns a plain value as text.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_so) => Some(is_so.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
