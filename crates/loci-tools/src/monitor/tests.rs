//! Watching real commands.

use loci_core::tool::Interaction;

use super::*;
use crate::bash::tests::{ShellHost, text};
use crate::testing::TestHost;
use crate::web_fetch::tests::TestWeb;
use crate::{SocketEvent, SocketEvents, SocketRequest};

async fn watch(host: &ShellHost, input: Value) -> ToolOutcome {
    host.call(&Monitor::default(), input).await
}

/// Waits until the tasks have told a line that contains `last`; returns all.
async fn told(host: &ShellHost, last: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for _ in 0..3000 {
        lines.extend(host.tasks().drain_lines().into_iter().flat_map(|(_, lines)| lines));
        if lines.iter().any(|line| line.contains(last)) {
            return lines;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("`{last}` was not told: {lines:?}");
}

#[tokio::test]
async fn each_line_is_told_and_complaints_are_not() {
    let host = ShellHost::new();
    let command = "echo one; echo bad >&2; printf 'two\\n\\n'; printf three";
    let outcome = watch(&host, json!({"command": command, "description": "d"})).await;
    assert!(!outcome.is_failure() && text(&outcome).contains("Watching as task"), "{outcome:?}");
    assert_eq!(told(&host, "three").await, ["one", "two", "three"]);
    assert_eq!(host.tasks().drain_lines(), []);
    let id = outcome.structured["taskId"].as_str().unwrap();
    let complaints = host.task_dir().unwrap().join(format!("{id}.stderr"));
    assert_eq!(std::fs::read_to_string(complaints).unwrap(), "bad\n");
}

#[tokio::test]
async fn monitor_that_floods_or_whose_time_is_over_is_stopped() {
    for (input, expected) in [
        (json!({"command": "while :; do echo x; done", "description": "d"}), "more than 300 lines"),
        (json!({"command": "echo a; sleep 60", "description": "d", "timeout_ms": 1000}), "its time is over"),
    ] {
        let host = ShellHost::new();
        let outcome = watch(&host, input).await;
        let id = outcome.structured["taskId"].as_str().unwrap().to_owned();
        told(&host, expected).await;
        let ended = host.tasks().wait(&id, Duration::from_secs(30)).await.unwrap();
        assert!(matches!(ended.status, BackgroundStatus::Killed(_)), "{ended:?}");
    }
}

#[tokio::test]
async fn monitor_refuses_what_it_cannot_watch() {
    let host = ShellHost::new();
    for input in
        [json!({"command": " ", "description": "d"}), json!({"command": "a\u{7}", "description": "d"})]
    {
        assert!(watch(&host, input).await.is_failure());
    }
    let host = ShellHost::with_vars(&[(DISABLE_BACKGROUND, "1")]);
    assert!(watch(&host, json!({"command": "true", "description": "d"})).await.is_failure());
}

#[test]
fn command_of_a_monitor_is_never_read_only() {
    let place = Workspace { cwd: "/".into(), project: "/".into(), extra_dirs: Vec::new(), home: "/".into() };
    let effects = Monitor::default().effects(&json!({"command": "tail -F log", "description": "d"}), &place);
    assert!(!effects.commands.is_empty() && effects.commands.iter().all(|command| !command.is_read_only));
}

/// A socket that says a few things.
struct Feed(std::collections::VecDeque<SocketEvent>);

impl SocketEvents for Feed {
    fn next(&mut self) -> crate::HostFuture<'_, SocketEvent> {
        let next = self.0.pop_front();
        Box::pin(async move {
            match next {
                Some(event) => event,
                None => std::future::pending().await,
            }
        })
    }
}

fn watched(events: Vec<SocketEvent>) -> TestHost {
    let web = TestWeb::default();
    *web.socket.lock().unwrap() = Some(Box::new(Feed(events.into())));
    TestHost::new().with_web(web)
}

/// Waits until something was told that contains `last`; returns all.
async fn socket_told(host: &TestHost, last: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    while !lines.iter().any(|line| line.contains(last)) {
        lines.extend(host.tasks().drain_lines().into_iter().flat_map(|(_, lines)| lines));
        tokio::task::yield_now().await;
    }
    lines
}

#[tokio::test]
async fn each_message_of_a_socket_is_one_event_and_its_end_is_told() {
    let message = |text: &str| SocketEvent::Message(text.to_owned());
    let host =
        watched(vec![message("one\ntwo"), message("three"), SocketEvent::Closed("code 1000".to_owned())]);
    let source = json!({"url": "wss://feed.test/x", "protocols": ["v1"]});
    let outcome = host.call(&Monitor::default(), json!({"ws": source, "description": "d"})).await;
    assert!(!outcome.is_failure(), "{outcome:?}");
    assert_eq!(socket_told(&host, "Closed").await, ["one\ntwo", "three", "[Closed: code 1000]"]);
    let id = outcome.structured["taskId"].as_str().unwrap();
    let ended = host.tasks().wait(id, Duration::from_secs(10)).await.unwrap();
    assert_eq!((ended.status, &*ended.about.command), (BackgroundStatus::Completed, "wss://feed.test/x"));
    assert_eq!(std::fs::read_to_string(&ended.about.output).unwrap(), "one\ntwo\nthree\n");
    let asked = SocketRequest {
        url: "wss://feed.test/x".to_owned(),
        host: "feed.test".to_owned(),
        protocols: vec!["v1".to_owned()],
    };
    assert_eq!(*host.web.sockets.lock().unwrap(), [asked]);
}

#[tokio::test]
async fn socket_that_floods_or_is_stopped_ends() {
    let flood = vec![SocketEvent::Message("x".to_owned()); 400];
    let host = watched(flood);
    let call = json!({"ws": {"url": "ws://feed.test"}, "description": "d", "persistent": true});
    host.call(&Monitor::default(), call.clone()).await;
    let told = socket_told(&host, "more than 300 messages").await;
    assert_eq!(told.len(), 302);
    let host = watched(Vec::new());
    let outcome = host.call(&Monitor::default(), call).await;
    let ended = host.tasks().stop(outcome.structured["taskId"].as_str().unwrap()).await.unwrap();
    assert!(matches!(ended.status, BackgroundStatus::Killed(_)), "{ended:?}");
}

#[tokio::test]
async fn wrong_sources_are_refused_and_a_person_is_asked_about_sockets() {
    let host = watched(Vec::new());
    for (input, expected) in [
        (json!({"description": "d"}), "Give a `command`"),
        (json!({"description": "d", "command": "x", "ws": {"url": "ws://a.test"}}), "not both"),
        (json!({"description": "d", "ws": {"url": "https://a.test"}}), "no address of a web socket"),
        (json!({"description": "d", "ws": {"url": "ws://u:p@a.test/"}}), "name or password"),
        (json!({"description": "d", "ws": {"url": "ws://a.test/ x"}}), "without spaces"),
        (json!({"description": "d", "ws": {"url": "ws://\u{e4}.test/"}}), "plain letters"),
        (json!({"description": "d", "ws": {"url": "ws://a.test", "protocols": ["a", "a"]}}), "twice"),
        (json!({"description": "d", "ws": {"url": "ws://a.test", "protocols": ["a b"]}}), "separators"),
    ] {
        let outcome = host.call(&Monitor::default(), input).await;
        assert!(outcome.is_failure() && text(&outcome).contains(expected), "{expected}: {outcome:?}");
    }
    let effects = Monitor::default()
        .effects(&json!({"ws": {"url": "wss://A.test:8/"}, "description": "d"}), &host.workspace());
    assert_eq!(
        (effects.hosts, effects.interaction),
        (vec!["a.test".to_owned()], Some(Interaction::Confirmation))
    );
    assert!(!effects.unknown.is_empty(), "no rule for documentation or the like lets it run");
}
