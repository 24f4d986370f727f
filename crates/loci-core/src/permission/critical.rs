//! Removals that no rule and no mode may wave through: a root, a home, the project itself.
//!
//! The scan is lexical and broad on purpose. It runs over the whole command line, inside quotes and
//! substitutions too, and would rather ask once too often.

use std::path::{Path, PathBuf};

use crate::path::normalise;

/// The places whose removal is critical.
pub(super) struct Places<'a> {
    pub(super) cwd: &'a Path,
    pub(super) home: &'a Path,
}

/// Returns the target of a critical removal in a command line, if there is one.
pub(super) fn critical_target(command: &str, places: &Places<'_>) -> Option<String> {
    let words: Vec<&str> = command
        .split(|c: char| {
            c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '\n' | '"' | '\'')
        })
        .filter(|word| !word.is_empty())
        .collect();
    let is_removal =
        |word: &&str| matches!(word.rsplit('/').next(), Some("rm" | "rmdir" | "unlink" | "shred"));
    let deletes_by_find = words.contains(&"-delete");
    let start = words.iter().position(is_removal);
    match start {
        Some(at) => words[at + 1..].iter().find(|word| is_critical(word, places)).map(|w| (*w).to_owned()),
        None if deletes_by_find => {
            words.iter().find(|word| is_critical(word, places)).map(|w| (*w).to_owned())
        }
        None => None,
    }
}

fn is_critical(word: &str, places: &Places<'_>) -> bool {
    if word.starts_with('-') {
        return false;
    }
    if word.starts_with('$') || word.starts_with("${") {
        return true;
    }
    let base = word.trim_end_matches(['*', '/']);
    let path = match base.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest == "+" || rest.starts_with('/') => {
            places.home.join(rest.trim_start_matches(['+', '/']))
        }
        Some(_) => return true,
        None if base.is_empty() && word.starts_with('/') => PathBuf::from("/"),
        None => PathBuf::from(base),
    };
    let target = normalise(places.cwd, &path);
    let depth = target.components().count();
    depth <= 2 || target == places.home || places.cwd.starts_with(&target) || places.home.starts_with(&target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_homes_and_projects_are_critical() {
        let places = Places { cwd: Path::new("/home/dev/project"), home: Path::new("/home/dev") };
        for (command, expected) in [
            ("rm -rf /", true),
            ("rm -rf /*", true),
            ("rm -rf //", true),
            ("rm -rf /usr", true),
            ("rm -rf /usr/..", true),
            ("rm -rf ~", true),
            ("rm -rf ~/", true),
            ("rm -rf \"$HOME\"", true),
            ("rm -rf $D/*", true),
            ("rm -rf .", true),
            ("rm -rf ..", true),
            ("rm -rf *", true),
            ("rm -rf ./", true),
            ("/bin/rm -r /home", true),
            ("sudo rm -rf /home/dev/project", true),
            ("bash -c 'rm -rf /'", true),
            ("echo $(rm -rf ~)", true),
            ("find / -delete", true),
            ("find . -name x -delete", true),
            ("rm -rf build", false),
            ("rm a.txt b.txt", false),
            ("rm -rf ./target/debug", false),
            ("rm -rf /tmp/x/y", false),
            ("ls /", false),
            ("cargo build", false),
        ] {
            assert_eq!(critical_target(command, &places).is_some(), expected, "{command}");
        }
    }
}
