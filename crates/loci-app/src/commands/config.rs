//! `/config [key=value ..]`: the settings, why they are what they are, and changing some.

use loci_engine::{LocalOutcome, SessionSnapshot};
use loci_settings::{Key, Kind, Role, Scope, Scopes, Trust};
use serde_json::Value;

use super::{SessionCommands, cell, refused, take_scope};
use crate::settings::editor::{NamedKey, SettingChange, SettingsContext};
use crate::settings::explained::ExplainedSetting;
use crate::user_error::UserError;

/// A setting, for a list of them.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingRow {
    /// Why it is what it is.
    pub explained: ExplainedSetting,
    /// What its values are.
    pub kind: Kind,
    /// Whose file a change goes to unless another is named.
    pub scope: Scope,
    /// Whether it goes to the global state file instead.
    pub is_global: bool,
    /// Why it cannot be changed, where it cannot.
    pub refusal: Option<String>,
}

impl SettingRow {
    /// Returns the value in force, in a line.
    pub fn display_value(&self) -> String {
        match &self.explained.value {
            None => "not set".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    /// Returns the value in force as it is typed; nothing, where none is.
    pub fn typed_value(&self) -> String {
        self.explained.value.as_ref().map(|_| self.display_value()).unwrap_or_default()
    }

    /// Returns the value behind the one in force, for a setting that has a few.
    pub fn next_choice(&self) -> Option<&'static str> {
        let choices: &[&str] = match self.kind {
            Kind::Bool => &["true", "false"],
            Kind::OneOf(names) => names,
            _ => return None,
        };
        let now = choices.iter().position(|choice| *choice == self.typed_value());
        choices.get(now.map_or(0, |now| (now + 1) % choices.len())).copied()
    }

    /// Says what it is, where its value comes from and why, and where a change goes.
    pub fn details(&self) -> Vec<String> {
        let mut out = vec![format!("{}: {}.", self.explained.key, self.explained.about)];
        out.extend(self.explained.parts.iter().map(|part| {
            format!("{} {}:{} says {}: {}", part.scope, part.file, part.line, part.value, part.why)
        }));
        out.extend(self.explained.before.map(str::to_owned));
        if !self.explained.is_used {
            out.push("This version keeps it and does not act upon it yet.".to_owned());
        }
        out.push(match &self.refusal {
            Some(why) => format!("It cannot be changed here: {why}."),
            None if self.is_global => "A change goes to the global state file, `.claude.json`.".to_owned(),
            None => format!("A change goes to {} settings.", self.scope),
        });
        out
    }
}

/// Returns every setting that this version acts upon, and what else is set.
pub fn rows(ctx: &SettingsContext) -> Vec<SettingRow> {
    let merged = &ctx.loaded.merged;
    let all = Key::all().iter().filter(|key| key.is_used || merged.get(key.path).is_some());
    all.map(|key| SettingRow {
        explained: ExplainedSetting::new(key, merged.get(key.path)),
        kind: key.kind,
        scope: usual_scope(key),
        is_global: key.scopes == Scopes::Global,
        refusal: refusal(ctx, key),
    })
    .collect()
}

/// Changes go to the user's file; what waits there for nobody goes to their file for the project.
fn usual_scope(key: &Key) -> Scope {
    match key.path {
        "outputStyle"
        | "spinnerTipsEnabled"
        | "skillOverrides"
        | "enabledMcpjsonServers"
        | "disabledMcpjsonServers"
        | "enableAllProjectMcpServers" => Scope::Local,
        _ => Scope::User,
    }
}

/// Says why a key cannot be changed here.
fn refusal(ctx: &SettingsContext, key: &Key) -> Option<String> {
    if key.scopes == Scopes::Managed {
        return Some(format!("It belongs to {}", key.scopes.describe()));
    }
    let parts = ctx.loaded.merged.get(key.path).map(|setting| setting.parts.as_slice()).unwrap_or_default();
    let managed = parts.iter().find(|part| part.origin.scope == Scope::Managed && part.role == Role::Wins)?;
    Some(format!("Your administrator has set it, in {}", managed.origin.name))
}

/// Sets a key, or removes it where the value is empty. A value that the administrator has set is refused.
pub fn change(
    ctx: &SettingsContext,
    key: &str,
    value: &str,
    scope: Option<Scope>,
) -> Result<String, UserError> {
    let named = NamedKey::parse(key)?;
    if let Some(why) = refusal(ctx, named.key) {
        return Err(UserError::new(format!("`{key}` was not changed: {why}")));
    }
    let scope = scope.unwrap_or_else(|| usual_scope(named.key));
    if value.is_empty() {
        let file = match named.key.scopes {
            Scopes::Global => ctx.places.display_path(&ctx.places.state_file),
            _ => ctx.places.display_path(&ctx.file(scope).0),
        };
        return match ctx.unset(&named.path(), scope)? {
            true => Ok(format!("Removed `{key}` from {file}")),
            false => Err(UserError::new(format!("`{key}` is not set in {file}"))),
        };
    }
    let SettingChange { file, gone, excluded, no_effect } = ctx.set(&named, &named.value_of(value), scope)?;
    let mut text = format!("Set `{key}` in {file}");
    if !gone.is_empty() {
        let gone: Vec<String> = gone.iter().map(ToString::to_string).collect();
        text.push_str(&format!("\nReplaced what was there; gone: {}", gone.join(", ")));
    }
    if let Some(file) = excluded {
        text.push_str(&format!("\nGit ignores it from now on, by a rule in {file}"));
    }
    text.extend(no_effect.map(|why| format!("\n{why}")));
    if matches!(named.key.path, "model" | "effortLevel" | "outputStyle") {
        text.push_str("\nIt counts from the next session on, or after /clear");
    }
    Ok(text)
}

/// Keeps whether the task list is shown; the demo keeps nothing.
pub fn keep_task_view(ctx: &SettingsContext, is_shown: bool) -> Result<(), UserError> {
    match ctx.is_demo() {
        true => Ok(()),
        false => change(ctx, "showExpandedTodos", &is_shown.to_string(), None).map(drop),
    }
}

/// Carries the command out.
pub(super) fn run(commands: &SessionCommands, argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    let ctx = commands.settings_context();
    let mut words: Vec<&str> = argument.split_whitespace().collect();
    let scope = take_scope(&mut words);
    let rest = words.join(" ");
    let pairs = parse_pairs(&rest);
    let strangers = pairs.iter().find(|(key, _)| !session.is_interactive && !is_harmless(key));
    let outcome = match strangers {
        Some((key, _)) => {
            Err(UserError::new(format!("`{key}` is not changed by a prompt, which anybody may have written"))
                .hint(format!("Use `loci config set {key}`.")))
        }
        None if !pairs.is_empty() => change_all(&ctx, &pairs, scope),
        None if rest.is_empty() => Ok(to_markdown(&ctx)),
        None if matches!(rest.as_str(), "help" | "--help") => Ok(list_keys(&ctx)),
        None => NamedKey::parse(&rest).map(|named| {
            let explained = ExplainedSetting::new(named.key, ctx.loaded.merged.get(named.key.path));
            format!("```text\n{}```\n", explained.to_text())
        }),
    };
    outcome.map_or_else(|error| refused(&error), LocalOutcome::text)
}

/// Reads `key=value` pairs. A value goes on to the next word that begins one with a known key; what stands in brackets or
/// quotes is not looked into.
fn parse_pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in text.split_whitespace() {
        let is_open = pairs.last().is_some_and(|(_, value)| is_unfinished(value));
        let is_known = |key: &str| pairs.is_empty() || NamedKey::parse(whole_name(key)).is_ok();
        let named = word.split_once('=').filter(|(key, _)| !is_open && is_known(key));
        match (named, pairs.last_mut()) {
            (Some(named), _) => pairs.push(owned_pair(named)),
            (None, Some((_, value))) => value.push_str(&format!(" {word}")),
            // Blanks around the first sign.
            (None, None) => return text.split_once('=').map(owned_pair).into_iter().collect(),
        }
    }
    pairs
}

