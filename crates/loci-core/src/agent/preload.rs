//! Skills that an agent begins with: their whole text stands behind its prompt.

use crate::skill::SkillRegistry;

const HEADING: &str = "# Skills\n\nThese were loaded for you. Follow them wherever they fit the task.";

/// Returns what stands behind an agent's prompt, empty without skills, and what is asked for in vain.
pub fn preloaded_skills(registry: &SkillRegistry, names: &[String]) -> (String, Vec<String>) {
    let (mut text, mut problems) = (String::new(), Vec::new());
    for name in names {
        let Some(skill) = registry.find(name.trim_start_matches('/')) else {
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
        let dir = skill.source.file.as_deref().and_then(|file| file.parent());
        let body = match dir {
            Some(dir) => skill.body.replace("${CLAUDE_SKILL_DIR}", &dir.display().to_string()),
            None => skill.body.clone(),
        };
        text += &format!("\n\n## {}\n\n{}", skill.name, body.trim());
    }
    (text, problems)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::skill::{SkillSource, parse_skill};

    #[test]
    fn skills_stand_behind_the_prompt_and_what_is_missing_is_named() {
        let skill = |name: &str, text: &str| {
            let mut source = SkillSource::bundled();
            source.file = Some(format!("/s/{name}/SKILL.md").into());
            parse_skill(text, name, source)
        };
        let found = vec![
            skill("style", "Write short lines. See ${CLAUDE_SKILL_DIR}/guide.md.\n"),
            skill("secret", "---\ndisable-model-invocation: true\n---\nHidden."),
        ];
        let registry = SkillRegistry::new(found, BTreeMap::new());
        let names = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let (text, problems) = preloaded_skills(&registry, &names(&["style", "secret", "gone"]));
        assert_eq!(text, format!("\n\n{HEADING}\n\n## style\n\nWrite short lines. See /s/style/guide.md."));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems[0].contains("`secret` is for people") && problems[1].contains("`gone` is not there")
        );
        assert_eq!(preloaded_skills(&registry, &[]), (String::new(), Vec::new()));
    }
}
