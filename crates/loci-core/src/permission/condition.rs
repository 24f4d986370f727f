//! A rule that decides nothing but whether something is about a call: the `if` of a hook.

use std::path::Path;

use super::decide::Call;
use super::matching::{RuleFit, fits};
use super::rule_tools::{self, Specifier};
use super::{BadRule, Rule, RuleList, RuleOrigin, RuleSource, Rulebook};

/// A rule that is compared with calls, as broadly as one that asks: what may match, matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCondition {
    rule: Rule,
    /// The only tool it is for, where the rule alone would say more.
    tool: Option<String>,
}

impl RuleCondition {
    /// Reads exactly one rule; patterns of paths start at `dir`.
    pub fn parse(text: &str, dir: &Path) -> Result<Self, BadRule> {
        let origin = RuleOrigin::new(RuleSource::Session, dir);
        let name = text.split('(').next().unwrap_or_default().trim();
        // Path rules of other tools that write are those of `Edit`, for that tool alone.
        if let (Some(Specifier::Instead(instead)), Some(rest)) =
            (rule_tools::specifier(name), text.trim().strip_prefix(name).filter(|rest| !rest.is_empty()))
        {
            let (rule, bad) = Rule::parse(&format!("{instead}{rest}"), RuleList::Ask, &origin);
            return match (rule, bad) {
                (Some(rule), None) => Ok(Self { rule, tool: Some(name.to_owned()) }),
                (_, bad) => Err(bad.unwrap_or_else(|| BadRule::Syntax(text.to_owned()))),
            };
        }
        match Rule::parse(text, RuleList::Ask, &origin) {
            (Some(rule), None) => Ok(Self { rule, tool: None }),
            (_, bad) => Err(bad.unwrap_or_else(|| BadRule::Syntax(text.to_owned()))),
        }
    }

    /// Returns the rule as written.
    pub fn text(&self) -> &str {
        self.rule.text()
    }

    /// Tells whether it is about a call, or may be.
    pub fn matches(&self, call: &Call<'_>, book: &Rulebook) -> bool {
        if self.tool.as_deref().is_some_and(|tool| tool != call.tool) {
            return false;
        }
        let alone = Rulebook {
            mode: book.mode,
            ask: vec![self.rule.clone()],
            dirs: book.dirs.clone(),
            cwd: book.cwd.clone(),
            home: book.home.clone(),
            ..Rulebook::default()
        };
        fits(call, &alone).iter().any(|(rule, fit)| match fit {
            RuleFit::Certain => true,
            // What is not known of a command says nothing about a rule for another tool.
            RuleFit::Possible => rule.names_call(call.tool, call.effects.server.as_deref()),
            RuleFit::No | RuleFit::Part => false,
        })
    }
}
