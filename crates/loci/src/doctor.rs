//! `loci doctor`: what this installation is made of, and what is wrong with it.
//!
//! A report is a list of checks (`checks.rs`); each says what it found for people and for programs. Nothing is changed and
//! nothing is asked of the network. Secrets are named, never shown. The exit code is 1 when something is wrong.

mod checks;

use std::path::Path;

use loci_app::UserError;
use loci_app::settings::with_settings_vars;
use loci_stdx::{Env, counted};
use loci_storage::config::{MANAGED_DIR, SettingsPlaces, SettingsSources, load_settings};
use loci_storage::layout::ConfigHome;
use serde_json::{Map, Value};

use crate::config::{pretty, write};
use checks::Installation;

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Examines the installation and returns the exit code.
pub(crate) fn run(env: &Env, args: &DoctorArgs) -> Result<u8, UserError> {
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
    let loaded = load_settings(&places, None);
    let env = with_settings_vars(env, &loaded.settings());
    let report = Report { checks: checks::all(&Installation { env, home, places, loaded }) };
    write(&if args.json { pretty(&report.to_json()) } else { report.to_text() })?;
    Ok(u8::from(report.n_problems() > 0))
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

struct Report {
    checks: Vec<Check>,
}

impl Report {
    fn n_problems(&self) -> usize {
        self.checks.iter().map(|check| check.n_problems).sum()
    }

    fn to_text(&self) -> String {
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

    fn to_json(&self) -> Value {
        let facts = self.checks.iter().flat_map(|check| &check.json);
        let facts = facts.map(|(key, value)| ((*key).to_owned(), value.clone()));
        let verdict = ("isWrong".to_owned(), Value::from(self.n_problems() > 0));
        Value::Object(facts.chain([verdict]).collect::<Map<_, _>>())
    }
}
