//! Files and terminals of the editor.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::client::{Editor, choosing};
use crate::support::World;
use loci_testkit::Step;
use serde_json::{Value, json};

/// What the editor has open, and what it was asked to write.
type Buffers = Arc<Mutex<HashMap<String, String>>>;

/// An editor whose buffers are these; everything else it refuses. It allows every call.
fn with_buffers(buffers: &Buffers) -> impl FnMut(&Value) -> Option<Value> + 'static {
    let (buffers, mut permissions) = (Arc::clone(buffers), choosing("allow_once"));
    move |request| {
        let path = request["params"]["path"].as_str().unwrap_or_default().to_owned();
        let mut buffers = buffers.lock().unwrap();
        match request["method"].as_str().unwrap() {
            "fs/read_text_file" => Some(match buffers.get(&path) {
                Some(text) => json!({"content": text}),
                None => json!({"content": std::fs::read_to_string(&path).unwrap()}),
            }),
            "fs/write_text_file" => {
                let text = request["params"]["content"].as_str().unwrap().to_owned();
                std::fs::write(&path, &text).unwrap();
                buffers.insert(path, text);
                Some(Value::Null)
            }
            _ => permissions(request),
        }
    }
}

fn files() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}})
}

fn read() -> Step {
    Step::call("Read", json!({"file_path": "a.txt"}))
}

fn edit(old: &str, new: &str) -> Step {
    Step::call("Edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}))
}

#[tokio::test]
async fn unsaved_text_is_read_and_changed_through_the_editor() {
    let world = World::new([read(), edit("unsaved", "saved"), Step::text("Done.")]).await;
    world.home.write("a.txt", "on disk\n");
    let path = world.path("a.txt");
    let buffers: Buffers = Arc::new(Mutex::new(HashMap::from([(path, "unsaved\nmore\n".to_owned())])));
    let mut editor = Editor::start(&world, [], &files()).answering(with_buffers(&buffers));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Change it"), "end_turn");
    let asked = editor.log.iter().filter(|it| it["method"] == "fs/write_text_file").count();
    assert_eq!(asked, 1);
    editor.leave();
    assert_eq!(world.home.read("a.txt"), "saved\nmore\n");
    let told = world.conversation();
    assert!(told.contains("unsaved") && !told.contains("on disk"), "{told}");
    let history = world.home.config_home().join("file-history");
    assert!(history.exists(), "what was there is kept: {}", history.display());
}

#[tokio::test]
async fn text_that_changed_in_the_editor_since_it_was_read_is_not_overwritten() {
    let write = Step::call("Write", json!({"file_path": "a.txt", "content": "all new\n"}));
    let world = World::new([read(), write, Step::text("Done.")]).await;
    world.home.write("a.txt", "one\n");
    let buffers: Buffers = Arc::default();
    let path = world.path("a.txt");
    let (typed, mut policy) = (Arc::clone(&buffers), with_buffers(&buffers));
    let mut editor = Editor::start(&world, [], &files()).answering(move |request| {
        let answer = policy(request);
        // The person goes on typing after the model has read.
        if request["method"] == "fs/read_text_file" {
            typed.lock().unwrap().insert(path.clone(), "one, and typed since\n".to_owned());
        }
        answer
    });
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Replace it"), "end_turn");
    editor.leave();
    assert_eq!(world.home.read("a.txt"), "one\n");
    assert!(world.conversation().contains("has changed"), "{}", world.conversation());
}

#[tokio::test]
async fn file_that_was_not_read_is_not_changed_through_the_editor_either() {
    let world = World::new([edit("on", "off"), Step::text("Done.")]).await;
    world.home.write("a.txt", "on disk\n");
    let buffers: Buffers = Arc::default();
    let mut editor = Editor::start(&world, [], &files()).answering(with_buffers(&buffers));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Change it"), "end_turn");
    assert!(editor.log.iter().all(|it| it["method"] != "fs/write_text_file"));
    editor.leave();
    assert_eq!(world.home.read("a.txt"), "on disk\n");
}

#[tokio::test]
async fn rejected_edit_never_reaches_the_editor() {
    let world = World::new([read(), edit("on", "off"), Step::text("Done.")]).await;
    world.home.write("a.txt", "on disk\n");
    let buffers: Buffers = Arc::default();
    let (mut files_policy, mut reject) = (with_buffers(&buffers), choosing("reject_once"));
    let mut editor =
        Editor::start(&world, [], &files()).answering(move |request| match request["method"].as_str() {
            Some("session/request_permission") => reject(request),
            _ => files_policy(request),
        });
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Change it"), "end_turn");
    assert!(editor.log.iter().all(|it| it["method"] != "fs/write_text_file"));
    editor.leave();
    assert_eq!(world.home.read("a.txt"), "on disk\n");
}

#[tokio::test]
async fn editor_without_files_is_not_asked_for_them() {
    let world = World::new([read(), Step::text("Done.")]).await;
    world.home.write("a.txt", "on disk\n");
    let mut editor = Editor::start(&world, [], &json!({"terminal": true})).answering(choosing("allow_once"));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "Read it"), "end_turn");
    assert!(editor.log.iter().all(|it| !it["method"].as_str().unwrap_or_default().starts_with("fs/")));
    editor.leave();
}

