//! The skills that can be used, by name, and which of several of one name counts.
//!
//! A skill wins over a command file; then the administrator's, the user's and the project's, in this order, and of a
//! project the closest directory; all of them over those that are part of loci. A skill of a directory below the working
//! one hides no other: where its name is taken, the directory is put before it (`apps/web:deploy`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::bundled::BUNDLED_ALIASES;
use super::{Listed, SkillDefinition, SkillScope, SkillSource};

/// How settings let a skill be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SkillOverride {
    /// As it says itself.
    #[default]
    On,
    /// The model is told its name alone.
    NameOnly,
    /// The model is told nothing of it.
    UserInvocableOnly,
    /// Not at all.
    Off,
}

impl SkillOverride {
    /// Reads the word that settings have for it.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "on" => Some(Self::On),
            "name-only" => Some(Self::NameOnly),
            "user-invocable-only" => Some(Self::UserInvocableOnly),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// Skills by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillRegistry {
    /// Those that count, in the order in which they are listed.
    skills: Vec<Arc<SkillDefinition>>,
    /// Those that another of the same name hides.
    hidden: Vec<Arc<SkillDefinition>>,
    overrides: BTreeMap<String, SkillOverride>,
}

impl SkillRegistry {
    /// Chooses among definitions; those found first win over others of the same scope and kind.
    pub fn new(
        found: impl IntoIterator<Item = impl Into<Arc<SkillDefinition>>>,
        overrides: BTreeMap<String, SkillOverride>,
    ) -> Self {
        let mut found: Vec<Arc<SkillDefinition>> = found.into_iter().map(Into::into).collect();
        found.sort_by_key(|skill| {
            let SkillSource { scope, kind, .. } = skill.source;
            (skill.source.nested_in.is_some(), scope == SkillScope::Bundled, kind, scope)
        });
        let mut registry = Self { overrides, ..Self::default() };
        registry.skills.reserve(found.len());
        let places = places(&found);
        for (mut skill, place) in found.into_iter().zip(places) {
            if place.is_qualified {
                qualify(Arc::make_mut(&mut skill));
            }
            // The model may not use what is kept to people.
            if skill.is_for_model && registry.override_of(&skill) == SkillOverride::UserInvocableOnly {
                Arc::make_mut(&mut skill).is_for_model = false;
            }
            match place.is_first {
                true => registry.skills.push(skill),
                false => registry.hidden.push(skill),
            }
        }
        registry
    }

