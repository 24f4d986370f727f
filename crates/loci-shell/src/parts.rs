//! Cheap, conservative splitting of lines that are not understood.

use crate::parse::RESERVED;

/// Splits a line at `;`, `&`, `|` and newlines that are neither quoted nor in brackets; empty parts are left out.
///
/// It serves questions where a wrong answer is harmless, such as which program set the exit code.
pub fn top_level_parts(command: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    let mut chars = command.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                chars.next();
            }
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(c),
            (None, '(' | '{') => depth += 1,
            (None, ')' | '}') => depth = depth.saturating_sub(1),
            (None, '&') if command[..at].ends_with('>') || command[at + 1..].starts_with('>') => {}
            (None, ';' | '&' | '|' | '\n') if depth == 0 => {
                parts.push(&command[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&command[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Returns everything in a line that could be a command: the line itself, and its pieces between any operators,
/// brackets and backquotes, with quotes, backslashes and leading keywords removed.
pub(crate) fn rough_parts(command: &str) -> Vec<String> {
    let joined = command.replace("\\\n", "");
    let bare: String = joined.chars().filter(|c| !"'\"\\".contains(*c)).collect();
    let mut parts = vec![command.trim().to_owned()];
    // Quotes may hold a command, or be part of one.
    for text in [bare, joined.replace(['\'', '"', '\\', '=', ':'], ";")] {
        let pieces = text.split(|c: char| ";&|()`\n\r{}<>$!,".contains(c) || (c.is_control() && c != '\t'));
        for piece in pieces {
            let words =
                piece.split_whitespace().skip_while(|word| RESERVED.contains(word) || word.contains('='));
            let part = words.collect::<Vec<_>>().join(" ");
            if !part.is_empty() && !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    parts
}

/// Returns a rough part and everything behind each of its words: any of them may be the command.
pub(crate) fn rough_readings(part: &str) -> Vec<String> {
    let words: Vec<&str> = part.split_whitespace().collect();
    let suffixes = (1..words.len().min(32)).map(|at| words[at..].join(" "));
    let based = words.first().and_then(|word| word.rsplit_once('/')).map(|(_, base)| {
        let rest = words[1..].iter().copied();
        std::iter::once(base).chain(rest).collect::<Vec<_>>().join(" ")
    });
    std::iter::once(part.to_owned()).chain(based).chain(suffixes).collect()
}
