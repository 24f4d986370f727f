//! Output of commands as spans: colours are kept, all other escape sequences go.

use std::sync::Arc;

use super::sanitize::{is_harmful, push_mark};
use super::{Color, Span, Style};

/// Returns the lines of a status line as spans: colours and links (OSC 8) are kept, all else goes.
pub fn parse_status(output: &str) -> Vec<Vec<Span>> {
    parse(output, Parser { keeps_links: true, ..Parser::default() })
}

/// Returns the lines of a command's output as spans. Colours (SGR) become styles, other sequences are taken away, a
/// carriage return starts its line again as it does on a terminal, a backspace takes a sign back.
pub fn parse_output(output: &str) -> Vec<Vec<Span>> {
    parse(output, Parser::default())
}

fn parse(output: &str, mut parser: Parser) -> Vec<Vec<Span>> {
    let mut rest = output;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '\x1b' => parser.escape(rest),
            '\u{9b}' => parser.control_sequence(&rest[c.len_utf8()..]),
            '\n' => {
                parser.end_line();
                &rest[1..]
            }
            '\r' => {
                let after = rest.trim_start_matches('\r');
                if !after.starts_with('\n') && !after.is_empty() {
                    parser.line.clear();
                }
                after
            }
            '\u{8}' => {
                parser.take_back();
                &rest[1..]
            }
            '\x07' | '\0' | '\x0e' | '\x0f' => &rest[1..],
            c => {
                parser.push(c);
                &rest[c.len_utf8()..]
            }
        };
    }
    if !parser.line.is_empty() {
        parser.end_line();
    }
    parser.lines
}

#[derive(Default)]
struct Parser {
    lines: Vec<Vec<Span>>,
    line: Vec<Span>,
    style: Style,
    /// Whether links are kept.
    keeps_links: bool,
    link: Option<Arc<str>>,
}

impl Parser {
    fn push(&mut self, c: char) {
        if self.line.last().is_none_or(|span| span.style != self.style || span.link != self.link) {
            self.line.push(Span { link: self.link.clone(), ..Span::styled("", self.style) });
        }
        if let Some(span) = self.line.last_mut() {
            if is_harmful(c) { push_mark(c, &mut span.text) } else { span.text.push(c) }
        }
    }

    fn take_back(&mut self) {
        while let Some(span) = self.line.last_mut() {
            if span.text.pop().is_some() {
                return;
            }
            self.line.pop();
        }
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
    }

    /// Takes an escape sequence from the front; one that is not whole takes the rest of its line.
    fn escape<'a>(&mut self, text: &'a str) -> &'a str {
        let after = &text[1..];
        match after.chars().next() {
            Some('[') => self.control_sequence(&after[1..]),
            Some(']') if self.keeps_links => {
                let rest = skip_string(&after[1..]);
                self.set_link(&after[1..after.len() - rest.len()]);
                rest
            }
            Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&after[1..]),
            // Two more bytes: which character set.
            Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
                let second = after[1..].chars().next().map_or(0, char::len_utf8);
                &after[1 + second..]
            }
            Some(c @ '0'..='~') => &after[c.len_utf8()..],
            _ => after,
        }
    }

    /// Takes the address of a link, or its end; one that leads to nothing usual is none.
    fn set_link(&mut self, text: &str) {
        let Some(address) = text.strip_prefix("8;").and_then(|rest| rest.split_once(';')) else { return };
        let address = address.1.trim_end_matches(['\x07', '\u{9c}', '\\', '\x1b']);
        let is_usual = ["https://", "http://", "file://", "mailto:"].iter().any(|it| address.starts_with(it));
        let is_clean = address.chars().all(|c| c.is_ascii_graphic());
        self.link = (is_usual && is_clean).then(|| Arc::from(address));
    }

    fn control_sequence<'a>(&mut self, text: &'a str) -> &'a str {
        let Some(end) = text.find(|c: char| !('\x20'..='\x3f').contains(&c)) else { return "" };
        let (parameters, rest) = text.split_at(end);
        let last = rest.chars().next().unwrap_or('\n');
        if !('@'..='~').contains(&last) {
            return rest;
        }
        if last == 'm' && parameters.bytes().all(|b| b.is_ascii_digit() || b == b';' || b == b':') {
            apply_sgr(parameters, &mut self.style);
        }
        &rest[1..]
    }
}

/// Skips an OSC, DCS or the like up to its end, which is BEL or ST; without one, up to the end of the line.
fn skip_string(text: &str) -> &str {
    for (at, c) in text.char_indices() {
        match c {
            '\x07' | '\u{9c}' => return &text[at + c.len_utf8()..],
            '\x1b' => return text[at + 1..].strip_prefix('\\').unwrap_or(&text[at..]),
            '\n' => return &text[at..],
            _ => {}
        }
    }
    ""
}

