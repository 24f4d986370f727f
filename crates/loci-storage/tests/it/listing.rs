//! Listing sessions from the ends of their files.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_storage::project::Project;
use loci_storage::search::{IndexUse, NoObserver, SearchFilter, SearchQuery, search_sessions};
use loci_storage::sessions::{MessageCount, SessionMetadata, SessionSummary, list_all, list_project};
use serde_json::{Value, json};

use crate::support::{World, fixtures, session_id, user};

fn facts(world: &World, content: impl AsRef<[u8]>) -> SessionMetadata {
    let file = world.write("project/some.jsonl", content);
    SessionMetadata::read(&file).unwrap().unwrap()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn prompt(text: &str) -> Value {
    json!({"parentUuid": null, "isSidechain": false, "type": "user", "message": {"role": "user", "content": text},
        "uuid": "u1", "timestamp": "2026-01-02T03:04:05.000Z", "entrypoint": "sdk-cli", "cwd": "/p", "sessionId": "s", "gitBranch": "main"})
}

fn answer(text: &str, branch: &str) -> Value {
    json!({"parentUuid": "u1", "isSidechain": false, "message": {"id": "m1", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 1_000_000, "output_tokens": 0}},
        "type": "assistant", "uuid": "a1", "timestamp": "2026-01-02T03:05:00.000Z", "cwd": "/p", "sessionId": "s", "gitBranch": branch})
}

#[test]
fn a_short_file_is_known_exactly() {
    let world = World::new();
    let facts = facts(
        &world,
        lines(&[
            json!({"type": "queue-operation", "operation": "enqueue", "timestamp": "2026-01-02T03:04:04.000Z", "content": "Fix"}),
            prompt("Fix it"),
            answer("Done", "topic"),
            json!({"type": "ai-title", "aiTitle": "A generated one", "sessionId": "s"}),
            json!({"type": "custom-title", "customTitle": "Mine \"é\"", "sessionId": "s"}),
            json!({"type": "tag", "tag": "blue", "sessionId": "s"}),
            json!({"type": "last-prompt", "lastPrompt": "Fix it", "leafUuid": "a1", "sessionId": "s"}),
        ]),
    );
    assert_eq!(facts.labels.title(), Some("Mine \"é\""));
    assert_eq!(facts.labels.generated.as_deref(), Some("A generated one"));
    assert_eq!(
        (facts.labels.tag.as_deref(), facts.labels.last_prompt.as_deref()),
        (Some("blue"), Some("Fix it"))
    );
    assert_eq!((facts.first_prompt.as_deref(), facts.git_branch.as_deref()), (Some("Fix it"), Some("topic")));
    assert_eq!((facts.cwd.as_deref(), facts.entrypoint.as_deref()), (Some("/p"), Some("sdk-cli")));
    assert_eq!(facts.created.unwrap().to_string(), "2026-01-02T03:04:04Z");
    assert_eq!(facts.last_activity.unwrap().to_string(), "2026-01-02T03:05:00Z");
    assert_eq!((facts.messages, facts.cost_usd), (MessageCount::Exactly(2), Some(3.0)));
    assert_eq!((facts.is_empty, facts.is_sidechain), (false, false));
}

#[test]
fn the_last_label_counts_and_an_empty_one_takes_it_back() {
    let world = World::new();
    let title = |text: &str| json!({"type": "custom-title", "customTitle": text, "sessionId": "s"});
    let tag = |text: &str| json!({"type": "tag", "tag": text, "sessionId": "s"});
    for (labels, title, tag) in [
        (vec![title("one"), title("two"), tag("a")], Some("two"), Some("a")),
        (vec![title("one"), title(""), tag("a"), tag("")], None, None),
        (
            vec![json!({"type": "user", "message": {"content": "{\"type\":\"tag\",\"tag\":\"x\"}"}})],
            None,
            None,
        ),
    ] {
        let facts = facts(&world, lines(&[vec![prompt("hi")], labels.clone()].concat()));
        assert_eq!((facts.labels.title(), facts.labels.tag.as_deref()), (title, tag), "{labels:?}");
    }
}

