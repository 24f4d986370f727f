//! Programs of `awk`, as far as they run commands and name files.
//!
//! They are taken apart into words, strings and patterns, no further. Awks differ about where a pattern begins and ends:
//! where a slash could divide or begin one, both readings count, and one whose end depends on whether brackets protect
//! a slash counts as running.

use super::{Named, is_vague};
use crate::value::Value;

/// Returns true when the arguments of an `awk` could make it run commands.
pub(super) fn could_run(arguments: &[Value]) -> bool {
    let mut codes: Vec<&Value> = Vec::new();
    let mut has_program = false;
    let mut rest = arguments.iter();
    while let Some(value) = rest.next() {
        match value.text.as_str() {
            "--" | "--posix" | "--csv" | "--re-interval" | "--traditional" | "--sandbox" | "-S" | "-c"
            | "-r" | "-b" | "-M" | "-s" | "-N" | "-O" | "-t" | "-P" => {}
            "-i" if rest.clone().next().is_some_and(|next| next.text == "inplace") => {
                rest.next();
            }
            "-F" | "-v" | "--field-separator" | "--assign" => {
                rest.next();
            }
            "-f" | "--file" => {
                has_program = true;
                rest.next();
            }
            "-e" | "--source" => {
                has_program = true;
                codes.extend(rest.next());
            }
            text if text.starts_with("-F") || text.starts_with("-v") => {}
            text if text.starts_with("--field-separator=") || text.starts_with("--assign=") => {}
            text if text.starts_with("-f") || text.starts_with("--file=") => has_program = true,
            text if text.starts_with('-') && text.len() > 1 => return true,
            _ if !has_program => {
                has_program = true;
                codes.push(value);
            }
            _ => {}
        }
    }
    codes.iter().any(|code| is_vague(code) || read(&code.text).runs)
}

/// What a program does beside reading its input and printing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AwkProgram {
    /// Whether it runs commands, opens connections, or loads what nobody sees here.
    pub(crate) runs: bool,
    /// Files it writes.
    pub(crate) writes: Vec<Named>,
    /// Files it reads by `getline`.
    pub(crate) reads: Vec<Named>,
}

/// In how many ways a program is read at most.
const MOST_READINGS: usize = 32;

/// Reads a program, in every way that an awk could.
pub(crate) fn read(code: &str) -> AwkProgram {
    let chars: Vec<char> = code.chars().collect();
    let mut readings = vec![Reading::default()];
    let mut whole = AwkProgram::default();
    let (mut n_readings, mut n_possible) = (0, 0);
    while let Some(mut reading) = readings.pop() {
        n_readings += 1;
        if n_readings > MOST_READINGS {
            whole.add_anything();
            break;
        }
        reading.finish(&chars, &mut readings);
        if reading.is_broken {
            continue;
        }
        n_possible += 1;
        let program = read_tokens(&reading.tokens);
        whole.runs |= program.runs;
        if reading.is_odd {
            whole.add_anything();
        }
        whole.writes.extend(program.writes);
        whole.reads.extend(program.reads);
    }
    // What nobody could read may still be one to some awk.
    if n_possible == 0 {
        whole.add_anything();
    }
    whole
}

impl AwkProgram {
    /// Notes that nobody knows what it does.
    fn add_anything(&mut self) {
        self.runs = true;
        self.writes.push(Named::Unknown);
        self.reads.push(Named::Unknown);
    }
}

/// Reads one of the ways to take a program apart.
fn read_tokens(tokens: &[Token]) -> AwkProgram {
    let mut program = AwkProgram::default();
    let mut printing: Option<usize> = None;
    let mut reading = false;
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Word(word) if matches!(word.as_str(), "print" | "printf") => printing = Some(depth),
            Token::Word(word) if word == "getline" => reading = true,
            // The files that are read besides are those of its arguments.
            Token::Word(word) if word == "ARGV" && is_set(&tokens[..at], &tokens[at + 1..]) => {
                program.reads.push(Named::Unknown);
            }
            Token::Word(word) => program.runs |= word == "system",
            Token::Text(text) => program.runs |= text.starts_with("/inet"),
            Token::Pattern(text) => {
                let hides = text.contains('|') && text.contains('"');
                program.runs |= hides || text.contains("system") || text.contains("getline");
            }
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            Token::Sign(';' | '\n' | '}' | '{') => (printing, reading) = (None, false),
            Token::Sign('|' | '@') => program.runs = true,
            Token::Sign('>') if printing == Some(depth) => {
                program.writes.extend(target(&tokens[at + 1..]));
                printing = None;
            }
            Token::Sign('<') if reading => {
                program.reads.extend(target(&tokens[at + 1..]));
                reading = false;
            }
            Token::Sign(_) => {}
        }
    }
    program
}

