//! A sentence as words and values.
//!
//! Thousands of memories are read at once, and nearly every word is written in lower case already: a stem is a part of the
//! sentence wherever it can be, and only what is spelled otherwise is copied.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::vocabulary::{Entry, Fact, NOTHING, Vocabulary};

/// Words that most sentences have room with.
const USUAL_WORDS: usize = 16;

/// One word or value of a sentence.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    /// What it is compared by.
    pub(super) stem: Cow<'a, str>,
    pub(super) value: Option<ValueKind>,
    /// Whether it is written like a name: as code, or with a capital letter within a sentence.
    pub(super) is_name: bool,
    /// Whether a comma or colon stands before it.
    pub(super) is_after_comma: bool,
    pub(super) entry: &'a Entry,
}

/// What kind of thing a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueKind {
    Number,
    Place,
    Code,
    Day,
    Time,
    /// One of a group of which one is used at a time.
    Choice(u8),
}

impl<'a> Token<'a> {
    pub(super) fn is(&self, fact: Fact) -> bool {
        self.value.is_none() && self.entry.facts.has(fact)
    }

    fn word(vocabulary: &'a Vocabulary, text: Cow<'a, str>) -> Self {
        let stem = stem(text);
        let entry = vocabulary.entry(&stem);
        let stem = entry.same.as_deref().map_or(stem, Cow::Borrowed);
        let value = match entry.group {
            Some(group) => Some(ValueKind::Choice(group)),
            None if entry.facts.has(Fact::Day) => Some(ValueKind::Day),
            None => None,
        };
        Self { stem, value, is_name: false, is_after_comma: false, entry }
    }

    fn value(kind: ValueKind, text: impl Into<Cow<'a, str>>) -> Self {
        Self { stem: text.into(), value: Some(kind), is_name: true, is_after_comma: false, entry: &NOTHING }
    }
}

/// Returns the stems of what a memory is about, from its name.
pub(super) fn topic(vocabulary: &Vocabulary, name: &str) -> BTreeSet<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let tokens = words.map(|word| Token::word(vocabulary, word.into()));
    let says_nothing =
        |it: &Token<'_>| [Fact::Small, Fact::Soft, Fact::Generic].iter().any(|fact| it.is(*fact));
    tokens.filter(|it| !says_nothing(it)).map(|it| it.stem.into_owned()).collect()
}

/// Returns the words and values of a sentence; what stands in parentheses, and reasons, are left out.
pub(super) fn tokens<'a>(vocabulary: &'a Vocabulary, sentence: &'a str) -> Vec<Token<'a>> {
    let mut found: Vec<Token<'a>> = Vec::with_capacity(USUAL_WORDS);
    let (mut depth, mut is_after_comma) = (0_usize, false);
    for piece in pieces(sentence) {
        depth += usize::from(piece.starts_with('('));
        if depth > 0 {
            let ends = piece.trim_end_matches(['.', ',', ';', ':', '!']).ends_with(')');
            depth -= usize::from(ends);
            continue;
        }
        if is_reason(piece) {
            break;
        }
        let from = found.len();
        read_piece(vocabulary, piece, &mut found);
        if let Some(first) = found.get_mut(from) {
            first.is_after_comma = is_after_comma;
        }
        is_after_comma = piece.trim_end_matches(['*', '_', '"']).ends_with([',', ':']);
    }
    joined(vocabulary, found)
}

/// Tells whether what follows only says why.
fn is_reason(piece: &str) -> bool {
    ["because", "since", "—", "–", "-", "--", "->", "so"].iter().any(|it| it.eq_ignore_ascii_case(piece))
}

/// Splits at spaces, but not within code.
fn pieces(sentence: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let is_end = move |c: char| {
        is_code ^= c == '`';
        !is_code && c.is_whitespace()
    };
    sentence.split(is_end).filter(|piece| !piece.is_empty())
}

/// Tells what stands around words.
fn is_mark(c: char) -> bool {
    matches!(c, '*' | '_' | '"' | '\'' | '“' | '”' | '(' | ')' | '[' | ']' | ',' | ';' | ':' | '!' | '?')
}

fn read_piece<'a>(vocabulary: &'a Vocabulary, piece: &'a str, found: &mut Vec<Token<'a>>) {
    let is_first = found.is_empty();
    let bare = piece.trim_matches(is_mark);
    let bare = bare.strip_suffix('.').unwrap_or(bare).trim_matches(is_mark);
    if let Some(code) = bare.strip_prefix('`').and_then(|it| it.split('`').next()) {
        found.push(code_token(vocabulary, code));
        return;
    }
    if bare.is_empty() {
        return;
    }
    if let Some(token) = plain_value(bare) {
        found.push(token);
        return;
    }
    if let Some((number, unit)) = with_unit(bare) {
        found.push(Token::value(ValueKind::Number, number));
        found.push(Token::word(vocabulary, unit.into()));
        return;
    }
    let is_name = !is_first && bare.starts_with(char::is_uppercase);
    let mut push = |part: Cow<'a, str>| {
        let mut token = Token::word(vocabulary, part);
        token.is_name |= is_name;
        if let Some(number) = token.entry.number {
            token = Token::value(ValueKind::Number, number.to_string());
        }
        found.push(token);
    };
    let whole =
        if bare.contains(['\'', '’']) { without_apostrophe(bare).into() } else { lower(bare.into()) };
    let is_compound =
        whole.contains(['-', '/']) && vocabulary.entry(&stem(whole.as_ref().into())).group.is_none();
    match whole {
        whole if !is_compound => push(whole),
        Cow::Borrowed(whole) => parts(whole).for_each(|part| push(part.into())),
        Cow::Owned(whole) => parts(&whole).for_each(|part| push(part.to_owned().into())),
    }
}

