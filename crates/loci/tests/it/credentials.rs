//! Credentials seen from outside: which are sent, when they are asked for again, and that nobody else sees them.

use loci_testkit::{Binary, Output, Step};
use serde_json::json;

use crate::support::{World, is_result, loci, print, stream, user};

/// Every run of this helper leaves a line and gives another key.
const COUNTING: &str = "echo x >> ~/runs; echo sk-helped-$(wc -l < ~/runs)";

fn settings(helper: &str) -> String {
    json!({"apiKeyHelper": helper}).to_string()
}

/// A binary whose environment holds no key.
fn keyless(binary: Binary) -> Binary {
    binary.env("ANTHROPIC_API_KEY", "")
}

/// Returns the keys that requests carried, each checked to be in both headers.
fn sent(world: &World) -> Vec<String> {
    let requests = world.model.requests();
    let key = |name: &str, request: &loci_testkit::Recorded| request.header(name).unwrap_or("-").to_owned();
    for request in &requests {
        let bearer = key("authorization", request);
        assert_eq!(bearer.strip_prefix("Bearer ").unwrap_or("-"), key("x-api-key", request));
    }
    requests.iter().map(|request| key("x-api-key", request)).collect()
}

fn runs(world: &World) -> usize {
    std::fs::read_to_string(world.home.home().join("runs")).unwrap_or_default().lines().count()
}

/// Asserts that no key is in what was said or written.
fn assert_unseen(world: &World, output: &Output) {
    let session = world.home.sessions().into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    for text in session.chain([output.stdout.clone(), output.stderr.clone()]) {
        assert!(!text.contains("sk-helped"), "{text}");
    }
}

#[tokio::test]
async fn the_helpers_key_is_sent_and_kept() {
    let world = World::new([Step::text("1"), Step::text("2")]).await;
    world.home.write_config("settings.json", settings(COUNTING));
    let mut session = world.start(&keyless(stream([])));
    session.write_json(&user("one"));
    let init = session.wait_for_json(|frame| frame["subtype"] == "init");
    assert_eq!(init["apiKeySource"], "apiKeyHelper");
    session.wait_for_json(is_result);
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_eq!(sent(&world), ["sk-helped-1", "sk-helped-1"]);
    assert_eq!(runs(&world), 1);
    assert_unseen(&world, &output);
}

#[tokio::test]
async fn a_refused_key_is_asked_for_again() {
    let refusal = Step::status(401).error("authentication_error", "bad key sk-helped-1");
    let world = World::new([refusal, Step::text("hi")]).await;
    world.home.write_config("settings.json", settings(COUNTING));
    let output = world.run(&keyless(print(["hi"])));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "hi\n"), "{output:?}");
    assert_eq!(sent(&world), ["sk-helped-1", "sk-helped-2"]);
    assert_unseen(&world, &output);
}

#[tokio::test]
async fn a_helper_that_fails_is_named_and_nothing_is_sent() {
    let world = World::new(Step::text("hi")).await;
    world.home.write_config("settings.json", settings("echo sk-helped-x; exit 7"));
    let output = world.run(&keyless(print(["hi"])));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stdout.contains("`apiKeyHelper` gave no key: the command ended with code 7"),
        "{output:?}"
    );
    assert!(world.model.requests().is_empty());
    assert_unseen(&world, &output);
}

#[tokio::test]
async fn a_repositorys_helper_is_never_run() {
    for is_trusted in [false, true] {
        let world = World::new(Step::text("hi")).await;
        world.home.write(".claude/settings.json", settings(COUNTING));
        if is_trusted {
            super::settings::trust(&world);
        }
        let output = world.run(&keyless(print(["hi"])));
        assert_eq!((sent(&world), runs(&world)), (vec!["-".to_owned()], 0), "{output:?}");
        assert!(output.stderr.contains("a repository cannot set it"), "{output:?}");
    }
}

#[tokio::test]
async fn the_users_helper_for_a_project_waits_for_trust() {
    for (is_trusted, key) in [(false, "-"), (true, "sk-helped-1")] {
        let world = World::new(Step::text("hi")).await;
        world.home.write(".claude/settings.local.json", settings(COUNTING));
        if is_trusted {
            super::settings::trust(&world);
        }
        let output = world.run(&keyless(print(["hi"])));
        assert_eq!(
            (sent(&world), runs(&world)),
            (vec![key.to_owned()], usize::from(is_trusted)),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn a_key_in_the_environment_comes_before_the_helper() {
    let world = World::new(Step::text("hi")).await;
    world.home.write_config("settings.json", settings(COUNTING));
    world.print(["hi"]);
    assert_eq!(world.model.requests()[0].header("x-api-key"), Some("sk-ant-test"));
    assert_eq!(runs(&world), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn a_stored_login_must_be_private() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    for (mode, token) in [(0o600, "Bearer sk-helped-kept"), (0o644, "-")] {
        let world = World::new(Step::text("hi")).await;
        let text = r#"{"claudeAiOauth": {"accessToken": "sk-helped-kept", "expiresAt": 4000000000000}}"#;
        let path = world.home.write_config(".credentials.json", text);
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let output = world.run(&keyless(print(["hi"])));
        let requests = world.model.requests();
        let sent = requests.first().and_then(|request| request.header("authorization")).unwrap_or("-");
        assert_eq!(sent, token, "{output:?}");
        let doctor = world.run(&loci().arg("doctor"));
        assert_eq!(doctor.stdout.contains("others may read it"), mode == 0o644, "{doctor:?}");
        assert_eq!(doctor.code, Some(i32::from(mode == 0o644)));
        assert_unseen(&world, &output);
        assert_unseen(&world, &doctor);
    }
}
