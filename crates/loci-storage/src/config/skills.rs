//! Skills and command files on disk, found and followed.
//!
//! A skill is a directory with a `SKILL.md` below `skills`; a command is a Markdown file below `commands`, whose
//! directories are part of its name (`commands/front/comp.md` is `front:comp`). What the files mean is decided in
//! `loci_core::skill`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use loci_core::skill::{SkillDefinition, SkillKind, SkillScope, SkillSource, parse_skill};

use super::definition_files::{
    DefinitionPlaces, FilePrint, PlaceScope, markdown_files, prints, read_limited,
};

/// How many skills a directory may have.
const COUNT_LIMIT: usize = 2_000;
/// A name that another program uses for a directory of its own.
const RESERVED: &str = "synced";

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundSkills {
    /// The definitions; of several in one scope, the one that wins first.
    pub skills: Vec<SkillDefinition>,
    /// Files that could not be read: which, and why.
    pub problems: Vec<(PathBuf, String)>,
}

/// Skills that follow their files.
#[derive(Debug)]
pub struct SkillWatch {
    places: DefinitionPlaces,
    seen: Vec<FilePrint>,
}

impl SkillWatch {
    /// Reads the skills and begins to follow them.
    pub fn start(places: DefinitionPlaces) -> (Self, FoundSkills) {
        // Looked at before reading: a change in between shows up as one later.
        let files = skill_files(&places);
        let seen = prints(files.iter().map(|file| file.path.as_path()));
        let found = read_skills(files, &places);
        (Self { places, seen }, found)
    }

    /// Returns the skills anew when a file came, went or changed since the last time.
    pub fn poll(&mut self) -> Option<FoundSkills> {
        let files = skill_files(&self.places);
        let now = prints(files.iter().map(|file| file.path.as_path()));
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(read_skills(files, &self.places))
    }
}

/// Reads all skills.
pub fn discover_skills(places: &DefinitionPlaces) -> FoundSkills {
    read_skills(skill_files(places), places)
}

/// Reads the skills of a directory below the working directory, which a file there has made known. Their names begin
/// with the directory where another skill has the name already; the caller knows which have.
pub fn discover_nested_skills(dir: &Path, is_trusted: bool) -> FoundSkills {
    let mut files = Vec::new();
    collect_skills(&dir.join(".claude").join("skills"), SkillScope::Project, &mut files);
    read_files(files, |_| is_trusted)
}

/// A file that is a skill.
struct SkillFile {
    path: PathBuf,
    name: String,
    scope: SkillScope,
    kind: SkillKind,
}

fn skill_files(places: &DefinitionPlaces) -> Vec<SkillFile> {
    let mut files = Vec::new();
    for (dir, scope) in places.dirs("skills") {
        collect_skills(&dir, scope_of(scope), &mut files);
    }
    for (dir, scope) in places.dirs("commands") {
        collect_commands(&dir, scope_of(scope), &mut files);
    }
    files
}

fn scope_of(scope: PlaceScope) -> SkillScope {
    match scope {
        PlaceScope::Managed => SkillScope::Managed,
        PlaceScope::Project => SkillScope::Project,
        PlaceScope::User => SkillScope::User,
    }
}

fn collect_skills(dir: &Path, scope: SkillScope, files: &mut Vec<SkillFile>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut dirs: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).take(COUNT_LIMIT).collect();
    dirs.sort();
    for dir in dirs {
        let Some(name) = dir.file_name().and_then(|name| name.to_str()) else { continue };
        let path = dir.join("SKILL.md");
        if name != RESERVED && !name.starts_with('.') && path.symlink_metadata().is_ok() {
            files.push(SkillFile { name: name.to_owned(), path, scope, kind: SkillKind::Skill });
        }
    }
}

fn collect_commands(dir: &Path, scope: SkillScope, files: &mut Vec<SkillFile>) {
    for path in markdown_files(dir) {
        let Some(name) = command_name(dir, &path) else { continue };
        files.push(SkillFile { path, name, scope, kind: SkillKind::CommandFile });
    }
}

/// Returns what a command file is called by.
fn command_name(dir: &Path, path: &Path) -> Option<String> {
    let relative = path.strip_prefix(dir).ok()?.with_extension("");
    let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join(":"))
}

fn read_skills(files: Vec<SkillFile>, places: &DefinitionPlaces) -> FoundSkills {
    read_files(files, |scope| scope != SkillScope::Project || places.is_trusted)
}

