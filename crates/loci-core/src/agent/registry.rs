//! All agents of a session by name: of several with one name the first source wins.

use std::collections::HashSet;
use std::sync::Arc;

use super::definition::{AgentDefinition, Problem};

/// The agents that there are. Copies are cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentRegistry {
    agents: Vec<Arc<AgentDefinition>>,
    /// Definitions that another one of their name stands before.
    pub shadowed: Vec<Arc<AgentDefinition>>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

impl AgentRegistry {
    /// Takes definitions, those that win first within each scope.
    pub fn new(definitions: Vec<AgentDefinition>, problems: Vec<Problem>) -> Self {
        let mut all: Vec<Arc<AgentDefinition>> = definitions.into_iter().map(Arc::new).collect();
        all.sort_by_key(|agent| agent.source.scope);
        let mut registry = Self { problems, ..Self::default() };
        let mut names = HashSet::with_capacity(all.len());
        for agent in all {
            match names.insert(agent.name.to_ascii_lowercase()) {
                true => registry.agents.push(agent),
                false => registry.shadowed.push(agent),
            }
        }
        registry.agents.sort_by_cached_key(|agent| agent.name.to_lowercase());
        registry
    }

    /// Finds an agent by its name; upper and lower case count only where both are there.
    pub fn find(&self, name: &str) -> Option<&Arc<AgentDefinition>> {
        let exact = self.agents.iter().find(|agent| agent.name == name);
        exact.or_else(|| self.agents.iter().find(|agent| agent.name.eq_ignore_ascii_case(name)))
    }

    /// Finds the agents of plugins whose name ends in this one: `--agent reviewer` may mean `tools:review:reviewer`.
    pub fn find_by_last_part(&self, name: &str) -> Vec<&Arc<AgentDefinition>> {
        let is_meant = |agent: &&Arc<AgentDefinition>| {
            agent.name.rsplit_once(':').is_some_and(|(_, last)| last.eq_ignore_ascii_case(name))
        };
        self.agents.iter().filter(is_meant).collect()
    }

    /// Iterates in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<AgentDefinition>> {
        self.agents.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{AgentScope, AgentSource};

    #[test]
    fn first_source_of_a_name_wins() {
        let agent = |name: &str, scope, prompt: &str| {
            AgentDefinition::new(name, "d", prompt, AgentSource::inline(scope))
        };
        let registry = AgentRegistry::new(
            vec![
                agent("b", AgentScope::User, "user"),
                agent("b", AgentScope::Project, "near"),
                agent("b", AgentScope::Project, "far"),
                agent("Explore", AgentScope::BuiltIn, "ours"),
                agent("Explore", AgentScope::User, "theirs"),
                agent("a", AgentScope::Flag, "flag"),
                agent("a", AgentScope::Managed, "managed"),
            ],
            Vec::new(),
        );
        let all: Vec<(&str, &str)> =
            registry.iter().map(|it| (it.name.as_str(), it.prompt.as_str())).collect();
        assert_eq!(all, [("a", "managed"), ("b", "near"), ("Explore", "theirs")]);
        assert_eq!(registry.shadowed.len(), 4);
        assert_eq!(registry.find("explore").unwrap().prompt, "theirs");
        assert!(registry.find("c").is_none());
    }
}
