//! Keys of settings that this version does not know, and that may restrict what runs.
//!
//! A newer version may know them: what they forbid would be done here without a word. So whoever is there is asked, and a run
//! that nobody watches does not start, unless it is told to go on all the same.

use std::path::Path;

use loci_stdx::{Env, single_line};
use loci_storage::config::{MANAGED_DIR, SettingsPlaces, SettingsSources, UnknownSetting, load_settings};
use loci_storage::layout::ConfigHome;

use crate::options::RunOptions;
use crate::user_error::UserError;

/// The flag with which a run goes on all the same.
pub(crate) const FLAG: &str = "--allow-unknown-settings";

/// The most letters of a key and its place.
const MOST_LETTERS: usize = 400;

/// Refuses a run that has such keys, unless its options accept them.
pub(crate) fn check_unknown(unknown: &[String], options: &RunOptions) -> Result<(), UserError> {
    if unknown.is_empty() || options.accepts_unknown_settings {
        return Ok(());
    }
    Err(UserError::new(format!(
        "Settings that may restrict this run are not known to this version: {}",
        unknown.join("; ")
    ))
    .hint(format!("Correct them, install a version that knows them, or go on all the same with {FLAG}.")))
}

/// Returns those of the files of a run that is yet to begin, a line each.
pub(crate) fn unknown_settings(env: &Env, sources: SettingsSources) -> Vec<String> {
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), sources);
    restricting(&load_settings(&places, None).unknown)
}

/// Returns those that may restrict, a line each.
pub(crate) fn restricting(unknown: &[UnknownSetting]) -> Vec<String> {
    let shown = |it: &UnknownSetting| single_line(&it.to_string(), MOST_LETTERS);
    unknown.iter().filter(|it| it.may_restrict()).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use loci_testkit::TestHome;

    use super::*;
    use crate::settings::RunSettings;
    use crate::start::{SessionStart, StartAnswer, StartQuestion, StartStep};

    fn world(settings: &str) -> (TestHome, Env) {
        let home = TestHome::new();
        home.write_config("settings.json", settings);
        let env = Env::for_test(home.home(), home.project());
        crate::start::trust::accept_trust(&env).unwrap();
        (home, env)
    }

    #[test]
    fn unknown_key_that_may_restrict_stops_a_run_unless_it_is_accepted() {
        for (settings, expected) in [
            (
                r#"{"permissions": {"blockEverything": true}}"#,
                "`permissions.blockEverything` (~/.claude/settings.json:1)",
            ),
            (r#"{"permissions": {"denny": ["Bash"]}}"#, "did you mean `permissions.deny`?"),
            (r#"{"sandbox": {"network": {"denyAll": true}}}"#, "`sandbox.network.denyAll`"),
            (r#"{"somethingElse": true, "permissions": {"deny": ["Bash"]}}"#, ""),
        ] {
            let (_home, env) = world(settings);
            let options = RunOptions::default();
            let run = RunSettings::load(&env, &options).unwrap();
            let said = check_unknown(&run.unknown, &options)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{settings}: {said}");
            assert!(said.is_empty() || said.contains(FLAG));
            let accepting = RunOptions { accepts_unknown_settings: true, ..options };
            assert!(check_unknown(&run.unknown, &accepting).is_ok());
        }
    }

    #[test]
    fn any_unknown_key_of_the_administrator_may_restrict() {
        let parsed = |scope| {
            let origin = loci_settings::Origin::new(scope, "managed-settings.json");
            let layer = loci_settings::Layer::parse(r#"{"modle": "x"}"#, origin).0;
            layer.unknown.iter().any(|key| key.may_restrict(scope))
        };
        assert!(parsed(loci_settings::Scope::Managed));
        assert!(!parsed(loci_settings::Scope::User));
    }

    #[test]
    fn person_at_a_terminal_is_asked_once() {
        let (_home, env) = world(r#"{"permissions": {"blockEverything": true}}"#);
        let options = RunOptions { is_interactive: true, ..RunOptions::default() };
        let mut start = SessionStart::new(env, options, None, Instant::now());
        let asked = |start: &mut SessionStart| match start.proceed() {
            StartStep::Ask(StartQuestion::UnknownSettings(keys)) => keys.join(""),
            StartStep::Ask(other) => format!("{other:?}"),
            StartStep::Failed(error) => error.to_string(),
            _ => String::new(),
        };
        assert!(asked(&mut start).contains("permissions.blockEverything"));
        start.answer(StartAnswer::UnknownSettings);
        assert_eq!(asked(&mut start), "NoCredentials(None)");
    }
}
