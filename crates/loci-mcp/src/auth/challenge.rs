//! What a server says when it refuses: the `WWW-Authenticate` header (RFC 9110, RFC 6750, RFC 9728), read leniently.

/// What a refusal asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BearerChallenge {
    /// Where the resource is described.
    pub(crate) resource_metadata: Option<String>,
    /// What a token must allow.
    pub(crate) scope: Option<String>,
    /// What is wrong with the one that was sent.
    pub(crate) error: Option<String>,
}

/// Reads a header; none when it asks for something else than a token.
pub(crate) fn parse(header: &str) -> Option<BearerChallenge> {
    let mut found: Option<BearerChallenge> = None;
    let mut is_bearer = false;
    for part in parts(header) {
        match part {
            Part::Scheme(scheme) => {
                is_bearer = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("dpop");
                if is_bearer {
                    found.get_or_insert_default();
                }
            }
            Part::Parameter(name, value) if is_bearer => {
                let Some(challenge) = &mut found else { continue };
                let slot = match name.to_ascii_lowercase().as_str() {
                    "resource_metadata" => &mut challenge.resource_metadata,
                    "scope" => &mut challenge.scope,
                    "error" => &mut challenge.error,
                    _ => continue,
                };
                if slot.is_none() && !value.trim().is_empty() {
                    *slot = Some(value);
                }
            }
            Part::Parameter(..) => {}
        }
    }
    found
}

enum Part<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

/// Splits a header into schemes and parameters; what is neither is skipped.
fn parts(header: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if rest.is_empty() {
            return parts;
        }
        let end = rest.find(|c: char| c == '=' || c == ',' || c.is_whitespace()).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        match behind.strip_prefix('=') {
            Some(value) => {
                let (value, behind) = value_of(value.trim_start());
                parts.push(Part::Parameter(word, value));
                rest = behind;
            }
            None => {
                parts.push(Part::Scheme(word));
                rest = behind;
            }
        }
    }
}

/// Reads a value, quoted or not, and returns what is behind it.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders a header as `metadata|scope|error`.
    fn check(header: &str, expected: &str) {
        let shown = match parse(header) {
            None => "none".to_owned(),
            Some(it) => [it.resource_metadata, it.scope, it.error].map(Option::unwrap_or_default).join("|"),
        };
        assert_eq!(shown, expected, "{header}");
    }

    #[test]
    fn bearer_challenges_are_read_among_others() {
        for (header, expected) in [
            ("Bearer", "||"),
            (r#"Bearer resource_metadata="https://a/.well-known/x""#, "https://a/.well-known/x||"),
            (r#"bearer scope="a b", error="insufficient_scope""#, "|a b|insufficient_scope"),
            (r#"Bearer realm="x, y", error=invalid_token ,scope = "q\"r" "#, "|q\"r|invalid_token"),
            (r#"Basic realm="x", Bearer scope="s""#, "|s|"),
            (r#"Bearer scope="s", Basic realm="x", scope="t""#, "|s|"),
            (r#"DPoP algs="ES256""#, "||"),
            (r#"Basic realm="x""#, "none"),
            ("", "none"),
            (r#"Bearer scope="unclosed"#, "|unclosed|"),
            ("Bearer =,,= = ,", "none"),
        ] {
            check(header, expected);
        }
    }
}
