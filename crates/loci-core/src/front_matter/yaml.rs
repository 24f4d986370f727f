//! The part of YAML that people write between the fences of a Markdown file, read without ever refusing a sentence.
//!
//! Mappings, lists, texts in quotes or without, `|` and `>` blocks, `[a, b]` and `{a: b}` become JSON values. What YAML
//! would refuse but anybody understands, such as a colon or an unclosed bracket within a text, is the text that it looks
//! like. Anchors, tags and several documents in one are not read; a line that is no part of anything is an error.

use serde_json::{Map, Value};

/// How deep values may lie in one another.
const DEPTH_LIMIT: usize = 16;

/// Reads a mapping; the error names the line, counted from one.
pub fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let lines: Vec<Line<'_>> = text.lines().enumerate().map(|(idx, raw)| Line::new(idx + 1, raw)).collect();
    let mut reader = Reader { lines: &lines, at: 0 };
    let map = reader.mapping(0, 0)?;
    match reader.peek() {
        None => Ok(map),
        Some(line) => Err(format!("line {}: not a `key: value`", line.number)),
    }
}

/// A line without its indentation.
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
    raw: &'a str,
}

impl<'a> Line<'a> {
    fn new(number: usize, raw: &'a str) -> Self {
        let raw = raw.trim_end();
        let text = raw.trim_start();
        Self { number, indent: raw.len() - text.len(), text, raw }
    }

    /// Tells whether it says nothing.
    fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }

    fn is_item(&self) -> bool {
        self.text == "-" || self.text.starts_with("- ")
    }
}

struct Reader<'a> {
    lines: &'a [Line<'a>],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Returns the next line that says something.
    fn peek(&mut self) -> Option<&'a Line<'a>> {
        while self.lines.get(self.at).is_some_and(Line::is_blank) {
            self.at += 1;
        }
        self.lines.get(self.at)
    }

    /// Reads the entries of a mapping whose keys stand at `indent`.
    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Map<String, Value>, String> {
        let mut map = Map::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent && !line.is_item()) {
            let Some((key, rest)) = split_key(line.text) else { break };
            self.at += 1;
            let value = self.value(rest, indent, depth + 1)?;
            map.insert(key, value);
        }
        Ok(map)
    }

    /// Reads what stands behind a key, or a dash, at `indent`.
    fn value(&mut self, rest: &str, indent: usize, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_LIMIT {
            return Err("values lie too deep in one another".to_owned());
        }
        if let Some(style) = rest.strip_prefix(['|', '>']).filter(|style| is_block_style(style)) {
            return Ok(Value::from(self.block_text(indent, rest.starts_with('>'), style.contains('-'))));
        }
        if !without_comment(rest).is_empty() {
            return Ok(self.scalar(rest, indent));
        }
        let Some(next) = self.peek() else { return Ok(Value::Null) };
        if next.is_item() && next.indent >= indent {
            return self.list(next.indent, depth);
        }
        if next.indent <= indent {
            return Ok(Value::Null);
        }
        match split_key(next.text) {
            Some(_) => self.mapping(next.indent, depth).map(Value::Object),
            None => Ok(self.scalar("", indent)),
        }
    }

    /// Reads the items of a list whose dashes stand at `indent`.
    fn list(&mut self, indent: usize, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent && line.is_item()) {
            let rest = line.text[1..].trim_start();
            let column = line.indent + (line.text.len() - rest.len());
            self.at += 1;
            let is_mapping = split_key(rest).is_some_and(|_| !rest.starts_with(['"', '\'', '[', '{']));
            let item = match is_mapping {
                false => self.value(rest, indent, depth + 1)?,
                true => {
                    let (key, value) = split_key(rest).unwrap_or_default();
                    let first = self.value(value, column, depth + 1)?;
                    let mut map = Map::from_iter([(key, first)]);
                    map.extend(self.mapping(column, depth + 1)?);
                    Value::Object(map)
                }
            };
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    /// Reads a text, or what looks like another kind of value; lines that are further in belong to it.
    fn scalar(&mut self, first: &str, indent: usize) -> Value {
        let mut text = match first.starts_with(['"', '\'']) {
            true => first.to_owned(),
            false => without_comment(first).to_owned(),
        };
        while let Some(line) = self.lines.get(self.at).filter(|line| line.indent > indent && !line.is_blank())
        {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(line.text);
            self.at += 1;
        }
        plain(text.trim(), 0)
    }

    /// Reads the lines of a block; folded ones become one line a paragraph.
    fn block_text(&mut self, indent: usize, is_folded: bool, is_stripped: bool) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut inner = None;
        while let Some(line) = self.lines.get(self.at) {
            if line.text.is_empty() {
                lines.push("");
            } else if line.indent > indent {
                let cut = *inner.get_or_insert(line.indent);
                lines.push(line.raw.get(cut.min(line.indent)..).unwrap_or(line.text));
            } else {
                break;
            }
            self.at += 1;
        }
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
        let mut text = String::new();
        for (idx, line) in lines.iter().enumerate() {
            let is_after_gap = idx > 0 && lines[idx - 1].is_empty();
            let joint = match (idx, is_folded && !line.is_empty()) {
                (0, _) => "",
                (_, true) if is_after_gap => "",
                (_, true) => " ",
                (_, false) => "\n",
            };
            text.push_str(joint);
            text.push_str(line);
        }
        if !is_stripped && !text.is_empty() {
            text.push('\n');
        }
        text
    }
}

