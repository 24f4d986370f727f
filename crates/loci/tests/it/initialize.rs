//! `initialize`: what a client asks for before there is a conversation.

use crate::support::{World, assert_fine, control, is_result, shape, stream, user};
use expect_test::expect;
use loci_testkit::{Output, Step};
use serde_json::{Value, json};

/// Writes these lines and nothing more, and returns what came of it.
fn run<const N: usize>(world: &World, args: [&str; N], lines: &[Value]) -> Output {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    world.run_with_stdin(&stream(args), &lines.join("\n"))
}

fn initialize(mut payload: Value) -> Value {
    payload["subtype"] = json!("initialize");
    control("r1", payload)
}

#[tokio::test]
async fn prompts_of_initialize_make_the_system_prompt() {
    let own = "You test.";
    for (args, payload, expected) in [
        (&[][..], json!({"systemPrompt": [own]}), "identity replacement"),
        (&[], json!({"systemPrompt": own, "appendSystemPrompt": "More."}), "identity replacement appendix"),
        (&[], json!({"systemPrompt": [""]}), "identity"),
        (&[], json!({"appendSystemPrompt": "More."}), "identity usual appendix"),
        (&[], json!({}), "identity usual"),
        (&["--system-prompt", own], json!({"systemPrompt": [""]}), "identity replacement"),
        (&["--system-prompt", "Other."], json!({"systemPrompt": [own]}), "identity replacement"),
    ] {
        let world = World::new([Step::text("Hi.")]).await;
        let lines = [initialize(payload.clone()), user("hi")].map(|line| line.to_string()).join("\n");
        let output = world.run_with_stdin(&stream([]).args(args.iter().copied()), &lines);
        assert_fine(&output);
        let text = world.last_request().system_text();
        let has = |needle: &str| text.contains(needle);
        let parts = [
            ("identity", !text.is_empty()),
            ("usual", has("Working directory") || text.len() > 500),
            ("replacement", has(own)),
            ("appendix", has("More.")),
        ];
        let found: Vec<&str> =
            parts.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name).collect();
        assert_eq!(found.join(" "), expected, "{payload}: {text}");
        assert!(!has("Other."), "{text}");
    }
}

#[tokio::test]
async fn title_and_prompt_of_initialize_outlast_a_clear() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let payload = initialize(json!({"systemPrompt": ["You test."], "title": "Mine"}));
    let output = run(&world, [], &[payload, user("A"), user("/clear"), user("B")]);
    assert_fine(&output);
    assert!(world.last_request().system_text().contains("You test."));
    let output = world.run(&crate::support::print(["C", "-r", "Mine"]));
    assert_fine(&output);
    expect![[r#"
        user: A
        assistant: one
        user: C
    "#]]
    .assert_eq(&world.conversation());
}

/// Hooks that could have stopped a call are not left out: where they come too late there is no run.
#[tokio::test]
async fn late_hooks_that_could_deny_end_the_run_before_anything_happens() {
    let world = World::new([Step::call("Bash", json!({"command": "touch ran"})), Step::text("Done.")]).await;
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}});
    let lines = [control("r0", json!({"subtype": "get_binary_version"})), initialize(hooks), user("hi")];
    let output = run(&world, ["--allowedTools", "Bash"], &lines);
    assert_eq!(output.code, Some(1), "{output:?}");
    expect![[r#"
        Hooks must be registered by the first line of a client, and without these a call or a prompt could run that they would have stopped: PreToolUse
    "#]]
    .assert_eq(&output.stderr);
    let frames = output.json_lines();
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert_eq!(frames[1]["response"]["subtype"], "error", "{frames:?}");
    assert_eq!(world.requests().len(), 0);
    assert_eq!(world.home.sessions().len(), 0);
    assert!(!world.home.project().join("ran").exists());
}

#[tokio::test]
async fn unsupported_fields_are_said_on_stderr_and_the_run_goes_on() {
    let world = World::new([Step::text("Hi.")]).await;
    let asked = initialize(json!({"agents": {"reviewer": {"prompt": "p"}}, "agentProgressSummaries": true}));
    let late = initialize(json!({"systemPrompt": ["late"]}));
    let output = run(&world, [], &[asked.clone(), asked, late, user("hi")]);
    assert_eq!(output.code, Some(0));
    expect![[r#"
        Agents: `flag`: agent `reviewer`: there is no `description`
        The client asks for what is not supported yet and has no effect: agentProgressSummaries
        The client asks for what is not supported yet and has no effect: agentProgressSummaries
        An initialize request that is not the first has no effect
    "#]]
    .assert_eq(&output.stderr);
    expect![[r#"
        control_response r1 success
        control_response r1 success
        system background_tasks_changed
        control_response r1 success
        system background_tasks_changed
        system init
        assistant Hi.
        result success completed
    "#]]
    .assert_eq(&shape(&output.json_lines()));
}

#[tokio::test]
async fn run_without_initialize_waits_for_nothing() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let mut session = world.start(&stream(["prompt of the command line"]));
    session.wait_for_json(is_result);
    session.write_json(&user("hi"));
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    assert_fine(&world.start_closed(&stream([])).finish());
}
