//! What hooks decide: calls, prompts, ends of turns, compactions.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{answering, command, configure, last_message, result, run, specific};
use crate::settings::trust;
use crate::support::{World, assert_fine, print};

fn touch() -> Vec<Step> {
    vec![Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")]
}

/// Lets the model run `touch made` under a `PreToolUse` hook; returns whether it ran, what the model was told, and the
/// result.
async fn under(hooks: Value) -> (bool, String, Value) {
    let world = World::new(touch()).await;
    configure(&world, hooks);
    let output = run(&world);
    (world.home.project().join("made").exists(), last_message(&world), result(&output))
}

#[tokio::test]
async fn hook_that_exits_with_two_blocks_the_call_even_when_everything_is_allowed() {
    let (ran, told, result) =
        under(json!({"PreToolUse": command("Bash", "echo not here >&2; exit 2")})).await;
    assert!(!ran, "{told}");
    assert!(told.contains("PreToolUse:Bash hook error: [echo not here >&2; exit 2]: not here"), "{told}");
    assert!(told.contains("\"is_error\":true"));
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
}

#[tokio::test]
async fn reason_of_a_json_denial_is_all_the_model_is_told() {
    let deny =
        specific("PreToolUse", json!({"permissionDecision": "deny", "permissionDecisionReason": "use make"}));
    let (ran, told, _) = under(json!({"PreToolUse": answering("Bash", &deny)})).await;
    assert!(!ran && told.contains("\"content\":\"use make\""), "{told}");
}

#[tokio::test]
async fn failing_hook_and_one_that_does_not_match_let_the_call_run() {
    for hooks in [
        json!({"PreToolUse": command("Bash", "echo oops >&2; exit 1")}),
        json!({"PreToolUse": command("Bash", "/no/such/script")}),
        json!({"PreToolUse": command("Ba", "exit 2")}),
        json!({"PreToolUse": command("Read", "exit 2")}),
        json!({"PostToolUse": command("Read", "exit 2")}),
        json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "sleep 60; exit 2", "timeout": 0.2}]}]}),
        json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2", "if": "Bash(git *)"}]}]}),
    ] {
        let (ran, told, _) = under(hooks.clone()).await;
        assert!(ran, "{hooks} {told}");
    }
}

#[tokio::test]
async fn condition_is_compared_with_every_part_of_a_command() {
    for (condition, command_line, blocked) in [
        ("Bash(touch *)", "touch made", true),
        ("Bash(touch *)", "true && touch made", true),
        ("Bash(touch *)", "A=1 touch made", true),
        ("Bash(touch *)", "echo $(touch made)", true),
        ("Bash(git *)", "true && touch made", false),
        ("Bash", "touch made", true),
        ("Read", "touch made", false),
    ] {
        let world =
            World::new(vec![Step::call("Bash", json!({"command": command_line})), Step::text("Done.")]).await;
        configure(
            &world,
            json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2", "if": condition}]}]}),
        );
        run(&world);
        assert_eq!(!world.home.project().join("made").exists(), blocked, "{condition} ~ {command_line}");
    }
}

#[tokio::test]
async fn allow_of_a_hook_skips_the_question_and_no_rule() {
    let allow = || json!({"PreToolUse": answering("Bash", &specific("PreToolUse", json!({"permissionDecision": "allow"})))});
    for (settings, command_line, runs) in [
        (json!({}), "touch made", true),
        (json!({"permissions": {"deny": ["Bash(touch *)"]}}), "touch made", false),
        (json!({"permissions": {"ask": ["Bash(touch *)"]}}), "touch made", false),
        (json!({}), "touch made; rm -rf ~", false),
    ] {
        let world =
            World::new(vec![Step::call("Bash", json!({"command": command_line})), Step::text("Done.")]).await;
        let mut settings = settings.clone();
        settings["hooks"] = allow();
        world.home.write_config("settings.json", settings.to_string());
        assert_fine(&world.print(["go"]));
        assert_eq!(world.home.project().join("made").exists(), runs, "{settings} {command_line}");
    }
}

