//! JSON of servers that cut text between the two halves of a character: `"\ud83e"` alone is no JSON string.
//!
//! In text that grows, the other half often begins the next piece, and the two make the character: a [`HalfJoiner`] holds the
//! first until then. Elsewhere, and where none follows, the sign for an unreadable character stands for a half.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// Where the stand-ins for halves begin, among characters that nobody uses; halves are `0xd800..0xe000`.
const STAND_INS: u32 = 0x10_f000;
const HALVES: std::ops::Range<u32> = 0xd800..0xe000;
const FIRST_HALVES: std::ops::Range<u32> = 0xd800..0xdc00;

/// Parses JSON; where a lone surrogate is in the way, the sign for an unreadable character stands for it.
pub(crate) fn parse_lenient<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match whole_characters(text) {
        Cow::Owned(text) => serde_json::from_str(&text),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Returns JSON with the sign for an unreadable character in the place of each half.
pub(crate) fn whole_characters(text: &str) -> Cow<'_, str> {
    replace_halves(text, |_| '\u{fffd}')
}

/// Returns JSON with a stand-in in the place of each half, which a [`HalfJoiner`] reads; `None` if there is none.
pub(crate) fn with_stand_ins(text: &str) -> Option<String> {
    match replace_halves(text, stand_in) {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}

/// Returns a text with the sign for an unreadable character in the place of each stand-in.
pub(crate) fn without_stand_ins(text: &str) -> String {
    text.chars().map(|c| half_of(c).map_or(c, |_| char::REPLACEMENT_CHARACTER)).collect()
}

/// Parses a piece of a growing text. Lone surrogates come out as stand-ins; the second value tells whether there were any.
pub(crate) fn parse_piece<T: DeserializeOwned>(text: &str) -> Result<(T, bool), serde_json::Error> {
    match serde_json::from_str(text) {
        Ok(value) => Ok((value, false)),
        Err(error) => match with_stand_ins(text) {
            Some(text) => Ok((serde_json::from_str(&text)?, true)),
            None => Err(error),
        },
    }
}

/// Joins the halves of characters that came in two pieces of one text.
#[derive(Debug, Default)]
pub(crate) struct HalfJoiner {
    first: Option<u32>,
}

impl HalfJoiner {
    /// Returns a piece with whole characters; a half at its end is held until the next. `has_halves` is what
    /// [`parse_piece`] said of the piece.
    pub(crate) fn join(&mut self, piece: String, has_halves: bool) -> String {
        if !has_halves && self.first.is_none() {
            return piece;
        }
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            let half = if has_halves { half_of(c) } else { None };
            match (self.first.take(), half) {
                (Some(first), Some(second)) if !FIRST_HALVES.contains(&second) => {
                    out.push(whole(first, second));
                }
                (first, half) => {
                    out.extend(first.map(|_| char::REPLACEMENT_CHARACTER));
                    match half {
                        None => out.push(c),
                        Some(half) if FIRST_HALVES.contains(&half) => self.first = Some(half),
                        Some(_) => out.push(char::REPLACEMENT_CHARACTER),
                    }
                }
            }
        }
        out
    }

    /// Returns what stands for a half whose other never came.
    pub(crate) fn rest(&mut self) -> Option<char> {
        self.first.take().map(|_| char::REPLACEMENT_CHARACTER)
    }
}

fn whole(first: u32, second: u32) -> char {
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn stand_in(half: u32) -> char {
    char::from_u32(STAND_INS + half - HALVES.start).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn half_of(c: char) -> Option<u32> {
    let half = u32::from(c).checked_sub(STAND_INS)? + HALVES.start;
    HALVES.contains(&half).then_some(half)
}

/// Replaces escapes of halves; everything else keeps its bytes.
fn replace_halves(text: &str, stand_in: impl Fn(u32) -> char) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut has_halves = false;
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let behind = match surrogate(from) {
            Some(first) if FIRST_HALVES.contains(&first) && is_second(from.get(6..)) => {
                out.push_str(&from[..12]);
                12
            }
            Some(half) => {
                has_halves = true;
                out.push(stand_in(half));
                6
            }
            // An escaped backslash must not be taken for the beginning of the next escape.
            None => {
                let len = from.char_indices().nth(2).map_or(from.len(), |(idx, _)| idx);
                out.push_str(&from[..len]);
                len
            }
        };
        rest = &from[behind..];
    }
    out.push_str(rest);
    if has_halves { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// Reads `\uXXXX` at the beginning of a text, if it is half of a character.
fn surrogate(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|code| HALVES.contains(code))
}

fn is_second(text: Option<&str>) -> bool {
    text.and_then(surrogate).is_some_and(|half| !FIRST_HALVES.contains(&half))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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

    fn joined(pieces: &[&str]) -> String {
        let mut joiner = HalfJoiner::default();
        let mut text = String::new();
        for piece in pieces {
            let (piece, has_halves) = parse_piece::<String>(piece).unwrap();
            text.push_str(&joiner.join(piece, has_halves));
        }
        text.extend(joiner.rest());
        text
    }

    #[test]
    fn halves_of_two_pieces_make_a_character() {
        for (pieces, expected) in [
            (&[r#""a\ud83d""#, r#""\ude00b""#][..], "a\u{1f600}b"),
            (&[r#""\ud83d""#, r#""""#, r#""\ude00""#], "\u{1f600}"),
            (&[r#""a\ud83d""#, r#""b""#], "a\u{fffd}b"),
            (&[r#""a\ud83d""#, r#""\ud83d""#, r#""\ude00""#], "a\u{fffd}\u{1f600}"),
            (&[r#""a\ud83d""#], "a\u{fffd}"),
            (&[r#""\ude00b""#], "\u{fffd}b"),
            (&[r#""\ud83d""#, "\"\u{10f000}\""], "\u{fffd}\u{10f000}"),
        ] {
            assert_eq!(joined(pieces), expected, "{pieces:?}");
        }
    }

    proptest! {
        #[test]
        fn text_that_is_cut_by_its_units_comes_out_whole(text in "[a-zé😀🦀\u{10ffff}]{0,8}", size in 1usize..4) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let escaped = |units: &[u16]| {
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
            };
            let pieces: Vec<String> = units.chunks(size).map(|it| format!("\"{}\"", escaped(it))).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            prop_assert_eq!(joined(&pieces), text);
        }
    }
}
