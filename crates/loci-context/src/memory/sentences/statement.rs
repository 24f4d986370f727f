//! What a sentence claims.

use std::fmt::{self, Display, Write};
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::vocabulary::{Fact, Vocabulary};
use super::words::{Token, ValueKind, tokens};

/// Words of a sentence that is looked at; what is longer says too much at once.
const WORDS: std::ops::RangeInclusive<usize> = 2..=24;
const MOST_BYTES: usize = 400;
/// Words whose order matters: what leads from one thing to another.
const DIRECTIONS: [&str; 7] = ["from", "into", "than", "over", "before", "after", "instead"];
/// Words that stand for something else.
const LEANING: [&str; 7] = ["this", "that", "these", "those", "it", "they", "its"];
/// Words that a value of a thing with one holder may have.
const MOST_VALUE_WORDS: usize = 3;

/// A sentence, or a part of it, that is certain and about the present.
#[derive(Debug)]
pub(super) struct Statement<'a> {
    is_negative: bool,
    tokens: Vec<Token<'a>>,
    /// Where the verb is.
    verb: Option<usize>,
    /// Whether it begins with a word that stands for something else.
    leans: bool,
}

/// What a claim is about: only claims about the same are held against each other.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    form: Form,
    /// In their order, each once.
    words: Vec<&'a str>,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Is,
    Value(ValueKind),
    Called,
    Own,
    Lead,
}

/// What can be held against another claim about the same.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    what: What<'a>,
    /// How many words say what it is about.
    pub(super) n_words: usize,
}

#[derive(Debug, Hash)]
enum What<'a> {
    /// That it is so, or that it is not; and the words in their order, where that matters.
    Is { is_negative: bool, order: Option<Vec<&'a str>> },
    /// A value.
    Value(&'a str),
    /// One of a few things.
    Choice(&'a str),
    /// The words of a name, in their order, each once.
    Called(Vec<&'a str>),
}

impl<'a> Subject<'a> {
    /// Makes a subject of words; `None` without any.
    fn new(form: Form, words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let words = set(words);
        (!words.is_empty()).then_some(Self { form, words })
    }

    /// Returns a number that is the same for the same subject.
    pub(super) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        // Writing to a digest does not fail.
        write!(digest, "{self}").ok();
        digest.0
    }
}

impl Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Is => f.write_str("is")?,
            Form::Value(kind) => write!(f, "{kind:?}")?,
            Form::Called => f.write_str("called")?,
            Form::Own => f.write_str("own")?,
            Form::Lead => f.write_str("lead")?,
        }
        self.words.iter().try_for_each(|word| {
            f.write_char(' ')?;
            f.write_str(word)
        })
    }
}

/// FNV-1a, which takes a text in pieces like the same text at once.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |sum, it| (sum ^ u64::from(it)).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}

impl Claim<'_> {
    /// Tells whether somebody who wants it so wants it everywhere.
    pub(super) fn is_preference(&self) -> bool {
        self.n_words > 0 && matches!(self.what, What::Is { .. } | What::Choice(_))
    }

    /// Returns a number that is another for what says something else.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = FxHasher::default();
        match &self.what {
            What::Is { is_negative, .. } => is_negative.hash(&mut hasher),
            other => other.hash(&mut hasher),
        }
        hasher.finish()
    }

    /// Tells whether both cannot hold.
    pub(super) fn is_against(&self, other: &Claim<'_>) -> bool {
        match (&self.what, &other.what) {
            (What::Is { is_negative, order }, What::Is { is_negative: not, order: others }) => {
                let is_same_order = order.is_none() || others.is_none() || order == others;
                is_negative != not && is_same_order
            }
            (What::Value(one), What::Value(other)) => !is_part(one, other) && !is_part(other, one),
            (What::Choice(one), What::Choice(other)) => one != other,
            (What::Called(one), What::Called(other)) => !is_among(one, other) && !is_among(other, one),
            _ => false,
        }
    }
}

