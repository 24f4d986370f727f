//! Comments in instruction files, which are for people and not for the model.
//!
//! A comment counts when it begins a line (indented by three spaces at most), as Markdown has it, and ends
//! with `-->`. Comments inside a fenced code block stay, and so does one that never ends. Words after the end
//! of a comment stay too.

/// Returns Markdown without the HTML comments that stand on lines of their own.
pub fn strip_html_comments(markdown: &str) -> String {
    if !markdown.contains("<!--") {
        return markdown.to_owned();
    }
    let mut kept = String::with_capacity(markdown.len());
    let mut rest = markdown;
    let mut fence: Option<Fence> = None;
    while !rest.is_empty() {
        if fence.is_none()
            && let Some(after) = after_comment(rest)
        {
            rest = after;
            continue;
        }
        let (line, following) = split_line(rest);
        fence = match fence {
            Some(fence) if fence.is_closed_by(line) => None,
            Some(fence) => Some(fence),
            None => Fence::opened_by(line),
        };
        kept.push_str(line);
        rest = following;
    }
    kept
}

/// Returns what follows the comment that `text` begins with.
fn after_comment(text: &str) -> Option<&str> {
    let body = unindented(text)?.strip_prefix("<!--")?;
    let after = &body[body.find("-->")? + 3..];
    let (line, following) = split_line(after);
    Some(if line.trim().is_empty() { following } else { after.trim_start_matches([' ', '\t']) })
}

/// Returns the text behind at most three spaces; four make it a code block.
fn unindented(text: &str) -> Option<&str> {
    let body = text.trim_start_matches(' ');
    (text.len() - body.len() <= 3).then_some(body)
}

/// Splits after the first newline.
pub(crate) fn split_line(text: &str) -> (&str, &str) {
    text.split_at(text.find('\n').map_or(text.len(), |newline| newline + 1))
}

/// The line that opened a code block: its character and how many of them.
#[derive(Clone, Copy)]
pub(crate) struct Fence {
    mark: u8,
    length: usize,
}

impl Fence {
    pub(crate) fn opened_by(line: &str) -> Option<Self> {
        let body = unindented(line)?;
        let mark = *body.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let length = run_length(body, mark);
        let has_backtick_after = mark == b'`' && body[length..].contains('`');
        (length >= 3 && !has_backtick_after).then_some(Self { mark, length })
    }

    pub(crate) fn is_closed_by(self, line: &str) -> bool {
        unindented(line).is_some_and(|body| {
            let length = run_length(body, self.mark);
            length >= self.length && body[length..].trim().is_empty()
        })
    }
}

fn run_length(text: &str, mark: u8) -> usize {
    text.bytes().take_while(|byte| *byte == mark).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markdown: &str, expected: &str) {
        assert_eq!(strip_html_comments(markdown), expected, "{markdown:?}");
    }

    #[test]
    fn comments_on_lines_of_their_own_go() {
        check("a\n<!-- x -->\nb\n", "a\nb\n");
        check("<!-- x\ny\n-->\nb", "b");
        check("  <!-- x -->  \r\nb", "b");
        check("<!-- a --><!-- b -->\nc", "c");
        check("<!-- a -->", "");
        check("<!-- a --> words\n", "words\n");
    }

    #[test]
    fn comments_within_words_or_code_stay() {
        for markdown in [
            "text <!-- x --> text\n",
            "```\n<!-- x -->\n```\n",
            "~~~~ html\n<!-- x -->\n~~~\n<!-- y -->\n~~~~\n",
            "    <!-- indented code -->\n",
            "<!-- never ends\ntext\n",
            "no comment\n",
            "",
        ] {
            check(markdown, markdown);
        }
    }

    #[test]
    fn a_comment_after_a_closed_fence_goes() {
        check("```\ncode\n```\n<!-- x -->\nend\n", "```\ncode\n```\nend\n");
        check("``` not a ` fence\n<!-- x -->\nend\n", "``` not a ` fence\nend\n");
    }

    #[test]
    fn a_fence_inside_a_comment_opens_nothing() {
        check("<!--\n```\n-->\n<!-- x -->\nend\n", "end\n");
    }
}