/// The two ends of a long file say what it is; what lies between is not read.
#[test]
fn a_long_file_is_known_by_its_ends() {
    let world = World::new();
    let early = json!({"type": "custom-title", "customTitle": "early", "sessionId": "s"});
    let padding = vec![answer(&"x".repeat(2_000), "main"); 200];
    let long = [vec![prompt("First"), early], padding, vec![answer("end", "late")]].concat();
    let facts = facts(&world, lines(&long));
    assert!(facts.size > 400_000);
    assert_eq!(facts.labels.title(), Some("early"));
    assert_eq!((facts.first_prompt.as_deref(), facts.git_branch.as_deref()), (Some("First"), Some("late")));
    assert_eq!(facts.cost_usd, None);
    let MessageCount::About(n) = facts.messages else { panic!("{:?}", facts.messages) };
    assert!((180..230).contains(&n), "{n}");
}

#[test]
fn huge_line_does_not_hide_metadata() {
    let world = World::new();
    let huge = "word ".repeat(60_000);
    let facts = facts(&world, lines(&[prompt(&huge)]));
    assert!(facts.first_prompt.unwrap().starts_with("word word"));
    assert_eq!((facts.git_branch.as_deref(), facts.cwd.as_deref()), (Some("main"), Some("/p")));
    assert!(!facts.is_empty);
    assert_eq!(facts.last_activity.unwrap().to_string(), "2026-01-02T03:04:05Z");
}

#[test]
fn broken_file_still_has_metadata() {
    let world = World::new();
    for (content, is_empty) in [
        ("null\n[]\n17\nnonsense\n\0\0\0\n".to_owned(), true),
        (lines(&[json!({"type": "mode", "mode": "normal"})]), true),
        (format!("null\n{}", lines(&[prompt("hi")])), false),
        (format!("{}{{\"type\":\"assis", lines(&[prompt("hi")])), false),
    ] {
        assert_eq!(facts(&world, &content).is_empty, is_empty, "{content}");
    }
    let file = world.write("project/empty.jsonl", "");
    assert_eq!(SessionMetadata::read(&file).unwrap(), None);
}

/// Class 1 and 2 are in `find`; here: headless, subagent-first and label-only files are all listed.
#[test]
fn every_session_file_is_listed_newest_first() {
    let world = World::new();
    let at = |n: u32| world.home.session(world.cwd(), &session_id(n)).file().to_owned();
    let stamped = |minute: u32| {
        let entry = user("u1", world.cwd());
        entry
            .with_field("timestamp", &format!("2026-01-02T03:{minute:02}:00.000Z").into())
            .unwrap()
            .line()
            .to_owned()
    };
    fs::create_dir_all(at(1).parent().unwrap()).unwrap();
    fs::write(at(1), stamped(10)).unwrap();
    fs::write(at(2), stamped(30).replace("\"isSidechain\":false", "\"isSidechain\":true")).unwrap();
    fs::write(at(3), stamped(20)).unwrap();
    fs::create_dir_all(at(3).with_extension("").join("subagents")).unwrap();
    fs::write(at(3).with_extension("").join("subagents/agent-a1.jsonl"), stamped(59)).unwrap();
    fs::write(at(1).with_file_name("notes.jsonl"), stamped(40)).unwrap();
    fs::create_dir(at(4)).unwrap();
    let listed = list_project(&world.home, &Project::directory(world.cwd())).unwrap();
    let ids: Vec<&SessionId> = listed.iter().map(|session| session.place.id()).collect();
    assert_eq!(ids, [&session_id(2), &session_id(3), &session_id(1)]);
    assert_eq!(list_all(&world.home).unwrap(), listed);
}

/// Class 1: two directories, one name.
#[test]
fn directories_of_one_name_are_listed_apart() {
    let world = World::new();
    let (dotted, dashed) = (world.env.home.join("a.b"), world.env.home.join("a-b"));
    for (n, dir) in [(1, &dotted), (2, &dashed)] {
        let file = world.home.session(dir, &session_id(n)).file().to_owned();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, user("u1", dir).line()).unwrap();
    }
    for (n, dir) in [(1, &dotted), (2, &dashed)] {
        let listed = list_project(&world.home, &Project::directory(dir)).unwrap();
        assert_eq!(listed.iter().map(|it| it.place.id().clone()).collect::<Vec<_>>(), [session_id(n)]);
    }
}

