//! What settings say of the sandbox.

use serde_json::Value;

use super::{MergedSettings, Sourced, sourced};
use crate::{Part, Role, Scope};

/// What holds commands once they run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SandboxSettings {
    /// Whether commands run in a sandbox.
    pub enabled: bool,
    /// Whether nothing runs where the full sandbox cannot be had.
    pub fail_if_unavailable: bool,
    /// Whether a command that runs inside is not asked about.
    pub auto_allow: bool,
    /// Whether the model may ask to run a command outside.
    pub allows_unsandboxed: bool,
    /// Commands that run outside.
    pub excluded_commands: Vec<Sourced>,
    /// Paths that may be written.
    pub allow_write: Vec<Sourced>,
    /// Paths that may not be written.
    pub deny_write: Vec<Sourced>,
    /// Paths that may not be read.
    pub deny_read: Vec<Sourced>,
    /// Paths that may be read all the same.
    pub allow_read: Vec<Sourced>,
    /// Whether files are left alone.
    pub is_files_disabled: bool,
    /// What may be reached.
    pub network: NetworkSettings,
    /// Files that may not be read: credentials.
    pub secret_files: Vec<String>,
    /// Variables that commands do not get: credentials.
    pub secret_variables: Vec<String>,
    /// Whether the machine's `/proc` is taken where no other can be had.
    pub allows_old_proc: bool,
    /// Keys that are set and cannot be honoured here, each with why.
    pub not_honoured: Vec<(&'static str, &'static str)>,
    /// Where a project's file says less than the user's own.
    pub loosened: Vec<LoosenedSetting>,
}

/// A switch that a project's file sets to less than the user's own does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoosenedSetting {
    /// The key.
    pub key: &'static str,
    /// What it is set to.
    pub value: bool,
    /// The project's file and line.
    pub place: String,
}

/// Switches, and the value that holds less.
const SWITCHES: [(&str, bool); 3] = [
    ("sandbox.enabled", false),
    ("sandbox.autoAllowBashIfSandboxed", true),
    ("sandbox.allowUnsandboxedCommands", true),
];

/// What sandboxed commands may reach.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkSettings {
    /// Hosts that may be reached.
    pub allowed: Vec<Sourced>,
    /// Hosts that may not.
    pub denied: Vec<Sourced>,
    /// Whether other hosts are refused unasked.
    pub is_strict: bool,
    /// Whether only the administrator's hosts count.
    pub managed_only: bool,
    /// Whether Unix sockets may be opened.
    pub allows_unix_sockets: bool,
    /// The port of the user's own HTTP proxy.
    pub http_proxy_port: Option<u16>,
    /// The port of the user's own SOCKS proxy.
    pub socks_proxy_port: Option<u16>,
}

/// Keys that mean nothing on this system, or nothing yet, and why.
const NOT_HONOURED: &[(&str, &str)] = &[
    (
        "sandbox.network.allowUnixSockets",
        "on Linux sockets cannot be told apart by path; see allowAllUnixSockets",
    ),
    ("sandbox.network.allowLocalBinding", "commands may always listen, on a loopback of their own"),
    ("sandbox.network.tlsTerminate", "encrypted connections are not opened"),
    ("sandbox.network.allowMachLookup", "there are no such services on Linux"),
    ("sandbox.enableWeakerNetworkIsolation", "it is for macOS"),
    ("sandbox.allowAppleEvents", "it is for macOS"),
    ("sandbox.bwrapPath", "bubblewrap is not used"),
    ("sandbox.socatPath", "socat is not used"),
    ("sandbox.ripgrep", "no search program is used"),
    ("sandbox.ignoreViolations", "refusals are always told"),
];

/// How credentials are asked for that programs see in the place of the real ones.
const MASK: &str = "\"mode\": \"mask\" in sandbox.credentials";

/// What `sandbox.credentials` may have beside files and variables, and is not there yet.
const CREDENTIALS_NOT_THERE: &[(&str, &str)] = &[
    ("allowPlaintextInject", "sandbox.credentials.allowPlaintextInject"),
    ("awsPairs", "sandbox.credentials.awsPairs"),
    ("sigv4", "sandbox.credentials.sigv4"),
];

