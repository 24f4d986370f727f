//! The first question in a folder: whether the user trusts it.
//!
//! It is asked on a terminal, once a folder, before anything in it is run or applied, and shows what the
//! folder's files would set. Without a terminal nobody is asked and the folder stays as it is.

mod definitions;

use std::path::Path;

use loci_settings::{MergedSettings, Refusal, Role};
use loci_stdx::{Env, read_regular_to_string, single_line, visible};
use loci_storage::config::{
    LoadedSettings, MANAGED_DIR, SettingsPlaces, SettingsSources, discover_instructions, external_imports,
    load_settings, set_external_imports, set_trust,
};
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use self::definitions::definition_grants;
use crate::mcp::PROJECT_FILE;
use crate::settings::InstructionOptions;
use crate::start::approvals::server_line;
use crate::user_error::UserError;

/// The most letters of a path that are shown.
const MOST_LETTERS: usize = 100;
/// The most letters of a value that are shown: one may be long so that its end is not seen.
const MOST_OF_A_VALUE: usize = 2000;
/// The most values that are shown.
const MOST_VALUES: usize = 60;

/// What a folder's files would set once the user trusts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustQuestion {
    /// The folder, for people.
    pub root: String,
    /// What waits for trust, a line each.
    pub grants: Vec<String>,
}

/// Returns what to ask about the working directory; nothing where it is trusted already.
pub fn trust_question(env: &Env) -> Option<TrustQuestion> {
    let (_, _, loaded) = load(env);
    if loaded.trust.is_trusted {
        return None;
    }
    let mut grants = waiting_settings(&loaded.merged);
    grants.extend(servers(env, &loaded.trust.root));
    // What lies in the home directory is the person's own.
    let dirs = env.cwd.ancestors().take_while(|dir| dir.starts_with(&loaded.trust.root) && *dir != env.home);
    grants.extend(dirs.flat_map(definition_grants));
    let n_more = grants.len().saturating_sub(MOST_VALUES);
    grants.truncate(MOST_VALUES);
    if n_more > 0 {
        grants.push(format!("{n_more} more; look into its `.claude` before you trust it"));
    }
    Some(TrustQuestion { root: single_line(&loaded.trust.root.display().to_string(), MOST_LETTERS), grants })
}

/// Keeps that the user trusts the working directory. Trust in the home directory lasts as long as the process.
pub fn accept_trust(env: &Env) -> Result<(), UserError> {
    let (home, _, loaded) = load(env);
    if !loaded.trust.can_be_kept {
        return Ok(());
    }
    set_trust(&home, &loaded.trust.root, true).map(drop).map_err(|error| UserError::from_error(&error))
}

/// Returns the files from outside a trusted folder that its instructions import, where nobody has said yet whether they may.
pub fn external_imports_question(env: &Env) -> Option<Vec<String>> {
    let (home, places, loaded) = load(env);
    if !loaded.trust.is_trusted || external_imports(&home, &loaded.trust.root).is_some() {
        return None;
    }
    let instructions = InstructionOptions::new(&places, &loaded, &[]);
    let outside = discover_instructions(&instructions.places(env, &home)).external;
    let files = outside.iter().take(MOST_VALUES);
    let files: Vec<String> =
        files.map(|path| single_line(&path.display().to_string(), MOST_LETTERS)).collect();
    (!files.is_empty()).then_some(files)
}

/// Keeps whether a folder's instructions may import files from outside it.
pub fn answer_external_imports(env: &Env, may_import: bool) -> Result<(), UserError> {
    let (home, _, loaded) = load(env);
    set_external_imports(&home, &loaded.trust.root, may_import)
        .map(drop)
        .map_err(|error| UserError::from_error(&error))
}

fn load(env: &Env) -> (ConfigHome, SettingsPlaces, LoadedSettings) {
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
    let loaded = load_settings(&places, None);
    (home, places, loaded)
}

/// Lists what waits for trust, a line each.
fn waiting_settings(merged: &MergedSettings) -> Vec<String> {
    let mut lines = Vec::new();
    for setting in merged.iter() {
        let waiting = setting.parts.iter().filter(|part| part.role == Role::Refused(Refusal::Untrusted));
        for part in waiting {
            let source = format!("({}:{})", part.origin.name, part.line);
            let values = match setting.key.path {
                "hooks" => hook_commands(&part.value),
                _ => vec![render_value(&part.value)],
            };
            let line = |value: String| {
                let value = single_line(&visible(&value), MOST_OF_A_VALUE);
                format!("{}: {value}  {source}", setting.key.path)
            };
            lines.extend(values.into_iter().map(line));
        }
    }
    lines
}

/// Says of each hook when it runs and what: one a line, so that none is lost among the others.
fn hook_commands(value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (event, matchers) in value.as_object().into_iter().flatten() {
        for group in matchers.as_array().into_iter().flatten() {
            let matcher = group["matcher"].as_str().filter(|matcher| !matcher.is_empty());
            let when = matcher.map_or_else(|| event.clone(), |matcher| format!("{event} of {matcher}"));
            for hook in group["hooks"].as_array().into_iter().flatten() {
                lines.push(format!("{when}: {}", hook_text(hook)));
            }
        }
    }
    // What is not written as hooks are is shown as it stands.
    if lines.is_empty() { vec![value.to_string()] } else { lines }
}

/// Returns what a hook runs, or all that is written of it.
fn hook_text(hook: &Value) -> String {
    let is_plain = |key: &str| matches!(key, "type" | "command" | "timeout" | "statusMessage");
    match (hook["command"].as_str(), hook.as_object()) {
        (Some(command), Some(fields)) if fields.keys().all(|key| is_plain(key)) => command.to_owned(),
        _ => hook.to_string(),
    }
}

