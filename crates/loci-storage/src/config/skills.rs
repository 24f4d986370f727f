//! Skills and command files on disk, found and followed.
//!
//! A skill is a directory with a `SKILL.md` below `skills`, unless it has a manifest and is a plugin; a command is a Markdown file below `commands`, whose
//! directories are part of its name (`commands/front/comp.md` is `front:comp`). What the files mean is decided in
//! `loci_core::skill`. Skills of directories below the working one are found once a file there is read or changed
//! ([`SkillWatch::meet`]), and followed from then on.

mod dir;
mod prefetch;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::skill::{SkillDefinition, SkillKind, SkillScope, parse_skill};
use loci_stdx::in_parallel;

use super::definition_files::{DefinitionPlaces, DefinitionPrint, PlaceScope, markdown_files, read_limited};
use dir::SkillFile;
pub(super) use dir::SkillsDir;
pub use prefetch::SkillsPrefetch;

/// How many files make another thread worth it, and the most threads that read.
const FILES_PER_THREAD: usize = 50;
const MOST_READERS: usize = 4;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundSkills {
    /// The definitions; of several in one scope, the one that wins first.
    pub skills: Vec<Arc<SkillDefinition>>,
    /// Files that could not be read: which, and why.
    pub problems: Vec<(PathBuf, String)>,
}

/// Skills that follow their files.
#[derive(Debug)]
pub struct SkillWatch {
    places: DefinitionPlaces,
    /// Directories below the working one that have skills of their own, in the order in which they were met.
    nested: Vec<PathBuf>,
    seen: Vec<DefinitionPrint>,
}

impl SkillWatch {
    /// Reads the skills and begins to follow them; the reading of the user's may be under way.
    pub fn start(places: DefinitionPlaces, prefetch: Option<SkillsPrefetch>) -> (Self, FoundSkills) {
        // Looked at before reading: a change in between shows up as one later.
        let mut files = skill_files(&places, prefetch);
        let seen = prints_of(&mut files);
        let found = read_skills(files, &places);
        (Self { places, nested: Vec::new(), seen }, found)
    }

    /// Returns the skills anew when a file came, went or changed since the last time.
    pub fn poll(&mut self) -> Option<FoundSkills> {
        let (files, now) = self.scan();
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(read_skills(files, &self.places))
    }

    /// Reads all skills anew, whatever their files look like.
    pub fn reload(&mut self) -> FoundSkills {
        let (files, now) = self.scan();
        self.seen = now;
        read_skills(files, &self.places)
    }

    /// Takes up the skills and commands of a directory that was added; returns all anew, unless it is known.
    pub fn add_dir(&mut self, dir: &Path) -> Option<FoundSkills> {
        let is_known = self.places.cwd == dir || self.places.extra_dirs.iter().any(|known| known == dir);
        (!is_known).then(|| {
            self.places.extra_dirs.push(dir.to_owned());
            self.reload()
        })
    }

    /// Takes up the skills of directories between the working one and a file that was read or changed; returns all skills
    /// anew when there are such that were not known.
    pub fn meet(&mut self, file: &Path) -> Option<FoundSkills> {
        let cwd = fs::canonicalize(&self.places.cwd).ok().filter(|_| self.places.sources.project)?;
        let file = fs::canonicalize(file).ok()?;
        let above = file.ancestors().skip(1).take_while(|dir| dir.starts_with(&cwd) && **dir != cwd);
        let new = above.filter(|dir| !self.nested.contains(&dir.to_path_buf()) && skills_dir(dir).is_dir());
        // The outermost first.
        let mut new: Vec<PathBuf> = new.map(Path::to_path_buf).collect();
        if new.is_empty() {
            return None;
        }
        new.reverse();
        self.nested.extend(new);
        Some(self.reload())
    }

    fn scan(&self) -> (Vec<SkillFile>, Vec<DefinitionPrint>) {
        let mut files = skill_files(&self.places, None);
        let cwd = fs::canonicalize(&self.places.cwd).unwrap_or_else(|_| self.places.cwd.clone());
        for dir in &self.nested {
            let begin = files.len();
            collect_skills(&skills_dir(dir), SkillScope::Project, &mut files);
            let name = dir.strip_prefix(&cwd).unwrap_or(dir).display().to_string();
            files[begin..].iter_mut().for_each(|file| file.nested_in = Some(name.clone()));
        }
        let now = prints_of(&mut files);
        (files, now)
    }
}