/// Changes a style as a sequence of SGR parameters says.
fn apply_sgr(parameters: &str, style: &mut Style) {
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse::<u16>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => *style = Style::default(),
            1 => style.is_bold = true,
            2 => style.is_dim = true,
            3 => style.is_italic = true,
            4 => style.is_underlined = true,
            7 => style.is_reversed = true,
            9 => style.is_struck = true,
            22 => (style.is_bold, style.is_dim) = (false, false),
            23 => style.is_italic = false,
            24 => style.is_underlined = false,
            27 => style.is_reversed = false,
            29 => style.is_struck = false,
            30..=37 => style.fg = ansi(number - 30),
            38 => style.fg = extended(&mut numbers).unwrap_or(style.fg),
            39 => style.fg = Color::Default,
            40..=47 => style.bg = ansi(number - 40),
            48 => style.bg = extended(&mut numbers).unwrap_or(style.bg),
            49 => style.bg = Color::Default,
            90..=97 => style.fg = ansi(number - 90 + 8),
            100..=107 => style.bg = ansi(number - 100 + 8),
            _ => {}
        }
    }
}

fn ansi(number: u16) -> Color {
    Color::Ansi(u8::try_from(number).unwrap_or_default())
}

fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<Color> {
    let mut byte = || u8::try_from(numbers.next()?).ok();
    match byte()? {
        5 => Some(Color::Indexed(byte()?)),
        2 => Some(Color::Rgb(byte()?, byte()?, byte()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, expected: &[&str]) {
        let lines: Vec<String> =
            parse_output(output).iter().map(|line| line.iter().map(|s| s.text.as_str()).collect()).collect();
        assert_eq!(lines, expected, "{output:?}");
    }

    #[test]
    fn status_line_keeps_colours_and_links_and_nothing_else() {
        let line = "\x1b[32mok\x1b[0m \x1b]8;;https://x.y/z\x07PR\x1b]8;;\x07\x1b]0;title\x07\x1b[2J\x1b]52;c;aGk=\x07!";
        let spans = parse_status(line).remove(0);
        let shown: Vec<_> = spans.iter().map(|it| (it.text.as_str(), it.link.as_deref())).collect();
        assert_eq!(shown, [("ok", None), (" ", None), ("PR", Some("https://x.y/z")), ("!", None)]);
        assert_eq!(spans[0].style.fg, Color::Ansi(2));
        for evil in ["javascript:x", "https://a\u{202e}b", "x"] {
            let spans = parse_status(&format!("\x1b]8;;{evil}\x1b\\t")).remove(0);
            assert_eq!(spans[0].link, None, "{evil}");
        }
    }

    #[test]
    fn parse_output_takes_escape_sequences_away() {
        check("a\x1b[31mred\x1b[0m\nb", &["ared", "b"]);
        check("\x1b]0;title\x07x", &["x"]);
        check("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", &["link"]);
        check("\x1b[2J\x1b[Hgone\x1b[?25l\x1b(B\x1b=", &["gone"]);
        check("\x1bPq#0\x1b\\sixel", &["sixel"]);
        check("cut \x1b]0;no end\nnext", &["cut ", "next"]);
        check("cut \x1b[12;", &["cut "]);
        check("\u{9b}31mx", &["x"]);
    }

    #[test]
    fn parse_output_moves_as_a_terminal_does() {
        check("10%\r50%\r100%\nok\r\n", &["100%", "ok"]);
        check("abc\u{8}\u{8}X\x07", &["aX"]);
        check("a\u{202e}b", &["a<U+202E>b"]);
        check("\n\nx\n", &["", "", "x"]);
        check("", &[]);
    }

    #[test]
    fn parse_output_keeps_colours_as_styles() {
        let lines = parse_output("\x1b[1;31mA\x1b[22;38;5;200mB\x1b[38;2;1;2;3;44mC\x1b[mD\x1b[91mE");
        let styles: Vec<Style> = lines[0].iter().map(|span| span.style).collect();
        let plain = Style::default();
        let expected = [
            Style { fg: Color::Ansi(1), is_bold: true, ..plain },
            Style { fg: Color::Indexed(200), ..plain },
            Style { fg: Color::Rgb(1, 2, 3), bg: Color::Ansi(4), ..plain },
            plain,
            Style { fg: Color::Ansi(9), ..plain },
        ];
        assert_eq!(styles, expected);
    }
}
