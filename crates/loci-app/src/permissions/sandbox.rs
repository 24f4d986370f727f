//! The sandbox of a session, made of its settings and of what this machine can do.
//!
//! Nothing is tried unless settings ask for a sandbox. One that is asked for and cannot be had is never left out in
//! silence: the run is refused where settings say so, and otherwise people are told and commands asked about as usual.

mod network;
mod paths;
mod profile;

use std::path::PathBuf;
use std::sync::Arc;

use loci_core::permission::{Rule, RuleList, RuleOrigin, RuleSource, SandboxRules};
use loci_sandbox::{Level, LevelCheck, Sandbox};
use loci_settings::{SandboxSettings, Scope, Settings, Sourced};
use loci_stdx::Env;

use crate::compose::child_env::is_scrubbed;
use crate::permissions::rules::anchor;
use crate::user_error::UserError;
use network::SessionNetwork;

pub use paths::path_settings;
pub use profile::{sandbox_maker, sandbox_maker_in};

/// What a session has of a sandbox.
#[derive(Debug, Clone, Default)]
pub struct SessionSandbox {
    /// What commands run in; none where there is no sandbox.
    pub sandbox: Option<Arc<Sandbox>>,
    /// What calls are judged by.
    pub rules: Option<SandboxRules>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Where a sandbox is made.
#[derive(Debug, Clone)]
pub struct SandboxWorld<'a> {
    /// The world.
    pub env: &'a Env,
    /// Where settings and sessions are kept.
    pub config_home: PathBuf,
    /// The session's own temporary directory.
    pub scratch: PathBuf,
    /// The session's directories.
    pub dirs: Vec<PathBuf>,
}

impl SessionSandbox {
    /// Makes the sandbox that settings ask for.
    pub fn new(world: &SandboxWorld<'_>, settings: &Settings) -> Result<Self, UserError> {
        if !settings.sandbox.enabled {
            let notes = loosened(&settings.sandbox).chain(left_unused(&settings.sandbox));
            return Ok(Self { warnings: notes.chain(scrub_note(world.env)).collect(), ..Self::default() });
        }
        let found = check_level(&settings.sandbox);
        let problem = found.problem().unwrap_or_else(|| "its layers do not work together".to_owned());
        if settings.sandbox.fail_if_unavailable && found.level < Level::Full {
            return Err(UserError::new(format!("The full sandbox cannot be had here: {problem}")).hint(
                "Settings refuse to run without it (sandbox.failIfUnavailable). See `loci sandbox check`.",
            ));
        }
        let mut warnings = settings_notes(&settings.sandbox);
        match found.level {
            Level::None => {
                warnings.push(format!(
                    "Sandbox: settings ask for it and it cannot be had here: {problem}. Commands run without it and are \
                     asked about as usual; see `loci sandbox check`"
                ));
                warnings.extend(scrub_note(world.env));
                return Ok(Self { warnings, ..Self::default() });
            }
            Level::Weak => warnings.push(format!(
                "Sandbox: only its weak level can be had here: {problem}. Commands are asked about as usual. Open: {}",
                found.open().join("; ")
            )),
            Level::Full => {}
        }
        let (sandbox, more) = sandbox(world, settings, &found);
        warnings.extend(more);
        let (rules, more) = rules(world.env, &settings.sandbox, &sandbox);
        warnings.extend(more);
        Ok(Self { sandbox: Some(Arc::new(sandbox)), rules: Some(rules), warnings })
    }
}

/// Says what is left open where commands go without credentials and run without a sandbox.
fn scrub_note(env: &Env) -> Option<String> {
    is_scrubbed(&env.vars).then(|| {
        "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB keeps credentials from the environment of commands; without the sandbox \
         (`sandbox.enabled`) a command can still read what other processes have in theirs"
            .to_owned()
    })
}

/// What is said where two settings contradict each other; the stricter counts.
const FILES_STAY: &str = "Settings: `sandbox.filesystem.disabled` has no effect: CLAUDE_CODE_SUBPROCESS_ENV_SCRUB keeps secrets from \
                          commands, and files may have them, too";

/// Finds out what this machine can do.
pub fn check_level(settings: &SandboxSettings) -> LevelCheck {
    loci_sandbox::check(&loci_sandbox::own_helper(), settings.allows_old_proc)
}

