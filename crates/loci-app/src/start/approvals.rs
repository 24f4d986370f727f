//! Questions at the start of an interactive session, beside trust: settings that cannot be read, servers of the project
//! that nobody approved, and a key of the environment.
//!
//! Each is asked until it is answered; the answers of the last two are kept where other programs keep them.

use std::path::Path;

use loci_mcp::config::{PlannedServer, ServerConfig, ServerWay, Standing};
use loci_settings::{Severity, edit};
use loci_stdx::{Env, single_line, visible};
use loci_storage::config::{
    MANAGED_DIR, SettingsPlaces, SettingsSources, edit_state, load_settings, stored_api_key, stored_login,
};
use loci_storage::layout::ConfigHome;
use serde_json::{Value, json};

use crate::mcp;
use crate::mcp::approvals::{CHANGED, ServerDecision, decide};
use crate::options::RunOptions;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// The variable with a key.
pub(crate) const API_KEY: &str = "ANTHROPIC_API_KEY";
/// How many letters of a key are kept to know it by.
const KEY_TAIL: usize = 20;
/// The most letters of a line that is shown.
const MOST_LETTERS: usize = 160;
/// The most letters of what a server is: what is approved should be seen.
const MOST_OF_A_SERVER: usize = 2000;

/// A server of the project that nobody has approved or rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnapprovedServer {
    /// Its name.
    pub name: String,
    /// What it runs, or where it is.
    pub way: String,
    /// What else its entry says that matters: variables as they are written, names of headers, a command for those.
    pub details: Vec<String>,
    /// Whether it was approved once, and is another one now.
    pub is_changed: bool,
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
    let problems = plan.problems;
    let waiting = plan.servers.into_iter().filter(|server| server.standing == Standing::NeedsApproval);
    let asked = |server: PlannedServer| UnapprovedServer {
        way: way(&server.config),
        details: details(&server.config.written),
        is_changed: problems.iter().any(|it| it.kind == CHANGED && it.name == server.config.name),
        name: server.config.name,
    };
    waiting.map(asked).collect()
}

fn way(config: &ServerConfig) -> String {
    let text = match &config.way {
        ServerWay::Stdio { command, args, .. } => {
            std::iter::once(command).chain(args).cloned().collect::<Vec<_>>().join(" ")
        }
        ServerWay::Remote(remote) => remote.url.clone(),
        ServerWay::Sdk => String::new(),
    };
    visible_line(&text)
}

/// Says what a server is, as its entry in a file has it, before anything of the file counts.
pub(crate) fn server_line(name: &str, written: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), quoted);
    let words = match (written.get("url"), written.get("command")) {
        (Some(url), _) => vec![text(url)],
        (None, Some(command)) => {
            let args = written["args"].as_array().into_iter().flatten();
            std::iter::once(command).chain(args).map(text).collect()
        }
        (None, None) => vec![written.to_string()],
    };
    let parts: Vec<String> =
        std::iter::once(visible_line(&words.join(" "))).chain(details(written)).collect();
    format!("{}: {}", visible_line(name), parts.join(" "))
}

/// Returns a word of a command as it would be typed, so that it is seen where it ends.
fn quoted(word: &str) -> String {
    if word.contains(char::is_whitespace) { format!("\"{word}\"") } else { word.to_owned() }
}

/// Returns a text on one line, with what could hide or reorder a part of it made visible: somebody decides by it.
fn visible_line(text: &str) -> String {
    single_line(&visible(text), MOST_OF_A_SERVER)
}

/// Returns what an entry says beside its command: a variable can run a program as well.
fn details(written: &Value) -> Vec<String> {
    let fields = |key: &str| written[key].as_object().cloned().unwrap_or_default();
    let variables = fields("env").into_iter().map(|(name, value)| match value.as_str() {
        Some(text) => format!("with {name}={text}"),
        None => format!("with {name}={value}"),
    });
    let headers = fields("headers").into_iter().map(|(name, _)| format!("with the header {name}"));
    let helper = written["headersHelper"].as_str().map(|it| format!("with headers printed by: {it}"));
    variables.chain(headers).chain(helper).map(|text| visible_line(&text)).collect()
}

/// Keeps what was said of servers of the project.
pub fn answer_servers(env: &Env, options: &RunOptions, decision: &ServerDecision) -> Result<(), UserError> {
    let run = RunSettings::load(env, options)?;
    decide(&mcp::plan(&options.mcp, &run)?, &run, decision)
}

/// A key of the environment that nobody has approved or rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnapprovedKey {
    /// Its last letters.
    pub tail: String,
    /// Whether another credential is kept that would be used without it.
    pub has_other: bool,
}

impl UnapprovedKey {
    /// Tells people of a key beside which there is no other credential.
    pub(crate) fn alone(key: &str) -> Self {
        Self { tail: tail(key, 4), has_other: false }
    }
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
    fn what_a_server_would_run_hides_nothing() {
        let written = json!({
            "env": {"B": "a\nb", "LD_PRELOAD": "x\u{1b}[2Jy"},
            "headersHelper": "safe\u{202e}live",
        });
        assert_eq!(
            details(&written),
            ["with B=a b", r"with LD_PRELOAD=x\u{1b}[2Jy", r"with headers printed by: safe\u{202e}live"]
        );
    }

