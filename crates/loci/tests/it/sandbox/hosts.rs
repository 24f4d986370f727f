//! Hosts that nothing is said of: who is asked, how often, and what comes of the answers.

use std::io::{Read, Write};
use std::net::TcpListener;

use loci_testkit::{Session, Step};
use serde_json::{Value, json};

use super::{bash, has_full, on};
use crate::support::{World, is_result, loci, print, stream, user};

/// A server on this machine that says hello to whoever asks; returns its port.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A client that has gone is no concern of ours.
            if stream.read(&mut [0; 512]).is_ok_and(|n| n > 0) {
                stream.write_all(b"hello\n").ok();
            }
        }
    });
    port
}

/// A command that asks the proxy for this target, so often at once, and shows what came back.
fn connects(target: &str, n_times: usize) -> String {
    let one = format!(
        "( exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT {target} HTTP/1.1\\r\\n\\r\\nx' >&3; grep -aoE 'HTTP/1.1 [0-9]+|hello|^loci sandbox: .*' <&3 )"
    );
    format!("for i in $(seq {n_times}); do {one} & done; wait")
}

async fn world(settings: &Value, commands: &[String]) -> Option<World> {
    let steps: Vec<Step> = commands.iter().map(|it| Step::call("Bash", bash(it))).collect();
    let world = World::new(steps.into_iter().chain([Step::text("I see.")]).collect::<Vec<_>>()).await;
    if !has_full(&world) {
        return None;
    }
    world.home.write_config("settings.json", settings.to_string());
    Some(world)
}

fn results(world: &World) -> Vec<String> {
    world.requests().iter().flat_map(|it| it.tool_results()).map(|it| it.text).collect()
}

/// Answers every question of a client's session the same way; returns the questions.
fn answered(session: &mut Session, response: impl Fn(&Value) -> Value) -> Vec<Value> {
    session.write_json(&user("hi"));
    let mut questions = Vec::new();
    loop {
        let frame = session.wait_for_json(|it| it["request"]["subtype"] == "can_use_tool" || is_result(it));
        if is_result(&frame) {
            return questions;
        }
        let answer =
            json!({"subtype": "success", "request_id": frame["request_id"], "response": response(&frame)});
        session.write_json(&json!({"type": "control_response", "response": answer}));
        questions.push(frame["request"].clone());
    }
}

#[tokio::test]
async fn client_is_asked_once_for_a_host_and_its_yes_holds_for_the_session() {
    let port = server();
    let target = format!("127.0.0.1:{port}");
    let commands = [connects(&target, 3), connects(&target, 1)];
    let Some(world) = world(&on(), &commands).await else { return };
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    let questions = answered(&mut session, |_| json!({"behavior": "allow"}));
    session.finish();
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!(questions[0]["tool_name"], "SandboxNetworkAccess");
    assert_eq!(questions[0]["input"], json!({"host": "127.0.0.1", "port": port}));
    assert!(
        questions[0].to_string().contains("for i in"),
        "the command that asks is named: {}",
        questions[0]
    );
    let texts = results(&world);
    assert_eq!(texts[0].matches("hello").count(), 3, "{}", texts[0]);
    assert_eq!(texts[1].matches("hello").count(), 1, "{}", texts[1]);
    let local = world.home.project().join(".claude/settings.local.json");
    assert!(!local.exists(), "once is not for ever");
}

#[tokio::test]
async fn no_is_kept_for_the_session_and_told_to_the_model() {
    let commands = [connects("192.0.2.7:443", 2), connects("192.0.2.7:80", 1) + "; false"];
    let Some(world) = world(&on(), &commands).await else { return };
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    let questions = answered(&mut session, |_| json!({"behavior": "deny", "message": "use a mirror"}));
    session.finish();
    assert_eq!(questions.len(), 1, "{questions:?}");
    let texts = results(&world);
    assert_eq!(texts[0].matches("HTTP/1.1 403").count(), 2, "{}", texts[0]);
    for text in &texts {
        assert!(
            text.contains("was refused: the user has said no to it, for this session (\"use a mirror\")"),
            "{text}"
        );
    }
    assert!(texts[1].contains("[sandbox] `192.0.2.7:80` was refused"), "{}", texts[1]);
    assert!(
        texts[1].contains("`WebFetch(domain:192.0.2.7)` under permissions.allow would allow it"),
        "{}",
        texts[1]
    );
}