/// Returns true when an array is given elements: by an assignment to one, or by `split`.
fn is_set(before: &[Token], behind: &[Token]) -> bool {
    let mut depth = 0_usize;
    let end = behind.iter().position(|token| {
        match token {
            Token::Sign('[') => depth += 1,
            Token::Sign(']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let rest = end.and_then(|end| behind.get(end + 1..)).unwrap_or_default();
    let is_assigned = matches!(rest, [Token::Sign('='), next, ..] if *next != Token::Sign('='));
    let is_split = before.iter().any(|token| *token == Token::Word("split".to_owned()));
    is_assigned || is_split
}

/// Returns what is written to or read from; a string alone is a name, all else only the run will tell.
fn target(behind: &[Token]) -> Option<Named> {
    let behind = match behind {
        [Token::Sign('>'), rest @ ..] => rest,
        rest => rest,
    };
    let ends = |token: Option<&Token>| matches!(token, None | Some(Token::Sign(';' | '\n' | '}' | ')')));
    match behind {
        [Token::Text(name), rest @ ..] if ends(rest.first()) && !name.contains('\\') => {
            let is_stream = matches!(name.as_str(), "/dev/stdout" | "/dev/stderr" | "-");
            (!is_stream).then(|| Named::File(name.clone()))
        }
        _ => Some(Named::Unknown),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Pattern(String),
    Sign(char),
}

/// One way to take a program apart, as far as it has come.
#[derive(Debug, Clone, Default)]
struct Reading {
    at: usize,
    tokens: Vec<Token>,
    /// Whether some pattern ends elsewhere for some awk.
    is_odd: bool,
    /// Whether a text or pattern has no end, or not in its line: no awk takes such a program.
    is_broken: bool,
}

/// What a slash is.
enum Slash {
    Divides,
    BeginsPattern,
    Either,
}

impl Reading {
    /// Takes the rest apart; other ways to do so go to `others`.
    fn finish(&mut self, chars: &[char], others: &mut Vec<Self>) {
        while let Some(&c) = chars.get(self.at) {
            let next = chars.get(self.at + 1).copied();
            match c {
                '#' => self.at += chars[self.at..].iter().take_while(|c| **c != '\n').count(),
                '"' => {
                    let text = self.until(chars, '"');
                    self.tokens.push(Token::Text(text));
                }
                '/' => match self.slash() {
                    Slash::Divides => self.sign(c),
                    Slash::BeginsPattern => self.pattern(chars),
                    Slash::Either => {
                        let mut other = self.clone();
                        other.pattern(chars);
                        others.push(other);
                        self.sign(c);
                    }
                },
                // A line that goes on.
                '\\' if next == Some('\n') => self.at += 2,
                '|' | '&' if next == Some(c) => {
                    self.tokens.push(Token::Sign(','));
                    self.at += 2;
                }
                c if c.is_ascii_alphanumeric() || c == '_' => {
                    let is_part = |c: &&char| c.is_ascii_alphanumeric() || **c == '_';
                    let word: String = chars[self.at..].iter().take_while(is_part).collect();
                    self.at += word.len();
                    self.tokens.push(Token::Word(word));
                }
                c if c == '\n' || !c.is_whitespace() => self.sign(c),
                _ => self.at += 1,
            }
        }
    }

    fn sign(&mut self, sign: char) {
        self.tokens.push(Token::Sign(sign));
        self.at += 1;
    }

    fn pattern(&mut self, chars: &[char]) {
        let text = self.until(chars, '/');
        self.is_odd |= may_go_on(&text);
        self.tokens.push(Token::Pattern(text));
    }

    /// Takes what stands between where it is and an end that is not escaped, and goes on behind that.
    fn until(&mut self, chars: &[char], end: char) -> String {
        let mut text = String::new();
        self.at += 1;
        while let Some(&c) = chars.get(self.at) {
            self.at += 1;
            if c == end {
                return text;
            }
            self.is_broken |= c == '\n';
            text.push(c);
            if c == '\\' {
                text.extend(chars.get(self.at));
                self.at += 1;
            }
        }
        self.is_broken = true;
        text
    }

    /// Says what a slash is behind the tokens so far.
    fn slash(&self) -> Slash {
        const BEFORE_PATTERNS: &[&str] =
            &["print", "printf", "return", "if", "while", "in", "else", "do", "case"];
        const BEFORE_EITHER: &[&str] =
            &["getline", "exit", "length", "next", "nextfile", "delete", "break", "continue"];
        match self.tokens.last() {
            Some(Token::Word(word)) if BEFORE_PATTERNS.contains(&word.as_str()) => Slash::BeginsPattern,
            Some(Token::Word(word)) if BEFORE_EITHER.contains(&word.as_str()) => Slash::Either,
            Some(Token::Word(_) | Token::Text(_) | Token::Sign(']')) => Slash::Divides,
            Some(Token::Pattern(_) | Token::Sign(')' | '+' | '-' | '$')) => Slash::Either,
            Some(Token::Sign(_)) | None => Slash::BeginsPattern,
        }
    }
}

/// Tells whether a pattern that ends here goes on for an awk to which a slash in brackets is none. Awks differ about what
/// ends brackets, too: whether `]` may stand first in them, whether a class is one (`[[:alpha:]`), what a backslash does.
fn may_go_on(pattern: &str) -> bool {
    (0..8).any(|rules| has_open_bracket(pattern, rules & 1 != 0, rules & 2 != 0, rules & 4 != 0))
}

fn has_open_bracket(pattern: &str, has_first: bool, has_classes: bool, escapes: bool) -> bool {
    let mut depth = 0_usize;
    let mut is_first = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        let was_first = std::mem::take(&mut is_first);
        match c {
            '\\' if depth == 0 || escapes => drop(chars.next()),
            '[' if depth == 0 => {
                depth = 1;
                is_first = true;
                chars.next_if_eq(&'^');
            }
            '[' if has_classes && chars.next_if(|next| matches!(next, ':' | '.' | '=')).is_some() => {
                depth += 1;
            }
            ']' if was_first && has_first => {}
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, runs: bool, writes: &str) {
        let program = read(code);
        let names: Vec<&str> = program.writes.iter().map(Named::as_str).collect();
        assert_eq!((program.runs, names.join(" ").as_str()), (runs, writes), "{code}");
    }

    #[test]
    fn commands_and_written_files_are_found() {
        for (code, runs, writes) in [
            ("{print $1}", false, ""),
            ("/foo|bar/ {print $2}", false, ""),
            ("$1 ~ /a|b/ || $2 == \"x|y\" {n++} END {print n / 2}", false, ""),
            ("BEGIN { FS = \"|\" } { print $1 \"|\" $2 }", false, ""),
            ("{ print (a > b) }", false, ""),
            ("{ if ($1 > 5) print $2 }", false, ""),
            ("{ if ($1 > 5) { print $2 } else print \"a;b\" > \"out\" }", false, "out"),
            ("{ print \"a;\" > \"/tmp/x\" }", false, "/tmp/x"),
            ("{ print >> $1 }", false, "?"),
            ("{ print(1) > \"a\" \"b\" }", false, "?"),
            ("{ print > \"/dev/stderr\" }", false, ""),
            ("{ printf \"%s\", $1 > \"z\"; close(\"z\") }", false, "z"),
            ("BEGIN { system(\"touch z\") }", true, ""),
            ("BEGIN { \"date\" | getline d; print d }", true, ""),
            ("{ print | cmd }", true, ""),
            ("{ print |& \"x\" }", true, ""),
            ("BEGIN { f = \"sys\" \"tem\"; @f(\"x\") }", true, ""),
            ("@load \"filefuncs\"\n{print}", true, ""),
            ("{ n = 4 / 2; print 1 | \"sh\"; m = 4 / 2 }", true, ""),
            ("{ x++ / 2; print 1 | \"sh\" / 1 }", true, ""),
            ("BEGIN { print 1 > \"/inet/tcp/0/x/80\" }", true, "/inet/tcp/0/x/80"),
            ("# system(\"x\")\n{print}", false, ""),
            // A slash in brackets does not end a pattern (M4 of the hostile trial).
            ("/[/]\"/{} BEGIN{system(\"touch PWN\")} #\"", true, "?"),
            ("/[]/]\"/{print | \"sh\"} #\"", true, "?"),
            ("/[^/]x/{print}", true, "?"),
            ("/[a-z]\\/[^]]x/{print}", false, ""),
            ("/[a-z]+\\/[^a]x/{print}", false, ""),
            ("/[[:alpha:]]/{print}", false, ""),
            ("/\\[/{print}", false, ""),
            // A slash that one reading has for a division begins a pattern for another.
            ("BEGIN { x = 1 + /\"/; system(\"touch PWN\"); y = \"/\" }", true, ""),
            ("BEGIN { if (1) /\"/; system(\"touch PWN\"); y = \"/\" }", true, ""),
            ("BEGIN { if (1) /\"/; print 1 > \"/x\"; y = \"/\" }", false, "/x"),
            ("{ print $/\"/; system(\"touch PWN\"); y = \"/\" }", true, ""),
            ("{ print ($1 + $2) / 2, $3 / 4, (a) / (b) }", false, ""),
            ("{ x = (a) / 2; y = (b) / 3; z = (c) / 4; print x, \"a|b\" }", false, ""),
            ("BEGIN { print \"a\nb\" }", true, "?"),
        ] {
            check(code, runs, writes);
        }
        assert_eq!(
            read("BEGIN { while ((getline l < \"f\") > 0) print l }").reads,
            [Named::File("f".into())]
        );
        assert_eq!(read("BEGIN { getline l < ARGV[1] }").reads, [Named::Unknown]);
        assert_eq!(read("BEGIN { ARGV[ARGC++] = \".e\" \"nv\" } 1").reads, [Named::Unknown]);
        assert_eq!(read("BEGIN { if (ARGV[1] == 2) print ARGV[1] }").reads, []);
    }
}
