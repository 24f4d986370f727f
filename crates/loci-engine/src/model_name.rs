//! From what people call a model to its id, and which may be chosen.

use loci_core::model::resolve_alias;
use loci_stdx::Vars;
use serde_json::Value;

/// The variable that has nobody ask for the large windows.
pub const NO_LARGE_WINDOW: &str = "CLAUDE_CODE_DISABLE_1M_CONTEXT";

/// Returns the id of the model that a name stands for: an alias, which the environment may redirect, or an id.
pub fn resolve_model(vars: &Vars, name: &str) -> String {
    let id = resolve_alias(name, |alias| {
        let variable = match alias {
            "opus" | "default" | "best" => "ANTHROPIC_DEFAULT_OPUS_MODEL",
            "fable" => "ANTHROPIC_DEFAULT_FABLE_MODEL",
            "sonnet" => "ANTHROPIC_DEFAULT_SONNET_MODEL",
            "haiku" => "ANTHROPIC_DEFAULT_HAIKU_MODEL",
            _ => return None,
        };
        vars.non_empty(variable).map(str::to_owned).or_else(|| on_cloud(vars, alias).map(str::to_owned))
    });
    match id.strip_suffix("[1m]") {
        Some(small) if vars.is_truthy(NO_LARGE_WINDOW) => small.trim_end().to_owned(),
        _ => id,
    }
}

/// Returns the model that an alias means on the cloud that the environment chooses: each has them at its own time.
fn on_cloud(vars: &Vars, alias: &str) -> Option<&'static str> {
    let is_foundry = vars.is_truthy("CLAUDE_CODE_USE_FOUNDRY");
    let is_cloud = is_foundry
        || ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"].iter().any(|it| vars.is_truthy(it));
    match alias {
        _ if !is_cloud => None,
        "opus" | "default" | "best" if is_foundry => Some("claude-opus-4-6"),
        "opus" | "default" | "best" => Some("claude-opus-5"),
        "sonnet" => Some("claude-sonnet-4-5"),
        "haiku" => Some("claude-haiku-4-5"),
        "fable" => Some("claude-fable-5"),
        _ => None,
    }
}

/// Tells whether settings let a model be chosen: one of `availableModels`, by name or by id. The default may always be,
/// unless settings say that it must be among them, too.
pub fn is_model_available(vars: &Vars, settings: &Value, name: &str) -> bool {
    let Some(listed) = settings["availableModels"].as_array() else { return true };
    let is_enforced = settings["enforceAvailableModels"] == Value::Bool(true);
    let plain = |name: &str| name.trim().trim_end_matches("[1m]").to_ascii_lowercase();
    if plain(name) == "default" && !is_enforced {
        return true;
    }
    let id = plain(&resolve_model(vars, name));
    let mut names = listed.iter().filter_map(Value::as_str);
    names.any(|it| plain(it) == plain(name) || plain(&resolve_model(vars, it)) == id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn large_window_is_not_asked_for_where_that_is_switched_off() {
        let vars: Vars = [(NO_LARGE_WINDOW, "1")].into_iter().collect();
        for (name, expected) in
            [("sonnet[1m]", "claude-sonnet-5-5"), ("claude-opus-4-8 [1m]", "claude-opus-4-8")]
        {
            assert_eq!(resolve_model(&vars, name), expected);
            assert!(resolve_model(&Vars::default(), name).ends_with("[1m]"), "{name}");
        }
    }

    #[test]
    fn listed_models_may_be_chosen_by_name_and_by_id() {
        let vars = Vars::default();
        for (settings, name, expected) in [
            (json!({}), "opus", true),
            (json!({"availableModels": ["sonnet"]}), "sonnet", true),
            (json!({"availableModels": ["sonnet"]}), "Sonnet[1m]", true),
            (json!({"availableModels": ["sonnet"]}), "claude-sonnet-5-5", true),
            (json!({"availableModels": ["claude-sonnet-5-5"]}), "sonnet", true),
            (json!({"availableModels": ["sonnet"]}), "opus", false),
            (json!({"availableModels": ["sonnet"]}), "default", true),
            (json!({"availableModels": ["sonnet"], "enforceAvailableModels": true}), "default", false),
            (json!({"availableModels": ["opus"], "enforceAvailableModels": true}), "default", true),
            (json!({"availableModels": []}), "sonnet", false),
            (json!({"availableModels": []}), "default", true),
        ] {
            assert_eq!(is_model_available(&vars, &settings, name), expected, "{settings} {name}");
        }
    }
}