    #[test]
    fn settings_that_cannot_be_read_are_errors() {
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.project());
        assert!(settings_errors(&env).is_empty());
        home.write_home(".claude/settings.json", "{\"model\": ");
        assert_eq!(settings_errors(&env).len(), 1, "{:?}", settings_errors(&env));
    }

    /// A project with servers, and options of a run in which somebody can be asked.
    fn asked(servers: &Value) -> (TestHome, Env, RunOptions) {
        let home = TestHome::new();
        home.write(".mcp.json", json!({"mcpServers": servers}).to_string());
        let env = Env::for_test(home.home(), home.project());
        crate::start::trust::accept_trust(&env).unwrap();
        let mut options = RunOptions::default();
        assert!(unapproved_servers(&env, &options).is_empty(), "without a person nobody is asked");
        options.mcp.needs_approval = true;
        (home, env, options)
    }

    fn used(env: &Env, options: &RunOptions) -> Vec<String> {
        let run = RunSettings::load(env, options).unwrap();
        mcp::plan(&options.mcp, &run).unwrap().used().map(|it| it.name.clone()).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn servers_of_a_project_are_approved_and_rejected_one_by_one() {
        let server = |arg: &str| json!({"command": "x", "args": [arg], "env": {"NODE_OPTIONS": "-r ${E}"}});
        let (home, env, options) = asked(&json!({"a": server("-y"), "b": server("-y"), "c": server("-y")}));
        let waiting = unapproved_servers(&env, &options);
        assert_eq!(waiting.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(
            (waiting[0].way.as_str(), &waiting[0].details[..], waiting[0].is_changed),
            ("x -y", &["with NODE_OPTIONS=-r ${E}".to_owned()][..], false)
        );
        let said = ServerDecision { approved: names(&["a"]), rejected: names(&["b"]), ..Default::default() };
        answer_servers(&env, &options, &said).unwrap();
        let waiting = unapproved_servers(&env, &options);
        assert_eq!((waiting.len(), waiting[0].name.as_str()), (1, "c"), "the others are decided");
        assert_eq!(used(&env, &options), ["a"]);
        let kept: Value = serde_json::from_str(&home.read(".claude/settings.local.json")).unwrap();
        assert_eq!(kept, json!({"enabledMcpjsonServers": ["a"], "disabledMcpjsonServers": ["b"]}));
        // The last word counts, wherever the one before it was kept.
        let root = env.cwd.display().to_string();
        let state = ConfigHome::from_env(&env).state_file().to_owned();
        let mut text: Value = serde_json::from_str(&std::fs::read_to_string(&state).unwrap()).unwrap();
        text["projects"][&root]["disabledMcpjsonServers"] = json!(["b", "other"]);
        std::fs::write(&state, text.to_string()).unwrap();
        let said = ServerDecision { approved: names(&["b"]), rejected: names(&["a"]), ..Default::default() };
        answer_servers(&env, &options, &said).unwrap();
        assert_eq!(used(&env, &options), ["b"]);
        let text: Value = serde_json::from_str(&std::fs::read_to_string(&state).unwrap()).unwrap();
        assert_eq!(text["projects"][&root]["disabledMcpjsonServers"], json!(["other"]));
    }

    #[test]
    fn another_definition_of_an_approved_server_is_asked_about_again() {
        for (said, is_used) in [
            (ServerDecision { approved: names(&["srv"]), ..Default::default() }, true),
            (ServerDecision { approved: names(&["srv"]), approves_all: true, ..Default::default() }, true),
            (ServerDecision { rejected: names(&["srv"]), ..Default::default() }, false),
        ] {
            let (home, env, options) = asked(&json!({"srv": {"command": "x", "args": ["-y"]}}));
            answer_servers(&env, &options, &said).unwrap();
            assert!(unapproved_servers(&env, &options).is_empty(), "{said:?}");
            assert_eq!(used(&env, &options).len() == 1, is_used, "{said:?}");
            home.write(
                ".mcp.json",
                r#"{"mcpServers": {"srv": {"command": "x", "args": ["--worse"]}, "new": {"command": "y"}}}"#,
            );
            let waiting: Vec<_> =
                unapproved_servers(&env, &options).into_iter().map(|it| (it.name, it.is_changed)).collect();
            let mut expected = Vec::new();
            expected.extend((!said.approves_all).then(|| ("new".to_owned(), false)));
            expected.extend(is_used.then(|| ("srv".to_owned(), true)));
            assert_eq!(waiting, expected, "{said:?}");
            let all = ServerDecision { approved: names(&["srv", "new"]), ..Default::default() };
            answer_servers(&env, &options, &all).unwrap();
            assert_eq!(used(&env, &options), ["new", "srv"], "{said:?}");
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
