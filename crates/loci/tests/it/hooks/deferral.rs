//! Calls that a hook puts off, and the runs that take them up.

use loci_testkit::{Output, Step};
use serde_json::{Value, json};

use super::{KEEP, answering, command, configure, kept, last_message, result, specific};
use crate::support::{World, print};

/// A hook that puts a call off until there is a file `ready`.
fn until_ready() -> Value {
    let say = |word: &str| specific("PreToolUse", json!({"permissionDecision": word}));
    let (allow, defer) = (say("allow"), say("defer"));
    let line = format!("{KEEP}; if [ -f ready ]; then echo '{allow}'; else echo '{defer}'; fi");
    json!({"PreToolUse": command("Bash", &line)})
}

fn touch() -> Step {
    Step::call("Bash", json!({"command": "touch made"}))
}

fn run_on(world: &World, args: &[&str]) -> Output {
    world.run(&print(["--output-format", "json"]).args(args.iter().copied()))
}

#[tokio::test]
async fn call_that_is_put_off_is_taken_up_by_a_later_run() {
    let world = World::new(touch()).await;
    configure(&world, until_ready());
    let first = run_on(&world, &["go"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let put_off = result(&first);
    assert_eq!((&put_off["stop_reason"], &put_off["is_error"]), (&json!("tool_deferred"), &json!(false)));
    let call = put_off["deferred_tool_use"].clone();
    assert_eq!((&call["name"], &call["input"]["command"]), (&json!("Bash"), &json!("touch made")));
    assert!(!world.home.project().join("made").exists());
    let session = put_off["session_id"].as_str().unwrap().to_owned();

    // Not ready yet: the same end, and nothing was asked of the model.
    let world = world.then(Step::text("Done.")).await;
    let again = result(&run_on(&world, &["--resume", &session]));
    assert_eq!((&again["stop_reason"], &again["deferred_tool_use"]), (&put_off["stop_reason"], &call));
    assert_eq!(world.model.requests().len(), 0);

    world.home.write("ready", "");
    let last = run_on(&world, &["--resume", &session]);
    assert_eq!((last.code, &result(&last)["result"]), (Some(0), &json!("Done.")), "{last:?}");
    assert!(world.home.project().join("made").exists());
    let messages = world.last_request().json["messages"].clone();
    let text = messages.to_string();
    assert_eq!(text.matches("\"tool_use\"").count(), 1, "{text}");
    assert_eq!(text.matches("\"tool_result\"").count(), 1, "{text}");
    assert!(!text.contains("is_error\":true") && !text.contains("Continue from where"), "{text}");
    let ids: Vec<Value> = kept(&world, "kept.jsonl").iter().map(|it| it["tool_use_id"].clone()).collect();
    assert_eq!(ids, vec![call["id"].clone(); 3], "hooks were asked about the same call each time");
}

#[tokio::test]
async fn prompt_beside_a_call_that_is_taken_up_comes_after_it() {
    let world = World::new(touch()).await;
    configure(&world, until_ready());
    let session = result(&run_on(&world, &["go"]))["session_id"].as_str().unwrap().to_owned();
    let world = world.then([Step::text("One."), Step::text("Two.")]).await;
    let waits = run_on(&world, &["and then", "--resume", &session]);
    assert!(waits.stderr.contains("the prompt behind it was not sent"), "{waits:?}");
    world.home.write("ready", "");
    let output = run_on(&world, &["and then", "--resume", &session]);
    assert_eq!(result(&output)["result"], "Two.", "{output:?}");
    assert!(last_message(&world).contains("and then"));
    assert_eq!(world.model.requests().len(), 2);
}

#[tokio::test]
async fn call_whose_tool_is_gone_is_an_error_before_hooks_are_asked() {
    let world = World::new(touch()).await;
    configure(&world, until_ready());
    let put_off = result(&run_on(&world, &["go"]));
    let session = put_off["session_id"].as_str().unwrap();
    world.home.write("ready", "");
    let output = run_on(&world, &["--resume", session, "--tools", "Read"]);
    let said = result(&output);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(
        (&said["stop_reason"], &said["is_error"], &said["deferred_tool_use"]),
        (&json!("tool_deferred_unavailable"), &json!(true), &put_off["deferred_tool_use"])
    );
    assert_eq!(kept(&world, "kept.jsonl").len(), 1);
}

#[tokio::test]
async fn one_of_several_calls_cannot_be_put_off() {
    let touch = |name: &str| json!({"command": format!("touch {name}")});
    let calls = Step::new().tool("Bash", touch("made")).tool("Bash", touch("other"));
    let world = World::new(vec![calls, Step::text("Done.")]).await;
    let defer = specific("PreToolUse", json!({"permissionDecision": "defer"}));
    configure(&world, json!({"PreToolUse": answering("Bash", &defer)}));
    let output = super::run(&world);
    assert_eq!(result(&output)["result"], "Done.");
    assert!(output.stderr.contains("cannot put a call of Bash off: it is not the only one"), "{output:?}");
    let project = world.home.project();
    assert!(project.join("made").exists() && project.join("other").exists());
}

#[tokio::test]
async fn resumed_session_without_prompt_and_without_a_call_is_refused() {
    let world = World::new(Step::text("Done.")).await;
    super::run(&world);
    let output = run_on(&world, &["--continue"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("There is no prompt"), "{output:?}");
}
