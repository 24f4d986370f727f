//! Servers with an address: the official one over both kinds of HTTP, and ones that do one thing out of the ordinary.

use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};

use loci_mcp::ElicitationAnswer;
use loci_mcp::ServerStatus::{Connected, Failed, NeedsAuth};
use serde_json::{Map, Value, json};

use crate::support::{Answering, World, official_sdk, script, until};

/// A server that listens, and is ended with the test.
pub(crate) struct Listening {
    child: Child,
    pub(crate) port: u16,
    log: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Listening {
    pub(crate) async fn start(make: impl FnOnce(u16, &str) -> Command) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let child = make(port, &log.display().to_string()).spawn().unwrap();
        until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
        Self { child, port, log, _dir: dir }
    }

    async fn faulty(fault: &str) -> Self {
        Self::start_script("faulty_http_server.py", fault).await
    }

    async fn start_script(name: &str, fault: &str) -> Self {
        Self::start(|port, log| {
            let mut command = Command::new("python3");
            command.arg(script(name)).args([fault, &port.to_string(), log]);
            command
        })
        .await
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn entry(&self) -> Value {
        json!({"type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port)})
    }
}

/// Uses everything of the official server over a transport.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
async fn check_official(transport: &str, kind: &str, path: &str) {
    let Some(python) = official_sdk() else {
        eprintln!("skipped: there is no python3 on this machine");
        return;
    };
    let server = Listening::start(|port, _| {
        let mut command = python.script(script("official_server.py"));
        command
            .args([transport, &port.to_string()])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command
    })
    .await;
    let entry = json!({"type": kind, "url": format!("http://127.0.0.1:{}{path}", server.port)});
    let world = World::start(json!({"official": entry}), &[("MCP_PROTOCOL_NEGOTIATION", "legacy")]).await;
    assert_eq!(world.status("official"), (Connected, String::new()), "{}", world.log("official"));
    assert_eq!(world.tools("official").len(), 9);
    assert_eq!(world.call("official", "echo", json!({"text": "hi"})).await, Ok("hi".to_owned()));
    assert_eq!(world.call("official", "slow", json!({})).await, Ok("done".to_owned()));
    let answer = Map::from_iter([("name".to_owned(), json!("Ada"))]);
    world.servers.set_client(Answering::new(ElicitationAnswer::Accept(answer)));
    assert_eq!(world.call("official", "ask", json!({})).await, Ok("accept name='Ada' age=30".to_owned()));
    assert_eq!(
        world.call("official", "where", json!({})).await,
        Ok("file:///first file:///second%20place".to_owned())
    );
    assert_eq!(world.servers.read("official", "note://today").await.unwrap().len(), 1);
    let large = world.call("official", "large", json!({"n": 20_000})).await.unwrap();
    assert_eq!(large.len(), 260_000);
    assert_eq!(world.call("official", "grow", json!({})).await, Ok("grown".to_owned()));
    until("the new tool is listed", || world.tools("official").len() == 10).await;
    world.servers.shutdown().await;
}

#[tokio::test]
async fn official_server_is_used_over_streamable_http() {
    check_official("streamable-http", "http", "/mcp").await;
}

#[tokio::test]
async fn official_server_is_used_over_the_older_sse() {
    check_official("sse", "sse", "/sse").await;
}

#[tokio::test]
async fn session_and_version_are_named_and_the_session_is_ended() {
    let server = Listening::faulty("none").await;
    let mut entry = server.entry();
    entry["headers"] = json!({"X-Own": "mine"});
    let world = World::start(json!({"h": entry}), &[]).await;
    assert_eq!(world.call("h", "t", json!({})).await, Ok("call 1".to_owned()));
    world.servers.shutdown().await;
    let log = server.log();
    for line in [
        "initialize Mcp-Session-Id=None Mcp-Protocol-Version=None Authorization=None X-Own=mine",
        "tools/call Mcp-Session-Id=s1 Mcp-Protocol-Version=2025-06-18 Authorization=None X-Own=mine",
        "DELETE s1",
    ] {
        assert!(log.contains(line), "{line}\n{log}");
    }
}

#[tokio::test]
async fn forgotten_session_is_begun_anew_and_the_call_repeated_once() {
    let server = Listening::faulty("forgets").await;
    let world = World::start(json!({"h": server.entry()}), &[]).await;
    assert_eq!(world.call("h", "t", json!({})).await, Ok("call 2".to_owned()));
    assert!(server.log().contains("tools/call Mcp-Session-Id=s2"), "{}", server.log());
}

#[tokio::test]
async fn stream_that_breaks_off_is_taken_up_again_or_fails_its_call_alone() {
    let server = Listening::faulty("resumes").await;
    let world = World::start(json!({"h": server.entry()}), &[]).await;
    assert_eq!(world.call("h", "t", json!({})).await, Ok("resumed".to_owned()));
    assert!(server.log().contains("GET behind 8"), "{}", server.log());
    assert!(world.log("h").contains("half way"));
    let server = Listening::faulty("breaks").await;
    let world = World::start(json!({"h": server.entry()}), &[]).await;
    let said = world.call("h", "t", json!({})).await.unwrap_err();
    assert!(said.contains("ended before the answer came"), "{said}");
    assert_eq!(world.status("h").0, Connected);
}

#[tokio::test]
async fn call_waits_until_questions_of_the_server_are_listened_to() {
    let server = Listening::faulty("asks").await;
    let world = World::start(json!({"h": server.entry()}), &[]).await;
    let answer = ElicitationAnswer::Accept(Map::new());
    world.servers.set_client(Answering::new(answer));
    assert_eq!(world.call("h", "t", json!({})).await, Ok("answered".to_owned()));
}

#[tokio::test]
async fn refusals_are_told_apart() {
    for (fault, status, said) in
        [("login", NeedsAuth, "wants a login (HTTP 401)"), ("gone", Failed, "HTTP 404: nothing here")]
    {
        let server = Listening::faulty(fault).await;
        let world = World::start(json!({"h": server.entry()}), &[]).await;
        let (found, error) = world.status("h");
        assert!(found == status && error.contains(said), "{fault}: {found:?} {error}");
    }
    let server = Listening::faulty("login").await;
    let mut entry = server.entry();
    entry["headers"] = json!({"Authorization": "Bearer mine"});
    let world = World::start(json!({"h": entry}), &[]).await;
    assert_eq!(world.status("h").0, Failed, "a written header that is refused is no reason to log in");
    let server = Listening::faulty("refuses").await;
    let world = World::start(json!({"h": server.entry()}), &[]).await;
    assert_eq!(world.call("h", "t", json!({})).await, Err("not today (code -1)".to_owned()));
    let unreachable = json!({"type": "http", "url": "http://127.0.0.1:9/mcp"});
    let world = World::start(json!({"h": unreachable}), &[]).await;
    assert!(world.status("h").1.contains("cannot be reached"), "{:?}", world.status("h"));
}

#[tokio::test]
async fn busy_server_is_tried_again_and_redirects_are_followed_at_home() {
    for fault in ["busy", "redirect"] {
        let server = Listening::faulty(fault).await;
        let world = World::start(json!({"h": server.entry()}), &[]).await;
        assert_eq!(world.status("h"), (Connected, String::new()), "{fault}");
    }
    let server = Listening::faulty("elsewhere").await;
    let url = format!("http://localhost:{}/mcp", server.port);
    let entry = json!({"type": "http", "url": url, "headers": {"X-Own": "secret"}});
    World::start(json!({"h": entry}), &[]).await;
    let log = server.log();
    assert!(
        log.contains("X-Own=secret") && log.contains("X-Own=None"),
        "another host is told no secret: {log}"
    );
}

#[tokio::test]
async fn helper_prints_headers_and_runs_again_when_they_are_refused() {
    let server = Listening::faulty("helper").await;
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count").display().to_string();
    let mut entry = server.entry();
    entry["headersHelper"] = json!(format!(
        "echo x >> {count}; test -n \"$CLAUDE_CODE_MCP_SERVER_URL\" && printf '{{\"Authorization\":\"Bearer %d\"}}' $(wc -l < {count})"
    ));
    let world = World::start(json!({"h": entry}), &[]).await;
    assert_eq!(world.status("h"), (Connected, String::new()), "{}", server.log());
    assert_eq!(std::fs::read_to_string(&count).unwrap().lines().count(), 2);
    let mut entry = server.entry();
    entry["headersHelper"] = json!("echo nonsense");
    let world = World::start(json!({"h": entry}), &[("MCP_TIMEOUT", "5000")]).await;
    assert!(world.status("h").1.contains("printed no JSON object"), "{:?}", world.status("h"));
}

#[tokio::test]
async fn web_socket_is_a_way_like_the_others() {
    for (fault, expected) in
        [("none", "fine".to_owned()), ("odd", "fine".to_owned()), ("large", "x".repeat(100_000))]
    {
        let server = Listening::start_script("web_socket_server.py", fault).await;
        let url = format!("ws://127.0.0.1:{}/socket?a=1", server.port);
        let entry = json!({"type": "ws", "url": url, "headers": {"X-Own": "mine"}});
        let world = World::start(json!({"w": entry}), &[]).await;
        assert_eq!(world.status("w"), (Connected, String::new()), "{fault}: {}", server.log());
        assert_eq!(world.call("w", "t", json!({})).await, Ok(expected), "{fault}");
        world.servers.shutdown().await;
        until("the socket is closed in order", || server.log().contains("closed in order")).await;
        let log = server.log();
        assert!(log.contains("GET /socket?a=1 HTTP/1.1 protocol=mcp auth=None own=mine"), "{log}");
        if fault == "odd" {
            assert!(log.contains("pong hello") && log.contains("pong between"), "{log}");
            assert!(world.log("w").contains("skipped what is no message"), "{}", world.log("w"));
        }
    }
}

#[tokio::test]
async fn web_socket_that_is_none_or_dies_is_told() {
    for (fault, said) in [("plain", "HTTP 200"), ("key", "does not speak the protocol of web sockets")] {
        let server = Listening::start_script("web_socket_server.py", fault).await;
        let entry = json!({"type": "ws", "url": format!("ws://127.0.0.1:{}/", server.port)});
        let world = World::start(json!({"w": entry}), &[]).await;
        let (status, error) = world.status("w");
        assert!(status == Failed && error.contains(said), "{fault}: {status:?} {error}");
    }
    let server = Listening::start_script("web_socket_server.py", "dies").await;
    let entry = json!({"type": "ws", "url": format!("http://127.0.0.1:{}/", server.port)});
    let world = World::start(json!({"w": entry}), &[]).await;
    let said = world.call("w", "t", json!({})).await.unwrap_err();
    assert!(said.contains("connection"), "{said}");
    until("it is connected to anew", || world.status("w").0 == Connected).await;
    assert!(server.log().matches("initialize").count() >= 2, "{}", server.log());
}

#[tokio::test]
async fn web_socket_takes_the_headers_of_a_helper() {
    let server = Listening::start_script("web_socket_server.py", "helper").await;
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count").display().to_string();
    let helper =
        format!("echo x >> {count}; printf '{{\"Authorization\":\"Bearer %d\"}}' $(wc -l < {count})");
    let url = format!("ws://127.0.0.1:{}/", server.port);
    let entry = json!({"type": "ws", "url": url, "headersHelper": helper});
    let world = World::start(json!({"w": entry}), &[]).await;
    assert_eq!(world.status("w"), (Connected, String::new()), "{}", server.log());
    // A helper that was started for an attempt that failed otherwise counts, too.
    let log = server.log();
    let is_asked_anew = log.contains("auth=Bearer 1 ") && log.matches("auth=Bearer").count() > 1;
    assert!(is_asked_anew, "{log}");
}

#[tokio::test]
async fn helper_that_never_ends_is_ended_with_all_it_started() {
    let server = Listening::faulty("none").await;
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("pid");
    let mut entry = server.entry();
    entry["headersHelper"] = json!(format!("sleep 1000 & echo $! > {}; wait", pid_file.display()));
    let world = World::new(json!({"h": entry}), &[]);
    world.servers.start();
    let pid = || std::fs::read_to_string(&pid_file).ok()?.trim().parse::<u32>().ok();
    until("the helper runs", || pid().is_some()).await;
    let pid = pid().unwrap();
    until("what it started is gone", || !loci_stdx::is_alive(pid)).await;
}
