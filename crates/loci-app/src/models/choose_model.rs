//! Which model is asked, and how: flags over environment over what the session used before over settings.

use loci_core::model::{DeniedModels, EffortLimits};
use loci_core::stream::Failure;
use loci_engine::{
    ModelConfig, ToolSearchMode, available_model, has_cloud_ids, is_model_available, is_named, model_refusal,
    planning_model, resolve_model,
};
use loci_settings::Settings;
use loci_stdx::{Env, Vars};
use serde_json::Value;

use crate::options::{ModelOptions, ThinkingChoice};
use crate::user_error::UserError;

/// The most fallback models that are kept.
const MOST_FALLBACKS: usize = 3;

/// What the models of a run are chosen by.
#[derive(Debug, Clone, Copy)]
pub struct ModelSources<'a> {
    /// What the run is asked for.
    pub asked: &'a ModelOptions,
    /// Its settings.
    pub settings: &'a Settings,
    /// All that is in force, with what may be chosen (`availableModels`).
    pub in_force: &'a Value,
    /// The model that a resumed session used last.
    pub before: Option<&'a str>,
}

/// Chooses the models. What may not be chosen is replaced; the text is what the user should know of that.
pub fn choose(env: &Env, from: ModelSources<'_>) -> Result<(ModelConfig, Option<String>), UserError> {
    let ModelSources { asked, settings, in_force, before } = from;
    let vars = &env.vars;
    let usual = available_model(vars, in_force, "default").ok_or_else(no_model)?;
    let by_variable = default_model(vars, in_force);
    // Where a new session would begin with the variable's model, an old one goes on with it.
    let is_usual = settings.model.is_none() && by_variable.is_some();
    // A session of two models goes on with both, whichever was asked last.
    let is_of_pair = |model: &str| {
        let name = settings.model.as_deref().unwrap_or_default();
        planning_model(vars, in_force, name)
            .is_some_and(|planner| planner == model || resolve_model(vars, name) == model)
    };
    let wish = asked
        .model
        .as_deref()
        .or_else(|| vars.non_empty("ANTHROPIC_MODEL"))
        .or(before.filter(|model| !is_usual && !is_of_pair(model) && can_go_on(vars, in_force, model)))
        .or(settings.model.as_deref())
        .or(by_variable);
    let main = match wish {
        Some(name) => available_model(vars, in_force, name).unwrap_or(usual),
        None => usual,
    };
    let wished = wish.map(|name| resolve_model(vars, name));
    let replaced = wished.filter(|id| *id != main).map(|id| match model_refusal(in_force, &id) {
        Some(refusal) => format!("{refusal}; `{main}` is asked"),
        None => format!("Settings (availableModels) do not let `{id}` be chosen; `{main}` is asked"),
    });
    let fallbacks = match (&asked.fallbacks, &settings.fallback_model) {
        (Some(names), _) | (None, Some(names)) => {
            fallbacks(vars, in_force, names.iter().map(String::as_str), &main)
        }
        (None, None) => Vec::new(),
    };
    let planner = wish.and_then(|name| planning_model(vars, in_force, name)).filter(|id| *id != main);
    let limits = EffortLimits::from_settings(in_force);
    let model = ModelConfig {
        is_main_chosen: asked.model.is_some() || settings.model.is_some(),
        planner,
        fallbacks,
        effort: effort(vars, asked, settings, limits.usual(&main)),
        effort_limits: limits,
        denied: DeniedModels::from_settings(in_force),
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
    };
    Ok((model, replaced))
}

fn no_model() -> UserError {
    UserError::new("The administrator's settings leave no model that could be asked (`deniedModels`)")
        .hint("See `loci config explain deniedModels`, and ask the administrator to allow one.")
}

/// Returns the model that a variable has new sessions begin with, where it counts.
fn default_model<'a>(vars: &'a Vars, in_force: &Value) -> Option<&'a str> {
    let name = vars.non_empty("ANTHROPIC_DEFAULT_MODEL")?;
    let word = name.trim().to_ascii_lowercase();
    let is_ignored = ["default", "inherit", "opusplan", "haiku"].contains(&word.as_str());
    let is_enforced = in_force["enforceAvailableModels"] == Value::Bool(true);
    (!is_ignored && !is_enforced && is_model_available(vars, in_force, name)).then_some(name)
}

