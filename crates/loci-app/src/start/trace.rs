//! The trace: what a run did and when, a line each, for whoever has to answer "it hung".
//!
//! Code that has something to say uses `tracing` with a target of ours, `loci::<category>`:
//!
//! | category | what |
//! |---|---|
//! | `engine` | commands, what the turn machine hears and wants done |
//! | `api` | requests to the model: sent, head of the answer, end or failure |
//! | `permissions` | verdicts with their reasons |
//! | `hooks` | hooks asked and answered |
//! | `tools` | calls begun and ended |
//! | `process` | child processes started and ended |
//! | `control` | control requests of both directions |
//! | `mcp` | servers connected, what they say and what is asked of them |
//! | `agents` | agents sent out, gone on with and ended |
//! | `skills` | definitions read anew |
//! | `sandbox` | how commands are confined, and what was refused |
//! | `web` | pages fetched and searches made |
//! | `storage` | files of the session that could not be read or written as usual |
//! | `worktrees` | worktrees made, locked and removed |
//! | `tui` | what the terminal says of itself |
//!
//! A line is `<time> [<category>] <what> <field>=<value> ...`, written at once. What must stay true:
//!
//! 1. Without a trace nothing is installed: a place that could say something costs one comparison.
//! 2. Nothing secret is written. Places say names, ids, sizes and times, never inputs, outputs, prompts or headers; should
//!    a secret get in by way of an error or a rule, [`Redaction`] takes it out. Other crates have no say.
//! 3. A trace that cannot be written changes nothing about the run.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use loci_stdx::{Clock, Env, TerminalWriter, Vars, create_private_dir_all, private_file, visible};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use crate::user_error::UserError;

/// What our targets begin with.
const OURS: &str = "loci::";
/// The shortest value of a variable that is taken for a secret.
const SHORTEST_SECRET: usize = 8;

/// What of the trace is wanted, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceOptions {
    /// The categories.
    pub filter: TraceFilter,
    /// How much of them.
    pub level: TraceLevel,
    /// Where it goes.
    pub to: TraceTarget,
}

/// How much of a trace is written: what is this grave, and graver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TraceLevel {
    /// Everything.
    #[default]
    Debug,
    /// What a person would want to know.
    Info,
    /// What went wrong.
    Warn,
    /// What failed.
    Error,
}

impl TraceLevel {
    /// Reads the name of a level; an unknown one means everything.
    pub fn parse(text: &str) -> Self {
        match text.trim().to_lowercase().as_str() {
            "info" => Self::Info,
            "warn" | "warning" => Self::Warn,
            "error" => Self::Error,
            _ => Self::Debug,
        }
    }

    fn filter(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Warn => LevelFilter::WARN,
            Self::Error => LevelFilter::ERROR,
        }
    }
}

/// Where a trace goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceTarget {
    /// To the file of the session, `debug/<session>.txt` in the config home.
    Session,
    /// To this file, at its end.
    File(PathBuf),
    /// To standard error.
    Stderr,
}

/// Which categories are written: those that are named, or all but those that are named with a `!`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceFilter {
    only: Vec<String>,
    without: Vec<String>,
}

impl TraceFilter {
    /// Reads `api,hooks` or `!api,!hooks`; nothing means everything.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self::default();
        for name in
            text.split([',', ' ']).map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty())
        {
            match name.strip_prefix('!') {
                Some(name) => filter.without.push(name.to_owned()),
                None => filter.only.push(name),
            }
        }
        filter
    }

    /// Tells whether a category is written.
    fn has(&self, category: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|name| name == category);
        (self.only.is_empty() || is_named(&self.only)) && !is_named(&self.without)
    }
}

/// Begins a trace for the rest of the process. `session_file` is where it goes unless the options say otherwise.
pub fn start_trace(options: &TraceOptions, env: &Env, session_file: &Path) -> Result<(), UserError> {
    let path = match &options.to {
        TraceTarget::Stderr => None,
        TraceTarget::Session => Some(session_file),
        TraceTarget::File(path) => Some(path.as_path()),
    };
    let writer: Box<dyn Write + Send> = match path {
        None => Box::new(TerminalWriter::new(io::stderr())),
        Some(path) => Box::new(open(path).map_err(|error| {
            UserError::new(format!("Failed to open the debug file: `{}`: {error}", path.display()))
        })?),
    };
    let trace = Trace {
        filter: options.filter.clone(),
        level: options.level.filter(),
        redaction: Redaction::new(&env.vars),
        clock: Arc::clone(&env.clock),
        writer: Mutex::new(writer),
    };
    tracing::subscriber::set_global_default(trace).map_err(|error| UserError::from_error(&error))
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        create_private_dir_all(dir)?;
    }
    private_file().append(true).create(true).open(path)
}

