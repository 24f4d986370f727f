//! Servers of the revision without handshakes (2026-07-28), and those that turn out not to be.

use std::process::Command;
use std::sync::{Arc, Mutex};

use loci_mcp::ServerStatus::{Connected, Failed};
use loci_mcp::{ElicitationAnswer, Progress};
use serde_json::{Map, Value, json};

use crate::remote_servers::Listening;
use crate::support::{Answering, World, official_sdk, script, until};

async fn listening(fault: &str) -> Listening {
    Listening::start(|port, log| {
        let mut command = Command::new("python3");
        command.arg(script("stateless_server.py")).args([fault, &port.to_string(), log]);
        command
    })
    .await
}

fn program(fault: &str) -> Value {
    json!({"command": "python3", "args": [script("stateless_server.py"), fault]})
}

async fn over_http(fault: &str) -> (Listening, World) {
    let server = listening(fault).await;
    let world = World::start(json!({"s": server.entry()}), &[]).await;
    (server, world)
}

fn protocol(world: &World) -> String {
    world.view("s").handshake.map(|it| it.protocol).unwrap_or_default()
}

#[tokio::test]
async fn requests_say_themselves_what_they_are() {
    let (server, world) = over_http("none").await;
    assert_eq!(world.status("s"), (Connected, String::new()), "{}", server.log());
    let handshake = world.view("s").handshake.unwrap();
    assert_eq!(
        (handshake.protocol.as_str(), handshake.instructions.as_deref()),
        ("2026-07-28", Some("Be brief."))
    );
    assert_eq!(world.call("s", "t", json!({"r": "zürich"})).await, Ok("new".to_owned()));
    world.servers.shutdown().await;
    let log = server.log();
    for line in [
        "server/discover Mcp-Method=server/discover Mcp-Name=None Mcp-Protocol-Version=2026-07-28 Mcp-Session-Id=None",
        "tools/call Mcp-Method=tools/call Mcp-Name=t Mcp-Protocol-Version=2026-07-28 Mcp-Session-Id=None \
         Mcp-Param-Region==?base64?esO8cmljaA==?=",
    ] {
        assert!(log.contains(line), "{line}\n{log}");
    }
    assert!(!log.contains("initialize") && !log.contains("GET"), "{log}");
}

#[tokio::test]
async fn servers_of_the_older_era_are_greeted_in_their_way_and_remembered() {
    for fault in ["unknowing", "older"] {
        let (server, world) = over_http(fault).await;
        assert_eq!((world.status("s").0, protocol(&world).as_str()), (Connected, "2025-11-25"), "{fault}");
        assert_eq!(world.call("s", "t", json!({})).await, Ok("old".to_owned()));
        assert_eq!(world.servers.reconnect("s").await, Ok(()));
        let log = server.log();
        let n_times = |method: &str| log.lines().filter(|line| line.starts_with(method)).count();
        assert_eq!(n_times("server/discover "), 1, "{fault}: the answer is remembered\n{log}");
        assert_eq!(n_times("initialize "), 2, "{log}");
    }
}

#[tokio::test]
async fn revision_that_nobody_here_speaks_is_a_failure() {
    let (_server, world) = over_http("stranger").await;
    let (status, error) = world.status("s");
    assert!(status == Failed && error.contains("2031-01-01") && error.contains("2026-07-28"), "{error}");
}

#[tokio::test]
async fn negotiation_follows_the_variable() {
    for (vars, expected) in [
        (&[][..], "2025-11-25"),
        (&[("MCP_PROTOCOL_NEGOTIATION", "auto")], "2026-07-28"),
        (&[("MCP_PROTOCOL_NEGOTIATION", "legacy")], "2025-11-25"),
    ] {
        let world = World::start(json!({"s": program("none")}), vars).await;
        assert_eq!((world.status("s").0, protocol(&world).as_str()), (Connected, expected), "{vars:?}");
    }
    let server = listening("none").await;
    let world = World::start(json!({"s": server.entry()}), &[("MCP_PROTOCOL_NEGOTIATION", "legacy")]).await;
    assert_eq!(protocol(&world), "2025-11-25");
    // One that refuses the handshake says itself what it speaks.
    let world = World::start(json!({"s": program("strict")}), &[]).await;
    assert_eq!(protocol(&world), "2026-07-28");
}

#[tokio::test]
async fn program_that_does_not_survive_the_question_is_started_again() {
    let world = World::start(json!({"s": program("leaves")}), &[("MCP_PROTOCOL_NEGOTIATION", "auto")]).await;
    assert_eq!(
        (world.status("s").0, protocol(&world).as_str()),
        (Connected, "2025-11-25"),
        "{}",
        world.log("s")
    );
}

#[tokio::test]
async fn questions_come_with_the_answer_and_are_answered_with_the_next_request() {
    let (_server, world) = over_http("asks").await;
    let said = world.call("s", "t", json!({})).await;
    assert_eq!(said, Ok("§ 1 cancel None".to_owned()), "nobody is there");
    let accept =
        Answering::new(ElicitationAnswer::Accept(Map::from_iter([("name".to_owned(), json!("Ada"))])));
    world.servers.set_client(accept.clone());
    assert_eq!(world.call("s", "t", json!({})).await, Ok("§ 1 accept {'name': 'Ada'}".to_owned()));
    assert_eq!(accept.asked.lock().unwrap()[0].message, "Who?");
    let (_server, world) = over_http("asks-for-roots").await;
    let said = world.call("s", "t", json!({})).await.unwrap_err();
    assert!(said.contains("asks for `roots/list`"), "{said}");
    let (_server, world) = over_http("asks-for-ever").await;
    let said = world.call("s", "t", json!({})).await.unwrap_err();
    assert!(said.contains("more than 10 times"), "{said}");
}

