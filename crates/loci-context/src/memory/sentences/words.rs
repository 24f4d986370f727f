//! A sentence as words and values.

use std::collections::BTreeSet;

use super::vocabulary::{Entry, Fact, Vocabulary};

/// One word or value of a sentence.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// What it is compared by.
    pub(super) stem: String,
    pub(super) value: Option<ValueKind>,
    /// Whether it is written like a name: as code, or with a capital letter within a sentence.
    pub(super) is_name: bool,
    /// Whether a comma or colon stands before it.
    pub(super) is_after_comma: bool,
    pub(super) entry: Entry,
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

impl Token {
    pub(super) fn is(&self, fact: Fact) -> bool {
        self.value.is_none() && self.entry.facts.has(fact)
    }

    fn word(vocabulary: &Vocabulary, text: &str) -> Self {
        let stem = stem(text);
        let entry = vocabulary.entry(&stem);
        let stem = entry.same.map_or(stem, self::stem);
        let value = match entry {
            Entry { group: Some(group), .. } => Some(ValueKind::Choice(group)),
            _ if entry.facts.has(Fact::Day) => Some(ValueKind::Day),
            _ => None,
        };
        Self { stem, value, is_name: false, is_after_comma: false, entry }
    }

    fn value(kind: ValueKind, text: impl Into<String>) -> Self {
        let entry = Entry::default();
        Self { stem: text.into(), value: Some(kind), is_name: true, is_after_comma: false, entry }
    }
}

/// Returns the stems of what a memory is about, from its name.
pub(super) fn topic(vocabulary: &Vocabulary, name: &str) -> BTreeSet<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let tokens = words.map(|word| Token::word(vocabulary, word));
    let says_nothing = |it: &Token| [Fact::Small, Fact::Soft, Fact::Generic].iter().any(|fact| it.is(*fact));
    tokens.filter(|it| !says_nothing(it)).map(|it| it.stem).collect()
}

