//! Asking before a call runs: a person at the terminal, a client that grants more than the one call.

use crate::support::{World, assert_fine, control, is_result, print, stream, user};
use loci_testkit::{Gate, Output, Session, Step};
use serde_json::{Value, json};

fn bash(command: &str) -> Step {
    Step::call("Bash", json!({"command": command}))
}

fn local_settings(world: &World) -> String {
    std::fs::read_to_string(world.home.project().join(".claude/settings.local.json")).unwrap_or_default()
}

/// Lets the model make a call at a terminal, answers the question so, and returns what is left.
async fn at_terminal(script: Vec<Step>, lines: &[&str]) -> (World, Output) {
    let world = World::new(script).await;
    let mut terminal = world.start_at_terminal(&print(["hi"]));
    for line in lines {
        terminal.wait_for("> ");
        terminal.type_line(line);
    }
    let output = terminal.finish();
    (world, output)
}

#[tokio::test]
async fn a_person_may_say_yes_once() {
    let (world, output) = at_terminal(vec![bash("touch made"), Step::text("Done.")], &["y"]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Done.\n"), "{output:?}");
    for shown in
        ["Bash asks to run:", "    touch made", "always: the rule `Bash(touch made)`, in your settings"]
    {
        assert!(output.stderr.contains(shown), "{shown}: {}", output.stderr);
    }
    assert!(world.home.project().join("made").exists());
    assert_eq!(local_settings(&world), "", "once is not for ever");
}

#[tokio::test]
async fn a_person_may_say_always_and_is_not_asked_again() {
    let script = vec![bash("touch made"), bash("touch made"), Step::text("Done.")];
    let (world, output) = at_terminal(script, &["a"]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Done.\n"), "{output:?}");
    assert_eq!(output.stderr.matches("asks to run").count(), 1, "{}", output.stderr);
    let saved: Value = serde_json::from_str(&local_settings(&world)).unwrap();
    assert_eq!(saved, json!({"permissions": {"allow": ["Bash(touch made)"]}}));
    assert!(output.stderr.contains("run `loci config trust`"), "{}", output.stderr);
    // Nor in the next session, once the folder is trusted: an archive could have brought such a file.
    std::fs::remove_file(world.home.project().join("made")).unwrap();
    let world = world.then([bash("touch made"), Step::text("Not yet.")]).await;
    world.print(["hi"]);
    assert!(!world.home.project().join("made").exists());
    crate::settings::trust(&world);
    let world = world.then([bash("touch made"), Step::text("Again.")]).await;
    assert_fine(&world.print(["hi"]));
    assert!(world.home.project().join("made").exists());
}

#[tokio::test]
async fn a_person_may_say_no_and_the_turn_stops() {
    let (world, output) = at_terminal(vec![bash("touch made"), Step::text("Never.")], &["what?", "n"]).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("Please answer"), "{}", output.stderr);
    assert_eq!(world.requests().len(), 1, "nothing follows a plain no");
    assert!(!world.home.project().join("made").exists());
    world.session();
}

#[tokio::test]
async fn a_person_may_say_no_with_a_reason_for_the_model() {
    let (world, output) = at_terminal(vec![bash("touch made"), Step::text("I see.")], &["n use make"]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "I see.\n"), "{output:?}");
    let told = world.last_request().tool_results().remove(0).text;
    assert_eq!(told, "The user said no to this call: use make");
}

/// P-9.
#[tokio::test]
async fn input_typed_before_the_question_is_discarded() {
    let gate = Gate::new();
    let world = World::new([bash("touch made").wait_for(gate.clone()), Step::text("I see.")]).await;
    let mut terminal = world.start_at_terminal(&print(["hi"]));
    terminal.type_line("y");
    // The terminal's own echo: the line is there before the model has said anything.
    terminal.wait_for("y");
    gate.release();
    terminal.wait_for("> ");
    terminal.type_line("n too early");
    let output = terminal.finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!world.home.project().join("made").exists());
}

#[tokio::test]
async fn closed_terminal_denies_the_question() {
    let world = World::new([bash("touch made"), Step::text("I see.")]).await;
    let mut terminal = world.start_at_terminal(&print(["hi"]));
    terminal.wait_for("> ");
    terminal.type_key('\x04');
    let output = terminal.finish();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "I see.\n"), "{output:?}");
    assert!(!world.home.project().join("made").exists());
}

