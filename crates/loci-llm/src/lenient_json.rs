//! JSON of servers that cut text between the two halves of a character: `"\ud83e"` alone is no JSON string.

use serde::de::DeserializeOwned;

/// Parses JSON; where a lone surrogate is in the way, the sign for an unreadable character stands for it.
pub(crate) fn parse_lenient<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match text.contains("\\u") {
        true => serde_json::from_str(&without_lone_surrogates(text)),
        false => Err(error),
    })
}

fn without_lone_surrogates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (escape, behind) = match surrogate(from) {
            Some(0xd800..0xdc00) if matches!(surrogate(&from[6..]), Some(0xdc00..0xe000)) => {
                (&from[..12], 12)
            }
            Some(_) => ("\\ufffd", 6),
            // An escaped backslash must not be taken for the beginning of the next escape.
            None => {
                let len = from.char_indices().nth(2).map_or(from.len(), |(idx, _)| idx);
                (&from[..len], len)
            }
        };
        out.push_str(escape);
        rest = &from[behind..];
    }
    out.push_str(rest);
    out
}

/// Reads `\uXXXX` at the beginning of a text, if it is half of a character.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| (0xd800..0xe000).contains(code))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn lone_surrogates_do_not_break_a_chunk() {
        for (text, expected) in [
            (r#""a\ud83eb""#, "a\u{fffd}b"),
            (r#""\udd80""#, "\u{fffd}"),
            (r#""\ud83e\udd80""#, "\u{1f980}"),
            (r#""\ud83e\ud83e\udd80""#, "\u{fffd}\u{1f980}"),
            (r#""\\ud83e\ud83e""#, "\\ud83e\u{fffd}"),
            (r#""\u0000\ud800""#, "\0\u{fffd}"),
        ] {
            assert_eq!(parse_lenient::<Value>(text).unwrap(), expected, "{text}");
        }
        assert!(parse_lenient::<Value>(r#"{"\u0041"#).is_err());
        assert!(parse_lenient::<Value>("nonsense").is_err());
    }
}
