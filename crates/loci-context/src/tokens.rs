//! How many tokens a text is, roughly, when nobody has counted.

/// Characters of prose to a token.
const PROSE: usize = 4;
/// Characters of JSON to a token.
const JSON: usize = 2;

/// Estimates the tokens of prose.
pub fn prose_tokens(text: &str) -> u64 {
    tokens(text, PROSE)
}

/// Estimates the tokens of JSON.
pub fn json_tokens(text: &str) -> u64 {
    tokens(text, JSON)
}

fn tokens(text: &str, chars_a_token: usize) -> u64 {
    u64::try_from(text.chars().count().div_ceil(chars_a_token)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_letters_of_prose_and_two_of_json() {
        for (text, prose, json) in [("", 0, 0), ("a", 1, 1), ("abcd", 1, 2), ("abcde", 2, 3), ("éééé", 1, 2)]
        {
            assert_eq!((prose_tokens(text), json_tokens(text)), (prose, json), "{text}");
        }
    }
}
