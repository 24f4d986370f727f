//! The part of YAML that people write between the fences of a Markdown file, read without ever refusing a sentence.
//!
//! Mappings, lists, texts in quotes or without, `|` and `>` blocks, `[a, b]` and `{a: b}` become JSON values. What YAML
//! would refuse but anybody understands, such as a colon or an unclosed bracket within a text, is the text that it looks
//! like. Anchors, aliases, tags and complex keys are not read: they are the texts that they look like, and that is noted,
//! as is a key that stands there twice. A line that is no part of anything is an error.
//!
//! By hand, because front matter that people wrote for other programs is often no YAML (`description: Use when: ...`), where
//! a crate for YAML refuses the whole file; and hundreds of files are read at each start.

mod flow;

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use flow::{closed_flow, plain, quoted, without_comment};

/// How deep values may lie in one another.
const DEPTH_LIMIT: usize = 16;

/// What was read, and what was not understood.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrontMatter {
    /// The fields.
    pub fields: Map<String, Value>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// Reads a mapping; the error names the line, counted from one.
pub fn parse(text: &str) -> Result<FrontMatter, String> {
    let FieldList { fields, notes } = parse_fields(text)?;
    Ok(FrontMatter { fields: fields.into_iter().collect(), notes })
}

/// The fields as they stand there, each name once, and what was not understood.
pub(crate) struct FieldList {
    pub(crate) fields: Vec<(String, Value)>,
    pub(crate) notes: Vec<String>,
}

/// Reads a mapping without making a table of it: hundreds of files are read at each start, and a table of a few fields takes
/// longer to make than to look through.
pub(crate) fn parse_fields(text: &str) -> Result<FieldList, String> {
    let lines = lines_of(text);
    let mut reader = Reader { lines: &lines, at: 0, notes: Vec::new() };
    let first = reader.peek().map_or(0, |line| line.indent);
    let fields = reader.mapping(first, 0)?.fields;
    match reader.peek() {
        None => Ok(FieldList { fields, notes: reader.notes }),
        Some(line) => Err(format!("line {}: not a `key: value`", line.number)),
    }
}

fn lines_of(text: &str) -> Vec<Line<'_>> {
    let (mut lines, mut at) = (Vec::with_capacity(USUAL_LINES), 0);
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |end| at + end);
        lines.push(Line::new(lines.len() + 1, &text[at..end]));
        at = end + 1;
    }
    lines
}

/// Most front matter has no more lines.
const USUAL_LINES: usize = 8;

/// So many fields are looked through one by one; more have an index, so that a file of nothing else takes no longer.
const FEW: usize = 16;

/// The fields of a mapping, in order.
#[derive(Default)]
struct Fields {
    fields: Vec<(String, Value)>,
    /// Where each is, once there are many.
    index: HashMap<String, usize>,
}

impl Fields {
    /// Sets a field; false where it was there before.
    fn insert(&mut self, key: String, value: Value) -> bool {
        let known = match self.index.is_empty() {
            true => self.fields.iter().position(|(name, _)| *name == key),
            false => self.index.get(&key).copied(),
        };
        if let Some(at) = known {
            self.fields[at].1 = value;
            return false;
        }
        if !self.index.is_empty() {
            self.index.insert(key.clone(), self.fields.len());
        } else if self.fields.len() == FEW {
            let names = self.fields.iter().map(|(name, _)| name).chain([&key]);
            self.index = names.enumerate().map(|(at, name)| (name.clone(), at)).collect();
        }
        self.fields.push((key, value));
        true
    }

    fn into_value(self) -> Value {
        Value::Object(self.fields.into_iter().collect())
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
        let is_letter = |byte: Option<&u8>| matches!(byte, Some(b'!'..=b'~'));
        // Most lines begin and end with a letter; nothing else has to be looked at then.
        let raw = if is_letter(raw.as_bytes().last()) { raw } else { raw.trim_end() };
        let text = if is_letter(raw.as_bytes().first()) { raw } else { raw.trim_start() };
        Self { number, indent: raw.len() - text.len(), text, raw }
    }

    /// Tells whether it says nothing.
    fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }

    fn is_item(&self) -> bool {
        self.text == "-" || self.text.starts_with("- ") || self.text.starts_with("-\t")
    }
}

