//! Flags that programs pass which drive loci: the SDKs, editors, scripts.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use loci_app::compose::compaction::CompactWindow;

/// What a program asks of a run, beside what people do.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ClientFlags {
    /// The JSON Schema of the answer, which then is an object of that shape.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Whether the model thinks: adaptive leaves it to the model, disabled turns it off.
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) thinking: Option<ThinkingMode>,

    /// How the model's thinking is shown: summarized, omitted or highlights.
    #[arg(long, value_name = "FORM", value_parser = ["summarized", "omitted", "highlights"])]
    pub(crate) thinking_display: Option<String>,

    /// Tokens that the model is told it may spend on the task.
    #[arg(long, value_name = "N")]
    pub(crate) task_budget: Option<u64>,

    /// With stream-json: pass every line of the transcript on as it is written.
    #[arg(long)]
    pub(crate) session_mirror: bool,

    /// With --resume-session-at: go on only if all that is left out belongs to this prompt.
    #[arg(long, value_name = "UUID", requires = "resume_session_at")]
    pub(crate) resume_drops_turn: Option<String>,

    /// Tell the model what differs between machines in the first message, not in the system prompt.
    #[arg(long)]
    pub(crate) exclude_dynamic_system_prompt_sections: bool,

    /// Do without tools that run code and without user and project settings, and keep to the directories.
    #[arg(long)]
    pub(crate) restricted: bool,

    /// Go on though settings have keys that this version does not know and that may restrict what runs.
    #[arg(long)]
    pub(crate) allow_unknown_settings: bool,

    /// Who is asked what the rules leave open: whoever drives the run, or nobody.
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) permission_prompts: Option<PermissionPrompts>,

    /// The size at which the conversation is compacted: auto, or a number of tokens such as 500k.
    #[arg(long, value_name = "TOKENS")]
    pub(crate) autocompact: Option<String>,

    /// Do without slash commands and skills: prompts are sent as they are.
    #[arg(long)]
    pub(crate) disable_slash_commands: bool,

    /// Do without customisations (instructions, hooks, skills, plugins, MCP servers); tools and permissions stay.
    #[arg(long)]
    pub(crate) safe_mode: bool,

    /// Record the system prompt with the first prompt, and send it as it was when the session goes on, until a compaction;
    /// `off` as value says not to.
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "")]
    pub(crate) system_prompt_snapshot: Option<String>,

    /// With stream-json: say after an answer what may be said next; `off` or `false` as value says not to.
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, default_missing_value = "")]
    pub(crate) prompt_suggestions: Option<String>,

    /// A directory with a plugin for this run whose MCP servers are not used; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir_no_mcp: Vec<PathBuf>,

    /// Wait for the client's first line, which says what the run is to be, before anything begins.
    #[arg(long, hide = true)]
    pub(crate) await_initialize: bool,
}

/// Whether the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingMode {
    /// As much as it likes.
    Adaptive,
    /// As much as its model does by itself.
    Enabled,
    /// Not at all.
    Disabled,
}

/// Who is asked what the rules leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PermissionPrompts {
    /// Whoever drives the run.
    Host,
    /// Nobody: it is denied.
    None,
}

/// Reads a flag whose value may say no.
fn is_switched_on(value: Option<&str>) -> bool {
    value.is_some_and(|text| !matches!(text, "off" | "false"))
}

impl ClientFlags {
    /// Tells whether programs are told what may be said next.
    pub(crate) fn suggests_prompts(&self) -> bool {
        is_switched_on(self.prompt_suggestions.as_deref())
    }

    /// Tells whether the system prompt is recorded, and sent as it was.
    pub(crate) fn keeps_system_prompt(&self) -> bool {
        is_switched_on(self.system_prompt_snapshot.as_deref())
    }

    /// Returns the schema of the answer; the error says what is wrong with it.
    pub(crate) fn schema(&self) -> Result<Option<serde_json::Value>, String> {
        let read = |text: &String| {
            serde_json::from_str(text).map_err(|error| format!("--json-schema is not JSON: {error}"))
        };
        self.json_schema.as_ref().map(read).transpose()
    }

    /// Returns the window that the conversation is compacted within, where one is named.
    pub(crate) fn compact_window(&self) -> Result<Option<CompactWindow>, String> {
        let read = |text: &String| {
            CompactWindow::parse(text).ok_or_else(|| {
                format!("--autocompact needs auto or a number of tokens, such as 200k, not `{text}`")
            })
        };
        self.autocompact.as_ref().map(read).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_that_is_none_is_refused() {
        for (text, expected) in [
            ("auto", Ok(Some(CompactWindow::Model))),
            ("500k", Ok(Some(CompactWindow::Tokens(500_000)))),
            ("0", Err(())),
            ("lots", Err(())),
            ("", Err(())),
        ] {
            let flags = ClientFlags { autocompact: Some(text.to_owned()), ..ClientFlags::default() };
            assert_eq!(flags.compact_window().map_err(|_| ()), expected, "{text}");
        }
        assert_eq!(ClientFlags::default().compact_window(), Ok(None));
    }

    #[test]
    fn suggestions_are_asked_for_by_the_flag_alone_or_its_value() {
        for (value, expected) in [(None, false), (Some(""), true), (Some("true"), true), (Some("off"), false)]
        {
            let prompt_suggestions = value.map(str::to_owned);
            let flags = ClientFlags { prompt_suggestions, ..ClientFlags::default() };
            assert_eq!(flags.suggests_prompts(), expected, "{value:?}");
        }
    }

    #[test]
    fn schema_that_is_not_json_is_refused() {
        let schema = |text: &str| {
            ClientFlags { json_schema: Some(text.to_owned()), ..ClientFlags::default() }.schema()
        };
        assert!(schema("{").unwrap_err().contains("--json-schema"));
        assert_eq!(schema("{}").unwrap(), Some(serde_json::json!({})));
        assert_eq!(ClientFlags::default().schema(), Ok(None));
    }
}
