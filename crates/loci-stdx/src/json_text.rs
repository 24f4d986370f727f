//! Texts as JSON writes them, for lists of many: what needs no escape, which is nearly everything, is copied as it is.
//! By hand for that alone: `serde_json`, whose bytes these are, looks at one letter after the other.

/// Appends a text with its quotes; the same bytes that `serde_json` would write.
pub fn put_json_text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    match has_escapes(bytes) {
        true => bytes.iter().for_each(|byte| put_byte(out, *byte)),
        false => out.extend_from_slice(bytes),
    }
    out.push(b'"');
}

/// Looks at all bytes rather than up to the first: many at once.
fn has_escapes(bytes: &[u8]) -> bool {
    let any = |part: &[u8]| part.iter().fold(false, |found, byte| found | needs_escape(*byte));
    let (parts, rest) = bytes.as_chunks::<32>();
    parts.iter().any(|part| any(part)) || any(rest)
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn put_byte(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        0..0x20 => {
            out.extend_from_slice(b"\\u00");
            return out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        _ => return out.push(byte),
    };
    out.extend([b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_written_as_serde_json_writes_them() {
        let all: String = (0..0x250).filter_map(char::from_u32).collect();
        let mut texts: Vec<String> = all.chars().map(String::from).collect();
        // An escape at every place of a part, and beyond it.
        texts.extend((0..70).map(|at| format!("{}\"{}", "é".repeat(at / 2), "x".repeat(70 - at))));
        texts.extend([String::new(), all, "plain".repeat(20), "\u{1f600}\u{2028}".to_owned()]);
        for text in texts {
            let mut out = b"before".to_vec();
            put_json_text(&mut out, &text);
            assert_eq!(out[6..], *serde_json::to_vec(&text).unwrap(), "{text:?}");
        }
    }
}
