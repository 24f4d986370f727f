//! From layers to one value a key, with every file's part kept for explaining.

use serde_json::{Map, Value};

use super::gate::{Admission, admit};
use super::{Diagnostic, Key, Layer, Merge, Origin, Refusal, Scope, Severity};

/// All settings in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergedSettings {
    settings: Vec<Setting>,
}

/// One key: its value, and what each file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// The value in force; `None` when no file's value counts.
    pub value: Option<Value>,
    /// What each file says, lowest precedence first.
    pub parts: Vec<Part>,
}

/// What one file says about a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The file.
    pub origin: Origin,
    /// The line, counted from one.
    pub line: usize,
    /// The lines of a list's entries, or of the objects inside a value.
    pub lines: Vec<usize>,
    /// Its value.
    pub value: Value,
    /// What becomes of it.
    pub role: Role,
}

/// What becomes of a file's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is the value in force.
    Wins,
    /// It is part of the value in force.
    Joins,
    /// Another file's value is in force.
    Overridden,
    /// It does not count.
    Refused(Refusal),
}

/// Joins layers, lowest precedence first. `is_trusted` tells whether the user trusts the folder.
pub fn merge(layers: &[Layer], is_trusted: bool) -> MergedSettings {
    let mut settings: Vec<Setting> = Vec::new();
    for key in Key::all() {
        let mut parts = Vec::new();
        for layer in layers {
            let Some(found) = layer.get(key.path) else { continue };
            let part = |value, role| Part {
                origin: layer.origin.clone(),
                line: found.line,
                lines: found.lines.clone(),
                value,
                role,
            };
            let Admission { counts, refused } = admit(key, &layer.origin, &found.value, is_trusted);
            parts.extend(counts.map(|value| part(value, Role::Joins)));
            parts.extend(refused.into_iter().map(|(value, why)| part(value, Role::Refused(why))));
        }
        if !parts.is_empty() {
            let value = join(key.merge, &mut parts);
            settings.push(Setting { key, value, parts });
        }
    }
    MergedSettings { settings }
}

impl MergedSettings {
    /// Returns the keys that some file sets, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }

    /// Returns what is known about a key that some file sets.
    pub fn get(&self, path: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.key.path == path)
    }

    /// Returns the value in force of a key.
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.get(path)?.value.as_ref()
    }

    /// Returns everything in force as one object, shaped as a settings file.
    pub fn to_value(&self) -> Value {
        let mut root = Map::new();
        for setting in &self.settings {
            if let Some(value) = &setting.value {
                insert(&mut root, setting.key.path, value.clone());
            }
        }
        Value::Object(root)
    }

    /// Returns what the files of one scope say, shaped as a settings file; what does not count is left out.
    pub fn of_scope(&self, scope: Scope, show: impl Fn(&Key, &Value) -> Value) -> Value {
        let mut root = Map::new();
        for setting in &self.settings {
            let is_of_scope = |part: &&Part| part.origin.scope == scope && !part.origin.is_state_file;
            let parts = setting.parts.iter().filter(is_of_scope);
            for part in parts.filter(|part| !matches!(part.role, Role::Refused(_))) {
                insert(&mut root, setting.key.path, show(setting.key, &part.value));
            }
        }
        Value::Object(root)
    }

    /// Says which values do not count and why; `trust_hint` tells how to trust the folder.
    pub fn diagnostics(&self, trust_hint: &str) -> Vec<Diagnostic> {
        let mut out: Vec<Diagnostic> = Vec::new();
        let mut waiting: Vec<(Origin, Vec<String>)> = Vec::new();
        for setting in &self.settings {
            for part in &setting.parts {
                let Role::Refused(refusal) = part.role else { continue };
                if refusal == Refusal::Untrusted {
                    let label = labelled(setting.key.path, &part.value);
                    match waiting.iter_mut().find(|(origin, _)| *origin == part.origin) {
                        Some((_, keys)) => keys.push(label),
                        None => waiting.push((part.origin.clone(), vec![label])),
                    }
                } else {
                    out.push(refused(setting.key, part, refusal));
                }
            }
        }
        out.extend(waiting.into_iter().map(|(origin, keys)| {
            let message = format!("ignored until this folder is trusted: {}", keys.join(", "));
            Diagnostic::warning(&origin, message, trust_hint)
        }));
        out
    }
}

fn refused(key: &Key, part: &Part, refusal: Refusal) -> Diagnostic {
    let hint = match refusal {
        Refusal::Scope => format!("it belongs to {}", key.scopes.describe()),
        _ => "move it to your user settings, or remove it".to_owned(),
    };
    let names = match &part.value {
        Value::Object(map) => format!(" ({})", map.keys().cloned().collect::<Vec<_>>().join(", ")),
        _ => String::new(),
    };
    Diagnostic::new(&part.origin, Severity::Warning, format!("ignored{names}: {refusal}"))
        .line(part.line)
        .key(key.path)
        .hint(hint)
}

