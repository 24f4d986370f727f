//! What the administrator asks of a run before it may start at all: a range of versions, settings fresh from the vendor's
//! server, settings that a program prints.
//!
//! Each is kept, or there is no run: none is passed over.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use loci_engine::is_on_cloud;
use loci_settings::{MergedSettings, Scope};
use loci_stdx::{CommandFailure, CommandLimits, Env, run_bounded};
use loci_storage::config::{GivenSettings, LoadedSettings};
use serde_json::Value;

use crate::COMPATIBLE_VERSION;
use crate::compose::child_env::helper_env;
use crate::user_error::UserError;

/// How long the program has where its entry does not say, and the least that an entry may say, in milliseconds.
const HELPER_PATIENCE_MS: u64 = 10_000;
const LEAST_PATIENCE_MS: u64 = 1_000;
/// The most that the program may print.
const HELPER_OUTPUT: u64 = 1024 * 1024;

/// Refuses a run that the administrator's settings do not let start; `env` is the environment as inherited.
pub(crate) fn check_start(merged: &MergedSettings, env: &Env) -> Result<(), UserError> {
    check_version(merged, COMPATIBLE_VERSION)?;
    if merged.value("forceRemoteSettingsRefresh") == Some(&Value::Bool(true)) && fetches_settings(env) {
        return Err(UserError::new(
            "The administrator lets sessions start only with fresh settings from the vendor's server \
             (`forceRemoteSettingsRefresh`), which loci does not fetch",
        )
        .hint(
            "Ask the administrator to keep the policy in `managed-settings.json`, and to unset that key.",
        ));
    }
    Ok(())
}

/// Returns the settings that the program of `policyHelper` prints, where there is one and it prints any.
pub(crate) fn helper_policy(merged: &MergedSettings, env: &Env) -> Result<Option<GivenSettings>, UserError> {
    let Some(entry) = merged.value("policyHelper") else { return Ok(None) };
    let path = entry.get("path").and_then(Value::as_str).unwrap_or_default();
    let refused = |why: &str| {
        UserError::new(format!(
            "The administrator's settings cannot be made (`policyHelper`): `{path}` {why}"
        ))
        .hint("Ask the administrator; no session starts without them.")
    };
    if !is_plain_absolute(path) {
        return Err(refused("is not an absolute path without `.` and `..`"));
    }
    let patience = entry.get("timeoutMs").and_then(Value::as_u64).unwrap_or(HELPER_PATIENCE_MS);
    let limits = CommandLimits {
        patience: Duration::from_millis(patience.max(LEAST_PATIENCE_MS)),
        output: HELPER_OUTPUT + 1,
    };
    let mut command = Command::new(path);
    command
        .current_dir(&env.cwd)
        .env_clear()
        .envs(helper_env(env))
        .env("CLAUDE_CODE_VERSION", COMPATIBLE_VERSION);
    let output = run_bounded(command, &[], limits).map_err(|failure| match failure {
        CommandFailure::NotFound => refused("is not there"),
        CommandFailure::Start(error) => refused(&format!("could not be started: {error}")),
        CommandFailure::Read => refused("printed what cannot be read"),
        CommandFailure::TimedOut => refused("took too long"),
    })?;
    if !output.status.is_some_and(|status| status.success()) {
        return Err(refused("failed"));
    }
    if output.bytes.len() as u64 > HELPER_OUTPUT {
        return Err(refused("printed more than 1 MB"));
    }
    let Ok(Value::Object(printed)) = serde_json::from_slice(&output.bytes) else {
        return Err(refused("did not print a JSON object"));
    };
    match printed.get("managedSettings") {
        None | Some(Value::Null) => Ok(None),
        Some(settings @ Value::Object(_)) => {
            Ok(Some(GivenSettings { text: settings.to_string(), name: path.to_owned() }))
        }
        Some(_) => Err(refused("printed a `managedSettings` that is no object")),
    }
}

/// Refuses a run whose settings from the program are not right: what it computes is whole, or does not count.
pub(crate) fn check_helper_policy(loaded: &LoadedSettings) -> Result<(), UserError> {
    match loaded.warnings().find(|diagnostic| diagnostic.origin.scope == Scope::Managed) {
        None => Ok(()),
        Some(problem) => Err(UserError::new(format!(
            "The administrator's settings (`policyHelper`) are not right: {problem}"
        ))
        .hint("Ask the administrator; no session starts without them.")),
    }
}

/// Refuses a version outside the administrator's range. The range is one of Claude Code's releases, so the release that
/// loci is compatible with is what is compared.
fn check_version(merged: &MergedSettings, ours: &str) -> Result<(), UserError> {
    let bound = |key: &str| merged.value(key).and_then(Value::as_str).and_then(version);
    let Some(ours_parsed) = version(ours) else { return Ok(()) };
    let problem = if bound("requiredMinimumVersion").is_some_and(|least| ours_parsed < least) {
        ("requiredMinimumVersion", "older")
    } else if bound("requiredMaximumVersion").is_some_and(|most| ours_parsed > most) {
        ("requiredMaximumVersion", "newer")
    } else {
        return Ok(());
    };
    let (key, word) = problem;
    let wanted = merged.value(key).and_then(Value::as_str).unwrap_or_default();
    Err(UserError::new(format!(
        "This release is {word} than the administrator allows: it stands for {ours}, and `{key}` is {wanted}"
    ))
    .hint("Install a release that the administrator allows."))
}

