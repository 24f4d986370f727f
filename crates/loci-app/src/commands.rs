//! The commands about context, cost, model and configuration, for every front end alike.
//!
//! Each has a file: what it is about is gathered into a value, and the value says itself as Markdown. Headless shows that
//! text, the terminal makes a panel of the value. Whatever a command changes about the running session it returns as
//! effects, which the engine makes; what it changes in files it writes itself. Nothing here asks a model. All of it may
//! read files, so a front end calls it off the thread that draws.

pub mod add_dir;
mod agents;
pub mod autocompact;
pub mod config;
pub mod context;
pub mod debug;
pub mod diff;
pub mod effort;
pub mod fewer_prompts;
mod goal;
pub mod hooks;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod permissions;
pub mod plugin;
mod reload_plugins;
mod rename;
pub mod sandbox;
pub mod skills;
pub mod status;
pub mod tasks;
pub mod usage;

use loci_engine::{CommandCall, LocalCommands, LocalEffect, LocalOutcome, MentionedSession, SessionSnapshot};
use loci_settings::Scope;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;

pub use reload_plugins::PluginReload;

use crate::reports::doctor::{BuildNames, DoctorReport};
use crate::reports::stats::statistics_text;
use crate::sessions::command::CommandContext;
use crate::sessions::mention::read_mentioned;
use crate::settings::editor::{SettingsContext, SettingsInputs};
use crate::user_error::UserError;

/// What commands know beside the session.
#[derive(Clone)]
pub struct SessionCommands {
    /// The environment with the settings' variables.
    pub env: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// Which build this is, for people.
    pub build: String,
    /// What counts beside the settings files of the directory.
    pub settings: SettingsInputs,
    /// How plugins are read anew, in a running session.
    pub plugin_reload: Option<PluginReload>,
}

impl From<&CommandContext> for SessionCommands {
    fn from(ctx: &CommandContext) -> Self {
        let build = ctx.options.build.clone().unwrap_or_else(|| "unknown".to_owned());
        let settings = ctx.settings_inputs();
        Self { env: ctx.env.clone(), home: ctx.home.clone(), build, settings, plugin_reload: None }
    }
}

impl LocalCommands for SessionCommands {
    fn run(&self, call: &CommandCall, session: &SessionSnapshot) -> LocalOutcome {
        let argument = call.argument.as_deref().unwrap_or_default().trim();
        match call.command.name.as_str() {
            "context" => context::run(argument, session),
            "usage" => usage::run(session),
            "status" => status::run(self, session),
            "model" => model::run(self, argument, session),
            "effort" => effort::run(self, argument, session),
            "autocompact" => autocompact::run(self, argument, session),
            "config" => config::run(self, argument, session),
            "rename" => rename::run(argument, session),
            "mcp" => mcp::run(self, argument, session),
            "permissions" => permissions::run(argument, session),
            "add-dir" => add_dir::run(argument, session),
            "memory" => memory::run(self, argument, session),
            "diff" => diff::run(self),
            "doctor" => LocalOutcome::text(self.doctor()),
            "hooks" => hooks::run(self, session),
            "skills" => skills::run(session),
            "plugin" => plugin::run(self, argument, session),
            "sandbox" => sandbox::run(self, argument),
            "fewer-permission-prompts" => fewer_prompts::run(argument, session),
            "debug" => debug::run(session),
            "tasks" => tasks::run_tasks(session),
            "agents" => tasks::run_agents(argument, session),
            "list-agents" => tasks::run_list_agents(session),
            "subtask" => tasks::run_subtask(argument),
            "stop" => tasks::run_stop(argument, session),
            "goal" => goal::run(argument, session),
            "reload-plugins" => reload_plugins::run(self),
            "reload-skills" => LocalOutcome::default().with(LocalEffect::ReloadSkills),
            other => LocalOutcome::error(format!("`/{other}` cannot be carried out here")),
        }
    }

    fn needs_servers(&self, call: &CommandCall) -> bool {
        matches!(call.command.name.as_str(), "context" | "mcp" | "status")
    }

