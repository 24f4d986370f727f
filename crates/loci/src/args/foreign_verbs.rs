//! Verbs of the reference that loci does not have. As a lone first word they would be a prompt, which starts a session and
//! costs a request; so they are refused, with what to do instead.

use loci_app::UserError;

const NO_DAEMON: &str =
    "loci keeps no sessions running by itself; `loci -r` goes on with one, also after /background";
const BUILT_HERE: &str =
    "loci does not change itself; build the newest with `cargo install --path crates/loci`";
const NOT_HERE: &str = "it belongs to a service that loci does not have";

/// The verbs, and what to do instead.
const VERBS: [(&str, &str); 17] = [
    ("attach", NO_DAEMON),
    ("auto-mode", "the classifier of mode `auto` takes no rules in prose; `loci permissions` has the rules"),
    ("daemon", NO_DAEMON),
    ("gateway", NOT_HERE),
    ("import", "`loci sessions import` takes over sessions of Codex"),
    ("install", BUILT_HERE),
    ("logs", NO_DAEMON),
    ("project", "`loci sessions rm` and `loci sessions archive` put sessions away"),
    ("remote-control", NOT_HERE),
    ("respawn", NO_DAEMON),
    ("rm", "`loci sessions rm` puts a session away"),
    ("self-hosted-runner", NOT_HERE),
    ("setup-token", "`loci login` keeps an API key; ANTHROPIC_AUTH_TOKEN takes a token"),
    ("stop", NO_DAEMON),
    ("ultrareview", "/code-review in a session reviews a change"),
    ("update", BUILT_HERE),
    ("upgrade", BUILT_HERE),
];

/// Returns the verbs.
pub(super) fn foreign_verbs() -> impl Iterator<Item = &'static str> {
    VERBS.iter().map(|(verb, _)| *verb)
}

/// Refuses a command line whose first word is such a verb.
pub(crate) fn refuse_foreign_verb(first: Option<&str>) -> Result<(), UserError> {
    let Some((verb, instead)) = VERBS.iter().find(|(verb, _)| first == Some(*verb)) else { return Ok(()) };
    Err(UserError::new(format!("loci has no verb `{verb}`: {instead}"))
        .hint(format!("To give the model this word as a prompt, write `loci -- {verb}`.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_that_are_not_here_are_refused_and_prompts_are_not() {
        for (verb, _) in VERBS {
            assert!(refuse_foreign_verb(Some(verb)).is_err(), "{verb}");
        }
        for prompt in [None, Some("update the readme"), Some("--"), Some("-p"), Some("sessions")] {
            assert!(refuse_foreign_verb(prompt).is_ok(), "{prompt:?}");
        }
    }
}
