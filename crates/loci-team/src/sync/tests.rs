use std::fs;
use std::sync::Mutex;

use loci_storage::layout::ConfigHome;

use super::*;

/// A server in memory, which can be told to fail at a request.
#[derive(Default)]
struct Twin {
    entries: Mutex<BTreeMap<EntryName, String>>,
    /// How often each entry was written.
    n_writes: Mutex<BTreeMap<String, usize>>,
    /// Requests until the connection is cut: before the request is carried out, or after.
    cut: Mutex<Option<(usize, bool)>>,
}

impl Twin {
    fn with(entries: &[(&str, &str)]) -> Self {
        let twin = Self::default();
        for (name, text) in entries {
            twin.entries.lock().unwrap().insert(EntryName::parse(name).unwrap(), (*text).to_owned());
        }
        twin
    }

    fn text(&self, name: &str) -> Option<String> {
        self.entries.lock().unwrap().get(name).cloned()
    }

    fn request<T>(&self, work: impl FnOnce() -> T) -> Result<T, RemoteError> {
        let mut cut = self.cut.lock().unwrap();
        let failure = || RemoteError::Connection { address: "twin".to_owned(), why: "cut".to_owned() };
        match *cut {
            Some((0, is_after)) => {
                *cut = None;
                if is_after {
                    work();
                }
                Err(failure())
            }
            Some((n, is_after)) => {
                *cut = Some((n - 1, is_after));
                Ok(work())
            }
            None => Ok(work()),
        }
    }
}

impl Remote for Twin {
    fn id(&self) -> String {
        "twin".to_owned()
    }

    async fn list(&self) -> Result<Hashes, RemoteError> {
        self.request(|| {
            let entries = self.entries.lock().unwrap();
            entries.iter().map(|(name, text)| (name.clone(), ContentHash::of(text))).collect()
        })
    }

    async fn fetch(&self, name: &EntryName) -> Result<Option<String>, RemoteError> {
        self.request(|| self.entries.lock().unwrap().get(name).cloned())
    }

    async fn store(&self, name: &EntryName, text: &str, expected: &Expected) -> Result<Stored, RemoteError> {
        if text.starts_with("unwanted") {
            return self.request(|| Stored::Refused("not here".to_owned()));
        }
        self.request(|| {
            let mut entries = self.entries.lock().unwrap();
            let now = entries.get(name).map(|text| ContentHash::of(text));
            let is_expected = match expected {
                Expected::Absent => now.is_none(),
                Expected::Hash(hash) => now.as_ref() == Some(hash),
            };
            if now == Some(ContentHash::of(text)) {
                return Stored::Done;
            }
            if !is_expected {
                return Stored::Conflict;
            }
            entries.insert(name.clone(), text.to_owned());
            *self.n_writes.lock().unwrap().entry(name.to_string()).or_default() += 1;
            Stored::Done
        })
    }
}

struct Person {
    env: Env,
    journal: MemoryJournal,
    _root: tempfile::TempDir,
}

impl Person {
    fn with(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let env = Env::for_test(root.path(), root.path());
        let journal = MemoryJournal::new(&ConfigHome::from_env(&env), &root.path().join("m"));
        let person = Self { env, journal, _root: root };
        files.iter().for_each(|(name, text)| person.write(name, text));
        person
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.journal.dir().join("team").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.journal.dir().join("team").join(name)).ok()
    }

    async fn pull(&self, twin: &Twin) -> Vec<String> {
        render_lines(pull(&self.env, &self.journal, twin).await)
    }

    async fn push(&self, twin: &Twin) -> Vec<String> {
        render_lines(push(&self.journal, twin).await)
    }

    async fn status(&self, twin: &Twin) -> Vec<String> {
        render_lines(status(&self.journal, twin).await)
    }
}