/// Plays a terminal in which every command prints `out` and ends with `code`.
fn with_terminal(code: i32) -> impl FnMut(&Value) -> Option<Value> + 'static {
    let mut permissions = choosing("allow_once");
    move |request| match request["method"].as_str().unwrap() {
        "terminal/create" => Some(json!({"terminalId": "term-1"})),
        "terminal/wait_for_exit" => Some(json!({"exitCode": code, "signal": null})),
        "terminal/output" => Some(json!({"output": "out of the editor\n", "truncated": false})),
        "terminal/release" | "terminal/kill" => Some(json!({})),
        _ => permissions(request),
    }
}

#[tokio::test]
async fn commands_run_in_the_editors_terminal_only_on_request() {
    for (args, is_asked) in [(vec!["--client-terminal"], true), (vec![], false)] {
        let world =
            World::new([Step::call("Bash", json!({"command": "echo ours"})), Step::text("Done.")]).await;
        let binary = super::client::acp([]).args(args);
        let mut editor =
            Editor::start_binary(&world, &binary, &json!({"terminal": true})).answering(with_terminal(0));
        let session = editor.new_session(&world);
        assert_eq!(editor.prompt(&session, "Run it"), "end_turn");
        let methods: Vec<&str> = editor.log.iter().filter_map(|it| it["method"].as_str()).collect();
        let asked: Vec<&&str> = methods.iter().filter(|it| it.starts_with("terminal/")).collect();
        let shown = editor
            .updates_of(&session, "tool_call_update")
            .iter()
            .any(|it| it["content"][0]["type"] == "terminal");
        assert_eq!(shown, is_asked);
        match is_asked {
            true => assert_eq!(
                asked,
                [&"terminal/create", &"terminal/wait_for_exit", &"terminal/output", &"terminal/release"]
            ),
            false => assert!(asked.is_empty(), "{asked:?}"),
        }
        editor.leave();
        let told = world.conversation();
        assert_eq!(told.contains("out of the editor"), is_asked, "{told}");
    }
}

#[tokio::test]
async fn cancelled_command_in_the_editors_terminal_is_killed() {
    let world = World::new([Step::call("Bash", json!({"command": "sleep 100"})), Step::text("never")]).await;
    let mut policy = with_terminal(0);
    let mut editor =
        Editor::start(&world, ["--client-terminal"], &json!({"terminal": true})).answering(move |request| {
            if request["method"] == "terminal/wait_for_exit" { None } else { policy(request) }
        });
    let session = editor.new_session(&world);
    let prompt = editor.send_prompt(&session, "Run it");
    editor.asked("terminal/wait_for_exit");
    editor.notify("session/cancel", &json!({"sessionId": session}));
    editor.asked("terminal/kill");
    assert_eq!(editor.answer_to(prompt)["result"]["stopReason"], "cancelled");
    editor.leave();
    world.session();
}

#[tokio::test]
async fn sandboxed_session_does_not_open_with_the_editors_terminals() {
    let world = World::new([Step::text("never")]).await;
    let settings = json!({"sandbox": {"enabled": true}}).to_string();
    let mut editor =
        Editor::start(&world, ["--client-terminal", "--settings", &settings], &json!({"terminal": true}));
    let new = json!({"cwd": world.home.project(), "mcpServers": []});
    assert_eq!(editor.refused("session/new", &new), -32600);
    editor.leave();
}
