//! What an installation is made of, and what is wrong with it: a list of checks (`checks.rs`), each of which says what it
//! found for people and for programs. Nothing is changed and nothing is asked of the network. Secrets are named, never shown.

mod checks;
mod work_checks;

use loci_stdx::{Env, counted};
use serde_json::{Map, Value};

use crate::settings::editor::SettingsContext;
use crate::settings::with_settings_vars;
use checks::Installation;

/// Which build this is.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildNames {
    /// In a line.
    pub line: String,
    /// For programs.
    pub json: Value,
}

/// One thing that was looked at, and what was found.
struct Check {
    /// What people read, in order.
    text: Vec<Block>,
    /// What programs read: keys of the report and their values.
    json: Vec<(&'static str, Value)>,
    n_problems: usize,
}

/// What people read of a check.
enum Block {
    Line(String),
    /// A title with rows beneath it; without rows it is left out.
    Section(&'static str, Vec<String>),
}

impl Check {
    /// A check that found a fact: its line, its key, its value.
    fn fact(line: String, key: &'static str, value: impl Into<Value>) -> Self {
        Self { text: vec![Block::Line(line)], json: vec![(key, value.into())], n_problems: 0 }
    }

    /// A check whose rows stand beneath a title.
    fn section(title: &'static str, rows: Vec<String>, key: &'static str, value: Value) -> Self {
        Self { text: vec![Block::Section(title, rows)], json: vec![(key, value)], n_problems: 0 }
    }
}

/// What was found.
pub struct DoctorReport {
    checks: Vec<Check>,
}

impl DoctorReport {
    /// Examines an installation; `build` says which build this is, for people and for programs.
    pub fn new(env: &Env, build: &BuildNames) -> Self {
        Self::observed(env, build, &|_, _| {})
    }

    /// Does the same, and tells how many checks of how many are made.
    pub fn observed(env: &Env, build: &BuildNames, progress: &dyn Fn(u64, u64)) -> Self {
        let context = SettingsContext::new(env);
        let plugins = context.plugins();
        let SettingsContext { home, places, loaded, .. } = context;
        let env = with_settings_vars(env, &loaded.settings());
        let installation = Installation { env, home, places, loaded, plugins };
        Self { checks: checks::all(&installation, build, progress) }
    }

    /// Returns how many problems there are.
    pub fn n_problems(&self) -> usize {
        self.checks.iter().map(|check| check.n_problems).sum()
    }

    /// Returns it for people.
    pub fn to_text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut is_below_section = false;
        for block in self.checks.iter().flat_map(|check| &check.text) {
            match block {
                Block::Line(line) => {
                    lines.extend(is_below_section.then(String::new));
                    lines.push(line.clone());
                    is_below_section = false;
                }
                Block::Section(_, rows) if rows.is_empty() => {}
                Block::Section(title, rows) => {
                    lines.extend([String::new(), (*title).to_owned()]);
                    lines.extend(rows.iter().map(|row| format!("  {row}")));
                    is_below_section = true;
                }
            }
        }
        lines.push(String::new());
        lines.push(match self.n_problems() {
            0 => "Nothing is wrong".to_owned(),
            n => counted(n as u64, "problem", "problems"),
        });
        lines.join("\n") + "\n"
    }

    /// Returns it for programs.
    pub fn to_json(&self) -> Value {
        let facts = self.checks.iter().flat_map(|check| &check.json);
        let facts = facts.map(|(key, value)| ((*key).to_owned(), value.clone()));
        let verdict = ("isWrong".to_owned(), Value::from(self.n_problems() > 0));
        Value::Object(facts.chain([verdict]).collect::<Map<_, _>>())
    }
}
