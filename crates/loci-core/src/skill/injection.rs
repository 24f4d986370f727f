//! Commands in the text of a skill, whose output takes their place before the model reads it.
//!
//! `` !`command` `` at the beginning of a line or behind a space, and blocks fenced with ```` ```! ````.

/// A piece of a skill's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Text that stays.
    Text(&'a str),
    /// A command whose output takes its place.
    Command(&'a str),
}

/// Splits a text at its commands. Joined again, pieces of text and the commands' outputs are what the model reads.
pub fn split_commands(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut begun = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find('!').map(|offset| at + offset) {
        match block_at(text, found).or_else(|| inline_at(text, found)) {
            Some(InjectionSpan { start, command, end }) => {
                push_text(&mut pieces, &text[begun..start]);
                pieces.push(Piece::Command(command));
                (begun, at) = (end, end);
            }
            None => at = found + 1,
        }
    }
    push_text(&mut pieces, &text[begun..]);
    pieces
}

fn push_text<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

struct InjectionSpan<'a> {
    start: usize,
    command: &'a str,
    end: usize,
}

/// Reads a block whose fence has its mark here.
fn block_at(text: &str, mark: usize) -> Option<InjectionSpan<'_>> {
    let start = mark.checked_sub(3).filter(|start| text.get(*start..mark) == Some("```"))?;
    if !(start == 0 || text[..start].ends_with('\n')) {
        return None;
    }
    let (head, body) = text[mark + 1..].split_once('\n')?;
    if !head.trim().is_empty() {
        return None;
    }
    let body_at = text.len() - body.len();
    let mut end = body_at;
    for line in body.split_inclusive('\n') {
        if line.trim() == "```" {
            let command = text[body_at..end].trim_end_matches(['\r', '\n']);
            // The line end behind the fence stays.
            let fence = line.trim_end_matches(['\r', '\n']).len();
            return (!command.trim().is_empty()).then_some(InjectionSpan {
                start,
                command,
                end: end + fence,
            });
        }
        end += line.len();
    }
    None
}

/// Reads a command within a line whose mark is here.
fn inline_at(text: &str, mark: usize) -> Option<InjectionSpan<'_>> {
    let begins_word = text[..mark].chars().next_back().is_none_or(char::is_whitespace);
    let inner = text[mark + 1..].strip_prefix('`').filter(|_| begins_word)?;
    let len = inner.find(['`', '\n']).filter(|len| inner[*len..].starts_with('`'))?;
    let command = &inner[..len];
    (!command.trim().is_empty()).then_some(InjectionSpan { start: mark, command, end: mark + len + 3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders pieces with commands in angle brackets.
    fn rendered(text: &str) -> String {
        split_commands(text)
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => (*text).to_owned(),
                Piece::Command(command) => format!("<{command}>"),
            })
            .collect()
    }

    #[test]
    fn commands_are_found_where_they_are_marked() {
        for (text, expected) in [
            ("Status: !`git status`.", "Status: <git status>."),
            ("!`a` and !`b c`", "<a> and <b c>"),
            ("(!`a`)", "(!`a`)"),
            ("KEY=!`a`", "KEY=!`a`"),
            ("a\t!`b`", "a\t<b>"),
            ("no`!`a``", "no`!`a``"),
            ("wow!`a`", "wow!`a`"),
            ("! `a`", "! `a`"),
            ("!``", "!``"),
            ("!`never closed", "!`never closed"),
            ("!`two\nlines`", "!`two\nlines`"),
            ("Hello!", "Hello!"),
            ("```!\ngit status\ngit log\n```\nafter", "<git status\ngit log>\nafter"),
            ("x\n```!  \r\na\r\n```\r\n", "x\n<a>\r\n"),
            ("```!\na", "```!\na"),
            ("```!\n\n```", "```!\n\n```"),
            ("x ```!\na\n```", "x ```!\na\n```"),
            ("```sh\n!`a`\n```", "```sh\n<a>\n```"),
            ("é!`a` é !`b`é", "é!`a` é <b>é"),
        ] {
            assert_eq!(rendered(text), expected, "{text:?}");
        }
    }
}
