//! A directory or a file that may not be read hides nothing but itself, and is named.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::World;

/// Who may not read everything, where the tests are run by someone who may.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A home that another user can be given.
struct Home {
    world: World,
    binary: PathBuf,
}

impl Home {
    async fn new() -> Self {
        let world = World::new([]).await;
        let mut binary = PathBuf::from(env!("CARGO_BIN_EXE_loci"));
        if is_root() {
            // Where it was built, nobody else may get to it.
            let copy = world.home.home().join("loci");
            fs::copy(&binary, &copy).unwrap();
            binary = copy;
        }
        Self { world, binary }
    }

    fn session(&self, project: &str, n: u32, text: &str) -> PathBuf {
        let id = format!("0a0a0a0a-0001-4000-8000-{n:012}");
        let line = json!({"parentUuid": null, "isSidechain": false, "type": "user", "uuid": format!("u{n}"),
            "message": {"role": "user", "content": text}, "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": "/nowhere", "sessionId": id});
        self.world.home.write_config(format!("projects/{project}/{id}.jsonl"), format!("{line}\n"))
    }

    fn run<const N: usize>(&self, args: [&str; N]) -> Output {
        let mut command = Command::new(&self.binary);
        command.args(args).current_dir(self.world.home.project()).env_clear();
        command.envs(self.world.home.env_vars(self.world.model.base_url()));
        if is_root() {
            give(self.world.home.home().parent().unwrap());
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().unwrap()
    }

    /// Runs a command that prints JSON and must name what could not be read.
    fn json<const N: usize>(&self, args: [&str; N], named: &[&Path]) -> Value {
        let output = self.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        for path in named {
            assert!(said.contains(&path.display().to_string()), "{args:?}: {said}");
        }
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {said}"))
    }
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn unreadable_dir_is_reported_and_other_results_are_kept() {
    let home = Home::new().await;
    home.session("-open", 1, "the port is 48213");
    let file = home.session("-open", 2, "a port in a closed file");
    let dir = home.session("-closed", 3, "a port in a closed directory").parent().unwrap().to_owned();
    set_mode(&file, 0o000);
    set_mode(&dir, 0o000);
    let closed = [dir.as_path(), file.as_path()];
    let found = home.json(["sessions", "search", "port", "--json"], &closed);
    assert_eq!((found["hits"].as_array().unwrap().len(), &found["unread"]), (1, &json!(closed)));
    let listed = home.json(["sessions", "list", "--all", "--json"], &closed);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let counted = home.json(["stats", "--json"], &closed);
    assert_eq!(counted["sessions"], 1, "{counted}");
    let meant = home.run(["sessions", "show", "the port is"]);
    let meant = String::from_utf8(meant.stderr).unwrap();
    assert!(meant.contains("loci sessions show 0a0a0a0a-0001-4000-8000-000000000001"), "{meant}");
    let examined = home.json(["sessions", "doctor", "--json"], &[]);
    let findings = examined["findings"].as_array().unwrap();
    let unreadable: Vec<&Value> =
        findings.iter().filter(|it| it["kind"] == "unreadable").map(|it| &it["file"]).collect();
    assert_eq!(unreadable, [&json!(closed[0]), &json!(closed[1])]);
    // So that the home can be removed.
    set_mode(&dir, 0o700);
}
