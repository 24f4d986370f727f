//! Frames and answers of the headless protocol whose order or words clients rely on.

use expect_test::expect;
use loci_testkit::{Session, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, control, is_result, print, shape, stream, user, watched};

const SUMMARY: &str = "<summary>\n1. The user counts.\n</summary>";

/// Says a prompt and waits for its result.
fn say(session: &mut Session, prompt: &str) -> Value {
    session.write_json(&user(prompt));
    session.wait_for_json(is_result)
}

/// Asks, and returns the response.
fn ask(session: &mut Session, id: &str, request: Value) -> Value {
    session.write_json(&control(id, request));
    session.wait_for_json(|frame| frame["response"]["request_id"] == id)["response"].clone()
}

/// Names frames by type, subtype and what marks them.
fn kinds(frames: &[Value]) -> Vec<String> {
    let kind = |frame: &Value| {
        let text = |key: &str| frame[key].as_str().map(str::to_owned);
        let words = [text("type"), text("subtype"), text("status"), text("compact_result")];
        let marks = ["isSynthetic", "isReplay"].into_iter().filter(|mark| frame[mark] == true);
        words.into_iter().flatten().chain(marks.map(str::to_owned)).collect::<Vec<_>>().join(" ")
    };
    frames.iter().map(kind).collect()
}

#[tokio::test]
async fn manual_compaction_is_told_in_the_order_of_the_protocol() {
    let world = World::new([Step::text("One."), Step::text("Two."), Step::text(SUMMARY)]).await;
    let mut session = world.start(&stream([]));
    say(&mut session, "first");
    say(&mut session, "second");
    let result = say(&mut session, "/compact");
    let output = session.finish();
    assert_fine(&output);
    let frames = output.json_lines();
    let at = frames.iter().position(|frame| frame["status"] == "compacting").unwrap();
    assert_eq!(
        kinds(&frames[at..]),
        [
            "system status compacting",
            "system status success",
            "system init",
            "system compact_boundary",
            "user isSynthetic",
            "user isReplay",
            "result success",
        ]
    );
    let replay = frames.iter().find(|frame| frame["isReplay"] == true).unwrap();
    assert_eq!(replay["message"]["content"], "<local-command-stdout>Compacted</local-command-stdout>");
    assert_eq!((&result["local_command"], &result["num_turns"]), (&json!("compact"), &json!(0)), "{result}");
}

#[tokio::test]
async fn compaction_with_too_little_history_fails_with_a_synthetic_text_and_a_good_result() {
    let world = World::new([]).await;
    let output = world.run(&watched(["/compact"]));
    assert_fine(&output);
    let frames = output.json_lines();
    assert_eq!(
        kinds(&frames),
        ["system status compacting", "system status failed", "system init", "assistant", "result success"]
    );
    assert_eq!(frames[3]["message"]["model"], "<synthetic>");
    assert_eq!(frames[3]["message"]["content"][0]["text"], frames[4]["result"]);
}

#[tokio::test]
async fn interrupted_compaction_of_a_command_still_tells_its_turn() {
    let gate = loci_testkit::Gate::new();
    let held = Step::text(SUMMARY).wait_for(gate);
    let world = World::new([Step::text("One."), Step::text("Two."), held]).await;
    let mut session = world.start(&stream([]));
    say(&mut session, "first");
    say(&mut session, "second");
    session.write_json(&user("/compact"));
    session.wait_for_json(|frame| frame["status"] == "compacting");
    session.write_json(&control("i", json!({"subtype": "interrupt"})));
    session.wait_for_json(is_result);
    let frames = session.finish().json_lines();
    let at = frames.iter().position(|frame| frame["status"] == "compacting").unwrap();
    let told = kinds(&frames[at..]);
    assert!(told.contains(&"system init".to_owned()), "{told:?}");
    assert!(told.last().unwrap().starts_with("result"), "{told:?}");
}

#[tokio::test]
async fn set_model_is_answered_with_the_model_and_noted_in_a_conversation_that_has_begun() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut session = world.start(&stream([]));
    let set = |model: Value| json!({"subtype": "set_model", "model": model});
    let early = ask(&mut session, "a", set(json!("opus")));
    assert_eq!(early["response"], json!({"model": "claude-opus-5-5"}));
    assert_eq!(ask(&mut session, "b", set(Value::Null))["response"]["model"], "claude-sonnet-4-5");
    say(&mut session, "first");
    ask(&mut session, "c", set(json!("haiku")));
    ask(&mut session, "d", set(json!("haiku")));
    assert_eq!(ask(&mut session, "e", set(json!("default")))["response"]["model"], "claude-sonnet-4-5");
    let output = session.finish();
    assert_fine(&output);
    let noted: Vec<Value> = output.json_lines().into_iter().filter(|it| it["isReplay"] == true).collect();
    let words: Vec<&str> = noted.iter().filter_map(|it| it["message"]["content"].as_str()).collect();
    assert_eq!(
        words,
        [
            "<local-command-stdout>Set model to `claude-haiku-5-5`</local-command-stdout>",
            "<local-command-stdout>Set model to `claude-sonnet-4-5`</local-command-stdout>",
        ],
        "only what is another model in a conversation"
    );
}