/// Tells whether a session may go on with the model it used: clouds have names of their own for theirs.
fn can_go_on(vars: &Vars, in_force: &Value, model: &str) -> bool {
    is_model_available(vars, in_force, model) && (!has_cloud_ids(vars) || is_named(in_force, model))
}

/// The environment wins over the flag; `auto` and words we do not know leave it to the next, and at last to the model.
/// Of settings, what they say of the model counts before what they say of all.
fn effort(vars: &Vars, asked: &ModelOptions, settings: &Settings, of_model: Option<&str>) -> Option<String> {
    let levels = ["low", "medium", "high", "xhigh", "max"];
    let from_env = vars.non_empty("CLAUDE_CODE_EFFORT_LEVEL").filter(|level| levels.contains(level));
    let level = from_env.or(asked.effort.as_deref()).or(of_model).or(settings.effort_level.as_deref());
    level.map(str::to_owned)
}

/// Those that may not be chosen are left out.
fn fallbacks<'a>(
    vars: &Vars,
    in_force: &Value,
    names: impl Iterator<Item = &'a str>,
    main: &str,
) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names.map(str::trim).filter(|name| !name.is_empty()) {
        let Some(model) = available_model(vars, in_force, name) else { continue };
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

    /// Returns the models, and whether one was replaced.
    fn chosen(
        vars: &[(&str, &str)],
        line: &str,
        settings: &Settings,
        in_force: &Value,
        before: Option<&str>,
    ) -> (ModelConfig, Option<String>) {
        let mut env = Env::for_test("/home/dev", "/p");
        env.vars = vars.iter().copied().collect();
        choose(&env, ModelSources { asked: &asked(line), settings, in_force, before }).unwrap()
    }

    fn check(vars: &[(&str, &str)], line: &str, before: Option<&str>, expected: &str) {
        let (model, _) = chosen(vars, line, &Settings::default(), &Value::Null, before);
        let all: Vec<String> = std::iter::once(model.main).chain(model.fallbacks).collect();
        assert_eq!(all.join(" "), expected, "{vars:?} {line}");
    }

    #[test]
    fn opusplan_has_opus_plan_and_sonnet_work_also_when_a_session_goes_on() {
        let by_settings = Settings { model: Some("opusplan".to_owned()), ..Settings::default() };
        let (sonnet, opus) = ("claude-sonnet-5-5", Some("claude-opus-5-5"));
        for (line, settings, before, main, planner) in [
            ("--model opusplan", &Settings::default(), None, sonnet, opus),
            ("", &by_settings, None, sonnet, opus),
            ("", &by_settings, opus, sonnet, opus),
            ("", &by_settings, Some("claude-haiku-4-5"), "claude-haiku-4-5", None),
            ("--model opus", &by_settings, None, "claude-opus-5-5", None),
        ] {
            let (model, _) = chosen(&[], line, settings, &Value::Null, before);
            assert_eq!((model.main.as_str(), model.planner.as_deref()), (main, planner), "{line} {before:?}");
        }
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
    fn default_of_new_sessions_is_a_variable_where_it_counts() {
        let variable = |value: &'static str| [("ANTHROPIC_DEFAULT_MODEL", value)];
        check(&variable("sonnet"), "", None, "claude-sonnet-5-5");
        check(&variable("sonnet"), "", Some("claude-opus-4-6"), "claude-sonnet-5-5");
        check(&variable("sonnet"), "--model opus", None, "claude-opus-5-5");
        for ignored in ["haiku", "default", "opusplan", "inherit"] {
            check(&variable(ignored), "", None, "claude-opus-5-5");
        }
        let in_force = serde_json::json!({"availableModels": ["haiku"]});
        let (model, replaced) = chosen(&variable("sonnet"), "", &Settings::default(), &in_force, None);
        assert_eq!((model.main.as_str(), replaced), ("claude-opus-5-5", None));
    }

    #[test]
    fn clouds_do_not_go_back_to_the_model_of_a_transcript() {
        let bedrock = [("CLAUDE_CODE_USE_BEDROCK", "1")];
        check(&bedrock, "", Some("claude-sonnet-5-5"), "claude-opus-5");
        check(&bedrock, "", Some("ollama/qwen3"), "ollama/qwen3");
        let on_aws = [("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1")];
        check(&on_aws, "", Some("claude-sonnet-5"), "claude-sonnet-5");
    }

    #[test]
    fn model_that_settings_do_not_offer_is_replaced_and_said() {
        for (in_force, line, before, expected, is_said) in [
            (serde_json::json!({}), "--model x --fallback-model y", None, "x y", false),
            (serde_json::json!({"availableModels": ["x"]}), "--model x --fallback-model y", None, "x", false),
            (serde_json::json!({"availableModels": ["sonnet"]}), "--model x", None, "claude-opus-5-5", true),
            (serde_json::json!({"availableModels": ["sonnet"]}), "", Some("x"), "claude-opus-5-5", false),
            (
                serde_json::json!({"availableModels": ["sonnet", "claude-opus-4-6"]}),
                "--model opus --fallback-model sonnet,haiku",
                None,
                "claude-opus-4-6 claude-sonnet-5-5",
                true,
            ),
            (
                serde_json::json!({"availableModels": ["sonnet"], "enforceAvailableModels": true}),
                "--model x --fallback-model sonnet,default",
                None,
                "claude-sonnet-5-5",
                true,
            ),
        ] {
            let (model, replaced) = chosen(&[], line, &Settings::default(), &in_force, before);
            let all: Vec<String> = std::iter::once(model.main).chain(model.fallbacks).collect();
            assert_eq!(
                (all.join(" ").as_str(), replaced.is_some()),
                (expected, is_said),
                "{in_force} {line}"
            );
        }
    }

    #[test]
    fn denied_model_is_replaced_and_a_run_without_any_does_not_start() {
        let in_force = serde_json::json!({"deniedModels": ["sonnet"]});
        let (model, said) = chosen(&[], "--model sonnet", &Settings::default(), &in_force, None);
        assert_eq!(model.main, "claude-opus-5-5");
        assert_eq!(
            said.as_deref(),
            Some(
                "Settings (deniedModels: sonnet) deny the model `claude-sonnet-5-5`; `claude-opus-5-5` is asked"
            )
        );
        let (model, said) =
            chosen(&[], "", &Settings::default(), &serde_json::json!({"deniedModels": ["opus"]}), None);
        assert_eq!((model.main.as_str(), said), ("claude-sonnet-5-5", None), "the default steps down");
        let all = serde_json::json!({"deniedModels": ["opus", "sonnet", "haiku"]});
        let sources = ModelSources {
            asked: &ModelOptions::default(),
            settings: &Settings::default(),
            in_force: &all,
            before: None,
        };
        let env = Env::for_test("/home/dev", "/p");
        assert!(choose(&env, sources).unwrap_err().message().contains("deniedModels"));
    }

    #[test]
    fn effort_is_that_of_the_model_and_never_above_the_limit() {
        let in_force = serde_json::json!({
            "effortLevel": "high", "maxEffortLevel": "medium", "modelSettings": {"opus": {"effortLevel": "low"}}
        });
        let settings = Settings { effort_level: Some("high".to_owned()), ..Settings::default() };
        for (line, expected) in [
            ("", "low"),
            ("--model sonnet", "medium"),
            ("--model opus --effort high", "medium"),
            ("--model opus --effort low", "low"),
        ] {
            let (model, _) = chosen(&[], line, &settings, &in_force, None);
            assert_eq!(model.effort_of(&model.main).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn bad_numbers_name_their_variable() {
        let mut env = Env::for_test("/home/dev", "/p");
        env.vars = [("MAX_THINKING_TOKENS", "lots")].into_iter().collect();
        assert!(
            choose(
                &env,
                ModelSources {
                    asked: &ModelOptions::default(),
                    settings: &Settings::default(),
                    in_force: &Value::Null,
                    before: None
                }
            )
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
            let (model, _) = chosen(vars, line, &settings, &Value::Null, before);
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
