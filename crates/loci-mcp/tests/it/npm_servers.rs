//! The reference servers from npm: programs that people have in their configuration today.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use loci_mcp::{ContentPart, ElicitationAnswer, Progress, ServerStatus};
use loci_testkit::NodePackages;
use serde_json::{Map, Value, json};

use crate::remote_servers::Listening;
use crate::support::{Answering, World, until};

/// Returns the packages; none if there is no npm.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn packages() -> Option<NodePackages> {
    let names =
        ["everything", "filesystem", "memory"].map(|name| format!("@modelcontextprotocol/server-{name}"));
    let packages = NodePackages::new(
        env!("CARGO_TARGET_TMPDIR"),
        "mcp-servers",
        20,
        &names.each_ref().map(String::as_str),
    );
    if packages.is_none() {
        eprintln!("skipped: there is no npm on this machine");
    }
    packages
}

/// Returns the entry of a server that is a program.
fn entry(packages: &NodePackages, name: &str, args: &[&str]) -> Value {
    let command = packages.program(&format!("mcp-server-{name}"));
    let script = command.get_args().next().unwrap().to_owned();
    let args: Vec<String> = std::iter::once(script.to_string_lossy().into_owned())
        .chain(args.iter().map(|&arg| arg.to_owned()))
        .collect();
    json!({"command": PathBuf::from(command.get_program()), "args": args})
}

fn assert_connected(world: &World, name: &str) {
    assert_eq!(world.status(name), (ServerStatus::Connected, String::new()), "{}", world.log(name));
}

#[tokio::test]
async fn everything_server_is_used_whole() {
    let Some(packages) = packages() else { return };
    let world = World::start(json!({"e": entry(&packages, "everything", &[])}), &[]).await;
    assert_connected(&world, "e");
    let view = world.view("e");
    assert!(view.offer.tools.len() > 10 && !view.offer.prompts.is_empty() && view.offer.has_resources);
    assert!(view.handshake.unwrap().instructions.is_some());
    assert_eq!(world.call("e", "echo", json!({"message": "hi"})).await, Ok("Echo: hi".to_owned()));
    let call = |tool: &'static str, arguments: Value| {
        let servers = world.servers.clone();
        async move { servers.call("e", tool, arguments, Value::Null, None).await.unwrap() }
    };
    let weather = call("get-structured-content", json!({"location": "New York"})).await;
    assert!(weather.structured.is_some_and(|it| it["temperature"].is_number()));
    let picture = call("get-tiny-image", json!({})).await;
    assert!(picture.parts.iter().any(|it| matches!(it, ContentPart::Image { .. })), "{picture:?}");
    let links = call("get-resource-links", json!({"count": 2})).await;
    let n_links = links.parts.iter().filter(|it| matches!(it, ContentPart::Link { .. })).count();
    assert_eq!(n_links, 2, "{links:?}");
    let wrong = call("get-sum", json!({"a": "x"})).await;
    assert!(wrong.is_error, "{wrong:?}");
    let uri = view.offer.resources[0].uri.clone();
    assert!(!world.servers.read("e", &uri).await.unwrap().is_empty());
    let arguments = Map::from_iter([("city".to_owned(), json!("Rome"))]);
    let filled = world.servers.prompt("e", "args-prompt", arguments).await.unwrap();
    assert!(matches!(&filled[0].1, ContentPart::Text(text) if text.contains("Rome")), "{filled:?}");
}

#[tokio::test]
async fn everything_server_asks_and_tells_how_it_is_getting_on() {
    let Some(packages) = packages() else { return };
    let world = World::start(json!({"e": entry(&packages, "everything", &[])}), &[]).await;
    assert_connected(&world, "e");
    let name = Map::from_iter([("name".to_owned(), json!("Ada"))]);
    let asked = Answering::new(ElicitationAnswer::Accept(name));
    world.servers.set_client(asked.clone());
    let said = world.call("e", "trigger-elicitation-request", json!({})).await.unwrap();
    assert!(said.contains("Ada"), "{said}");
    let page = json!({"url": "https://example.com/page"});
    world.call("e", "trigger-url-elicitation", page).await.unwrap();
    let url = asked.asked.lock().unwrap().last().unwrap().url.clone().unwrap().0;
    assert_eq!(url, "https://example.com/page");
    assert!(world.call("e", "get-roots-list", json!({})).await.unwrap().contains("/first"));
    let heard: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let hearing = Arc::clone(&heard);
    let on_progress = Arc::new(move |progress| hearing.lock().unwrap().push(progress));
    let arguments = json!({"duration": 0.2, "steps": 2});
    let called =
        world.servers.call("e", "trigger-long-running-operation", arguments, Value::Null, Some(on_progress));
    assert!(called.await.unwrap().text().contains("completed"));
    assert!(heard.lock().unwrap().iter().any(|it| it.total == Some(2.0)), "{heard:?}");
}

#[tokio::test]
async fn tool_that_can_only_be_called_as_a_task_is_followed_and_its_question_is_put() {
    let Some(packages) = packages() else { return };
    let world = World::start(json!({"e": entry(&packages, "everything", &[])}), &[]).await;
    assert_connected(&world, "e");
    let asked = Answering::new(ElicitationAnswer::Decline);
    world.servers.set_client(asked.clone());
    let arguments = json!({"topic": "python", "ambiguous": true});
    let said = world.call("e", "simulate-research-query", arguments).await.unwrap();
    assert!(said.contains("python"), "{said}");
    assert_eq!(asked.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn filesystem_and_memory_servers_do_their_work_and_refuse_what_they_refuse() {
    let Some(packages) = packages() else { return };
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut memory = entry(&packages, "memory", &[]);
    memory["env"] = json!({"MEMORY_FILE_PATH": root.join("memory.jsonl")});
    let files = entry(&packages, "filesystem", &[&root.display().to_string()]);
    let world = World::start(json!({"files": files, "memory": memory}), &[]).await;
    assert_connected(&world, "files");
    assert_connected(&world, "memory");
    // The server asks where we work, and works there and no longer where its arguments said.
    until("the server knows our roots", || world.log("files").contains("allowed directories from MCP roots"))
        .await;
    let file = world.dir.path().canonicalize().unwrap().join("a.txt");
    let written = world.call("files", "write_file", json!({"path": file, "content": "one\n"})).await;
    assert!(written.is_ok(), "{written:?} {}", world.log("files"));
    let content = std::fs::read_to_string(&file).ok();
    assert_eq!(content.as_deref(), Some("one\n"), "{written:?} {}", world.log("files"));
    let outside =
        world.servers.call("files", "read_text_file", json!({"path": "/etc/passwd"}), Value::Null, None);
    assert!(outside.await.unwrap().is_error);
    let ada = json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]});
    world.call("memory", "create_entities", ada).await.unwrap();
    assert!(world.call("memory", "read_graph", json!({})).await.unwrap().contains("Ada"));
}

#[tokio::test]
async fn everything_server_is_used_over_both_kinds_of_http() {
    let Some(packages) = packages() else { return };
    for (transport, kind, path) in [("streamableHttp", "http", "mcp"), ("sse", "sse", "sse")] {
        let server = Listening::start(|port, _| {
            let mut command: Command = packages.program("mcp-server-everything");
            command.arg(transport).env("PORT", port.to_string());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        })
        .await;
        let url = format!("http://127.0.0.1:{}/{path}", server.port);
        let world = World::start(json!({"e": {"type": kind, "url": url}}), &[]).await;
        assert_connected(&world, "e");
        assert_eq!(world.call("e", "echo", json!({"message": kind})).await, Ok(format!("Echo: {kind}")));
    }
}
