//! Settings that call a plugin by a former name are rewritten as a session starts: `enabledPlugins` and `pluginConfigs` of
//! the user's, the project's and the user's own file of the project; secrets go along. What a flag or an administrator says
//! stays, and is understood at every start.

use loci_core::plugin::PluginProblem;
use loci_settings::edit::{EditError, set, unset};
use loci_stdx::WriteOptions;
use loci_storage::config::{
    LoadedSettings, RenamedPlugin, SettingsPlaces, edit_settings, plugin_secrets, store_plugin_secret,
};
use loci_storage::layout::ConfigHome;
use serde_json::Value;

/// The settings whose keys are ids of plugins.
const BY_ID: [&str; 2] = ["enabledPlugins", "pluginConfigs"];

/// What came of rewriting settings.
#[derive(Debug, Default)]
pub struct RewrittenSettings {
    /// Whether a file changed.
    pub is_changed: bool,
    /// What could not be done.
    pub problems: Vec<PluginProblem>,
}

/// Rewrites the settings files that name plugins as they are not called any more. Files of a folder that nobody trusts are
/// left alone.
pub fn rewrite_renamed(
    home: &ConfigHome,
    places: &SettingsPlaces,
    loaded: &LoadedSettings,
    renamed: &[RenamedPlugin],
) -> RewrittenSettings {
    let mut out = RewrittenSettings::default();
    if renamed.is_empty() {
        return out;
    }
    let is_trusted = loaded.trust.is_trusted;
    let files = [
        (&places.user, WriteOptions::private(), places.sources.user),
        (&places.project, WriteOptions::project(), places.sources.project && is_trusted),
        (&places.local, WriteOptions::project(), places.sources.local && is_trusted),
    ];
    for (file, options, is_meant) in files {
        if !is_meant || !file.exists() {
            continue;
        }
        let rewrite =
            |text: &str| renamed.iter().try_fold(text.to_owned(), |text, it| rename_keys(&text, it));
        match edit_settings(home, file, &options, rewrite) {
            Ok(is_changed) => out.is_changed |= is_changed,
            Err(error) => {
                let shown = places.display_path(file);
                let message = format!("the former names of plugins stay in it: {error}");
                out.problems.push(PluginProblem::new(shown, "renamed", message));
            }
        }
    }
    out.problems.extend(renamed.iter().filter_map(|it| move_secrets(home, it)));
    out
}

/// Puts what a settings file says of a former name under the present one, unless that is there; of a plugin that was
/// removed, what turns it on goes.
fn rename_keys(text: &str, renamed: &RenamedPlugin) -> Result<String, EditError> {
    let settings: Value =
        loci_settings::jsonc::parse(text).root.and_then(|root| root.to_value()).unwrap_or_default();
    let old = renamed.old.to_string();
    let mut text = text.to_owned();
    for key in BY_ID {
        let Some(said) = settings.get(key).and_then(|all| all.get(&old)) else { continue };
        let new = renamed.new.as_ref().map(ToString::to_string);
        match &new {
            Some(new) if settings[key].get(new).is_none() => text = set(&text, &[key, new], said)?,
            // What was set up for a plugin that is gone harms nobody, and may be wanted again.
            None if key != BY_ID[0] => continue,
            Some(_) | None => {}
        }
        text = unset(&text, &[key, &old])?;
    }
    Ok(text)
}

/// Keeps the secrets of a former name under the present one; returns why not.
fn move_secrets(home: &ConfigHome, renamed: &RenamedPlugin) -> Option<PluginProblem> {
    let (old, new) = (renamed.old.to_string(), renamed.new.as_ref()?.to_string());
    // Where they cannot be read, that was said already.
    let secrets = plugin_secrets(home).ok()?;
    let is_known = |key: &str| secrets.get(&new).is_some_and(|own| own.get(key).is_some());
    for (key, value) in secrets.get(&old)?.as_object()?.iter().filter(|(key, _)| !is_known(key)) {
        let moved = store_plugin_secret(home, &new, key, Some(value));
        // A part of the credentials that another program keeps has no former name to forget.
        if let Err(error) = moved.and_then(|_| store_plugin_secret(home, &old, key, None)) {
            let message = format!("its secret `{key}` stays with the former name: {error}");
            return Some(PluginProblem::new(new, "renamed", message));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use loci_core::plugin::PluginId;

    use super::*;

    #[test]
    fn former_names_of_both_settings_become_the_present_ones() {
        let id = |text: &str| PluginId::parse(text).unwrap();
        let to_new = RenamedPlugin { old: id("old@m"), new: Some(id("new@m")) };
        let gone = RenamedPlugin { old: id("old@m"), new: None };
        for (before, to_new_after, gone_after) in [
            (
                r#"{"enabledPlugins": {"old@m": true}}"#,
                r#"{"enabledPlugins": {"new@m": true}}"#,
                r#"{"enabledPlugins": {}}"#,
            ),
            (
                r#"{"enabledPlugins": {"old@m": false, "new@m": true}}"#,
                r#"{"enabledPlugins": {"new@m": true}}"#,
                r#"{"enabledPlugins": {"new@m": true}}"#,
            ),
            (
                r#"{"pluginConfigs": {"old@m": {"options": {"a": 1}}}, "model": "x"}"#,
                r#"{"pluginConfigs": {"new@m": {"options": {"a": 1}}}, "model": "x"}"#,
                r#"{"pluginConfigs": {"old@m": {"options": {"a": 1}}}, "model": "x"}"#,
            ),
            (
                r#"{"enabledPlugins": ["old@m"]}"#,
                r#"{"enabledPlugins": ["old@m"]}"#,
                r#"{"enabledPlugins": ["old@m"]}"#,
            ),
            ("", "", ""),
        ] {
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            for (renamed, after) in [(&to_new, to_new_after), (&gone, gone_after)] {
                assert_eq!(json(&rename_keys(before, renamed).unwrap()), json(after), "{before}");
            }
        }
    }
}
