//! The model of small work beside the conversation: notes and memories, hooks that ask a model, the check of a goal, the
//! reading of pages. One rule for all of them; the first that applies counts:
//!
//! 1. whoever asks names one, as a hook may;
//! 2. `ANTHROPIC_SMALL_FAST_MODEL` names one;
//! 3. the model of the haiku class, unless a cloud with ids of its own serves the models and no variable says that it has that one;
//! 4. the main model, if somebody chose that, and at Foundry, where a model is a deployment, in any case;
//! 5. the model of the sonnet class.
//!
//! A model that settings deny (`deniedModels`) is not asked, whoever names it: the main one is.
//!
//! Where the provider has none of the first provider's models, another stands in for what the rule says.

use loci_core::model::{DeniedModels, ModelCatalog};
use loci_stdx::Vars;

use crate::models::cloud_kind::CloudKind;
use crate::models::model_name::resolve_model;
use crate::session::config::ModelConfig;

/// What the choice rests on besides the environment, which settings may change.
#[derive(Debug, Clone)]
pub(crate) struct SmallModel {
    /// The model that the session began with.
    main: String,
    is_main_chosen: bool,
    catalog: ModelCatalog,
    denied: DeniedModels,
}

impl SmallModel {
    pub(crate) fn new(model: &ModelConfig) -> Self {
        Self {
            main: model.main.clone(),
            is_main_chosen: model.is_main_chosen,
            catalog: model.catalog.clone(),
            denied: model.denied.clone(),
        }
    }

    /// Returns the model to ask, or the one that `named` stands for.
    pub(crate) fn choose(&self, vars: &Vars, named: Option<&str>) -> String {
        let is_set = |name: &str| vars.non_empty(name).is_some();
        let cloud = CloudKind::from_vars(vars);
        let has_haiku = !cloud.is_some_and(CloudKind::has_own_ids) || is_set("ANTHROPIC_DEFAULT_HAIKU_MODEL");
        let named = named.or_else(|| vars.non_empty("ANTHROPIC_SMALL_FAST_MODEL"));
        let chosen = match named.or(has_haiku.then_some("haiku")) {
            Some(name) => resolve_model(vars, name),
            None if self.is_main_chosen(vars) || cloud == Some(CloudKind::Foundry) => self.main.clone(),
            None => resolve_model(vars, "sonnet"),
        };
        let is_denied = |name: &str| self.denied.why(name).is_some();
        match is_denied(&chosen) || (named.is_none() && has_haiku && is_denied("haiku")) {
            true => self.main.clone(),
            false => self.catalog.stand_in(chosen),
        }
    }

    /// Tells whether somebody said which model the main one is: it is there, then.
    fn is_main_chosen(&self, vars: &Vars) -> bool {
        let is_set = |name: &str| vars.non_empty(name).is_some();
        self.is_main_chosen
            || is_set("ANTHROPIC_MODEL")
            || is_set("ANTHROPIC_DEFAULT_MODEL")
            || (is_set("ANTHROPIC_DEFAULT_OPUS_MODEL") && !is_set("ANTHROPIC_DEFAULT_SONNET_MODEL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(is_main_chosen: bool) -> SmallModel {
        SmallModel {
            main: "main".to_owned(),
            is_main_chosen,
            catalog: ModelCatalog::default(),
            denied: DeniedModels::default(),
        }
    }

    #[test]
    fn denied_model_is_no_small_one() {
        let small = SmallModel { denied: DeniedModels::new(["haiku"]), ..small(false) };
        let mine: Vars = [("ANTHROPIC_DEFAULT_HAIKU_MODEL", "mine")].into_iter().collect();
        assert_eq!(small.choose(&Vars::default(), None), "main");
        assert_eq!(small.choose(&Vars::default(), Some("claude-haiku-4-5")), "main");
        assert_eq!(small.choose(&mine, None), "main", "whatever the alias means");
        assert_eq!(small.choose(&Vars::default(), Some("sonnet")), "claude-sonnet-5-5");
    }

    #[test]
    fn small_model_is_one_that_the_provider_has() {
        const BEDROCK: (&str, &str) = ("CLAUDE_CODE_USE_BEDROCK", "1");
        const VERTEX: (&str, &str) = ("CLAUDE_CODE_USE_VERTEX", "1");
        const FOUNDRY: (&str, &str) = ("CLAUDE_CODE_USE_FOUNDRY", "1");
        for (vars, usual, with_chosen_main) in [
            (&[][..], "claude-haiku-5-5", "claude-haiku-5-5"),
            (&[("ANTHROPIC_DEFAULT_HAIKU_MODEL", "mine")], "mine", "mine"),
            (&[("ANTHROPIC_SMALL_FAST_MODEL", "sonnet")], "claude-sonnet-5-5", "claude-sonnet-5-5"),
            (&[BEDROCK], "claude-sonnet-4-5", "main"),
            (&[VERTEX], "claude-sonnet-4-5", "main"),
            (&[FOUNDRY], "main", "main"),
            (&[("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1")], "claude-haiku-4-5", "claude-haiku-4-5"),
            (&[FOUNDRY, ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "small")], "small", "small"),
            (&[BEDROCK, ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "small")], "small", "small"),
            (&[BEDROCK, ("ANTHROPIC_SMALL_FAST_MODEL", "haiku")], "claude-haiku-4-5", "claude-haiku-4-5"),
            (&[BEDROCK, ("ANTHROPIC_MODEL", "opus")], "main", "main"),
            (&[BEDROCK, ("ANTHROPIC_DEFAULT_MODEL", "opus")], "main", "main"),
            (&[VERTEX, ("ANTHROPIC_DEFAULT_OPUS_MODEL", "x")], "main", "main"),
            (&[VERTEX, ("ANTHROPIC_DEFAULT_SONNET_MODEL", "y")], "y", "main"),
            (
                &[VERTEX, ("ANTHROPIC_DEFAULT_OPUS_MODEL", "x"), ("ANTHROPIC_DEFAULT_SONNET_MODEL", "y")],
                "y",
                "main",
            ),
        ] {
            let vars: Vars = vars.iter().copied().collect();
            let chosen = [small(false).choose(&vars, None), small(true).choose(&vars, None)];
            assert_eq!(chosen, [usual, with_chosen_main], "{vars:?}");
        }
    }

    #[test]
    fn model_that_a_hook_names_comes_first() {
        let vars: Vars =
            [("CLAUDE_CODE_USE_FOUNDRY", "1"), ("ANTHROPIC_SMALL_FAST_MODEL", "small")].into_iter().collect();
        assert_eq!(small(true).choose(&vars, Some("opus")), "claude-opus-4-6");
        assert_eq!(small(true).choose(&vars, None), "small");
    }

    #[test]
    fn stand_in_takes_the_place_of_a_model_that_is_not_there() {
        let catalog = ModelCatalog::default().standing_in("local/model");
        let small = SmallModel { catalog, ..small(false) };
        assert_eq!(small.choose(&Vars::default(), None), "local/model");
    }
}