/// Says which bounds of versions cannot be read: they bound nothing.
pub(crate) fn unreadable_versions(merged: &MergedSettings) -> Vec<String> {
    let keys = ["requiredMinimumVersion", "requiredMaximumVersion"];
    let said = keys.iter().filter_map(|key| Some((key, merged.value(key)?.as_str()?)));
    let wrong = said.filter(|(_, text)| version(text).is_none());
    wrong.map(|(key, text)| format!("Settings: `{key}` has no effect: `{text}` is no version")).collect()
}

/// Reads the three numbers of a version.
fn version(text: &str) -> Option<[u64; 3]> {
    let plain = text.trim().trim_start_matches('v').split(['-', '+']).next()?;
    let numbers: Option<Vec<u64>> = plain.split('.').map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Tells whether Claude Code would fetch settings for such a run: it goes to the vendor's own server.
fn fetches_settings(env: &Env) -> bool {
    let is_cloud = is_on_cloud(&env.vars);
    let base = env.vars.non_empty("ANTHROPIC_BASE_URL");
    !is_cloud && base.is_none_or(|base| base.trim_end_matches('/') == "https://api.anthropic.com")
}

fn is_plain_absolute(path: &str) -> bool {
    Path::new(path).is_absolute() && !path.split('/').any(|part| part == "." || part == "..")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use loci_settings::{Layer, Origin, merge};

    use super::*;

    fn managed(text: &str) -> MergedSettings {
        merge(&[Layer::parse(text, Origin::new(Scope::Managed, "managed-settings.json")).0], false)
    }

    #[test]
    fn version_outside_the_administrators_range_is_refused() {
        for (settings, is_fine) in [
            ("{}", true),
            (r#"{"requiredMinimumVersion": "2.1.150"}"#, true),
            (r#"{"requiredMinimumVersion": "2.1.325"}"#, true),
            (r#"{"requiredMinimumVersion": "2.1.1000"}"#, false),
            (r#"{"requiredMaximumVersion": "2.1.325"}"#, true),
            (r#"{"requiredMaximumVersion": "2.0.999"}"#, false),
            (r#"{"requiredMinimumVersion": "soon"}"#, true),
        ] {
            assert_eq!(check_version(&managed(settings), "2.1.325").is_ok(), is_fine, "{settings}");
        }
        assert_eq!(
            unreadable_versions(&managed(
                r#"{"requiredMinimumVersion": "soon", "requiredMaximumVersion": "9.0.0"}"#
            )),
            ["Settings: `requiredMinimumVersion` has no effect: `soon` is no version"]
        );
        let error = check_version(&managed(r#"{"requiredMinimumVersion": "3.0.0"}"#), "2.1.325").unwrap_err();
        assert_eq!(
            error.message(),
            "This release is older than the administrator allows: it stands for 2.1.325, and \
             `requiredMinimumVersion` is 3.0.0"
        );
        let users = Layer::parse(r#"{"requiredMinimumVersion": "3.0.0"}"#, Origin::new(Scope::User, "x")).0;
        assert!(check_version(&merge(&[users], true), "2.1.325").is_ok(), "nobody else sets it");
    }

    #[test]
    fn settings_that_must_be_fetched_stop_a_run_at_the_vendors_server() {
        let policy = managed(r#"{"forceRemoteSettingsRefresh": true}"#);
        let mut env = Env::for_test("/home/dev", "/p");
        for (vars, is_fine) in [
            (vec![], false),
            (vec![("ANTHROPIC_BASE_URL", "https://api.anthropic.com/")], false),
            (vec![("ANTHROPIC_BASE_URL", "https://gateway.example")], true),
            (vec![("CLAUDE_CODE_USE_BEDROCK", "1")], true),
        ] {
            env.vars = vars.iter().copied().collect();
            assert_eq!(check_start(&policy, &env).is_ok(), is_fine, "{vars:?}");
            assert!(check_start(&managed("{}"), &env).is_ok());
        }
    }

    #[test]
    fn settings_of_the_administrators_program_are_whole_or_there_is_no_run() {
        let home = loci_testkit::TestHome::new();
        let env = Env::for_test(home.home(), home.project());
        let script = home.project().join("policy");
        let path = script.display();
        let run = |body: &str| {
            let patience = if body == "sleep 60" { 1 } else { 60_000 };
            std::fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
            helper_policy(
                &managed(&format!(r#"{{"policyHelper": {{"path": "{path}", "timeoutMs": {patience}}}}}"#)),
                &env,
            )
            .map(|policy| policy.map(|it| it.text))
            .map_err(|error| error.message().split("policy` ").nth(1).unwrap_or_default().to_owned())
        };
        for (body, expected) in [
            (r#"echo '{"managedSettings": {"model": "opus"}}'"#, Ok(Some(r#"{"model":"opus"}"#))),
            (
                r#"echo "{\"managedSettings\": {\"model\": \"$CLAUDE_CODE_VERSION\"}}""#,
                Ok(Some(r#"{"model":"2.1.325"}"#)),
            ),
            (r#"echo '{"permissions": {"deny": ["Bash"]}}'"#, Ok(None)),
            (r#"echo '{"managedSettings": []}'"#, Err("printed a `managedSettings` that is no object")),
            ("echo nothing", Err("did not print a JSON object")),
            (r#"echo '{}'; exit 3"#, Err("failed")),
            ("sleep 60", Err("took too long")),
        ] {
            let expected = expected.map(|text| text.map(str::to_owned)).map_err(str::to_owned);
            assert_eq!(run(body), expected, "{body}");
        }
        for wrong in
            [r#"{"policyHelper": {"path": "bin/policy"}}"#, r#"{"policyHelper": {"path": "/a/../b"}}"#]
        {
            assert!(helper_policy(&managed(wrong), &env).is_err(), "{wrong}");
        }
        assert!(helper_policy(&managed("{}"), &env).unwrap().is_none());
    }
}