impl SandboxSettings {
    pub(super) fn from_merged(merged: &MergedSettings) -> Self {
        let flag = |path: &str| merged.value(path).and_then(Value::as_bool);
        let list = |path: &str| sourced(merged, path);
        let port =
            |path: &str| merged.value(path).and_then(Value::as_u64).and_then(|it| u16::try_from(it).ok());
        let managed_only = flag("sandbox.network.allowManagedDomainsOnly") == Some(true);
        let managed_reads = flag("sandbox.filesystem.allowManagedReadPathsOnly") == Some(true);
        let kept = |list: Vec<Sourced>, only_managed: bool| -> Vec<Sourced> {
            list.into_iter().filter(|it| !only_managed || it.origin.scope == Scope::Managed).collect()
        };
        let (secret_files, files_masked) = secrets(merged, "files", "path");
        let (secret_variables, variables_masked) = secrets(merged, "envVars", "name");
        let mut not_honoured: Vec<(&str, &str)> =
            NOT_HONOURED.iter().filter(|(key, _)| is_set(merged, key)).copied().collect();
        let wants_no_files = flag("sandbox.filesystem.disabled") == Some(true);
        // The administrator alone may lift what the administrator says.
        let keeps_files = is_managed(merged) && !is_of_managed(merged, "sandbox.filesystem.disabled");
        if files_masked && wants_no_files && !keeps_files {
            not_honoured.push((
                MASK,
                "it is not there yet, and with `sandbox.filesystem.disabled` commands read these files",
            ));
        } else if files_masked || variables_masked {
            not_honoured.push((MASK, "it is not there yet; what it names is hidden instead"));
        }
        if wants_no_files && keeps_files {
            not_honoured.push(("sandbox.filesystem.disabled", "the administrator has rules about files"));
        }
        not_honoured.extend(credentials_not_there(merged));
        Self {
            enabled: flag("sandbox.enabled") == Some(true),
            fail_if_unavailable: flag("sandbox.failIfUnavailable") == Some(true),
            auto_allow: flag("sandbox.autoAllowBashIfSandboxed") != Some(false),
            allows_unsandboxed: flag("sandbox.allowUnsandboxedCommands") != Some(false),
            excluded_commands: list("sandbox.excludedCommands"),
            allow_write: list("sandbox.filesystem.allowWrite"),
            deny_write: list("sandbox.filesystem.denyWrite"),
            deny_read: list("sandbox.filesystem.denyRead"),
            allow_read: kept(list("sandbox.filesystem.allowRead"), managed_reads),
            is_files_disabled: wants_no_files && !keeps_files,
            network: NetworkSettings {
                allowed: kept(list("sandbox.network.allowedDomains"), managed_only),
                denied: list("sandbox.network.deniedDomains"),
                is_strict: managed_only || flag("sandbox.network.strictAllowlist") == Some(true),
                managed_only,
                allows_unix_sockets: flag("sandbox.network.allowAllUnixSockets") == Some(true),
                http_proxy_port: port("sandbox.network.httpProxyPort"),
                socks_proxy_port: port("sandbox.network.socksProxyPort"),
            },
            secret_files,
            secret_variables,
            allows_old_proc: flag("sandbox.enableWeakerNestedSandbox") == Some(true),
            not_honoured,
            loosened: SWITCHES.iter().filter_map(|(key, loose)| loosened(merged, key, *loose)).collect(),
        }
    }
}

/// Tells whether a project's file counts that says less than the user's.
fn loosened(merged: &MergedSettings, key: &'static str, loose: bool) -> Option<LoosenedSetting> {
    let parts = merged.get(key).map(|setting| setting.parts.as_slice()).unwrap_or_default();
    let said = |part: &Part, scope: Scope, value: bool| part.origin.scope == scope && part.value == value;
    let of_project =
        parts.iter().find(|part| said(part, Scope::Project, loose) && part.role == Role::Wins)?;
    let is_stricter = parts.iter().any(|part| said(part, Scope::User, !loose));
    let place = format!("{}:{}", of_project.origin.name, of_project.line);
    is_stricter.then_some(LoosenedSetting { key, value: loose, place })
}

/// Tells whether a key has a value that would do something.
fn is_set(merged: &MergedSettings, key: &str) -> bool {
    merged.value(key).is_some_and(does_something)
}

fn does_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}

/// Says what of `sandbox.credentials` is set and not there yet.
fn credentials_not_there(merged: &MergedSettings) -> Vec<(&'static str, &'static str)> {
    let credentials = merged.value("sandbox.credentials");
    let is_set = |name: &str| credentials.and_then(|it| it.get(name)).is_some_and(does_something);
    let set = CREDENTIALS_NOT_THERE.iter().filter(|(name, _)| is_set(name));
    set.map(|(_, key)| (*key, "nothing is put into requests yet")).collect()
}

/// Tells whether the administrator says something of files or credentials: then nobody else switches the guard off.
fn is_managed(merged: &MergedSettings) -> bool {
    const KEYS: [&str; 6] = [
        "sandbox.filesystem.allowManagedReadPathsOnly",
        "sandbox.filesystem.allowWrite",
        "sandbox.filesystem.denyWrite",
        "sandbox.filesystem.denyRead",
        "sandbox.filesystem.allowRead",
        "sandbox.credentials",
    ];
    KEYS.iter().any(|key| is_of_managed(merged, key))
}

/// Tells whether the administrator has a part in a key.
fn is_of_managed(merged: &MergedSettings, key: &str) -> bool {
    let parts = merged.get(key).map(|setting| setting.parts.as_slice()).unwrap_or_default();
    parts.iter().any(|part| part.origin.scope == Scope::Managed)
}

/// Returns the credentials of one kind, and whether one is to be masked: a text, or an object with its name.
fn secrets(merged: &MergedSettings, list: &str, name: &str) -> (Vec<String>, bool) {
    let entries = merged.value("sandbox.credentials").and_then(|it| it.get(list)).and_then(Value::as_array);
    let entries = entries.map(Vec::as_slice).unwrap_or_default();
    let names = entries.iter().filter_map(|entry| entry.as_str().or_else(|| entry.get(name)?.as_str()));
    let is_masked = entries.iter().any(|entry| entry.get("mode").is_some_and(|mode| mode == "mask"));
    (names.map(str::to_owned).collect(), is_masked)
}
