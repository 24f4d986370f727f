//! Servers that do one thing wrong: what they do costs themselves only, and is said.

use std::time::Duration;

use loci_mcp::ServerStatus::{Connected, Failed};
use serde_json::{Value, json};

use crate::support::{World, faulty, until};

#[tokio::test]
async fn servers_that_fail_to_start_say_why_and_leave_the_others() {
    let entries = json!({
        "good": faulty("none", &[]),
        "exits": faulty("exits", &[]),
        "dies-late": faulty("dies-late", &[]),
        "future": faulty("future", &[]),
        "missing": {"command": "/no/such/program"},
    });
    let world = World::start(entries, &[]).await;
    assert_eq!(world.status("good"), (Connected, String::new()));
    for (name, why) in [
        ("exits", "exit status: 3): No module named loci"),
        ("dies-late", "exit status: 7"),
        ("future", "revision `2031-01-01`"),
        ("missing", "`/no/such/program` could not be started"),
    ] {
        let (status, error) = world.status(name);
        assert!(status == Failed && error.contains(why), "{name}: {error}");
    }
    assert!(world.log("exits").contains("Traceback\nNo module named loci"), "{}", world.log("exits"));
    assert_eq!(world.call("good", "good", json!({})).await, Ok("fine".to_owned()));
    let said = world.call("exits", "good", json!({})).await.unwrap_err();
    assert!(said.contains("No module named loci"), "{said}");
}

#[tokio::test]
async fn silent_server_fails_when_its_time_is_over() {
    let world = World::start(json!({"s": faulty("silent", &[])}), &[("MCP_TIMEOUT", "1500")]).await;
    let (status, error) = world.status("s");
    assert!(status == Failed && error.contains("1500 ms"), "{error}");
}

#[tokio::test]
async fn noise_is_skipped_and_kept_in_the_log() {
    let world = World::start(json!({"s": faulty("noise", &[])}), &[]).await;
    assert_eq!(world.tools("s"), ["mcp__s__good"]);
    let log = world.log("s");
    assert!(log.contains("a complaint") && log.contains("Server is starting"), "{log}");
}

#[tokio::test]
async fn old_revision_is_spoken_and_lists_that_fail_cost_themselves() {
    let world = World::start(json!({"s": faulty("old", &[]), "b": faulty("bare", &[])}), &[]).await;
    assert_eq!(world.view("s").handshake.unwrap().protocol, "2024-11-05");
    assert_eq!(world.tools("s"), ["mcp__s__good"]);
    let notices = world.servers.take_notices().join("\n");
    assert!(notices.contains("`s`: its prompts cannot be listed: no prompts today"), "{notices}");
    assert_eq!((world.status("b").0, world.tools("b").len()), (Connected, 0));
}

#[tokio::test]
async fn bad_and_colliding_tools_are_left_out_alone() {
    let world = World::start(json!({"s": faulty("bad-tools", &[])}), &[]).await;
    assert_eq!(world.tools("s"), ["mcp__s__also_good_", "mcp__s__good"]);
    let notices = world.servers.take_notices().join("\n");
    for needle in ["`bad` of its tools", "two tools `mcp__s__good`", "two tools `mcp__s__also_good_`"] {
        assert!(notices.contains(needle), "{notices}");
    }
}

#[tokio::test]
async fn pages_are_followed_and_a_list_without_end_is_cut() {
    let world = World::start(json!({"p": faulty("pages", &[]), "e": faulty("endless", &[])}), &[]).await;
    assert_eq!(world.tools("p").len(), 5);
    assert_eq!(world.tools("e").len(), 5_000);
}

#[tokio::test]
async fn all_three_lists_are_asked_for_anew_when_they_change() {
    let world = World::start(json!({"s": faulty("grows", &[])}), &[]).await;
    assert_eq!(world.tools("s"), ["mcp__s__good"]);
    for n in 1..=2 {
        assert_eq!(world.call("s", "good", json!({})).await, Ok("fine".to_owned()));
        until("all lists have grown", || {
            let offer = world.view("s").offer;
            (offer.tools.len(), offer.resources.len(), offer.prompts.len()) == (n + 1, n, n)
        })
        .await;
    }
}

#[tokio::test]
async fn flood_costs_nothing_but_itself() {
    let world = World::start(json!({"s": faulty("flood", &[])}), &[]).await;
    assert_eq!(world.call("s", "good", json!({})).await, Ok("fine".to_owned()));
    let log = world.log("s");
    assert!(log.len() < 2 << 20, "the log is bounded: {}", log.len());
    assert_eq!(world.status("s").0, Connected);
}

#[tokio::test]
async fn result_that_is_too_long_fails_its_call_and_is_said_in_the_log() {
    let world = World::start(json!({"s": faulty("huge", &[])}), &[]).await;
    for place in ["id behind the result", "id before it", "no id to be seen"] {
        let said = world.call("s", "good", json!({})).await.unwrap_err();
        assert!(said.contains("no more than 64 MiB are read"), "{place}: {said}");
    }
    assert_eq!(world.call("s", "good", json!({})).await, Ok("fine".to_owned()));
    assert_eq!(world.log("s").matches("bytes was skipped").count(), 3, "{}", world.log("s"));
}