/// Tells whether all of some words are among others.
fn is_among(some: &[&str], others: &[&str]) -> bool {
    some.iter().all(|it| others.contains(it))
}

/// Puts words in order, each once.
fn set<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Tells whether one value is the other, or the beginning of it: `18` of `18.2`, `src` of `src/main.rs`.
fn is_part(one: &str, other: &str) -> bool {
    other.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '/', ' ']))
}

impl<'a> Statement<'a> {
    /// Reads a sentence: none when it is not certain, two when it sets one thing against another.
    pub(super) fn read(vocabulary: &'a Vocabulary, sentence: &'a str) -> Vec<Self> {
        if sentence.ends_with('?') || sentence.len() > MOST_BYTES {
            return Vec::new();
        }
        let tokens = tokens(vocabulary, sentence);
        let clauses = clauses(tokens).into_iter();
        clauses.flat_map(|clause| set_against(vocabulary, clause)).filter_map(Self::from_tokens).collect()
    }

    fn from_tokens(tokens: Vec<Token<'a>>) -> Option<Self> {
        let n_words = tokens.iter().filter(|it| !it.is(Fact::Small)).count();
        // `Use X instead` leans on what was said before it.
        let is_doubtful = |it: &Token<'_>| it.is(Fact::Hedge) || it.is(Fact::Past) || it.stem == "instead";
        let n_denials = tokens.iter().filter(|it| it.is(Fact::Negative)).count();
        if !WORDS.contains(&n_words) || tokens.iter().any(is_doubtful) || n_denials > 1 {
            return None;
        }
        let n_opposites = tokens.iter().filter(|it| opposite(it).is_some()).count();
        let verb = tokens.iter().position(|it| it.is(Fact::Be));
        let verb = verb.or_else(|| tokens.iter().position(|it| it.is(Fact::Verb) || it.is(Fact::Use)));
        if verb == Some(0) && tokens[0].is(Fact::Be) {
            return None;
        }
        let leans = tokens.first().is_some_and(|it| LEANING.contains(&&*it.stem));
        Some(Self { is_negative: (n_denials + n_opposites) % 2 == 1, tokens, verb, leans })
    }

    /// Returns all stems, of values too.
    pub(super) fn all_words(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().map(|it| &*it.stem)
    }

    /// Returns what can be held against others, each by what it is about.
    pub(super) fn claims(&self) -> Vec<(Subject<'_>, Claim<'_>)> {
        let mut claims = Vec::new();
        claims.extend(self.polarity());
        if !self.is_negative {
            claims.extend((0..self.tokens.len()).filter_map(|at| self.value(at)));
            claims.extend(self.holder());
            claims.extend(self.owner());
        }
        if self.leans {
            claims.iter_mut().for_each(|(_, claim)| claim.n_words = 0);
        }
        claims
    }

    /// That it is so, or not.
    fn polarity(&self) -> Option<(Subject<'_>, Claim<'_>)> {
        self.verb?;
        let words: Vec<&str> = self.tokens.iter().filter_map(content).collect();
        // `In tests, use X` is `use X in tests`, but who calls whom is told by the order alone.
        let begins_elsewhere = self.tokens.first().is_some_and(|it| CONTEXT.contains(&&*it.stem));
        let is_directed = || self.tokens.iter().any(|it| DIRECTIONS.contains(&&*it.stem));
        let is_ordered = !begins_elsewhere || is_directed();
        let subject = Subject::new(Form::Is, words.iter().copied()).filter(|it| it.words.len() > 1)?;
        let n_words = subject.words.iter().filter(|it| **it != "use").count();
        let what = What::Is { is_negative: self.is_negative, order: is_ordered.then_some(words) };
        Some((subject, Claim { what, n_words }))
    }