/// What other programs wrote: the first prompt, and as many messages as entries say.
#[test]
fn fixtures_have_their_metadata() {
    let mut seen = 0;
    for file in jsonl_files(&fixtures()) {
        let facts = SessionMetadata::read(&file).unwrap().unwrap();
        assert!(facts.first_prompt.is_some() && facts.created.is_some(), "{}", file.display());
        assert_eq!(facts.cwd.as_deref(), Some("/home/dev/project"), "{}", file.display());
        let text = fs::read_to_string(&file).unwrap();
        let values = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let n_messages = values.filter(|value| {
            matches!(value["type"].as_str(), Some("user" | "assistant")) && value["isMeta"] != true
        });
        assert_eq!(facts.messages, MessageCount::Exactly(n_messages.count() as u64), "{}", file.display());
        seen += 1;
    }
    assert!(seen >= 15, "{seen}");
}

/// Puts blanks around colons and behind commas, as many programs write JSON.
fn with_blanks(text: &str) -> String {
    let (mut out, mut is_text, mut is_escaped) = (String::new(), false, false);
    for char in text.chars() {
        match char {
            ':' if !is_text => out.push_str(" : "),
            ',' if !is_text => out.push_str(", "),
            '{' if !is_text => out.push_str("{ "),
            _ => out.push(char),
        }
        is_text ^= char == '"' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
    }
    out
}

/// What a list shows does not depend on how a program spaces its JSON.
#[test]
fn blanks_between_keys_and_values_hide_nothing_from_a_list() {
    let world = World::new();
    let mut texts = vec![lines(&[
        json!({"type": "api-request", "cwd": "/never", "timestamp": "2000-01-01T00:00:00.000Z"}),
        prompt("Fix it"),
        answer("Done", "topic"),
        json!({"type": "ai-title", "aiTitle": "made", "sessionId": "s"}),
        json!({"type": "custom-title", "customTitle": "mine", "sessionId": "s"}),
        json!({"type": "tag", "tag": "blue", "sessionId": "s"}),
        json!({"type": "cost-state", "modelUsage": {"claude-sonnet-4-5": {"costUSD": 7.5}}}),
    ])];
    let small = jsonl_files(&fixtures()).into_iter().map(|file| fs::read_to_string(file).unwrap_or_default());
    texts.extend(small.filter(|text| with_blanks(text).len() < 60_000));
    assert!(texts.len() > 10, "{}", texts.len());
    let without_file = |facts: SessionMetadata| SessionMetadata { size: 0, modified_ms: 0, ..facts };
    for text in texts.iter().filter(|text| !text.is_empty()) {
        let blank = without_file(facts(&world, with_blanks(text)));
        assert_eq!(blank, without_file(facts(&world, text)), "{text}");
    }
}

fn jsonl_files(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect()
}

/// Whoever moved a project may have linked its new directory to the sessions of the old one.
#[test]
fn a_directory_with_two_names_has_its_sessions_once() {
    let world = World::new();
    let old = world.home.projects_dir().join("-old-place");
    let here = world.home.project_dir(world.cwd());
    let entry = serde_json::json!({"type": "user", "uuid": "u", "parentUuid": null, "cwd": world.cwd(),
        "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "a badger"}});
    fs::create_dir_all(&old).unwrap();
    fs::write(old.join(format!("{}.jsonl", session_id(1))), format!("{entry}\n")).unwrap();
    std::os::unix::fs::symlink(&old, &here).unwrap();
    std::os::unix::fs::symlink("-old-place", world.home.projects_dir().join("-another")).unwrap();
    let files = |sessions: Vec<SessionSummary>| -> Vec<std::path::PathBuf> {
        sessions.into_iter().map(|session| session.place.file().to_owned()).collect()
    };
    let name = format!("{}.jsonl", session_id(1));
    assert_eq!(files(list_all(&world.home).unwrap()), [old.join(&name)]);
    for project in [Project::directory(world.cwd()), Project::repository(world.cwd())] {
        assert_eq!(files(list_project(&world.home, &project).unwrap()), [here.join(&name)]);
    }
    let elsewhere = world.env.home.join("elsewhere");
    assert!(loci_storage::sessions::session_by_id(&world.home, &elsewhere, &session_id(1)).is_ok());
    let wish = SearchQuery {
        text: "badger".to_owned(),
        is_regex: false,
        filter: SearchFilter::default(),
        skip: 0,
        limit: 10,
    };
    let found = search_sessions(&world.home, &wish, IndexUse::None, "test", &NoObserver).unwrap();
    assert_eq!(found.n_found, 1);
}