fn owned_pair((key, value): (&str, &str)) -> (String, String) {
    (whole_name(key.trim()).to_owned(), value.trim().to_owned())
}

/// Tells whether a value begins as JSON and is none yet.
fn is_unfinished(value: &str) -> bool {
    value.starts_with(['{', '[', '"']) && serde_json::from_str::<Value>(value).is_err()
}

/// Returns the name of a key that is known by a shorter one, too.
fn whole_name(key: &str) -> &str {
    if key == "thinking" { "alwaysThinkingEnabled" } else { key }
}

/// Changes one after the other; where one is refused, what was changed before it is told as well.
fn change_all(
    ctx: &SettingsContext,
    pairs: &[(String, String)],
    scope: Option<Scope>,
) -> Result<String, UserError> {
    let mut told: Vec<String> = Vec::new();
    for (key, value) in pairs {
        match change(ctx, key, value, scope) {
            Ok(text) => told.push(text),
            Err(error) if told.is_empty() => return Err(error),
            Err(error) => return Err(UserError::new(format!("{}\n{error}", told.join("\n")))),
        }
    }
    Ok(told.join("\n"))
}

/// Lists every key with what its values are.
fn list_keys(ctx: &SettingsContext) -> String {
    let line = |row: SettingRow| format!("- `{}`: {}\n", row.explained.key, row.kind.expected());
    let keys: String = rows(ctx).into_iter().map(line).collect();
    format!("{keys}\n`/config KEY` says why a setting is what it is, `/config KEY=VALUE` changes it\n")
}

