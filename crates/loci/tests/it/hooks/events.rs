//! Which events fire, in which order, with which payloads, and what stays in the transcript.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{KEEP, answering, command, configure, kept, last_message, run, specific};
use crate::support::{World, assert_fine, is_result, loci, stream, user, watched};

/// Returns hooks that keep every payload of these events.
fn keeping(events: &[&str]) -> Value {
    events
        .iter()
        .map(|event| ((*event).to_owned(), command("", KEEP)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test]
async fn events_of_a_turn_fire_once_each_in_order() {
    let steps = vec![
        Step::call("Bash", json!({"command": "true"})),
        Step::call("Bash", json!({"command": "false"})),
        Step::text("Done."),
    ];
    let world = World::new(steps).await;
    configure(
        &world,
        keeping(&[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PostToolBatch",
            "Stop",
            "SessionEnd",
        ]),
    );
    run(&world);
    let payloads = kept(&world, "kept.jsonl");
    let names: Vec<&str> = payloads.iter().map(|it| it["hook_event_name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolBatch",
            "PreToolUse",
            "PostToolUseFailure",
            "PostToolBatch",
            "Stop",
            "SessionEnd"
        ]
    );
    let keys = |at: usize| payloads[at].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(0), "session_id transcript_path cwd hook_event_name source");
    assert_eq!(keys(1), "session_id transcript_path cwd prompt_id permission_mode hook_event_name prompt");
    assert_eq!(
        keys(2),
        "session_id transcript_path cwd prompt_id permission_mode hook_event_name tool_name tool_input tool_use_id"
    );
    assert_eq!(
        keys(3),
        "session_id transcript_path cwd prompt_id permission_mode hook_event_name tool_name tool_input tool_response tool_use_id duration_ms"
    );
    assert_eq!(payloads[6]["error"].as_str().unwrap().lines().next(), Some("Exit code 1"));
    assert_eq!(
        keys(8),
        "session_id transcript_path cwd prompt_id permission_mode hook_event_name stop_hook_active last_assistant_message background_tasks session_crons"
    );
    assert_eq!(
        (&payloads[8]["last_assistant_message"], &payloads[9]["reason"]),
        (&json!("Done."), &json!("other"))
    );
    let prompts: Vec<&Value> = payloads[1..].iter().map(|it| &it["prompt_id"]).collect();
    assert!(prompts.iter().all(|id| *id == prompts[0] && id.is_string()), "{prompts:?}");
    let transcript = std::fs::read_to_string(payloads[0]["transcript_path"].as_str().unwrap()).unwrap();
    assert!(transcript.contains(prompts[0].as_str().unwrap()), "the prompt has the id that hooks were told");
}

#[tokio::test]
async fn paths_of_files_are_absolute_and_effort_is_told_where_the_model_has_it() {
    let world =
        World::new(vec![Step::call("Read", json!({"file_path": "notes.md"})), Step::text("Done.")]).await;
    world.home.write("notes.md", "milk\n");
    configure(&world, keeping(&["PreToolUse", "PostToolUse", "Stop"]));
    assert_fine(&world.run(&loci().args(["-p", "go", "--model", "claude-opus-4-8"])));
    let payloads = kept(&world, "kept.jsonl");
    let file = world.home.project().join("notes.md");
    assert_eq!(payloads[0]["tool_input"]["file_path"], json!(file));
    assert_eq!(payloads[1]["tool_response"]["file"]["content"], "milk\n");
    assert!(payloads.iter().all(|it| it["effort"] == json!({"level": "high"})), "{payloads:?}");
}

#[tokio::test]
async fn environment_of_a_hook_names_project_and_session_and_has_no_provider_key() {
    let world = World::new(Step::text("Done.")).await;
    let tell = "echo \"$CLAUDE_PROJECT_DIR $CLAUDECODE $CLAUDE_CODE_SESSION_ID ${CLAUDE_PROJECT_DIR}/x [$ANTHROPIC_API_KEY]\" > told";
    configure(&world, json!({"SessionStart": command("", tell)}));
    let output = world.print(["go", "--output-format", "json"]);
    assert_fine(&output);
    let session = super::result(&output)["session_id"].as_str().unwrap().to_owned();
    let project = world.home.project().display().to_string();
    let told = std::fs::read_to_string(world.home.project().join("told")).unwrap();
    assert_eq!(told, format!("{project} 1 {session} {project}/x []\n"));
}

/// The name of a directory is data, whatever it looks like.
#[tokio::test]
async fn name_of_the_project_is_never_run_as_code() {
    let world = World::new(Step::text("Done.")).await;
    let odd = world.home.project().join("$(touch planted)");
    std::fs::create_dir(&odd).unwrap();
    configure(&world, json!({"SessionStart": command("", "echo \"${CLAUDE_PROJECT_DIR}\" > told")}));
    let output = world.run(&crate::support::print(["go"]).cwd(&odd));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(std::fs::read_to_string(odd.join("told")).unwrap(), format!("{}\n", odd.display()));
    assert!(!odd.join("planted").exists() && !world.home.project().join("planted").exists());
}

#[tokio::test]
async fn program_with_arguments_is_run_without_a_shell() {
    let world = World::new(Step::text("Done.")).await;
    let handler = json!({"type": "command", "command": "touch", "args": ["${CLAUDE_PROJECT_DIR}/a b;c"]});
    configure(&world, json!({"SessionStart": [{"hooks": [handler]}]}));
    run(&world);
    assert!(world.home.project().join("a b;c").exists());
}

#[tokio::test]
async fn context_of_hooks_is_recorded_at_its_place_and_sent_again_byte_for_byte() {
    let steps = vec![Step::call("Bash", json!({"command": "true"})), Step::text("Done.")];
    let world = World::new(steps).await;
    configure(
        &world,
        json!({
            "SessionStart": command("startup", "echo session words"),
            "UserPromptSubmit": command("", "echo prompt words"),
            "PostToolUse": answering("Bash", &specific("PostToolUse", json!({"additionalContext": "call words"}))),
        }),
    );
    run(&world);
    let messages = world.last_request().json["messages"].clone();
    let sent = messages.to_string();
    for words in [
        "SessionStart:startup hook succeeded: session words",
        "UserPromptSubmit hook succeeded: prompt words",
        "PostToolUse:Bash hook added context: call words",
    ] {
        assert_eq!(sent.matches(words).count(), 1, "{words}: {sent}");
    }
    let first = messages[0]["content"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>();
    let at = |words: &str| first.iter().position(|block| block.contains(words)).unwrap();
    assert!(at("session words") < at("prompt words"), "{first:?}");

    // Another run of the session runs nothing again but the start, and sends the same bytes.
    configure(&world, json!({"SessionStart": command("", "cat >> starts.jsonl")}));
    let world = world.then(Step::text("More.")).await;
    assert_fine(&world.print(["more", "--continue"]));
    let again = world.last_request().json["messages"].clone();
    let n_before = messages.as_array().unwrap().len();
    let strip = |message: &Value| message.to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    for n in 0..n_before {
        assert_eq!(strip(&again[n]), strip(&messages[n]), "message {n}");
    }
    assert_eq!(kept(&world, "starts.jsonl")[0]["source"], "resume");
}

#[tokio::test]
async fn start_of_a_session_names_its_source() {
    let world = World::new(Step::text("One.")).await;
    configure(&world, keeping(&["SessionStart", "SessionEnd"]));
    run(&world);
    let world = world.then(Step::text("Two.")).await;
    assert_fine(&world.print(["more", "--continue", "--fork-session"]));
    let told: Vec<String> = kept(&world, "kept.jsonl")
        .iter()
        .map(|it| {
            format!(
                "{} {}{}",
                it["hook_event_name"].as_str().unwrap(),
                it["source"].as_str().unwrap_or_default(),
                it["reason"].as_str().unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(told, ["SessionStart startup", "SessionEnd other", "SessionStart fork", "SessionEnd other"]);
}

#[tokio::test]
async fn first_prompt_and_title_of_a_start_are_taken() {
    let world = World::new(vec![Step::text("Ready."), Step::text("Done.")]).await;
    let start =
        specific("SessionStart", json!({"initialUserMessage": "get ready", "sessionTitle": "Hooked"}));
    configure(&world, json!({"SessionStart": answering("startup", &start)}));
    run(&world);
    assert!(world.model.requests()[0].json["messages"].to_string().contains("get ready"));
    assert!(last_message(&world).contains("\"go\""), "{}", last_message(&world));
    let list = world.run(&loci().args(["sessions", "list"]));
    assert!(list.stdout.contains("Hooked"), "{list:?}");
}

#[tokio::test]
async fn runs_of_hooks_are_told_where_that_is_asked_for() {
    for (flag, events) in [(true, vec!["SessionStart", "Stop"]), (false, vec!["SessionStart"])] {
        let world = World::new(Step::text("Done.")).await;
        configure(
            &world,
            json!({"SessionStart": command("", "echo hi"), "Stop": command("", "echo no >&2; exit 1")}),
        );
        let output = world.run(&watched(["go"]).args(flag.then_some("--include-hook-events")));
        assert_eq!(output.code, Some(0), "{output:?}");
        let frames = output.json_lines();
        let of =
            |subtype: &str| -> Vec<&Value> { frames.iter().filter(|it| it["subtype"] == subtype).collect() };
        let started: Vec<&str> =
            of("hook_started").iter().map(|it| it["hook_event"].as_str().unwrap()).collect();
        assert_eq!(started, events);
        let responses = of("hook_response");
        assert_eq!(
            (&responses[0]["hook_name"], &responses[0]["stdout"], &responses[0]["outcome"]),
            (&json!("SessionStart:startup"), &json!("hi\n"), &json!("success"))
        );
        if flag {
            assert_eq!(
                (&responses[1]["stderr"], &responses[1]["exit_code"], &responses[1]["outcome"]),
                (&json!("no\n"), &json!(1), &json!("error"))
            );
        }
    }
}

/// A command of the very turn may have written the file: what it says of hooks waits for the next prompt.
#[tokio::test]
async fn changed_hooks_count_from_the_next_prompt_on() {
    let none =
        "echo '{}' > \"$CLAUDE_CONFIG_DIR/settings.json\"; echo '{}' > ~/.claude/settings.json; touch first";
    let steps = vec![
        Step::call("Bash", json!({"command": none})),
        Step::text("One."),
        Step::call("Bash", json!({"command": "touch second"})),
        Step::text("Two."),
    ];
    let world = World::new(steps).await;
    configure(&world, json!({"PostToolUse": command("Bash", KEEP)}));
    let binary = stream(["--permission-mode", "bypassPermissions"]).env("IS_SANDBOX", "1");
    let mut session = world.start(&binary);
    for prompt in ["one", "two"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.close_stdin();
    let output = session.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(world.home.project().join("second").exists());
    let seen: Vec<Value> =
        kept(&world, "kept.jsonl").iter().map(|it| it["tool_input"]["command"].clone()).collect();
    assert_eq!(seen, [none], "the hook held to the end of its turn, and no longer");
    assert!(output.stderr.contains("the hooks are now those of the files"), "{}", output.stderr);
}

#[tokio::test]
async fn compaction_asks_before_and_tells_after_and_can_be_blocked() {
    for (is_blocked, expected) in [
        (false, vec!["PreCompact manual", "SessionStart compact", "PostCompact manual"]),
        (true, vec!["PreCompact manual"]),
    ] {
        let steps = vec![Step::text("One."), Step::text("Two."), Step::text("<summary>Short.</summary>")];
        let world = World::new(steps).await;
        let keep = format!("{KEEP}{}", if is_blocked { "; echo not now >&2; exit 2" } else { "" });
        configure(
            &world,
            json!({
                "PreCompact": command("manual", &keep),
                "PostCompact": command("", KEEP),
                "SessionStart": command("compact", KEEP),
            }),
        );
        let mut session = world.start(&stream([]));
        for prompt in ["one", "two", "/compact keep the names"] {
            session.write_json(&user(prompt));
            session.wait_for_json(is_result);
        }
        session.close_stdin();
        session.finish();
        let payloads = kept(&world, "kept.jsonl");
        let told = payloads.iter().map(|it| {
            let subject = it["trigger"].as_str().or(it["source"].as_str()).unwrap();
            format!("{} {subject}", it["hook_event_name"].as_str().unwrap())
        });
        assert_eq!(told.collect::<Vec<_>>(), expected, "blocked {is_blocked}");
        assert_eq!(payloads[0]["custom_instructions"], "keep the names");
    }
}

#[tokio::test]
async fn field_of_an_answer_without_effect_is_reported_once() {
    let call = || Step::call("Bash", json!({"command": "true"}));
    let world = World::new([call(), call(), Step::text("Done.")]).await;
    let answer = specific("PostToolUse", json!({"classifierContext": "harmless"}));
    configure(&world, json!({"PostToolUse": answering("Bash", &answer)}));
    let output = run(&world);
    let n_told =
        output.stderr.matches("`classifierContext` has no effect: no classifier judges calls").count();
    assert_eq!(n_told, 1, "{}", output.stderr);
}

#[tokio::test]
async fn task_is_made_and_marked_as_done_with_the_leave_of_hooks_only() {
    let make =
        |subject: &str| Step::call("TaskCreate", json!({"subject": subject, "description": "All of it"}));
    let done = || Step::call("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    let steps = vec![
        make("[T-1] Sort"),
        make("Sort"),
        done(),
        done(),
        done(),
        Step::call("TaskList", json!({})),
        Step::text("Done."),
    ];
    let world = World::new(steps).await;
    let named = "tee -a kept.jsonl | grep -q '\\[T-' || { echo no ticket >&2; exit 2; }";
    let tested = format!("{KEEP}; [ -f tested ] || {{ touch tested; echo test it first >&2; exit 2; }}");
    configure(&world, json!({"TaskCreated": command("", named), "TaskCompleted": command("", &tested)}));
    run(&world);
    let told: Vec<String> = kept(&world, "kept.jsonl")
        .iter()
        .map(|it| {
            format!("{} {}", it["hook_event_name"].as_str().unwrap(), it["task_subject"].as_str().unwrap())
        })
        .collect();
    // The last one changes nothing, so nobody is asked.
    assert_eq!(
        told,
        [
            "TaskCreated [T-1] Sort",
            "TaskCreated Sort",
            "TaskCompleted [T-1] Sort",
            "TaskCompleted [T-1] Sort"
        ]
    );
    let payload = &kept(&world, "kept.jsonl")[0];
    let keys = payload.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys,
        "session_id transcript_path cwd prompt_id hook_event_name task_id task_subject task_description"
    );
    let messages = world.last_request().json["messages"].to_string();
    for words in ["no ticket", "test it first", "Task 1 is now completed"] {
        assert_eq!(messages.matches(words).count(), 1, "{words}: {messages}");
    }
    let list = last_message(&world);
    assert!(list.contains("[T-1] Sort") && !list.contains("2"), "{list}");
}