#[tokio::test]
async fn input_that_a_hook_changed_is_judged_as_a_new_call() {
    let changed = specific(
        "PreToolUse",
        json!({"permissionDecision": "allow", "updatedInput": {"command": "touch other"}}),
    );
    for (deny, made) in [(json!([]), true), (json!(["Bash(touch other)"]), false)] {
        let world = World::new(touch()).await;
        let settings =
            json!({"permissions": {"deny": deny}, "hooks": {"PreToolUse": answering("Bash", &changed)}});
        world.home.write_config("settings.json", settings.to_string());
        assert_fine(&world.print(["go"]));
        let project = world.home.project();
        assert_eq!((project.join("made").exists(), project.join("other").exists()), (false, made));
    }
}

#[tokio::test]
async fn strictest_of_several_hooks_counts_and_identical_ones_run_once() {
    let allow = specific("PreToolUse", json!({"permissionDecision": "allow"}));
    let world = World::new(touch()).await;
    let hooks = json!({"PreToolUse": [
        {"matcher": "*", "hooks": [
            {"type": "command", "command": format!("echo '{allow}'")},
            {"type": "command", "command": "echo x >> runs; exit 2"},
        ]},
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo x >> runs; exit 2", "timeout": 5}]},
    ]});
    configure(&world, hooks.clone());
    // The same hooks once more, from a file of the project that is trusted.
    world.home.write(".claude/settings.json", json!({"hooks": hooks}).to_string());
    trust(&world);
    run(&world);
    let project = world.home.project();
    assert!(!project.join("made").exists());
    assert_eq!(std::fs::read_to_string(project.join("runs")).unwrap(), "x\n");
}

#[tokio::test]
async fn hooks_of_a_folder_count_only_when_it_is_trusted() {
    for (is_trusted, runs) in [(false, true), (true, false)] {
        let world = World::new(touch()).await;
        let hooks = json!({"hooks": {"PreToolUse": command("", "exit 2")}});
        world.home.write(".claude/settings.json", hooks.to_string());
        if is_trusted {
            trust(&world);
        }
        let output = run(&world);
        assert_eq!(world.home.project().join("made").exists(), runs, "trusted {is_trusted}");
        let says = output.stderr.contains("ignored until this folder is trusted: hooks");
        assert_eq!(says, !is_trusted, "{}", output.stderr);
    }
}

#[tokio::test]
async fn blocked_prompt_reaches_no_model_and_is_no_error() {
    let world = World::new(Step::text("never")).await;
    configure(&world, json!({"UserPromptSubmit": command("", "echo no secrets >&2; exit 2")}));
    let output = run(&world);
    assert_eq!(world.model.requests().len(), 0);
    let result = result(&output);
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert!(result.to_string().contains("no secrets"));
}

#[tokio::test]
async fn turn_goes_on_until_the_hook_is_content_and_never_for_ever() {
    let steps = |n: usize| (0..n).map(|n| Step::text(format!("Answer {n}."))).collect::<Vec<_>>();
    let world = World::new(steps(3)).await;
    let once = "if [ -f .once ]; then exit 0; fi; touch .once; echo one more >&2; exit 2";
    configure(&world, json!({"Stop": command("", once)}));
    run(&world);
    assert_eq!(world.model.requests().len(), 2);
    assert!(
        last_message(&world).contains(&format!("Stop hook feedback:\\n[{once}]: one more")),
        "{}",
        last_message(&world)
    );

    let world = World::new(steps(20)).await;
    configure(&world, json!({"Stop": command("", "exit 2")}));
    run(&world);
    assert_eq!(world.model.requests().len(), 9, "the answer, and eight more");
}