/// Says which hosts of settings and rules cannot be read, or can be in two ways.
pub(crate) fn host_problems(settings: &Settings) -> Vec<String> {
    network::domain_rules(&settings.sandbox.network, &settings.permissions).1
}

/// Makes a sandbox of a level that was found, whether settings ask for one or not.
pub fn sandbox(world: &SandboxWorld<'_>, settings: &Settings, found: &LevelCheck) -> (Sandbox, Vec<String>) {
    let (paths, mut warnings) = path_settings(world, settings);
    let network = SessionNetwork::new(world.env, &settings.sandbox.network, &settings.permissions);
    warnings.extend(network.warnings);
    let wanted = &settings.sandbox;
    let scrubs = is_scrubbed(&world.env.vars);
    let has_files = !wanted.is_files_disabled || scrubs;
    if wanted.is_files_disabled && scrubs {
        warnings.push(FILES_STAY.to_owned());
    }
    let sandbox = Sandbox {
        helper: loci_sandbox::own_helper(),
        level: found.level,
        layers: found.layers,
        scratch: world.scratch.clone(),
        home: world.env.home.clone(),
        config_home: world.config_home.clone(),
        paths: has_files.then_some(paths),
        allows_unix_sockets: wanted.network.allows_unix_sockets,
        allows_unsandboxed: wanted.allows_unsandboxed,
        hidden_env: wanted.secret_variables.clone(),
        egress: Some(network.egress),
        connections: Some(network.connections),
        standby: loci_sandbox::Standby::default(),
    };
    (sandbox, warnings)
}

/// Makes the rules that calls are judged by. Only what is held by all layers is not asked about.
fn rules(env: &Env, settings: &SandboxSettings, sandbox: &Sandbox) -> (SandboxRules, Vec<String>) {
    let (excluded, warnings) = excluded_commands(env, &settings.excluded_commands);
    let auto_allow = settings.auto_allow && sandbox.level == Level::Full && sandbox.paths.is_some();
    (SandboxRules { auto_allow, allows_unsandboxed: settings.allows_unsandboxed, excluded }, warnings)
}

/// Returns the rules of commands that run outside, and what of them is left out.
fn excluded_commands(env: &Env, commands: &[Sourced]) -> (Vec<Rule>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut excluded = Vec::new();
    for command in commands {
        let text = command.text.trim();
        let mut leave_out = |why: &str| {
            warnings.push(format!(
                "Settings: {}:{}: `{text}` in sandbox.excludedCommands is left out: {why}",
                command.origin.name, command.line
            ));
        };
        if text.is_empty() {
            leave_out("it names no command");
            continue;
        }
        if let Some(inner) = specifier(text, "Bash") {
            leave_out(&format!("commands stand there without their tool (write `{inner}`)"));
            continue;
        }
        let origin =
            RuleOrigin::new(RuleSource::Settings(command.origin.scope), anchor(env, &command.origin))
                .at(command.origin.name.clone(), command.line);
        // A word alone means the program, whatever its arguments are.
        let is_word = !text.contains(|c: char| c.is_whitespace() || "*:".contains(c));
        let more = is_word.then(|| format!("Bash({text} *)"));
        for rule in std::iter::once(format!("Bash({text})")).chain(more) {
            match Rule::parse(&rule, RuleList::Ask, &origin) {
                (Some(rule), None) => excluded.push(rule),
                (_, problem) => {
                    leave_out(&problem.map_or_else(|| "it is no rule".to_owned(), |it| it.to_string()));
                }
            }
        }
    }
    (excluded, warnings)
}

/// Says which keys are set and cannot be honoured, and where a project takes commands out of the sandbox or holds less.
pub fn settings_notes(settings: &SandboxSettings) -> Vec<String> {
    let lost = settings.not_honoured.iter();
    let lost = lost.map(|(key, why)| format!("Settings: `{key}` has no effect: {why}"));
    lost.chain(excluded_by_project(settings)).chain(loosened(settings)).collect()
}

/// Says where a project's settings hold less than the user's own.
fn loosened(settings: &SandboxSettings) -> impl Iterator<Item = String> {
    settings.loosened.iter().map(|it| {
        format!(
            "Sandbox: this project's settings hold less than yours: `{}` is {} ({})",
            it.key, it.value, it.place
        )
    })
}

