//! The skills of a session: which there are, what the model was told of them, and which were used.
//!
//! Files are looked at before each turn ([`SkillFollower`]). What changed counts from then on: a name that people can type
//! is appended to the commands, what the model can use is told behind the prompt, and nothing that was said before is
//! touched. A skill with `paths`, and one of a directory below the working one, is told once a file it is about was read
//! or changed ([`SessionSkills::meet`]). How a skill becomes words is in [`use_skill`](use_skill::SkillUse); what of them
//! stands in a conversation is read from its entries ([`used`]).

pub(crate) mod layer;
pub(crate) mod use_skill;
pub(crate) mod used;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_context::{Restorable, RestoreBudget};
use loci_core::entry::{Attachment, AttachmentKind, Entry};
use loci_core::skill::{
    ListingBudget, SkillDefinition, SkillRegistry, SkillScope, SkillUsageTable, list_skills,
};
use loci_storage::config::PathPatterns;
use loci_tools::SkillCatalog;

use crate::conversation::host::lock;
use crate::extensions::RestoreSource;
use crate::extensions::slash_command::{
    CommandAction, CommandRegistry, CommandScope, CommandSource, CommandTiming, SlashCommand,
};

/// How long what was read at the start counts as what is on disk.
const FRESH: Duration = Duration::from_secs(1);

/// Follows the files of skills.
pub trait SkillFollower: Send {
    /// Returns the skills anew when files changed since the last look.
    fn poll(&mut self) -> Option<SkillRegistry>;

    /// Takes up the skills of directories on the way to a file; returns all skills anew when there are more.
    fn meet(&mut self, file: &Path) -> Option<SkillRegistry>;

    /// Takes up the skills of a directory that was added; returns all skills anew when there may be more.
    fn add_dir(&mut self, dir: &Path) -> Option<SkillRegistry>;

    /// Reads all of them anew.
    fn reload(&mut self) -> SkillRegistry;
}

/// Keeps how often skills are used, beside the conversation.
pub trait SkillUsageLog: Send + Sync {
    /// Takes note of a use; nobody waits for that to be kept.
    fn record(&self, name: &str);

    /// Waits, not for long, until what was noted is kept.
    fn flush(&self);
}

/// The skills of a session, shared by all its conversations.
pub struct SessionSkills {
    /// Held for a look or a change.
    state: Mutex<SkillState>,
    /// Whether commands in their texts are run.
    pub(crate) runs_commands: bool,
    budget: ListingBudget,
    /// How often each was used before the session. It says whose descriptions stay where there is no room for all, and does
    /// not change, so that a list is the same whenever it is made.
    usage: SkillUsageTable,
    usage_log: Option<Arc<dyn SkillUsageLog>>,
}

#[derive(Default)]
struct SkillState {
    registry: Arc<SkillRegistry>,
    /// As they were when people last heard what changed.
    baseline: Arc<SkillRegistry>,
    follower: Option<Box<dyn SkillFollower>>,
    /// Skills that wait for a file they are about.
    waiting: Vec<WaitingSkill>,
    /// Skills whose file has come.
    awake: HashSet<String>,
    /// The only ones that the model may use, where the client has chosen.
    chosen: Option<Vec<String>>,
    /// Skills whose hooks count already.
    hooked: HashSet<String>,
    has_polled: bool,
    /// Whether a use was noted that may not be kept yet.
    is_usage_noted: bool,
}

/// A skill that the model is told of once a file it is about was read or changed.
struct WaitingSkill {
    name: String,
    /// Where its patterns begin; the working directory without.
    base: Option<PathBuf>,
    patterns: PathPatterns,
}

impl SkillState {
    fn set_registry(&mut self, registry: SkillRegistry) {
        let is_waiting = |skill: &&Arc<SkillDefinition>| {
            skill.is_for_model && !skill.paths.is_empty() && !self.awake.contains(&skill.name)
        };
        let waiting = registry.iter().filter(is_waiting).map(|skill| WaitingSkill {
            name: skill.name.clone(),
            base: project_of(skill),
            patterns: PathPatterns::new(&skill.paths),
        });
        self.waiting = waiting.collect();
        self.registry = Arc::new(registry);
    }
}

/// Returns the directory around `.claude` that a project's skill lies in.
fn project_of(skill: &SkillDefinition) -> Option<PathBuf> {
    let file = skill.source.file.as_deref().filter(|_| skill.source.scope == SkillScope::Project)?;
    let claude = file.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == ".claude"))?;
    std::fs::canonicalize(claude.parent()?).ok()
}

