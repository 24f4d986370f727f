//! Bytes as hexadecimal digits: digests in file names, and what stands behind a `%` in addresses.
//!
//! By hand, because a crate for either would be longer than its use.

/// Writes bytes as lower-case hex.
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Reads bytes of two digits each, in either case; `None` for anything else.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| byte_of(high, low)).collect()
}

/// Reads text in which `%` and two digits stand for a byte; `None` where digits are missing, or the whole is no UTF-8.
pub fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => byte_of(rest.next()?, rest.next()?)?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_lower_case_digits() {
        assert_eq!(to_hex(&[]), "");
        assert_eq!(to_hex(&[0, 9, 10, 0xab, 0xff]), "00090aabff");
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&all)), Some(all));
    }

    #[test]
    fn only_pairs_of_digits_are_bytes() {
        assert_eq!((from_hex(""), from_hex("0aFF")), (Some(vec![]), Some(vec![10, 255])));
        for text in ["0", "0g", "+1", "0x", "ä", "1 2 "] {
            assert_eq!(from_hex(text), None, "{text}");
        }
    }

    #[test]
    fn percent_stands_for_a_byte_and_nothing_is_guessed() {
        for (text, expected) in [
            ("a%20b", Some("a b")),
            ("%c3%A4", Some("ä")),
            ("plain", Some("plain")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%+1", None),
            ("%ff", None),
        ] {
            assert_eq!(decode_percent(text).as_deref(), expected, "{text}");
        }
    }
}