#[tokio::test]
async fn always_writes_the_rule_and_the_next_session_is_not_asked() {
    let port = server();
    let target = format!("127.0.0.1:{port}");
    let Some(world) = world(&on(), &[connects(&target, 1)]).await else { return };
    crate::settings::trust(&world);
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    let questions = answered(
        &mut session,
        |frame| json!({"behavior": "allow", "updatedPermissions": frame["request"]["permission_suggestions"]}),
    );
    session.finish();
    assert_eq!(questions.len(), 1);
    let local = world.home.project().join(".claude/settings.local.json");
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(local).unwrap()).unwrap();
    assert_eq!(saved, json!({"permissions": {"allow": ["WebFetch(domain:127.0.0.1)"]}}));
    let world = world.then([Step::call("Bash", bash(&connects(&target, 1))), Step::text("Again.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    assert_eq!(answered(&mut session, |_| json!({"behavior": "deny", "message": "no"})), Vec::<Value>::new());
    session.finish();
    assert!(results(&world)[0].contains("hello"), "{:?}", results(&world));
}

#[tokio::test]
async fn where_nobody_can_be_asked_or_lists_are_strict_a_host_is_refused_at_once() {
    let port = server();
    let target = format!("127.0.0.1:{port}");
    let strict = json!({"sandbox": {"enabled": true, "network": {"strictAllowlist": true}}});
    let named = json!({"sandbox": {"enabled": true, "network": {"allowedDomains": ["127.0.0.1"]}}});
    let denied = json!({"sandbox": {"enabled": true, "network": {"allowedDomains": ["127.0.0.1"], "deniedDomains": [target.clone()]}}});
    for (settings, args, expected) in [
        (on(), &[][..], "nobody has allowed it"),
        (strict.clone(), &["--permission-prompt-tool", "stdio"], "it is on no list"),
        (named, &[], "hello"),
        (denied.clone(), &[], "is denied"),
        (on(), &["--dangerously-skip-permissions"], "hello"),
        (denied, &["--dangerously-skip-permissions"], "is denied"),
        (strict, &["--dangerously-skip-permissions"], "it is on no list"),
    ] {
        let Some(world) = world(&settings, &[connects(&target, 1) + "; false"]).await else { return };
        let binary = stream([]).args(args.iter().copied()).env("IS_SANDBOX", "1");
        let mut session = world.start(&binary);
        let questions = answered(&mut session, |_| json!({"behavior": "allow"}));
        session.finish();
        assert_eq!(questions, Vec::<Value>::new(), "{settings} {args:?}");
        assert!(results(&world)[0].contains(expected), "{settings} {args:?}: {:?}", results(&world));
    }
}

#[tokio::test]
async fn person_at_a_terminal_is_asked_once_for_a_host() {
    let port = server();
    let target = format!("127.0.0.1:{port}");
    for (line, is_saved) in [("y", false), ("a", true)] {
        let Some(world) = world(&on(), &[connects(&target, 3)]).await else { return };
        let mut terminal = world.start_at_terminal(&print(["hi"]));
        terminal.wait_for("> ");
        terminal.type_line(line);
        let output = terminal.finish();
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(output.stderr.matches("SandboxNetworkAccess asks").count(), 1, "{}", output.stderr);
        assert!(output.stderr.contains("always: the rule `WebFetch(domain:127.0.0.1)`"), "{}", output.stderr);
        assert_eq!(results(&world)[0].matches("hello").count(), 3, "{:?}", results(&world));
        let saved = std::fs::read_to_string(world.home.project().join(".claude/settings.local.json"));
        assert_eq!(saved.is_ok_and(|it| it.contains("WebFetch(domain:127.0.0.1)")), is_saved, "{line}");
    }
}

#[tokio::test]
async fn person_at_the_interface_is_asked_once_for_a_host() {
    let port = server();
    let target = format!("127.0.0.1:{port}");
    let Some(world) = world(&on(), &[connects(&target, 2)]).await else { return };
    let mut screen = world.start_interface([], (100, 40));
    screen.wait_for("sandbox: full, no hosts");
    screen.type_text("go\r");
    let asked = screen.wait_for("3. No");
    for text in ["May a sandboxed command reach 127.0.0.1?", "wants to reach", "1. Yes, in this session"] {
        assert!(asked.contains(text), "{asked}");
    }
    screen.wait_for("Tab comment");
    screen.type_text("\r");
    screen.wait_for("I see.");
    screen.wait_for("sandbox: full, 1 host");
    assert_eq!(results(&world)[0].matches("hello").count(), 2, "{:?}", results(&world));
}

/// Git reaches hosts by ssh through the proxy as well; the program that stands for ssh here does what it would.
#[tokio::test]
async fn git_over_ssh_goes_through_the_proxy() {
    let port = server();
    let settings = json!({"sandbox": {"enabled": true, "network": {"allowedDomains": ["127.0.0.1"]}}});
    let Some(world) = world(&settings, &[]).await else { return };
    let ssh = "#!/bin/bash\nfor word in \"$@\"; do case $word in ProxyCommand=*) command=${word#ProxyCommand=};; esac; done\n\
               command=${command//%h/$HOST}; command=${command//%p/$PORT}; echo x | sh -c \"exec $command\"\n";
    let bin = world.home.write_home("bin/ssh", ssh);
    std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.parent().unwrap().display());
    for (host, port, expected) in [("127.0.0.1", port, "hello"), ("192.0.2.9", 22, "nobody has allowed it")] {
        let script = "export HOST=$1 PORT=$2; eval \"$GIT_SSH_COMMAND git@$HOST\" 2>&1";
        let binary = loci().args(["sandbox", "run", "--", "sh", "-c", script, "sh", host, &port.to_string()]);
        let output = world.run(&binary.env("PATH", path.clone()));
        assert!(output.stdout.contains(expected), "{host}: {output:?}");
    }
    let own = world.run(
        &loci()
            .args(["sandbox", "run", "--", "sh", "-c", "echo $GIT_SSH_COMMAND"])
            .env("GIT_SSH_COMMAND", "ssh -4"),
    );
    assert_eq!(own.stdout, "ssh -4\n", "the user's own stays");
}
