//! The inbox of a session: what was acknowledged is there for the next process, in order, and once.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use loci_core::inbox::{InboxMessage, InboxSender, MessageKind};
use loci_storage::sessions::InboxFile;
use serde_json::Map;

use crate::support::World;

/// Where a child posts, and which child it is.
const CHILD_INBOX: &str = "LOCI_STORAGE_TEST_INBOX";
const CHILD_NUMBER: &str = "LOCI_STORAGE_TEST_INBOX_CHILD";
/// How many messages a child posts before it waits to be killed; without it, it ends after its share.
const CHILD_WAITS: &str = "LOCI_STORAGE_TEST_INBOX_WAITS";

const WRITERS: usize = 10;
const EACH: usize = 20;

fn message(id: &str) -> InboxMessage {
    InboxMessage {
        id: id.to_owned(),
        from: InboxSender::named("s2", "other"),
        kind: MessageKind::Session,
        text: format!("text of {id}, with \"quotes\"\nand lines"),
        at: "2026-01-02T03:04:05Z".to_owned(),
        more: Map::new(),
    }
}

fn inbox(world: &World) -> InboxFile {
    InboxFile::in_companion(&world.env.home.join("companion"))
}

fn unread(inbox: &InboxFile) -> Vec<String> {
    inbox.read().unwrap().inbox.unread().map(|message| message.id.clone()).collect()
}

fn child(file: &Path, number: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "inbox::child_posts", "--quiet", "--nocapture"]);
    command.env(CHILD_INBOX, file).env(CHILD_NUMBER, number.to_string());
    command
}

/// One process: posts its share and says so after each, or waits behind its last to be killed.
#[test]
fn child_posts() {
    let Ok(file) = std::env::var(CHILD_INBOX) else { return };
    let inbox = InboxFile::at(file.into());
    let me = std::env::var(CHILD_NUMBER).unwrap();
    for n in 0..EACH {
        inbox.post(&message(&format!("{me}-{n}"))).unwrap();
        println!("posted {me}-{n}");
    }
    std::io::stdout().flush().unwrap();
    if std::env::var(CHILD_WAITS).is_ok() {
        drop(std::io::stdin().read_line(&mut String::new()));
    }
}

#[test]
fn messages_are_read_in_order_and_never_twice() {
    let world = World::new();
    let inbox = inbox(&world);
    assert_eq!(unread(&inbox), [""; 0], "no file is an empty inbox");
    for id in ["b", "a", "c"] {
        inbox.post(&message(id)).unwrap();
    }
    assert_eq!(unread(&inbox), ["b", "a", "c"]);
    inbox.mark_read(&["b".to_owned(), "a".to_owned()]).unwrap();
    inbox.post(&message("a")).unwrap();
    assert_eq!(unread(&inbox), ["c"], "who posts it again under its id posts nothing");
    assert_eq!(inbox.read().unwrap().inbox.find("c").unwrap(), &message("c"));
}

#[cfg(unix)]
#[test]
fn acknowledged_messages_survive_a_killed_process() {
    let world = World::new();
    let inbox = inbox(&world);
    let mut child = child(inbox.path(), 7)
        .env(CHILD_WAITS, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let acknowledged: Vec<String> =
        lines.filter_map(|line| line.strip_prefix("posted ").map(str::to_owned)).take(EACH).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(acknowledged.len(), EACH);
    assert_eq!(unread(&inbox), acknowledged);
}

#[test]
fn torn_tail_costs_nothing_but_itself() {
    let world = World::new();
    let inbox = inbox(&world);
    inbox.post(&message("a")).unwrap();
    let whole = fs::read(inbox.path()).unwrap();
    for cut in 1..whole.len() {
        fs::write(inbox.path(), [&whole[..], &whole[..cut]].concat()).unwrap();
        inbox.post(&message("b")).unwrap();
        assert_eq!(unread(&inbox), ["a", "b"], "cut at {cut}");
    }
}

#[test]
fn lines_of_others_are_passed_over_and_kept() {
    let world = World::new();
    let inbox = inbox(&world);
    inbox.post(&message("a")).unwrap();
    let odd = "{\"record\":\"poll\",\"x\":1}\nnot JSON\n";
    let before = [fs::read_to_string(inbox.path()).unwrap(), odd.to_owned()].concat();
    fs::write(inbox.path(), &before).unwrap();
    inbox.post(&message("b")).unwrap();
    let loaded = inbox.read().unwrap();
    assert_eq!((loaded.inbox.unread().count(), loaded.n_skipped), (2, 2));
    assert!(fs::read_to_string(inbox.path()).unwrap().starts_with(&before));
}

#[test]
fn ten_writers_at_once_lose_nothing() {
    let world = World::new();
    let inbox = inbox(&world);
    let children: Vec<_> =
        (0..WRITERS).map(|n| child(inbox.path(), n).stdout(Stdio::null()).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let all = unread(&inbox);
    assert_eq!(all.len(), WRITERS * EACH);
    for writer in 0..WRITERS {
        let own: Vec<&String> = all.iter().filter(|id| id.starts_with(&format!("{writer}-"))).collect();
        let expected: Vec<String> = (0..EACH).map(|n| format!("{writer}-{n}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>(), "each writer's stand in its order");
    }
    assert_eq!(inbox.read().unwrap().n_skipped, 0);
}