    /// The value at a place, if one can stand there at a time.
    fn value(&self, at: usize) -> Option<(Subject<'_>, Claim<'_>)> {
        let kind = self.tokens[at].value.filter(|kind| self.is_single(at, *kind))?;
        let rest = self.tokens.iter().enumerate().filter(|(n, it)| *n != at && !it.is(Fact::Plain));
        let words = rest.filter_map(|(_, it)| content(it)).filter(|it| *it != "use");
        let subject = Subject::new(Form::Value(kind), words)?;
        let n_words = subject.words.iter().filter(|it| !it.starts_with("unit:")).count();
        let value = &*self.tokens[at].stem;
        let what =
            if matches!(kind, ValueKind::Choice(_)) { What::Choice(value) } else { What::Value(value) };
        Some((subject, Claim { what, n_words }))
    }

    /// Tells whether nothing else of the kind can stand there at the same time.
    fn is_single(&self, at: usize, kind: ValueKind) -> bool {
        let Some(verb) = self.verb.filter(|verb| *verb < at) else { return false };
        let has_others = self.tokens.iter().enumerate().any(|(n, it)| n != at && it.value == Some(kind));
        let is_many = self.tokens[verb].is(Fact::Many) || self.is_indefinite();
        let is_and = |it: Option<&Token<'_>>| it.is_some_and(|it| it.stem == "and" || it.is_after_comma);
        if has_others
            || is_many
            || self.tokens[at].is_after_comma
            || is_and(self.tokens.get(at + 1))
            || is_and(at.checked_sub(1).and_then(|n| self.tokens.get(n)))
        {
            return false;
        }
        let is_by = at.checked_sub(1).is_some_and(|n| self.tokens[n].entry.facts.has(Fact::By));
        match kind {
            ValueKind::Number | ValueKind::Day | ValueKind::Time | ValueKind::Choice(_) => true,
            ValueKind::Place => !self.tokens[verb].is(Fact::Use) && (is_by || !self.is_running(verb)),
            ValueKind::Code => is_by || self.tokens[verb].is(Fact::Be),
        }
    }

    /// Tells whether the verb is one that many things are done with.
    fn is_running(&self, verb: usize) -> bool {
        ["run", "writ", "build", "start", "open", "edit", "format", "lint"]
            .contains(&&*self.tokens[verb].stem)
    }

    /// Tells whether it speaks of one of many.
    fn is_indefinite(&self) -> bool {
        self.tokens.first().is_some_and(|it| ["a", "an", "there"].contains(&&*it.stem))
            && self.verb.is_some_and(|verb| self.tokens[verb].is(Fact::Be))
    }

    /// What a thing with one holder is called.
    fn holder(&self) -> Option<(Subject<'_>, Claim<'_>)> {
        let verb = self.verb.filter(|verb| self.tokens[*verb].is(Fact::Be) && !self.is_indefinite())?;
        let (subject, rest) = (&self.tokens[..verb], &self.tokens[verb + 1..]);
        let is_calling = |it: &Token<'_>| it.stem == "call" || it.stem == "nam";
        let is_called = rest.iter().any(is_calling);
        let holder = subject.iter().find(|it| it.entry.facts.has(Fact::Holder));
        if holder.is_none() && !is_called {
            return None;
        }
        let named: Vec<&Token<'_>> =
            rest.iter().filter(|it| !it.is(Fact::Small) && !is_calling(it)).collect();
        let is_free = is_called || subject.iter().any(|it| it.entry.facts.has(Fact::FreelyNamed));
        let is_name = |it: &&Token<'_>| it.is_name || it.value.is_some();
        let is_like_name = named.iter().any(is_name) || (is_free && named.len() == 1);
        let is_odd = |it: &&Token<'_>| it.is(Fact::Adjective) || opposite(it).is_some() || it.is(Fact::Soft);
        if !(1..=MOST_VALUE_WORDS).contains(&named.len()) || !is_like_name || named.iter().any(is_odd) {
            return None;
        }
        let words = subject.iter().filter(|it| !it.is(Fact::Small)).map(|it| &*it.stem);
        let subject = Subject::new(Form::Called, words)?;
        let n_words = subject.words.len().saturating_sub(usize::from(holder.is_some()));
        let what = What::Called(set(named.iter().map(|it| &*it.stem)));
        Some((subject, Claim { what, n_words }))
    }