#[tokio::test]
async fn server_that_dies_fails_its_call_and_is_back_after_a_reconnect() {
    let world = World::start(json!({"s": faulty("dies", &[])}), &[]).await;
    let said = world.call("s", "good", json!({})).await.unwrap_err();
    assert!(said.contains("exit status: 1"), "{said}");
    until("the server is known to have gone", || world.status("s").0 == Failed).await;
    assert!(world.tools("s").is_empty());
    assert_eq!(world.servers.reconnect("s").await, Ok(()));
    assert_eq!((world.status("s").0, world.tools("s").len()), (Connected, 1));
    assert!(world.servers.reconnect("t").await.is_err());
}

#[tokio::test]
async fn call_without_an_answer_is_cancelled_at_its_time_and_when_it_is_dropped() {
    let file = tempfile::tempdir().unwrap();
    let cancelled = file.path().join("cancelled");
    let path = cancelled.display().to_string();
    let mut entry = faulty("hangs", &[&path]);
    entry["timeout"] = json!(1000);
    let world = World::start(json!({"s": entry}), &[]).await;
    let said = world.call("s", "good", json!({})).await.unwrap_err();
    assert!(said.contains("1000 ms"), "{said}");
    until("the server was told", || cancelled.exists()).await;
    std::fs::remove_file(&cancelled).unwrap();
    let call = world.call("s", "good", json!({}));
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    until("the server was told again", || cancelled.exists()).await;
    assert_eq!(world.status("s").0, Connected);
}

#[tokio::test]
async fn silence_ends_a_call() {
    let world = World::start(
        json!({"s": faulty("hangs", &["/dev/null"])}),
        &[("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", "400")],
    )
    .await;
    let said = world.call("s", "good", json!({})).await.unwrap_err();
    assert!(said.contains("nothing was heard for 400 ms"), "{said}");
}

#[tokio::test]
async fn second_answer_is_ignored_and_sampling_is_refused() {
    let world = World::start(json!({"t": faulty("twice", &[]), "s": faulty("samples", &[])}), &[]).await;
    for _ in 0..3 {
        assert_eq!(world.call("t", "good", json!({})).await, Ok("first".to_owned()));
    }
    assert_eq!(world.call("s", "good", json!({})).await, Ok("-32601".to_owned()));
}

#[tokio::test]
async fn shutdown_ends_whole_groups_even_what_ignores_it() {
    let dir = tempfile::tempdir().unwrap();
    let [group, stubborn] = ["group", "stubborn"].map(|name| dir.path().join(name));
    let entries = json!({
        "g": faulty("grandchild", &[&group.display().to_string()]),
        "s": faulty("stubborn", &[&stubborn.display().to_string()]),
    });
    let world = World::start(entries, &[]).await;
    let pids: Vec<u32> = [&group, &stubborn]
        .iter()
        .flat_map(|file| {
            std::fs::read_to_string(file)
                .unwrap()
                .split(' ')
                .map(|it| it.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| loci_stdx::is_alive(*pid)));
    world.servers.shutdown().await;
    until("all are gone", || pids.iter().all(|pid| !loci_stdx::is_alive(*pid))).await;
}

#[tokio::test]
async fn programs_get_our_environment_theirs_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["all", "small"].map(|name| dir.path().join(name));
    for (file, vars) in files.iter().zip([&[][..], &[("CLAUDE_CODE_MCP_ALLOWLIST_ENV", "1")]]) {
        let mut entry = faulty("env", &[&file.display().to_string()]);
        entry["env"] = json!({"THEIRS": "2"});
        World::start(json!({"s": entry}), vars).await;
    }
    let [all, small] =
        files.map(|file| -> Value { serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap() });
    assert_eq!(
        (&all["OURS"], &all["THEIRS"], &all["CLAUDE_CODE_SESSION_ID"]),
        (&json!("1"), &json!("2"), &json!("s1"))
    );
    assert!(all["CLAUDE_PROJECT_DIR"].is_string() && all.get("HOME").is_none());
    assert_eq!((small.get("OURS"), &small["THEIRS"]), (None, &json!("2")));
}

#[tokio::test]
async fn toggled_server_ends_and_comes_back() {
    let world = World::start(json!({"s": faulty("none", &[])}), &[]).await;
    assert_eq!(world.servers.toggle("s", false).await, Ok(()));
    assert_eq!((world.status("s").0.name(), world.tools("s").len()), ("disabled", 0));
    assert!(world.servers.reconnect("s").await.is_err());
    assert_eq!(world.servers.toggle("s", true).await, Ok(()));
    assert_eq!((world.status("s").0, world.tools("s").len()), (Connected, 1));
    assert!(world.servers.toggle("none", true).await.is_err());
}