#[tokio::test]
async fn set_model_is_an_error_while_a_budget_could_not_be_kept_with_it() {
    let world = World::new([Step::text("One.")]).await;
    let mut session = world.start(&stream(["--max-budget-usd", "1"]));
    for (id, request) in [
        ("a", json!({"subtype": "set_model", "model": "mystery-1"})),
        ("b", json!({"subtype": "apply_flag_settings", "settings": {"model": "mystery-1"}})),
    ] {
        let answer = ask(&mut session, id, request);
        assert_eq!(answer["subtype"], "error", "{answer}");
        assert!(answer["error"].as_str().unwrap().contains("price of `mystery-1` is unknown"), "{answer}");
    }
    let settings = ask(&mut session, "c", json!({"subtype": "get_settings"}))["response"].clone();
    assert!(!settings["sources"].to_string().contains("mystery-1"), "it is no setting either: {settings}");
    let taken = json!({"subtype": "apply_flag_settings", "settings": {"model": "haiku"}});
    assert_eq!(ask(&mut session, "d", taken)["response"]["model"], "claude-haiku-5-5");
    let settings = ask(&mut session, "e", json!({"subtype": "get_settings"}))["response"].clone();
    assert!(settings["sources"].to_string().contains("haiku"), "{settings}");
    say(&mut session, "first");
    assert_fine(&session.finish());
    assert_eq!(world.last_request().json["model"], "claude-haiku-5-5", "what cannot be had is left out");
}

#[tokio::test]
async fn commands_that_are_not_here_are_answered_without_a_request() {
    let world = World::new([Step::text("One.")]).await;
    let mut session = world.start(&stream([]));
    say(&mut session, "first");
    for (command, told) in [
        ("/help", "is a command of the terminal"),
        ("/resume x", "is a command of the terminal"),
        ("/fast", "`/effort low` makes answers quicker"),
        ("/stickers", "needs a service of another vendor"),
        ("/color blue", "There is no /color here"),
        ("/login", "loci login"),
        ("/vim", "editorMode"),
    ] {
        let result = say(&mut session, command);
        assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("success"), &json!(0)), "{command}");
        assert!(result["result"].as_str().unwrap().contains(told), "{command}: {result}");
        assert_eq!(result["local_command"], Value::Null, "{command}");
    }
    let output = session.finish();
    assert_fine(&output);
    let said = output.json_lines();
    let outcomes = said.iter().filter(|it| it["local_command_outcome"]["kind"] == "unavailable_headless");
    assert_eq!(outcomes.count(), 7);
    assert_eq!(world.requests().len(), 1);
    let text = world.run(&print(["/help"]));
    assert_fine(&text);
    assert_eq!(text.stdout, "/help is a command of the terminal and is not available here\n");
}

/// The newest reference sends it to the model, which hears that there is no such command.
#[tokio::test]
async fn unknown_command_goes_to_the_model_with_a_note_and_paths_do_not() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut session = world.start(&stream([]));
    say(&mut session, "/nosuch thing");
    let asked = world.last_request().json["messages"].to_string();
    assert!(asked.contains("begins with /nosuch, which is no command of this session"), "{asked}");
    assert!(asked.contains("/nosuch thing") && asked.contains("/compact"), "{asked}");
    say(&mut session, "/tmp/file is what I mean");
    assert_fine(&session.finish());
    let asked = world.last_request().json["messages"].to_string();
    assert_eq!(asked.matches("is no command of this session").count(), 1, "{asked}");
    let notes: Vec<Value> = world
        .session()
        .into_iter()
        .filter(|it| it["attachment"]["type"] == "unknown_command_fallback")
        .collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["attachment"]["commandName"], "nosuch");
}

