//! Which model is asked, and how: flags over environment over what the session used before over settings.

use loci_core::stream::Failure;
use loci_engine::{ModelConfig, ToolSearchMode, is_model_available, resolve_model};
use loci_settings::Settings;
use loci_stdx::{Env, Vars};
use serde_json::Value;

use crate::options::{ModelOptions, ThinkingChoice};
use crate::user_error::UserError;

/// The most fallback models that are kept.
const MOST_FALLBACKS: usize = 3;

/// Chooses the models; `before` is the one a resumed session used last.
pub fn choose(
    env: &Env,
    asked: &ModelOptions,
    settings: &Settings,
    before: Option<&str>,
) -> Result<ModelConfig, UserError> {
    let vars = &env.vars;
    let wish = asked
        .model
        .as_deref()
        .or_else(|| vars.non_empty("ANTHROPIC_MODEL"))
        .or(before)
        .or(settings.model.as_deref())
        .or_else(|| vars.non_empty("ANTHROPIC_DEFAULT_MODEL"))
        .unwrap_or("default");
    let main = resolve_model(vars, wish);
    let fallbacks = match (&asked.fallbacks, &settings.fallback_model) {
        (Some(names), _) | (None, Some(names)) => fallbacks(vars, names.iter().map(String::as_str), &main),
        (None, None) => Vec::new(),
    };
    Ok(ModelConfig {
        fallbacks,
        effort: effort(vars, asked, settings),
        max_thinking_tokens: match (asked.thinking, asked.max_thinking_tokens) {
            (Some(ThinkingChoice::Disabled), _) => Some(0),
            (_, Some(budget)) => Some(budget),
            // Whoever says so wins over what usually turns it off.
            (Some(ThinkingChoice::Adaptive), None) => None,
            (None, None) => number(vars, "MAX_THINKING_TOKENS")?
                .or((settings.always_thinking_enabled == Some(false)).then_some(0)),
        },
        thinking_display: asked.thinking_display.clone(),
        task_budget: asked.task_budget,
        max_output_tokens: number(vars, "CLAUDE_CODE_MAX_OUTPUT_TOKENS")?.filter(|limit| *limit > 0),
        betas: asked.betas.clone(),
        user_id: None,
        extra_body: loci_llm::extra_body_from_env(env)
            .map_err(|failure: Failure| UserError::from(failure))?,
        wants_wire_events: asked.wants_wire_events,
        tool_search: ToolSearchMode::Off,
        catalog: loci_core::model::ModelCatalog::default(),
        main,
    })
}

/// Puts a model that may be chosen in the place of one that settings (`availableModels`) do not let be; returns what the
/// user should know.
pub fn keep_available(vars: &Vars, in_force: &Value, model: &mut ModelConfig) -> Option<String> {
    let usual = resolve_model(vars, "default");
    let may_be = |id: &str| {
        is_model_available(vars, in_force, id) || id == usual && is_model_available(vars, in_force, "default")
    };
    model.fallbacks.retain(|id| may_be(id));
    if may_be(&model.main) {
        return None;
    }
    let listed = in_force["availableModels"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let listed = listed.map(|name| resolve_model(vars, name)).next();
    let taken = if may_be(&usual) { usual } else { listed.unwrap_or(usual) };
    let refused = std::mem::replace(&mut model.main, taken);
    model.fallbacks.retain(|id| *id != model.main);
    Some(format!("Settings (availableModels) do not let `{refused}` be chosen; `{}` is asked", model.main))
}

/// The environment wins over the flag; `auto` and words we do not know leave it to the next, and at last to the model.
fn effort(vars: &Vars, asked: &ModelOptions, settings: &Settings) -> Option<String> {
    let levels = ["low", "medium", "high", "xhigh", "max"];
    let from_env = vars.non_empty("CLAUDE_CODE_EFFORT_LEVEL").filter(|level| levels.contains(level));
    let level = from_env.or(asked.effort.as_deref()).or(settings.effort_level.as_deref());
    level.map(str::to_owned)
}

fn fallbacks<'a>(vars: &Vars, names: impl Iterator<Item = &'a str>, main: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names.map(str::trim).filter(|name| !name.is_empty()) {
        let model = resolve_model(vars, name);
        if model != main && !out.contains(&model) && out.len() < MOST_FALLBACKS {
            out.push(model);
        }
    }
    out
}