/// Tells whether a key may be changed by whoever writes prompts: its values only restrict, or do no harm in a stranger's
/// hands. What is unknown is said elsewhere.
fn is_harmless(key: &str) -> bool {
    NamedKey::parse(key).map_or(true, |named| named.key.trust == Trust::Free)
}

fn to_markdown(ctx: &SettingsContext) -> String {
    let set: Vec<SettingRow> = rows(ctx).into_iter().filter(|row| !row.explained.parts.is_empty()).collect();
    if set.is_empty() {
        return "Nothing is set. Say `/config KEY=VALUE` to set something, `/config KEY` to see what it is"
            .to_owned();
    }
    let mut text = "## Settings\n\n| Key | Value | From |\n|---|---|---|\n".to_owned();
    for row in &set {
        let from = match row.explained.winner() {
            Some(part) => format!("{}:{}", part.file, part.line),
            None => "set, but does not count".to_owned(),
        };
        text.push_str(&format!(
            "| {} | {} | {} |\n",
            row.explained.key,
            cell(&row.display_value()),
            cell(&from)
        ));
    }
    text.push_str("\n`/config KEY` says why a setting is what it is, `/config KEY=VALUE` changes it\n");
    text
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;

    use super::*;

    fn context(dir: &tempfile::TempDir) -> SettingsContext {
        let (home, project) = (dir.path().join("home"), dir.path().join("project"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        SettingsContext::new(&Env::for_test(home, project))
    }

    #[test]
    fn change_goes_to_the_file_of_its_scope() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = context(&dir);
        let text = change(&ctx, "cleanupPeriodDays", "45", None).unwrap();
        assert!(text.contains("~/.claude/settings.json"), "{text}");
        let file = dir.path().join("home/.claude/settings.json");
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"cleanupPeriodDays\": 45"));
        let text = change(&ctx, "cleanupPeriodDays", "60", Some(Scope::Project)).unwrap();
        assert!(text.contains(".claude/settings.json"), "{text}");
        assert!(dir.path().join("project/.claude/settings.json").exists());
        assert!(change(&ctx, "cleanupPeriodDays", "", None).unwrap().starts_with("Removed"));
        assert!(change(&ctx, "cleanupPeriodDays", "", None).is_err(), "it is gone");
    }

    #[test]
    fn several_settings_are_changed_at_once() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let pairs = parse_pairs(text);
            let pairs: Vec<(&str, &str)> =
                pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            assert_eq!(pairs, expected, "{text}");
        };
        check("theme=dark verbose=true", &[("theme", "dark"), ("verbose", "true")]);
        check("thinking=false", &[("alwaysThinkingEnabled", "false")]);
        check("language=old english verbose=true", &[("language", "old english"), ("verbose", "true")]);
        check("theme = dark", &[("theme", "dark")]);
        check("language=a=b c=d", &[("language", "a=b c=d")]);
        check("nosuch=1", &[("nosuch", "1")]);
        check(
            r#"statusLine={"command": "x model=y"} model=opus"#,
            &[("statusLine", r#"{"command": "x model=y"}"#), ("model", "opus")],
        );
        check("verbose", &[]);
        let dir = tempfile::tempdir().unwrap();
        let ctx = context(&dir);
        let error = change_all(&ctx, &parse_pairs("verbose=true theme=nosuch"), None).unwrap_err();
        assert!(
            error.to_string().starts_with("Set `verbose`") && error.to_string().contains("nosuch"),
            "{error}"
        );
        assert!(list_keys(&ctx).contains("- `verbose`: true or false"), "{}", list_keys(&ctx));
    }

    #[test]
    fn theme_that_is_not_there_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = context(&dir);
        let error = change(&ctx, "theme", "nonsense", None).unwrap_err();
        assert!(error.to_string().contains("no theme `nonsense`"), "{error}");
        let error = change(&ctx, "verbose", "maybe", None).unwrap_err();
        assert!(!error.to_string().contains("ignored"), "{error}");
        assert!(!dir.path().join("home/.claude/settings.json").exists());
        for name in ["auto", "dark-ansi", "custom:mine"] {
            change(&ctx, "theme", name, None).unwrap();
        }
    }

    #[test]
    fn key_of_the_state_file_is_changed_there() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = context(&dir);
        let state = dir.path().join("home/.claude.json");
        std::fs::write(&state, "{\n  \"userID\": \"x\"\n}").unwrap();
        let text = change(&ctx, "externalEditorContext", "true", None).unwrap();
        assert!(text.contains("~/.claude.json") && !text.contains("no effect"), "{text}");
        assert_eq!(
            std::fs::read_to_string(&state).unwrap(),
            "{\n  \"userID\": \"x\",\n  \"externalEditorContext\": true\n}"
        );
        let rows = rows(&SettingsContext::new(&ctx.env));
        let row = rows.iter().find(|row| row.explained.key == "externalEditorContext").unwrap();
        assert_eq!((row.display_value().as_str(), row.refusal.as_deref()), ("true", None));
        assert!(row.details().concat().contains("global state file"), "{:?}", row.details());
        assert!(change(&ctx, "externalEditorContext", "perhaps", None).is_err());
        assert!(change(&ctx, "externalEditorContext", "", None).unwrap().starts_with("Removed"));
        assert_eq!(std::fs::read_to_string(&state).unwrap(), "{\n  \"userID\": \"x\"\n}");
    }

    #[test]
    fn view_of_the_task_list_is_kept_in_the_state_file() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = context(&dir);
        let state = dir.path().join("home/.claude.json");
        keep_task_view(&ctx, false).unwrap();
        assert_eq!(std::fs::read_to_string(&state).unwrap(), "{\n  \"showExpandedTodos\": false\n}");
        let again = SettingsContext::new(&ctx.env);
        assert_eq!(again.in_force()["showExpandedTodos"], false);
        keep_task_view(&again, true).unwrap();
        assert_eq!(std::fs::read_to_string(&state).unwrap(), "{\n  \"showExpandedTodos\": true\n}");
    }

    #[test]
    fn bad_values_and_unknown_keys_are_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = context(&dir);
        for (key, value, expected) in [
            ("cleanupPeriodDays", "0", "whole number"),
            ("verbose", "perhaps", "true or false"),
            ("cleanupPeriodDay", "3", "Did you mean `cleanupPeriodDays`?"),
            ("allowManagedHooksOnly", "true", "managed settings only"),
        ] {
            let error = change(&ctx, key, value, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{key}={value}: {error}");
        }
        assert!(!dir.path().join("home/.claude/settings.json").exists());
    }

    #[test]
    fn rows_have_all_that_is_acted_upon_and_where_it_comes_from() {
        let dir = tempfile::tempdir().unwrap();
        let ctx = context(&dir);
        change(&ctx, "model", "sonnet", None).unwrap();
        let ctx = SettingsContext::new(&ctx.env);
        let rows = rows(&ctx);
        let model = rows.iter().find(|row| row.explained.key == "model").unwrap();
        assert_eq!((model.display_value().as_str(), model.scope), ("sonnet", Scope::User));
        assert!(model.explained.winner().unwrap().file.contains("settings.json"));
        assert!(
            rows.iter()
                .any(|row| row.explained.key == "permissions.allow" && row.display_value() == "not set")
        );
    }
}
