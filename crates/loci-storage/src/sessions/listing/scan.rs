//! Looking things up in JSON text without parsing all of it.
//!
//! Two ways. [`fields`] walks the top level of one object and skips over everything within, exactly; what it
//! skips is only looked at for quotes and brackets. [`first_text`], [`last_text`] and their like look for `"key":"…"` anywhere
//! in a text, which also works on lines that are cut; raw text within strings does not match, because there the
//! quotes are escaped. Blanks may stand around the colon: not every program writes lines without.
//!
//! `serde_json` reads lines everywhere else; it would parse all of a long message to tell its type, and refuse a line that the
//! window of a list has cut.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

/// Iterates over the top-level fields of the object that `line` begins with, until it ends or is cut.
pub(crate) fn fields(line: &[u8]) -> Fields<'_> {
    let at = if line.first() == Some(&b'{') { 1 } else { line.len() };
    Fields { line, at }
}

/// The top-level fields of an object: keys and values as written.
pub(crate) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.line;
        let start = skip_any(line, self.at, b", \t");
        let key_end = end_of_string(line, start)?;
        let colon = skip_any(line, key_end, b" \t");
        if line.get(colon) != Some(&b':') {
            return None;
        }
        let value = skip_any(line, colon + 1, b" \t");
        let end = end_of_value(line, value)?;
        self.at = end;
        Some((&line[start + 1..key_end - 1], &line[value..end]))
    }
}

fn skip_any(line: &[u8], mut at: usize, set: &[u8]) -> usize {
    while line.get(at).is_some_and(|byte| set.contains(byte)) {
        at += 1;
    }
    at
}

fn end_of_value(line: &[u8], at: usize) -> Option<usize> {
    match line.get(at)? {
        b'"' => end_of_string(line, at),
        b'{' | b'[' => end_of_group(line, at),
        _ => {
            let length = line[at..].iter().position(|byte| matches!(byte, b',' | b'}' | b']'))?;
            Some(at + line[at..at + length].trim_ascii_end().len())
        }
    }
}

/// Returns the place after the closing quote of the string that begins at `at`.
fn end_of_string(line: &[u8], at: usize) -> Option<usize> {
    if line.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        at += memchr2(b'"', b'\\', line.get(at..)?)?;
        if line[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

fn end_of_group(line: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = at;
    loop {
        match line.get(at)? {
            b'"' => {
                at = end_of_string(line, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the `type` of a line that begins with it, as metadata does.
pub(crate) fn leading_type(line: &[u8]) -> Option<&[u8]> {
    const KEY: &[u8] = br#""type""#;
    let rest = match line.strip_prefix(br#"{"type":""#) {
        Some(rest) => rest,
        None => {
            let key = skip_any(line, 0, b"{ \t");
            let is_first = line.first() == Some(&b'{') && line[key..].starts_with(KEY);
            let quote = is_first.then(|| value_after_key(line, key + KEY.len()))??;
            line[quote..].strip_prefix(b"\"")?
        }
    };
    Some(&rest[..memchr(b'"', rest)?])
}

/// Returns the text under the first `"key":"…"`; one that is cut off counts as far as it goes.
pub(super) fn first_text(text: &[u8], key: &str) -> Option<String> {
    let key = quoted(key);
    let found = memmem::find_iter(text, &key).find_map(|at| text_after_key(text, at + key.len()))?;
    Some(text_at(text, found))
}

/// Returns the text under the last `"key":"…"`.
pub(crate) fn last_text(text: &[u8], key: &str) -> Option<String> {
    last_text_start(text, key).map(|quote| text_at(text, quote))
}

/// Returns where its opening quote is.
pub(crate) fn last_text_start(text: &[u8], key: &str) -> Option<usize> {
    let key = quoted(key);
    let mut rest = text;
    loop {
        let at = memmem::rfind(rest, &key)?;
        if let Some(quote) = text_after_key(text, at + key.len()) {
            return Some(quote);
        }
        rest = &rest[..at];
    }
}

/// Returns true when a key stands anywhere in a text.
pub(super) fn has_key(text: &[u8], key: &str) -> bool {
    count_keys(text, key) > 0
}

/// Returns how often a key stands in a text.
pub(super) fn count_keys(text: &[u8], key: &str) -> usize {
    let key = quoted(key);
    let is_key = |at: &usize| value_after_key(text, at + key.len()).is_some();
    memmem::find_iter(text, &key).filter(is_key).count()
}

/// Returns true when a key is true anywhere in a text.
pub(super) fn has_flag(text: &[u8], key: &str) -> bool {
    let key = quoted(key);
    memmem::find_iter(text, &key)
        .filter_map(|at| value_after_key(text, at + key.len()))
        .any(|value| text[value..].starts_with(b"true"))
}

/// Returns true when a key has this text anywhere in a text. Values are rarer than keys, so those are looked for.
pub(super) fn has_pair(text: &[u8], key: &str, value: &str) -> bool {
    let key = quoted(key);
    let is_of_key = |at: usize| {
        let before = text[..at].trim_ascii_end().strip_suffix(b":");
        before.is_some_and(|before| before.trim_ascii_end().ends_with(&key))
    };
    memmem::find_iter(text, &quoted(value)).any(is_of_key)
}

fn quoted(key: &str) -> Vec<u8> {
    format!("\"{key}\"").into_bytes()
}

/// Returns where the value begins of a key that ends at `at`, if it is one.
fn value_after_key(text: &[u8], at: usize) -> Option<usize> {
    let colon = skip_any(text, at, b" \t");
    (text.get(colon) == Some(&b':')).then(|| skip_any(text, colon + 1, b" \t"))
}

/// Returns where the opening quote of its value is, if that is a text.
fn text_after_key(text: &[u8], at: usize) -> Option<usize> {
    value_after_key(text, at).filter(|value| text.get(*value) == Some(&b'"'))
}

/// Reads a string from the place of its opening quote.
fn text_at(text: &[u8], quote: usize) -> String {
    let end = end_of_string(text, quote).map_or(text.len(), |end| end - 1);
    unescaped(text.get(quote + 1..end).unwrap_or_default())
}

/// Reads the value of a field that should be a text.
pub(crate) fn as_text(value: &[u8]) -> Option<String> {
    Some(unescaped(value.strip_prefix(b"\"")?.strip_suffix(b"\"")?))
}

fn unescaped(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    if !text.contains('\\') {
        return text.into_owned();
    }
    let whole: Result<String, _> = serde_json::from_str(&format!("\"{text}\""));
    whole.unwrap_or_else(|_| leniently_unescaped(&text))
}

/// Undoes the common escapes of a string that is cut or holds half a surrogate pair.
fn leniently_unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, char == '\\') {
            (char, false) => out.push(char),
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('u') => {
                    let digits: String = chars.by_ref().take(4).collect();
                    let unit = u32::from_str_radix(&digits, 16).ok();
                    out.push(unit.and_then(char::from_u32).unwrap_or('\u{fffd}'));
                }
                Some(other) => out.push(other),
                None => {}
            },
        }
    }
    out
}

/// Returns the lines of `text` from the last to the first, without their ends.
pub(super) fn lines_from_end(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match memchr::memrchr(b'\n', text) {
            Some(newline) => {
                rest = Some(&text[..newline]);
                Some(&text[newline + 1..])
            }
            None => rest.take(),
        }
    })
    .map(<[u8]>::trim_ascii)
    .filter(|line| !line.is_empty())
}

/// Returns text for people: bytes that are none are replaced.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What the message of an answer says of the response it is a block of, as written.
#[derive(Default)]
pub(crate) struct AssistantMessage<'a> {
    /// The same in every block of a response; empty where there is none.
    pub(crate) id: &'a [u8],
    pub(crate) model: &'a [u8],
    pub(crate) usage: &'a [u8],
}