    fn read_session(&self, name: &str) -> Result<MentionedSession, String> {
        read_mentioned(&self.env, &self.home, name).map_err(|error| error.to_string())
    }
}

/// What a panel may show as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportTopic {
    /// `/usage`.
    Usage,
    /// `/status`.
    Status,
    /// The agents that can be sent out.
    Agents,
    /// The figures of all sessions.
    Stats,
    /// `/doctor`.
    Doctor,
}

impl SessionCommands {
    /// Reads the settings that count for the session.
    pub fn settings_context(&self) -> SettingsContext {
        SettingsContext::with_inputs(&self.env, &self.settings)
    }

    /// Examines the installation.
    fn doctor(&self) -> String {
        let build = BuildNames { line: self.build.clone(), json: self.build.clone().into() };
        format!("```text\n{}```\n", DoctorReport::new(&self.env, &build).to_text())
    }

    /// Returns a report as Markdown: what the command of its name says.
    pub fn report(&self, topic: ReportTopic, session: &SessionSnapshot) -> String {
        match topic {
            ReportTopic::Usage => usage::run(session),
            ReportTopic::Status => status::run(self, session),
            ReportTopic::Agents => return agents::to_markdown(self),
            ReportTopic::Doctor => return self.doctor(),
            ReportTopic::Stats => {
                let text = statistics_text(&self.env, &self.home);
                return format!("```text\n{}\n```\n", text.trim_end());
            }
        }
        .text
    }
}

/// Says why a command did nothing.
fn refused(error: &UserError) -> LocalOutcome {
    LocalOutcome::error(error.to_string())
}

/// Takes `--user`, `--project` or `--local` from the words of a command, wherever it stands.
fn take_scope<'a>(words: &mut Vec<&'a str>) -> Option<Scope> {
    let scope = |word: &&'a str| match *word {
        "--user" => Some(Scope::User),
        "--project" => Some(Scope::Project),
        "--local" => Some(Scope::Local),
        _ => None,
    };
    let at = words.iter().position(|word| scope(word).is_some())?;
    scope(&words.remove(at))
}

/// Makes a text fit for a cell of a table.
fn cell(text: &str) -> String {
    loci_stdx::single_line(text, 200).replace('|', "\\|")
}

/// Returns a number of tokens in three digits or so.
pub fn short_tokens(n: u64) -> String {
    let digits = |n: f64| if n < 9.95 { format!("{n:.1}") } else { format!("{n:.0}") };
    let trim = |text: String| text.strip_suffix(".0").map(str::to_owned).unwrap_or(text);
    match n {
        0..1_000 => n.to_string(),
        1_000..999_500 => trim(digits(n as f64 / 1e3)) + "k",
        _ => trim(digits(n as f64 / 1e6)) + "M",
    }
}

/// Returns a time as people say it.
pub fn format_duration(time: std::time::Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_secs() {
        0..10 => format!("{seconds:.1} s"),
        10..60 => format!("{seconds:.0} s"),
        60..3_600 => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
        _ => format!("{} h {} min", time.as_secs() / 3_600, time.as_secs() / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn tokens_and_times_are_short() {
        for (n, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (1_250, "1.2k"),
            (12_345, "12k"),
            (999_499, "999k"),
            (1_000_000, "1M"),
            (1_250_000, "1.2M"),
        ] {
            assert_eq!(short_tokens(n), expected);
        }
        for (millis, expected) in [
            (0, "0.0 s"),
            (1_250, "1.2 s"),
            (59_000, "59 s"),
            (61_000, "1 min 1 s"),
            (3_700_000, "1 h 1 min"),
        ] {
            assert_eq!(format_duration(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn scope_is_taken_from_anywhere() {
        let mut words = vec!["allow", "--local", "Bash(ls)"];
        assert_eq!(take_scope(&mut words), Some(Scope::Local));
        assert_eq!(words, ["allow", "Bash(ls)"]);
        assert_eq!(take_scope(&mut words), None);
    }
}