struct Reader<'a> {
    lines: &'a [Line<'a>],
    at: usize,
    notes: Vec<String>,
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
    fn mapping(&mut self, indent: usize, depth: usize) -> Result<Fields, String> {
        let mut map = Fields::default();
        while let Some(line) = self.peek().filter(|line| line.indent == indent && !line.is_item()) {
            // Where only a key can stand, it may be of several words.
            let Some((key, rest)) = split_key(line.text).or_else(|| split_long_key(line.text)) else { break };
            self.at += 1;
            let value = self.value(rest, indent, depth + 1)?;
            self.insert(&mut map, &key, value, line.number);
        }
        Ok(map)
    }

    fn insert(&mut self, map: &mut Fields, key: &str, value: Value, line: usize) {
        if key == "<<" {
            self.notes.push(format!("line {line}: `<<` is not read"));
        }
        if !map.insert(key.to_owned(), value) {
            self.notes.push(format!("line {line}: `{key}` stands there twice; the last one counts"));
        }
    }

    /// Reads what stands behind a key, or a dash, at `indent`.
    fn value(&mut self, rest: &str, indent: usize, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_LIMIT {
            return Err("values lie too deep in one another".to_owned());
        }
        if rest.starts_with(|c: char| c.is_ascii_alphabetic())
            && !rest.as_bytes().contains(&b'#')
            && self.lines.get(self.at).is_none_or(|next| !next.is_blank() && next.indent <= indent)
        {
            // Most values: words on one line, behind which something else begins.
            return Ok(plain(rest, 0));
        }
        if let Some(style) = rest.strip_prefix(['|', '>']).and_then(BlockStyle::parse) {
            return Ok(Value::from(self.block_text(indent, rest.starts_with('>'), style)));
        }
        self.note_foreign(rest);
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
            Some(_) => self.mapping(next.indent, depth).map(Fields::into_value),
            None => Ok(self.scalar("", indent)),
        }
    }

    /// Notes what YAML means something by that is not read here.
    fn note_foreign(&mut self, rest: &str) {
        let mut letters = rest.chars();
        let (first, second) = (letters.next(), letters.next());
        let is_name = second.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '!');
        let what = match first {
            Some('&') if is_name => "an anchor",
            Some('*') if is_name => "an alias",
            Some('!') if is_name => "a tag",
            _ => return,
        };
        let word = rest.split_whitespace().next().unwrap_or_default();
        self.notes.push(format!("line {}: `{word}` is {what}, which is not read", self.at));
    }

    /// Reads the items of a list whose dashes stand at `indent`.
    fn list(&mut self, indent: usize, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_LIMIT {
            return Err("values lie too deep in one another".to_owned());
        }
        let mut items = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.indent == indent && line.is_item()) {
            let rest = line.text[1..].trim_start();
            let column = line.indent + (line.text.len() - rest.len());
            self.at += 1;
            items.push(self.item(rest, (indent, column), line.number, depth)?);
        }
        Ok(Value::Array(items))
    }

    /// Reads what stands behind the dash of an item, at a column.
    fn item(
        &mut self,
        rest: &str,
        (indent, column): (usize, usize),
        number: usize,
        depth: usize,
    ) -> Result<Value, String> {
        if depth > DEPTH_LIMIT {
            return Err("values lie too deep in one another".to_owned());
        }
        let is_list = rest == "-" || rest.starts_with("- ");
        if is_list {
            // A list within a list, on one line.
            let inner = rest[1..].trim_start();
            let deeper = column + (rest.len() - inner.len());
            let first = self.item(inner, (column, deeper), number, depth + 1)?;
            let Value::Array(others) = self.list(column, depth + 1)? else { return Ok(Value::Null) };
            return Ok(std::iter::once(first).chain(others).collect());
        }
        let entry = split_key(rest).filter(|_| !rest.starts_with(['[', '{']));
        let Some((key, value)) = entry else { return self.value(rest, indent, depth + 1) };
        let first = self.value(value, column, depth + 1)?;
        let mut map = Fields::default();
        map.insert(key.into_owned(), first);
        for (key, value) in self.mapping(column, depth + 1)?.fields {
            self.insert(&mut map, &key, value, number);
        }
        Ok(map.into_value())
    }

    /// Reads a text, or what looks like another kind of value; lines that are further in belong to it.
    fn scalar(&mut self, first: &str, indent: usize) -> Value {
        let began = self.at;
        let whole = match first.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted_lines(first, quote),
            Some('[' | '{') => self.flow_lines(first),
            _ => None,
        };
        if let Some(value) = whole {
            return value;
        }
        self.at = began;
        // Most texts are one line, which is copied once.
        let mut text = Cow::Borrowed(without_comment(first));
        let mut n_blank = 0;
        while let Some(line) = self.lines.get(self.at) {
            if line.is_blank() {
                n_blank += usize::from(line.text.is_empty());
                self.at += 1;
                continue;
            }
            if line.indent <= indent {
                break;
            }
            fold(text.to_mut(), std::mem::take(&mut n_blank));
            text.to_mut().push_str(without_comment(line.text));
            self.at += 1;
        }
        plain(text.trim(), 0)
    }

    /// Reads a text in quotes that may go on for several lines; none where the quotes are part of a sentence.
    fn quoted_lines(&mut self, first: &str, quote: char) -> Option<Value> {
        let mut text = first.to_owned();
        let mut n_blank = 0;
        loop {
            if let Some((value, rest)) = quoted(&text, quote) {
                return without_comment(rest).is_empty().then(|| Value::from(value));
            }
            let line = self.lines.get(self.at)?;
            self.at += 1;
            if line.text.is_empty() {
                n_blank += 1;
                continue;
            }
            let is_joined = quote == '"' && n_blank == 0 && text.ends_with('\\') && !text.ends_with("\\\\");
            match is_joined {
                true => drop(text.pop()),
                false => fold(&mut text, std::mem::take(&mut n_blank)),
            }
            text.push_str(line.text);
        }
    }

    /// Reads `[a, b]` or `{a: b}` that may go on for several lines; none where the bracket is part of a sentence.
    fn flow_lines(&mut self, first: &str) -> Option<Value> {
        let mut text = without_comment(first).to_owned();
        loop {
            if let Some((value, rest)) = closed_flow(&text) {
                return without_comment(rest).is_empty().then_some(value);
            }
            // A bracket that is closed and yet nothing is a sentence.
            let line = self.lines.get(self.at)?;
            self.at += 1;
            text.push(' ');
            text.push_str(without_comment(line.text));
        }
    }

    /// Reads the lines of a block; folded ones become one line a paragraph.
    fn block_text(&mut self, indent: usize, is_folded: bool, style: BlockStyle) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut inner = style.indent.map(|more| indent + more);
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
        let n_said = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
        let n_blank = lines.len() - n_said;
        let mut text = match is_folded {
            true => folded(&lines[..n_said]),
            false => lines[..n_said].join("\n"),
        };
        let n_ends = match style.chomping {
            Chomping::Strip => 0,
            Chomping::Clip => usize::from(!text.is_empty()),
            Chomping::Keep => n_blank + usize::from(!text.is_empty()),
        };
        text.extend(std::iter::repeat_n('\n', n_ends));
        text
    }
}

