//! Skills that are part of loci.

use super::{SkillDefinition, SkillSource, parse_skill};

/// Their names and texts.
const TEXTS: [(&str, &str); 9] = [
    ("init", include_str!("bundled/init.md")),
    ("code-review", include_str!("bundled/code-review.md")),
    ("security-review", include_str!("bundled/security-review.md")),
    ("loop", include_str!("bundled/loop.md")),
    ("simplify", include_str!("bundled/simplify.md")),
    ("verify", include_str!("bundled/verify.md")),
    ("statusline", include_str!("bundled/statusline.md")),
    ("run", include_str!("bundled/run.md")),
    ("batch", include_str!("bundled/batch.md")),
];

/// Other names that they can be called by.
pub(super) const BUNDLED_ALIASES: [(&str, &str); 1] = [("review", "code-review")];

/// Those that the model may use, where the user asks for such a thing and it has the tool. It is not told of them, so that a
/// session that has no other skills pays nothing for them.
const FOR_MODEL: [&str; 4] = ["init", "code-review", "security-review", "simplify"];

/// Those that stay for people where bundled skills are turned off: they are as much commands as `/help` is.
const COMMANDS: [&str; 3] = ["init", "security-review", "statusline"];

/// Returns what is left for people of the skills that are part of loci when these are turned off.
pub fn bundled_commands() -> Vec<SkillDefinition> {
    let mut skills = bundled_skills();
    skills.retain(|skill| COMMANDS.contains(&skill.name.as_str()));
    skills.iter_mut().for_each(|skill| skill.is_for_model = false);
    skills
}

/// Returns the skills that are part of loci.
pub fn bundled_skills() -> Vec<SkillDefinition> {
    let skill = |(name, text): &(&str, &str)| {
        let skill = parse_skill(text, name, SkillSource::bundled());
        let is_for_model = FOR_MODEL.contains(name);
        SkillDefinition { is_for_model, is_listed: false, ..skill }
    };
    TEXTS.iter().map(skill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_skills_read_without_a_note_and_take_arguments() {
        for skill in bundled_skills() {
            assert!(skill.notes.is_empty(), "{}: {:?}", skill.name, skill.notes);
            assert!(!skill.description.is_empty() && skill.body.contains("$ARGUMENTS"), "{}", skill.name);
        }
    }
}