/// Returns the words and values of a sentence; what stands in parentheses, and reasons, are left out.
pub(super) fn tokens(vocabulary: &Vocabulary, sentence: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let (mut depth, mut is_after_comma) = (0_usize, false);
    for piece in pieces(sentence) {
        let opens = piece.starts_with('(');
        depth += usize::from(opens);
        let is_within = depth > 0;
        if piece.trim_end_matches(['.', ',', ';', ':', '!']).ends_with(')') {
            depth = depth.saturating_sub(1);
        }
        if is_within {
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
    ["because", "since", "—", "–", "-", "--", "->", "so"].contains(&piece.to_ascii_lowercase().as_str())
}

/// Splits at spaces, but not within code.
fn pieces(sentence: &str) -> Vec<&str> {
    let (mut found, mut from, mut is_code) = (Vec::new(), 0, false);
    for (at, c) in sentence.char_indices() {
        is_code ^= c == '`';
        if c.is_whitespace() && !is_code {
            found.push(&sentence[from..at]);
            from = at + c.len_utf8();
        }
    }
    found.push(&sentence[from..]);
    found.retain(|piece| !piece.is_empty());
    found
}

/// What stands around words.
const MARKS: [char; 15] = ['*', '_', '"', '\'', '“', '”', '(', ')', '[', ']', ',', ';', ':', '!', '?'];

fn read_piece(vocabulary: &Vocabulary, piece: &str, found: &mut Vec<Token>) {
    let is_first = found.is_empty();
    let bare = piece.trim_matches(MARKS);
    let bare = bare.strip_suffix('.').unwrap_or(bare).trim_matches(MARKS);
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
        found.push(Token::word(vocabulary, unit));
        return;
    }
    let has_apostrophe = bare.contains(['\'', '’']);
    let whole = if has_apostrophe { without_apostrophe(bare) } else { bare.to_lowercase() };
    let is_compound = whole.contains(['-', '/']) && vocabulary.entry(&stem(&whole)).group.is_none();
    let is_name = !is_first && bare.starts_with(char::is_uppercase);
    let mut push = |part: &str| {
        let mut token = Token::word(vocabulary, part);
        token.is_name |= is_name;
        if let Some(number) = token.entry.number {
            token = Token::value(ValueKind::Number, number.to_string());
        }
        found.push(token);
    };
    match is_compound {
        true => whole.split(['-', '/']).filter(|it| !it.is_empty()).for_each(push),
        false => push(&whole),
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
fn code_token(vocabulary: &Vocabulary, code: &str) -> Token {
    let code = code.trim();
    let is_word =
        code.chars().all(|c| c.is_alphanumeric() || "_-".contains(c)) && code.contains(char::is_alphabetic);
    if let Some(token) = plain_value(code) {
        return token;
    }
    if let Some(known) = code.split_once(' ').and_then(|(one, two)| vocabulary.pair(one, two)) {
        return Token { is_name: true, ..Token::word(vocabulary, known) };
    }
    match is_word {
        true => Token { is_name: true, ..Token::word(vocabulary, code) },
        false => Token::value(ValueKind::Code, code.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

/// Reads numbers, versions, times, dates, paths and addresses by their form.
fn plain_value(text: &str) -> Option<Token> {
    let lower = text.to_lowercase();
    let digits =
        lower.strip_prefix('v').filter(|it| it.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(&lower);
    if digits.starts_with(|c: char| c.is_ascii_digit()) {
        let has_only = |extra: &str| digits.chars().all(|c| c.is_ascii_digit() || extra.contains(c));
        if has_only(",.") || (has_only(",.%") && digits.ends_with('%')) {
            return Some(Token::value(ValueKind::Number, digits.replace(',', "").trim_end_matches('%')));
        }
        if has_only(":") || (digits.len() <= 4 && (digits.ends_with("am") || digits.ends_with("pm"))) {
            return Some(Token::value(ValueKind::Time, digits));
        }
        if has_only("-") && digits.len() == 10 {
            return Some(Token::value(ValueKind::Day, digits));
        }
    }
    is_place(text).then(|| Token::value(ValueKind::Place, text.trim_end_matches('/')))
}

/// Tells whether a text is certainly a path or an address.
fn is_place(text: &str) -> bool {
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
fn begins_context(token: &Token) -> bool {
    ["by", "in", "for", "dur", "when", "at"].contains(&token.stem.as_str())
}

/// Joins words that are one, and numbers with their units; names of things that are numbered become one word.
fn joined(vocabulary: &Vocabulary, tokens: Vec<Token>) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let Some(last) = found.last_mut() else {
            found.push(token);
            continue;
        };
        let is_state = token.stem == "on" && last.is(Fact::Be) && tokens.peek().is_none_or(begins_context);
        if is_state {
            found.push(Token::word(vocabulary, "enabled"));
        } else if let Some(both) =
            last.entry.begins_pair.then(|| vocabulary.pair(&last.stem, &token.stem)).flatten()
        {
            *last = Token { is_after_comma: last.is_after_comma, ..Token::word(vocabulary, both) };
        } else if let (Some(ValueKind::Number), Some((what, n))) = (last.value, token.entry.unit) {
            let amount = last.stem.parse::<f64>().map_or(last.stem.clone(), |it| (it * n).to_string());
            last.stem = amount;
            found.push(Token { stem: format!("unit:{what}"), ..token });
        } else if last.is(Fact::Numbered) && token.value == Some(ValueKind::Number) {
            last.stem = format!("{} {}", last.stem, token.stem);
        } else {
            found.push(token);
        }
    }
    found
}

/// Words that are no forms of those with an `e` more.
const OTHERS: [&str; 6] = ["not", "them", "her", "for", "wher", "don"];

/// Returns what forms of a word have in common.
pub(super) fn stem(word: &str) -> String {
    let mut stem = word.to_lowercase();
    if ["use", "uses", "used", "using"].contains(&stem.as_str()) {
        return "use".to_owned();
    }
    let n = stem.len();
    let is_es = |it: &str| ["sses", "shes", "ches", "xes"].iter().any(|end| it.ends_with(end));
    if n >= 5 && stem.ends_with("ies") {
        stem.truncate(n - 3);
        stem.push('y');
    } else if n >= 6 && stem.ends_with("ing") {
        stem.truncate(n - 3);
    } else if (n >= 5 && stem.ends_with("ed") && !stem.ends_with("eed")) || (n >= 5 && is_es(&stem)) {
        stem.truncate(n - 2);
    } else if n >= 4 && stem.ends_with('s') && !["ss", "us", "is"].iter().any(|end| stem.ends_with(end)) {
        stem.truncate(n - 1);
    }
    let end = stem.as_bytes();
    if let [.., one, other] = end
        && end.len() > 3
        && one == other
        && one.is_ascii_alphabetic()
    {
        stem.pop();
    }
    if stem.ends_with('e') && stem.len() > 3 && !OTHERS.contains(&&stem[..stem.len() - 1]) {
        stem.pop();
    }
    stem
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
            let stems: BTreeSet<String> = forms.split(' ').map(stem).collect();
            assert_eq!(stems.len(), 1, "{forms}: {stems:?}");
        }
        assert_ne!(stem("one"), stem("on"));
        assert_ne!(stem("us"), stem("use"));
        assert_ne!(stem("notes"), stem("not"));
        assert_eq!(stem("themes"), stem("theme"));
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
            let shown = |it: &Token| it.value.map_or(it.stem.clone(), |kind| format!("{}={kind:?}", it.stem));
            let found: Vec<String> =
                found.iter().filter(|it| !it.is(Fact::Small) && !it.is(Fact::Hedge)).map(shown).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