/// Takes a compound apart.
fn parts(whole: &str) -> impl Iterator<Item = &str> {
    whole.split(['-', '/']).filter(|it| !it.is_empty())
}

/// Returns a text in lower case.
fn lower(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.bytes().all(|it| it.is_ascii() && !it.is_ascii_uppercase()) {
        true => text,
        false => text.to_lowercase().into(),
    }
}

/// Joins what an apostrophe parts: `don't` is a word, and `the plan's` is of the plan.
fn without_apostrophe(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    match lower.strip_suffix("'s") {
        Some(owner) => owner.to_owned(),
        None => lower.replace('\'', ""),
    }
}

/// Reads what stands in backticks: a plain word is one, a path, a number or an address is that, the rest is a command.
fn code_token<'a>(vocabulary: &'a Vocabulary, code: &'a str) -> Token<'a> {
    let code = code.trim();
    let is_word =
        code.chars().all(|c| c.is_alphanumeric() || "_-".contains(c)) && code.contains(char::is_alphabetic);
    if let Some(token) = plain_value(code) {
        return token;
    }
    if let Some(known) = code.split_once(' ').and_then(|(one, two)| vocabulary.pair(one, two)) {
        return Token { is_name: true, ..Token::word(vocabulary, known.into()) };
    }
    match is_word {
        true => Token { is_name: true, ..Token::word(vocabulary, code.into()) },
        false => Token::value(ValueKind::Code, code.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// Reads numbers, versions, times, dates, paths and addresses by their form.
fn plain_value(text: &str) -> Option<Token<'_>> {
    if let [b'0'..=b'9', ..] | [b'v' | b'V', b'0'..=b'9', ..] = text.as_bytes()
        && let Some(token) = number(&text.to_lowercase())
    {
        return Some(token);
    }
    is_place(text).then(|| Token::value(ValueKind::Place, text.trim_end_matches('/')))
}

/// Reads what begins with a digit, or with one after a `v`.
fn number(lower: &str) -> Option<Token<'static>> {
    let digits = lower.strip_prefix('v').unwrap_or(lower);
    let has_only = |extra: &str| digits.chars().all(|c| c.is_ascii_digit() || extra.contains(c));
    if has_only(",.") || (has_only(",.%") && digits.ends_with('%')) {
        let plain = digits.replace(',', "");
        return Some(Token::value(ValueKind::Number, plain.trim_end_matches('%').to_owned()));
    }
    if has_only(":") || (digits.len() <= 4 && (digits.ends_with("am") || digits.ends_with("pm"))) {
        return Some(Token::value(ValueKind::Time, digits.to_owned()));
    }
    (has_only("-") && digits.len() == 10).then(|| Token::value(ValueKind::Day, digits.to_owned()))
}

/// Tells whether a text is certainly a path or an address.
fn is_place(text: &str) -> bool {
    if !text.bytes().any(|it| matches!(it, b'/' | b'.' | b'~')) {
        return false;
    }
    let ending = text.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    let has_ending = ending.is_some_and(|(stem, end)| {
        !stem.is_empty()
            && (1..=5).contains(&end.len())
            && end.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
    });
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-~:@+".contains(c));
    is_plain
        && (text.contains("://") || text.starts_with(['/', '~', '.']) || text.ends_with('/') || has_ending)
}

/// Splits `30s` and `2GB`.
fn with_unit(text: &str) -> Option<(&str, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|at| *at > 0)?;
    let (number, unit) = text.split_at(at);
    let is_unit = ["ms", "s", "min", "h", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "px", "k"];
    is_unit.contains(&unit.to_lowercase().as_str()).then_some((number, unit))
}

/// Tells whether what was said so far is whole.
fn begins_context(token: &Token<'_>) -> bool {
    ["by", "in", "for", "dur", "when", "at"].contains(&&*token.stem)
}

