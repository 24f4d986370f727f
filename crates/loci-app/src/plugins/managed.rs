//! What an administrator says of single plugins, and to those who install any.

use loci_core::plugin::PluginId;
use loci_settings::{MergedSettings, Role, Scope};
use serde_json::Value;

/// Says why the administrator lets nobody have a plugin; none where it may be had.
pub fn managed_refusal(merged: &MergedSettings, id: &PluginId) -> Option<String> {
    let is_off = says_managed(merged, &id.to_string(), false);
    is_off.then(|| "the administrator has turned it off for everybody (`enabledPlugins`)".to_owned())
}

/// Returns what the administrator says to those who install plugins.
pub fn trust_message(merged: &MergedSettings) -> Option<&str> {
    merged.value("pluginTrustMessage").and_then(Value::as_str).filter(|said| !said.trim().is_empty())
}

/// Tells whether it is the administrator who turned a plugin on.
pub(super) fn is_forced(merged: &MergedSettings, id: &str) -> bool {
    says_managed(merged, id, true)
}

fn says_managed(merged: &MergedSettings, id: &str, is_on: bool) -> bool {
    let parts = merged.get("enabledPlugins").map(|setting| setting.parts.as_slice()).unwrap_or_default();
    let mut managed = parts.iter().filter(|part| part.origin.scope == Scope::Managed);
    managed.any(|part| {
        !matches!(part.role, Role::Refused(_)) && part.value.get(id).and_then(Value::as_bool) == Some(is_on)
    })
}

#[cfg(test)]
mod tests {
    use loci_settings::{Layer, Origin, merge};

    use super::*;

    #[test]
    fn administrator_alone_turns_a_plugin_on_or_off_for_everybody() {
        let read = |scope: Scope| {
            let text =
                r#"{"enabledPlugins": {"on@m": true, "off@m": false}, "pluginTrustMessage": "Vetted"}"#;
            merge(&[Layer::parse(text, Origin::new(scope, "f")).0], true)
        };
        let id = |text: &str| PluginId::parse(text).unwrap();
        let managed = read(Scope::Managed);
        assert!(managed_refusal(&managed, &id("off@m")).is_some_and(|why| why.contains("turned it off")));
        assert_eq!(managed_refusal(&managed, &id("on@m")).or(managed_refusal(&managed, &id("x@m"))), None);
        assert!(is_forced(&managed, "on@m") && !is_forced(&managed, "off@m"));
        assert_eq!(trust_message(&managed), Some("Vetted"));
        let users = read(Scope::User);
        assert_eq!((managed_refusal(&users, &id("off@m")), trust_message(&users)), (None, None));
        assert!(!is_forced(&users, "on@m"));
    }
}
