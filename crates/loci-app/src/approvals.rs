//! Questions at the start of an interactive session, beside trust: settings that cannot be read, servers of the project
//! that nobody approved, and a key of the environment.
//!
//! Each is asked until it is answered; the answers of the last two are kept where other programs keep them.

use std::path::Path;

use loci_mcp::config::{ServerConfig, ServerWay, Standing};
use loci_settings::{Severity, edit};
use loci_stdx::{Env, WriteOptions, single_line};
use loci_storage::config::{
    MANAGED_DIR, SettingsPlaces, SettingsSources, edit_settings, edit_state, load_settings, stored_api_key,
    stored_login,
};
use loci_storage::layout::ConfigHome;
use serde_json::{Value, json};

use crate::mcp;
use crate::mcp_approvals::approve;
use crate::options::RunOptions;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// The variable with a key.
const API_KEY: &str = "ANTHROPIC_API_KEY";
/// How many letters of a key are kept to know it by.
const KEY_TAIL: usize = 20;
/// The most letters of a line that is shown.
const MOST_LETTERS: usize = 160;

/// A server of the project that nobody has approved or rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnapprovedServer {
    /// Its name.
    pub name: String,
    /// What it runs, or where it is.
    pub way: String,
}

/// What is said to servers of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAnswer {
    /// These may be used.
    Approve,
    /// These and all that the project will ever name.
    ApproveAll,
    /// None of these.
    Reject,
}

/// Returns what is wrong with settings files as a whole, a line each.
pub fn settings_errors(env: &Env) -> Vec<String> {
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
    let loaded = load_settings(&places, None);
    let errors = loaded.warnings().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.map(|diagnostic| single_line(&diagnostic.to_string(), 2 * MOST_LETTERS)).collect()
}

/// Returns the servers of the project that wait for a word.
pub fn unapproved_servers(env: &Env, options: &RunOptions) -> Vec<UnapprovedServer> {
    if !env.cwd.ancestors().any(|dir| dir.join(mcp::PROJECT_FILE).symlink_metadata().is_ok()) {
        return Vec::new();
    }
    let Ok(run) = RunSettings::load(env, options) else { return Vec::new() };
    let Ok(plan) = mcp::plan(&options.mcp, &run) else { return Vec::new() };
    let waiting = plan.servers.into_iter().filter(|server| server.standing == Standing::NeedsApproval);
    waiting.map(|server| UnapprovedServer { way: way(&server.config), name: server.config.name }).collect()
}

fn way(config: &ServerConfig) -> String {
    let text = match &config.way {
        ServerWay::Stdio { command, args, .. } => {
            std::iter::once(command).chain(args).cloned().collect::<Vec<_>>().join(" ")
        }
        ServerWay::Remote(remote) => remote.url.clone(),
        ServerWay::Sdk => String::new(),
    };
    single_line(&text, MOST_LETTERS)
}

/// Keeps what was said to servers of the project.
pub fn answer_servers(
    env: &Env,
    options: &RunOptions,
    servers: &[UnapprovedServer],
    answer: ServerAnswer,
) -> Result<(), UserError> {
    let run = RunSettings::load(env, options)?;
    if answer != ServerAnswer::Reject {
        // What is approved is what they are now.
        let plan = mcp::plan(&options.mcp, &run)?;
        for server in servers {
            approve(&plan, &run, Some(&server.name))?;
        }
    }
    if answer == ServerAnswer::ApproveAll {
        let places = SettingsPlaces::new(env, &run.home, Path::new(MANAGED_DIR), SettingsSources::ALL);
        let Some(local) = places.locals().last() else { return Ok(()) };
        return edit_settings(&run.home, local, &WriteOptions::project(), |text| {
            edit::set(text, &["enableAllProjectMcpServers"], &Value::from(true))
        })
        .map(drop)
        .map_err(|error| UserError::from_error(&error));
    }
    let root = run.mcp.trust().root.display().to_string();
    let state = run.mcp.state();
    let (key, known) = match answer {
        ServerAnswer::Approve | ServerAnswer::ApproveAll => ("enabledMcpjsonServers", &state.approved),
        ServerAnswer::Reject => ("disabledMcpjsonServers", &state.rejected),
    };
    let mut names = known.clone();
    names.extend(servers.iter().map(|server| server.name.clone()).filter(|name| !known.contains(name)));
    edit_state(&run.home, |text| edit::set(text, &["projects", &root, key], &json!(names)))
        .map(drop)
        .map_err(|error| UserError::from_error(&error))
}

/// A key of the environment that nobody has approved or rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnapprovedKey {
    /// Its last letters.
    pub tail: String,
    /// Whether another credential is kept that would be used without it.
    pub has_other: bool,
}

/// Returns the key of the environment, where nobody has approved or rejected it.
pub fn unapproved_key(env: &Env) -> Option<UnapprovedKey> {
    let key = env.vars.non_empty(API_KEY)?;
    let home = ConfigHome::from_env(env);
    if key_answer(&home, key).is_some() {
        return None;
    }
    let has_other =
        matches!(stored_api_key(&home), Ok(Some(_))) || matches!(stored_login(&home), Ok(Some(_)));
    Some(UnapprovedKey { tail: tail(key, 4), has_other })
}