/// Says that a project takes commands out of the sandbox.
fn excluded_by_project(settings: &SandboxSettings) -> Option<String> {
    let of_project = settings.excluded_commands.iter().filter(|it| it.origin.scope == Scope::Project);
    let texts: Vec<&str> = of_project.map(|it| it.text.as_str()).collect();
    (!texts.is_empty())
        .then(|| format!("Sandbox: this project's settings run these outside it: {}", texts.join(", ")))
}

/// Says that what is set for a sandbox is not in force without one.
fn left_unused(settings: &SandboxSettings) -> Option<String> {
    let restricts = !settings.deny_read.is_empty()
        || !settings.deny_write.is_empty()
        || !settings.network.denied.is_empty()
        || settings.network.is_strict
        || !settings.secret_files.is_empty()
        || !settings.secret_variables.is_empty()
        || settings.fail_if_unavailable;
    let note = "Sandbox: settings restrict sandboxed commands, but `sandbox.enabled` is not set: commands run without one";
    restricts.then(|| note.to_owned())
}

/// Returns what a permission rule of a tool has in its parentheses.
fn specifier<'a>(rule: &'a str, tool: &str) -> Option<&'a str> {
    let spec = rule.trim().strip_prefix(tool)?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    Some(spec.trim())
}

#[cfg(test)]
mod tests {
    use loci_sandbox::policy::Layers;
    use loci_settings::{Origin, Scope, Sourced};

    /// Texts of a file of settings.
    pub(super) fn sourced(scope: Scope, texts: &[&str]) -> Vec<Sourced> {
        let origin = Origin::new(scope, "s.json");
        texts.iter().map(|it| Sourced { text: (*it).to_owned(), origin: origin.clone(), line: 1 }).collect()
    }

    #[test]
    fn rules_about_files_stay_where_variables_are_kept_from_commands_and_that_is_said() {
        for (scrub, is_disabled, has_files, n_said) in
            [("", false, true, 0), ("1", false, true, 0), ("", true, false, 0), ("1", true, true, 1)]
        {
            let mut env = loci_stdx::Env::for_test("/home/dev", "/p");
            env.vars = [("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", scrub)].into_iter().collect();
            let world = super::SandboxWorld {
                env: &env,
                config_home: "/home/dev/.claude".into(),
                scratch: "/tmp/s".into(),
                dirs: Vec::new(),
            };
            let mut settings = loci_settings::Settings::default();
            settings.sandbox.is_files_disabled = is_disabled;
            let found =
                super::LevelCheck { level: super::Level::Full, layers: Layers::FULL, reports: Vec::new() };
            let (sandbox, warnings) = super::sandbox(&world, &settings, &found);
            let n_warnings = warnings.iter().filter(|it| it.contains("filesystem.disabled")).count();
            assert_eq!((sandbox.paths.is_some(), n_warnings), (has_files, n_said), "{scrub} {is_disabled}");
        }
    }

    #[test]
    fn excluded_commands_that_name_none_are_left_out_and_said() {
        let env = loci_stdx::Env::for_test("/home/dev", "/p");
        for (text, n_rules, said) in [
            ("docker", 2, None),
            ("npm run test:*", 1, None),
            ("", 0, Some("it names no command")),
            ("Bash(docker *)", 0, Some("(write `docker *`)")),
        ] {
            let (rules, warnings) = super::excluded_commands(&env, &sourced(Scope::User, &[text]));
            assert_eq!(rules.len(), n_rules, "{text}: {warnings:?}");
            let is_said = said.map_or(warnings.is_empty(), |said| warnings.join("").contains(said));
            assert!(is_said && warnings.len() == usize::from(said.is_some()), "{text}: {warnings:?}");
        }
    }

    #[test]
    fn specifier_is_what_a_rule_of_the_tool_has_in_parentheses() {
        for (rule, expected) in [
            ("WebFetch(domain:a.com)", Some("domain:a.com")),
            (" WebFetch ( domain:a.com ) ", Some("domain:a.com")),
            ("WebFetch", None),
            ("WebFetcher(x)", None),
            ("Read(x)", None),
        ] {
            assert_eq!(super::specifier(rule, "WebFetch"), expected, "{rule}");
        }
    }
}
