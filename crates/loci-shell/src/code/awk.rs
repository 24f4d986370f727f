//! Programs of `awk`, as far as they run commands and name files.
//!
//! They are taken apart into words, strings and patterns, no further. Where a slash could be a division or begin a
//! pattern, whatever would hide a command counts as one.

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

/// Reads a program.
pub(crate) fn read(code: &str) -> AwkProgram {
    let tokens = tokens(code);
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

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Pattern(String),
    Sign(char),
}

fn tokens(code: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let chars: Vec<char> = code.chars().collect();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let next = chars.get(at + 1).copied();
        match c {
            '#' => at += chars[at..].iter().take_while(|c| **c != '\n').count(),
            '"' => {
                let (text, end) = until(&chars, at + 1, '"');
                found.push(Token::Text(text));
                at = end;
            }
            '/' if !follows_operand(&found) => {
                let (text, end) = until(&chars, at + 1, '/');
                found.push(Token::Pattern(text));
                at = end;
            }
            // A line that goes on.
            '\\' if next == Some('\n') => at += 2,
            '|' | '&' if next == Some(c) => {
                found.push(Token::Sign(','));
                at += 2;
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let word: String =
                    chars[at..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
                at += word.len();
                found.push(Token::Word(word));
            }
            c if c == '\n' || !c.is_whitespace() => {
                found.push(Token::Sign(c));
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Reads up to an end that is not escaped; returns what stands before it and where to go on.
fn until(chars: &[char], from: usize, end: char) -> (String, usize) {
    let mut text = String::new();
    let mut at = from;
    while let Some(&c) = chars.get(at) {
        if c == end {
            return (text, at + 1);
        }
        text.push(c);
        if c == '\\' {
            text.extend(chars.get(at + 1));
            at += 1;
        }
        at += 1;
    }
    (text, at)
}

/// Returns true behind something that can be divided.
fn follows_operand(found: &[Token]) -> bool {
    const KEYWORDS: &[&str] =
        &["print", "printf", "return", "if", "while", "in", "else", "do", "case", "getline", "exit"];
    match found.last() {
        Some(Token::Word(word)) => !KEYWORDS.contains(&word.as_str()),
        Some(Token::Text(_) | Token::Pattern(_)) => true,
        Some(Token::Sign(sign)) => matches!(sign, ')' | ']' | '+' | '-' | '$'),
        None => false,
    }
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