impl SessionSkills {
    /// Holds the skills of a session; `follower` follows their files.
    pub fn new(
        registry: SkillRegistry,
        follower: Option<Box<dyn SkillFollower>>,
        budget: ListingBudget,
        runs_commands: bool,
    ) -> Self {
        let mut state = SkillState { follower, ..SkillState::default() };
        state.set_registry(registry);
        state.baseline = Arc::clone(&state.registry);
        let usage = SkillUsageTable::default();
        Self { state: Mutex::new(state), runs_commands, budget, usage, usage_log: None }
    }

    /// Takes how often skills were used so far.
    pub fn with_usage(self, usage: SkillUsageTable) -> Self {
        Self { usage, ..self }
    }

    /// Takes what keeps further uses.
    pub fn with_usage_log(self, log: impl SkillUsageLog + 'static) -> Self {
        Self { usage_log: Some(Arc::new(log)), ..self }
    }

    /// Takes note that a skill was used.
    pub(crate) fn record_use(&self, name: &str) {
        if let Some(log) = &self.usage_log {
            log.record(name);
            lock(&self.state).is_usage_noted = true;
        }
    }

    /// Waits until the uses of the session are kept, where there were any.
    pub(crate) async fn flush_usage(&self) {
        let is_noted = std::mem::take(&mut lock(&self.state).is_usage_noted);
        let Some(log) = self.usage_log.clone().filter(|_| is_noted) else { return };
        if let Err(error) = tokio::task::spawn_blocking(move || log.flush()).await {
            tracing::debug!(target: "loci::skills", %error, "uses of skills are not kept");
        }
    }

    /// Holds no skills.
    pub fn none() -> Self {
        Self::new(SkillRegistry::default(), None, ListingBudget { chars: 0, description_chars: 0 }, false)
    }

    /// The skills as they are.
    pub fn registry(&self) -> Arc<SkillRegistry> {
        Arc::clone(&lock(&self.state).registry)
    }

    /// Lets the model use these and no others.
    pub fn choose(&self, names: Vec<String>) {
        lock(&self.state).chosen = Some(names);
    }

    /// Tells whether the model has any to use.
    pub fn has_any_for_model(&self) -> bool {
        self.registry().for_model().any(|(skill, _)| self.is_chosen(&skill.name))
    }

    fn is_chosen(&self, name: &str) -> bool {
        lock(&self.state).chosen.as_ref().is_none_or(|chosen| chosen.iter().any(|other| other == name))
    }

    /// Looks whether files changed; true when they did. What was read as the program started, which was so long ago, is not
    /// looked at again for the first turn.
    pub(crate) fn poll(&self, since_start: Duration) -> bool {
        let mut state = lock(&self.state);
        if !std::mem::replace(&mut state.has_polled, true) && since_start < FRESH {
            return false;
        }
        let changed = state.follower.as_mut().and_then(|follower| follower.poll());
        changed.map(|registry| state.set_registry(registry)).is_some()
    }

    /// Takes up the skills of a directory that was added; true when there may be more.
    pub(crate) fn add_dir(&self, dir: &Path) -> bool {
        let mut state = lock(&self.state);
        let more = state.follower.as_mut().and_then(|follower| follower.add_dir(dir));
        more.map(|registry| state.set_registry(registry)).is_some()
    }

    /// Reads all skills anew; returns them as they were the last time, or at the start.
    pub(crate) fn reload(&self) -> Arc<SkillRegistry> {
        let mut state = lock(&self.state);
        if let Some(registry) = state.follower.as_mut().map(|follower| follower.reload()) {
            state.set_registry(registry);
        }
        let now = Arc::clone(&state.registry);
        std::mem::replace(&mut state.baseline, now)
    }

    /// Takes note of a file that was read or changed; true when there are more skills to use for it.
    pub(crate) fn meet(&self, file: &Path, cwd: &Path) -> bool {
        let real = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let file = real.as_path();
        let mut state = lock(&self.state);
        let met = state.follower.as_mut().and_then(|follower| follower.meet(file));
        let has_met = met.map(|registry| state.set_registry(registry)).is_some();
        let is_about = |skill: &WaitingSkill| {
            let below = file.strip_prefix(skill.base.as_deref().unwrap_or(cwd));
            below.is_ok_and(|below| skill.patterns.fits(below))
        };
        let (woken, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.waiting).into_iter().partition(is_about);
        state.waiting = waiting;
        let has_woken = !woken.is_empty();
        state.awake.extend(woken.into_iter().map(|skill| skill.name));
        has_met || has_woken
    }