fn number(vars: &Vars, name: &str) -> Result<Option<u64>, UserError> {
    vars.non_empty(name)
        .map(|text| {
            text.trim().parse().map_err(|_| {
                UserError::new(format!("`{name}` is not a whole number: `{text}`"))
                    .hint(format!("Set {name} to a number of tokens, or unset it."))
            })
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `--model NAME`, `--fallback-model NAMES` and `--effort LEVEL`.
    fn asked(line: &str) -> ModelOptions {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut options = ModelOptions::default();
        for pair in words.chunks(2) {
            match (pair[0], pair[1].to_owned()) {
                ("--model", name) => options.model = Some(name),
                ("--fallback-model", names) => {
                    options.fallbacks = Some(names.split(',').map(str::to_owned).collect());
                }
                ("--effort", level) => options.effort = Some(level),
                (other, _) => panic!("{other}"),
            }
        }
        options
    }

    fn check(vars: &[(&str, &str)], line: &str, before: Option<&str>, expected: &str) {
        let mut env = Env::for_test("/home/dev", "/p");
        env.vars = vars.iter().copied().collect();
        let model = choose(&env, &asked(line), &Settings::default(), before).unwrap();
        let all: Vec<String> = std::iter::once(model.main).chain(model.fallbacks).collect();
        assert_eq!(all.join(" "), expected, "{vars:?} {line}");
    }

    #[test]
    fn model_flag_wins_over_environment_over_session() {
        check(&[], "", None, "claude-opus-5-5");
        check(&[], "--model sonnet", None, "claude-sonnet-5-5");
        check(&[("ANTHROPIC_MODEL", "haiku")], "", None, "claude-haiku-5-5");
        check(&[("ANTHROPIC_MODEL", "haiku")], "--model sonnet", None, "claude-sonnet-5-5");
        check(&[], "", Some("claude-sonnet-4-5"), "claude-sonnet-4-5");
        check(&[("ANTHROPIC_DEFAULT_SONNET_MODEL", "mine")], "--model sonnet", None, "mine");
        check(
            &[],
            "--model x --fallback-model x,sonnet,sonnet,haiku",
            None,
            "x claude-sonnet-5-5 claude-haiku-5-5",
        );
    }

    #[test]
    fn model_that_settings_do_not_offer_is_replaced_and_said() {
        let vars = Vars::default();
        for (in_force, main, fallbacks, expected, is_said) in [
            (serde_json::json!({}), "x", "y", "x y", false),
            (serde_json::json!({"availableModels": ["x"]}), "x", "y", "x", false),
            (serde_json::json!({"availableModels": ["sonnet"]}), "x", "", "claude-opus-5-5", true),
            (
                serde_json::json!({"availableModels": ["sonnet"], "enforceAvailableModels": true}),
                "x",
                "sonnet",
                "claude-sonnet-5-5",
                true,
            ),
        ] {
            let fallbacks = fallbacks.split_whitespace().map(|name| resolve_model(&vars, name)).collect();
            let mut model = ModelConfig { fallbacks, ..ModelConfig::new(main) };
            let said = keep_available(&vars, &in_force, &mut model);
            let all: Vec<String> = std::iter::once(model.main).chain(model.fallbacks).collect();
            assert_eq!((all.join(" ").as_str(), said.is_some()), (expected, is_said), "{in_force}");
        }
    }

    #[test]
    fn bad_numbers_name_their_variable() {
        let mut env = Env::for_test("/home/dev", "/p");
        env.vars = [("MAX_THINKING_TOKENS", "lots")].into_iter().collect();
        assert!(
            choose(&env, &ModelOptions::default(), &Settings::default(), None)
                .unwrap_err()
                .message()
                .contains("MAX_THINKING_TOKENS")
        );
    }

    #[test]
    fn settings_come_after_flags_environment_and_session() {
        let settings = Settings {
            model: Some("haiku".to_owned()),
            fallback_model: Some(vec!["sonnet".to_owned(), "default".to_owned()]),
            effort_level: Some("low".to_owned()),
            always_thinking_enabled: Some(false),
            ..Settings::default()
        };
        let choose = |vars: &[(&str, &str)], line: &str, before| {
            let mut env = Env::for_test("/home/dev", "/p");
            env.vars = vars.iter().copied().collect();
            let model = choose(&env, &asked(line), &settings, before).unwrap();
            let thinking = model.max_thinking_tokens.map_or("-".to_owned(), |budget| budget.to_string());
            format!("{} {} {thinking} {}", model.main, model.effort.unwrap(), model.fallbacks.join(","))
        };
        let fallbacks = "claude-sonnet-5-5,claude-opus-5-5";
        assert_eq!(choose(&[], "", None), format!("claude-haiku-5-5 low 0 {fallbacks}"));
        assert_eq!(choose(&[], "", Some("before")), format!("before low 0 {fallbacks}"));
        assert_eq!(choose(&[("ANTHROPIC_MODEL", "x")], "", Some("before")), format!("x low 0 {fallbacks}"));
        assert_eq!(choose(&[], "--model y --effort max --fallback-model z", None), "y max 0 z");
        let vars = [("CLAUDE_CODE_EFFORT_LEVEL", "medium"), ("MAX_THINKING_TOKENS", "9")];
        assert_eq!(choose(&vars, "--effort max", None), format!("claude-haiku-5-5 medium 9 {fallbacks}"));
    }
}
