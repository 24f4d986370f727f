//! What an exit code means.

use std::path::Path;

use loci_shell::{ShellContext, analyse, top_level_parts};

/// Commands that say nothing when all is well.
const SILENT: &[&str] = &[
    "cd", "chgrp", "chmod", "chown", "cp", "export", "ln", "mkdir", "mv", "rm", "rmdir", "set", "touch",
    "true", "unset", "wait",
];

/// Returns what a non-zero code means when it is an answer and no failure.
pub(crate) fn meaning(command: &str, code: i32) -> Option<&'static str> {
    if code != 1 {
        return None;
    }
    let mut words = words_of(top_level_parts(command).pop()?);
    let program = words.next()?;
    match program.rsplit('/').next()? {
        "grep" | "egrep" | "fgrep" | "rg" => Some("No matches found"),
        "find" => Some("Some directories could not be read"),
        "diff" => Some("The files differ"),
        "test" | "[" => Some("The condition is false"),
        "git" => match words.next()? {
            "grep" => Some("No matches found"),
            "diff" => Some("There are differences"),
            _ => None,
        },
        _ => None,
    }
}

/// Returns a word on codes that stand for something else.
pub(crate) fn explanation(code: i32) -> Option<String> {
    let signal = match code - 128 {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        9 => "SIGKILL, perhaps for lack of memory",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    };
    Some(format!("(ended by signal {}: {signal})", code - 128))
}

/// Returns true when no output is what a command that worked would give.
pub(crate) fn is_silent(command: &str) -> bool {
    let mut programs = top_level_parts(command).into_iter().map(|part| words_of(part).next());
    programs.all(|program| program.is_some_and(|program| SILENT.contains(&program)))
}

/// Returns true when a command that takes too long must not go on in the background: waiting for time to pass
/// is pointless there, and git would keep the repository locked.
pub(crate) fn must_not_linger(command: &str) -> bool {
    let first = top_level_parts(command).first().and_then(|part| words_of(part).next());
    let nowhere = Path::new("/");
    let reading = analyse(command, &ShellContext { cwd: nowhere, home: nowhere });
    let is_git = |program: &str| program == "git" || program.ends_with("/git");
    first == Some("sleep") || reading.commands.iter().any(|command| is_git(&command.program))
}

/// Iterates over the words of a simple command behind its assignments.
fn words_of(part: &str) -> impl Iterator<Item = &str> {
    part.split_whitespace().skip_while(|word| is_assignment(word))
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_one_is_an_answer_of_search_and_compare_commands() {
        for (command, code, expected) in [
            ("grep x f", 1, Some("No matches found")),
            ("cat f | grep x", 1, Some("No matches found")),
            ("LANG=C /usr/bin/grep x f", 1, Some("No matches found")),
            ("grep x f", 2, None),
            ("grep x f; ls", 1, None),
            ("diff a b", 1, Some("The files differ")),
            ("[ -f x ]", 1, Some("The condition is false")),
            ("git diff --exit-code", 1, Some("There are differences")),
            ("git commit", 1, None),
            ("", 1, None),
        ] {
            assert_eq!(meaning(command, code), expected, "{command}");
        }
    }

    #[test]
    fn silent_commands_and_commands_never_backgrounded_are_known() {
        for (command, silent, must_not) in [
            ("mkdir a && touch a/b", true, false),
            ("mkdir a && ls", false, false),
            ("sleep 5", false, true),
            ("echo a; sleep 5", false, false),
            ("cargo build; git push", false, true),
            ("GIT_DIR=x git log | cat", false, true),
            ("(cd x && git fetch)", false, true),
            ("npm run dev", false, false),
        ] {
            assert_eq!((is_silent(command), must_not_linger(command)), (silent, must_not), "{command}");
        }
    }
}
