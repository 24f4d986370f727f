//! One settings file as read: its values, and what is wrong with the rest.

use serde_json::{Map, Value};

use super::degrade;
use super::jsonc::{self, Document, Member, Node, Tree};
use super::recover::{self, RestrictingList};
use super::{Closed, Diagnostic, Key, Kind, Merge, Origin, Scope, Severity, Trust};

/// The values of one settings file.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Which file.
    pub origin: Origin,
    /// Its values, one a key at most, in the order of the file.
    pub values: Vec<LayerValue>,
    /// Keys that are none of ours.
    pub unknown: Vec<UnknownKey>,
}

/// One value of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerValue {
    /// The key.
    pub key: &'static Key,
    /// The line of the key, counted from one.
    pub line: usize,
    /// The lines of a list's entries, or of the objects inside a value whose parts of several files are put one behind
    /// the other; none for anything else.
    pub lines: Vec<usize>,
    /// The value, which fits the key's kind.
    pub value: Value,
}

/// A key that is none of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// Its path.
    pub path: String,
    /// Its line.
    pub line: usize,
    /// The key that was most likely meant.
    pub suggestion: Option<&'static str>,
}

impl UnknownKey {
    /// Tells whether whoever set it may rely on it to hold the run: it is about permissions or the sandbox, or an administrator
    /// wrote it.
    pub fn may_restrict(&self, scope: Scope) -> bool {
        scope == Scope::Managed
            || ["permissions.", "sandbox."].iter().any(|group| self.path.starts_with(group))
    }
}

impl Layer {
    /// Reads the text of a settings file.
    pub fn parse(text: &str, origin: Origin) -> (Self, Vec<Diagnostic>) {
        let document = jsonc::parse(text);
        let mut reading = LayerReader {
            text,
            layer: Self { origin, values: Vec::new(), unknown: Vec::new() },
            diagnostics: Vec::new(),
        };
        reading.syntax(&document);
        let mut misplaced = Vec::new();
        match document.root.as_ref().map(|root| (root, &root.tree)) {
            None => {}
            Some((_, Tree::Object(members))) => reading.members("", members, &mut misplaced),
            Some((root, _)) => reading.not_an_object(root),
        }
        reading.members("", &document.strays, &mut misplaced);
        if document.errors.is_empty() {
            reading.misplaced(&misplaced);
        } else {
            reading.recovered(&recover::scan(text));
        }
        (reading.layer, reading.diagnostics)
    }

    /// Returns the value of a key.
    pub fn get(&self, path: &str) -> Option<&LayerValue> {
        self.values.iter().find(|value| value.key.path == path)
    }
}

struct LayerReader<'a> {
    text: &'a str,
    layer: Layer,
    diagnostics: Vec<Diagnostic>,
}

