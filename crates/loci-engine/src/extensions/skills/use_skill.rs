//! Using a skill: its text with arguments put in and its commands run, ready for the model.
//!
//! Commands in a text are judged like any call of Bash, with the skill's own grants, before the first of them runs;
//! without a clear yes for each, the skill is not used. Nobody is asked: a skill that needs to ask has to say so in its
//! `allowed-tools`.

use std::sync::Arc;

use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::permission::{RuleList, RuleOrigin, RuleSource, Rulebook, Verdict};
use loci_core::skill::{
    Arguments, Piece, SkillDefinition, SkillRegistry, SkillScope, Variables, split_commands, substitute,
};
use loci_core::tool::{ToolContent, ToolOutcome};
use loci_tools::{Host, Tool, ToolCall, Toolbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::conversation::host::ConversationHost;
use crate::tools::prepared_call::{check_permission, prepare};

/// The tool that runs commands in texts.
const SHELL: &str = "Bash";
/// How long one of them may take, in milliseconds.
const COMMAND_TIMEOUT_MS: u64 = 120_000;
/// What stands for a command where settings forbid running any.
const NOT_RUN: &str = "[a command was not run: disableSkillShellExecution is set]";

/// What using a skill changes about the turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TurnGrants {
    /// Rules for calls that run without asking.
    pub(crate) allow: Vec<String>,
    /// Tools that may not be used.
    pub(crate) deny: Vec<String>,
    /// The model, by alias or id.
    pub(crate) model: Option<String>,
    /// How hard it thinks.
    pub(crate) effort: Option<String>,
}

impl TurnGrants {
    /// Returns what a skill changes.
    pub(crate) fn from_skill(skill: &SkillDefinition, variables: &Variables) -> Self {
        Self {
            allow: skill.granted_rules(variables),
            deny: skill.disallowed_tools.clone(),
            model: skill.model.clone(),
            effort: skill.effort.clone(),
        }
    }

    /// Adds what another skill of the same turn changes; of two models, the later counts.
    pub(crate) fn join(&mut self, other: Self) {
        self.allow.extend(other.allow);
        self.deny.extend(other.deny);
        self.model = other.model.or(self.model.take());
        self.effort = other.effort.or(self.effort.take());
    }

    /// Adds its rules to those in force. Rules that restrict win over what it grants, as always.
    pub(crate) fn apply(&self, mut book: Rulebook) -> Rulebook {
        if self.allow.is_empty() && self.deny.is_empty() {
            return book;
        }
        let origin = RuleOrigin::new(RuleSource::Session, book.cwd.clone());
        for (list, rules) in [(RuleList::Allow, &self.allow), (RuleList::Deny, &self.deny)] {
            for rule in rules {
                // A rule that does not read grants nothing; lists of skills name it.
                drop(book.add(list, rule, &origin));
            }
        }
        book
    }
}

/// A skill that is about to be used: everything is decided, nothing has run.
pub(crate) struct SkillUse {
    pub(crate) skill: Arc<SkillDefinition>,
    pub(crate) grants: TurnGrants,
    pieces: Vec<ReadyPiece>,
}

enum ReadyPiece {
    Text(String),
    Command { command: String, call: Box<ToolCall> },
}

/// Where a skill is used.
pub(crate) struct SkillPlace<'a> {
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) host: &'a ConversationHost,
    /// The rules in force.
    pub(crate) book: Rulebook,
    pub(crate) variables: Variables,
    pub(crate) runs_commands: bool,
    pub(crate) cancel: CancellationToken,
}

impl SkillUse {
    /// Puts the text together and judges its commands; the error says why the skill cannot be used.
    pub(crate) fn prepare(
        skill: &Arc<SkillDefinition>,
        arguments: &str,
        place: &SkillPlace<'_>,
    ) -> Result<Self, String> {
        let variables = skill.variables_in(&place.variables);
        let grants = TurnGrants::from_skill(skill, &variables);
        let text = substitute(&skill.body, &Arguments::new(arguments, &skill.arguments), &variables);
        let book = grants.apply(place.book.clone());
        let pieces: Result<Vec<ReadyPiece>, String> = split_commands(&text)
            .into_iter()
            .enumerate()
            .map(|(idx, piece)| match piece {
                Piece::Text(text) => Ok(ReadyPiece::Text(text.to_owned())),
                Piece::Command(_) if !place.runs_commands && !is_ours_or_managed(skill) => {
                    Ok(ReadyPiece::Text(NOT_RUN.to_owned()))
                }
                Piece::Command(_) if skill.shell.is_some() => {
                    Err(format!("`{}` wants its commands run by another shell than bash", skill.name))
                }
                Piece::Command(command) => {
                    let call = judge(command, idx, place, &book).map_err(|why| {
                        format!("The command `{command}` of the skill `{}` {why}", skill.name)
                    })?;
                    Ok(ReadyPiece::Command { command: command.to_owned(), call: Box::new(call) })
                }
            })
            .collect();
        Ok(Self { skill: Arc::clone(skill), grants, pieces: pieces? })
    }

