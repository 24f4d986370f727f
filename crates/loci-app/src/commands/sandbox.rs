//! `/sandbox`: whether commands run in a sandbox, how they are approved, what may leave it, what is set, and what this machine
//! lacks for it.

use loci_engine::LocalOutcome;
use loci_sandbox::Level;
use loci_settings::{SandboxSettings, Scope};
use serde_json::Value;

use super::{SessionCommands, cell};
use crate::commands::config::{SettingRow, change, rows};
use crate::permissions::sandbox::check_level;
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// How commands are approved in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxMode {
    /// There is none.
    Off,
    /// They run inside without a question.
    AutoAllow,
    /// They run inside and are asked about as usual.
    Ask,
}

impl SandboxMode {
    /// All of them, as they are offered.
    pub const ALL: [Self; 3] = [Self::AutoAllow, Self::Ask, Self::Off];

    /// Says what it means.
    pub fn describe(self) -> &'static str {
        match self {
            Self::AutoAllow => "Sandbox, commands in it run without asking",
            Self::Ask => "Sandbox, commands in it are asked about as usual",
            Self::Off => "No sandbox",
        }
    }

    fn of(settings: &SandboxSettings) -> Self {
        match (settings.enabled, settings.auto_allow) {
            (false, _) => Self::Off,
            (true, true) => Self::AutoAllow,
            (true, false) => Self::Ask,
        }
    }
}

/// What is to be changed about the sandbox, in the person's settings for the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxChange {
    /// Another mode.
    Mode(SandboxMode),
    /// Whether commands that fail inside may be run outside, after a question.
    MayLeave(bool),
}

/// A layer of the sandbox, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxLayer {
    /// Its name.
    pub name: &'static str,
    /// Why it is missing; none when it holds.
    pub problem: Option<String>,
    /// What would mend that.
    pub remedy: Option<String>,
}

/// How the sandbox of a directory stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxReport {
    /// How commands are approved, as settings say.
    pub mode: SandboxMode,
    /// Whether commands may leave it, after a question.
    pub may_leave: bool,
    /// What this machine can give, in a word.
    pub level: String,
    /// Whether that is all of it.
    pub is_full: bool,
    /// Each layer.
    pub layers: Vec<SandboxLayer>,
    /// What stays open.
    pub open: Vec<&'static str>,
    /// What is set about it: key, value, where.
    pub set: Vec<(String, String, String)>,
    /// What is set and cannot be honoured.
    pub not_honoured: Vec<String>,
}

impl SandboxReport {
    /// Gathers it. Tries what the machine can do, which takes a while.
    pub fn new(ctx: &SettingsContext) -> Self {
        let settings = ctx.loaded.settings().sandbox;
        let found = check_level(&settings);
        let is_set =
            |row: &SettingRow| row.explained.key.starts_with("sandbox.") && !row.explained.parts.is_empty();
        let set = rows(ctx).into_iter().filter(is_set).map(|row| {
            let from = row.explained.winner().map(|part| format!("{}:{}", part.file, part.line));
            let from = from.unwrap_or_else(|| "set, but does not count".to_owned());
            (row.explained.key.to_owned(), row.display_value(), from)
        });
        Self {
            mode: SandboxMode::of(&settings),
            may_leave: settings.allows_unsandboxed,
            level: found.level.to_string(),
            is_full: found.level == Level::Full,
            layers: found
                .reports
                .iter()
                .map(|layer| SandboxLayer {
                    name: layer.name,
                    problem: layer.problem.clone(),
                    remedy: layer.remedy.clone(),
                })
                .collect(),
            open: found.open().to_vec(),
            set: set.collect(),
            not_honoured: settings.not_honoured.iter().map(|(key, why)| format!("{key}: {why}")).collect(),
        }
    }

    /// Returns it for people.
    pub fn to_markdown(&self) -> String {
        let leave = match self.may_leave {
            true => "A command that fails inside may be run outside, after a question",
            false => "Nothing leaves it but the commands that settings name",
        };
        let mut text = format!(
            "## Sandbox\n\n- Mode: {}\n- {leave}\n- This machine can give: {}\n\n",
            self.mode.describe(),
            self.level
        );
        for layer in &self.layers {
            let state = layer.problem.as_ref().map_or("holds".to_owned(), |it| format!("missing: {it}"));
            text.push_str(&format!("- {}: {state}\n", layer.name));
            text.extend(layer.remedy.iter().map(|it| format!("  {it}\n")));
        }
        self.open.iter().for_each(|it| text.push_str(&format!("- open: {it}\n")));
        if !self.set.is_empty() {
            text.push_str("\n| Setting | Value | From |\n|---|---|---|\n");
        }
        for (key, value, from) in &self.set {
            text.push_str(&format!("| {key} | {} | {} |\n", cell(value), cell(from)));
        }
        self.not_honoured.iter().for_each(|it| text.push_str(&format!("\n- has no effect: {it}\n")));
        text
    }
}

/// Changes the sandbox in the person's settings for the project; returns what is said of it.
pub fn carry_out(ctx: &SettingsContext, wish: SandboxChange) -> Result<String, UserError> {
    let keys: &[(&str, bool)] = match wish {
        SandboxChange::Mode(SandboxMode::Off) => &[("sandbox.enabled", false)],
        SandboxChange::Mode(SandboxMode::AutoAllow) => {
            &[("sandbox.enabled", true), ("sandbox.autoAllowBashIfSandboxed", true)]
        }
        SandboxChange::Mode(SandboxMode::Ask) => {
            &[("sandbox.enabled", true), ("sandbox.autoAllowBashIfSandboxed", false)]
        }
        SandboxChange::MayLeave(may) => &[("sandbox.allowUnsandboxedCommands", may)],
    };
    let mut said = Vec::new();
    for (key, value) in keys {
        said.push(change(ctx, key, &Value::Bool(*value).to_string(), Some(Scope::Local))?);
    }
    said.push("It counts from the next session on, or after /clear".to_owned());
    Ok(said.join("\n"))
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str) -> LocalOutcome {
    match argument {
        "" => LocalOutcome::text(SandboxReport::new(&commands.settings_context()).to_markdown()),
        _ => LocalOutcome::error(
            "`/sandbox` shows how the sandbox stands; the panel at a terminal and `loci config set sandbox.enabled true` change it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;

    use super::*;

    #[test]
    fn wishes_go_to_the_local_file_and_are_seen_in_the_report() {
        let dir = tempfile::tempdir().unwrap();
        let (home, project) = (dir.path().join("home"), dir.path().join("project"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let env = Env::for_test(home, project.clone());
        let file = || std::fs::read_to_string(project.join(".claude/settings.local.json")).unwrap();
        for (wish, expected) in [
            (SandboxChange::Mode(SandboxMode::Ask), "\"autoAllowBashIfSandboxed\": false"),
            (SandboxChange::MayLeave(false), "\"allowUnsandboxedCommands\": false"),
            (SandboxChange::Mode(SandboxMode::Off), "\"enabled\": false"),
        ] {
            let said = carry_out(&SettingsContext::new(&env), wish).unwrap();
            assert!(said.contains("settings.local.json") && said.contains("next session"), "{said}");
            assert!(file().contains(expected), "{}", file());
        }
    }
}
