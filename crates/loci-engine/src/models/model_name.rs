//! From what people call a model to its id, and which may be chosen.

use loci_core::model::{
    AllowedModels, DeniedModels, ModelCatalog, built_in_models, is_family, resolve_alias,
};
use loci_stdx::Vars;
use serde_json::Value;

use crate::models::cloud_kind::CloudKind;

/// The variable that has nobody ask for the large windows.
pub const NO_LARGE_WINDOW: &str = "CLAUDE_CODE_DISABLE_1M_CONTEXT";

/// The name of two models at once: Opus plans, Sonnet does the work.
const OPUS_PLAN: &str = "opusplan";

/// Returns what stands behind the name of two models, `[1m]` or nothing; none, if it is the name of one.
fn behind_opus_plan(name: &str) -> Option<&str> {
    let name = name.trim();
    let suffix = name.get(OPUS_PLAN.len()..)?;
    let is_meant = name[..OPUS_PLAN.len()].eq_ignore_ascii_case(OPUS_PLAN);
    (is_meant && ["", "[1m]"].contains(&suffix.trim())).then_some(suffix.trim())
}

/// Returns the model that plans where a name stands for two; none where settings let no such model be chosen.
pub fn planning_model(vars: &Vars, settings: &Value, name: &str) -> Option<String> {
    available_model(vars, settings, &format!("opus{}", behind_opus_plan(name)?))
}

/// Returns the id of the model that a name stands for: an alias, which the environment may redirect, or an id. Of a name of
/// two models it is the one that does the work.
pub fn resolve_model(vars: &Vars, name: &str) -> String {
    if let Some(suffix) = behind_opus_plan(name) {
        return resolve_model(vars, &format!("sonnet{suffix}"));
    }
    let id = resolve_alias(name, |alias| {
        let own = variable_of_alias(vars, alias).and_then(|variable| vars.non_empty(variable));
        own.or_else(|| CloudKind::from_vars(vars)?.model_of_alias(alias)).map(str::to_owned)
    });
    match id.strip_suffix("[1m]") {
        Some(small) if vars.is_truthy(NO_LARGE_WINDOW) => small.trim_end().to_owned(),
        _ => id,
    }
}

/// Returns the variable that says what an alias means. At a cloud, whoever names a Sonnet and no Opus means it as the usual
/// model, too; at Foundry, whose usual model is a Sonnet, in any case.
fn variable_of_alias(vars: &Vars, alias: &str) -> Option<&'static str> {
    const OPUS: &str = "ANTHROPIC_DEFAULT_OPUS_MODEL";
    const SONNET: &str = "ANTHROPIC_DEFAULT_SONNET_MODEL";
    let is_steered = || {
        let cloud = CloudKind::from_vars(vars);
        let has_opus = vars.non_empty(OPUS).is_some() && cloud != Some(CloudKind::Foundry);
        cloud.is_some() && !has_opus && vars.non_empty(SONNET).is_some()
    };
    Some(match alias {
        "default" if is_steered() => SONNET,
        "opus" | "default" | "best" => OPUS,
        "fable" => "ANTHROPIC_DEFAULT_FABLE_MODEL",
        "sonnet" => SONNET,
        "haiku" => "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        _ => return None,
    })
}

/// Returns the model for an agent that takes over the conversation's, but nothing above Opus: Opus where the conversation
/// has a dearer family of the first provider's own API, else the same.
pub(crate) fn capped_at_opus(vars: &Vars, catalog: &ModelCatalog, model: &str) -> String {
    let is_above = model.contains("fable") && !catalog.facts(model).is_named && !is_on_cloud(vars);
    if is_above { resolve_model(vars, "opus") } else { model.to_owned() }
}

/// Tells whether a cloud serves the models of the first provider.
pub fn is_on_cloud(vars: &Vars) -> bool {
    CloudKind::from_vars(vars).is_some()
}

/// Tells whether the models of the first provider are called otherwise than at Anthropic, for a cloud serves them.
pub fn has_cloud_ids(vars: &Vars) -> bool {
    CloudKind::from_vars(vars).is_some_and(CloudKind::has_own_ids)
}

/// The providers that have names without a setting.
pub const BUILT_IN_PROVIDERS: [&str; 7] =
    ["openai", "openrouter", "gemini", "ollama", "lmstudio", "vllm", "llamacpp"];

/// Tells whether settings (`availableModels`, `deniedModels`, `allowedProviders`) let a model be chosen, by name or by id.
pub fn is_model_available(vars: &Vars, settings: &Value, name: &str) -> bool {
    available_model(vars, settings, name).is_some()
}