    /// Who owns or leads something.
    fn owner(&self) -> Option<(Subject<'_>, Claim<'_>)> {
        let [who, verb, what @ ..] = &self.tokens[..] else { return None };
        let form = match &*verb.stem {
            "own" => Form::Own,
            "lead" => Form::Lead,
            _ => return None,
        };
        let is_somebody = who.value.is_none() && !who.is(Fact::Small) && !who.is(Fact::Soft);
        let subject = Subject::new(form, what.iter().filter_map(content)).filter(|_| is_somebody)?;
        let claim = Claim { what: What::Value(&who.stem), n_words: subject.words.len() };
        Some((subject, claim))
    }
}

/// Returns the stem of the word that a token says no to.
fn opposite<'a>(token: &'a Token<'_>) -> Option<&'a str> {
    token.entry.opposite.as_deref().filter(|_| token.value.is_none())
}

/// Returns the stem of a token that carries meaning, the same for a word and its opposite.
fn content<'a>(token: &'a Token<'_>) -> Option<&'a str> {
    if let Some(other) = opposite(token) {
        return Some(other);
    }
    let is_empty = [Fact::Small, Fact::Soft, Fact::Negative].iter().any(|fact| token.is(*fact));
    match token.is(Fact::Use) {
        true => Some("use"),
        false => (!is_empty).then_some(&*token.stem),
    }
}

/// Parts what a `but` joins.
fn clauses(mut tokens: Vec<Token<'_>>) -> Vec<Vec<Token<'_>>> {
    let mut found = Vec::new();
    while let Some(at) = tokens.iter().rposition(|it| it.stem == "but" || it.stem == "however") {
        found.push(tokens.split_off(at + 1));
        tokens.pop();
    }
    found.push(tokens);
    found
}

/// Takes `use A instead of B` apart: that A is used, and that B is not. `no A` is the same as not to use it.
fn set_against<'a>(vocabulary: &'a Vocabulary, mut clause: Vec<Token<'a>>) -> Vec<Vec<Token<'a>>> {
    if clause.first().is_some_and(|it| it.stem == "no") {
        clause.extend(tokens(vocabulary, "use"));
    }
    let Some((from, to)) = marker(&clause) else { return vec![clause] };
    let verb = clause[..from].iter().position(|it| it.is(Fact::Use) || it.is(Fact::Verb));
    let Some(verb) = verb else { return Vec::new() };
    let is_context = |it: &Token<'_>| CONTEXT.contains(&&*it.stem);
    let end = clause[to..].iter().position(is_context).map_or(clause.len(), |n| to + n);
    let kept = clause[verb..from].iter().position(is_context).map_or(from, |n| verb + n);
    let positive = [&clause[..from], &clause[end..]].concat();
    let mut negative = [&clause[..=verb], &clause[to..end], &clause[kept..from], &clause[end..]].concat();
    negative.extend(tokens(vocabulary, "not"));
    vec![positive, negative]
}

/// Words that begin where, when or what for.
const CONTEXT: [&str; 10] = ["in", "for", "when", "on", "to", "with", "while", "dur", "at", "if"];

/// Finds what sets one thing against another: where it begins and where it ends.
fn marker(clause: &[Token<'_>]) -> Option<(usize, usize)> {
    let is_preferring = || clause.iter().any(|it| it.stem == "prefer");
    clause.iter().enumerate().find_map(|(n, it)| {
        let next = clause.get(n + 1).map(|it| &*it.stem);
        match (&*it.stem, next) {
            ("instead", Some("of")) => Some((n, n + 2)),
            ("rather", Some("than")) => Some((n, n + 2)),
            ("over", Some(_)) if is_preferring() => Some((n, n + 1)),
            ("not" | "never", Some(_)) if it.is_after_comma && n > 1 => Some((n, n + 1)),
            _ => None,
        }
    })
}
