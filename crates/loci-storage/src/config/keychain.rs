//! Secrets of plugins in the keychain of macOS, where Claude Code keeps them: one item holds the JSON that is
//! `.credentials.json` elsewhere. It is read with the system's own `security`, which the item already lets in, and never
//! written. Whoever has no such item has no secrets there; a question that nobody answers is not waited for.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use loci_stdx::{CommandLimits, run_bounded};
use serde_json::{Map, Value};

/// The item.
const SERVICE: &str = "Claude Code-credentials";
/// The most of it that is read.
const LIMIT: u64 = 1024 * 1024;
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The program that reads the keychain.
#[cfg(target_os = "macos")]
pub(super) const SECURITY: &str = "/usr/bin/security";

/// Reads the secrets of plugins, option by option, by plugin.
pub(super) fn keychain_secrets(security: &Path) -> Map<String, Value> {
    let item = read_item(security).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    match item.and_then(|mut item| item.get_mut("pluginSecrets").map(Value::take)) {
        Some(Value::Object(secrets)) => secrets,
        _ => Map::new(),
    }
}

/// Returns what the item says; none where there is none, or where nobody lets it be read in time.
fn read_item(security: &Path) -> Option<String> {
    let mut command = Command::new(security);
    command.args(["find-generic-password", "-s", SERVICE, "-w"]);
    let output = run_bounded(command, b"", CommandLimits { patience: PATIENCE, output: LIMIT }).ok()?;
    let text =
        String::from_utf8(output.bytes).ok().filter(|_| output.status.is_some_and(|it| it.success()))?;
    let text = text.trim();
    // What is not plain letters is printed as hexadecimal digits.
    match text.starts_with('{') {
        true => Some(text.to_owned()),
        false => from_hex(text),
    }
}

fn from_hex(text: &str) -> Option<String> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect();
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_those_of_the_item_however_it_is_printed() {
        let dir = tempfile::tempdir().unwrap();
        let secrets = json!({"kit@m": {"token": "s3cret é"}});
        let item = json!({"claudeAiOauth": {}, "pluginSecrets": secrets}).to_string();
        let hex: String = item.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (n, (printed, expected)) in [
            (format!("printf '%s\\n' '{item}'"), secrets.clone()),
            (format!("printf '%s\\n' {hex}"), secrets),
            ("echo 'no such item' >&2; exit 44".to_owned(), json!({})),
            ("echo '{}'".to_owned(), json!({})),
            ("echo '{ half'".to_owned(), json!({})),
            ("echo zz".to_owned(), json!({})),
        ]
        .into_iter()
        .enumerate()
        {
            let security = dir.path().join(format!("security-{n}"));
            let script = format!(
                "#!/bin/sh\n[ \"$*\" = 'find-generic-password -s {SERVICE} -w' ] || exit 1\n{printed}\n"
            );
            std::fs::write(&security, script).unwrap();
            std::fs::set_permissions(&security, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(Value::Object(keychain_secrets(&security)), expected, "{printed}");
        }
        assert!(keychain_secrets(&dir.path().join("none")).is_empty());
    }
}
