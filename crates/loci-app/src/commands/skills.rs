//! `/skills`: the skills there are, where they come from, what they cost, and who may use them.

use loci_context::prose_tokens;
use loci_core::skill::{SkillDefinition, SkillOverride, SkillRegistry, SkillScope};
use loci_engine::{LocalOutcome, SessionSnapshot};
use loci_settings::Scope;

use super::{cell, short_tokens};
use crate::commands::config::change;
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// A skill, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRow {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it comes from.
    pub source: String,
    /// Whether it lets people use it.
    pub is_for_people: bool,
    /// Whether it lets the model use it.
    pub is_for_model: bool,
    /// How settings let it be used.
    pub visibility: SkillOverride,
    /// Whether that can be changed: those of plugins come and go with their plugin.
    pub can_change: bool,
    /// About how many tokens of every conversation its name and what it is for take, and its name alone.
    pub summary_tokens: (u64, u64),
    /// About how many tokens it is when it is used.
    pub tokens: u64,
    /// What it asks for in vain, or says that nobody understands.
    pub notes: Vec<String>,
}

impl SkillRow {
    /// Says who may use it, as settings stand.
    pub fn who(&self) -> &'static str {
        match (self.visibility, self.is_for_people, self.is_for_model) {
            (SkillOverride::Off, ..) => "nobody",
            (SkillOverride::UserInvocableOnly, true, _) => "you",
            (_, true, true) => "you and the model",
            (_, true, false) => "you",
            (SkillOverride::UserInvocableOnly, false, _) => "nobody",
            (_, false, true) => "the model",
            (_, false, false) => "nobody",
        }
    }

    /// Returns about how many tokens of every conversation it takes, as settings stand.
    pub fn listed_tokens(&self) -> u64 {
        match self.visibility {
            SkillOverride::On => self.summary_tokens.0,
            SkillOverride::NameOnly => self.summary_tokens.1,
            SkillOverride::UserInvocableOnly | SkillOverride::Off => 0,
        }
    }
}

/// Returns the skills of a session, in order; those that settings turn off, too.
pub fn rows(session: &SessionSnapshot) -> Vec<SkillRow> {
    session.skills.all().map(|skill| row(&session.skills, skill)).collect()
}

fn row(registry: &SkillRegistry, skill: &SkillDefinition) -> SkillRow {
    let visibility = registry.override_of(skill);
    let is_told = skill.is_for_model && skill.is_listed;
    SkillRow {
        name: skill.name.clone(),
        description: skill.description.clone(),
        source: skill.source.to_string(),
        is_for_people: skill.is_for_people,
        is_for_model: skill.is_for_model,
        visibility,
        can_change: skill.source.scope != SkillScope::Plugin,
        summary_tokens: match is_told {
            true => (prose_tokens(&skill.summary()), prose_tokens(&skill.name)),
            false => (0, 0),
        },
        tokens: prose_tokens(&skill.body),
        notes: skill.notes.clone(),
    }
}

/// Returns the word that settings have for a visibility.
pub fn visibility_word(visibility: SkillOverride) -> &'static str {
    match visibility {
        SkillOverride::On => "on",
        SkillOverride::NameOnly => "name-only",
        SkillOverride::UserInvocableOnly => "user-invocable-only",
        SkillOverride::Off => "off",
    }
}

/// Returns the visibility behind another, as a key goes through them.
pub fn next_visibility(visibility: SkillOverride) -> SkillOverride {
    match visibility {
        SkillOverride::On => SkillOverride::NameOnly,
        SkillOverride::NameOnly => SkillOverride::UserInvocableOnly,
        SkillOverride::UserInvocableOnly => SkillOverride::Off,
        SkillOverride::Off => SkillOverride::On,
    }
}

/// Says in the person's settings for the project how a skill may be used.
pub fn set_visibility(
    ctx: &SettingsContext,
    skill: &str,
    visibility: SkillOverride,
) -> Result<String, UserError> {
    change(ctx, &format!("skillOverrides.{skill}"), visibility_word(visibility), Some(Scope::Local))
}

/// Carries the command out.
pub(super) fn run(session: &SessionSnapshot) -> LocalOutcome {
    let rows = rows(session);
    if rows.is_empty() {
        return LocalOutcome::text("There are no skills");
    }
    let mut text =
        "## Skills\n\n| Skill | What it is for | Used by | Tokens | From |\n|---|---|---|---:|---|\n"
            .to_owned();
    for skill in rows {
        let who = skill.who();
        let SkillRow { name, description, source, tokens, .. } = skill;
        text.push_str(&format!(
            "| /{} | {} | {who} | {} | {} |\n",
            cell(&name),
            cell(&description),
            short_tokens(tokens),
            cell(&source)
        ));
    }
    LocalOutcome::text(text)
}