    /// Returns the names under which directories have a skill of this name for their own files.
    pub fn variants<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let is_variant = move |skill: &&Arc<SkillDefinition>| {
            let dir = skill.source.nested_in.as_deref();
            dir.is_some_and(|dir| qualified(dir, name) == skill.name)
        };
        self.iter().filter(is_variant).map(|skill| skill.name.as_str())
    }

    /// Says why a name that there is cannot be called by people; none where it can, or where there is no such skill.
    pub fn refusal_for_people(&self, name: &str) -> Option<String> {
        let skill = self.exact(name)?;
        match (self.override_of(skill), skill.is_for_people) {
            (SkillOverride::Off, _) => Some(format!("The skill `{name}` is turned off by `skillOverrides`")),
            (_, true) => None,
            (_, false) => Some(format!(
                "The skill `{name}` is for the model alone (`user-invocable: false`). Ask for it in words"
            )),
        }
    }

    /// Returns a skill that can be used, by its name or another one of it.
    pub fn find(&self, name: &str) -> Option<&Arc<SkillDefinition>> {
        let alias = BUNDLED_ALIASES.iter().find(|(alias, _)| *alias == name);
        let meant = alias
            .and_then(|(_, name)| self.exact(name))
            .filter(|skill| skill.source.scope == SkillScope::Bundled);
        self.exact(name).or(meant).filter(|skill| self.override_of(skill) != SkillOverride::Off)
    }

    /// Iterates over the skills that can be used.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SkillDefinition>> {
        self.skills.iter().filter(|skill| self.override_of(skill) != SkillOverride::Off)
    }

    /// Iterates over all skills that no other hides, those too that settings turn off.
    pub fn all(&self) -> impl Iterator<Item = &SkillDefinition> {
        self.skills.iter().map(Arc::as_ref)
    }

    /// Iterates over the skills that people can call.
    pub fn for_people(&self) -> impl Iterator<Item = &Arc<SkillDefinition>> {
        self.iter().filter(|skill| skill.is_for_people)
    }

    /// Iterates over the skills that the model is told of, and how.
    pub fn for_model(&self) -> impl Iterator<Item = (&SkillDefinition, Listed)> {
        let told = self.iter().filter(|skill| skill.is_for_model && skill.is_listed);
        told.filter_map(|skill| match self.override_of(skill) {
            SkillOverride::On => Some((skill.as_ref(), Listed::Whole)),
            SkillOverride::NameOnly => Some((skill.as_ref(), Listed::NameOnly)),
            SkillOverride::UserInvocableOnly | SkillOverride::Off => None,
        })
    }

    /// Returns what settings say of a skill. Those of plugins come and go with their plugin.
    pub fn override_of(&self, skill: &SkillDefinition) -> SkillOverride {
        let said = self.overrides.get(&skill.name).filter(|_| skill.source.scope != SkillScope::Plugin);
        said.copied().unwrap_or_default()
    }

    /// Iterates over definitions that are hidden, each with the one that hides it.
    pub fn hidden(&self) -> impl Iterator<Item = (&SkillDefinition, &SkillDefinition)> {
        self.hidden.iter().filter_map(|skill| Some((skill.as_ref(), self.exact(&skill.name)?.as_ref())))
    }

    fn exact(&self, name: &str) -> Option<&Arc<SkillDefinition>> {
        self.skills.iter().find(|skill| skill.name == name)
    }
}

/// What becomes of a definition among others.
struct Place {
    /// Whether its directory is put before its name.
    is_qualified: bool,
    /// Whether no other of its name comes before it.
    is_first: bool,
}

/// Decides about definitions, in order, before they are moved: there may be hundreds, whose names need not be copied.
fn places(found: &[Arc<SkillDefinition>]) -> Vec<Place> {
    let mut names: FxHashSet<Cow<'_, str>> = FxHashSet::default();
    names.reserve(found.len());
    let mut places = Vec::with_capacity(found.len());
    for skill in found {
        let name = skill.name.as_str();
        let dir = skill.source.nested_in.as_deref().filter(|_| names.contains(name));
        let is_qualified = dir.is_some();
        let is_first = names.insert(dir.map_or(Cow::Borrowed(name), |dir| Cow::Owned(qualified(dir, name))));
        places.push(Place { is_qualified, is_first });
    }
    places
}

/// Puts the directory before a name that is taken, and says which it is.
fn qualify(skill: &mut SkillDefinition) {
    let Some(dir) = &skill.source.nested_in else { return };
    skill.description = format!("For files in {dir}/: {}", skill.description);
    skill.name = qualified(dir, &skill.name);
}

