//! Questions of the model to the user: asked of a client, a person at a terminal, or a hook; refused where nobody is.

use loci_testkit::{Session, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, is_result, print, stream, user};

fn questions() -> Value {
    json!([
        {"question": "Which format?", "header": "Format", "multiSelect": false, "options": [
            {"label": "Short", "description": "a line"}, {"label": "Long", "description": "all of it"}]},
        {"question": "Which parts?", "header": "Parts", "multiSelect": true, "options": [
            {"label": "Head", "description": "the top"}, {"label": "Tail", "description": "the end"}]},
    ])
}

/// The model fills in an answer of its own, which counts for nothing.
fn ask() -> Step {
    Step::call("AskUserQuestion", json!({"questions": questions(), "answers": {"Which format?": "Long"}}))
}

fn answer(session: &mut Session, question: &Value, response: Value) {
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": response});
    session.write_json(&json!({"type": "control_response", "response": response}));
}

/// Answers the client's question so; returns the question, the result frame and what the model was told.
async fn asked_of_client(flags: &[&str], response: Value) -> (Value, Value, String) {
    let world = World::new([ask(), Step::text("Done.")]).await;
    let mut args = vec!["--permission-prompt-tool", "stdio"];
    args.extend(flags);
    let binary = stream([]).args(args);
    let mut session = world.start(&binary.env("IS_SANDBOX", "1"));
    session.write_json(&user("hi"));
    let question = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
    answer(&mut session, &question, response);
    let result = session.wait_for_json(|frame| !frame["tool_use_result"].is_null());
    session.wait_for_json(is_result);
    session.finish();
    let told = world.last_request().tool_results().remove(0).text;
    world.session();
    (question["request"].clone(), result["tool_use_result"].clone(), told)
}

#[tokio::test]
async fn client_is_asked_in_every_mode_and_its_answers_are_told() {
    for flags in
        [&[][..], &["--permission-mode", "bypassPermissions"], &["--allowedTools", "AskUserQuestion"]]
    {
        let answers = json!({"Which format?": "Short", "Which parts?": ["Head", "Tail"]});
        let input = json!({"questions": questions(), "answers": answers});
        let (question, result, told) =
            asked_of_client(flags, json!({"behavior": "allow", "updatedInput": input})).await;
        assert_eq!(question["tool_name"], "AskUserQuestion");
        assert_eq!(question["input"], json!({"questions": questions()}), "the model answers nothing itself");
        assert_eq!(question["permission_suggestions"], json!([]));
        let expected = json!({"Which format?": "Short", "Which parts?": "Head, Tail"});
        assert_eq!(result, json!({"questions": questions(), "answers": expected}), "{flags:?}");
        assert!(told.contains("Which format?\n  Answer: Short"), "{told}");
    }
}

#[tokio::test]
async fn client_may_hand_in_a_reply_or_refuse() {
    let input = json!({"questions": questions(), "answers": {}, "response": "Let us talk first."});
    let (_, result, told) = asked_of_client(&[], json!({"behavior": "allow", "updatedInput": input})).await;
    assert_eq!(
        (told.as_str(), &result["response"]),
        ("The user responded: Let us talk first.", &json!("Let us talk first."))
    );
    let (_, _, told) = asked_of_client(&[], json!({"behavior": "deny", "message": "Not now."})).await;
    assert_eq!(told, "Not now.");
    let (_, _, told) = asked_of_client(&[], json!({"behavior": "allow"})).await;
    assert!(told.starts_with("The user answered none of the questions"), "{told}");
}

#[tokio::test]
async fn nobody_to_ask_means_the_tool_is_not_offered() {
    let world = World::new([ask(), Step::text("Done.")]).await;
    assert_fine(&world.print(["hi"]));
    let request = world.requests().remove(0);
    let offered = request.tool_names();
    assert!(!offered.contains(&"AskUserQuestion"), "{offered:?}");
    // Named all the same, it is refused.
    for flags in [["--tools", "AskUserQuestion"], ["--allowedTools", "AskUserQuestion"]] {
        let world = World::new([ask(), Step::text("Done.")]).await;
        assert_fine(&world.run(&print(["hi"]).args(flags)));
        let told = world.last_request().tool_results().remove(0);
        assert!(told.text.contains("it asks the user something") && told.is_error, "{told:?}");
    }
}

