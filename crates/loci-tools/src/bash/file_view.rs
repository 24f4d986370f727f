//! Commands that do nothing but show one file: what they print counts as a read of it.
//!
//! Only the plainest forms count: one command, one file, no pipe, no redirection, nothing for the shell to expand.
//! A command that is not recognised costs nothing but a Read before the next edit.

use std::time::SystemTime;

use loci_core::tool::PathEffect;

use crate::Host;
use crate::files::change;
use crate::files::file_state::FileState;

/// A file that a command is about to show, as it was before.
pub(super) struct View {
    path: PathEffect,
    modified: SystemTime,
    /// Whether the command prints the file as it is.
    is_verbatim: bool,
}

/// Recognises a command that shows one file which is there.
pub(super) fn recognise(command: &str, host: &dyn Host) -> Option<View> {
    let shown = viewed_file(command)?;
    let path = host.workspace().resolve(&shown.file);
    let modified = std::fs::metadata(&path.real).ok()?.modified().ok()?;
    Some(View { path, modified, is_verbatim: shown.is_verbatim })
}

impl View {
    /// Remembers what was shown, unless the file changed meanwhile. `stdout` is all that the command printed.
    pub(super) async fn remember(self, stdout: &str, host: &dyn Host) {
        let Ok(Some(original)) = change::load_saved(&self.path).await else { return };
        if original.modified != self.modified {
            return;
        }
        let Some(text) = original.text() else { return };
        let is_whole = self.is_verbatim && stdout.trim_end() == text.trim_end();
        let n_lines = stdout.lines().count() as u64;
        let state = FileState {
            content: if is_whole { text } else { stdout.to_owned() },
            modified: self.modified,
            offset: (!is_whole).then_some(1),
            limit: (!is_whole).then_some(n_lines),
            is_partial_view: false,
        };
        // A whole reading that is known already says more than a part.
        let knows_more = !is_whole
            && change::last_seen(&self.path, host)
                .is_some_and(|seen| seen.is_whole() && seen.modified == self.modified);
        if !knows_more {
            change::remember(&self.path.requested, state, host);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ViewedFile {
    file: String,
    is_verbatim: bool,
}

fn viewed_file(command: &str) -> Option<ViewedFile> {
    let words = plain_words(command)?;
    let (name, arguments) = words.split_first()?;
    let (options, others): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| word.starts_with('-') && word.len() > 1);
    let file = match name.as_str() {
        "cat" | "nl" | "bat" | "batcat" => only(&others)?,
        "head" | "tail" => head_or_tail_file(arguments)?,
        "sed" => match (options.as_slice(), others.as_slice()) {
            ([option], [script, file]) if *option == "-n" && is_line_range(script) => file.as_str(),
            _ => return None,
        },
        "grep" | "egrep" | "fgrep" | "rg" => match others.as_slice() {
            [_pattern, file] if options.iter().all(|option| is_plain_flag(option)) => file.as_str(),
            _ => return None,
        },
        _ => return None,
    };
    Some(ViewedFile { file: file.to_owned(), is_verbatim: name == "cat" && options.is_empty() })
}

fn only<'a>(words: &[&'a String]) -> Option<&'a str> {
    match words {
        [word] if *word != "-" => Some(word.as_str()),
        _ => None,
    }
}

/// `head` and `tail` take a count: `-20`, `-n 20`, `-n20`, `-c 100`.
fn head_or_tail_file(arguments: &[String]) -> Option<&str> {
    let mut rest = arguments.iter();
    let mut file = None;
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-n" | "-c" => drop(rest.next()?),
            word if word.starts_with('-') && word.len() > 1 => {
                let count = word.trim_start_matches('-').trim_start_matches(['n', 'c']);
                if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
            }
            "-" => return None,
            word => {
                if file.replace(word).is_some() {
                    return None;
                }
            }
        }
    }
    file
}

/// `3p` or `3,9p`.
fn is_line_range(script: &str) -> bool {
    let Some(range) = script.strip_suffix('p') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match range.split_once(',') {
        Some((first, last)) => is_number(first) && (is_number(last) || last == "$"),
        None => is_number(range),
    }
}

/// A group of letters without a value: nothing that takes the next word as its own.
fn is_plain_flag(option: &str) -> bool {
    option[1..]
        .bytes()
        .all(|byte| matches!(byte, b'n' | b'i' | b'w' | b'E' | b'F' | b'H' | b'h' | b'v' | b'x'))
}

/// Splits a command into words when the shell would do nothing but that.
fn plain_words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                let into = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        '$' | '`' | '\\' | '!' if c == '"' => return None,
                        '\n' => return None,
                        other => into.push(other),
                    }
                }
            }
            c if c.is_alphanumeric() || "_-./,:=+@%^".contains(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_views_are_recognised() {
        for (command, file, is_verbatim) in [
            ("cat a.txt", "a.txt", true),
            ("  cat 'my file'  ", "my file", true),
            ("cat -n a.txt", "a.txt", false),
            ("nl src/a.rs", "src/a.rs", false),
            ("bat \"a b\"", "a b", false),
            ("head a", "a", false),
            ("head -20 a", "a", false),
            ("head -n 20 a", "a", false),
            ("tail -n20 /x/a", "/x/a", false),
            ("sed -n '3,9p' a", "a", false),
            ("sed -n 3p a", "a", false),
            ("sed -n '3,$p' a", "a", false),
            ("grep -n needle a", "a", false),
            ("rg 'two words' a", "a", false),
        ] {
            assert_eq!(
                viewed_file(command),
                Some(ViewedFile { file: file.to_owned(), is_verbatim }),
                "{command}"
            );
        }
    }

    #[test]
    fn commands_that_do_more_are_no_plain_views() {
        for command in [
            "",
            "cat",
            "cat -",
            "cat a b",
            "cat a | head",
            "cat a > b",
            "cat < a",
            "cat $F",
            "cat a*",
            "cat ~/a",
            "cat \"$HOME/a\"",
            "cat a; rm b",
            "cat a && true",
            "cat a\nrm b",
            "cat a \\\n b",
            "cat a # comment",
            "cat $(ls)",
            "cat 'a",
            "F=1 cat a",
            "head -n",
            "head -f a",
            "tail -f a",
            "head a b",
            "sed 's/a/b/' a",
            "sed -i 's/a/b/' a",
            "sed -n '1,5w out' a",
            "sed -n 5p a b",
            "grep needle",
            "grep -r needle dir",
            "grep -e needle a",
            "grep -f patterns a",
            "less a",
        ] {
            assert_eq!(viewed_file(command), None, "{command}");
        }
    }
}
