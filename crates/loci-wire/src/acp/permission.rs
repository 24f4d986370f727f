//! May this call run? The question as a permission request, and what the person chose.
//!
//! What "always" would grant is what the permission engine suggests, in its words; where it suggests nothing, or the call is
//! too long to be read, there is no such option (S-7). Whatever is not a clear yes is a no.

use loci_core::permission::{Destination, RuleChange, RuleList, Update};
use loci_engine::{Answer, Command, Question};
use loci_stdx::visible;
use serde_json::{Value, json};

use super::rpc::{REQUEST_CANCELLED, RpcError};

/// A call that is longer can only be answered for once.
const MOST_CHARS: usize = 20_000;

/// The ids of the options.
pub(super) const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";

/// What a person said to a question.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    /// The answer for the engine.
    pub(super) answer: Answer,
    /// What else is to change.
    pub(super) command: Option<Command>,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self { answer, command: None }
    }
}

/// An option of a permission request.
pub(super) fn option(id: &str, name: &str, kind: &str) -> Value {
    json!({"optionId": id, "name": name, "kind": kind})
}

/// Returns the options of a question.
pub(super) fn options(question: &Question, yes: &str, no: &str) -> Vec<Value> {
    let grants: Vec<String> = question.suggestions.iter().map(|grant| visible(&grant.to_string())).collect();
    let is_whole = question.input.to_string().chars().count() <= MOST_CHARS;
    let may_grant = is_whole && !grants.is_empty();
    let mut options = vec![option(ALLOW_ONCE, yes, "allow_once")];
    if may_grant {
        options.push(option(
            ALLOW_ALWAYS,
            &format!("{yes}, and always: {}", grants.join("; ")),
            "allow_always",
        ));
    }
    options.push(option(REJECT_ONCE, no, "reject_once"));
    if let Some(denial) = denial(question).filter(|_| may_grant) {
        options.push(option(
            REJECT_ALWAYS,
            &format!("{no}, and always: {}", visible(&denial.to_string())),
            "reject_always",
        ));
    }
    options
}

/// Reads what was chosen.
pub(super) fn reply(question: &Question, outcome: Result<Value, RpcError>, no: &str) -> Reply {
    let chosen = match chosen(outcome) {
        Ok(chosen) => chosen,
        Err(answer) => return answer.into(),
    };
    match chosen.as_str() {
        ALLOW_ONCE => Answer::Allow { input: None, updates: Vec::new() }.into(),
        ALLOW_ALWAYS => Answer::Allow { input: None, updates: question.suggestions.clone() }.into(),
        REJECT_ALWAYS => Reply { answer: deny(no), command: denial(question).map(Command::ChangePermission) },
        _ => deny(no).into(),
    }
}

/// Returns the option that was chosen; the error is the answer where none was.
pub(super) fn chosen(outcome: Result<Value, RpcError>) -> Result<String, Answer> {
    let stop = || Answer::Deny { message: "The user cancelled the question.".to_owned(), stops: true };
    match outcome {
        Ok(value) if value["outcome"]["outcome"] == "selected" => {
            Ok(value["outcome"]["optionId"].as_str().unwrap_or_default().to_owned())
        }
        Ok(value) if value["outcome"]["outcome"] == "cancelled" => Err(stop()),
        Err(error) if error.code == REQUEST_CANCELLED => Err(stop()),
        Ok(_) => Err(deny("The answer to the permission question could not be understood.")),
        Err(error) => Err(deny(&format!("The permission question failed: {}", error.message))),
    }
}

pub(super) fn deny(message: &str) -> Answer {
    Answer::Deny { message: message.to_owned(), stops: false }
}

/// Returns what would keep such calls from running until the session ends; none where nothing but rules would not do.
fn denial(question: &Question) -> Option<Update> {
    let rules: Option<Vec<Vec<String>>> = question
        .suggestions
        .iter()
        .map(|grant| match grant {
            Update::AddRules(change) if change.list == RuleList::Allow => Some(change.rules.clone()),
            _ => None,
        })
        .collect();
    let rules = rules?.concat();
    let change = RuleChange { list: RuleList::Deny, rules, to: Destination::Session };
    (!change.rules.is_empty()).then_some(Update::AddRules(change))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(input: Value, suggestions: Vec<Update>) -> Question {
        Question {
            id: "q".to_owned(),
            agent: None,
            tool: "Bash".to_owned(),
            server: None,
            call: "toolu_1".into(),
            input,
            kind: loci_engine::QuestionKind::Permission,
            reason: String::new(),
            reason_kind: "other".into(),
            blocked_path: None,
            links: Vec::new(),
            suggestions,
        }
    }

    fn rule(list: RuleList, to: Destination) -> Update {
        Update::AddRules(RuleChange { list, rules: vec!["Bash(ls *)".to_owned()], to })
    }

    fn ids(question: &Question) -> Vec<String> {
        let options = options(question, "Allow", "Reject");
        options.iter().map(|option| option["optionId"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn always_is_offered_as_far_as_the_engine_suggests_it() {
        let input = json!({"command": "ls"});
        assert_eq!(ids(&question(input.clone(), vec![])), ["allow_once", "reject_once"]);
        let with_rule = question(input.clone(), vec![rule(RuleList::Allow, Destination::Local)]);
        assert_eq!(ids(&with_rule), ["allow_once", "allow_always", "reject_once", "reject_always"]);
        let mode = Update::SetMode(loci_core::permission::Mode::AcceptEdits, Destination::Session);
        assert_eq!(ids(&question(input, vec![mode])), ["allow_once", "allow_always", "reject_once"]);
        let long = question(
            json!({"command": "x".repeat(MOST_CHARS)}),
            vec![rule(RuleList::Allow, Destination::Local)],
        );
        assert_eq!(ids(&long), ["allow_once", "reject_once"]);
    }

    #[test]
    fn only_a_clear_yes_allows() {
        let grant = rule(RuleList::Allow, Destination::Local);
        let question = question(json!({}), vec![grant.clone()]);
        let select = |id: &str| Ok(json!({"outcome": {"outcome": "selected", "optionId": id}}));
        let allow = |updates| Reply::from(Answer::Allow { input: None, updates });
        assert_eq!(reply(&question, select("allow_once"), "no"), allow(vec![]));
        assert_eq!(reply(&question, select("allow_always"), "no"), allow(vec![grant]));
        assert_eq!(reply(&question, select("reject_once"), "no"), deny("no").into());
        let denied = Command::ChangePermission(rule(RuleList::Deny, Destination::Session));
        assert_eq!(
            reply(&question, select("reject_always"), "no"),
            Reply { answer: deny("no"), command: Some(denied) }
        );
        for (outcome, stops) in [
            (select("yes"), false),
            (select(""), false),
            (Ok(json!({"outcome": {"outcome": "cancelled"}})), true),
            (Ok(json!({"outcome": "selected", "optionId": "allow_once"})), false),
            (Ok(Value::Null), false),
            (Err(RpcError::new(REQUEST_CANCELLED, "gone")), true),
            (Err(RpcError::internal("broken")), false),
        ] {
            let said = reply(&question, outcome.clone(), "no");
            assert!(
                matches!(said.answer, Answer::Deny { stops: it, .. } if it == stops),
                "{outcome:?}: {said:?}"
            );
        }
    }
}
