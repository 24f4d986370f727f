//! The first question in a folder: whether the user trusts it.
//!
//! It is asked on a terminal, once a folder, before anything in it is run or applied, and shows what the
//! folder's files would set. Without a terminal nobody is asked and the folder stays as it is.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use loci_settings::{MergedSettings, Refusal, Role};
use loci_stdx::{Env, read_regular_to_string, single_line};
use loci_storage::config::{
    LoadedSettings, MANAGED_DIR, SettingsPlaces, SettingsSources, discover_instructions, external_imports,
    load_settings, set_external_imports, set_trust,
};
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use crate::settings::InstructionOptions;
use crate::user_error::UserError;

/// The most letters of a value that are shown.
const MOST_LETTERS: usize = 100;
/// The most values that are shown.
const MOST_VALUES: usize = 20;

/// Asks about the working directory, where that is called for. An answer that is no yes ends the start.
pub fn ask_on_terminal(env: &Env) -> Result<(), UserError> {
    let (mut stdin, mut stderr) = (std::io::stdin().lock(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(());
    }
    ask(env, &mut stdin, &mut stderr)
}

fn ask(env: &Env, input: &mut dyn BufRead, output: &mut dyn Write) -> Result<(), UserError> {
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
    let loaded = load_settings(&places, None);
    if loaded.trust.is_trusted {
        return Ok(());
    }
    if !confirm(&question(env, &loaded), input, output)? {
        return Err(UserError::new("This folder is not trusted, so nothing was started")
            .hint("`loci -p` works here without trust: it applies nothing of the folder that needs it."));
    }
    // Trust in the home directory lasts as long as the process.
    if !loaded.trust.can_be_kept {
        return Ok(());
    }
    set_trust(&home, &loaded.trust.root, true).map_err(|error| UserError::from_error(&error))?;
    let instructions = InstructionOptions::new(&places, &loaded, &[]);
    let outside = discover_instructions(&instructions.places(env, &home)).external;
    if outside.is_empty() || external_imports(&home, &loaded.trust.root).is_some() {
        return Ok(());
    }
    let may = confirm(&imports_question(&outside), input, output)?;
    set_external_imports(&home, &loaded.trust.root, may).map_err(|error| UserError::from_error(&error))?;
    Ok(())
}

fn confirm(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> Result<bool, UserError> {
    let failed = |error: std::io::Error| UserError::new(format!("The terminal cannot be used: {error}"));
    output.write_all(question.as_bytes()).and_then(|()| output.flush()).map_err(failed)?;
    let mut answer = String::new();
    input.read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn imports_question(outside: &[PathBuf]) -> String {
    let files = outside.iter().take(MOST_VALUES);
    let files: Vec<String> =
        files.map(|path| single_line(&path.display().to_string(), MOST_LETTERS)).collect();
    format!("Its instructions import files from outside it:\n  {}\nLet them? [y/N] ", files.join("\n  "))
}

fn question(env: &Env, loaded: &LoadedSettings) -> String {
    let root = single_line(&loaded.trust.root.display().to_string(), MOST_LETTERS);
    let mut waiting_settings = waiting_settings(&loaded.merged);
    waiting_settings.extend(servers(env));
    let n_more = waiting_settings.len().saturating_sub(MOST_VALUES);
    waiting_settings.truncate(MOST_VALUES);
    if n_more > 0 {
        waiting_settings.push(format!("{n_more} more; see `loci config list`"));
    }
    let waiting_settings = match waiting_settings.is_empty() {
        true => "Nothing in it asks for more than reading yet.".to_owned(),
        false => format!("Its files would set:\n  {}", waiting_settings.join("\n  ")),
    };
    format!(
        "Do you trust the files in this folder?\n  {root}\n{waiting_settings}\nUntil you do, nothing in it is run or applied. Trust it? [y/N] "
    )
}

/// Lists what waits for trust, a line each.
fn waiting_settings(merged: &MergedSettings) -> Vec<String> {
    let mut lines = Vec::new();
    for setting in merged.iter() {
        let waiting = setting.parts.iter().filter(|part| part.role == Role::Refused(Refusal::Untrusted));
        for part in waiting {
            let value = single_line(&render_value(&part.value), MOST_LETTERS);
            lines.push(format!("{}: {value}  ({}:{})", setting.key.path, part.origin.name, part.line));
        }
    }
    lines
}

/// Shows a value: texts of a list as they stand, everything else as JSON.
fn render_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(render_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Names the servers that the folder's own file configures.
fn servers(env: &Env) -> Option<String> {
    let text = read_regular_to_string(env.cwd.join(".mcp.json")).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let names: Vec<&str> = value.get("mcpServers")?.as_object()?.keys().map(String::as_str).collect();
    let names = single_line(&names.join(", "), MOST_LETTERS);
    (!names.is_empty()).then(|| format!("MCP servers: {names}  (.mcp.json)"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use loci_testkit::{Normaliser, TestHome};

    use super::*;

    /// Asks in a prepared home and compares what was said and how it ended.
    fn check(home: &TestHome, answer: &str, expected: Expect) {
        let env = Env::for_test(home.home(), home.project());
        let mut output = Vec::new();
        let end = match ask(&env, &mut answer.as_bytes(), &mut output) {
            Ok(()) => "started".to_owned(),
            Err(user_error) => user_error.message().to_owned(),
        };
        let said = String::from_utf8(output).unwrap();
        expected.assert_eq(&Normaliser::of(home).text(&format!("{said}\n{end}")));
    }

    fn greedy() -> TestHome {
        let home = TestHome::new();
        let text = "{\"permissions\": {\"allow\": [\"Bash(curl *)\", \"Read\"], \"deny\": [\"Edit\"]},\n\"env\": {\"PATH\": \"/evil\"},\n\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"evil\\u001b[2J\"}]}]}}";
        home.write(".claude/settings.json", text);
        home.write(".claude/settings.local.json", r#"{"apiKeyHelper": "print-key"}"#);
        home.write(".mcp.json", r#"{"mcpServers": {"srv": {"command": "x"}}}"#);
        home
    }

    #[test]
    fn trust_question_lists_settings_and_yes_is_saved() {
        let home = greedy();
        check(
            &home,
            "y\n",
            expect![[r#"
                Do you trust the files in this folder?
                  <project>
                Its files would set:
                  permissions.allow: Bash(curl *), Read  (<project>/.claude/settings.json:1)
                  env: {"PATH":"/evil"}  (<project>/.claude/settings.json:2)
                  hooks: {"Stop":[{"hooks":[{"command":"evil\u001b[2J"}]}]}  (<project>/.claude/settings.json:3)
                  apiKeyHelper: print-key  (<project>/.claude/settings.local.json:1)
                  MCP servers: srv  (.mcp.json)
                Until you do, nothing in it is run or applied. Trust it? [y/N] 
                started"#]],
        );
        check(
            &home,
            "",
            expect![[r#"

            started"#]],
        );
        assert!(
            std::fs::read_to_string(home.home().join(".claude.json"))
                .unwrap()
                .contains("hasTrustDialogAccepted")
        );
    }

    #[test]
    fn imports_from_outside_are_a_question_of_their_own() {
        for (answers, may) in [("y\ny\n", true), ("y\n\n", false)] {
            let home = TestHome::new();
            home.write("CLAUDE.md", "@~/outside.md");
            home.write_home("outside.md", "x");
            let env = Env::for_test(home.home(), home.project());
            let mut output = Vec::new();
            ask(&env, &mut answers.as_bytes(), &mut output).unwrap();
            let said = String::from_utf8(output).unwrap();
            assert!(
                said.contains("import files from outside it:\n  ") && said.contains("outside.md"),
                "{said}"
            );
            let config = ConfigHome::from_env(&env);
            assert_eq!(
                external_imports(&config, &home.project()),
                Some(may),
                "kept, so that it is asked once"
            );
        }
    }

    #[test]
    fn any_answer_but_yes_denies_trust() {
        for answer in ["", "\n", "n\n", "yes please\n", "never\n"] {
            let home = greedy();
            let env = Env::for_test(home.home(), home.project());
            let user_error = ask(&env, &mut answer.as_bytes(), &mut Vec::new()).unwrap_err();
            assert_eq!(user_error.message(), "This folder is not trusted, so nothing was started");
            assert!(!home.home().join(".claude.json").exists());
        }
    }

    #[test]
    fn trust_in_the_home_directory_is_not_kept() {
        let home = TestHome::new();
        let env = Env::for_test(home.home(), home.home());
        ask(&env, &mut "yes\n".as_bytes(), &mut Vec::new()).unwrap();
        assert!(!home.home().join(".claude.json").exists());
    }

    #[test]
    fn empty_folder_question_says_nothing_is_set() {
        let home = TestHome::new();
        check(
            &home,
            "n\n",
            expect![[r#"
            Do you trust the files in this folder?
              <project>
            Nothing in it asks for more than reading yet.
            Until you do, nothing in it is run or applied. Trust it? [y/N] 
            This folder is not trusted, so nothing was started"#]],
        );
    }
}
