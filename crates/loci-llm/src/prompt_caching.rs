//! Which prompts a server is asked to cache, and for how long.
//!
//! Variables of the reference turn caching off, for all models or for a family of them, and ask for the longer of the two
//! lifetimes. A model whose prompts are not cached gets no mark at all: a gateway may refuse the field.

use loci_core::model::MODEL_FAMILIES;
use loci_stdx::Vars;

/// The mark of the usual lifetime, with the brace that ends the object it stands in.
const FIVE_MINUTES: &str = r#","cache_control":{"type":"ephemeral"}}"#;
/// The mark of the longer lifetime.
const ONE_HOUR: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}}"#;

/// Which prompts a server is asked to cache, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptCaching {
    /// Whether no prompt is.
    is_off: bool,
    /// Families of models whose prompts are not.
    without: Vec<&'static str>,
    /// Whether the longer lifetime is asked for.
    has_long_life: bool,
}

impl PromptCaching {
    /// Reads `DISABLE_PROMPT_CACHING`, the same with a family behind it, and the variables of the lifetime.
    pub fn from_vars(vars: &Vars) -> Self {
        let is_without = |family: &&str| {
            vars.is_truthy(&format!("DISABLE_PROMPT_CACHING_{}", family.to_ascii_uppercase()))
        };
        Self {
            is_off: vars.is_truthy("DISABLE_PROMPT_CACHING"),
            without: MODEL_FAMILIES.into_iter().filter(is_without).collect(),
            has_long_life: has_long_cache_life(vars),
        }
    }

    /// Returns the mark of a model's prompts, with the brace that ends the object it stands in.
    pub(crate) fn mark(&self, model: &str) -> Option<&'static str> {
        let model = model.to_ascii_lowercase();
        let is_off = self.is_off || self.without.iter().any(|family| model.contains(family));
        (!is_off).then_some(if self.has_long_life { ONE_HOUR } else { FIVE_MINUTES })
    }
}

/// Tells whether variables ask for the longer lifetime of cached prompts.
pub fn has_long_cache_life(vars: &Vars) -> bool {
    let is_asked_for = ["ENABLE_PROMPT_CACHING_1H", "ENABLE_PROMPT_CACHING_1H_BEDROCK"];
    is_asked_for.iter().any(|name| vars.is_truthy(name)) && !vars.is_truthy("FORCE_PROMPT_CACHING_5M")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_choose_the_cache_mark_of_a_model() {
        let (short, long) = (Some(FIVE_MINUTES), Some(ONE_HOUR));
        for (vars, opus, haiku) in [
            (&[][..], short, short),
            (&[("DISABLE_PROMPT_CACHING", "1")], None, None),
            (&[("DISABLE_PROMPT_CACHING", "0")], short, short),
            (&[("DISABLE_PROMPT_CACHING_HAIKU", "true")], short, None),
            (&[("DISABLE_PROMPT_CACHING_OPUS", "1"), ("ENABLE_PROMPT_CACHING_1H", "1")], None, long),
            (&[("ENABLE_PROMPT_CACHING_1H_BEDROCK", "1")], long, long),
            (&[("ENABLE_PROMPT_CACHING_1H", "1"), ("FORCE_PROMPT_CACHING_5M", "1")], short, short),
        ] {
            let caching = PromptCaching::from_vars(&vars.iter().copied().collect());
            assert_eq!(caching.mark("us.anthropic.claude-opus-4-8"), opus, "{vars:?}");
            assert_eq!(caching.mark("claude-Haiku-4-5"), haiku, "{vars:?}");
        }
    }
}
