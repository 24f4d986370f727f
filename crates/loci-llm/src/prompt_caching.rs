//! Which prompts a server is asked to cache, and for how long.
//!
//! Variables of the reference turn caching off, for all models or for a family of them, and choose between the two lifetimes,
//! for the main line and for agents; where they say nothing, settings do. A model whose prompts are not cached gets no mark at
//! all: a gateway may refuse the field.

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
    /// How long those of the main line are.
    main: CacheLife,
    /// How long those of agents are.
    agents: CacheLife,
}

/// How long a prompt stays in the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheLife {
    /// Five minutes.
    #[default]
    Short,
    /// An hour.
    Long,
}

impl CacheLife {
    /// Reads `5m` or `1h`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "5m" => Some(Self::Short),
            "1h" => Some(Self::Long),
            _ => None,
        }
    }

    /// Returns the word that settings and requests have for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Short => "5m",
            Self::Long => "1h",
        }
    }

    /// Says how long prompts of the main line are cached: as variables say, else as settings do.
    pub fn of_main(vars: &Vars, setting: Option<&str>) -> Self {
        let is_asked_for = ["ENABLE_PROMPT_CACHING_1H", "ENABLE_PROMPT_CACHING_1H_BEDROCK"];
        let by_switch = || is_asked_for.iter().any(|name| vars.is_truthy(name)).then_some(Self::Long);
        match vars.is_truthy("FORCE_PROMPT_CACHING_5M") {
            true => Self::Short,
            false => vars
                .non_empty("CLAUDE_CODE_PROMPT_CACHE_TTL")
                .and_then(Self::parse)
                .or_else(by_switch)
                .or_else(|| setting.and_then(Self::parse))
                .unwrap_or_default(),
        }
    }

    /// Says the same of agents; where nobody speaks of them, it is as in the main line.
    fn of_agents(vars: &Vars, setting: Option<&str>, main: Self) -> Self {
        let by_variable = vars.non_empty("CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL").and_then(Self::parse);
        match vars.is_truthy("FORCE_PROMPT_CACHING_5M") {
            true => Self::Short,
            false => by_variable.or_else(|| setting.and_then(Self::parse)).unwrap_or(main),
        }
    }
}

impl PromptCaching {
    /// Reads `DISABLE_PROMPT_CACHING`, the same with a family behind it, and the variables of the lifetime.
    pub fn from_vars(vars: &Vars) -> Self {
        Self::from_settings(vars, None, None)
    }

    /// Reads the same, with what settings say of the lifetimes in the main line and in agents.
    pub fn from_settings(vars: &Vars, main: Option<&str>, agents: Option<&str>) -> Self {
        let is_without = |family: &&str| {
            vars.is_truthy(&format!("DISABLE_PROMPT_CACHING_{}", family.to_ascii_uppercase()))
        };
        let main = CacheLife::of_main(vars, main);
        Self {
            is_off: vars.is_truthy("DISABLE_PROMPT_CACHING"),
            without: MODEL_FAMILIES.into_iter().filter(is_without).collect(),
            main,
            agents: CacheLife::of_agents(vars, agents, main),
        }
    }

    /// Returns the mark of a prompt for a model, with the brace that ends the object it stands in.
    pub(crate) fn mark(&self, model: &str, asker: Asker) -> Option<&'static str> {
        let model = model.to_ascii_lowercase();
        let is_off = self.is_off || self.without.iter().any(|family| model.contains(family));
        let life = match asker {
            Asker::MainLine => self.main,
            Asker::Agent => self.agents,
        };
        (!is_off).then_some(match life {
            CacheLife::Short => FIVE_MINUTES,
            CacheLife::Long => ONE_HOUR,
        })
    }
}

/// Who asks a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The conversation that people have.
    MainLine,
    /// An agent.
    Agent,
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
            let mark = |model| caching.mark(model, Asker::MainLine);
            assert_eq!(mark("us.anthropic.claude-opus-4-8"), opus, "{vars:?}");
            assert_eq!(mark("claude-Haiku-4-5"), haiku, "{vars:?}");
        }
    }

    #[test]
    fn lifetimes_are_chosen_by_variables_and_then_by_settings() {
        const MAIN: &str = "CLAUDE_CODE_PROMPT_CACHE_TTL";
        const AGENTS: &str = "CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL";
        for (vars, settings, expected) in [
            (&[][..], (None, None), "5m 5m"),
            (&[], (Some("1h"), None), "1h 1h"),
            (&[], (Some("1h"), Some("5m")), "1h 5m"),
            (&[], (None, Some("1h")), "5m 1h"),
            (&[], (Some("2h"), None), "5m 5m"),
            (&[(MAIN, "5m")], (Some("1h"), None), "5m 5m"),
            (&[(MAIN, "1h")], (None, Some("5m")), "1h 5m"),
            (&[(AGENTS, "1h")], (None, Some("5m")), "5m 1h"),
            (&[(MAIN, "5m"), ("ENABLE_PROMPT_CACHING_1H", "1")], (None, None), "5m 5m"),
            (&[(MAIN, "1h"), ("FORCE_PROMPT_CACHING_5M", "1")], (Some("1h"), Some("1h")), "5m 5m"),
        ] {
            let vars: Vars = vars.iter().copied().collect();
            let caching = PromptCaching::from_settings(&vars, settings.0, settings.1);
            let found = format!("{} {}", caching.main.as_str(), caching.agents.as_str());
            assert_eq!(found, expected, "{vars:?} {settings:?}");
        }
    }
}