    /// Adds what people can type and is not among the commands yet.
    pub(crate) fn add_commands(&self, commands: &mut CommandRegistry) {
        let registry = self.registry();
        let is_plugins = |skill: &&Arc<SkillDefinition>| skill.source.scope == SkillScope::Plugin;
        // What plugins are called besides their own names is nobody else's.
        let (plugins, others): (Vec<_>, Vec<_>) = registry.for_people().partition(is_plugins);
        // A name that is taken stays what it is.
        commands.append_all(others.into_iter().chain(plugins).map(|skill| slash_command(skill)));
    }

    /// Returns what the model is to be told, given what it was told so far: everything, what is new, or nothing.
    pub(crate) fn listing(&self, told: Option<&[String]>) -> Option<Attachment> {
        let state = lock(&self.state);
        let registry = Arc::clone(&state.registry);
        let waiting: HashSet<&str> = state.waiting.iter().map(|skill| skill.name.as_str()).collect();
        let known: HashSet<&str> = told.into_iter().flatten().map(String::as_str).collect();
        let is_chosen =
            |name: &str| state.chosen.as_ref().is_none_or(|chosen| chosen.iter().any(|other| other == name));
        let is_new = |skill: &SkillDefinition| {
            let name = skill.name.as_str();
            is_chosen(name) && !known.contains(name) && !waiting.contains(name)
        };
        let listing =
            list_skills(registry.for_model().filter(|(skill, _)| is_new(skill)), self.budget, &self.usage);
        if listing.names.is_empty() {
            return None;
        }
        if listing.n_without_description > 0 {
            let (n, chars) = (listing.n_without_description, self.budget.chars);
            tracing::warn!(target: "loci::skills", n, chars, "the list of skills has no room for all descriptions");
        }
        let is_initial = told.is_none();
        let head = match is_initial {
            true => "Skills that the Skill tool can use:",
            false => "Further skills that the Skill tool can use from now on:",
        };
        let text = format!("<system-reminder>\n{head}\n{}\n</system-reminder>", listing.text);
        Some(Attachment::SkillListing {
            content: listing.text,
            skill_count: listing.names.len() as u64,
            is_initial,
            names: listing.names,
            rendered: Some(text),
            rendered_role: Some("user".to_owned()),
        })
    }

    /// Tells, once, that a skill's hooks have to count from now on.
    pub(crate) fn is_first_use_of_hooks(&self, name: &str) -> bool {
        lock(&self.state).hooked.insert(name.to_owned())
    }
}

impl SkillCatalog for SessionSkills {
    fn find(&self, name: &str) -> Option<Arc<SkillDefinition>> {
        self.registry().find(name).filter(|skill| self.is_chosen(&skill.name)).cloned()
    }

    fn whole_names(&self, name: &str) -> Vec<String> {
        let registry = self.registry();
        let names = registry.for_model().map(|(skill, _)| skill.name.as_str());
        let is_meant = |whole: &&str| whole.rsplit_once(':').is_some_and(|(_, last)| last == name);
        names.filter(is_meant).filter(|whole| self.is_chosen(whole)).map(str::to_owned).collect()
    }
}

impl RestoreSource for SessionSkills {
    fn running(&self) -> Vec<String> {
        Vec::new()
    }

    fn used(&self, path: &[Arc<Entry>]) -> (Vec<Restorable>, RestoreBudget) {
        (used::used_skills(path), RestoreBudget::SKILLS)
    }
}

/// Returns the names of skills that a conversation was told of; none where it was told of no skills.
pub(crate) fn announced_skills(path: &[Arc<Entry>]) -> Option<Vec<String>> {
    let listings = path.iter().filter_map(|entry| entry.attachment_of_kind(AttachmentKind::SkillListing));
    listings.filter_map(listed_names).reduce(|mut all, more| {
        all.extend(more);
        all
    })
}

fn listed_names(attachment: Attachment) -> Option<Vec<String>> {
    if let Attachment::SkillListing { names, .. } = attachment { Some(names) } else { None }
}

fn slash_command(skill: &SkillDefinition) -> SlashCommand {
    SlashCommand {
        name: skill.name.clone(),
        aliases: skill.aliases().map(str::to_owned).collect(),
        description: skill.description.clone(),
        argument_hint: skill.argument_hint.clone().unwrap_or_default(),
        source: command_source(skill.source.scope),
        action: CommandAction::Skill,
        scope: CommandScope::Everywhere,
        timing: CommandTiming::BetweenTurns,
    }
}

