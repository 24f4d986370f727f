//! Agent definitions on disk: Markdown files below `agents` directories, found and followed.
//!
//! Directories are compared by what lies in them before each turn rather than watched: a change counts from the next
//! turn on, on every file system. What the files mean is decided in `loci_core::agent`.

use std::path::PathBuf;

use loci_core::agent::{AgentDefinition, AgentScope, AgentSource, Problem, parse_agent};

use super::definition_files::{
    DefinitionPlaces, DefinitionPrint, PlaceScope, markdown_files, prints, read_limited,
};

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
    places: DefinitionPlaces,
    seen: Vec<DefinitionPrint>,
}

/// Returns the files in the order in which they win, each with whose it is.
fn agent_files(places: &DefinitionPlaces) -> Vec<(PathBuf, AgentScope)> {
    let scope_of = |scope| match scope {
        PlaceScope::Managed => AgentScope::Managed,
        PlaceScope::Project => AgentScope::Project,
        PlaceScope::User => AgentScope::User,
    };
    let dirs = places.dirs("agents").into_iter();
    dirs.flat_map(|(dir, scope)| markdown_files(&dir).into_iter().map(move |file| (file, scope_of(scope))))
        .collect()
}

fn agent_prints(places: &DefinitionPlaces) -> Vec<DefinitionPrint> {
    prints(agent_files(places).iter().map(|(file, _)| file.as_path()))
}

/// Reads all definitions.
pub fn discover_agents(places: &DefinitionPlaces) -> FoundAgents {
    let mut found = FoundAgents::default();
    for (file, scope) in agent_files(places) {
        // Trust in the project says nothing of a directory that was added from elsewhere.
        let is_trusted =
            scope != AgentScope::Project || (places.is_trusted && file.starts_with(&places.root));
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
    pub fn start(places: DefinitionPlaces) -> (Self, FoundAgents) {
        // Looked at before reading: a change in between shows up as one later.
        let seen = agent_prints(&places);
        let found = discover_agents(&places);
        (Self { places, seen }, found)
    }

    /// Returns the definitions anew when a file came, went or changed since the last time.
    pub fn poll(&mut self) -> Option<FoundAgents> {
        let now = agent_prints(&self.places);
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(discover_agents(&self.places))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::config::SettingsSources;
    use crate::config::definition_files::SIZE_LIMIT;

    fn write(path: &Path, name: &str, prompt: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("---\nname: {name}\ndescription: d\n---\n{prompt}\n")).unwrap();
    }

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
        let found = discover_agents(&DefinitionPlaces { sources, ..places(root) });
        assert_eq!(names(&found), ["managed m 0", "user a user"]);
    }

    #[test]
    fn changes_are_noticed_once() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        let file = places.user.join("agents/a.md");
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
        let dir = places.user.join("agents");
        fs::create_dir_all(&dir).unwrap();
        std::os::unix::fs::symlink(&dir, dir.join("again")).unwrap();
        fs::write(dir.join("big.md"), vec![b'x'; SIZE_LIMIT as usize + 10]).unwrap();
        fs::write(dir.join("binary.md"), [0xff, 0xfe, 0x00]).unwrap();
        let found = discover_agents(&places);
        assert!(found.agents.is_empty());
        assert!(found.problems.iter().any(|it| it.message.contains("larger than 1 MiB")));
        assert!(found.problems.iter().any(|it| it.message.contains("cannot be read")));
    }
}
