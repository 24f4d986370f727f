//! Scripts of `sed`, as far as they run commands and name files.

use loci_core::tool::HOLE;

use super::is_vague;
use crate::value::Value;

/// Returns true when the arguments of a `sed` could make it run commands.
pub(super) fn could_run(arguments: &[Value]) -> bool {
    let mut scripts: Vec<&Value> = Vec::new();
    let mut has_script = false;
    let mut rest = arguments.iter();
    let mut attached = Vec::new();
    while let Some(value) = rest.next() {
        let text = value.text.as_str();
        match text {
            "-f" | "--file" | "-l" | "--line-length" => {
                has_script |= text.ends_with(['f', 'e']);
                rest.next();
            }
            "--expression" => {
                has_script = true;
                scripts.extend(rest.next());
            }
            _ if text.starts_with("--expression=") => {
                has_script = true;
                attached.push(text["--expression=".len()..].to_owned());
            }
            _ if text.starts_with("--file=") => has_script = true,
            // A suffix with a slash puts the old file elsewhere.
            _ if is_in_place(text) && (text.contains('/') || is_vague(value)) => return true,
            _ if is_in_place(text) => {}
            "--quiet" | "--silent" | "--regexp-extended" | "--separate" | "--unbuffered" | "--null-data"
            | "--posix" | "--debug" | "--sandbox" | "--follow-symlinks" | "--" => {}
            _ if text.starts_with('-') && text.len() > 1 => {
                let letters = &text[1..];
                match letters.split_once('e') {
                    _ if letters.chars().all(|c| "nErzsub".contains(c)) => {}
                    Some((before, "")) if before.chars().all(|c| "nErzsub".contains(c)) => {
                        has_script = true;
                        scripts.extend(rest.next());
                    }
                    Some((before, code)) if before.chars().all(|c| "nErzsub".contains(c)) => {
                        has_script = true;
                        attached.push(code.to_owned());
                    }
                    _ if letters.starts_with(|c| "nErzsub".contains(c)) && letters.contains('i') => {
                        if letters.contains(['e', 'f', '/']) {
                            return true;
                        }
                    }
                    _ => return true,
                }
            }
            _ if !has_script => {
                has_script = true;
                scripts.push(value);
            }
            _ => {}
        }
    }
    // What comes in for a hole could end the replacement, and begin another command.
    let runs = |script: &str| script.contains(HOLE) || read(script).is_none_or(|script| script.runs);
    scripts.iter().any(|value| runs(&value.text)) || attached.iter().any(|script| runs(script))
}

fn is_in_place(text: &str) -> bool {
    text.starts_with("--in-place") || text.starts_with("-i")
}

/// What a script does beside editing what passes through.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SedScript {
    /// Whether it runs commands.
    pub(crate) runs: bool,
    /// Files it writes.
    pub(crate) writes: Vec<String>,
    /// Files it reads.
    pub(crate) reads: Vec<String>,
}

/// Reads a script; `None` when there is anything in it that is not known.
pub(crate) fn read(script: &str) -> Option<SedScript> {
    let mut reader = Reader { rest: script, script: SedScript::default() };
    while reader.command()? {}
    Some(reader.script)
}

struct Reader<'s> {
    rest: &'s str,
    script: SedScript,
}

