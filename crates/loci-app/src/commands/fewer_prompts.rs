//! `/fewer-permission-prompts`: the few rules that would have answered most of the questions of this session, each with what
//! else it would allow, and saving them.

use loci_core::permission::{Destination, LearnedRule, learn_rules};
use loci_engine::{LocalEffect, LocalOutcome, SessionSnapshot};

use loci_settings::Scope;
use loci_stdx::counted;
use serde_json::Value;

use super::cell;
use crate::settings::editor::SettingsContext;

/// What is said where no rule is proposed.
pub const NO_RULES: &str = "No rule is proposed: none would have answered them and let in nothing that was refused, or that \
                            nobody can foresee";

/// What was learned from the questions of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearnedRules {
    /// How many questions somebody answered.
    pub n_asked: usize,
    /// To how many of them they said yes.
    pub n_allowed: usize,
    /// The rules, the best first, each with the calls it would have answered.
    pub rules: Vec<(LearnedRule, Vec<String>)>,
}

impl LearnedRules {
    /// Learns from a session.
    pub fn new(session: &SessionSnapshot) -> Self {
        let asked = &session.asked;
        let rules = learn_rules(asked, &session.rulebook).into_iter().map(|rule| {
            let calls = rule.answered.iter().filter_map(|idx| asked.get(*idx));
            let calls = calls.map(|call| loci_stdx::single_line(&call.summary(), 200)).collect();
            (rule, calls)
        });
        Self {
            n_asked: asked.len(),
            n_allowed: asked.iter().filter(|call| call.is_allowed).count(),
            rules: rules.collect(),
        }
    }

    /// Says in a line what came of it.
    pub fn headline(&self) -> String {
        let n_answered: usize = self.rules.iter().map(|(rule, _)| rule.answered.len()).sum();
        let count = |n: usize, one, several| counted(n as u64, one, several);
        let asked =
            format!("{}, {} answered with yes", count(self.n_asked, "question", "questions"), self.n_allowed);
        if self.rules.is_empty() {
            return asked;
        }
        let rules = count(self.rules.len(), "rule", "rules");
        format!("{asked}; {n_answered} of those would not have been asked with {rules}")
    }

    fn to_markdown(&self) -> String {
        if self.n_asked == 0 {
            return "Nothing was asked in this session yet.\n".to_owned();
        }
        let mut text = format!("## Fewer questions\n\n{}\n\n", self.headline());
        if self.rules.is_empty() {
            return format!("{text}{NO_RULES}.\n");
        }
        text.push_str("| | Rule | Would have answered | Would also allow |\n|---:|---|---:|---|\n");
        for (idx, (rule, _)) in self.rules.iter().enumerate() {
            text.push_str(&format!(
                "| {} | `{}` | {} | {} |\n",
                idx + 1,
                cell(&rule.text),
                rule.answered.len(),
                cell(&rule.also_allows)
            ));
        }
        text.push_str(
            "\n`/fewer-permission-prompts save` keeps them all in your settings for this project, `save 1 3` some of them.\n",
        );
        text
    }
}

/// Returns the allow rules that the person's settings for the project have, whether they count or not.
pub fn saved_rules(ctx: &SettingsContext) -> Vec<String> {
    let setting = ctx.loaded.merged.get("permissions.allow");
    let parts = setting.map(|setting| setting.parts.as_slice()).unwrap_or_default();
    let own = parts.iter().filter(|part| part.origin.scope == Scope::Local);
    let rules = own.flat_map(|part| match &part.value {
        Value::Array(rules) => rules.as_slice(),
        rule => std::slice::from_ref(rule),
    });
    rules.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Carries the command out.
pub(super) fn run(argument: &str, session: &SessionSnapshot) -> LocalOutcome {
    let learned = LearnedRules::new(session);
    let mut words = argument.split_whitespace();
    match words.next() {
        None => return LocalOutcome::text(learned.to_markdown()),
        // Whoever writes prompts does not choose what may run.
        Some("save") if session.is_interactive => {}
        Some(_) => {
            return LocalOutcome::error(
                "Say `/fewer-permission-prompts`, or at a terminal `/fewer-permission-prompts save [numbers]`",
            );
        }
    }
    let numbers: Result<Vec<usize>, _> = words.map(str::parse).collect();
    let Ok(numbers) = numbers else { return LocalOutcome::error("Name rules by their numbers: `save 1 3`") };
    let is_chosen = |idx: usize| numbers.is_empty() || numbers.contains(&(idx + 1));
    let chosen: Vec<&LearnedRule> = learned
        .rules
        .iter()
        .enumerate()
        .filter(|(idx, _)| is_chosen(*idx))
        .map(|(_, (rule, _))| rule)
        .collect();
    if chosen.is_empty() {
        return LocalOutcome::error("There is no such rule to save");
    }
    let names: Vec<String> = chosen.iter().map(|rule| format!("`{}`", rule.text)).collect();
    // Whatever cannot be saved is told by whoever saves it.
    let said = LocalOutcome::text(format!("For your settings for this project: {}", names.join(", ")));
    let save = |rule: &&LearnedRule| LocalEffect::Permission(rule.update(Destination::Local));
    chosen.iter().map(save).fold(said, LocalOutcome::with)
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_core::permission::AskedCall;
    use loci_core::tool::CallEffects;
    use serde_json::json;

    use super::*;

    fn session(n_asked: usize) -> SessionSnapshot {
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let call = AskedCall {
            tool: "mcp__s__t".into(),
            command: None,
            input: json!({}),
            effects: CallEffects::unknown("a tool of others"),
            is_allowed: true,
        };
        SessionSnapshot { asked: vec![call; n_asked], ..SessionSnapshot::empty(id, "m") }
    }

    #[test]
    fn rules_are_told_with_what_else_they_allow_and_saved_by_a_person_alone() {
        assert!(run("", &session(0)).text.contains("Nothing was asked"));
        let told = run("", &session(3)).text;
        assert!(told.contains("| 1 | `mcp__s__t` | 3 | every call of mcp__s__t"), "{told}");
        let saved = run("save", &session(3));
        assert_eq!((saved.is_error, saved.effects.len()), (false, 1), "{}", saved.text);
        assert!(run("save 2", &session(3)).is_error);
        assert!(run("save x", &session(3)).is_error);
        let headless = SessionSnapshot { is_interactive: false, ..session(3) };
        assert!(run("save", &headless).is_error, "a prompt may be anybody's");
    }
}