fn qualified(dir: &str, name: &str) -> String {
    format!("{dir}:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::{SkillKind, bundled_skills, parse_skill};

    fn skill(name: &str, scope: SkillScope, kind: SkillKind, body: &str) -> SkillDefinition {
        let source = SkillSource { scope, kind, ..SkillSource::bundled() };
        parse_skill(body, name, source)
    }

    fn registry(overrides: &[(&str, SkillOverride)]) -> SkillRegistry {
        use {SkillKind::CommandFile, SkillKind::Skill, SkillScope::Project, SkillScope::User};
        let mut found = bundled_skills();
        found.extend([
            skill("ship", Project, Skill, "near"),
            skill("ship", Project, Skill, "far"),
            skill("ship", User, CommandFile, "command"),
            skill("test", Project, CommandFile, "project"),
            skill("test", User, CommandFile, "user"),
            skill("verify", Project, CommandFile, "own"),
            skill("quiet", User, Skill, "---\ndisable-model-invocation: true\n---\nq"),
        ]);
        SkillRegistry::new(found, overrides.iter().map(|(name, it)| ((*name).to_owned(), *it)).collect())
    }

    #[test]
    fn skill_wins_over_command_then_scope_then_distance() {
        let registry = registry(&[]);
        let body = |name: &str| registry.find(name).map(|skill| skill.body.clone());
        assert_eq!(body("ship").as_deref(), Some("near"));
        assert_eq!(body("test").as_deref(), Some("user"));
        assert_eq!(body("verify").as_deref(), Some("own"));
        let hidden: Vec<_> =
            registry.hidden().map(|(lost, won)| format!("{} by {}", lost.body.len(), won.body)).collect();
        assert_eq!(hidden.len(), 4, "{hidden:?}");
    }

    #[test]
    fn alias_means_the_bundled_skill_and_no_other_of_its_name() {
        assert_eq!(registry(&[]).find("review").map(|skill| skill.name.as_str()), Some("code-review"));
        let own = skill("code-review", SkillScope::User, SkillKind::Skill, "own");
        let registry = SkillRegistry::new([bundled_skills(), vec![own]].concat(), BTreeMap::new());
        assert_eq!(registry.find("code-review").map(|skill| skill.body.as_str()), Some("own"));
        assert!(registry.find("review").is_none());
    }

    #[test]
    fn overrides_say_who_is_told() {
        use SkillOverride::{NameOnly, Off, UserInvocableOnly};
        let registry = registry(&[("ship", NameOnly), ("test", UserInvocableOnly), ("verify", Off)]);
        let told: Vec<_> =
            registry.for_model().filter(|(skill, _)| skill.source.scope != SkillScope::Bundled).collect();
        assert_eq!(
            told.iter().map(|(skill, listed)| (skill.name.as_str(), *listed)).collect::<Vec<_>>(),
            [("ship", Listed::NameOnly)]
        );
        let people: Vec<_> = registry.for_people().map(|skill| skill.name.as_str()).collect();
        assert!(people.contains(&"test") && people.contains(&"quiet") && !people.contains(&"verify"));
        assert!(registry.find("verify").is_none());
        assert!(registry.find("test").is_some_and(|skill| !skill.is_for_model), "the model may not use it");
        assert!(registry.refusal_for_people("verify").is_some_and(|why| why.contains("skillOverrides")));
        assert_eq!(registry.refusal_for_people("test").or(registry.refusal_for_people("none")), None);
    }

    #[test]
    fn overrides_do_not_reach_skills_of_plugins() {
        let found = vec![skill("tools:ship", SkillScope::Plugin, SkillKind::Skill, "x")];
        let overrides = BTreeMap::from([("tools:ship".to_owned(), SkillOverride::Off)]);
        assert!(SkillRegistry::new(found, overrides).find("tools:ship").is_some());
    }

    #[test]
    fn nested_skill_has_its_directory_before_a_name_that_is_taken() {
        let nested = |dir: &str, name: &str| {
            let source = SkillSource { nested_in: Some(dir.to_owned()), ..SkillSource::bundled() };
            parse_skill("Ships.", name, SkillSource { scope: SkillScope::Project, ..source })
        };
        let found = vec![
            nested("apps/web", "deploy"),
            nested("apps/web", "own"),
            nested("apps/api", "own"),
            nested("apps/web", "verify"),
            skill("deploy", SkillScope::Project, SkillKind::CommandFile, "root"),
        ];
        let registry = SkillRegistry::new([found, bundled_skills()].concat(), BTreeMap::new());
        let body = |name: &str| registry.find(name).map(|skill| skill.body.clone());
        assert_eq!(body("deploy").as_deref(), Some("root"));
        let web = registry.find("apps/web:deploy").map(|skill| skill.description.as_str());
        assert_eq!(web, Some("For files in apps/web/: Ships."));
        assert!(body("own").is_some() && body("apps/api:own").is_some() && body("apps/web:verify").is_some());
        assert_eq!(registry.variants("deploy").collect::<Vec<_>>(), ["apps/web:deploy"]);
        assert_eq!(registry.variants("apps/web:deploy").count(), 0);
    }
}