fn render_lines(lines: Result<Vec<Line>, SyncError>) -> Vec<String> {
    match lines {
        Ok(lines) => lines.into_iter().map(|line| format!("{} {:?}", line.name, line.outcome)).collect(),
        Err(error) => vec![format!("error: {error}")],
    }
}

/// Invariant 2 of `docs/design/team-memory.md`.
#[tokio::test]
async fn pushed_entry_is_pulled_by_another_member() {
    let twin = Twin::default();
    let (ann, ben) = (Person::with(&[("a.md", "one"), ("sub/b.md", "two")]), Person::with(&[]));
    assert_eq!(ann.status(&twin).await, ["a.md ToSend", "sub/b.md ToSend"]);
    assert_eq!(ann.push(&twin).await, ["a.md Sent", "sub/b.md Sent"]);
    assert_eq!(ann.push(&twin).await, Vec::<String>::new());
    assert_eq!(ben.status(&twin).await, ["a.md Added(None)", "sub/b.md Added(None)"]);
    assert_eq!(ben.pull(&twin).await, ["a.md Added(Some(1))", "sub/b.md Added(Some(2))"]);
    ben.write("a.md", "one, better");
    assert_eq!(ben.pull(&twin).await, ["a.md Kept"]);
    assert_eq!(ben.push(&twin).await, ["a.md Sent"]);
    assert_eq!(ann.pull(&twin).await, ["a.md Updated(Some(1))"]);
    assert_eq!(ann.text("a.md").as_deref(), Some("one, better"));
}

/// Invariants 2 and 4 of `docs/design/team-memory.md`.
#[tokio::test]
async fn where_both_changed_the_server_wins_and_ours_can_be_brought_back() {
    let twin = Twin::with(&[("a.md", "theirs")]);
    let ann = Person::with(&[("a.md", "ours")]);
    assert_eq!(ann.push(&twin).await, ["a.md Conflict"]);
    assert_eq!(ann.pull(&twin).await, ["a.md Overwritten(Some(1))"]);
    assert_eq!((ann.text("a.md").as_deref(), twin.text("a.md").as_deref()), (Some("theirs"), Some("theirs")));
    ann.journal.undo(&ann.env, 1).unwrap();
    assert_eq!(ann.text("a.md").as_deref(), Some("ours"));
    assert_eq!(ann.push(&twin).await, ["a.md Sent"], "after a look at the server's, ours may replace it");
}

/// Invariant 2 of `docs/design/team-memory.md`.
#[tokio::test]
async fn entry_deleted_locally_is_pulled_again() {
    let twin = Twin::with(&[("a.md", "text")]);
    let ann = Person::with(&[]);
    ann.pull(&twin).await;
    fs::remove_file(ann.journal.dir().join("team/a.md")).unwrap();
    assert_eq!(ann.push(&twin).await, Vec::<String>::new());
    assert_eq!(twin.text("a.md").as_deref(), Some("text"));
    assert_eq!(ann.pull(&twin).await, ["a.md Added(Some(2))"]);
}

/// Invariant 3 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_secret_stops_its_entry_and_no_other() {
    let twin = Twin::default();
    let secret = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let ann =
        Person::with(&[("a.md", "clean"), ("b.md", &format!("first\nuse {secret}\n")), ("c.md", "clean")]);
    let said = ann.push(&twin).await;
    let held = r#"b.md Held([SecretFound { rule: "github-token", line: 2 }])"#;
    assert_eq!(said, ["a.md Sent", held, "c.md Sent"]);
    assert_eq!(twin.text("b.md"), None);
    assert_eq!(ann.status(&twin).await, [held]);
}

