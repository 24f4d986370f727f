//! Values on their own: words, numbers, texts in quotes, `[a, b]` and `{a: b}`.

use serde_json::{Map, Value};

use super::DEPTH_LIMIT;

/// Cuts a comment off, which begins with a space and a hash.
pub(super) fn without_comment(text: &str) -> &str {
    // Most texts have no hash at all, and hundreds of files are read at each start.
    if !text.as_bytes().contains(&b'#') {
        return text.trim();
    }
    if text.starts_with('#') {
        return "";
    }
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (quote, c) {
            // A quote that begins a value hides what is in it; one within a word, such as an apostrophe, does not.
            (None, '"' | '\'')
                if matches!(before, ' ' | '\t' | '[' | '{' | ',' | ':') && closes(text, at) =>
            {
                quote = Some(c);
            }
            (Some(open), c) if c == open => quote = None,
            (None, '#') if matches!(before, ' ' | '\t') => return text[..at].trim(),
            _ => {}
        }
        before = c;
    }
    text.trim()
}

/// Tells whether a quote that opens is closed on the line.
fn closes(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_some_and(|quote| quoted(&text[at..], quote).is_some())
}

/// Returns the value that a text on its own stands for.
pub(super) fn plain(text: &str, depth: usize) -> Value {
    if text.starts_with(['[', '{']) && depth < DEPTH_LIMIT {
        return match closed_flow(text) {
            Some((value, rest)) if without_comment(rest).is_empty() => value,
            _ => Value::from(text),
        };
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::from(text)),
    }
}

fn number(text: &str) -> Option<Value> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    is_number.then(|| serde_json::from_str(text).ok()).flatten()
}

/// Reads a text in quotes; returns it with what follows.
pub(super) fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
                value.push('\'');
            }
            _ if c == quote => return Some((value, &text[at + c.len_utf8()..])),
            '\\' if quote == '"' => {
                let letter = chars.next()?.1;
                let mut hex = |n: usize| -> Option<u32> {
                    let digits: String = chars.by_ref().take(n).map(|(_, c)| c).collect();
                    u32::from_str_radix(&digits, 16).ok()
                };
                match letter {
                    'x' => value.push(char::from_u32(hex(2)?)?),
                    'U' => value.push(char::from_u32(hex(8)?)?),
                    'u' => {
                        let unit = hex(4)?;
                        if !(0xd800..0xdc00).contains(&unit) {
                            value.push(char::from_u32(unit)?);
                            continue;
                        }
                        // The second half of a pair, as JSON writes one.
                        let (slash, letter) = (chars.next()?.1, chars.next()?.1);
                        let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                        let low = u32::from_str_radix(&digits, 16).ok()?;
                        let is_pair = (slash, letter) == ('\\', 'u') && (0xdc00..0xe000).contains(&low);
                        let joined = is_pair.then(|| 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
                        value.push(char::from_u32(joined?)?);
                    }
                    letter => value.push(escaped(letter)),
                }
            }
            _ => value.push(c),
        }
    }
    None
}

/// Returns what a letter behind a backslash stands for.
fn escaped(letter: char) -> char {
    match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'v' => '\u{b}',
        'f' => '\u{c}',
        'e' => '\u{1b}',
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        other => other,
    }
}

/// Reads `[a, b]` or `{a: b}` at the beginning of a text; returns it with what follows, none where it is not closed.
pub(super) fn closed_flow(text: &str) -> Option<(Value, &str)> {
    let mut flow = Flow { rest: text, depth: 0 };
    let value = flow.value()?;
    Some((value, flow.rest))
}

/// Reads `[a, b]` and `{a: b}`.
struct Flow<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Flow<'a> {
    fn value(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH_LIMIT {
            return None;
        }
        self.rest = self.rest.trim_start();
        let value = match self.rest.chars().next()? {
            '[' => self.list(),
            '{' => self.mapping(),
            quote @ ('"' | '\'') => {
                let (value, rest) = quoted(self.rest, quote)?;
                self.rest = rest;
                Some(Value::from(value))
            }
            _ => {
                let text = self.word();
                Some(plain(text.trim(), DEPTH_LIMIT))
            }
        };
        self.depth -= 1;
        value
    }

    /// Takes a text without quotes; commas within parentheses that are closed belong to it.
    fn word(&mut self) -> &'a str {
        let whole = self.rest;
        let end = |respects_parentheses: bool| {
            let mut depth = 0_usize;
            for (at, c) in whole.char_indices() {
                match c {
                    '(' if respects_parentheses => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    ',' | ']' | '}' if depth == 0 => return Some(at),
                    _ => {}
                }
            }
            (depth == 0).then_some(whole.len())
        };
        let end = end(true).or_else(|| end(false)).unwrap_or(whole.len());
        let (text, rest) = whole.split_at(end);
        self.rest = rest;
        text
    }

    fn takes(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn list(&mut self) -> Option<Value> {
        self.takes('[');
        let mut items = Vec::new();
        loop {
            if self.takes(']') {
                return Some(Value::Array(items));
            }
            items.push(self.value()?);
            if !self.takes(',') && !self.rest.trim_start().starts_with(']') {
                return None;
            }
        }
    }

    fn mapping(&mut self) -> Option<Value> {
        self.takes('{');
        let mut map = Map::new();
        loop {
            if self.takes('}') {
                return Some(Value::Object(map));
            }
            self.rest = self.rest.trim_start();
            let key = match self.rest.chars().next()? {
                quote @ ('"' | '\'') => {
                    let (key, rest) = quoted(self.rest, quote)?;
                    self.rest = rest;
                    key
                }
                _ => {
                    let (key, _) = self.rest.split_once(':')?;
                    self.rest = &self.rest[key.len()..];
                    key.trim().to_owned()
                }
            };
            if !self.takes(':') {
                return None;
            }
            map.insert(key, self.value()?);
            if !self.takes(',') && !self.rest.trim_start().starts_with('}') {
                return None;
            }
        }
    }
}