#[tokio::test]
async fn continue_false_ends_the_turn_with_its_reason() {
    let stop = json!({"continue": false, "stopReason": "enough for today"});
    for (event, n_requests, made) in [
        ("PreToolUse", 1, false),
        ("PostToolUse", 1, true),
        ("PostToolBatch", 1, true),
        ("UserPromptSubmit", 0, false),
    ] {
        let world = World::new(touch()).await;
        configure(&world, json!({event: answering("", &stop)}));
        let output = run(&world);
        assert_eq!(output.code, Some(0), "{event} {output:?}");
        assert_eq!(world.model.requests().len(), n_requests, "{event}");
        assert_eq!(world.home.project().join("made").exists(), made, "{event}");
        let is_told = output.stderr.contains("enough for today")
            || result(&output).to_string().contains("enough for today");
        assert!(is_told, "{event} {output:?}");
    }
}

#[tokio::test]
async fn blocked_prompt_is_told_to_programs() {
    let world = World::new(Step::text("never")).await;
    configure(&world, json!({"UserPromptSubmit": command("", "echo no secrets >&2; exit 2")}));
    let frames = world.run(&crate::support::watched(["go"])).json_lines();
    let told = frames.iter().find(|frame| frame["subtype"] == "informational").unwrap();
    assert_eq!((&told["content"], &told["prevent_continuation"]), (&json!("no secrets"), &json!(true)));
}

#[tokio::test]
async fn what_a_hook_says_after_a_call_is_told_beside_its_result() {
    let context = specific("PostToolUse", json!({"additionalContext": "mind the gap"}));
    for (hooks, expected) in [
        (
            json!({"PostToolUse": answering("Bash", &context)}),
            "PostToolUse:Bash hook added context: mind the gap",
        ),
        (
            json!({"PostToolUse": command("Bash", "echo format it >&2; exit 2")}),
            "PostToolUse:Bash hook objected (`echo format it >&2; exit 2`): format it",
        ),
        (
            json!({"PreToolUse": answering("Bash", &specific("PreToolUse", json!({"additionalContext": "before"})))}),
            "PreToolUse:Bash hook added context: before",
        ),
        (
            json!({"PostToolBatch": answering("", &specific("PostToolBatch", json!({"additionalContext": "all"})))}),
            "PostToolBatch hook added context: all",
        ),
    ] {
        let (ran, told, _) = under(hooks).await;
        assert!(ran && told.contains(expected), "{told}");
    }
    let output = specific("PostToolUse", json!({"updatedToolOutput": "redacted"}));
    let (_, told, _) = under(json!({"PostToolUse": answering("Bash", &output)})).await;
    assert!(told.contains("\"content\":\"redacted\""), "{told}");
}

#[tokio::test]
async fn hook_answers_a_question_that_nobody_else_can() {
    let reply = |decision: Value| json!({"PermissionRequest": answering("Bash", &specific("PermissionRequest", json!({"decision": decision})))});
    for (hooks, made) in [
        (reply(json!({"behavior": "allow"})), true),
        (reply(json!({"behavior": "deny", "message": "not today"})), false),
        (json!({"PermissionRequest": command("Bash", "exit 2")}), false),
    ] {
        let world = World::new(touch()).await;
        configure(&world, hooks.clone());
        assert_fine(&world.print(["go"]));
        assert_eq!(world.home.project().join("made").exists(), made, "{hooks} {}", last_message(&world));
        assert_eq!(last_message(&world).contains("not today"), hooks.to_string().contains("not today"));
    }
}

#[tokio::test]
async fn switches_turn_hooks_off() {
    for (settings, is_bare) in [(json!({"disableAllHooks": true}), false), (json!({}), true)] {
        let world = World::new(touch()).await;
        let mut settings = settings;
        settings["hooks"] = json!({"PreToolUse": command("", "exit 2")});
        world.home.write_config("settings.json", settings.to_string());
        let binary = print(["go", "--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1");
        assert_fine(&world.run(&binary.args(is_bare.then_some("--bare"))));
        assert!(world.home.project().join("made").exists(), "{settings} {is_bare}");
    }
}