/// Names a key with the size of its value, as in `permissions.allow (3)`.
fn labelled(path: &str, value: &Value) -> String {
    match value {
        Value::Array(items) => format!("{path} ({})", items.len()),
        Value::Object(map) => format!("{path} ({})", map.len()),
        _ => path.to_owned(),
    }
}

/// Makes one value of the parts that count, and gives each its role.
fn join(merge: Merge, parts: &mut [Part]) -> Option<Value> {
    let mut live: Vec<usize> = (0..parts.len()).filter(|idx| parts[*idx].role == Role::Joins).collect();
    let highest = *live.last()?;
    if merge == Merge::ManagedOrUnion && parts[highest].origin.scope == Scope::Managed {
        let (managed, others) = live.iter().partition(|idx| parts[**idx].origin.scope == Scope::Managed);
        live = managed;
        let others: Vec<usize> = others;
        others.into_iter().for_each(|idx| parts[idx].role = Role::Overridden);
    }
    let winner = match merge {
        Merge::Highest => Some(highest),
        Merge::AnyTrue => Some(find(parts, &live, &Value::Bool(true)).unwrap_or(highest)),
        Merge::AnyFalse => Some(find(parts, &live, &Value::Bool(false)).unwrap_or(highest)),
        Merge::Strictest(order) => Some(strictest(parts, &live, order).unwrap_or(highest)),
        Merge::Union
        | Merge::ManagedOrUnion
        | Merge::ByName
        | Merge::ByWholeName
        | Merge::ByNameStrictest(..)
        | Merge::Concatenate => None,
    };
    if let Some(winner) = winner {
        for idx in live {
            parts[idx].role = if idx == winner { Role::Wins } else { Role::Overridden };
        }
        return Some(parts[winner].value.clone());
    }
    if let [only] = live[..] {
        parts[only].role = Role::Wins;
    }
    let values = live.iter().map(|idx| parts[*idx].value.clone());
    values.reduce(|low, high| match merge {
        Merge::ByWholeName => by_name(low, high, &|_, high| high),
        Merge::Concatenate => by_name(low, high, &concatenated),
        Merge::ByName => by_name(low, high, &deep),
        Merge::ByNameStrictest(name, order) => strictest_below(low, high, name, order),
        _ => union(low, high),
    })
}

fn find(parts: &[Part], live: &[usize], value: &Value) -> Option<usize> {
    live.iter().rev().copied().find(|idx| parts[*idx].value == *value)
}

fn strictest(parts: &[Part], live: &[usize], order: &[&str]) -> Option<usize> {
    let rank = |idx: &usize| order.iter().position(|name| parts[*idx].value == *name);
    live.iter().copied().max_by_key(rank)
}

fn union(low: Value, high: Value) -> Value {
    match (low, high) {
        (Value::Array(mut items), Value::Array(more)) => {
            for item in more {
                if !items.contains(&item) {
                    items.push(item);
                }
            }
            Value::Array(items)
        }
        (_, high) => high,
    }
}

fn by_name(low: Value, high: Value, same: &dyn Fn(Value, Value) -> Value) -> Value {
    match (low, high) {
        (Value::Object(mut map), Value::Object(more)) => {
            for (name, value) in more {
                let joined = match map.remove(&name) {
                    Some(old) => same(old, value),
                    None => value,
                };
                map.insert(name, joined);
            }
            Value::Object(map)
        }
        (_, high) => high,
    }
}

fn deep(low: Value, high: Value) -> Value {
    match (&low, &high) {
        (Value::Object(_), Value::Object(_)) => by_name(low, high, &deep),
        (Value::Array(_), Value::Array(_)) => union(low, high),
        _ => high,
    }
}

/// Joins deep inside; under one name the stricter value wins, wherever it stands.
fn strictest_below(low: Value, high: Value, name: &str, order: &[&str]) -> Value {
    let rank = |value: &Value| order.iter().position(|it| value == it);
    match (low, high) {
        (Value::Object(mut map), Value::Object(more)) => {
            for (key, value) in more {
                let joined = match map.remove(&key) {
                    Some(old) if key == name => {
                        if rank(&old) > rank(&value) {
                            old
                        } else {
                            value
                        }
                    }
                    Some(old) => strictest_below(old, value, name, order),
                    None => value,
                };
                map.insert(key, joined);
            }
            Value::Object(map)
        }
        (low, high) => deep(low, high),
    }
}

fn concatenated(low: Value, high: Value) -> Value {
    match (low, high) {
        (Value::Array(mut items), Value::Array(more)) => {
            items.extend(more);
            Value::Array(items)
        }
        (_, high) => high,
    }
}

fn insert(map: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            map.insert(path.to_owned(), value);
        }
        Some((group, rest)) => {
            let group = map.entry(group).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = group {
                insert(inner, rest, value);
            }
        }
    }
}
