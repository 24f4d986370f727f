use std::fs;

use loci_core::ids::SessionId;
use loci_stdx::SystemClock;
use loci_storage::history::{OnConflict, RewindContext, apply_rewind, plan_rewind};
use loci_storage::layout::ConfigHome;

use super::*;

/// A project and what is kept of it.
struct World {
    _root: tempfile::TempDir,
    env: Env,
    home: ConfigHome,
    session: SessionId,
    watched: Watched,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("project")).unwrap();
        fs::create_dir_all(path.join("home")).unwrap();
        let mut env = Env::for_test(path.join("home"), path.join("project"));
        env.clock = Arc::new(SystemClock::new());
        let home = ConfigHome::from_env(&env);
        let session = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let tree = TreeHistory::new(&home, &session, &env.cwd, &env);
        let mut world = Self { _root: root, env, home, session, watched: Watched::new(tree) };
        world.write("a", "old");
        world.watched.tree.begin_prompt(&EntryId::new("p1")).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.env.cwd.join(name)
    }

    fn write(&mut self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What a tool that names its file does before it changes it.
    fn checkpoint(&mut self, call: &WatchedCall, name: &str) {
        let before = self.watched.tree.state_before(&self.env.cwd.join(name));
        self.watched.open.entry(call.key.clone()).or_default().extend(before);
    }

    fn begin(&mut self, call: &WatchedCall) {
        assert_eq!(self.watched.begin(call), [""; 0]);
    }

    fn end(&mut self, call: &WatchedCall) {
        assert_eq!(self.watched.end(call), [""; 0]);
    }

    /// Goes back to a prompt, which must meet no conflict; returns the files that there are then.
    fn rewound(&self, prompt: &str) -> Vec<(String, String)> {
        let (home, env, session) = (&self.home, &self.env, &self.session);
        let scene = RewindContext { home, env, session, cwd: &env.cwd };
        let plan = plan_rewind(&scene, &[], &EntryId::new(prompt)).unwrap();
        assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
        apply_rewind(&scene, plan, OnConflict::Refuse, None).unwrap();
        let mut files: Vec<(String, String)> = fs::read_dir(&env.cwd)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read_to_string(&path).unwrap_or_else(|_| "(directory)".to_owned()))
            })
            .collect();
        files.sort();
        files
    }
}

/// The same id of a call, for two agents: servers of local models count from one.
fn call(agent: &str, tool: &str) -> WatchedCall {
    let id = ToolUseId::new("call_1");
    WatchedCall {
        key: CallKey { agent: Some(AgentId::new(agent)), call: id.clone() },
        origin: ChangeOrigin { call: Some(id), by: tool.to_owned() },
        may_change_anything: tool == "Bash",
        is_background: false,
    }
}

fn old() -> Vec<(String, String)> {
    vec![("a".to_owned(), "old".to_owned())]
}

#[test]
fn what_a_call_did_before_another_one_began_is_kept() {
    let mut world = World::new();
    let (one, two) = (call("a1", "Bash"), call("a2", "Bash"));
    world.begin(&one);
    world.write("a", "by the first");
    world.write("made-1", "x");
    world.begin(&two);
    world.write("made-2", "x");
    world.end(&one);
    world.write("made-3", "x");
    world.end(&two);
    assert_eq!(world.rewound("p1"), old());
}

#[test]
fn file_that_a_tool_changes_while_a_command_runs_is_noted_once() {
    let mut world = World::new();
    let (edit, command) = (call("a1", "Edit"), call("a2", "Bash"));
    world.begin(&command);
    world.checkpoint(&edit, "a");
    world.checkpoint(&edit, "new/b");
    world.write("a", "new");
    world.write("new/b", "new");
    // The command ends first and sees what the tool has written.
    world.end(&command);
    world.end(&edit);
    assert_eq!(world.rewound("p1"), old());
}

#[test]
fn file_that_two_tools_change_at_once_goes_back_to_what_it_was() {
    let mut world = World::new();
    let (one, two) = (call("a1", "Write"), call("a2", "Write"));
    for tool in [&one, &two] {
        world.checkpoint(tool, "a");
        world.checkpoint(tool, "dir/b");
    }
    world.write("a", "by the first");
    world.write("dir/b", "by the first");
    world.end(&one);
    world.write("a", "by the second");
    world.write("dir/b", "by the second");
    world.end(&two);
    assert_eq!(world.rewound("p1"), old());
}

#[test]
fn what_others_change_between_calls_is_not_taken_back() {
    let mut world = World::new();
    let (one, two) = (call("a1", "Bash"), call("a2", "Bash"));
    world.begin(&one);
    world.write("made", "x");
    world.end(&one);
    world.write("of-a-person", "kept");
    world.begin(&two);
    world.end(&two);
    let mut expected = old();
    expected.push(("of-a-person".to_owned(), "kept".to_owned()));
    assert_eq!(world.rewound("p1"), expected);
}

#[test]
fn prompt_that_comes_while_a_call_runs_divides_what_it_changes() {
    let mut world = World::new();
    let command = call("a1", "Bash");
    world.begin(&command);
    world.write("early", "x");
    assert_eq!(world.watched.note_under_way(), [""; 0]);
    world.watched.tree.begin_prompt(&EntryId::new("p2")).unwrap();
    world.write("late", "x");
    world.end(&command);
    let mut expected = old();
    expected.push(("early".to_owned(), "x".to_owned()));
    assert_eq!(world.rewound("p2"), expected);
}

/// Beside a file that a tool writes stands, for a moment, what will take its place; a look may come in that moment.
#[test]
fn file_that_is_half_written_by_another_call_is_not_seen() {
    let mut world = World::new();
    let (write, command) = (call("a1", "Write"), call("a2", "Bash"));
    world.checkpoint(&write, "b");
    world.write(".tmp-0123456789abcdef", "half");
    world.begin(&command);
    fs::rename(world.path(".tmp-0123456789abcdef"), world.path("b")).unwrap();
    world.end(&write);
    world.end(&command);
    assert_eq!(world.rewound("p1"), old());
}
