//! Agent definitions on disk: Markdown files below `agents` directories, found and followed.
//!
//! Directories are compared by what lies in them before each turn rather than watched: a change counts from the next
//! turn on, on every file system. What the files mean is decided in `loci_core::agent`.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loci_core::agent::{AgentDefinition, AgentScope, AgentSource, Problem, parse_agent};
use loci_stdx::open_regular;

use super::SettingsSources;

/// How deep directories may lie, which also ends links that go in circles.
const DEPTH_LIMIT: usize = 8;
/// How many files a directory may have.
const COUNT_LIMIT: usize = 1_000;
/// The largest file that is read.
const SIZE_LIMIT: u64 = 1024 * 1024;

/// Where agents are looked for.
#[derive(Debug, Clone)]
pub struct AgentPlaces {
    /// The administrator's directory.
    pub managed_dir: PathBuf,
    /// The user's agents.
    pub user: PathBuf,
    /// The working directory.
    pub cwd: PathBuf,
    /// The root of the project around it.
    pub root: PathBuf,
    /// Directories the user added.
    pub extra_dirs: Vec<PathBuf>,
    /// Which of them are read.
    pub sources: SettingsSources,
    /// Whether the user trusts the project.
    pub is_trusted: bool,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundAgents {
    /// The definitions; of several in one scope, the one that wins first.
    pub agents: Vec<AgentDefinition>,
    /// Files that are no definitions.
    pub problems: Vec<Problem>,
}

/// Agents that follow their files.
#[derive(Debug)]
pub struct AgentWatch {
    places: AgentPlaces,
    seen: Vec<Print>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Print {
    path: PathBuf,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl AgentPlaces {
    /// Returns the directories in the order in which they win, each with whose it is.
    fn dirs(&self) -> Vec<(PathBuf, AgentScope)> {
        let below = |dir: &Path| dir.join(".claude").join("agents");
        let mut dirs = vec![(below(&self.managed_dir), AgentScope::Managed)];
        if self.sources.project {
            let within = self.cwd.ancestors().take_while(|dir| dir.starts_with(&self.root));
            let projects = within.chain(self.extra_dirs.iter().map(PathBuf::as_path)).map(below);
            // The config home itself is the user's, wherever it lies.
            dirs.extend(projects.filter(|dir| *dir != self.user).map(|dir| (dir, AgentScope::Project)));
        }
        if self.sources.user {
            dirs.push((self.user.clone(), AgentScope::User));
        }
        dirs
    }

    fn files(&self) -> Vec<(PathBuf, AgentScope)> {
        let all = self.dirs().into_iter();
        all.flat_map(|(dir, scope)| agent_files(&dir).into_iter().map(move |file| (file, scope))).collect()
    }
}

/// Reads all definitions.
pub fn discover_agents(places: &AgentPlaces) -> FoundAgents {
    let mut found = FoundAgents::default();
    for (file, scope) in places.files() {
        let is_trusted = scope != AgentScope::Project || places.is_trusted;
        let source = AgentSource { scope, file: Some(file.clone()), is_trusted };
        let read = read_limited(&file).map_err(|why| Problem { source: source.clone(), message: why });
        match read.and_then(|text| parse_agent(&text, source)) {
            Ok(agent) => found.agents.push(agent),
            Err(problem) => {
                tracing::debug!(target: "loci::agents", %problem, "a file is no agent");
                found.problems.push(problem);
            }
        }
    }
    found
}

impl AgentWatch {
    /// Reads the definitions and begins to follow them.
    pub fn start(places: AgentPlaces) -> (Self, FoundAgents) {
        // Looked at before reading: a change in between shows up as one later.
        let seen = prints(&places);
        let found = discover_agents(&places);
        (Self { places, seen }, found)
    }

    /// Returns the definitions anew when a file came, went or changed since the last time.
    pub fn poll(&mut self) -> Option<FoundAgents> {
        let now = prints(&self.places);
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(discover_agents(&self.places))
    }
}

fn prints(places: &AgentPlaces) -> Vec<Print> {
    let print = |path: PathBuf| {
        let metadata = fs::metadata(&path).ok()?;
        Some(Print {
            path,
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    };
    places.files().into_iter().filter_map(|(path, _)| print(path)).collect()
}

/// Returns the Markdown files below a directory, in the order of their paths.
fn agent_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(dir, DEPTH_LIMIT, &mut files);
    files.sort();
    files.truncate(COUNT_LIMIT);
    files
}

fn collect(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if files.len() > COUNT_LIMIT * 2 {
            return;
        }
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

fn read_limited(path: &Path) -> Result<String, String> {
    let read = || {
        let mut text = String::new();
        let file = open_regular(path)?;
        file.take(SIZE_LIMIT + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error: std::io::Error| format!("cannot be read: {error}"))?;
    match text.len() as u64 > SIZE_LIMIT {
        true => Err("is larger than 1 MiB".to_owned()),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, name: &str, prompt: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("---\nname: {name}\ndescription: d\n---\n{prompt}\n")).unwrap();
    }

    fn places(root: &Path) -> AgentPlaces {
        AgentPlaces {
            managed_dir: root.join("etc"),
            user: root.join("home/.claude/agents"),
            cwd: root.join("p/sub"),
            root: root.join("p"),
            extra_dirs: vec![root.join("extra")],
            sources: SettingsSources::ALL,
            is_trusted: false,
        }
    }

    fn names(found: &FoundAgents) -> Vec<String> {
        found
            .agents
            .iter()
            .map(|it| format!("{} {} {}", it.source.scope.as_str(), it.name, it.prompt))
            .collect()
    }

    #[test]
    fn definitions_of_every_place_are_found_closest_first() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for (file, name, prompt) in [
            ("etc/.claude/agents/m.md", "m", "0"),
            ("p/.claude/agents/deep/er/a.md", "a", "far"),
            ("p/sub/.claude/agents/a.md", "a", "near"),
            ("extra/.claude/agents/e.md", "e", "1"),
            ("home/.claude/agents/a.md", "a", "user"),
            (".claude/agents/outside.md", "outside", "2"),
        ] {
            write(&root.join(file), name, prompt);
        }
        fs::write(root.join("p/.claude/agents/bad.md"), "no front matter").unwrap();
        fs::write(root.join("p/.claude/agents/note.txt"), "not Markdown").unwrap();
        let found = discover_agents(&places(root));
        assert_eq!(
            names(&found),
            ["managed m 0", "project a near", "project a far", "project e 1", "user a user"]
        );
        assert_eq!(found.problems.len(), 1);
        assert!(!found.agents[1].source.is_trusted && found.agents[4].source.is_trusted);
        let sources = SettingsSources { project: false, ..SettingsSources::ALL };
        let found = discover_agents(&AgentPlaces { sources, ..places(root) });
        assert_eq!(names(&found), ["managed m 0", "user a user"]);
    }

    #[test]
    fn changes_are_noticed_once() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let file = places.user.join("a.md");
        let (mut watch, found) = AgentWatch::start(places);
        assert_eq!(found, FoundAgents::default());
        assert!(watch.poll().is_none());
        write(&file, "a", "one");
        assert_eq!(names(&watch.poll().unwrap()), ["user a one"]);
        assert!(watch.poll().is_none());
        write(&file, "a", "two words");
        assert_eq!(names(&watch.poll().unwrap()), ["user a two words"]);
        fs::remove_file(&file).unwrap();
        assert_eq!(watch.poll(), Some(FoundAgents::default()));
    }

    #[test]
    fn odd_files_are_problems_and_links_in_circles_end() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        fs::create_dir_all(&places.user).unwrap();
        std::os::unix::fs::symlink(&places.user, places.user.join("again")).unwrap();
        fs::write(places.user.join("big.md"), vec![b'x'; SIZE_LIMIT as usize + 10]).unwrap();
        fs::write(places.user.join("binary.md"), [0xff, 0xfe, 0x00]).unwrap();
        let found = discover_agents(&places);
        assert!(found.agents.is_empty());
        assert!(found.problems.iter().any(|it| it.message.contains("larger than 1 MiB")));
        assert!(found.problems.iter().any(|it| it.message.contains("cannot be read")));
    }
}
