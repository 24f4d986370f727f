//! Skills that an agent begins with: their whole text stands behind its prompt.

use std::sync::Arc;

use super::definition::{AgentDefinition, AgentScope};
use crate::skill::{SkillDefinition, SkillRegistry, Variables};

const HEADING: &str = "# Skills\n\nThese were loaded for you. Follow them wherever they fit the task.";

/// Returns what stands behind an agent's prompt, empty without skills, and what is asked for in vain.
pub fn preloaded_skills(
    registry: &SkillRegistry,
    agent: &AgentDefinition,
    place: &Variables,
) -> (String, Vec<String>) {
    let (mut text, mut problems) = (String::new(), Vec::new());
    for name in &agent.skills {
        let Some(skill) = find_skill(registry, agent, name.trim_start_matches('/')) else {
            problems.push(format!("its skill `{name}` is not there, so it begins without"));
            continue;
        };
        if !skill.is_for_model {
            problems.push(format!("its skill `{name}` is for people alone, so it begins without"));
            continue;
        }
        if text.is_empty() {
            text = format!("\n\n{HEADING}");
        }
        let body = skill.variables_in(place).expand(&skill.body);
        text += &format!("\n\n## {}\n\n{}{}", skill.name, skill.directory_note(), body.trim());
    }
    (text, problems)
}

/// Finds a skill by the name that an agent has for it: that of a plugin means one of its plugin first, which it need not
/// name.
fn find_skill<'a>(
    registry: &'a SkillRegistry,
    agent: &AgentDefinition,
    name: &str,
) -> Option<&'a Arc<SkillDefinition>> {
    let plugin = agent.name.split_once(':').filter(|_| agent.source.scope == AgentScope::Plugin);
    let own = plugin.and_then(|(plugin, _)| registry.find(&format!("{plugin}:{name}")));
    own.or_else(|| registry.find(name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::agent::AgentSource;
    use crate::skill::{SkillSource, parse_skill};

    #[test]
    fn skills_stand_behind_the_prompt_and_what_is_missing_is_named() {
        let skill = |name: &str, text: &str| {
            let mut source = SkillSource::bundled();
            source.file = Some(format!("/s/{name}/SKILL.md").into());
            parse_skill(text, name, source)
        };
        let found = vec![
            skill("style", "Write short lines. See ${CLAUDE_SKILL_DIR}/guide.md of ${CLAUDE_PROJECT_DIR}.\n"),
            skill("ship", "Of the user."),
            skill("kit:ship", "Of the kit."),
            skill("secret", "---\ndisable-model-invocation: true\n---\nHidden."),
        ];
        let registry = SkillRegistry::new(found, BTreeMap::new());
        let mut place = Variables::default();
        place.set("CLAUDE_PROJECT_DIR", "/p");
        let agent = |name: &str, scope, skills: &[&str]| {
            let mut agent = AgentDefinition::new(name, "d", "p", AgentSource::inline(scope));
            agent.skills = skills.iter().map(|it| (*it).to_owned()).collect();
            agent
        };
        let own = agent("a", AgentScope::User, &["style", "secret", "gone"]);
        let (text, problems) = preloaded_skills(&registry, &own, &place);
        let style = "This skill lies in /s/style, where relative paths in it begin.\n\n\
                     Write short lines. See /s/style/guide.md of /p.";
        assert_eq!(text, format!("\n\n{HEADING}\n\n## style\n\n{style}"));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].contains("`secret` is for people") && problems[1].contains("`gone` is not there")
        );
        let none = agent("a", AgentScope::User, &[]);
        assert_eq!(preloaded_skills(&registry, &none, &place), (String::new(), Vec::new()));
        for (name, scope, expected) in [
            ("kit:a", AgentScope::Plugin, "Of the kit."),
            ("other:a", AgentScope::Plugin, "Of the user."),
            ("kit:a", AgentScope::User, "Of the user."),
        ] {
            let (text, _) = preloaded_skills(&registry, &agent(name, scope, &["ship"]), &place);
            assert!(text.ends_with(expected), "{name}: {text}");
        }
    }
}
