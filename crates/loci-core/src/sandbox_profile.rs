//! The sandbox that one program asks for beside its command: an MCP server, or a hook.
//!
//! `{"enabled": true, "network": false | true | ["host", ..], "allowWrite": ["path", ..]}`: without more it writes nowhere
//! but into a temporary directory of its own and reaches nothing. What cannot be read is an error: whoever asked for a
//! sandbox is never run without one.

use serde_json::Value;

/// What a program may do in a sandbox of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxProfile {
    /// What it may reach.
    pub network: ProfileNetwork,
    /// What it may write, as it was written down; paths are relative to the directory that it runs in.
    pub allow_write: Vec<String>,
}

/// What a program in a sandbox of its own may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProfileNetwork {
    /// Nothing.
    #[default]
    Closed,
    /// Every host that settings do not deny.
    Open,
    /// These hosts.
    Hosts(Vec<String>),
}

impl SandboxProfile {
    /// Reads what stands beside a command; none where no sandbox is asked for.
    pub fn parse(written: Option<&Value>) -> Result<Option<Self>, String> {
        let fields = match written {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err("its `sandbox` is no object".to_owned()),
        };
        match fields.get("enabled") {
            None | Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Ok(None),
            Some(_) => return Err("`enabled` of its `sandbox` is neither true nor false".to_owned()),
        }
        if let Some(unknown) = fields.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("its `sandbox` has `{unknown}`, which means nothing here"));
        }
        let network = match fields.get("network") {
            None | Some(Value::Null | Value::Bool(false)) => ProfileNetwork::Closed,
            Some(Value::Bool(true)) => ProfileNetwork::Open,
            Some(hosts) => ProfileNetwork::Hosts(
                texts(hosts)
                    .ok_or("`network` of its `sandbox` is neither true, false nor a list of hosts")?,
            ),
        };
        let allow_write = match fields.get("allowWrite") {
            None | Some(Value::Null) => Vec::new(),
            Some(paths) => texts(paths).ok_or("`allowWrite` of its `sandbox` is no list of paths")?,
        };
        Ok(Some(Self { network, allow_write }))
    }
}

const KEYS: [&str; 3] = ["enabled", "network", "allowWrite"];

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn profiles_are_read_and_what_is_unclear_is_refused() {
        let profile = |network, allow_write: &[&str]| {
            let allow_write = allow_write.iter().map(|&it| it.to_owned()).collect();
            Ok(Some(SandboxProfile { network, allow_write }))
        };
        for (written, expected) in [
            (json!(null), Ok(None)),
            (json!({"enabled": false, "network": 7}), Ok(None)),
            (json!({}), profile(ProfileNetwork::Closed, &[])),
            (json!({"enabled": true, "network": true}), profile(ProfileNetwork::Open, &[])),
            (
                json!({"network": ["a.com"], "allowWrite": [".", "/x"]}),
                profile(ProfileNetwork::Hosts(vec!["a.com".to_owned()]), &[".", "/x"]),
            ),
        ] {
            assert_eq!(SandboxProfile::parse(Some(&written)), expected, "{written}");
        }
        for wrong in [
            json!(true),
            json!({"enabled": "yes"}),
            json!({"network": "a.com"}),
            json!({"network": [1]}),
            json!({"allowWrite": "/x"}),
            json!({"allowRead": ["/x"]}),
        ] {
            assert!(SandboxProfile::parse(Some(&wrong)).is_err(), "{wrong}");
        }
    }
}
