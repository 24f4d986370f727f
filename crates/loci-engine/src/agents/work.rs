//! What an agent has done so far, for whoever waits for it or looks on.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loci_core::agent::AgentDefinition;
use loci_core::tool::{KnownTool, ToolKind};
use loci_core::usage::Usage;
use loci_stdx::{Clock, single_line};
use loci_tools::{TaskHandle, TaskUsage, ToolStats};
use serde_json::Value;

use super::LiveAgent;

/// The most letters of a call that are told.
const MOST_LETTERS: usize = 120;

/// The accounts of one agent.
pub(crate) struct AgentWork {
    task: TaskHandle,
    pub(crate) live: Arc<LiveAgent>,
    clock: Arc<dyn Clock>,
    began: Duration,
    pub(crate) stats: ToolStats,
    pub(crate) tool_uses: u64,
    /// What the last answer used.
    pub(crate) last_usage: Usage,
    /// Where what it says is written down as it says it.
    output: PathBuf,
    /// How long its model may say nothing while it works in the background.
    patience: Option<Duration>,
    /// Whether it was given up because its model said nothing any more.
    pub(crate) has_stalled: bool,
    /// What it may use.
    caps: AgentCaps,
    /// How many tokens it has used, without what came out of a cache.
    used_tokens: u64,
    /// The cap that it was stopped at.
    pub(crate) reached_cap: Option<ReachedCap>,
}

/// What an agent may use, as its definition says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AgentCaps {
    tokens: Option<u64>,
    time: Option<Duration>,
}

/// A cap that an agent has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReachedCap {
    #[error("it may use {0} tokens (`maxTokens` of its definition)")]
    Tokens(u64),
    #[error("it may work {} s (`maxSeconds` of its definition)", .0.as_secs())]
    Time(Duration),
}

impl AgentCaps {
    pub(crate) fn of_definition(definition: &AgentDefinition) -> Self {
        Self {
            tokens: definition.max_tokens.map(u64::from),
            time: definition.max_seconds.map(|seconds| Duration::from_secs(seconds.into())),
        }
    }
}

impl AgentWork {
    pub(crate) fn new(
        task: TaskHandle,
        live: Arc<LiveAgent>,
        clock: Arc<dyn Clock>,
        output: PathBuf,
        patience: Option<Duration>,
        caps: AgentCaps,
    ) -> Self {
        Self {
            began: clock.monotonic(),
            task,
            live,
            clock,
            stats: ToolStats::default(),
            tool_uses: 0,
            last_usage: Usage::default(),
            output,
            patience,
            has_stalled: false,
            caps,
            used_tokens: 0,
            reached_cap: None,
        }
    }

