//! The form of a text: its byte-order mark and how its lines end, which changes of its words leave alone.

/// What some programs put before a text.
const BOM: char = '\u{feff}';

/// Returns the text without a byte-order mark.
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// Returns how most lines of a text end; `None` when none does.
pub(super) fn line_end(text: &str) -> Option<&'static str> {
    let (n_lines, n_crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
    (n_lines > 0).then_some(if 2 * n_crlf > n_lines { "\r\n" } else { "\n" })
}

/// Returns a new text in the form of the one whose place it takes: with a byte-order mark where that has one, and with
/// lines that end as most of its lines do.
pub fn in_form_of(old: &str, new: &str) -> String {
    let bom = if old.starts_with(BOM) { "\u{feff}" } else { "" };
    let text = without_bom(new);
    let text = match line_end(old) {
        None => text.to_owned(),
        Some("\r\n") => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        Some(_) => text.replace("\r\n", "\n"),
    };
    format!("{bom}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_text_has_the_form_of_the_old() {
        for (old, new, expected) in [
            ("a\nb\n", "x\r\ny\r\n", "x\ny\n"),
            ("a\r\nb\r\n", "x\ny\r\nz\n", "x\r\ny\r\nz\r\n"),
            ("a\r\nb\r\nc\n", "x\n", "x\r\n"),
            ("a\r\nb\n", "x\n", "x\n"),
            ("\u{feff}a\n", "x\n", "\u{feff}x\n"),
            ("\u{feff}a\r\n", "\u{feff}x\n", "\u{feff}x\r\n"),
            ("a\n", "\u{feff}x\n", "x\n"),
            ("a", "x\r\n", "x\r\n"),
            ("a\r\n", "x\ry\n", "x\ry\r\n"),
        ] {
            assert_eq!(in_form_of(old, new), expected, "{new:?} for {old:?}");
        }
    }
}