/// Invariant 1 of `docs/design/team-memory.md`.
#[tokio::test]
async fn files_that_are_no_entries_are_reported_and_left_alone() {
    let twin = Twin::with(&[("sub/x.md", "theirs"), ("y.md", "1"), ("Y.md", "2")]);
    let ann = Person::with(&[
        ("CLAUDE.md", "x"),
        ("a b.md", "x"),
        ("run.sh", "x"),
        ("ok.md", "x"),
        ("SUB/x.md", "x"),
    ]);
    ann.write("big.md", &"x".repeat(TEAM_ENTRY_BYTES + 1));
    let said = ann.push(&twin).await;
    assert!(
        said.contains(&"ok.md Sent".to_owned()) && said.contains(&"SUB/x.md Conflict".to_owned()),
        "{said:?}"
    );
    assert_eq!(said.iter().filter(|line| line.contains("Skipped")).count(), 4, "{said:?}");
    let said = ann.pull(&twin).await;
    let by_case = said.iter().filter(|line| line.contains("only by case"));
    assert_eq!(by_case.count(), 3, "{said:?}");
    assert_eq!((ann.text("y.md"), ann.text("Y.md")), (None, None));
}

/// A server may be stricter than this side: what it does not take keeps nothing else from being sent.
#[tokio::test]
async fn refused_entry_does_not_stop_the_others() {
    let twin = Twin::with(&[]);
    let ann = Person::with(&[("a.md", "one"), ("b.md", "unwanted"), ("c.md", "three")]);
    assert_eq!(ann.push(&twin).await, ["a.md Sent", "b.md Refused(\"not here\")", "c.md Sent"]);
    assert_eq!(ann.push(&twin).await, ["b.md Refused(\"not here\")"], "and is tried again");
    assert_eq!(twin.text("b.md"), None);
}

/// Invariant 1 of `docs/design/team-memory.md`. Others are not sent a text that nobody wrote, and ours stays.
#[tokio::test]
async fn file_that_is_not_text_is_neither_pushed_nor_replaced() {
    let twin = Twin::with(&[("both.md", "theirs")]);
    let ann = Person::with(&[]);
    for name in ["mine.md", "both.md"] {
        ann.write(name, "");
        fs::write(ann.journal.dir().join("team").join(name), b"caf\xe9").unwrap();
    }
    let skipped = |name: &str| format!("{name} Skipped(\"it is not UTF-8\")");
    assert_eq!(ann.push(&twin).await, [skipped("both.md"), skipped("mine.md")]);
    assert_eq!((twin.text("mine.md"), twin.text("both.md")), (None, Some("theirs".to_owned())));
    let said = ann.pull(&twin).await;
    assert_eq!(said.iter().filter(|line| line.contains("Skipped")).count(), 3, "{said:?}");
    for name in ["mine.md", "both.md"] {
        assert_eq!(fs::read(ann.journal.dir().join("team").join(name)).unwrap(), b"caf\xe9", "{name}");
    }
}

/// Invariant 5 of `docs/design/team-memory.md`. The connection is cut at every request, before and after it is carried out.
#[tokio::test]
async fn a_cut_at_any_request_loses_and_doubles_nothing() {
    for cut in (0..8).flat_map(|n| [(n, false), (n, true)]) {
        let twin = Twin::with(&[("t1.md", "t1"), ("t2.md", "t2")]);
        let ann = Person::with(&[("a.md", "1"), ("b.md", "2"), ("c.md", "3")]);
        *twin.cut.lock().unwrap() = Some(cut);
        for _ in 0..3 {
            ann.push(&twin).await;
            ann.pull(&twin).await;
        }
        for (name, text) in [("a.md", "1"), ("b.md", "2"), ("c.md", "3"), ("t1.md", "t1"), ("t2.md", "t2")] {
            assert_eq!(ann.text(name).as_deref(), Some(text), "{cut:?}");
            assert_eq!(twin.text(name).as_deref(), Some(text), "{cut:?}");
        }
        assert!(twin.n_writes.lock().unwrap().values().all(|n| *n == 1), "{cut:?}");
        assert_eq!(ann.journal.changes().unwrap().len(), 2, "{cut:?}: each text came once");
        assert_eq!(ann.status(&twin).await, Vec::<String>::new(), "{cut:?}");
    }
}