    /// Returns how long it may work from now on; for ever without a cap.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.caps.time.map(|time| time.saturating_sub(self.clock.monotonic().saturating_sub(self.began)))
    }

    /// Returns the cap that it has come to, if it has.
    pub(crate) fn cap(&self) -> Option<ReachedCap> {
        let tokens = self.caps.tokens.filter(|most| self.used_tokens >= *most).map(ReachedCap::Tokens);
        let is_late = self.time_left().is_some_and(|left| left.is_zero());
        tokens.or_else(|| self.caps.time.filter(|_| is_late).map(ReachedCap::Time))
    }

    /// Returns how long its model may say nothing: in the foreground whoever waits may interrupt.
    pub(crate) fn stall_limit(&self) -> Option<Duration> {
        self.patience.filter(|_| self.task.is_background())
    }

    /// A request was answered.
    pub(crate) fn answered(&mut self, usage: &Usage) {
        self.last_usage = usage.clone();
        self.used_tokens += total_tokens(usage).saturating_sub(usage.cache_read_input_tokens);
        self.live.answered(usage);
    }

    /// A call begins, of an agent that works at `cwd`.
    pub(crate) fn call_began(&mut self, tool: &str, input: &Value, cwd: &Path) {
        self.tool_uses += 1;
        let stats = &mut self.stats;
        let count = match ToolKind::of_tool(tool) {
            ToolKind::Read => &mut stats.reads,
            ToolKind::Search => &mut stats.searches,
            ToolKind::Execute => &mut stats.commands,
            ToolKind::Edit => &mut stats.edits,
            ToolKind::Fetch | ToolKind::Delegate | ToolKind::Mode | ToolKind::Other => &mut stats.others,
        };
        *count += 1;
        let label = label(tool, input, cwd);
        self.write(&format!("[{label}]"));
        self.task.progress(label, Some(tool.to_owned()), self.usage());
    }

    /// A call is done; what it changed is counted.
    pub(crate) fn call_ended(&mut self, structured: &Value) {
        let hunks = structured["structuredPatch"].as_array().into_iter().flatten();
        for line in hunks.flat_map(|hunk| hunk["lines"].as_array().into_iter().flatten()) {
            match line.as_str().and_then(|line| line.chars().next()) {
                Some('+') => self.stats.lines_added += 1,
                Some('-') => self.stats.lines_removed += 1,
                _ => {}
            }
        }
        if structured["type"] == "create" {
            let content = structured["content"].as_str().unwrap_or_default();
            self.stats.lines_added += content.lines().count() as u64;
        }
    }

    /// Something was said.
    pub(crate) fn write_text(&self, text: &str) {
        if !text.trim().is_empty() {
            self.write(text.trim_end());
        }
    }

    /// Returns what it has used so far.
    pub(crate) fn usage(&self) -> TaskUsage {
        TaskUsage {
            total_tokens: total_tokens(&self.last_usage),
            tool_uses: self.tool_uses,
            duration: self.duration(),
        }
    }

    pub(crate) fn duration(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.began)
    }

    /// Adds to the output file. What cannot be written is not: the transcript has it all.
    fn write(&self, text: &str) {
        let file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&self.output);
        drop(file.and_then(|mut file| writeln!(file, "{text}")));
    }
}

/// Returns how many tokens the last request and its answer were.
pub(crate) fn total_tokens(usage: &Usage) -> u64 {
    usage.input_tokens
        + usage.cache_creation_input_tokens
        + usage.cache_read_input_tokens
        + usage.output_tokens
}

/// Says what a call does, for people. Files below `cwd` are named from there.
fn label(tool: &str, input: &Value, cwd: &Path) -> String {
    let text = |key: &str| input[key].as_str().filter(|text| !text.trim().is_empty());
    let known = KnownTool::find(tool);
    let subject = known.and_then(|it| it.subject_of(input));
    let subject = match known.map(|it| it.kind) {
        Some(ToolKind::Execute) => text("description").or(subject),
        _ => subject.map(|path| below(path, cwd)),
    };
    if let (Some(doing), Some(subject)) = (known.and_then(|it| it.kind.doing()), subject) {
        return format!("{doing} {}", short(Some(subject)));
    }
    match subject.or(text("description")).or(text("prompt")).or(text("query")) {
        Some(what) => format!("{tool}: {}", short(Some(what))),
        None => tool.to_owned(),
    }
}

fn below<'a>(path: &'a str, cwd: &Path) -> &'a str {
    let rest = cwd.to_str().and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix('/'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(path)
}

fn short(text: Option<&str>) -> String {
    single_line(text.unwrap_or_default(), MOST_LETTERS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_of_a_call_names_files_from_where_the_agent_works() {
        for (tool, input, expected) in [
            ("Read", json!({"file_path": "/p/src/a.rs"}), "Reading src/a.rs"),
            ("Read", json!({"file_path": "/pp/a.rs"}), "Reading /pp/a.rs"),
            ("Read", json!({"file_path": "/p"}), "Reading /p"),
            ("Bash", json!({"command": "/p/run", "description": "Run it"}), "Running Run it"),
            ("Bash", json!({"command": "/p/run"}), "Running /p/run"),
        ] {
            assert_eq!(label(tool, &input, Path::new("/p")), expected, "{tool} {input}");
        }
    }
}
