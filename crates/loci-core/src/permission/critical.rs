//! Removals that no rule and no mode may wave through: a root, a home, the project itself (S-24).
//!
//! What the shell analysis took apart is judged by its resolved targets. What it did not is scanned by its letters:
//! broad on purpose, inside quotes and substitutions too, rather asking once too often.

use std::path::{Path, PathBuf};

use super::Rulebook;
use super::decide::Call;
use crate::path::normalise;
use crate::tool::HOLE;

/// Returns the target of a critical removal, if the call makes one.
pub(super) fn critical_removal(call: &Call<'_>, book: &Rulebook) -> Option<String> {
    let effects = call.effects;
    let places = Places { cwd: &book.cwd, home: &book.home, dirs: &book.dirs };
    let parsed = effects.removals.iter().find(|removal| match &removal.target {
        Some(path) => places.is_critical(&path.requested) || places.is_critical(&path.real),
        None => true,
    });
    if let Some(removal) = parsed {
        return Some(removal.text.clone());
    }
    if !effects.unknown.is_empty()
        && let Some(found) = call.command.and_then(|line| critical_target(line, &places, &|_| false))
    {
        return Some(found);
    }
    // What was resolved above is judged by where it leads, not by its letters once more; neither is what its pattern
    // stands for, which is a hole in a reading.
    let has_resolved = effects.unknown.is_empty() && !effects.removals.is_empty();
    let is_resolved = |word: &str| {
        has_resolved && (word.contains(HOLE) || effects.removals.iter().any(|removal| removal.text == word))
    };
    let mut readings = effects.commands.iter().flat_map(|command| &command.readings);
    readings.find_map(|reading| {
        let program = reading.split_whitespace().next()?;
        if is_removal(program) { critical_target(reading, &places, &is_resolved) } else { None }
    })
}

/// The places whose removal is critical.
struct Places<'a> {
    cwd: &'a Path,
    home: &'a Path,
    dirs: &'a [PathBuf],
}

impl Places<'_> {
    fn is_critical(&self, target: &Path) -> bool {
        target.components().count() <= 2
            || self.home.starts_with(target)
            || self.cwd.starts_with(target)
            || self.dirs.iter().any(|dir| dir.starts_with(target))
    }
}

fn is_removal(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("rm" | "rmdir" | "unlink" | "shred"))
}

/// Returns the target of a critical removal in a command line, by its letters.
fn critical_target(command: &str, places: &Places<'_>, is_resolved: &dyn Fn(&str) -> bool) -> Option<String> {
    let words: Vec<&str> = command
        .split(|c: char| {
            c.is_whitespace()
                || matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '\n' | '"' | '\'' | ',' | '{' | '}' | '=')
        })
        .filter(|word| !word.is_empty())
        .collect();
    let deletes_by_find = words.contains(&"-delete");
    let start = words.iter().position(|word| is_removal(word));
    let targets = match start {
        Some(at) => &words[at + 1..],
        None if deletes_by_find => &words[..],
        None => return None,
    };
    let found = targets.iter().find(|word| is_critical(word, places) && !is_resolved(word));
    found.map(|word| (*word).to_owned())
}

fn is_critical(word: &str, places: &Places<'_>) -> bool {
    if word.starts_with('-') {
        return false;
    }
    if word.starts_with(['$', HOLE]) {
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
    places.is_critical(&normalise(places.cwd, &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_homes_and_projects_are_critical() {
        // The home is nowhere near the project, so that each counts by itself.
        let cwd = Path::new("/code/dev/project");
        let places = Places { cwd, home: Path::new("/home/dev"), dirs: &[PathBuf::from("/extra/dir")] };
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
            ("sudo rm -rf /code/dev/project", true),
            ("rm -rf /home/dev", true),
            ("rm -rf /home/dev/x", false),
            ("bash -c 'rm -rf /'", true),
            ("echo $(rm -rf ~)", true),
            ("find / -delete", true),
            ("find . -name x -delete", true),
            ("rmdir {/,/usr}", true),
            ("T[x]=rm; x -rf ~", true),
            ("rm -r /extra/dir/*", true),
            ("rm -rf build", false),
            ("rm a.txt b.txt", false),
            ("rm -rf ./target/debug", false),
            ("rm -rf /tmp/x/y", false),
            ("ls /", false),
            ("cargo build", false),
        ] {
            assert_eq!(critical_target(command, &places, &|_| false).is_some(), expected, "{command}");
        }
    }
}