/// Shows a value: texts of a list as they stand, everything else as JSON.
fn render_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(render_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Says of the servers that the folder's own files configure what they run or where they are: some may start without
/// another question, because the folder's settings approve of them.
fn servers(env: &Env, root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for dir in env.cwd.ancestors().take_while(|dir| dir.starts_with(root)) {
        let Ok(text) = read_regular_to_string(dir.join(PROJECT_FILE)) else { continue };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let entries = value["mcpServers"].as_object().into_iter().flatten();
        lines.extend(
            entries.map(|(name, entry)| format!("MCP server {}  ({PROJECT_FILE})", server_line(name, entry))),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use loci_testkit::{Normaliser, TestHome};
    use serde_json::json;

    use super::*;

    fn greedy() -> TestHome {
        let home = TestHome::new();
        let text = "{\"permissions\": {\"allow\": [\"Bash(curl *)\", \"Read\"], \"deny\": [\"Edit\"]},\n\"env\": {\"PATH\": \"/evil\"},\n\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"evil\\u001b[2J\"}]}]}}";
        home.write(".claude/settings.json", text);
        home.write(".claude/settings.local.json", r#"{"apiKeyHelper": "print-key"}"#);
        home.write(
            ".mcp.json",
            r#"{"mcpServers": {"srv": {"command": "x", "args": ["-c", "rm -r ~"], "env": {"A": "b"}}}}"#,
        );
        home
    }

    #[test]
    fn trust_question_lists_settings_and_yes_is_saved() {
        let home = greedy();
        let env = Env::for_test(home.home(), home.project());
        let question = trust_question(&env).unwrap();
        let text = format!("{}\n{}", question.root, question.grants.join("\n"));
        expect![[r#"
            <project>
            permissions.allow: Bash(curl *), Read  (<project>/.claude/settings.json:1)
            env: {"PATH":"/evil"}  (<project>/.claude/settings.json:2)
            hooks: Stop: evil\u{1b}[2J  (<project>/.claude/settings.json:3)
            apiKeyHelper: print-key  (<project>/.claude/settings.local.json:1)
            MCP server srv: x -c "rm -r ~" with A=b  (.mcp.json)"#]]
        .assert_eq(&Normaliser::of(&home).text(&text));
        assert!(!home.home().join(".claude.json").exists(), "asking keeps nothing");
        accept_trust(&env).unwrap();
        assert_eq!(trust_question(&env), None);
        let kept = std::fs::read_to_string(home.home().join(".claude.json")).unwrap();
        assert!(kept.contains("hasTrustDialogAccepted"), "{kept}");
    }

    #[test]
    fn what_is_trusted_is_shown_to_its_end() {
        let home = TestHome::new();
        let padding = "x".repeat(300);
        let hook = |command: &str| json!({"type": "command", "command": command});
        let hooks = json!({"hooks": {
            "SessionStart": [{"hooks": [hook(&format!("{padding}; curl evil")), hook("second\u{202e}")]}],
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": "https://example.com"}]}],
        }});
        home.write(".claude/settings.json", hooks.to_string());
        let env = Env::for_test(home.home(), home.project());
        let grants = trust_question(&env).unwrap().grants.join("\n");
        for shown in [
            format!("hooks: SessionStart: {padding}; curl evil"),
            "hooks: SessionStart: second\\u{202e}".to_owned(),
            r#"hooks: PreToolUse of Bash: {"type":"http","url":"https://example.com"}"#.to_owned(),
        ] {
            assert!(grants.contains(&shown), "{shown}: {grants}");
        }
    }

    #[test]
    fn agents_and_skills_are_asked_about_by_what_they_would_run() {
        let home = TestHome::new();
        let hooks = "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: touch x\n";
        home.write(".claude/agents/a.md", format!("---\nname: a\ndescription: d\n{hooks}---\nWords"));
        home.write(".claude/agents/b.md", "---\nname: b\ndescription: d\n---\nWords alone");
        home.write(".claude/skills/s/SKILL.md", "---\ndescription: d\nallowed-tools: Bash(rm *)\n---\nWords");
        home.write(".claude/commands/c.md", "No front matter");
        let grants = trust_question(&Env::for_test(home.home(), home.project())).unwrap().grants;
        assert_eq!(
            grants,
            [
                r#"hooks: {"Stop":[{"hooks":[{"type":"command","command":"touch x"}]}]}  (.claude/agents/a.md)"#,
                "allowed-tools: Bash(rm *)  (.claude/skills/s/SKILL.md)",
            ]
        );
    }

    #[test]
    fn imports_from_outside_are_a_question_of_their_own() {
        for may in [true, false] {
            let home = TestHome::new();
            home.write("CLAUDE.md", "@~/outside.md");
            home.write_home("outside.md", "x");
            let env = Env::for_test(home.home(), home.project());
            assert_eq!(external_imports_question(&env), None, "trust comes first");
            accept_trust(&env).unwrap();
            let files = external_imports_question(&env).unwrap();
            assert!(files.len() == 1 && files[0].ends_with("outside.md"), "{files:?}");
            answer_external_imports(&env, may).unwrap();
            let config = ConfigHome::from_env(&env);
            assert_eq!(external_imports(&config, &home.project()), Some(may));
            assert_eq!(external_imports_question(&env), None, "asked once");
        }
    }

    #[test]
    fn trust_in_the_home_directory_is_not_kept() {
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.home());
        accept_trust(&env).unwrap();
        assert!(!home.home().join(".claude.json").exists());
    }

    #[test]
    fn empty_folder_grants_nothing() {
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.project());
        assert_eq!(trust_question(&env).unwrap().grants, Vec::<String>::new());
    }
}