    /// Runs its commands, one after another, and returns the text; the error says which of them failed. Before the text
    /// stands where the skill's files lie, behind it what the model has to know about it: tools it may not use, and the same
    /// skill of other directories.
    pub(crate) async fn render(
        self,
        shell: Option<Arc<dyn Tool>>,
        host: &dyn Host,
        registry: &SkillRegistry,
    ) -> Result<String, String> {
        let notes = notes(&self.skill, registry);
        let mut text = self.skill.directory_note();
        for piece in self.pieces {
            match (piece, &shell) {
                (ReadyPiece::Text(part), _) => text.push_str(&part),
                (ReadyPiece::Command { command, call }, Some(shell)) => {
                    let outcome = shell.run(*call, host).await;
                    let output = output(&outcome).map_err(|why| {
                        format!("The command `{command}` of the skill `{}` failed: {why}", self.skill.name)
                    })?;
                    text.push_str(&output);
                }
                (ReadyPiece::Command { .. }, None) => {
                    return Err("There is no shell to run commands".to_owned());
                }
            }
        }
        Ok(text + &notes)
    }
}

/// Tells whether a switch that keeps skills from running commands is not about this one.
fn is_ours_or_managed(skill: &SkillDefinition) -> bool {
    matches!(skill.source.scope, SkillScope::Bundled | SkillScope::Managed)
}

/// Says what stands behind the text of a skill.
fn notes(skill: &SkillDefinition, registry: &SkillRegistry) -> String {
    let mut notes = String::new();
    if !skill.disallowed_tools.is_empty() {
        notes += &format!("\n\n(Not to be used in this turn: {})", skill.disallowed_tools.join(", "));
    }
    let variants: Vec<&str> = registry.variants(&skill.name).collect();
    if !variants.is_empty() {
        notes += &format!(
            "\n\n(Directories with a skill of their own in the place of this one: {}. Use the one whose directory holds \
             the files you work on, too.)",
            variants.join(", ")
        );
    }
    notes
}

/// Judges a command as a call of Bash; the error says why it may not run.
fn judge(command: &str, idx: usize, place: &SkillPlace<'_>, book: &Rulebook) -> Result<ToolCall, String> {
    let id = ToolUseId::new(format!("skill_command_{idx}"));
    let input =
        json!({"command": command, "timeout": COMMAND_TIMEOUT_MS, "description": "A command of a skill"});
    let call = ToolUse { id: id.clone(), name: SHELL.to_owned(), input };
    let (prepared, _) = prepare(place.toolbox, place.host, &call)
        .map_err(|outcome| format!("cannot run: {}", text_of(&outcome.content)))?;
    let judged = check_permission(place.toolbox, place.host, book.clone(), &prepared);
    match judged.decision.verdict {
        Verdict::Allow => {
            let (input, effects) = (prepared.input, judged.effects);
            let (cancel, to_background) = (place.cancel.clone(), CancellationToken::new());
            Ok(ToolCall { id, input, effects, cancel, to_background })
        }
        Verdict::Ask | Verdict::Deny => Err(format!(
            "may not run without a question: {}. Allow it with a rule, or in the skill's allowed-tools",
            judged.decision.reason
        )),
    }
}

/// Returns what a command printed. One that ends with 1 and says nothing has found nothing, as grep does.
fn output(outcome: &ToolOutcome) -> Result<String, String> {
    let printed = |key: &str| outcome.structured.get(key).and_then(Value::as_str).unwrap_or_default();
    if !outcome.is_failure() {
        let both = [printed("stdout"), printed("stderr")];
        let parts: Vec<&str> = both.into_iter().filter(|part| !part.trim().is_empty()).collect();
        return Ok(parts.join("\n").trim_end().to_owned());
    }
    Err(text_of(&outcome.content))
}

fn text_of(content: &ToolContent) -> String {
    match content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(blocks) => blocks.iter().filter_map(|block| block.text()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use loci_core::skill::{SkillSource, parse_skill};

    use super::*;

    #[test]
    fn switch_about_commands_is_about_everyone_but_the_administrator_and_us() {
        let of = |scope| parse_skill("x", "a", SkillSource { scope, ..SkillSource::bundled() });
        for (scope, expected) in [
            (SkillScope::Managed, true),
            (SkillScope::Bundled, true),
            (SkillScope::User, false),
            (SkillScope::Project, false),
            (SkillScope::Plugin, false),
        ] {
            assert_eq!(is_ours_or_managed(&of(scope)), expected, "{scope:?}");
        }
    }
}
