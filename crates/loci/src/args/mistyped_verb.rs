//! Verbs that were mistyped. As a lone first word they would be a prompt, which starts a session and costs a request; so the
//! nearest verb is named instead.

use std::ffi::OsString;

use loci_app::UserError;

use super::SUBCOMMANDS;
use super::foreign_verbs::foreign_verbs;

/// The shortest word that is taken for a mistyped one: shorter ones are near to too many.
const SHORTEST: usize = 4;
/// From how many letters on two mistakes are still the same word.
const LONG: usize = 6;

/// Refuses a command line whose first word is nearly a verb, unless it is said to be a prompt.
pub(crate) fn refuse_mistyped_verb(line: &[OsString]) -> Result<(), UserError> {
    let mut words = line.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    let first = words.next().unwrap_or_default();
    let is_prompt = words.any(|word| matches!(word, "-p" | "--print"));
    let Some(verb) = meant_verb(first).filter(|_| !is_prompt) else { return Ok(()) };
    Err(UserError::new(format!("loci has no verb `{first}`")).hint(format!(
        "Did you mean `loci {verb}`? To give the model this word as a prompt, write `loci -- {first}`."
    )))
}

/// Returns the verb that a word nearly is.
fn meant_verb(word: &str) -> Option<&'static str> {
    let is_word =
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-');
    let verbs = || SUBCOMMANDS.into_iter().chain(foreign_verbs());
    if word.len() < SHORTEST || !is_word || verbs().any(|verb| verb == word) {
        return None;
    }
    let most = if word.len() < LONG { 1 } else { 2 };
    let near =
        verbs().filter(|verb| verb.len() >= SHORTEST).map(|verb| (strsim::osa_distance(word, verb), verb));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, verb)| verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_nearly_verbs_are_told_from_prompts() {
        for (word, expected) in [
            ("permisions", Some("permissions")),
            ("sesions", Some("sessions")),
            ("session", Some("sessions")),
            ("udpate", Some("update")),
            ("docter", Some("doctor")),
            ("agent", Some("agents")),
            ("sessions", None),
            ("update", None),
            ("hello", None),
            ("fix", None),
            ("fix the sesions", None),
            ("Sesions", None),
            ("--sesions", None),
            ("commit", None),
            ("review", None),
            ("", None),
        ] {
            assert_eq!(meant_verb(word), expected, "{word}");
        }
    }

    #[test]
    fn word_that_is_said_to_be_a_prompt_is_one() {
        for (line, is_refused) in [
            ("loci sesions", true),
            ("loci sesions list", true),
            ("loci sesions -p", false),
            ("loci -p sesions", false),
            ("loci -- sesions", false),
            ("loci", false),
        ] {
            let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(refuse_mistyped_verb(&line).is_err(), is_refused, "{line:?}");
        }
    }
}