/// Joins words that are one, and numbers with their units; names of things that are numbered become one word.
fn joined<'a>(vocabulary: &'a Vocabulary, tokens: Vec<Token<'a>>) -> Vec<Token<'a>> {
    let mut found: Vec<Token<'a>> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let Some(last) = found.last_mut() else {
            found.push(token);
            continue;
        };
        let is_state = token.stem == "on" && last.is(Fact::Be) && tokens.peek().is_none_or(begins_context);
        if is_state {
            found.push(Token::word(vocabulary, "enabled".into()));
        } else if let Some(both) =
            last.entry.begins_pair.then(|| vocabulary.pair(&last.stem, &token.stem)).flatten()
        {
            *last = Token { is_after_comma: last.is_after_comma, ..Token::word(vocabulary, both.into()) };
        } else if let (Some(ValueKind::Number), Some((what, n))) = (last.value, token.entry.unit) {
            if let Ok(amount) = last.stem.parse::<f64>() {
                last.stem = (amount * n).to_string().into();
            }
            found.push(Token { stem: format!("unit:{what}").into(), ..token });
        } else if last.is(Fact::Numbered) && token.value == Some(ValueKind::Number) {
            last.stem = format!("{} {}", last.stem, token.stem).into();
        } else {
            found.push(token);
        }
    }
    found
}

/// Words that are no forms of those with an `e` more.
const OTHERS: [&str; 6] = ["not", "them", "her", "for", "wher", "don"];

/// Returns what forms of a word have in common.
pub(super) fn stem(word: Cow<'_, str>) -> Cow<'_, str> {
    let mut stem = lower(word);
    if ["use", "uses", "used", "using"].contains(&&*stem) {
        return "use".into();
    }
    let n = stem.len();
    let is_es = |it: &str| ["sses", "shes", "ches", "xes"].iter().any(|end| it.ends_with(end));
    if n >= 5 && stem.ends_with("ies") {
        stem = format!("{}y", &stem[..n - 3]).into();
    } else if n >= 6 && stem.ends_with("ing") {
        shorten(&mut stem, 3);
    } else if (n >= 5 && stem.ends_with("ed") && !stem.ends_with("eed")) || (n >= 5 && is_es(&stem)) {
        shorten(&mut stem, 2);
    } else if n >= 4 && stem.ends_with('s') && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end)) {
        shorten(&mut stem, 1);
    }
    if let [_, _, .., one, other] = stem.as_bytes()
        && one == other
        && one.is_ascii_alphabetic()
    {
        shorten(&mut stem, 1);
    }
    if stem.ends_with('e') && stem.len() > 3 && !OTHERS.contains(&&stem[..stem.len() - 1]) {
        shorten(&mut stem, 1);
    }
    stem
}

/// Takes so many ASCII letters from the end.
fn shorten(text: &mut Cow<'_, str>, n: usize) {
    let rest = text.len().saturating_sub(n);
    match text {
        Cow::Borrowed(text) => *text = &text[..rest],
        Cow::Owned(text) => text.truncate(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            "use uses used using",
            "run runs running",
            "commit commits committed committing",
            "merge merges merged merging",
            "library libraries",
            "pass passes passing",
            "cache caches cached caching",
            "test tests tested testing",
            "lie lies",
            "require requires required requiring",
        ] {
            let stems: BTreeSet<Cow<'_, str>> = forms.split(' ').map(|it| stem(it.into())).collect();
            assert_eq!(stems.len(), 1, "{forms}: {stems:?}");
        }
        let stem = |word: &'static str| stem(word.into());
        assert_ne!(stem("one"), stem("on"));
        assert_ne!(stem("us"), stem("use"));
        assert_ne!(stem("notes"), stem("not"));
        assert_eq!(stem("themes"), stem("theme"));
        assert_eq!(stem("Libraries"), stem("library"));
        assert_eq!((stem("é"), stem("ÉÉs"), stem("ß")), ("é".into(), "éé".into(), "ß".into()));
    }

    #[test]
    fn values_are_known_by_their_form() {
        let vocabulary = Vocabulary::new();
        for (text, expected) in [
            ("port 8080", "port 8080=Number"),
            ("v1.2.3 and 10,000", "1.2.3=Number 10000=Number"),
            ("30s or 2 minutes", "30000=Number unit:time 120000=Number unit:time"),
            (
                "`src/main.rs` https://a.b/c ~/x docs/",
                "src/main.rs=Place https://a.b/c=Place ~/x=Place docs=Place",
            ),
            ("`cargo build --all` `unwrap`", "cargo build --all=Code unwrap"),
            ("Tuesdays at 9:30 (or so), 2026-01-02", "tuesday=Day 9:30=Time 2026-01-02=Day"),
            ("GitHub Actions, pnpm", "github-action=Choice(13) pnpm=Choice(0)"),
            ("step 2 of the plan's end because of that", "step 2 plan end"),
            ("don't", "dont"),
        ] {
            let found = tokens(&vocabulary, text);
            let shown = |it: &Token<'_>| match it.value {
                Some(kind) => format!("{}={kind:?}", it.stem),
                None => it.stem.to_string(),
            };
            let found: Vec<String> =
                found.iter().filter(|it| !it.is(Fact::Small) && !it.is(Fact::Hedge)).map(shown).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
