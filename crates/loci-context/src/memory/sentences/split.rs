//! A Markdown text as sentences.
//!
//! Code, headings, tables and HTML say nothing here. Lines of a paragraph belong together; a list item ends what was before it.

/// Returns the sentences of a text, without the marks of lists and quotations.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut is_code, mut paragraph) = (false, None);
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let (line, from) = (whole.trim(), at);
        at += whole.len();
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        let is_plain = !is_code && !is_fence && !line.is_empty() && !line.starts_with(['#', '|', '<']);
        is_code ^= is_fence;
        if !is_plain || is_item(line) {
            end(text, paragraph.take(), from, &mut found);
        }
        if is_plain {
            paragraph = paragraph.or(Some(from));
        }
    }
    end(text, paragraph, text.len(), &mut found);
    found
}

/// Splits the paragraph that ends here.
fn end<'a>(text: &'a str, from: Option<usize>, to: usize, found: &mut Vec<&'a str>) {
    if let Some(from) = from {
        split_paragraph(unmarked(text[from..to].trim()), found);
    }
}

/// Tells whether a line begins something of its own.
fn is_item(line: &str) -> bool {
    unmarked(line).len() < line.len()
}

/// Takes the mark of a list item or quotation away.
fn unmarked(line: &str) -> &str {
    let mark = |it: &str| line.strip_prefix(it).filter(|rest| rest.starts_with(' '));
    let line = ["-", "*", "+", ">"].into_iter().find_map(mark).map_or(line, str::trim_start);
    match line.split_once(". ") {
        Some((number, rest)) if !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()) => rest,
        _ => line,
    }
}

/// Splits a paragraph where a sentence ends, but not within code.
fn split_paragraph<'a>(line: &'a str, found: &mut Vec<&'a str>) {
    let (mut from, mut is_code) = (0, false);
    let bytes = line.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        is_code ^= *byte == b'`';
        let is_followed = bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace());
        if !is_code && is_followed && b".!?;".contains(byte) && !is_short_form(&line[from..at]) {
            found.push(line[from..=at].trim());
            from = at + 1;
        }
    }
    found.push(line[from..].trim());
    found.retain(|sentence| !sentence.is_empty());
}

/// Tells whether a full stop belongs to the word before it.
fn is_short_form(before: &str) -> bool {
    ["e.g", "i.e", "etc", "vs", "approx", "no", "cf"]
        .iter()
        .any(|it| before.rsplit([' ', '(']).next().is_some_and(|word| word.eq_ignore_ascii_case(it)))
        && !before.ends_with(" no")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_sentences() {
        let text = "# Heading.\n\nUse tabs. Never `a. b`; it is v1.2 now!\n- one item\n2. Second? Yes, e.g. this.\n\
                    ```\nlet x = 1. ;\n```\n| a | b |\n> quoted\n\nOver two\n  lines.\n- and\n  one.";
        let expected = [
            "Use tabs.",
            "Never `a. b`;",
            "it is v1.2 now!",
            "one item",
            "Second?",
            "Yes, e.g. this.",
            "quoted",
            "Over two\n  lines.",
            "and\n  one.",
        ];
        assert_eq!(sentences(text), expected);
        assert_eq!(sentences("  \n"), [""; 0]);
    }
}