fn command_source(scope: SkillScope) -> CommandSource {
    match scope {
        SkillScope::Managed => CommandSource::Managed,
        SkillScope::User => CommandSource::User,
        SkillScope::Project => CommandSource::Project,
        SkillScope::Plugin => CommandSource::Plugin,
        SkillScope::Bundled => CommandSource::Builtin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::skill::{SkillSource, parse_skill};

    fn registry(names: &[&str]) -> SkillRegistry {
        let found = names.iter().map(|name| parse_skill("Text.", name, SkillSource::bundled()));
        SkillRegistry::new(found, Default::default())
    }

    const BUDGET: ListingBudget = ListingBudget { chars: 1000, description_chars: 100 };

    /// Skills that take the place of the first ones, once.
    struct Given(Option<SkillRegistry>);

    impl SkillFollower for Given {
        fn poll(&mut self) -> Option<SkillRegistry> {
            self.0.take()
        }

        fn meet(&mut self, _file: &Path) -> Option<SkillRegistry> {
            None
        }

        fn add_dir(&mut self, _dir: &Path) -> Option<SkillRegistry> {
            None
        }

        fn reload(&mut self) -> SkillRegistry {
            self.0.take().unwrap_or_default()
        }
    }

    #[test]
    fn skill_with_paths_is_told_when_a_file_it_is_about_was_met() {
        let skill = parse_skill("---\npaths: src/**/*.rs\n---\nRust.", "rust", SkillSource::bundled());
        let found = SkillRegistry::new(vec![skill], Default::default());
        let skills = SessionSkills::new(found, None, BUDGET, true);
        let cwd = Path::new("/project");
        assert!(skills.has_any_for_model() && skills.listing(None).is_none());
        for elsewhere in ["/project/a.rs", "/project/src/a.md", "/other/src/a.rs"] {
            assert!(!skills.meet(Path::new(elsewhere), cwd), "{elsewhere}");
        }
        assert!(skills.meet(Path::new("/project/src/deep/a.rs"), cwd));
        assert!(!skills.meet(Path::new("/project/src/b.rs"), cwd), "once");
        assert_eq!(skills.listing(None).and_then(listed_names), Some(vec!["rust".to_owned()]));
    }

    #[test]
    fn model_is_told_all_skills_once_and_then_what_is_new() {
        let follower = Box::new(Given(Some(registry(&["one", "two"]))));
        let skills = SessionSkills::new(registry(&["one"]), Some(follower), BUDGET, true);
        let first = skills.listing(None).unwrap();
        let listed = |listing: &Attachment| match listing {
            Attachment::SkillListing { names, is_initial, .. } => (names.join(" "), *is_initial),
            other => panic!("{other:?}"),
        };
        assert_eq!(listed(&first), ("one".to_owned(), true));
        let told = ["one".to_owned()];
        assert_eq!(skills.listing(Some(&told)), None);
        let long_ago = Duration::from_secs(9);
        assert!(skills.poll(long_ago));
        let second = skills.listing(Some(&told)).unwrap();
        assert_eq!(listed(&second), ("two".to_owned(), false));
        assert!(!skills.poll(long_ago));
        let follower = Box::new(Given(Some(registry(&["two"]))));
        let fresh = SessionSkills::new(registry(&["one"]), Some(follower), BUDGET, true);
        let at_once = Duration::ZERO;
        assert!(!fresh.poll(at_once) && fresh.poll(at_once), "only the first look is spared");
    }

    #[test]
    fn skills_that_the_client_did_not_choose_are_neither_listed_nor_found() {
        let skills = SessionSkills::new(registry(&["one", "two"]), None, BUDGET, true);
        skills.choose(vec!["two".to_owned()]);
        assert_eq!(skills.listing(None).and_then(listed_names), Some(vec!["two".to_owned()]));
        assert!(skills.find("one").is_none() && skills.find("two").is_some());
        skills.choose(Vec::new());
        assert!(!skills.has_any_for_model() && skills.listing(None).is_none());
    }

    #[test]
    fn resumed_conversation_knows_what_it_was_told() {
        let skills = SessionSkills::new(registry(&["one"]), None, BUDGET, true);
        let listing = skills.listing(None).unwrap();
        let line = serde_json::json!({"type": "attachment", "attachment": listing}).to_string();
        let path = vec![Arc::new(Entry::parse(line).unwrap())];
        assert_eq!(announced_skills(&path), Some(vec!["one".to_owned()]));
        assert_eq!(skills.listing(announced_skills(&path).as_deref()), None);
        assert_eq!(announced_skills(&[]), None);
    }

    #[test]
    fn skills_never_take_the_name_of_a_command() {
        let skills = SessionSkills::new(registry(&["clear", "ship"]), None, BUDGET, true);
        let mut commands = CommandRegistry::builtin();
        skills.add_commands(&mut commands);
        skills.add_commands(&mut commands);
        assert_eq!(commands.find("clear").map(|it| it.action), Some(CommandAction::Clear));
        assert_eq!(commands.iter().filter(|it| it.name == "ship").count(), 1);
    }
}