impl<'s> Reader<'s> {
    /// Reads one command; false at the end.
    fn command(&mut self) -> Option<bool> {
        self.skip(|c| c.is_whitespace() || c == ';' || c == '}');
        self.addresses()?;
        let Some(letter) = self.next() else { return Some(false) };
        match letter {
            '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            '#' => {
                self.line();
            }
            'q' | 'Q' | 'l' | 'L' => self.skip(|c| c == ' ' || c.is_ascii_digit()),
            'b' | 't' | 'T' | ':' => {
                let end = self.rest.find([';', '\n', '}']).unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
            }
            'a' | 'i' | 'c' => self.text(),
            'r' | 'R' => {
                let name = self.line().trim();
                self.script.reads.push(name.to_owned());
            }
            'w' | 'W' => self.written(),
            'e' => {
                self.script.runs = true;
                self.line();
            }
            'y' => {
                let delimiter = self.next()?;
                self.delimited(delimiter)?;
                self.delimited(delimiter)?;
            }
            's' => self.substitution()?,
            _ => return None,
        }
        Some(true)
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            self.skip(|c| {
                c.is_ascii_digit() || c.is_whitespace() || matches!(c, '$' | ',' | '~' | '+' | '!')
            });
            let delimiter = match self.rest.chars().next() {
                Some('/') => '/',
                Some('\\') => {
                    self.next();
                    self.rest.chars().next()?
                }
                _ => return Some(()),
            };
            self.next();
            self.delimited(delimiter)?;
            self.skip(|c| matches!(c, 'I' | 'M'));
        }
    }

    fn substitution(&mut self) -> Option<()> {
        let delimiter = self.next().filter(|c| !c.is_alphanumeric() && *c != '\\' && *c != '\n')?;
        self.delimited(delimiter)?;
        self.delimited(delimiter)?;
        while let Some(flag) = self.rest.chars().next() {
            match flag {
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
                'e' => self.script.runs = true,
                'w' => {
                    self.next();
                    self.written();
                    return Some(());
                }
                ';' | '\n' | '}' | ' ' | '#' => return Some(()),
                _ => return None,
            }
            self.next();
        }
        Some(())
    }

    /// Reads up to a delimiter that is not escaped. Shells disagree about one in brackets, so that is not known.
    fn delimited(&mut self, delimiter: char) -> Option<()> {
        let (mut is_escaped, mut in_brackets) = (false, false);
        for (at, c) in self.rest.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                c if c == delimiter && in_brackets => return None,
                c if c == delimiter => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Some(());
                }
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                _ => {}
            }
        }
        None
    }

    /// Takes the text of `a`, `i` and `c`: the rest of the line, and those behind a backslash.
    fn text(&mut self) {
        while self.line().ends_with('\\') && !self.rest.is_empty() {}
    }

    fn written(&mut self) {
        let name = self.line().trim();
        let is_stream = matches!(name, "/dev/stdout" | "/dev/stderr");
        self.script.writes.extend((!is_stream).then(|| name.to_owned()));
    }

    fn line(&mut self) -> &'s str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_skipped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_written_files_are_found() {
        for (script, runs, writes) in [
            ("s/a/b/", false, ""),
            ("s/foo/w bar/g;s/x/e/", false, ""),
            ("/x/,/y/{s/a/w/;p}", false, ""),
            ("1,3d;$!N;:a;s/^a/b/;ta", false, ""),
            ("/old/c\\\nnew e text\ns/a/b/", false, ""),
            ("\\,x,d", false, ""),
            ("2q", false, ""),
            ("10,20!p", false, ""),
            ("s/a/b/e", true, ""),
            ("s|a|touch z|ge", true, ""),
            ("e touch z", true, ""),
            ("1e", true, ""),
            ("p;e", true, ""),
            ("w /tmp/x", false, "/tmp/x"),
            ("s/a/b/gw /tmp/x", false, "/tmp/x"),
            ("s/a/b/;w out", false, "out"),
            ("/x/w/dev/stdout", false, ""),
        ] {
            let found = read(script).unwrap_or_else(|| panic!("not read: {script}"));
            assert_eq!((found.runs, found.writes.join(" ").as_str()), (runs, writes), "{script}");
        }
        assert_eq!(read("r notes").map(|it| it.reads), Some(vec!["notes".to_owned()]));
        for script in ["s/a", "s/[/]/x/", "k", "s/a/b/k", "s", "\\"] {
            assert_eq!(read(script), None, "{script}");
        }
    }
}