impl<'a> AssistantMessage<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Self {
        let mut answer = Self::default();
        for (key, value) in fields(message) {
            match key {
                b"id" => answer.id = value,
                b"model" => answer.model = value,
                b"usage" => answer.usage = value,
                _ => {}
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        fields(line.as_bytes()).map(|(key, value)| format!("{}={}", lossy(key), lossy(value))).collect()
    }

    #[test]
    fn the_top_level_is_walked_exactly() {
        for (line, expected) in [
            (
                r#"{"a":"x","b":{"a":"y}\"]"},"c":[1,{"d":"\\"}],"e":true}"#,
                "a=\"x\" b={\"a\":\"y}\\\"]\"} c=[1,{\"d\":\"\\\\\"}] e=true",
            ),
            (r#"{ "a" : null , "b": 17}"#, "a=null b=17"),
            (r#"{"a":1,"b":"cut he"#, "a=1"),
            (r#"{"a":{"b":1"#, ""),
            ("[1]", ""),
            ("", ""),
            ("{}", ""),
            (r#"{"a"}"#, ""),
        ] {
            assert_eq!(names(line).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn scan_finds_raw_and_unescaped_strings() {
        let text = br#"{"t":"one \"t\":\"no\"","t":"two\n\u00e9","u":"cut \ud83d"#;
        assert_eq!(first_text(text, "t").unwrap(), "one \"t\":\"no\"");
        assert_eq!(last_text(text, "t").unwrap(), "two\né");
        assert_eq!(last_text(text, "u").unwrap(), "cut \u{fffd}");
        assert_eq!(first_text(text, "none"), None);
    }

    #[test]
    fn lines_from_end_come_last_first() {
        let lines: Vec<_> = lines_from_end(b"a\nb\r\n\n c").map(lossy).collect();
        assert_eq!(lines, ["c", "b", "a"]);
        assert_eq!(lines_from_end(b"").count(), 0);
        assert_eq!(leading_type(br#"{"type":"tag","tag":"x"}"#), Some(&b"tag"[..]));
        assert_eq!(leading_type(br#"{"tag":"x","type":"tag"}"#), None);
    }

    #[test]
    fn blanks_around_colons_hide_nothing() {
        for line in [
            r#"{"type":"tag","tag":"x","on":true}"#,
            "{ \"type\" : \"tag\", \"tag\"\t:  \"x\",\"on\" : true }",
        ] {
            let bytes = line.as_bytes();
            assert_eq!(leading_type(bytes), Some(&b"tag"[..]), "{line}");
            assert_eq!(
                (first_text(bytes, "tag"), last_text(bytes, "tag")),
                (Some("x".into()), Some("x".into())),
                "{line}"
            );
            assert!(
                has_flag(bytes, "on") && has_key(bytes, "on") && has_pair(bytes, "type", "tag"),
                "{line}"
            );
            // A value that reads like a key is none.
            assert!(
                !has_flag(bytes, "tag") && !has_key(bytes, "x") && !has_pair(bytes, "tag", "tag"),
                "{line}"
            );
        }
        for line in [
            "",
            "{",
            r#"{"type"#,
            r#"{"type": "#,
            r#"{"type" "tag"}"#,
            r#"["type":"tag"]"#,
            r#"{"types":"tag"}"#,
        ] {
            assert_eq!(leading_type(line.as_bytes()), None, "{line}");
        }
        assert_eq!(last_text(br#"{"k": "a", "x": "k", "k": 1}"#, "k").as_deref(), Some("a"));
        assert_eq!(count_keys(br#"{"k":1,"x":"k","y":{"k" : 2}}"#, "k"), 2);
    }
}
