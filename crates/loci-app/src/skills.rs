//! The skills of a run: found, chosen by the settings, followed.

use std::collections::BTreeMap;
use std::sync::Arc;

use loci_core::skill::{ListingBudget, SkillOverride, SkillRegistry, SkillScope, bundled_skills};
use loci_engine::{SessionSkills, SkillPoller};
use loci_storage::config::{FoundSkills, SkillWatch};
use serde_json::Value;

use crate::plugins::RunPlugins;
use crate::settings::RunSettings;

/// The share of the window that the list of skills may take, unless settings say otherwise.
const LISTING_SHARE: f64 = 0.01;
/// The longest description in it, in characters.
const DESCRIPTION_CHARS: usize = 1_536;
/// About how many characters a token has.
const CHARS_PER_TOKEN: f64 = 4.0;
/// The variable that says how long the list may be, in characters.
const CHAR_BUDGET: &str = "SLASH_COMMAND_TOOL_CHAR_BUDGET";

/// Skills that were read, and what follows their files.
#[derive(Debug, Default)]
pub struct ReadSkills {
    found: FoundSkills,
    watch: Option<SkillWatch>,
}

impl ReadSkills {
    /// Reads the skills of a run; a bare one has none.
    pub fn read(run: &SkillOptions) -> Self {
        let Some(places) = &run.places else { return Self::default() };
        let (watch, found) = SkillWatch::start(places.clone());
        Self { found, watch: Some(watch) }
    }

    /// Returns what is wrong with files, for people.
    pub fn warnings(&self) -> Vec<String> {
        let unread =
            self.found.problems.iter().map(|(file, why)| format!("Skill `{}` {why}", file.display()));
        unread.collect()
    }

    /// Chooses among them.
    pub fn into_registry(self, options: &SkillOptions) -> SkillRegistry {
        options.registry(self.found)
    }

    /// Makes the skills of a session whose model has such a window, in tokens.
    pub fn into_session(self, options: SkillOptions, window: u64) -> SessionSkills {
        let budget = options.budget(window);
        let (runs_commands, mut watch) = (options.runs_commands, self.watch);
        if watch.is_none() {
            return SessionSkills::none();
        }
        let registry = options.registry(self.found);
        let poll: SkillPoller = Box::new(move || {
            let found = watch.as_mut()?.poll()?;
            Some(options.registry(found))
        });
        SessionSkills::new(registry, Some(poll), budget, runs_commands)
    }
}

/// What settings say of skills.
#[derive(Debug, Clone)]
pub struct SkillOptions {
    places: Option<loci_storage::config::DefinitionPlaces>,
    plugins: Arc<RunPlugins>,
    overrides: BTreeMap<String, SkillOverride>,
    has_bundled: bool,
    runs_commands: bool,
    share: f64,
    description_chars: usize,
    char_budget: Option<usize>,
}

impl SkillOptions {
    /// Takes what the settings of a run say.
    pub fn new(run: &RunSettings) -> Self {
        let setting = |key: &str| run.in_force.get(key);
        let is_true = |key: &str| setting(key).and_then(Value::as_bool).unwrap_or(false);
        let overrides = setting("skillOverrides").and_then(Value::as_object);
        let description_chars = setting("skillListingMaxDescChars").and_then(Value::as_u64);
        Self {
            places: (!run.is_bare).then(|| run.instructions.definition_places(&run.env, &run.home)),
            plugins: Arc::clone(&run.plugins),
            overrides: overrides
                .into_iter()
                .flatten()
                .filter_map(|(name, word)| Some((name.clone(), SkillOverride::parse(word.as_str()?)?)))
                .collect(),
            has_bundled: !is_true("disableBundledSkills"),
            runs_commands: !is_true("disableSkillShellExecution"),
            share: setting("skillListingBudgetFraction").and_then(Value::as_f64).unwrap_or(LISTING_SHARE),
            description_chars: description_chars.map_or(DESCRIPTION_CHARS, |chars| chars as usize),
            char_budget: run.env.vars.non_empty(CHAR_BUDGET).and_then(|text| text.trim().parse().ok()),
        }
    }

    /// Chooses among what was found.
    pub fn registry(&self, found: FoundSkills) -> SkillRegistry {
        let mut skills = found.skills;
        if self.plugins.only.skills {
            skills.retain(|skill| skill.source.scope == SkillScope::Managed);
        }
        skills.extend(self.plugins.skills());
        if self.has_bundled {
            skills.extend(bundled_skills());
        }
        SkillRegistry::new(skills, self.overrides.clone())
    }

    fn budget(&self, window: u64) -> ListingBudget {
        let usual = (window as f64 * self.share * CHARS_PER_TOKEN) as usize;
        ListingBudget { chars: self.char_budget.unwrap_or(usual), description_chars: self.description_chars }
    }
}
