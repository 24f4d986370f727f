//! A JSON reader that never gives up: every complete part of a broken text is still found, with its place.
//!
//! Comments and trailing commas are read without complaint. Everything else that strict JSON forbids is an
//! [`SyntaxError`] and reading goes on behind it: a missing comma, a missing or doubled bracket, a string that
//! ends with its line, text behind the end. What cannot be read is [`Tree::Unreadable`] and costs that value
//! only. Offsets are bytes of the text, so that an edit can replace one value and leave every other byte alone.
//!
//! It is written by hand although crates read this language (`jsonc-parser` even edits it): they stop at the first error,
//! while a deny rule must not be lost to a typo elsewhere in its file. Editing intact text alone would not need it.

use serde_json::{Map, Number, Value};

/// How deep values may nest; deeper ones are skipped, so that no file can exhaust the stack.
const DEPTH_LIMIT: usize = 100;
/// How many errors are kept; a file with more is broken enough.
const ERROR_LIMIT: usize = 50;

/// A text as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value the text holds.
    pub root: Option<Node>,
    /// Members found behind the end of the root, where a bracket too many closed it early.
    pub strays: Vec<Member>,
    /// What strict JSON (with comments and trailing commas) does not allow.
    pub errors: Vec<SyntaxError>,
}

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What it is.
    pub tree: Tree,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// Keys and values in the order written; a key may come twice.
    Object(Vec<Member>),
    /// Something that could not be read.
    Unreadable,
}

/// One key and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The key.
    pub key: String,
    /// Where the key starts.
    pub start: usize,
    /// The value.
    pub value: Node,
}

/// Something the text should not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub at: usize,
    /// What.
    pub message: String,
}

/// Reads a text; a text of nothing but spaces and comments has no root and no errors.
pub fn parse(text: &str) -> Document {
    let mut reader = Reader::new(text, bom(text));
    reader.skip_trivia();
    if reader.peek().is_none() {
        return Document { root: None, strays: Vec::new(), errors: reader.errors };
    }
    let root = reader.value();
    reader.skip_trivia();
    let mut strays = Vec::new();
    if reader.peek().is_some() {
        reader.complain(reader.at, "there is more text behind the end; a closing bracket is too many");
        reader.members(None, &mut strays);
    }
    Document { root: Some(root), strays, errors: reader.errors }
}

/// Reads the value that begins at `at`, whatever stands before and behind it.
pub(super) fn parse_at(text: &str, at: usize) -> Node {
    Reader { gives_up_when_deep: true, ..Reader::new(text, at) }.value()
}

/// Returns the offset behind spaces and comments at `at`.
pub(super) fn skip_trivia_at(text: &str, at: usize) -> usize {
    let mut reader = Reader::new(text, at);
    reader.skip_trivia();
    reader.at
}

