//! Who may set what: scopes, trust, and the variables and modes that no repository sets.

use std::fmt;

use serde_json::{Map, Value};

use super::{Key, Origin, Scope, Scopes, Trust};

/// Why a value does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Such a file cannot set the key.
    Scope,
    /// The folder is not trusted.
    Untrusted,
    /// A repository never sets it, trusted or not.
    Repository,
    /// No settings file sets it.
    Nowhere,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scope => "this file cannot set it",
            Self::Untrusted => "this folder is not trusted",
            Self::Repository => "a repository cannot set it",
            Self::Nowhere => "no settings file can set it",
        })
    }
}

/// A value taken apart into what counts and what does not.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Admission {
    pub(super) counts: Option<Value>,
    pub(super) refused: Vec<(Value, Refusal)>,
}

/// Decides what of a value counts.
pub(super) fn admit(key: &Key, origin: &Origin, value: &Value, is_trusted: bool) -> Admission {
    let whole = |refusal: Option<Refusal>| match refusal {
        None => Admission { counts: Some(value.clone()), refused: Vec::new() },
        Some(refusal) => Admission { counts: None, refused: vec![(value.clone(), refusal)] },
    };
    let scope = origin.acting_scope();
    let is_allowed = match key.scopes {
        Scopes::Global => origin.is_state_file,
        scopes => scopes.allows(scope),
    };
    if !is_allowed {
        return whole(Some(Refusal::Scope));
    }
    let is_in_project = matches!(origin.scope, Scope::Project | Scope::Local);
    let untrusted = (is_in_project && !is_trusted).then_some(Refusal::Untrusted);
    match key.trust {
        Trust::Free => whole(None),
        Trust::Needed => whole(untrusted),
        Trust::NeverShared if scope == Scope::Project => whole(Some(Refusal::Repository)),
        Trust::NeverShared => whole(untrusted),
        Trust::PermissionMode => whole(mode(value, is_in_project, untrusted)),
        Trust::Environment => variables(value, |name| match variable(name) {
            Variable::Nobodys => Some(Refusal::Nowhere),
            Variable::NotProjects if is_in_project => Some(Refusal::Repository),
            Variable::NotRepositorys if scope == Scope::Project => Some(Refusal::Repository),
            _ => untrusted,
        }),
    }
}

/// The mode that only plans is free. The usual one is not, for the user's may be to plan; those that stop asking no
/// project may choose.
fn mode(value: &Value, is_in_project: bool, untrusted: Option<Refusal>) -> Option<Refusal> {
    match value.as_str().unwrap_or_default() {
        "plan" => None,
        "bypassPermissions" | "auto" if is_in_project => Some(Refusal::Repository),
        _ => untrusted,
    }
}

fn variables(value: &Value, refusal: impl Fn(&str) -> Option<Refusal>) -> Admission {
    let mut counts = Map::new();
    let mut refused: Vec<(Value, Refusal)> = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        match refusal(name) {
            None => {
                counts.insert(name.clone(), value.clone());
            }
            Some(why) => {
                let one = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
                match refused.iter_mut().find(|(_, other)| *other == why) {
                    Some((Value::Object(map), _)) => {
                        map.insert(name.clone(), value.clone());
                    }
                    _ => refused.push((one, why)),
                }
            }
        }
    }
    Admission { counts: (!counts.is_empty()).then_some(Value::Object(counts)), refused }
}

/// Who may set a variable.
#[derive(Debug, PartialEq, Eq)]
enum Variable {
    /// Anybody, once trusted.
    Anybodys,
    /// Not a file that came with a repository: it says where requests go, what they carry, and with which keys.
    NotRepositorys,
    /// No file inside a project.
    NotProjects,
    /// No settings file.
    Nobodys,
}

fn variable(name: &str) -> Variable {
    const NOBODYS: &[&str] = &[
        "CLAUDE_CODE_REMOTE",
        "CLAUDE_CODE_ACCOUNT_UUID",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_PROJECT_DIR_NAME",
        // Files were found by these already; a second answer would split the home in two.
        "CLAUDE_CONFIG_DIR",
        "HOME",
    ];
    const NOT_PROJECTS: &[&str] = &[
        "CLAUDE_CODE_PROCESS_WRAPPER",
        "CLAUDE_CODE_SYNC_SKILLS",
        "CLAUDE_CODE_SYNC_PLUGINS",
        "CLAUDE_CODE_PLUGIN_CACHE_DIR",
        "CLAUDE_CODE_PLUGIN_SEED_DIR",
        "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB",
        "LOCI_PASS_PROVIDER_KEYS",
        "LOCI_PROVIDER_KEY_NAMES",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENROUTER_API_KEY",
        "GEMINI_API_KEY",
        "OLLAMA_HOST",
        "IS_SANDBOX",
    ];
    // Files of credentials name addresses, and commands that give keys; a prompt speaks as the person.
    const NETWORK: &[&str] = &[
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_FOUNDRY_RESOURCE",
        "AWS_ACCESS_KEY_ID",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_CONFIG_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AZURE_AUTHORITY_HOST",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_POD_IDENTITY_AUTHORITY_HOST",
        "CLAUDE_CODE_CERT_STORE",
        "CLAUDE_CODE_EXTRA_BODY",
        "CLAUDE_CODE_RESUME_PROMPT",
        "CLOUDSDK_CONFIG",
        "GCE_METADATA_HOST",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "NODE_EXTRA_CA_CERTS",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ];
    let upper = name.to_ascii_uppercase();
    let upper = upper.as_str();
    let is_network = NETWORK.contains(&upper)
        || upper.ends_with("_PROXY")
        || upper.ends_with("_BASE_URL")
        || upper.ends_with("_API_KEY")
        || upper.ends_with("_AUTH_TOKEN")
        || upper.contains("ENDPOINT")
        || ["OTEL_", "CLAUDE_CODE_CLIENT_", "CLAUDE_CODE_OAUTH_"]
            .iter()
            .any(|prefix| upper.starts_with(prefix));
    if NOBODYS.contains(&upper) {
        Variable::Nobodys
    } else if NOT_PROJECTS.contains(&upper) {
        Variable::NotProjects
    } else if is_network {
        Variable::NotRepositorys
    } else {
        Variable::Anybodys
    }
}