/// What stands behind `|` or `>`.
#[derive(Clone, Copy)]
struct BlockStyle {
    chomping: Chomping,
    indent: Option<usize>,
}

#[derive(Clone, Copy)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl BlockStyle {
    fn parse(text: &str) -> Option<Self> {
        let mut style = Self { chomping: Chomping::Clip, indent: None };
        for c in without_comment(text).chars() {
            match c {
                '-' => style.chomping = Chomping::Strip,
                '+' => style.chomping = Chomping::Keep,
                '1'..='9' => style.indent = c.to_digit(10).map(|n| n as usize),
                _ => return None,
            }
        }
        Some(style)
    }
}

/// Joins the next line to a text: by a space, or by as many line ends as there were blank lines.
fn fold(text: &mut String, n_blank: usize) {
    match n_blank {
        0 if text.is_empty() => {}
        0 => text.push(' '),
        n => text.extend(std::iter::repeat_n('\n', n)),
    }
}

/// Folds lines of a block: those that are further in keep their ends.
fn folded(lines: &[&str]) -> String {
    let is_kept = |line: &str| line.starts_with([' ', '\t']);
    let mut text = String::new();
    let (mut n_blank, mut last): (usize, Option<&str>) = (0, None);
    for line in lines {
        if line.is_empty() {
            n_blank += 1;
            continue;
        }
        let n_blank = std::mem::take(&mut n_blank);
        match last {
            None => text.extend(std::iter::repeat_n('\n', n_blank)),
            Some(before) if is_kept(before) || is_kept(line) => {
                text.extend(std::iter::repeat_n('\n', n_blank + 1));
            }
            Some(_) => fold(&mut text, n_blank),
        }
        text.push_str(line);
        last = Some(line);
    }
    text
}

/// Splits `key: rest`; a key is one word, or stands in quotes.
fn split_key(text: &str) -> Option<(Cow<'_, str>, &str)> {
    if let Some(quote @ ('"' | '\'')) = text.chars().next() {
        let (key, rest) = quoted(text, quote)?;
        let rest = rest.trim_start().strip_prefix(':')?;
        return (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (Cow::Owned(key), rest.trim()));
    }
    let (key, rest) = split_colon(text)?;
    let is_odd = |byte| matches!(byte, b' ' | b'\t' | b'[' | b'{' | b',' | b'(' | b'`' | b'"' | b'#');
    let is_word = !key.bytes().any(is_odd);
    is_word.then_some((Cow::Borrowed(key), rest))
}

/// The same for a key of a few plain words.
fn split_long_key(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (key, rest) = split_colon(text)?;
    let is_plain = key.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.'));
    (is_plain && key.split(' ').count() <= 4).then_some((Cow::Borrowed(key), rest))
}

fn split_colon(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let ends_key = |at: &usize| bytes[*at] == b':' && matches!(bytes.get(at + 1), None | Some(b' ' | b'\t'));
    let at = (0..bytes.len()).find(ends_key)?;
    let key = text[..at].trim_end();
    (!key.is_empty()).then(|| (key, text[at + 1..].trim()))
}

#[cfg(test)]
mod tests;