/// Reads files, each once: two names may lead to one skill.
fn read_files(files: Vec<SkillFile>, is_trusted: impl Fn(SkillScope) -> bool) -> FoundSkills {
    let mut found = FoundSkills::default();
    let mut seen = HashSet::new();
    for SkillFile { path, name, scope, kind } in files {
        if !seen.insert(fs::canonicalize(&path).unwrap_or_else(|_| path.clone())) {
            continue;
        }
        let source = SkillSource {
            scope,
            kind,
            file: Some(path.clone()),
            plugin: None,
            is_trusted: is_trusted(scope),
        };
        match read_limited(&path) {
            Ok(text) => found.skills.push(parse_skill(&text, &name, source)),
            Err(why) => {
                tracing::debug!(target: "loci::skills", path = %path.display(), why, "a file is no skill");
                found.problems.push((path, why));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SettingsSources;

    fn places(root: &Path) -> DefinitionPlaces {
        DefinitionPlaces {
            managed_dir: root.join("etc"),
            user: root.join("home/.claude"),
            cwd: root.join("p/sub"),
            root: root.join("p"),
            extra_dirs: vec![root.join("extra")],
            sources: SettingsSources::ALL,
            is_trusted: false,
        }
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn names(found: &FoundSkills) -> Vec<String> {
        let line = |skill: &SkillDefinition| {
            format!("{} {} {}", skill.source.scope.as_str(), skill.name, skill.body)
        };
        found.skills.iter().map(line).collect()
    }

    #[test]
    fn skills_and_commands_of_every_place_are_found_closest_first() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (file, text) in [
            ("etc/.claude/skills/m/SKILL.md", "0"),
            ("p/.claude/skills/ship/SKILL.md", "far"),
            ("p/sub/.claude/skills/ship/SKILL.md", "near"),
            ("extra/.claude/skills/e/SKILL.md", "1"),
            ("home/.claude/skills/u/SKILL.md", "2"),
            ("home/.claude/skills/synced/SKILL.md", "reserved"),
            ("home/.claude/skills/loose.md", "no skill"),
            (".claude/skills/outside/SKILL.md", "outside"),
            ("p/.claude/commands/front/comp.md", "3"),
            ("home/.claude/commands/fix.md", "4"),
        ] {
            write(root.join(file), text);
        }
        let expected = [
            "managed m 0",
            "project ship near",
            "project ship far",
            "project e 1",
            "user u 2",
            "project front:comp 3",
            "user fix 4",
        ];
        let found = discover_skills(&places(root));
        assert_eq!(names(&found), expected);
        assert!(!found.skills[1].source.is_trusted && found.skills[4].source.is_trusted);
    }

    #[test]
    fn one_skill_under_two_names_is_read_once_and_links_in_circles_end() {
        let dir = tempfile::tempdir().unwrap();
        let skills = dir.path().join("home/.claude/skills");
        write(skills.join("a/SKILL.md"), "x");
        std::os::unix::fs::symlink(skills.join("a"), skills.join("b")).unwrap();
        let commands = dir.path().join("home/.claude/commands");
        fs::create_dir_all(&commands).unwrap();
        std::os::unix::fs::symlink(&commands, commands.join("again")).unwrap();
        assert_eq!(names(&discover_skills(&places(dir.path()))), ["user a x"]);
    }

    #[test]
    fn changed_skill_is_noticed_once_and_unreadable_one_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("home/.claude/skills/a/SKILL.md");
        let (mut watch, found) = SkillWatch::start(places(dir.path()));
        assert_eq!(found, FoundSkills::default());
        write(file.clone(), "one");
        assert_eq!(names(&watch.poll().unwrap()), ["user a one"]);
        assert!(watch.poll().is_none());
        fs::write(&file, [0xff, 0xfe]).unwrap();
        let found = watch.poll().unwrap();
        assert_eq!((found.skills.len(), found.problems.len()), (0, 1));
        fs::remove_file(&file).unwrap();
        assert_eq!(watch.poll(), Some(FoundSkills::default()));
    }

    #[test]
    fn nested_skills_are_those_of_the_directory_alone() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path().join("web/.claude/skills/n/SKILL.md"), "x");
        write(dir.path().join("web/.claude/commands/c.md"), "x");
        let found = discover_nested_skills(&dir.path().join("web"), true);
        assert_eq!(names(&found), ["project n x"]);
    }
}