fn is_question(frame: &Value) -> bool {
    frame["request"]["subtype"] == "can_use_tool"
}

fn answer(session: &mut Session, question: &Value, response: Value) {
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": response});
    session.write_json(&json!({"type": "control_response", "response": response}));
}

/// Says yes to the first question with these changes, no to all later ones, and returns how many were asked.
async fn granted(script: Vec<Step>, world: World, updates: &Value) -> (World, usize, Output) {
    let world = world.then(script).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("hi"));
    let mut n_asked = 0;
    loop {
        let frame = session.wait_for_json(|frame| is_question(frame) || is_result(frame));
        if is_result(&frame) {
            break;
        }
        n_asked += 1;
        let response = match n_asked {
            1 => json!({"behavior": "allow", "updatedPermissions": updates}),
            _ => json!({"behavior": "deny", "message": "no"}),
        };
        answer(&mut session, &frame, response);
    }
    let output = session.finish();
    world.session();
    (world, n_asked, output)
}

fn update(kind: &str, destination: &str, rest: Value) -> Value {
    let mut update = rest;
    update["type"] = json!(kind);
    update["destination"] = json!(destination);
    json!([update])
}

#[tokio::test]
async fn client_answer_may_add_permission_rules() {
    let rule =
        |text: &str| json!({"rules": [{"toolName": "Bash", "ruleContent": text}], "behavior": "allow"});
    for (updates, second, n_expected) in [
        (json!([]), "touch b", 2),
        (update("addRules", "session", rule("touch *")), "touch b", 1),
        (update("addRules", "localSettings", rule("touch *")), "touch b", 1),
        (update("replaceRules", "session", rule("touch b")), "touch b", 1),
        (update("addRules", "session", rule("mkdir *")), "touch b", 2),
        (update("setMode", "session", json!({"mode": "acceptEdits"})), "touch b", 1),
        (update("setMode", "session", json!({"mode": "dontAsk"})), "touch b", 1),
        (update("addDirectories", "session", json!({"directories": ["~"]})), "cat ~/secret.txt", 1),
        (update("removeDirectories", "session", json!({"directories": ["~"]})), "cat ~/secret.txt", 2),
    ] {
        let world = World::new([]).await;
        crate::settings::trust(&world);
        world.home.write_home("secret.txt", "secret\n");
        let script = vec![bash("touch a"), bash(second), Step::text("Done.")];
        let (world, n_asked, output) = granted(script, world, &updates).await;
        assert_fine(&output);
        assert_eq!(n_asked, n_expected, "{updates}");
        assert!(world.home.project().join("a").exists());
    }
}

/// P-11.
#[tokio::test]
async fn granted_rule_is_saved_to_its_settings_file() {
    let rule = json!({"rules": [{"toolName": "Bash", "ruleContent": "touch *"}], "behavior": "allow"});
    for (destination, file) in [
        ("session", None),
        ("localSettings", Some("local")),
        ("projectSettings", Some("project")),
        ("userSettings", Some("user")),
    ] {
        let world = World::new([]).await;
        let script = vec![bash("touch a"), Step::text("Done.")];
        let (world, ..) = granted(script, world, &update("addRules", destination, rule.clone())).await;
        let project = world.home.project().join(".claude");
        for (name, path) in [
            ("local", project.join("settings.local.json")),
            ("project", project.join("settings.json")),
            ("user", world.home.config_home().join("settings.json")),
        ] {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(text.contains("Bash(touch *)"), file == Some(name), "{destination} {name}: {text}");
        }
    }
}

/// A grant that is saved into a folder nobody trusts holds for the session, and says what it lacks.
#[tokio::test]
async fn grant_saved_to_an_untrusted_folder_says_that_it_waits() {
    let rule = json!({"rules": [{"toolName": "Bash", "ruleContent": "touch *"}], "behavior": "allow"});
    for (destination, is_trusted, tells) in
        [("localSettings", false, true), ("localSettings", true, false), ("userSettings", false, false)]
    {
        let world = World::new([]).await;
        if is_trusted {
            crate::settings::trust(&world);
        }
        let script = vec![bash("touch a"), bash("touch b"), Step::text("Done.")];
        let (_, n_asked, output) =
            granted(script, world, &update("addRules", destination, rule.clone())).await;
        assert_eq!(n_asked, 1, "{destination}");
        let told = output.stderr.matches("run `loci config trust`").count();
        assert_eq!(told, usize::from(tells), "{destination} {is_trusted}: {output:?}");
    }
}

