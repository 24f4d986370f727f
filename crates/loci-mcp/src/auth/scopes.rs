//! What a login asks to be allowed.
//!
//! What the entry pins is all that is asked for. Otherwise it is what the server's refusal names, else what a configured
//! description of the authorization server offers, else what the resource says it has, else nothing: then the
//! authorization server decides. What an earlier login was given stays asked for.

/// What is known of scopes when a login begins; each is a text of words.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScopeSources<'a> {
    /// What the entry pins.
    pub(crate) pinned: Option<&'a str>,
    /// What the refusal names.
    pub(crate) challenge: Option<&'a str>,
    /// What the description offers that the entry points at.
    pub(crate) configured_metadata: Option<&'a str>,
    /// What the resource says it has.
    pub(crate) resource: Option<&'a str>,
    /// What an earlier login was given, and what a call was refused for.
    pub(crate) earlier: [Option<&'a str>; 2],
    /// Whether the authorization server offers `offline_access`.
    pub(crate) has_offline_access: bool,
}

const OFFLINE: &str = "offline_access";

/// Returns what to ask for; none means that nothing is said.
pub(crate) fn choose_scopes(sources: ScopeSources<'_>) -> Option<String> {
    let chosen = match sources.pinned {
        Some(pinned) => union(&[Some(pinned)]),
        None => {
            let base = sources.challenge.or(sources.configured_metadata).or(sources.resource);
            union(&[sources.earlier[0], sources.earlier[1], base])
        }
    }?;
    // Without it many servers give nothing to renew a token with.
    match sources.has_offline_access {
        true => union(&[Some(&chosen), Some(OFFLINE)]),
        false => Some(chosen),
    }
}

/// Returns all words of some texts, each once, in their order; none when there is none.
pub(crate) fn union(texts: &[Option<&str>]) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for word in texts.iter().flatten().flat_map(|text| text.split_whitespace()) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// Tells whether every word of one text is in another.
pub(crate) fn covers(all: Option<&str>, some: &str) -> bool {
    let all: Vec<&str> = all.unwrap_or_default().split_whitespace().collect();
    some.split_whitespace().all(|word| all.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_comes_before_the_resource_and_a_pin_before_all() {
        let all = ScopeSources {
            pinned: Some("p"),
            challenge: Some("h1 h2"),
            configured_metadata: Some("m"),
            resource: Some("r"),
            earlier: [Some("old"), None],
            has_offline_access: false,
        };
        let check = |sources: ScopeSources<'_>, expected: Option<&str>| {
            assert_eq!(choose_scopes(sources).as_deref(), expected, "{sources:?}");
        };
        check(all, Some("p"));
        check(ScopeSources { has_offline_access: true, ..all }, Some("p offline_access"));
        let free = ScopeSources { pinned: None, ..all };
        check(free, Some("old h1 h2"));
        check(ScopeSources { earlier: [Some("h1 a"), Some("h2 b")], ..free }, Some("h1 a h2 b"));
        check(ScopeSources { challenge: None, earlier: [None; 2], ..free }, Some("m"));
        check(ScopeSources { resource: Some("r r s"), ..ScopeSources::default() }, Some("r s"));
        check(ScopeSources { has_offline_access: true, ..ScopeSources::default() }, None);
    }

    #[test]
    fn covering_is_by_words() {
        for (all, some, expected) in
            [(Some("a b"), "b", true), (Some("ab"), "a", false), (None, "a", false), (None, "", true)]
        {
            assert_eq!(covers(all, some), expected, "{all:?} {some}");
        }
    }
}