#[tokio::test]
async fn notification_tells_a_client_what_people_should_know() {
    let world = World::new([Step::text("One.")]).await;
    world.home.write("CLAUDE.md", "Be kind and thorough. ".repeat(2_000));
    let output = world.run(&watched(["hi"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "20000"));
    assert_eq!(output.code, Some(0), "{output:?}");
    let frames = output.json_lines();
    let told: Vec<&Value> = frames.iter().filter(|it| it["subtype"] == "notification").collect();
    assert_eq!(told.len(), 1, "{}", shape(&frames));
    assert_eq!((&told[0]["key"], &told[0]["priority"]), (&json!("warning"), &json!("medium")));
    assert_eq!(told[0]["text"].as_str().unwrap(), output.stderr.trim(), "people and programs hear the same");
}

#[tokio::test]
async fn file_suggestions_are_those_of_the_terminal() {
    let world = World::with_git([]).await;
    for file in ["alpha.rs", "src/alphabet.rs", "target/alpha.o", "beta.rs"] {
        world.home.write(file, "x\n");
    }
    world.home.write(".gitignore", "target\n");
    let mut session = world.start(&stream([]));
    let mut paths = |id: &str, query: &str| -> String {
        let answer = ask(&mut session, id, json!({"subtype": "file_suggestions", "query": query}));
        assert_eq!(answer["response"]["cwd"], json!(world.home.project()), "{answer}");
        let rows = answer["response"]["suggestions"].as_array().unwrap().clone();
        rows.iter().filter_map(|row| row["path"].as_str()).collect::<Vec<_>>().join(" ")
    };
    expect!["alpha.rs src/alphabet.rs"].assert_eq(&paths("a", "alpha"));
    expect!["src/ .gitignore README.md alpha.rs beta.rs"].assert_eq(&paths("b", ""));
    expect!["./beta.rs"].assert_eq(&paths("c", "./be"));
    expect![""].assert_eq(&paths("d", "zzz"));
    assert_fine(&session.finish());
    let command = json!({"fileSuggestion": {"type": "command", "command": "cat >&2; echo chosen.txt"}});
    let mut session = world.start(&stream(["--settings", &command.to_string()]));
    let answer = ask(&mut session, "a", json!({"subtype": "file_suggestions", "query": "q"}));
    assert_eq!(answer["response"]["suggestions"], json!([{"path": "chosen.txt"}]), "{answer}");
    assert_eq!(session.finish().code, Some(0));
}

#[tokio::test]
async fn command_that_suggests_files_runs_in_the_sandbox_that_it_asks_for() {
    let world = World::new([]).await;
    if !crate::sandbox::has_full(&world) {
        return;
    }
    let script = "cat > /dev/null; touch planted 2> /dev/null; echo chosen-$SANDBOX_RUNTIME.txt";
    let command = |sandbox: Value| {
        json!({"fileSuggestion": {"type": "command", "command": script, "sandbox": sandbox}}).to_string()
    };
    for (sandbox, suggestions) in
        [(json!({}), json!([{"path": "chosen-1.txt"}])), (json!({"network": "everywhere"}), json!([]))]
    {
        let mut session = world.start(&stream(["--settings", &command(sandbox)]));
        let answer = ask(&mut session, "a", json!({"subtype": "file_suggestions", "query": "q"}));
        assert_eq!(answer["response"]["suggestions"], suggestions, "{answer}");
        assert_eq!(session.finish().code, Some(0));
    }
    assert!(!world.home.project().join("planted").exists());
}

#[tokio::test]
async fn get_task_output_reads_what_a_task_has_printed() {
    let call = Step::call("Bash", json!({"command": "echo so far; sleep 60", "run_in_background": true}));
    let world = World::new([call, Step::text("Started.")]).await;
    let mut session = world.start(&stream(["--allowedTools", "Bash"]));
    session.write_json(&user("start"));
    let task = session.wait_for_json(|frame| frame["subtype"] == "task_started")["task_id"].clone();
    session.wait_for_json(is_result);
    let mut output = Value::Null;
    for n in 0..200 {
        let request = json!({"subtype": "get_task_output", "task_id": task});
        output = ask(&mut session, &format!("r{n}"), request)["response"].clone();
        if output["total_bytes"] != 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(output, json!({"output": "so far\n", "total_bytes": 7, "truncated": false}));
    let none = ask(&mut session, "none", json!({"subtype": "get_task_output", "task_id": "x"}));
    assert_eq!(none["subtype"], "error", "{none}");
    ask(&mut session, "stop", json!({"subtype": "stop_task", "task_id": task}));
    assert_eq!(session.finish().code, Some(0));
}

/// What the client has read counts as read, as long as the file is as it was then.
#[tokio::test]
async fn seed_read_state_lets_an_edit_follow_without_a_read() {
    let edit = |from: &str, to: &str| {
        Step::call("Edit", json!({"file_path": "a.txt", "old_string": from, "new_string": to}))
    };
    let world = World::new([edit("one", "two"), Step::text("1"), edit("one", "two"), Step::text("2")]).await;
    world.home.write("a.txt", "one\n");
    let mut session = world.start(&stream(["--permission-mode", "acceptEdits"]));
    say(&mut session, "edit");
    assert_eq!(world.home.read("a.txt"), "one\n", "what nobody read is not changed");
    let changed = world.home.project().join("a.txt").metadata().unwrap().modified().unwrap();
    let changed = changed.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    let seed = json!({"subtype": "seed_read_state", "path": world.path("a.txt"), "mtime": changed});
    assert_eq!(ask(&mut session, "s", seed)["subtype"], "success");
    let nobody = json!({"subtype": "set_has_subscribers", "has_subscribers": null});
    assert_eq!(ask(&mut session, "n", nobody)["subtype"], "success");
    say(&mut session, "edit");
    assert_fine(&session.finish());
    assert_eq!(world.home.read("a.txt"), "two\n");
}