fn is_block_style(style: &str) -> bool {
    without_comment(style).chars().all(|c| matches!(c, '-' | '+' | '0'..='9'))
}

/// Splits `key: rest`; a key has no spaces, or stands in quotes.
fn split_key(text: &str) -> Option<(String, &str)> {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            let (key, rest) = inner.split_once(quote)?;
            let rest = rest.trim_start().strip_prefix(':')?;
            return (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (key.to_owned(), rest.trim()));
        }
    }
    let at = text.find(": ").or_else(|| text.find(":\t")).or_else(|| text.strip_suffix(':').map(str::len))?;
    let key = &text[..at];
    let is_key = !key.is_empty() && !key.contains([' ', '\t', '[', '{', ',']);
    is_key.then(|| (key.to_owned(), text[at + 1..].trim()))
}

/// Cuts a comment off, which begins with a space and a hash.
fn without_comment(text: &str) -> &str {
    let at = if text.starts_with('#') { Some(0) } else { text.find(" #").or_else(|| text.find("\t#")) };
    text[..at.unwrap_or(text.len())].trim()
}

/// Returns the value that a text on its own stands for.
fn plain(text: &str, depth: usize) -> Value {
    let first = text.chars().next();
    if matches!(first, Some('[' | '{')) && depth < DEPTH_LIMIT {
        let mut flow = Flow { rest: text, depth };
        if let Some(value) = flow.value().filter(|_| without_comment(flow.rest).is_empty()) {
            return value;
        }
        return Value::from(text);
    }
    if let Some(quote @ ('"' | '\'')) = first {
        return match quoted(text, quote) {
            Some((value, rest)) if without_comment(rest).is_empty() => Value::from(value),
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
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
                value.push('\'');
            }
            _ if c == quote => return Some((value, &text[at + c.len_utf8()..])),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                '0' => value.push('\0'),
                'u' => {
                    let hex: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                    value.push(u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32)?);
                }
                other => value.push(other),
            },
            _ => value.push(c),
        }
    }
    None
}

/// Reads `[a, b]` and `{a: b}`.
struct Flow<'a> {
    rest: &'a str,
    depth: usize,
}

impl Flow<'_> {
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
                let end = self.rest.find([',', ']', '}']).unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(end);
                self.rest = rest;
                Some(plain(text.trim(), self.depth))
            }
        };
        self.depth -= 1;
        value
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn front_matter_is_read_as_people_mean_it() {
        for (text, expected) in [
            ("", json!({})),
            ("a: 1\nb: true\nc: ~\nd: -1.5\n", json!({"a": 1, "b": true, "c": null, "d": -1.5})),
            ("a: one two # three\nb: x#y", json!({"a": "one two", "b": "x#y"})),
            ("a: Use it: when <b>x: y</b>", json!({"a": "Use it: when <b>x: y</b>"})),
            ("a: an [unclosed bracket", json!({"a": "an [unclosed bracket"})),
            ("a: [unclosed", json!({"a": "[unclosed"})),
            ("a: \"half", json!({"a": "\"half"})),
            (r#"a: "say \"hi\"\n" # c"#, json!({"a": "say \"hi\"\n"})),
            ("a: 'it''s'", json!({"a": "it's"})),
            ("a: [Read, \"B,c\", mcp__x]", json!({"a": ["Read", "B,c", "mcp__x"]})),
            ("a: []\nb: {}", json!({"a": [], "b": {}})),
            ("a: {b: 1, c: [x, y]}", json!({"a": {"b": 1, "c": ["x", "y"]}})),
            ("a:\n  - x\n  - y: 1\n    z: 2\n  - 'q'", json!({"a": ["x", {"y": 1, "z": 2}, "q"]})),
            ("a:\n- x\n- y\nb: 1", json!({"a": ["x", "y"], "b": 1})),
            ("a:\n  b:\n    c: d\n  e: f\ng: h", json!({"a": {"b": {"c": "d"}, "e": "f"}, "g": "h"})),
            ("a: |\n  one\n    two\n\n  three\nb: 1", json!({"a": "one\n  two\n\nthree\n", "b": 1})),
            ("a: >-\n  one\n  two\n\n  three\n", json!({"a": "one two\nthree"})),
            ("a: one\n  two\n  three\nb: 1", json!({"a": "one two three", "b": 1})),
            ("# c\n\na: 1\n  # d\nb: 2", json!({"a": 1, "b": 2})),
            ("a:\nb: 1", json!({"a": null, "b": 1})),
            ("\"a b\": 1\n'c': 2", json!({"a b": 1, "c": 2})),
            (
                "a:\n  - matcher: Bash\n    hooks:\n      - type: command\n        command: echo a: b",
                json!({"a": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo a: b"}]}]}),
            ),
            ("a: 1\r\nb: 2\r\n", json!({"a": 1, "b": 2})),
        ] {
            assert_eq!(parse(text).map(Value::Object), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn stray_lines_are_named() {
        for (text, line) in [("a: 1\nnonsense", 2), ("- x", 1), ("a: 1\n  b: 2\n c", 0)] {
            match (parse(text), line) {
                (Err(error), line) if line > 0 => assert!(error.contains(&format!("line {line}")), "{error}"),
                (Ok(_), 0) => {}
                (other, _) => panic!("{text:?}: {other:?}"),
            }
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(&format!("a: {deep}")).unwrap()["a"], json!(deep));
        let nested: String = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert!(parse(&nested).is_err());
    }
}