/// Returns the id to ask for where a model is wanted by this name, and settings may restrict which there are; none, where
/// they do not let it be chosen.
///
/// A family whose usual model is not allowed means the newest of it that is, where ids are Anthropic's own. The default may
/// always be chosen, unless settings say that it must be among the listed, too (`enforceAvailableModels`): then the first of
/// those takes its place. A model that is denied (`deniedModels`) is never chosen: the default steps down to the newest of the
/// next family that is left, and is none where none is.
pub fn available_model(vars: &Vars, settings: &Value, name: &str) -> Option<String> {
    let id = resolve_model(vars, name);
    let denied = DeniedModels::from_settings(settings);
    let is_default = is_default(name);
    let is_free = |name: &str, id: &str| denied.why(id).is_none() && denied.why(name).is_none();
    let is_usable = |name: &str, id: &str| is_free(name, id) && is_provider_allowed(settings, id);
    let Some(listed) = settings["availableModels"].as_array() else {
        return match is_usable(name, &id) {
            true => Some(id),
            false if is_default => next_family(vars, &is_usable),
            // A version that is denied is not another one of its family: who names it gets the default.
            false => None,
        };
    };
    let listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
    let is_exact = settings["availableModelsMatch"] == "exact";
    let allowed = AllowedModels::new(listed.iter().copied()).matched_exactly(is_exact);
    let permits = |id: &str| {
        is_usable(id, id)
            && match is_named(settings, id) {
                true => allowed.permits_named(id),
                false => allowed.permits(id),
            }
    };
    if is_default {
        let is_enforced = settings["enforceAvailableModels"] == Value::Bool(true) && !listed.is_empty();
        if (!is_enforced && is_usable(name, &id)) || permits(&id) {
            return Some(id);
        }
        let first = listed.iter().find_map(|entry| permitted(vars, &allowed, entry, &permits));
        return match first {
            Some(first) => Some(first),
            None if is_usable(name, &id) => Some(id),
            None => next_family(vars, &is_usable),
        };
    }
    if !is_free(name, "") {
        return None;
    }
    permitted(vars, &allowed, name, &permits)
}

/// Says why settings deny a model, whoever asks it: the entry of `deniedModels`, or the provider that is not allowed.
pub fn model_refusal(settings: &Value, id: &str) -> Option<String> {
    if let Some(entry) = DeniedModels::from_settings(settings).why(id) {
        return Some(format!("Settings (deniedModels: {entry}) deny the model `{id}`"));
    }
    (!is_provider_allowed(settings, id))
        .then(|| format!("Settings (allowedProviders) do not let the provider of `{id}` be asked"))
}

fn is_default(name: &str) -> bool {
    name.trim().trim_end_matches("[1m]").trim_end().eq_ignore_ascii_case("default")
}

/// Returns the first model, the strongest family first, that may be asked in the place of a default that may not.
fn next_family(vars: &Vars, is_usable: &impl Fn(&str, &str) -> bool) -> Option<String> {
    ["opus", "sonnet", "haiku"].into_iter().find_map(|family| {
        let usual = resolve_model(vars, family);
        if is_usable(family, &usual) {
            return Some(usual);
        }
        let others = || built_in_models().filter(|id| id.contains(family)).map(str::to_owned);
        (!has_cloud_ids(vars)).then(others).and_then(|mut ids| ids.find(|id| is_usable(family, id)))
    })
}

/// Tells whether settings (`allowedProviders`) let the named provider of a model be asked. The first provider's name depends on
/// more than its models; it is checked before a session begins.
fn is_provider_allowed(settings: &Value, id: &str) -> bool {
    let Some(allowed) = settings["allowedProviders"].as_array().filter(|_| is_named(settings, id)) else {
        return true;
    };
    let name = id.trim().split_once('/').map(|(name, _)| name);
    name.is_some_and(|name| allowed.iter().any(|it| it == name))
}

/// Returns the id of a name that may be chosen: its own, or that of the newest model of its family.
fn permitted(
    vars: &Vars,
    allowed: &AllowedModels,
    name: &str,
    permits: &impl Fn(&str) -> bool,
) -> Option<String> {
    let id = resolve_model(vars, name);
    if permits(&id) {
        return Some(id);
    }
    let (word, suffix) = match name.trim().strip_suffix("[1m]") {
        Some(word) => (word.trim_end().to_ascii_lowercase(), "[1m]"),
        None => (name.trim().to_ascii_lowercase(), ""),
    };
    let newest =
        (is_family(&word) && !has_cloud_ids(vars)).then(|| allowed.newest_where(&word, permits)).flatten()?;
    Some(resolve_model(vars, &format!("{newest}{suffix}")))
}