/// Tells whether the user does not want the key of the environment to be used.
pub fn is_key_rejected(env: &Env) -> bool {
    let key = env.vars.non_empty(API_KEY);
    key.is_some_and(|key| key_answer(&ConfigHome::from_env(env), key) == Some(false))
}

/// Keeps whether the key of the environment may be used.
pub fn answer_key(env: &Env, may_use: bool) -> Result<(), UserError> {
    let Some(key) = env.vars.non_empty(API_KEY) else { return Ok(()) };
    let home = ConfigHome::from_env(env);
    let (list, other) = if may_use { ("approved", "rejected") } else { ("rejected", "approved") };
    let tail = tail(key, KEY_TAIL);
    edit_state(&home, |text| {
        let (mut known, others) = (key_answers(text, list), key_answers(text, other));
        if !known.contains(&tail) {
            known.push(tail.clone());
        }
        let text = edit::set(text, &["customApiKeyResponses", list], &json!(known))?;
        // The last word counts.
        if !others.contains(&tail) {
            return Ok(text);
        }
        let others: Vec<&String> = others.iter().filter(|it| **it != tail).collect();
        edit::set(&text, &["customApiKeyResponses", other], &json!(others))
    })
    .map(drop)
    .map_err(|error| UserError::from_error(&error))
}

fn key_answer(home: &ConfigHome, key: &str) -> Option<bool> {
    let text = loci_stdx::read_regular_to_string(home.state_file()).ok()?;
    let tail = tail(key, KEY_TAIL);
    let is_in = |list: &str| key_answers(&text, list).contains(&tail);
    match (is_in("approved"), is_in("rejected")) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

fn key_answers(text: &str, list: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let known = value["customApiKeyResponses"][list].as_array().cloned().unwrap_or_default();
    known.into_iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Returns the last letters of a key.
fn tail(key: &str, n: usize) -> String {
    let n_letters = key.chars().count();
    key.chars().skip(n_letters.saturating_sub(n)).collect()
}

#[cfg(test)]
mod tests {
    use loci_testkit::TestHome;

    use super::*;

    #[test]
    fn settings_that_cannot_be_read_are_errors() {
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.project());
        assert!(settings_errors(&env).is_empty());
        home.write_home(".claude/settings.json", "{\"model\": ");
        assert_eq!(settings_errors(&env).len(), 1, "{:?}", settings_errors(&env));
    }

    #[test]
    fn servers_of_a_project_are_asked_about_until_they_are_answered() {
        for (answer, is_used) in
            [(ServerAnswer::Approve, true), (ServerAnswer::ApproveAll, true), (ServerAnswer::Reject, false)]
        {
            let home = TestHome::new();
            home.write(".mcp.json", r#"{"mcpServers": {"srv": {"command": "x", "args": ["-y"]}}}"#);
            let env = Env::for_test(home.home(), home.project());
            crate::trust::accept_trust(&env).unwrap();
            let mut options = RunOptions::default();
            assert!(unapproved_servers(&env, &options).is_empty(), "without a person nobody is asked");
            options.mcp.needs_approval = true;
            let waiting = unapproved_servers(&env, &options);
            let expected = UnapprovedServer { name: "srv".into(), way: "x -y".into() };
            assert_eq!(waiting, [expected]);
            answer_servers(&env, &options, &waiting, answer).unwrap();
            assert!(unapproved_servers(&env, &options).is_empty(), "{answer:?}");
            let run = RunSettings::load(&env, &options).unwrap();
            let plan = mcp::plan(&options.mcp, &run).unwrap();
            assert_eq!(plan.used().count() == 1, is_used, "{answer:?}");
            home.write(".mcp.json", r#"{"mcpServers": {"srv": {"command": "x", "args": ["--worse"]}}}"#);
            let waiting = unapproved_servers(&env, &options);
            assert_eq!(
                waiting.len(),
                usize::from(is_used),
                "{answer:?}: another definition is asked about again"
            );
            answer_servers(&env, &options, &waiting, answer).unwrap();
            assert!(unapproved_servers(&env, &options).is_empty(), "{answer:?}");
        }
    }

    #[test]
    fn key_of_the_environment_is_asked_about_until_it_is_answered() {
        let home = TestHome::new();
        let mut env = Env::for_test(home.home(), home.project());
        assert_eq!(unapproved_key(&env), None, "there is none");
        env.vars = env.vars.clone().with(API_KEY, "sk-0123456789abcdefghijklmn");
        let key = |has_other| Some(UnapprovedKey { tail: "klmn".into(), has_other });
        assert_eq!(unapproved_key(&env), key(false));
        loci_storage::config::store_api_key(&ConfigHome::from_env(&env), "sk-kept").unwrap();
        assert_eq!(unapproved_key(&env), key(true));
        answer_key(&env, false).unwrap();
        assert_eq!((unapproved_key(&env), is_key_rejected(&env)), (None, true));
        answer_key(&env, true).unwrap();
        assert_eq!((unapproved_key(&env), is_key_rejected(&env)), (None, false), "the last word counts");
        answer_key(&env, false).unwrap();
        assert!(is_key_rejected(&env), "this one, too");
        let state = std::fs::read_to_string(ConfigHome::from_env(&env).state_file()).unwrap();
        let state: Value = serde_json::from_str(&state).unwrap();
        assert_eq!(
            state["customApiKeyResponses"],
            json!({"approved": [], "rejected": ["456789abcdefghijklmn"]})
        );
    }
}