impl LayerReader<'_> {
    fn line(&self, at: usize) -> usize {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    fn report(
        &mut self,
        severity: Severity,
        at: usize,
        path: &str,
        message: String,
        hint: impl Into<String>,
    ) {
        let line = self.line(at);
        let diagnostic = Diagnostic::new(&self.layer.origin, severity, message).line(line).hint(hint);
        let keyed = if path.is_empty() { diagnostic } else { diagnostic.key(path) };
        self.diagnostics.push(keyed);
    }

    fn syntax(&mut self, document: &Document) {
        let Some(first) = document.errors.first() else { return };
        let more = match document.errors.len() {
            1 => String::new(),
            n => format!(", and {} more", n - 1),
        };
        let message = format!("not valid JSON: {}{more}", first.message);
        self.report(Severity::Error, first.at, "", message, "what can be read is used; fix the file");
    }

    fn not_an_object(&mut self, root: &Node) {
        let message = format!("expected an object, found {}", root.describe());
        self.report(Severity::Error, root.start, "", message, "begin the file with `{` and end it with `}`");
    }

    fn members<'n>(&mut self, group: &str, members: &'n [Member], misplaced: &mut Vec<RestrictingList<'n>>) {
        for member in members {
            let path = if group.is_empty() { member.key.clone() } else { format!("{group}.{}", member.key) };
            let is_plain = !member.key.contains('.');
            let alias = Key::by_alias(&path);
            if let Some(key) = alias.filter(|key| members.iter().any(|other| other.key == key.path)) {
                let message = format!("`{}` is set, too, and counts; this is ignored", key.path);
                self.report(Severity::Warning, member.start, &path, message, "keep one of them");
                continue;
            }
            match Key::find(&path).or(alias) {
                Some(key) if is_plain => match self.take(key, member) {
                    true => recover::search_taken(key.kind, member, misplaced),
                    false => recover::search(member, misplaced),
                },
                _ if is_plain && Key::is_group(&path) => self.group(&path, member, misplaced),
                _ if path == "$schema" => {}
                _ => {
                    self.unknown(path, member);
                    recover::search(member, misplaced);
                }
            }
        }
    }

    fn group<'n>(&mut self, path: &str, member: &'n Member, misplaced: &mut Vec<RestrictingList<'n>>) {
        match &member.value.tree {
            Tree::Object(members) => self.members(path, members, misplaced),
            _ => {
                self.bad_value(path, member, "an object");
                recover::search(member, misplaced);
            }
        }
    }

    fn bad_value(&mut self, path: &str, member: &Member, expected: &str) {
        let message = format!("expected {expected}, found {}; ignored", render_node(&member.value));
        let hint = format!("write {expected}, or remove the key");
        self.report(Severity::Warning, member.start, path, message, hint);
    }

    fn unknown(&mut self, path: String, member: &Member) {
        let line = self.line(member.start);
        let suggestion = Key::suggestion(&path);
        // Under `permissions` a slip may leave a door open, so it is said aloud.
        let is_grave = path.starts_with("permission")
            || sounds_restricting(&path)
            || suggestion.is_some_and(|key| is_restriction(key) || key == "hooks");
        let severity = if is_grave { Severity::Warning } else { Severity::Note };
        let hint = match suggestion {
            Some(key) => format!("did you mean `{key}`?"),
            None => "it is kept".to_owned(),
        };
        self.report(severity, member.start, &path, "no such setting".to_owned(), hint);
        self.layer.unknown.push(UnknownKey { path, line, suggestion });
    }

    /// Takes a value; a wrong one costs itself alone. Returns false when nothing of it was taken.
    fn take(&mut self, key: &'static Key, member: &Member) -> bool {
        let Some(value) = self.fitted(key, member) else {
            if let Some(closed) = key.closed.filter(|_| self.fails_closed(key)) {
                self.close(key, member, closed);
                return true;
            }
            if !matches!(member.value.tree, Tree::Unreadable) {
                self.bad_value(key.path, member, &key.kind.expected());
            }
            return false;
        };
        let line = self.line(member.start);
        let value = self.degraded(key, member, value);
        let lines = match value {
            Value::Array(_) => self.entry_lines(&member.value),
            Value::Object(_) if key.merge == Merge::Concatenate => self.object_lines(&member.value),
            _ => Vec::new(),
        };
        self.put(LayerValue { key, line, lines, value });
        true
    }

    /// Returns the lines of the texts in a list, in order.
    fn entry_lines(&self, node: &Node) -> Vec<usize> {
        let texts = match &node.tree {
            Tree::Array(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        texts.iter().filter(|item| as_str(item).is_some()).map(|item| self.line(item.start)).collect()
    }

    /// Returns the lines of the objects inside an object, in the order of the text.
    fn object_lines(&self, node: &Node) -> Vec<usize> {
        let inner: Vec<&Node> = match &node.tree {
            Tree::Array(items) => items.iter().collect(),
            Tree::Object(members) => members.iter().map(|member| &member.value).collect(),
            _ => Vec::new(),
        };
        let own = |node: &Node| matches!(node.tree, Tree::Object(_)).then(|| self.line(node.start));
        inner.into_iter().flat_map(|node| own(node).into_iter().chain(self.object_lines(node))).collect()
    }

    /// Mends entries of the administrator's that would hide nothing.
    fn degraded(&mut self, key: &Key, member: &Member, value: Value) -> Value {
        if key.path != degrade::KEY || self.layer.origin.scope != Scope::Managed {
            return value;
        }
        let (value, n_degraded) = degrade::degraded(value);
        if n_degraded > 0 {
            let what = if n_degraded == 1 { "entry says" } else { "entries say" };
            let message = format!("{n_degraded} {what} no `mode`; taken as \"deny\"");
            self.report(Severity::Warning, member.start, key.path, message, "write \"deny\" or \"mask\"");
        }
        value
    }

    /// Tells whether a wrong value counts as the strictest.
    fn fails_closed(&self, key: &Key) -> bool {
        key.closed.is_some() && self.layer.origin.scope == Scope::Managed
    }

    /// Takes the strictest value in place of one of the administrator's that cannot be read.
    fn close(&mut self, key: &'static Key, member: &Member, closed: Closed) {
        let expected = key.kind.expected();
        let message =
            format!("expected {expected}, found {}; taken as {}", render_node(&member.value), closed.value());
        self.report(Severity::Warning, member.start, key.path, message, format!("write {expected}"));
        let line = self.line(member.start);
        self.put(LayerValue { key, line, lines: Vec::new(), value: closed.value() });
    }

    /// Keeps a value; of a key that comes twice the last counts, but restrictions add up.
    fn put(&mut self, new: LayerValue) {
        let (key, line) = (new.key, new.line);
        let Some(idx) = self.layer.values.iter().position(|old| old.key.path == key.path) else {
            return self.layer.values.push(new);
        };
        let first = self.layer.values[idx].line;
        let old = &mut self.layer.values[idx];
        let message = match (key.kind, &mut old.value, new.value) {
            (Kind::Restrictions, Value::Array(rules), Value::Array(more)) => {
                rules.extend(more);
                old.lines.extend(new.lines);
                format!("set twice, first on line {first}; all rules count")
            }
            (_, _, value) => {
                *old = LayerValue { key, line, lines: new.lines, value };
                format!("set twice, first on line {first}; the last counts")
            }
        };
        let diagnostic = Diagnostic::new(&self.layer.origin, Severity::Warning, message);
        self.diagnostics.push(diagnostic.line(line).key(key.path).hint("keep one of them"));
    }

    /// Returns the value as the key's kind wants it; parts of lists and maps that do not fit are left out.
    fn fitted(&mut self, key: &'static Key, member: &Member) -> Option<Value> {
        let node = &member.value;
        match (key.kind, &node.tree) {
            (Kind::Bool, Tree::Bool(value)) => Some(Value::Bool(*value)),
            (Kind::Text | Kind::TextOrTexts, Tree::String(text)) => Some(Value::from(text.as_str())),
            // What can only be turned off is off by a plain yes.
            (Kind::OneOf(["disable"]), Tree::Bool(true)) => {
                let message = "expected \"disable\", found true; taken as that".to_owned();
                self.report(Severity::Warning, node.start, key.path, message, "write \"disable\"");
                Some(Value::from("disable"))
            }
            (Kind::OneOf(names), Tree::String(text)) if names.contains(&text.as_str()) => {
                Some(Value::from(text.as_str()))
            }
            (Kind::Integer(least, most), Tree::Number(number)) => {
                number.as_i64().filter(|number| (least..=most).contains(number)).map(Value::from)
            }
            (Kind::Number(least, most), Tree::Number(number)) => number
                .as_f64()
                .filter(|number| (least..=most).contains(number))
                .map(|_| Value::Number(number.clone())),
            (Kind::Restrictions, Tree::String(rule)) => {
                let message = "a rule stands alone; taken as a list of one".to_owned();
                self.report(Severity::Warning, node.start, key.path, message, "put it in [ ]");
                Some(Value::from(vec![rule.clone()]))
            }
            // Lists that nobody need be trusted for mostly restrict, and one text says clearly enough what is meant.
            (Kind::Texts, Tree::String(text)) if key.trust == Trust::Free && !self.fails_closed(key) => {
                let message = "a text stands alone; taken as a list of one".to_owned();
                self.report(Severity::Warning, node.start, key.path, message, "put it in [ ]");
                Some(Value::from(vec![text.clone()]))
            }
            (Kind::Texts | Kind::Restrictions | Kind::TextOrTexts, Tree::Array(items)) => {
                Some(self.texts(key, items))
            }
            (Kind::List, Tree::Array(_)) | (Kind::Object, Tree::Object(_)) | (Kind::Any, _) => {
                node.to_value()
            }
            (Kind::TextMap, Tree::Object(members)) => {
                Some(self.map(key, members, |node| as_text(node).map(Value::from)))
            }
            (Kind::BoolMap, Tree::Object(members)) => Some(self.map(key, members, |node| match node.tree {
                Tree::Bool(value) => Some(Value::Bool(value)),
                _ => None,
            })),
            _ => None,
        }
    }

    fn texts(&mut self, key: &Key, items: &[Node]) -> Value {
        let mut texts = Vec::new();
        for (idx, item) in items.iter().enumerate() {
            match &item.tree {
                Tree::String(text) => texts.push(Value::from(text.as_str())),
                Tree::Unreadable => {}
                _ => {
                    let message = format!("entry {} is {}, not text; left out", idx + 1, render_node(item));
                    self.report(
                        Severity::Warning,
                        item.start,
                        key.path,
                        message,
                        "write it in double quotes",
                    );
                }
            }
        }
        Value::Array(texts)
    }

    fn map(&mut self, key: &Key, members: &[Member], fit: impl Fn(&Node) -> Option<Value>) -> Value {
        let mut map = Map::new();
        for member in members {
            match fit(&member.value) {
                Some(value) => {
                    map.insert(member.key.clone(), value);
                }
                None => {
                    let path = format!("{}.{}", key.path, member.key);
                    let expected = if key.kind == Kind::BoolMap { Kind::Bool } else { Kind::Text };
                    self.bad_value(&path, member, &expected.expected());
                }
            }
        }
        Value::Object(map)
    }

    /// Takes restricting rules that stand where they should not.
    fn misplaced(&mut self, found: &[RestrictingList<'_>]) {
        for found in found {
            let n_new = self.take_found(found);
            if n_new > 0 {
                let message = format!("{} outside `permissions`; applied all the same", rules(n_new));
                let hint = format!("move them to `{}`", found.path);
                self.report(Severity::Warning, found.at, found.path, message, hint);
            }
        }
    }

    /// Takes restricting rules out of a text whose structure cannot be believed.
    fn recovered(&mut self, found: &[RestrictingList<'_>]) {
        for found in found {
            let n_new = self.take_found(found);
            if n_new > 0 {
                let message = format!("{} recovered from the broken part of the file", rules(n_new));
                self.report(
                    Severity::Warning,
                    found.at,
                    found.path,
                    message,
                    "they are applied; fix the file",
                );
            }
        }
    }

    /// Adds the rules that are not known yet and returns how many they are.
    fn take_found(&mut self, found: &RestrictingList<'_>) -> usize {
        let Some(key) = Key::find(found.path) else { return 0 };
        let texts: Vec<&str> = match &found.node.tree {
            Tree::String(text) => vec![text.as_str()],
            Tree::Array(items) => items.iter().filter_map(as_str).collect(),
            _ => Vec::new(),
        };
        let line = self.line(found.at);
        let known = self.layer.get(found.path).and_then(|value| value.value.as_array());
        let is_known = |text: &str| known.is_some_and(|rules| rules.iter().any(|rule| rule == text));
        let new: Vec<Value> = texts.into_iter().filter(|text| !is_known(text)).map(Value::from).collect();
        let n_new = new.len();
        let more = vec![line; n_new];
        match self.layer.values.iter_mut().find(|value| value.key.path == found.path) {
            Some(LayerValue { value: Value::Array(rules), lines, .. }) => {
                rules.extend(new);
                lines.extend(more);
            }
            _ if n_new == 0 => {}
            _ => self.layer.values.push(LayerValue { key, line, lines: more, value: Value::Array(new) }),
        }
        n_new
    }
}

/// Tells whether whoever sets a key of this name relies on something not happening.
fn sounds_restricting(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    ["deny", "denied", "disallow", "disable", "block", "forbid", "restrict"]
        .iter()
        .any(|word| lower.contains(word))
}

fn is_restriction(path: &str) -> bool {
    recover::restricting_path(path).is_some()
}

fn rules(n: usize) -> String {
    if n == 1 { "1 rule".to_owned() } else { format!("{n} rules") }
}

fn as_str(node: &Node) -> Option<&str> {
    match &node.tree {
        Tree::String(text) => Some(text),
        _ => None,
    }
}

/// Returns a text, or the letters of a number or switch: variables are texts whatever they look like.
fn as_text(node: &Node) -> Option<String> {
    match &node.tree {
        Tree::String(text) => Some(text.clone()),
        Tree::Number(number) => Some(number.to_string()),
        Tree::Bool(value) => Some(value.to_string()),
        Tree::Null | Tree::Array(_) | Tree::Object(_) | Tree::Unreadable => None,
    }
}

/// Shows a value in a message, short values by their letters.
fn render_node(node: &Node) -> String {
    match &node.tree {
        Tree::String(text) if text.chars().count() <= 40 => format!("{text:?}"),
        Tree::Number(number) => number.to_string(),
        Tree::Bool(value) => value.to_string(),
        _ => node.describe().to_owned(),
    }
}