#[tokio::test]
async fn call_that_becomes_a_task_is_followed_to_its_end() {
    let (server, world) = over_http("task").await;
    let accept =
        Answering::new(ElicitationAnswer::Accept(Map::from_iter([("name".to_owned(), json!("Ada"))])));
    world.servers.set_client(accept.clone());
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&told);
    let on_progress = Arc::new(move |news: Progress| heard.lock().unwrap().extend(news.message));
    let called = world.servers.call("s", "t", json!({}), Value::Null, Some(on_progress)).await;
    let text = called.unwrap().text();
    assert!(text.contains("looks") && text.contains("'accept'") && text.contains("Ada"), "{text}");
    assert_eq!(accept.asked.lock().unwrap().len(), 1, "what is told again is not asked again");
    assert_eq!(*told.lock().unwrap(), ["step 1", "step 2"]);
    let log = server.log();
    assert!(
        log.contains("tasks/get Mcp-Method=tasks/get Mcp-Name=t-1") && !log.contains("tasks/cancel"),
        "{log}"
    );
    let (_server, world) = over_http("task-fails").await;
    assert_eq!(world.call("s", "t", json!({})).await, Err("out of paper (code -5)".to_owned()));
}

#[tokio::test]
async fn task_that_nobody_waits_for_is_cancelled_at_the_server() {
    let (server, world) = over_http("task-hangs").await;
    let calling = tokio::spawn({
        let servers = world.servers.clone();
        async move { servers.call("s", "t", json!({}), Value::Null, None).await.map(drop) }
    });
    until("it is looked at", || server.log().contains("tasks/get")).await;
    calling.abort();
    until("it is cancelled", || server.log().contains("tasks/cancel Mcp-Method=tasks/cancel Mcp-Name=t-1"))
        .await;
}

#[tokio::test]
async fn changes_are_told_by_a_request_that_is_held() {
    for entry in ["http", "stdio"] {
        let server = listening("changes").await;
        let entry = if entry == "http" { server.entry() } else { program("changes") };
        let world = World::start(json!({"s": entry}), &[("MCP_PROTOCOL_NEGOTIATION", "auto")]).await;
        assert_eq!(world.tools("s"), ["mcp__s__t", "mcp__s__t1"], "{:?}", world.status("s"));
        // The first call may come before the server is listened to.
        while world.tools("s") == ["mcp__s__t", "mcp__s__t1"] {
            assert_eq!(world.call("s", "t", json!({})).await, Ok("new".to_owned()));
        }
        world.servers.shutdown().await;
    }
}

#[tokio::test]
async fn call_is_cancelled_by_closing_its_exchange() {
    let (server, world) = over_http("hangs").await;
    let call = world.call("s", "t", json!({}));
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), call).await.is_err());
    until("the server sees the end", || server.log().contains("closed by the client")).await;
    assert!(!server.log().contains("notifications/cancelled"), "{}", server.log());
}

#[tokio::test]
async fn lists_and_resources_are_as_fresh_as_the_server_says() {
    let (_server, world) = over_http("none").await;
    for _ in 0..2 {
        let read = world.servers.read("s", "a://b").await.unwrap();
        assert_eq!(read, [loci_mcp::ContentPart::Text("read 1".to_owned())]);
    }
    world.servers.refresh_stale();
    let (_server, world) = over_http("stale").await;
    assert_eq!(world.tools("s"), ["mcp__s__t", "mcp__s__t1"]);
    world.servers.refresh_stale();
    until("the list is asked for anew", || world.tools("s") == ["mcp__s__t", "mcp__s__t2"]).await;
}

/// Uses what the official server has in this era.
#[tokio::test]
async fn official_server_is_used_without_a_handshake() {
    let Some(python) = official_sdk() else {
        eprintln!("skipped: there is no python3 on this machine");
        return;
    };
    let server = Listening::start(|port, _| {
        let mut command = python.script(script("official_server.py"));
        command.args(["streamable-http", &port.to_string()]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    })
    .await;
    let program = python.script("x").get_program().to_string_lossy().into_owned();
    let stdio = json!({"command": program, "args": [script("official_server.py"), "stdio"]});
    for entry in [server.entry(), stdio] {
        let world = World::start(json!({"s": entry}), &[("MCP_PROTOCOL_NEGOTIATION", "auto")]).await;
        assert_eq!(
            (world.status("s"), protocol(&world).as_str()),
            ((Connected, String::new()), "2026-07-28")
        );
        assert_eq!(world.tools("s").len(), 9);
        assert_eq!(world.call("s", "echo", json!({"text": "hi"})).await, Ok("hi".to_owned()));
        let heard: Arc<Mutex<Vec<Progress>>> = Arc::default();
        let hearing = Arc::clone(&heard);
        let on_progress = Arc::new(move |progress| hearing.lock().unwrap().push(progress));
        let slow = world.servers.call("s", "slow", json!({}), Value::Null, Some(on_progress)).await.unwrap();
        assert_eq!((slow.text().as_str(), heard.lock().unwrap().len()), ("done", 3));
        assert_eq!(world.servers.read("s", "note://today").await.unwrap().len(), 1);
        let arguments = Map::from_iter([("code".to_owned(), json!("x = 1"))]);
        assert_eq!(world.servers.prompt("s", "review", arguments).await.unwrap().len(), 1);
        world.servers.shutdown().await;
    }
}
