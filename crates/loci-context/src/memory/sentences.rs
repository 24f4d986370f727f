//! Sentences of two memories that cannot both hold, found without understanding them.
//!
//! A sentence becomes a set of stems and the values among them: numbers with their units, paths, addresses, commands, days,
//! and names of which one has one, like package managers. Two sentences disagree
//!
//! 1. when they have the same words, and one of them says no;
//! 2. when they have the same words but for one value, which stands where there is one at a time: after the verb, and not
//!    after one that takes many (`supports`, `includes`, `see`);
//! 3. when they say of the same thing that has one holder (an owner, a branch, a host) that it is called differently.
//!
//! A false alarm costs more trust than a miss, so doubt is silence: what is past, possible, an example or a question is left
//! out, and so are memories about different languages, platforms and environments.
//!
//! Frozen: it is not extended further. More grammar would find little more; whoever wants that asks the model to compare.

mod split;
mod statement;
mod vocabulary;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::file::{MemoryFile, MemoryKind};
use super::flags::Flag;
use split::sentences;
use statement::{Claim, Statement};
use vocabulary::Vocabulary;
use words::topic;

/// Letters of a sentence that are shown.
const MOST_LETTERS: usize = 160;
/// Sentences about the same that are compared, the newest first.
const MOST_COMPARED: usize = 50;
/// Words that a sentence needs to be about something by itself, whatever its memory is about.
const ENOUGH_WORDS: usize = 2;

/// What is known of words; put in order when first needed.
static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::new);

/// A sentence of a memory.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    file: &'a MemoryFile,
    sentence: &'a str,
}

/// A sentence that is looked at closely: what it says, and what its memory is about.
struct Read<'a> {
    place: Place<'a>,
    about: BTreeSet<String>,
    statements: Vec<Statement<'a>>,
}

/// A claim, and where it is made.
struct Side<'a> {
    place: Place<'a>,
    /// What the memory is about, beyond what the sentence says itself.
    rest: BTreeSet<&'a str>,
    /// Languages, platforms and environments that it is about.
    scopes: BTreeSet<&'a str>,
    claim: Claim<'a>,
}

/// Finds sentences of different memories that disagree; both memories are flagged.
pub fn disagreements<'a>(files: impl IntoIterator<Item = (&'a str, &'a MemoryFile)>) -> Vec<(String, Flag)> {
    let mut flags = BTreeSet::new();
    for (subject, places) in candidates(files) {
        let read: Vec<Read<'a>> = places.into_iter().map(Read::of).collect();
        let sides: Vec<Side<'_>> = read.iter().flat_map(|read| read.sides(&subject)).collect();
        for (n, one) in sides.iter().enumerate() {
            for other in sides[n + 1..].iter().filter(|other| is_disagreement(one, other)) {
                flags.insert((one.place.path.to_owned(), flag(one.place, other.place)));
                flags.insert((other.place.path.to_owned(), flag(other.place, one.place)));
            }
        }
    }
    flags.into_iter().collect()
}

/// Finds what is claimed more than once and not in the same way. Nearly all sentences are about something of their own, so
/// only numbers are kept of them at first.
fn candidates<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a MemoryFile)>,
) -> BTreeMap<String, Vec<Place<'a>>> {
    let (mut places, mut seen) = (Vec::new(), Vec::new());
    for (path, file) in files {
        let description = file.description.as_deref().unwrap_or_default();
        for sentence in sentences(&file.body).into_iter().chain(sentences(description)) {
            for statement in Statement::read(&VOCABULARY, sentence) {
                let claims = statement.claims();
                seen.extend(
                    claims.iter().map(|(subject, claim)| (subject.digest(), claim.digest(), places.len())),
                );
            }
            places.push(Place { path, file, sentence });
        }
    }
    seen.sort_unstable();
    let mut found: BTreeMap<String, Vec<Place<'a>>> = BTreeMap::new();
    for run in seen.chunk_by(|one, other| one.0 == other.0).filter(|run| run[0].1 != run[run.len() - 1].1) {
        for (digest, _, place) in run {
            let place = places[*place];
            for statement in Statement::read(&VOCABULARY, place.sentence) {
                let subjects = statement.claims().into_iter().map(|(subject, _)| subject);
                for subject in subjects.filter(|subject| subject.digest() == *digest) {
                    found.entry(subject.to_string()).or_default().push(place);
                }
            }
        }
    }
    for group in found.values_mut() {
        group.sort_by_key(|it| std::cmp::Reverse((it.file.modified.as_deref(), it.path, it.sentence)));
        group.dedup_by_key(|it| (it.path, it.sentence));
        group.truncate(MOST_COMPARED);
    }
    found
}

impl<'a> Read<'a> {
    fn of(place: Place<'a>) -> Self {
        let about = topic(&VOCABULARY, place.file.name.as_deref().unwrap_or_default());
        Self { place, about, statements: Statement::read(&VOCABULARY, place.sentence) }
    }

    /// Returns what the sentence claims about a subject, with what its memory is about.
    fn sides(&self, subject: &str) -> Vec<Side<'_>> {
        let mut sides = Vec::new();
        for statement in &self.statements {
            let words: BTreeSet<&str> = statement.all_words().collect();
            let about: BTreeSet<&str> = self.about.iter().map(String::as_str).collect();
            let scopes: BTreeSet<&str> =
                words.union(&about).copied().filter(|it| VOCABULARY.is_scope(it)).collect();
            let rest: BTreeSet<&str> = about.difference(&words).copied().collect();
            for (_, claim) in statement.claims().into_iter().filter(|(other, _)| other.to_string() == subject)
            {
                sides.push(Side { place: self.place, rest: rest.clone(), scopes: scopes.clone(), claim });
            }
        }
        sides
    }
}

fn is_disagreement(one: &Side<'_>, other: &Side<'_>) -> bool {
    one.place.path != other.place.path && one.claim.is_against(&other.claim) && is_same_matter(one, other)
}

/// Tells whether two sentences with the same words speak of the same.
fn is_same_matter(one: &Side<'_>, other: &Side<'_>) -> bool {
    if one.scopes != other.scopes {
        return false;
    }
    let is_wanted = |it: &Side<'_>| {
        it.claim.is_preference()
            && matches!(it.place.file.kind, Some(MemoryKind::Feedback | MemoryKind::User))
    };
    let n_words = one.claim.n_words.min(other.claim.n_words);
    let is_clear = n_words >= ENOUGH_WORDS || (is_wanted(one) && is_wanted(other));
    is_clear || one.rest.is_empty() || other.rest.is_empty() || !one.rest.is_disjoint(&other.rest)
}

fn flag(ours: Place<'_>, theirs: Place<'_>) -> Flag {
    let shown = |sentence: &str| -> String {
        sentence.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_LETTERS).collect()
    };
    Flag::Disagrees {
        other: theirs.path.to_owned(),
        ours: shown(ours.sentence),
        theirs: shown(theirs.sentence),
    }
}

#[cfg(test)]
mod tests;
