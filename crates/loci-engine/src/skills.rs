//! The skills of a session: which there are, what the model was told of them, and which were used.
//!
//! Files are looked at before each turn (`SkillPoller`). What changed counts from then on: a name that people can type
//! is appended to the commands, what the model can use is told behind the prompt, and nothing that was said before is
//! touched. How a skill becomes words is in [`use_skill`](use_skill::SkillUse).

pub(crate) mod layer;
pub(crate) mod use_skill;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use loci_context::{Restorable, RestoreBudget};
use loci_core::entry::Entry;
use loci_core::skill::{ListingBudget, SkillDefinition, SkillRegistry, SkillScope, list_skills};
use loci_tools::SkillCatalog;
use serde_json::{Value, json};

use crate::conversation::host::lock;
use crate::extension::RestoreSource;
use crate::slash_command::{
    CommandAction, CommandRegistry, CommandScope, CommandSource, CommandTiming, SlashCommand,
};

/// The kind of attachment that lists skills.
const LISTING: &str = "skill_listing";

/// Looks whether skills changed; returns them anew when they did.
pub type SkillPoller = Box<dyn FnMut() -> Option<SkillRegistry> + Send>;

/// The skills of a session, shared by all its conversations.
pub struct SessionSkills {
    /// Held for a look or a change.
    state: Mutex<SkillState>,
    /// Whether commands in their texts are run.
    pub(crate) runs_commands: bool,
    budget: ListingBudget,
}

#[derive(Default)]
struct SkillState {
    registry: Arc<SkillRegistry>,
    poll: Option<SkillPoller>,
    /// What was used in the main conversation, the newest last.
    used: Vec<Restorable>,
    /// Skills whose hooks count already.
    hooked: HashSet<String>,
}

impl SessionSkills {
    /// Holds the skills of a session; `poll` follows their files.
    pub fn new(
        registry: SkillRegistry,
        poll: Option<SkillPoller>,
        budget: ListingBudget,
        runs_commands: bool,
    ) -> Self {
        let state = SkillState { registry: Arc::new(registry), poll, ..SkillState::default() };
        Self { state: Mutex::new(state), runs_commands, budget }
    }

    /// Holds no skills.
    pub fn none() -> Self {
        Self::new(SkillRegistry::default(), None, ListingBudget { chars: 0, description_chars: 0 }, false)
    }

    /// The skills as they are.
    pub fn registry(&self) -> Arc<SkillRegistry> {
        Arc::clone(&lock(&self.state).registry)
    }

    /// Tells whether the model has any to use.
    pub fn has_any_for_model(&self) -> bool {
        self.registry().for_model().next().is_some()
    }

    /// Looks whether files changed; true when they did.
    pub(crate) fn poll(&self) -> bool {
        let mut state = lock(&self.state);
        match state.poll.as_mut().and_then(|poll| poll()) {
            Some(registry) => {
                state.registry = Arc::new(registry);
                true
            }
            None => false,
        }
    }

    /// Adds what people can type and is not among the commands yet.
    pub(crate) fn add_commands(&self, commands: &mut CommandRegistry) {
        for skill in self.registry().for_people() {
            // A name that is taken stays what it is.
            commands.append(slash_command(skill));
        }
    }

    /// Returns what the model is to be told, given what it was told so far: everything, what is new, or nothing.
    pub(crate) fn listing(&self, told: &mut Option<Vec<String>>) -> Option<Value> {
        let registry = self.registry();
        let is_new = |skill: &SkillDefinition| !told.as_ref().is_some_and(|told| told.contains(&skill.name));
        let listing = list_skills(registry.for_model().filter(|(skill, _)| is_new(skill)), self.budget);
        if listing.names.is_empty() {
            return None;
        }
        let is_initial = told.is_none();
        told.get_or_insert_default().extend(listing.names.iter().cloned());
        let head = match is_initial {
            true => "Skills that the Skill tool can use:",
            false => "Further skills that the Skill tool can use from now on:",
        };
        let text = format!("<system-reminder>\n{head}\n{}\n</system-reminder>", listing.text);
        Some(json!({
            "type": LISTING, "content": listing.text, "skillCount": listing.names.len(), "isInitial": is_initial,
            "names": listing.names, "rendered": text, "renderedRole": "user",
        }))
    }

    /// Takes note of a skill's text that stands in the main conversation now.
    pub(crate) fn note_used(&self, name: &str, text: &str) {
        let item = Restorable { name: format!("The skill {name}"), text: text.to_owned(), is_agents: false };
        let mut state = lock(&self.state);
        state.used.retain(|other| other.name != item.name);
        state.used.push(item);
    }

    /// Tells, once, that a skill's hooks have to count from now on.
    pub(crate) fn is_first_use_of_hooks(&self, name: &str) -> bool {
        lock(&self.state).hooked.insert(name.to_owned())
    }
}

impl SkillCatalog for SessionSkills {
    fn find(&self, name: &str) -> Option<Arc<SkillDefinition>> {
        self.registry().find(name).cloned()
    }
}

impl RestoreSource for SessionSkills {
    fn running(&self) -> Vec<String> {
        Vec::new()
    }

    fn used(&self) -> (Vec<Restorable>, RestoreBudget) {
        (lock(&self.state).used.iter().rev().cloned().collect(), RestoreBudget::SKILLS)
    }
}

/// Returns the names of skills that a conversation was told of; none where it was told of no skills.
pub(crate) fn told_names(path: &[Arc<Entry>]) -> Option<Vec<String>> {
    let listings = path.iter().filter_map(|entry| entry.attachment()).filter(|it| it["type"] == LISTING);
    let names = |listing: Value| {
        let names = listing["names"].as_array().cloned().unwrap_or_default();
        names.into_iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect::<Vec<_>>()
    };
    listings.map(names).reduce(|mut all, more| {
        all.extend(more);
        all
    })
}

fn slash_command(skill: &SkillDefinition) -> SlashCommand {
    SlashCommand {
        name: skill.name.clone(),
        aliases: Vec::new(),
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
        let found = names.iter().map(|name| parse_skill("Text.", name, SkillSource::bundled())).collect();
        SkillRegistry::new(found, Default::default())
    }

    const BUDGET: ListingBudget = ListingBudget { chars: 1000, description_chars: 100 };

    #[test]
    fn model_is_told_all_skills_once_and_then_what_is_new() {
        let mut next = Some(registry(&["one", "two"]));
        let poll = Box::new(move || next.take());
        let skills = SessionSkills::new(registry(&["one"]), Some(poll), BUDGET, true);
        let mut told = None;
        let first = skills.listing(&mut told).unwrap();
        assert_eq!((&first["names"], &first["isInitial"]), (&json!(["one"]), &json!(true)));
        assert_eq!(skills.listing(&mut told), None);
        assert!(skills.poll());
        let second = skills.listing(&mut told).unwrap();
        assert_eq!((&second["names"], &second["isInitial"]), (&json!(["two"]), &json!(false)));
        assert!(!skills.poll());
    }

    #[test]
    fn resumed_conversation_knows_what_it_was_told() {
        let skills = SessionSkills::new(registry(&["one"]), None, BUDGET, true);
        let listing = skills.listing(&mut None).unwrap();
        let line = json!({"type": "attachment", "attachment": listing}).to_string();
        let path = vec![Arc::new(Entry::parse(line).unwrap())];
        assert_eq!(told_names(&path), Some(vec!["one".to_owned()]));
        assert_eq!(skills.listing(&mut told_names(&path)), None);
        assert_eq!(told_names(&[]), None);
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