/// Tells whether an id can be a model's. Only of Anthropic's own API that is known: a cloud and a gateway name theirs as they
/// like, and so does whoever says something of a model in variables or settings.
pub(crate) fn is_recognized_model(vars: &Vars, settings: &Value, id: &str) -> bool {
    let is_elsewhere = is_on_cloud(vars) || vars.non_empty("ANTHROPIC_BASE_URL").is_some();
    let families =
        ["OPUS", "SONNET", "HAIKU", "FABLE"].map(|family| format!("ANTHROPIC_DEFAULT_{family}_MODEL"));
    let mut variables = families.iter().map(String::as_str).chain(["ANTHROPIC_CUSTOM_MODEL_OPTION"]);
    let has_override = settings["modelOverrides"]
        .as_object()
        .is_some_and(|all| all.iter().any(|(ours, theirs)| ours == id || theirs == id));
    is_elsewhere
        || id.starts_with("claude-")
        || is_named(settings, id)
        || settings["models"].get(id).is_some()
        || has_override
        || variables.any(|name| vars.non_empty(name).is_some_and(|it| it.trim() == id))
}

/// Tells whether a name is that of a model of a named provider.
pub fn is_named(settings: &Value, name: &str) -> bool {
    let provider = name.trim().split_once('/').map(|(provider, _)| provider);
    provider.is_some_and(|it| BUILT_IN_PROVIDERS.contains(&it) || settings["providers"].get(it).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn denied_models_are_never_chosen_and_the_default_steps_down() {
        let none = Vars::default();
        let bedrock: Vars = [("CLAUDE_CODE_USE_BEDROCK", "1")].into_iter().collect();
        let mine: Vars = [("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-deployment")].into_iter().collect();
        for (vars, settings, name, expected) in [
            (&none, json!({"deniedModels": ["opus"]}), "default", Some("claude-sonnet-5-5")),
            (&none, json!({"deniedModels": ["opus"]}), "opus", None),
            (&none, json!({"deniedModels": ["opus"]}), "sonnet", Some("claude-sonnet-5-5")),
            (&none, json!({"deniedModels": ["opus"]}), "claude-opus-4-6", None),
            (&none, json!({"deniedModels": ["claude-opus-5-5"]}), "default", Some("claude-opus-5")),
            (&none, json!({"deniedModels": ["opus", "sonnet"]}), "default", Some("claude-haiku-5-5")),
            (&none, json!({"deniedModels": ["opus", "sonnet", "haiku", "fable"]}), "default", None),
            (&mine, json!({"deniedModels": ["opus"]}), "opus", None),
            (&bedrock, json!({"deniedModels": ["opus"]}), "default", Some("claude-sonnet-4-5")),
            (&none, json!({"deniedModels": ["openai/gpt-5"]}), "openai/gpt-5-mini", None),
            (
                &none,
                json!({"deniedModels": ["claude-sonnet-5-5"], "availableModels": ["sonnet"]}),
                "sonnet",
                Some("claude-sonnet-5"),
            ),
            (
                &none,
                json!({"deniedModels": ["sonnet"], "availableModels": ["sonnet"], "enforceAvailableModels": true}),
                "default",
                Some("claude-opus-5-5"),
            ),
            (
                &none,
                json!({"availableModels": ["claude-opus-4"], "availableModelsMatch": "exact"}),
                "claude-opus-4-8",
                None,
            ),
            (&none, json!({"allowedProviders": ["ollama"]}), "openai/gpt-5", None),
            (&none, json!({"allowedProviders": ["ollama"]}), "ollama/qwen3", Some("ollama/qwen3")),
        ] {
            assert_eq!(available_model(vars, &settings, name).as_deref(), expected, "{settings} {name}");
        }
        let settings = json!({"deniedModels": ["opus"], "allowedProviders": ["ollama"]});
        let said = |id| model_refusal(&settings, id).unwrap_or_default();
        assert_eq!(said("claude-opus-5"), "Settings (deniedModels: opus) deny the model `claude-opus-5`");
        assert!(said("openai/gpt-5").contains("allowedProviders"));
        assert_eq!(said("claude-sonnet-5"), "");
    }

    #[test]
    fn model_is_recognized_at_the_api_and_anything_passes_elsewhere() {
        let settings = json!({"modelOverrides": {"claude-x": "arn:aws:x"}, "models": {"described": {}}});
        let mine = [("ANTHROPIC_CUSTOM_MODEL_OPTION", "mine"), ("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-opus")];
        for (vars, id, expected) in [
            (&[][..], "claude-from-the-future", true),
            (&[], "sonet", false),
            (&[], "ollama/qwen3", true),
            (&[], "arn:aws:x", true),
            (&[], "described", true),
            (&mine, "mine", true),
            (&mine, "my-opus", true),
            (&mine, "my-sonnet", false),
            (&[("ANTHROPIC_BASE_URL", "http://gateway")], "sonet", true),
            (&[("CLAUDE_CODE_USE_FOUNDRY", "1")], "my-deployment", true),
        ] {
            let vars = vars.iter().copied().collect();
            assert_eq!(is_recognized_model(&vars, &settings, id), expected, "{id}");
        }
    }

    #[test]
    fn opusplan_is_two_models() {
        let all = json!({});
        let pinned = json!({"availableModels": ["sonnet", "claude-opus-4-6"]});
        let without = json!({"availableModels": ["sonnet"]});
        let opus = |id: &str| Some(id.to_owned());
        for (settings, name, work, plans) in [
            (&all, "opusplan", "claude-sonnet-5-5", opus("claude-opus-5-5")),
            (&all, " OpusPlan[1m] ", "claude-sonnet-5-5[1m]", opus("claude-opus-5-5[1m]")),
            (&pinned, "opusplan", "claude-sonnet-5-5", opus("claude-opus-4-6")),
            (&without, "opusplan", "claude-sonnet-5-5", None),
            (&all, "opus", "claude-opus-5-5", None),
            (&all, "opusplans", "opusplans", None),
            (&all, "größtes-modell", "größtes-modell", None),
        ] {
            let vars = Vars::default();
            assert_eq!(resolve_model(&vars, name), work, "{name}");
            assert_eq!(planning_model(&vars, settings, name), plans, "{name} {settings}");
        }
    }

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
    fn dearer_family_is_capped_at_opus_on_the_api_alone() {
        let catalog = ModelCatalog::default();
        let cloud: Vars = [("CLAUDE_CODE_USE_VERTEX", "1")].into_iter().collect();
        for (vars, model, expected) in [
            (Vars::default(), "claude-fable-5-2", "claude-opus-5-5"),
            (Vars::default(), "claude-opus-4-1", "claude-opus-4-1"),
            (Vars::default(), "claude-sonnet-5", "claude-sonnet-5"),
            (Vars::default(), "mystery-1", "mystery-1"),
            (cloud, "claude-fable-5", "claude-fable-5"),
        ] {
            assert_eq!(capped_at_opus(&vars, &catalog, model), expected, "{model}");
        }
    }

    #[test]
    fn aliases_mean_what_each_cloud_has() {
        for (switch, expected) in [
            (
                "",
                "opus=claude-opus-5-5 best=claude-opus-5-5 sonnet=claude-sonnet-5-5 haiku=claude-haiku-5-5 fable=claude-fable-5-2 default=claude-opus-5-5",
            ),
            (
                "CLAUDE_CODE_USE_BEDROCK",
                "opus=claude-opus-5 best=claude-opus-5 sonnet=claude-sonnet-4-5 haiku=claude-haiku-4-5 fable=claude-fable-5 default=claude-opus-5",
            ),
            (
                "CLAUDE_CODE_USE_VERTEX",
                "opus=claude-opus-5 best=claude-opus-5 sonnet=claude-sonnet-4-5 haiku=claude-haiku-4-5 fable=claude-fable-5 default=claude-opus-5",
            ),
            (
                "CLAUDE_CODE_USE_FOUNDRY",
                "opus=claude-opus-4-6 best=claude-opus-4-6 sonnet=claude-sonnet-4-5 haiku=claude-haiku-4-5 fable=claude-fable-5 default=claude-sonnet-4-5",
            ),
            (
                "CLAUDE_CODE_USE_ANTHROPIC_AWS",
                "opus=claude-opus-5 best=claude-opus-5 sonnet=claude-sonnet-4-6 haiku=claude-haiku-4-5 fable=claude-fable-5 default=claude-opus-5",
            ),
            (
                "CLAUDE_CODE_USE_MANTLE",
                "opus=claude-opus-5 best=claude-opus-5 sonnet=claude-sonnet-5 haiku=claude-haiku-4-5 fable=claude-fable-5 default=claude-opus-5",
            ),
        ] {
            let vars: Vars = [(switch, "1")].into_iter().collect();
            let names = ["opus", "best", "sonnet", "haiku", "fable", "default"];
            let found: Vec<String> =
                names.iter().map(|name| format!("{name}={}", resolve_model(&vars, name))).collect();
            assert_eq!(found.join(" "), expected, "{switch}");
        }
        let own: Vars = [("CLAUDE_CODE_USE_FOUNDRY", "1"), ("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-deployment")]
            .into_iter()
            .collect();
        assert_eq!(resolve_model(&own, "best"), "my-deployment");
        assert_eq!(resolve_model(&own, "default"), "my-deployment");
        let sonnet = ("ANTHROPIC_DEFAULT_SONNET_MODEL", "my-sonnet");
        for (vars, expected) in [
            (&[("CLAUDE_CODE_USE_BEDROCK", "1"), sonnet][..], "my-sonnet"),
            (
                &[("CLAUDE_CODE_USE_BEDROCK", "1"), sonnet, ("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-opus")],
                "my-opus",
            ),
            (
                &[("CLAUDE_CODE_USE_FOUNDRY", "1"), sonnet, ("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-opus")],
                "my-sonnet",
            ),
            (&[sonnet], "claude-opus-5-5"),
        ] {
            let vars: Vars = vars.iter().copied().collect();
            assert_eq!(resolve_model(&vars, "default"), expected, "{vars:?}");
        }
    }

    #[test]
    fn listed_models_may_be_chosen_and_a_family_means_its_newest_that_may() {
        let bedrock = [("CLAUDE_CODE_USE_BEDROCK", "1")];
        let on_aws = [("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1")];
        let redirected = [("ANTHROPIC_DEFAULT_SONNET_MODEL", "mine")];
        let none: [(&str, &str); 0] = [];
        for (vars, settings, name, expected) in [
            (&none[..], json!({}), "opus", "claude-opus-5-5"),
            (&none, json!({"availableModels": ["sonnet"]}), "sonnet", "claude-sonnet-5-5"),
            (&none, json!({"availableModels": ["sonnet"]}), "Sonnet[1m]", "claude-sonnet-5-5[1m]"),
            (&none, json!({"availableModels": ["sonnet"]}), "claude-sonnet-4-5", "claude-sonnet-4-5"),
            (&none, json!({"availableModels": ["claude-sonnet-5-5"]}), "sonnet", "claude-sonnet-5-5"),
            (&none, json!({"availableModels": ["sonnet", "claude-opus-4-6"]}), "opus", "claude-opus-4-6"),
            (&none, json!({"availableModels": ["claude-opus-4-6"]}), "opus[1m]", "claude-opus-4-6[1m]"),
            (&bedrock, json!({"availableModels": ["sonnet", "claude-opus-4-6"]}), "opus", "-"),
            (&bedrock, json!({"availableModels": ["opus"]}), "opus", "claude-opus-5"),
            (&on_aws, json!({"availableModels": ["sonnet", "claude-opus-4-6"]}), "opus", "claude-opus-4-6"),
            (&redirected, json!({"availableModels": ["sonnet"]}), "sonnet", "claude-sonnet-5-5"),
            (&redirected, json!({"availableModels": ["sonnet", "mine"]}), "sonnet", "mine"),
            (&none, json!({"availableModels": ["sonnet"]}), "opus", "-"),
            (&none, json!({"availableModels": ["sonnet"]}), "default", "claude-opus-5-5"),
            (
                &none,
                json!({"availableModels": ["sonnet"], "enforceAvailableModels": true}),
                "default",
                "claude-sonnet-5-5",
            ),
            (
                &none,
                json!({"availableModels": ["opus"], "enforceAvailableModels": true}),
                "default",
                "claude-opus-5-5",
            ),
            (
                &none,
                json!({"availableModels": [], "enforceAvailableModels": true}),
                "default",
                "claude-opus-5-5",
            ),
            (&none, json!({"availableModels": []}), "sonnet", "-"),
            (
                &none,
                json!({"availableModels": ["sonnet"]}),
                "vendor/claude-sonnet-5",
                "vendor/claude-sonnet-5",
            ),
            (&none, json!({"availableModels": ["sonnet"]}), "openrouter/anthropic/claude-sonnet-5", "-"),
            (&none, json!({"availableModels": ["sonnet"], "providers": {"mine": {}}}), "mine/sonnet", "-"),
            (&none, json!({"availableModels": ["mine/m"], "providers": {"mine": {}}}), "mine/m", "mine/m"),
        ] {
            let vars: Vars = vars.iter().copied().collect();
            let found = available_model(&vars, &settings, name);
            assert_eq!(found.as_deref().unwrap_or("-"), expected, "{settings} {name}");
        }
    }
}
