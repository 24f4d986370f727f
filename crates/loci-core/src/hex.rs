//! Digests as people and file names have them.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_lower_case_digits() {
        assert_eq!(to_hex(&[]), "");
        assert_eq!(to_hex(&[0, 9, 10, 0xab, 0xff]), "00090aabff");
    }
}
