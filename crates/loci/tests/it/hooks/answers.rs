//! Fields of answers: what each brings about, and that nothing is passed over in silence.

use loci_testkit::Step;
use serde_json::json;

use super::{KEEP, answering, configure, kept, result, run, specific};
use crate::support::{World, assert_fine};

#[tokio::test]
async fn display_content_is_shown_and_neither_recorded_nor_sent() {
    let world = World::new(Step::text("The key is sk-1234.")).await;
    let shown = specific("MessageDisplay", json!({"displayContent": "The key is [redacted]."}));
    configure(&world, json!({"MessageDisplay": answering("", &shown)}));
    let output = run(&world);
    assert_eq!(result(&output)["result"], "The key is [redacted].");
    let world = world.then(Step::text("Still here.")).await;
    configure(&world, json!({"MessageDisplay": super::command("", KEEP)}));
    let output = world.print(["more", "--continue"]);
    assert_fine(&output);
    assert_eq!(output.stdout, "Still here.\n", "a hook that says nothing changes nothing");
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("sk-1234") && !sent.contains("[redacted]"), "{sent}");
    let told = &kept(&world, "kept.jsonl")[0];
    assert_eq!(
        (&told["delta"], &told["index"], &told["final"]),
        (&json!("Still here."), &json!(0), &json!(true))
    );
}

#[tokio::test]
async fn display_hook_that_fails_shows_the_text_itself() {
    for fault in ["echo broken >&2; exit 1", "exit 2", "sleep 60"] {
        let world = World::new(Step::text("Done.")).await;
        let handler = json!({"type": "command", "command": fault, "timeout": 0.3});
        configure(&world, json!({"MessageDisplay": [{"hooks": [handler]}]}));
        let output = run(&world);
        assert_eq!(result(&output)["result"], "Done.", "{fault}");
    }
}

#[tokio::test]
async fn answers_that_nothing_comes_of_are_reported() {
    let start = |fields| specific("SessionStart", fields);
    for (answer, expected) in [
        (start(json!({"reloadSkills": true})), None),
        (
            start(json!({"watchPaths": ["/x"]})),
            Some("`watchPaths` has no effect: there are no `FileChanged` hooks"),
        ),
        (start(json!({"watchPaths": []})), None),
        (
            json!({"terminalSequence": "\u{1b}[2J"}),
            Some("`terminalSequence` holds more than titles, notifications and bells"),
        ),
        (json!({"terminalSequence": "\u{1b}]0;busy\u{7}"}), None),
    ] {
        let world = World::new(Step::text("Done.")).await;
        configure(&world, json!({"SessionStart": answering("", &answer)}));
        let output = run(&world);
        match expected {
            Some(words) => assert_eq!(output.stderr.matches(words).count(), 1, "{answer} {}", output.stderr),
            None => assert!(!output.stderr.contains("hook ["), "{answer} {}", output.stderr),
        }
        assert!(!output.stdout.contains("busy"), "there is no screen to send it to");
    }
}

/// Skills are looked for before each prompt, so that those which a hook brought are there with the first.
#[tokio::test]
async fn skill_that_a_start_hook_brings_is_there_with_the_first_prompt() {
    let world = World::new(Step::text("Done.")).await;
    let answer = specific("SessionStart", json!({"reloadSkills": true}));
    let line = format!(
        "d=\"${{CLAUDE_CONFIG_DIR:-$HOME/.claude}}/skills/greet\"; mkdir -p \"$d\"; printf 'Say HELLO-FROM-SKILL.' > \"$d/SKILL.md\"; echo '{answer}'"
    );
    configure(&world, json!({"SessionStart": super::command("", &line)}));
    assert_fine(&world.print(["/greet"]));
    let sent = world.last_request().json["messages"].to_string();
    assert!(sent.contains("HELLO-FROM-SKILL"), "{sent}");
}