/// Writes what our places say.
struct Trace {
    filter: TraceFilter,
    level: LevelFilter,
    redaction: Redaction,
    clock: Arc<dyn Clock>,
    // Guards the order of lines.
    writer: Mutex<Box<dyn Write + Send>>,
}

impl Subscriber for Trace {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
            && metadata.target().strip_prefix(OURS).is_some_and(|category| self.filter.has(category))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let category = event.metadata().target().strip_prefix(OURS).unwrap_or_default();
        let mut fields = Fields::default();
        event.record(&mut fields);
        let text = format!("{} [{category}] {}{}", self.clock.now(), fields.message, fields.rest);
        let mut line = self.redaction.apply(&visible(&text.replace('\n', "\\n")));
        line.push('\n');
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // A trace that cannot be written changes nothing about the run.
        drop(writer.write_all(line.as_bytes()));
    }

    // There are no spans: what belongs together has the same id.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of an event, as text.
#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message.push_str(&format!("{value:?}")),
            name => self.rest.push_str(&format!(" {name}={value:?}")),
        }
    }
}

/// Takes secrets out of lines.
#[derive(Debug, Default)]
struct Redaction {
    /// What may not appear.
    secrets: Vec<String>,
}

impl Redaction {
    /// Takes the values of variables for secrets whose names say that they are.
    fn new(vars: &Vars) -> Self {
        let words = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "HEADERS"];
        let is_secret = |name: &str| {
            let name = name.to_uppercase();
            words.iter().any(|word| name.contains(word))
        };
        let secrets = vars.iter().filter(|(name, value)| is_secret(name) && value.len() >= SHORTEST_SECRET);
        let mut secrets: Vec<String> = secrets.map(|(_, value)| value.trim().to_owned()).collect();
        // One that contains another goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    fn apply(&self, line: &str) -> String {
        let known =
            self.secrets.iter().fold(line.to_owned(), |line, secret| line.replace(secret, "[redacted]"));
        without_tokens(&known)
    }
}

/// Takes out what looks like a key or follows the word `Bearer`.
fn without_tokens(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+/=~".contains(c);
    let mut text = String::with_capacity(line.len());
    let mut follows_bearer = false;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if !is_part(first) {
            text.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        let is_key =
            word.len() >= 16 && (word.contains("sk-") || word.contains("ghp_") || word.contains("AKIA"));
        text.push_str(if follows_bearer || is_key { "[redacted]" } else { word });
        follows_bearer = word.eq_ignore_ascii_case("bearer");
        rest = tail;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_names_categories_or_leaves_them_out() {
        for (text, api, hooks) in [
            ("", true, true),
            ("api", true, false),
            ("API, mcp", true, false),
            ("api,hooks", true, true),
            ("!api", false, true),
            ("!api,!hooks", false, false),
            ("api,!api", false, false),
        ] {
            let filter = TraceFilter::parse(text);
            assert_eq!((filter.has("api"), filter.has("hooks")), (api, hooks), "{text:?}");
        }
    }

    #[test]
    fn secrets_are_redacted() {
        let vars = Vars::from_os(
            [
                ("ANTHROPIC_API_KEY", "plain-value-1"),
                ("DB_PASSWORD", "hunter2-hunter2"),
                ("TOKEN", "short"),
                ("HOME", "/home/me"),
            ]
            .map(|(name, value)| (name.into(), value.into())),
        );
        let redaction = Redaction::new(&vars);
        for (line, expected) in [
            ("key plain-value-1.", "key [redacted]."),
            ("x=hunter2-hunter2y", "x=[redacted]y"),
            ("short /home/me", "short /home/me"),
            ("Authorization: Bearer abc.def-1 x", "Authorization: Bearer [redacted] x"),
            ("saw sk-ant-api03-abcdefghij!", "saw [redacted]!"),
            ("sk-1 é toolu_01", "sk-1 é toolu_01"),
        ] {
            assert_eq!(redaction.apply(line), expected);
        }
    }
}