#[tokio::test]
async fn mode_that_does_not_ask_denies_questions() {
    let world = World::new([ask(), Step::text("Done.")]).await;
    let binary = stream(["--permission-prompt-tool", "stdio"]).args(["--permission-mode", "dontAsk"]);
    let mut session = world.start(&binary);
    session.write_json(&user("hi"));
    let frame = session.wait_for_json(|frame| is_result(frame) || frame["type"] == "control_request");
    assert!(is_result(&frame), "{frame}");
    assert_eq!(frame["permission_denials"][0]["tool_name"], "AskUserQuestion");
    session.finish();
}

/// Runs with a PreToolUse hook that prints this; returns what the model was told.
async fn with_hook(event: &str, output: Value) -> String {
    let world = World::new([ask(), Step::text("Done.")]).await;
    let script = world.home.project().with_file_name("hook.json");
    std::fs::write(&script, output.to_string()).unwrap();
    let hook = json!({"type": "command", "command": format!("cat {}", script.display())});
    let hooks = json!({"hooks": {event: [{"matcher": "AskUserQuestion", "hooks": [hook]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    assert_fine(&world.print(["hi"]));
    world.last_request().tool_results().remove(0).text
}

#[tokio::test]
async fn hook_answers_only_with_updated_input() {
    let input = json!({"questions": questions(), "answers": {"Which format?": "Long"}});
    let said = |input: Option<&Value>| {
        let mut output = json!({"hookEventName": "PreToolUse", "permissionDecision": "allow"});
        if let Some(input) = input {
            output["updatedInput"] = input.clone();
        }
        json!({"hookSpecificOutput": output})
    };
    let told = with_hook("PreToolUse", said(Some(&input))).await;
    assert!(told.contains("Which format?\n  Answer: Long"), "{told}");
    for unanswered in [None, Some(&json!({"questions": questions()}))] {
        let told = with_hook("PreToolUse", said(unanswered)).await;
        assert!(told.contains("it asks the user something"), "{told}");
    }
}

#[tokio::test]
async fn permission_request_hook_answers_only_with_updated_input() {
    let input = json!({"questions": questions(), "answers": {"Which format?": "Long"}});
    for (decision, expected) in [
        (json!({"behavior": "allow", "updatedInput": input}), "Answer: Long"),
        (json!({"behavior": "allow"}), "it asks the user something"),
    ] {
        let output =
            json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
        let told = with_hook("PermissionRequest", output).await;
        assert!(told.contains(expected), "{told}");
    }
}

#[tokio::test]
async fn person_at_the_terminal_chooses_by_number_or_types() {
    let world = World::new([ask(), Step::text("Done.")]).await;
    let mut terminal = world.start_at_terminal(&print(["hi"]));
    for line in ["", "2", "1, 2"] {
        terminal.wait_for("> ");
        terminal.type_line(line);
    }
    let output = terminal.finish();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Done.\n"), "{output:?}");
    assert!(output.stderr.contains("Which parts? (2 of 2)"), "{}", output.stderr);
    let told = world.last_request().tool_results().remove(0).text;
    assert!(told.contains("Answer: Long") && told.contains("Answer: Head, Tail"), "{told}");

    let world = World::new([ask(), Step::text("Done.")]).await;
    let mut terminal = world.start_at_terminal(&print(["hi"]));
    for line in ["wait, why?", "0"] {
        terminal.wait_for("> ");
        terminal.type_line(line);
    }
    assert_eq!(terminal.finish().code, Some(0));
    let told = world.last_request().tool_results().remove(0).text;
    assert_eq!(told, "The user does not want to answer these questions.");
}