fn bom(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

impl Node {
    /// Returns the value without its places; `None` when any part of it could not be read.
    pub fn to_value(&self) -> Option<Value> {
        Some(match &self.tree {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Number(number) => Value::Number(number.clone()),
            Tree::String(text) => Value::String(text.clone()),
            Tree::Array(items) => Value::Array(items.iter().map(Self::to_value).collect::<Option<_>>()?),
            Tree::Object(members) => {
                let pairs = members.iter().map(|member| Some((member.key.clone(), member.value.to_value()?)));
                Value::Object(pairs.collect::<Option<Map<_, _>>>()?)
            }
            Tree::Unreadable => return None,
        })
    }

    /// Returns the last member of this name, as JSON readers do.
    pub fn member(&self, key: &str) -> Option<&Member> {
        match &self.tree {
            Tree::Object(members) => members.iter().rev().find(|member| member.key == key),
            _ => None,
        }
    }

    /// Says what the value is, for messages.
    pub fn describe(&self) -> &'static str {
        match self.tree {
            Tree::Null => "null",
            Tree::Bool(_) => "true or false",
            Tree::Number(_) => "a number",
            Tree::String(_) => "text",
            Tree::Array(_) => "a list",
            Tree::Object(_) => "an object",
            Tree::Unreadable => "something unreadable",
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    errors: Vec<SyntaxError>,
    depth: usize,
    /// Whether what is nested too deep ends the reading, where it need not be skipped.
    gives_up_when_deep: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, at: usize) -> Self {
        Self { text, at, errors: Vec::new(), depth: 0, gives_up_when_deep: false }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn complain(&mut self, at: usize, message: impl Into<String>) {
        if self.errors.len() < ERROR_LIMIT {
            self.errors.push(SyntaxError { at, message: message.into() });
        }
    }

    /// Goes on behind the next character.
    fn skip_char(&mut self) {
        self.at += self.rest().chars().next().map_or(1, char::len_utf8);
    }

    fn skip_trivia(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(body) = trimmed.strip_prefix("/*") {
                match body.find("*/") {
                    Some(end) => self.at += end + 4,
                    None => {
                        self.complain(self.at, "this comment is never closed");
                        self.at = self.text.len();
                    }
                }
            } else {
                return;
            }
        }
    }

    fn value(&mut self) -> Node {
        self.skip_trivia();
        let start = self.at;
        let tree = match self.peek() {
            Some(b'{') if self.depth < DEPTH_LIMIT => self.object(),
            Some(b'[') if self.depth < DEPTH_LIMIT => self.array(),
            Some(b'{' | b'[') => self.too_deep(),
            Some(b'"' | b'\'') => self.string().map_or(Tree::Unreadable, Tree::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b',' | b']' | b'}' | b':') | None => {
                self.complain(start, "a value is missing");
                Tree::Unreadable
            }
            Some(_) => self.word(),
        };
        Node { start, end: self.at, tree }
    }

    fn object(&mut self) -> Tree {
        let opened = self.at;
        self.at += 1;
        self.depth += 1;
        let mut members = Vec::new();
        self.members(Some(opened), &mut members);
        self.depth -= 1;
        Tree::Object(members)
    }

    /// Reads members up to the closing bracket of the object that was opened at `opened`; behind the root,
    /// where none was, up to the end of the text.
    fn members(&mut self, opened: Option<usize>, members: &mut Vec<Member>) {
        loop {
            self.skip_trivia();
            match self.peek() {
                None => {
                    if let Some(opened) = opened {
                        self.complain(opened, "this `{` is never closed");
                    }
                    return;
                }
                Some(b'}') => {
                    self.at += 1;
                    if opened.is_some() {
                        return;
                    }
                }
                Some(b'"' | b'\'') => self.member(members),
                Some(byte) if byte.is_ascii_alphabetic() => self.bare_member(members),
                Some(byte) => {
                    if opened.is_some() || byte != b',' {
                        self.complain(self.at, format!("expected a key, found `{}`", self.next_char()));
                    }
                    self.skip_char();
                }
            }
        }
    }

    fn next_char(&self) -> String {
        self.rest().chars().next().map(|c| c.escape_default().to_string()).unwrap_or_default()
    }

    fn member(&mut self, members: &mut Vec<Member>) {
        let start = self.at;
        let Some(key) = self.string() else { return };
        self.value_of(key, start, members);
    }

    fn bare_member(&mut self, members: &mut Vec<Member>) {
        let start = self.at;
        let key = self.take_word();
        self.complain(start, format!("write the key `{key}` in double quotes"));
        self.value_of(key, start, members);
    }

    fn value_of(&mut self, key: String, start: usize, members: &mut Vec<Member>) {
        self.skip_trivia();
        if self.peek() != Some(b':') {
            self.complain(self.at, format!("a colon is missing behind `{key}`"));
            return;
        }
        self.at += 1;
        let mut value = self.value();
        let runs_on = self.comma();
        if runs_on && matches!(value.tree, Tree::String(_)) {
            // A text that something follows on its line most likely ends in the wrong place.
            value.tree = Tree::Unreadable;
        }
        members.push(Member { key, start, value });
    }

    /// Takes the comma behind a value; tells whether something else follows on the same line.
    fn comma(&mut self) -> bool {
        let end = self.at;
        self.skip_trivia();
        match self.peek() {
            Some(b',') => self.at += 1,
            Some(b'}' | b']') | None => {}
            Some(_) => {
                self.complain(end, "a comma is missing");
                return !self.text[end..self.at].contains('\n');
            }
        }
        false
    }

    fn array(&mut self) -> Tree {
        let opened = self.at;
        self.at += 1;
        self.depth += 1;
        let mut items = Vec::new();
        loop {
            self.skip_trivia();
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                Some(b',') => {
                    self.complain(self.at, "a value is missing before this comma");
                    self.at += 1;
                }
                None | Some(b'}') => {
                    self.complain(opened, "this `[` is never closed");
                    break;
                }
                Some(_) if self.is_at_key() => {
                    self.complain(opened, "this `[` is never closed");
                    break;
                }
                Some(b':') => {
                    self.complain(self.at, "unexpected colon in a list");
                    self.at += 1;
                }
                Some(_) => {
                    let item = self.value();
                    items.push(item);
                    self.comma();
                }
            }
        }
        self.depth -= 1;
        Tree::Array(items)
    }

    /// Tells whether a key stands here: the list before it was never closed.
    fn is_at_key(&self) -> bool {
        if self.peek() != Some(b'"') {
            return false;
        }
        let mut ahead = Reader::new(self.text, self.at);
        ahead.string().is_some() && {
            ahead.skip_trivia();
            ahead.peek() == Some(b':')
        }
    }

    fn too_deep(&mut self) -> Tree {
        self.complain(self.at, format!("nested deeper than {DEPTH_LIMIT} levels"));
        if self.gives_up_when_deep {
            self.at = self.text.len();
            return Tree::Unreadable;
        }
        let mut open = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.skip_char();
            if open == 0 {
                break;
            }
        }
        Tree::Unreadable
    }

    fn number(&mut self) -> Tree {
        let start = self.at;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let text: String = self.rest().chars().take_while(|c| is_part(*c)).collect();
        self.at += text.len();
        match serde_json::from_str(&text) {
            Ok(number) => Tree::Number(number),
            Err(_) => {
                self.complain(start, format!("not a number: `{text}`"));
                Tree::Unreadable
            }
        }
    }

    fn take_word(&mut self) -> String {
        let is_part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
        let word: String = self.rest().chars().take_while(is_part).collect();
        self.at += word.len();
        word
    }

    fn word(&mut self) -> Tree {
        let start = self.at;
        let word = self.take_word();
        match word.as_str() {
            "true" => Tree::Bool(true),
            "false" => Tree::Bool(false),
            "null" => Tree::Null,
            "" => {
                self.complain(start, format!("expected a value, found `{}`", self.next_char()));
                self.skip_char();
                Tree::Unreadable
            }
            _ => {
                self.complain(start, format!("write `{word}` in double quotes"));
                Tree::Unreadable
            }
        }
    }

    /// Reads a string; `None` when it does not end on its line.
    fn string(&mut self) -> Option<String> {
        let start = self.at;
        let quote = self.peek()?;
        if quote == b'\'' {
            self.complain(start, "write texts in double quotes");
        }
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let special = |c: char| c == quote as char || c == '\\' || c == '\n';
            let plain = rest.find(special).unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'\\') => self.escape(&mut out),
                None | Some(b'\n') => {
                    self.complain(start, "this text is never closed; a double quote is missing");
                    return None;
                }
                Some(_) => {
                    self.at += 1;
                    return Some(out);
                }
            }
        }
    }

    fn escape(&mut self, out: &mut String) {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.rest().chars().next() else { return };
        if letter == '\n' {
            return;
        }
        self.at += letter.len_utf8();
        let plain = match letter {
            '"' | '\\' | '/' | '\'' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode(start),
            other => {
                self.complain(start, format!("unknown escape `\\{}`", other.escape_default()));
                other
            }
        };
        out.push(plain);
    }

    fn unicode(&mut self, start: usize) -> char {
        let Some(first) = self.hex4() else {
            self.complain(start, "`\\u` needs four hexadecimal digits");
            return char::REPLACEMENT_CHARACTER;
        };
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            let behind_first = self.at;
            self.at += 2;
            if let Some(second) = self.hex4().filter(|second| (0xdc00..0xe000).contains(second)) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            self.at = behind_first;
        }
        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        let code =
            digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16))?.ok()?;
        self.at += 4;
        Some(code)
    }
}