fn skills_dir(dir: &Path) -> PathBuf {
    dir.join(".claude").join("skills")
}

/// Reads all skills.
pub fn discover_skills(places: &DefinitionPlaces) -> FoundSkills {
    read_skills(skill_files(places, None), places)
}

/// Returns what tells the files from what they were or will be.
fn prints_of(files: &mut [SkillFile]) -> Vec<DefinitionPrint> {
    let print = |file: &mut SkillFile| file.print.take().or_else(|| DefinitionPrint::read(&file.path));
    files.iter_mut().filter_map(print).collect()
}

/// Returns the files of all places; the reading of the user's skills may be under way.
fn skill_files(places: &DefinitionPlaces, mut prefetch: Option<SkillsPrefetch>) -> Vec<SkillFile> {
    let mut files = Vec::new();
    for (dir, scope) in places.dirs("skills") {
        let is_users = scope == PlaceScope::User;
        match prefetch.take_if(|prefetch| is_users && prefetch.path() == dir) {
            Some(prefetch) => files.extend(prefetch.finish()),
            None => collect_skills(&dir, scope_of(scope), &mut files),
        }
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
    let Some(dir) = SkillsDir::open(dir) else { return };
    files.extend((0..dir.len()).filter_map(|idx| dir.stat(idx, scope)));
}

fn collect_commands(dir: &Path, scope: SkillScope, files: &mut Vec<SkillFile>) {
    for path in markdown_files(dir) {
        let Some(name) = command_name(dir, &path) else { continue };
        let real = fs::canonicalize(&path).ok();
        let kind = SkillKind::CommandFile;
        files.push(SkillFile { path, real, name, scope, kind, nested_in: None, print: None, said: None });
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
fn read_files(mut files: Vec<SkillFile>, is_trusted: impl Fn(SkillScope) -> bool + Sync) -> FoundSkills {
    drop_repeated(&mut files);
    let unread: Vec<usize> = (0..files.len()).filter(|idx| files[*idx].said.is_none()).collect();
    let read = |nth: usize| {
        let file = &files[unread[nth]];
        read_limited(&file.path)
            .map(|text| Arc::new(parse_skill(&text, &file.name, file.source(is_trusted(file.scope)))))
    };
    // A thread has to have enough to do.
    let n_threads = (unread.len() / FILES_PER_THREAD).clamp(1, MOST_READERS);
    let read = in_parallel(unread.len(), n_threads, read);
    for (idx, said) in unread.into_iter().zip(read) {
        files[idx].said = Some(said);
    }
    let mut found = FoundSkills { skills: Vec::with_capacity(files.len()), problems: Vec::new() };
    for SkillFile { path, said, .. } in files {
        match said {
            Some(Ok(skill)) => found.skills.push(skill),
            Some(Err(why)) => {
                tracing::debug!(target: "loci::skills", path = %path.display(), why, "a file is no skill");
                found.problems.push((path, why));
            }
            None => {}
        }
    }
    found
}

/// Leaves the first of several files that lead to one.
fn drop_repeated(files: &mut Vec<SkillFile>) {
    // Most have one directory of skills, whose names are different, and no link in it.
    let is_plain =
        |file: &SkillFile| (file.scope, file.kind, &file.real) == (SkillScope::User, SkillKind::Skill, &None);
    if files.iter().all(is_plain) {
        return;
    }
    let mut seen = HashSet::with_capacity(files.len());
    // All are written alike, so that their letters are compared and not their parts.
    let paths = files.iter().map(|file| file.real.as_ref().unwrap_or(&file.path).as_os_str());
    let is_first: Vec<bool> = paths.map(|path| seen.insert(path)).collect();
    let mut is_first = is_first.into_iter();
    files.retain(|_| is_first.next().unwrap_or(true));
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
        let line = |skill: &Arc<SkillDefinition>| {
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
        for n in 0..20 {
            std::os::unix::fs::symlink(&commands, commands.join(format!("again{n}"))).unwrap();
        }
        assert_eq!(names(&discover_skills(&places(dir.path()))), ["user a x"]);
    }

    #[test]
    fn changed_skill_is_noticed_once_and_unreadable_one_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("home/.claude/skills/a/SKILL.md");
        let (mut watch, found) = SkillWatch::start(places(dir.path()), None);
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
    fn nested_skills_are_met_with_a_file_and_followed_from_then_on() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("p/sub");
        write(cwd.join("apps/web/.claude/skills/n/SKILL.md"), "x");
        write(cwd.join("apps/web/.claude/commands/c.md"), "no skill");
        write(cwd.join("apps/web/src/a.rs"), "");
        write(dir.path().join("p/other/.claude/skills/o/SKILL.md"), "beside");
        write(dir.path().join("p/other/b.rs"), "");
        let (mut watch, _) = SkillWatch::start(places(dir.path()), None);
        assert_eq!(watch.meet(&dir.path().join("p/other/b.rs")), None, "not below the working directory");
        let found = watch.meet(&cwd.join("apps/web/src/a.rs")).unwrap();
        assert_eq!(names(&found), ["project n x"]);
        assert_eq!(found.skills[0].source.nested_in.as_deref(), Some("apps/web"));
        assert_eq!((watch.meet(&cwd.join("apps/web/src/a.rs")), watch.poll()), (None, None));
        write(cwd.join("apps/web/.claude/skills/n/SKILL.md"), "longer");
        assert_eq!(names(&watch.poll().unwrap()), ["project n longer"]);
        assert_eq!(names(&watch.reload()), ["project n longer"]);
        write(dir.path().join("more/.claude/skills/added/SKILL.md"), "y");
        let found = watch.add_dir(&dir.path().join("more")).unwrap();
        assert_eq!(names(&found), ["project added y", "project n longer"]);
        assert_eq!(watch.add_dir(&dir.path().join("more")), None);
    }

    /// Many skills, one of which cannot be read, one link, one plugin.
    fn many(dir: &Path) -> PathBuf {
        let skills = dir.join("home/.claude/skills");
        for n in 0..90 {
            write(skills.join(format!("s{n:02}/SKILL.md")), &format!("---\ndescription: d{n}\n---\nx{n}"));
        }
        write(skills.join("kit/.claude-plugin/plugin.json"), "{}");
        write(skills.join("kit/SKILL.md"), "of the plugin");
        fs::write(skills.join("s07/SKILL.md"), [0xff, 0xfe]).unwrap();
        fs::create_dir_all(skills.join("s08x/SKILL.md")).unwrap();
        fs::write(skills.join("loose.md"), "no skill").unwrap();
        write(dir.join("far/SKILL.md"), "far");
        std::os::unix::fs::symlink(dir.join("far"), skills.join("linked")).unwrap();
        fs::create_dir_all(skills.join("inner")).unwrap();
        std::os::unix::fs::symlink(dir.join("far/SKILL.md"), skills.join("inner/SKILL.md")).unwrap();
        std::os::unix::fs::symlink("nowhere", skills.join("dangling")).unwrap();
        skills
    }

    #[test]
    fn skills_that_are_read_beside_the_start_are_those_that_are_read_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let skills = many(dir.path());
        let prefetch = SkillsPrefetch::start(skills.clone()).unwrap();
        assert_eq!(prefetch.plugins(), [skills.join("kit")]);
        let (mut watch, found) = SkillWatch::start(places(dir.path()), Some(prefetch));
        assert_eq!(found, discover_skills(&places(dir.path())));
        assert_eq!((found.skills.len(), found.problems.len()), (90, 2), "{:?}", found.problems);
        assert_eq!(watch.poll(), None, "what was read is what is followed");
        write(skills.join("s11/SKILL.md"), "changed");
        assert!(watch.poll().is_some());
    }

    #[test]
    fn skills_of_another_directory_than_the_users_are_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        many(dir.path());
        let other = dir.path().join("other");
        write(other.join("strange/SKILL.md"), "x");
        let (_, found) = SkillWatch::start(places(dir.path()), SkillsPrefetch::start(other));
        assert_eq!(found, discover_skills(&places(dir.path())));
        assert!(SkillsPrefetch::start(dir.path().join("none")).is_none());
    }
}
