//! Models that variables name: what an alias stands for (`ANTHROPIC_DEFAULT_OPUS_MODEL` and its kin), and one more to choose
//! (`ANTHROPIC_CUSTOM_MODEL_OPTION`).
//!
//! `_NAME` and `_DESCRIPTION` behind a variable's name say how people are shown its model, `_SUPPORTED_CAPABILITIES` what it can
//! do. At Anthropic's own address the table knows better: there the first two count for the additional model alone, and
//! capabilities are said of what a cloud has, whose ids need not tell them.

use loci_core::model::{Capabilities, MODEL_FAMILIES};
use loci_engine::is_on_cloud;
use loci_stdx::Vars;

/// The variable that adds a model to those that are offered.
const CUSTOM: &str = "ANTHROPIC_CUSTOM_MODEL_OPTION";

/// What is shown of what a variable says, in characters.
const LONGEST: usize = 200;

/// A model that a variable names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PinnedModel {
    /// The alias that means it; none for the additional one.
    pub(crate) alias: Option<&'static str>,
    /// Its id, without `[1m]`.
    pub(crate) id: String,
    /// What people are shown as its name.
    pub(crate) label: Option<String>,
    /// What people are told of it.
    pub(crate) description: Option<String>,
    /// What it can do, where somebody says so.
    pub(crate) capabilities: Option<Capabilities>,
}

/// Returns the models that variables name.
pub(crate) fn pinned_models(vars: &Vars) -> Vec<PinnedModel> {
    let families = MODEL_FAMILIES.into_iter().filter_map(|family| {
        let variable = format!("ANTHROPIC_DEFAULT_{}_MODEL", family.to_ascii_uppercase());
        pinned(vars, &variable, Some(family))
    });
    families.chain(pinned(vars, CUSTOM, None)).collect()
}

fn pinned(vars: &Vars, variable: &str, alias: Option<&'static str>) -> Option<PinnedModel> {
    let id = vars.non_empty(variable)?.trim();
    let said = |suffix: &str| {
        let text = vars.non_empty(&format!("{variable}_{suffix}"))?;
        Some(loci_stdx::single_line(text.trim(), LONGEST))
    };
    let is_cloud = is_on_cloud(vars);
    let is_shown = alias.is_none() || is_cloud || vars.non_empty("ANTHROPIC_BASE_URL").is_some();
    let id = id.strip_suffix("[1m]").map_or(id, str::trim_end).to_owned();
    let description = said("DESCRIPTION").or_else(|| alias.is_none().then(|| format!("Custom model ({id})")));
    Some(PinnedModel {
        alias,
        label: said("NAME").filter(|_| is_shown),
        description: description.filter(|_| is_shown),
        capabilities: said("SUPPORTED_CAPABILITIES")
            .filter(|_| is_cloud)
            .map(|list| Capabilities::parse(&list)),
        id,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use loci_core::model::{ModelCatalog, ModelDescription};

    use super::*;

    fn check(vars: &[(&str, &str)], expected: Expect) {
        let vars: Vars = vars.iter().copied().collect();
        let lines = pinned_models(&vars).into_iter().map(|model| {
            let description = ModelDescription { capabilities: model.capabilities, ..Default::default() };
            let catalog = ModelCatalog::default().describing([(model.id.clone(), description)].into());
            let facts = catalog.facts(&model.id);
            let effort = if facts.has_effort { facts.effort_levels.join(",") } else { "-".to_owned() };
            format!(
                "{} {} {:?} {:?} {:?} {effort}",
                model.alias.unwrap_or("-"),
                model.id,
                model.label,
                model.description,
                facts.thinking
            )
        });
        expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn names_and_capabilities_of_pinned_models_count_where_they_mean_something() {
        let opus = [
            ("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-deployment[1m]"),
            ("ANTHROPIC_DEFAULT_OPUS_MODEL_NAME", "Opus of ours"),
            ("ANTHROPIC_DEFAULT_OPUS_MODEL_DESCRIPTION", "Behind a door"),
            (
                "ANTHROPIC_DEFAULT_OPUS_MODEL_SUPPORTED_CAPABILITIES",
                "effort, max_effort,thinking,adaptive_thinking",
            ),
        ];
        check(&opus, expect![[r#"opus my-deployment None None None -"#]]);
        let gateway = [&opus[..], &[("ANTHROPIC_BASE_URL", "http://gateway")]].concat();
        check(&gateway, expect![[r#"opus my-deployment Some("Opus of ours") Some("Behind a door") None -"#]]);
        let cloud = [&opus[..], &[("CLAUDE_CODE_USE_FOUNDRY", "1")]].concat();
        check(
            &cloud,
            expect![[
                r#"opus my-deployment Some("Opus of ours") Some("Behind a door") Adaptive low,medium,high,max"#
            ]],
        );
        // What is not listed is not there, whatever the id looks like.
        check(
            &[
                ("CLAUDE_CODE_USE_VERTEX", "1"),
                ("ANTHROPIC_DEFAULT_SONNET_MODEL", "claude-sonnet-5"),
                ("ANTHROPIC_DEFAULT_SONNET_MODEL_SUPPORTED_CAPABILITIES", "thinking"),
            ],
            expect!["sonnet claude-sonnet-5 None None Budget -"],
        );
        check(
            &[("ANTHROPIC_CUSTOM_MODEL_OPTION", "my/x"), ("ANTHROPIC_CUSTOM_MODEL_OPTION_NAME", "X")],
            expect![[r#"- my/x Some("X") Some("Custom model (my/x)") None -"#]],
        );
    }
}
