//! Whether a session lies in the directory of a project that it was in.
//!
//! A directory of sessions is named after a working directory, and every entry says in which it was written. A session
//! that never was in a directory of that name lies in the wrong place, unless nobody can say where the right one is.

use std::path::{Path, PathBuf};

use loci_core::path::project_slug;

use super::transcript::CheckedTranscript;
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::listing::scan::last_text;

/// The part of a long name that does not depend on how it is hashed.
const SHARED_PREFIX: usize = 200;

/// Returns the directory that a session should lie in, when it lies in a wrong one. `exists` tells whether there is a
/// directory at a path: a session whose project is gone or was renamed stays where it is.
pub(super) fn right_dir(
    home: &ConfigHome,
    place: &SessionPlace,
    reading: &CheckedTranscript,
    exists: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let dir = place.file().parent()?;
    let name = dir.file_name()?.to_str()?;
    let mut known: Vec<String> = Vec::new();
    for kept in &reading.entries {
        let Some(cwd) = cwd_of(kept.entry.line()) else { continue };
        if known.contains(&cwd) {
            continue;
        }
        if is_named_after(name, &cwd) || home.project_dir(Path::new(&cwd)) == dir {
            return None;
        }
        known.push(cwd);
    }
    let right = known.iter().map(Path::new).find(|cwd| cwd.is_absolute() && exists(cwd))?;
    Some(home.project_dir(right)).filter(|right| right != dir)
}

/// Finds the directory that an entry was written in, without taking the line apart.
fn cwd_of(line: &str) -> Option<String> {
    last_text(line.as_bytes(), "cwd")
}

fn is_named_after(name: &str, cwd: &str) -> bool {
    let slug = project_slug(cwd);
    let is_alike = |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'));
    slug == name || (slug.len() > SHARED_PREFIX && slug.get(..SHARED_PREFIX).is_some_and(is_alike))
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_stdx::Env;

    use super::super::transcript::read;
    use super::*;

    fn check(dir: &str, cwds: &[&str], expected: Option<&str>) {
        let home = ConfigHome::from_env(&Env::for_test("/h", "/h"));
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let place = SessionPlace::new(home.projects_dir().join(dir).join(format!("{id}.jsonl")), id);
        let lines: String = cwds
            .iter()
            .map(|cwd| format!("{{\"type\":\"user\",\"uuid\":\"u\",\"cwd\":\"{cwd}\"}}\n"))
            .collect();
        let reading = read(&mut lines.as_bytes()).unwrap();
        let right = right_dir(&home, &place, &reading, |path| path != Path::new("/gone"));
        assert_eq!(right, expected.map(|name| home.projects_dir().join(name)), "{dir} {cwds:?}");
    }

    #[test]
    fn session_in_a_directory_it_was_once_in_is_not_misplaced() {
        check("-p", &["/p"], None);
        check("-p", &["/other", "/p", "/third"], None);
        check("-p", &[], None);
        check("-p", &["/gone"], None);
        check("-p", &["relative"], None);
        check("-p", &["/gone", "/other"], Some("-other"));
        check("-p", &["/a.b", "/other"], Some("-a-b"));
        check("-p", &["/other\", \"cwd\" : \"/p"], None);
        let long = format!("/{}", "x".repeat(250));
        check(&format!("-{}-another", "x".repeat(199)), &[&long], None);
    }
}
