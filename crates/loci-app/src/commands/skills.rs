//! `/skills`: the skills there are, where they come from, and who may use them.

use loci_core::skill::SkillDefinition;
use loci_engine::{LocalOutcome, SessionSnapshot};

use super::cell;

/// A skill, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRow {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it comes from.
    pub source: String,
    /// Who may use it.
    pub who: &'static str,
}

/// Returns the skills of a session, in order.
pub fn rows(session: &SessionSnapshot) -> Vec<SkillRow> {
    session.skills.iter().map(|skill| row(skill)).collect()
}

fn row(skill: &SkillDefinition) -> SkillRow {
    SkillRow {
        name: skill.name.clone(),
        description: skill.description.clone(),
        source: skill.source.to_string(),
        who: match (skill.is_for_people, skill.is_for_model) {
            (true, true) => "you and the model",
            (true, false) => "you",
            (false, true) => "the model",
            (false, false) => "nobody",
        },
    }
}

/// Carries the command out.
pub(super) fn run(session: &SessionSnapshot) -> LocalOutcome {
    let rows = rows(session);
    if rows.is_empty() {
        return LocalOutcome::text("There are no skills");
    }
    let mut text = "## Skills\n\n| Skill | What it is for | Used by | From |\n|---|---|---|---|\n".to_owned();
    for SkillRow { name, description, source, who } in rows {
        text.push_str(&format!(
            "| /{} | {} | {who} | {} |\n",
            cell(&name),
            cell(&description),
            cell(&source)
        ));
    }
    LocalOutcome::text(text)
}