/// P-10.
#[tokio::test]
async fn answers_cannot_switch_to_bypass_mode() {
    let world = World::new([]).await;
    let script = vec![bash("touch a"), bash("touch b"), Step::text("Done.")];
    let bypass = update("setMode", "session", json!({"mode": "bypassPermissions"}));
    let (world, n_asked, output) = granted(script, world, &bypass).await;
    assert_eq!(n_asked, 2);
    assert!(output.stderr.contains("A permission was not changed"), "{}", output.stderr);
    assert!(!world.home.project().join("b").exists());
}

/// What a question suggests, granted as it is, lets the same call run unasked (P-8).
#[tokio::test]
async fn suggested_rules_allow_the_asked_call() {
    type Call = fn(&World, usize) -> Step;
    let calls: [(&str, Call); 4] = [
        ("addRules localSettings", |_, _| bash("touch a")),
        ("addRules session", |_, _| bash("ls > listing")),
        ("addRules session", |world, _| {
            Step::call("Read", json!({"file_path": world.home.home().join("notes/secret.txt")}))
        }),
        ("setMode session", |world, n| {
            Step::call("Write", json!({"file_path": world.path(&format!("new-{n}")), "content": "x"}))
        }),
    ];
    for (kind, call) in calls {
        let world = World::new([]).await;
        crate::settings::trust(&world);
        world.home.write_home("notes/secret.txt", "secret\n");
        let script = [call(&world, 1), call(&world, 2), Step::text("Done.")];
        let world = world.then(script).await;
        let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
        session.write_json(&user("hi"));
        let question = session.wait_for_json(is_question);
        let suggested = question["request"]["permission_suggestions"].clone();
        let first = &suggested[0];
        let found = format!("{} {}", first["type"], first["destination"]).replace('"', "");
        assert_eq!(found, kind, "{suggested}");
        answer(&mut session, &question, json!({"behavior": "allow", "updatedPermissions": suggested}));
        let next = session.wait_for_json(|frame| is_question(frame) || is_result(frame));
        assert!(is_result(&next), "asked again: {next}");
        assert_fine(&session.finish());
    }
}

/// A rule that asks, and what is dangerous in itself, is asked about every time (P-8).
#[tokio::test]
async fn questions_of_ask_rules_and_safety_checks_have_no_suggestions() {
    for (command, kind) in [("touch a", "rule"), ("rm -rf ~", "safetyCheck"), ("touch .git/x", "safetyCheck")]
    {
        let world = World::new([bash(command), Step::text("Done.")]).await;
        let settings = r#"{"permissions": {"ask": ["Bash(touch a)"]}}"#;
        let binary = stream(["--permission-prompt-tool", "stdio", "--settings", settings]);
        let mut session = world.start(&binary);
        session.write_json(&user("hi"));
        let question = session.wait_for_json(is_question)["request"].clone();
        assert_eq!(question["permission_suggestions"], json!([]), "{command}");
        assert_eq!(question["decision_reason_type"], kind, "{command}");
        session.write_json(&control("r1", json!({"subtype": "interrupt"})));
        session.wait_for_json(is_result);
        session.finish();
    }
}

/// What the model says is shown on a terminal and does not talk to it; a program gets every byte (S-46).
#[tokio::test]
async fn control_characters_of_answers_do_not_reach_the_terminal() {
    let nasty = "red \u{1b}[31m title \u{1b}]0;x\u{7} clip \u{1b}]52;c;eA==\u{7} end";
    let world = World::new(vec![Step::text(nasty)]).await;
    let output = world.start_on_screen(&print(["hi"])).finish();
    assert_eq!(output.code, Some(0), "{output:?}");
    let plain = nasty.replace('\u{1b}', "\\u001b").replace('\u{7}', "\\u0007");
    assert!(output.stderr.contains(&plain) && !output.stderr.contains('\u{1b}'), "{output:?}");
    let world = world.then([Step::text(nasty)]).await;
    assert_eq!(world.print(["hi"]).stdout, format!("{nasty}\n"));
}
