//! The warning before everything runs unasked: when it is due, and that it was accepted. Who may not run so is refused, and
//! not warned before.
//!
//! It is due once a person: who accepts it has it noted in their own settings (`skipDangerousModePermissionPrompt`). No file
//! that a repository brings says so for them.

use std::path::Path;

use loci_core::permission::Mode;
use loci_settings::edit;
use loci_stdx::{Env, WriteOptions};
use loci_storage::config::{MANAGED_DIR, SettingsPlaces, edit_settings, load_settings};
use loci_storage::layout::ConfigHome;
use serde_json::{Value, json};

use crate::options::RunOptions;
use crate::user_error::UserError;

/// The key that notes it.
const ACCEPTED: &str = "skipDangerousModePermissionPrompt";

/// The key that forbids it.
const FORBIDDEN: &str = "permissions.disableBypassPermissionsMode";

/// Refuses to root to run everything unasked, now or later, unless a sandbox says it is one.
pub(crate) fn refuse_root(env: &Env) -> Result<(), UserError> {
    match loci_stdx::is_root() && !env.vars.is_truthy("IS_SANDBOX") {
        true => Err(UserError::new("Permissions cannot be bypassed as root")
            .hint("Run as an ordinary user, or set IS_SANDBOX=1 inside a sandbox that you can throw away.")),
        false => Ok(()),
    }
}

/// Refuses to root a run whose flags ask for it, before anything else is asked.
pub(crate) fn refuse_flags_of_root(env: &Env, options: &RunOptions) -> Result<(), UserError> {
    let asked = &options.permissions;
    match asked.may_bypass || asked.mode == Some(Mode::BypassPermissions) {
        true => refuse_root(env),
        false => Ok(()),
    }
}

/// Tells whether a run that everything is allowed to, by its flags or by settings, is to be warned of first. One that will
/// be refused, or that settings keep from it, is not.
pub(crate) fn is_warning_due(env: &Env, options: &RunOptions) -> bool {
    let asked = &options.permissions;
    let is_other = asked.mode.is_some_and(|mode| mode != Mode::BypassPermissions);
    if is_other || asked.is_confined || refuse_root(env).is_err() {
        return false;
    }
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), options.setting_sources);
    let Ok(given) = crate::settings::read_settings_flag(env, options) else { return true };
    let loaded = load_settings(&places, options.flag_settings.over(given).as_ref());
    let by_settings = loaded.merged.value("permissions.defaultMode").and_then(Value::as_str);
    let is_bypass = options.permissions.mode.is_some() || by_settings == Some("bypassPermissions");
    let is_forbidden = loaded.merged.value(FORBIDDEN).is_some_and(Value::is_string);
    is_bypass && !is_forbidden && loaded.merged.value(ACCEPTED) != Some(&Value::Bool(true))
}

/// Notes that the warning was accepted, for later runs.
pub(crate) fn accept_warning(env: &Env) -> Result<(), UserError> {
    let home = ConfigHome::from_env(env);
    let path = home.user_settings();
    edit_settings(&home, &path, &WriteOptions::private(), |text| edit::set(text, &[ACCEPTED], &json!(true)))
        .map(drop)
        .map_err(|error| UserError::from_error(&error))
}

#[cfg(test)]
mod tests {
    use loci_testkit::TestHome;

    use super::*;

    #[test]
    fn bypass_warning_is_due_until_the_person_has_accepted_it() {
        let home = TestHome::new();
        let mut env = Env::for_test(home.home(), home.project());
        // Root is warned only where it is not refused.
        env.vars = [("IS_SANDBOX", "1")].into_iter().collect();
        let with_mode = |mode: Option<Mode>| {
            let mut options = RunOptions::default();
            options.permissions.mode = mode;
            options
        };
        let due = |mode: Option<Mode>| is_warning_due(&env, &with_mode(mode));
        assert!(due(Some(Mode::BypassPermissions)) && !due(None) && !due(Some(Mode::Plan)));
        home.write_config("settings.json", r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#);
        assert!(due(None), "settings can ask for the mode, too");
        assert!(!due(Some(Mode::Plan)), "a flag wins over them");
        home.write(".claude/settings.json", r#"{"skipDangerousModePermissionPrompt": true}"#);
        assert!(due(None), "a repository does not accept it for anybody");
        let forbidden = r#"{"permissions": {"disableBypassPermissionsMode": "disable"}}"#;
        home.write(".claude/settings.local.json", forbidden);
        assert!(!due(Some(Mode::BypassPermissions)), "it is refused");
        std::fs::remove_file(home.project().join(".claude/settings.local.json")).unwrap();
        assert!(due(Some(Mode::BypassPermissions)));
        accept_warning(&env).unwrap();
        assert!(!due(None) && !due(Some(Mode::BypassPermissions)));
        let written = std::fs::read_to_string(home.config_home().join("settings.json")).unwrap();
        assert!(written.contains("bypassPermissions") && written.contains(ACCEPTED), "{written}");
    }
}
