//! The skills of a run: found, chosen by the settings, followed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use loci_core::skill::{
    ListingBudget, SkillOverride, SkillRegistry, SkillScope, SkillUsageTable, bundled_commands,
    bundled_skills,
};
use loci_engine::{SessionSkills, SkillFollower};
use loci_stdx::Store;
use loci_storage::config::{FoundSkills, SkillWatch, SkillsPrefetch};
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

/// The variable that turns bundled skills off.
const NO_BUNDLED: &str = "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS";

/// The variable that turns scheduled prompts off.
pub(crate) const NO_SCHEDULE: &str = "CLAUDE_CODE_DISABLE_CRON";
/// The bundled skill that schedules.
const LOOP: &str = "loop";

/// Skills that were read, and what follows their files.
#[derive(Debug, Default)]
pub struct ReadSkills {
    found: FoundSkills,
    watch: Option<SkillWatch>,
    problems: Vec<String>,
}

impl ReadSkills {
    /// Reads the skills of a run; a bare one has none.
    pub fn read(run: &RunSettings, options: &SkillOptions) -> Self {
        Self::read_with(options, run.take_skills())
    }

    /// The same, where the reading of the user's may be under way.
    pub(crate) fn read_with(options: &SkillOptions, prefetch: Option<SkillsPrefetch>) -> Self {
        let Some(places) = &options.places else { return Self::default() };
        let (watch, found) = SkillWatch::start(places.clone(), prefetch);
        Self { found, watch: Some(watch), problems: options.problems.clone() }
    }

    /// Returns what is wrong with files, for people.
    pub fn warnings(&self) -> Vec<String> {
        let unread =
            self.found.problems.iter().map(|(file, why)| format!("Skill `{}` {why}", file.display()));
        unread.chain(self.problems.iter().cloned()).collect()
    }

    /// Chooses among them.
    pub fn into_registry(self, options: &SkillOptions) -> SkillRegistry {
        options.registry(self.found)
    }

    /// Makes the skills of a session whose model has such a window, in tokens.
    pub fn into_session(self, options: SkillOptions, window: u64) -> SessionSkills {
        let budget = options.budget(window);
        let runs_commands = options.runs_commands;
        let Some(watch) = self.watch else { return SessionSkills::none() };
        let registry = options.registry(self.found);
        let usage = SkillUsageTable::clone(&options.usage);
        let follower = FollowedSkills { watch, options };
        SessionSkills::new(registry, Some(Box::new(follower)), budget, runs_commands).with_usage(usage)
    }
}

/// The files of skills, and what settings say of them.
struct FollowedSkills {
    watch: SkillWatch,
    options: SkillOptions,
}

impl SkillFollower for FollowedSkills {
    fn poll(&mut self) -> Option<SkillRegistry> {
        self.watch.poll().map(|found| self.options.registry(found))
    }

    fn meet(&mut self, file: &Path) -> Option<SkillRegistry> {
        self.watch.meet(file).map(|found| self.options.registry(found))
    }

    fn add_dir(&mut self, dir: &Path) -> Option<SkillRegistry> {
        self.watch.add_dir(dir).map(|found| self.options.registry(found))
    }

    fn reload(&mut self) -> SkillRegistry {
        self.options.registry(self.watch.reload())
    }
}

/// What settings say of skills.
#[derive(Clone)]
pub struct SkillOptions {
    places: Option<loci_storage::config::DefinitionPlaces>,
    plugins: Arc<Store<RunPlugins>>,
    overrides: BTreeMap<String, SkillOverride>,
    has_bundled: bool,
    /// Whether prompts can be scheduled, which `/loop` is about.
    has_schedule: bool,
    runs_commands: bool,
    share: f64,
    description_chars: usize,
    char_budget: Option<usize>,
    usage: Arc<SkillUsageTable>,
    /// What settings say of skills in vain.
    problems: Vec<String>,
}

impl SkillOptions {
    /// Takes what the settings of a run say.
    pub fn new(run: &RunSettings) -> Self {
        let setting = |key: &str| run.in_force.get(key);
        let is_true = |key: &str| setting(key).and_then(Value::as_bool).unwrap_or(false);
        let (overrides, mut problems) = overrides(setting("skillOverrides"));
        let said_budget = run.env.vars.non_empty(CHAR_BUDGET);
        let char_budget = said_budget.and_then(|text| text.trim().parse().ok());
        if let Some(text) = said_budget.filter(|_| char_budget.is_none()) {
            problems.push(format!("{CHAR_BUDGET} is no number of characters: `{text}`"));
        }
        let description_chars = setting("skillListingMaxDescChars").and_then(Value::as_u64);
        Self {
            places: (!run.is_bare).then(|| run.instructions.definition_places(&run.env, &run.home)),
            plugins: Arc::clone(&run.plugin_store),
            overrides,
            problems,
            has_bundled: !is_true("disableBundledSkills") && !run.env.vars.is_truthy(NO_BUNDLED),
            has_schedule: !run.env.vars.is_truthy(NO_SCHEDULE),
            runs_commands: !is_true("disableSkillShellExecution"),
            share: setting("skillListingBudgetFraction").and_then(Value::as_f64).unwrap_or(LISTING_SHARE),
            description_chars: description_chars.map_or(DESCRIPTION_CHARS, |chars| chars as usize),
            char_budget,
            usage: Arc::clone(&run.skill_usage),
        }
    }

    /// Chooses among what was found.
    pub fn registry(&self, found: FoundSkills) -> SkillRegistry {
        let mut skills = found.skills;
        let plugins = self.plugins.get();
        if plugins.only.skills {
            skills.retain(|skill| skill.source.scope == SkillScope::Managed);
        }
        skills.extend(plugins.skills().cloned());
        let bundled = if self.has_bundled { bundled_skills() } else { bundled_commands() };
        let bundled = bundled.into_iter().filter(|skill| self.has_schedule || skill.name != LOOP);
        skills.extend(bundled.map(Arc::new));
        SkillRegistry::new(skills, self.overrides.clone())
    }

    fn budget(&self, window: u64) -> ListingBudget {
        let usual = (window as f64 * self.share * CHARS_PER_TOKEN) as usize;
        ListingBudget { chars: self.char_budget.unwrap_or(usual), description_chars: self.description_chars }
    }
}

/// Reads what settings say of single skills, and what of it means nothing.
fn overrides(said: Option<&Value>) -> (BTreeMap<String, SkillOverride>, Vec<String>) {
    let (mut overrides, mut problems) = (BTreeMap::new(), Vec::new());
    for (name, word) in said.and_then(Value::as_object).into_iter().flatten() {
        match word.as_str().and_then(SkillOverride::parse) {
            Some(said) => drop(overrides.insert(name.clone(), said)),
            None => problems.push(format!(
                "`skillOverrides` says {word} of the skill `{name}`, which means nothing; it may say on, name-only, \
                 user-invocable-only or off"
            )),
        }
    }
    (overrides, problems)
}
