//! Sessions: several at once, those that go on, their list, their end.

use super::client::{Editor, acp, choosing};
use crate::support::{Pipe, World, loci};
use loci_testkit::{Gate, Script, Step};
use serde_json::{Value, json};

#[tokio::test]
async fn initialize_tells_what_the_agent_can_do() {
    let world = World::new([Step::text("never")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let newest = json!({"protocolVersion": 9, "clientCapabilities": {"auth": {"terminal": true}}});
    let answer = editor.call("initialize", &newest);
    assert_eq!(answer["protocolVersion"], 1, "the newest version that both may speak is ours");
    let capabilities = &answer["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(
        capabilities["promptCapabilities"],
        json!({"image": true, "audio": false, "embeddedContext": true})
    );
    assert_eq!(capabilities["mcpCapabilities"], json!({"http": true, "sse": true}));
    for name in ["list", "delete", "additionalDirectories", "resume", "close"] {
        assert!(capabilities["sessionCapabilities"][name].is_object(), "{name}");
    }
    assert_eq!(answer["agentInfo"]["name"], "loci");
    assert_eq!(answer["authMethods"][0]["args"], json!(["--login"]));
    editor.leave();
}

#[tokio::test]
async fn session_without_a_key_needs_a_login_and_logout_forgets_it() {
    let world = World::new([Step::text("Hi.")]).await;
    let binary = acp([]).env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", "");
    let mut editor = Editor::start_binary(&world, &binary, &json!({}));
    let new = json!({"cwd": world.home.project(), "mcpServers": []});
    assert_eq!(editor.refused("session/new", &new), -32000);
    assert_eq!(editor.refused("authenticate", &json!({"methodId": "api-key"})), -32000);
    assert_eq!(editor.refused("authenticate", &json!({"methodId": "terminal-login"})), -32602);
    let login = world.run_with_stdin(&loci().args(["acp", "--login"]), "sk-ant-test\n");
    assert_eq!(login.code, Some(0), "{login:?}");
    assert_eq!(editor.call("authenticate", &json!({"methodId": "api-key"})), json!({}));
    assert!(editor.call("session/new", &new)["sessionId"].is_string());
    assert_eq!(editor.call("logout", &json!({})), json!({}));
    assert_eq!(editor.refused("session/new", &new), -32000);
    editor.leave();
}

#[tokio::test]
async fn loaded_session_is_told_again_and_a_resumed_one_is_not() {
    let first = Step::text("Let me see.").tool("Read", json!({"file_path": "a.txt"}));
    let world = World::new([first, Step::text("It says hi.")]).await;
    world.home.write("a.txt", "hi\n");
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "What does a.txt say?"), "end_turn");
    editor.leave();
    let world = world.then([Step::text("Nothing."), Step::text("Still nothing.")]).await;
    let params = json!({"sessionId": session, "cwd": world.home.project(), "mcpServers": []});
    let kinds = |updates: &[Value]| -> Vec<String> {
        let kinds = updates.iter().map(|it| it["sessionUpdate"].as_str().unwrap().to_owned());
        kinds.filter(|kind| !kind.contains("available_commands")).collect()
    };
    let mut editor = Editor::start(&world, [], &json!({}));
    let loaded = editor.call("session/load", &params);
    assert_eq!(loaded["modes"]["currentModeId"], "default");
    assert_eq!(
        kinds(&editor.updates(&session)),
        ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
    );
    assert_eq!(editor.updates(&session)[0]["content"]["text"], "What does a.txt say?");
    assert_eq!(editor.prompt(&session, "And else?"), "end_turn");
    // One that is open already ends first.
    editor.log.clear();
    editor.call("session/resume", &params);
    assert_eq!(kinds(&editor.updates(&session)), Vec::<String>::new());
    assert_eq!(editor.prompt(&session, "And now?"), "end_turn");
    editor.leave();
    assert!(world.conversation().contains("What does a.txt say?"), "{}", world.conversation());
    assert_eq!(world.home.sessions().len(), 1);
}

#[tokio::test]
async fn sessions_are_listed_by_pages_and_directory_and_deleted_ones_are_not() {
    let world = World::new(Script::repeat(Step::text("Hi."), 4)).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let ids: Vec<String> = (0..2)
        .map(|n| {
            let session = editor.new_session(&world);
            editor.prompt(&session, &format!("Prompt {n}"));
            session
        })
        .collect();
    let here = json!({"cwd": world.home.project()});
    let listed = editor.call("session/list", &here);
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "{listed}");
    let newest = sessions.iter().find(|it| it["sessionId"] == json!(ids[1])).unwrap();
    assert_eq!(newest["cwd"], json!(world.home.project()));
    assert_eq!(newest["title"], "Prompt 1");
    assert!(newest["updatedAt"].as_str().unwrap().ends_with('Z'));
    assert!(listed.get("nextCursor").is_none());
    assert_eq!(editor.call("session/list", &json!({}))["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(editor.call("session/list", &json!({"cwd": "/nowhere"}))["sessions"], json!([]));
    assert_eq!(editor.refused("session/list", &json!({"cursor": "made up"})), -32602);
    assert_eq!(editor.refused("session/list", &json!({"cwd": "relative"})), -32602);
    // An open session ends before it goes.
    for id in [ids[0].as_str(), ids[0].as_str(), "no such session"] {
        assert_eq!(editor.call("session/delete", &json!({"sessionId": id})), json!({}), "{id}");
    }
    let left = editor.call("session/list", &here);
    assert_eq!(left["sessions"].as_array().unwrap().len(), 1, "{left}");
    assert_eq!(
        editor.refused(
            "session/load",
            &json!({"sessionId": ids[0], "cwd": world.home.project(), "mcpServers": []})
        ),
        -32002
    );
    editor.leave();
    let back = world.run(&loci().args(["sessions", "rm", "--restore", &ids[0]]));
    assert_eq!(back.code, Some(0), "{back:?}");
}

#[tokio::test]
async fn long_list_of_sessions_comes_in_pages() {
    let world = World::new([Step::text("never")]).await;
    let line = |id: &str, n: usize| {
        json!({"type": "user", "uuid": format!("u{n}"), "parentUuid": null, "sessionId": id, "cwd": world.home.project(),
            "timestamp": format!("2026-01-01T00:00:{:02}.000Z", n % 60), "message": {"role": "user", "content": format!("P{n}")}})
    };
    for n in 0..60 {
        let id = format!("00000000-0000-4000-8000-{n:012}");
        world.home.write_config(format!("projects/-p/{id}.jsonl"), format!("{}\n", line(&id, n)));
    }
    let mut editor = Editor::start(&world, [], &json!({}));
    let first = editor.call("session/list", &json!({}));
    let second = editor.call("session/list", &json!({"cursor": first["nextCursor"]}));
    let ids = |page: &Value| -> Vec<Value> {
        page["sessions"].as_array().unwrap().iter().map(|it| it["sessionId"].clone()).collect()
    };
    assert_eq!((ids(&first).len(), ids(&second).len()), (50, 10));
    assert!(ids(&first).iter().all(|id| !ids(&second).contains(id)));
    assert!(second.get("nextCursor").is_none());
    editor.leave();
}

#[tokio::test]
async fn two_sessions_work_at_once() {
    let gate = Gate::new();
    let world = World::new(
        Script::new([])
            .answer_when(Step::text("Slow.").wait_before_headers(gate.clone()), |request| {
                request.json.to_string().contains("slow one")
            })
            .answer_when(Step::text("Fast."), |request| request.json.to_string().contains("fast one")),
    )
    .await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let (slow, fast) = (editor.new_session(&world), editor.new_session(&world));
    let waiting = editor.send_prompt(&slow, "slow one");
    gate.reached().await;
    assert_eq!(editor.prompt(&fast, "fast one"), "end_turn");
    assert_eq!((editor.said(&slow), editor.said(&fast)), (String::new(), "Fast.".to_owned()));
    gate.release();
    assert_eq!(editor.answer_to(waiting)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.said(&slow), "Slow.");
    editor.leave();
    assert_eq!(world.home.sessions().len(), 2);
}

#[tokio::test]
async fn closed_session_answers_its_prompt_and_is_gone() {
    let world = World::new([Step::call("Bash", json!({"command": "touch a"})), Step::text("never")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    let prompt = editor.send_prompt(&session, "Make it");
    editor.asked("session/request_permission");
    let close = editor.send("session/close", &json!({"sessionId": session}));
    assert_eq!(editor.answer_to(prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.answer_to(close)["result"], json!({}));
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]});
    assert_eq!(editor.refused("session/prompt", &params), -32002);
    assert_eq!(editor.refused("session/close", &json!({"sessionId": session})), -32002);
    editor.leave();
    world.session();
}

#[tokio::test]
async fn cleared_conversation_goes_on_under_the_same_id() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut editor = Editor::start(&world, [], &json!({}));
    let session = editor.new_session(&world);
    assert_eq!(editor.prompt(&session, "first words"), "end_turn");
    assert_eq!(editor.prompt(&session, "/clear"), "end_turn");
    assert_eq!(editor.prompt(&session, "second"), "end_turn");
    assert_eq!(editor.said(&session).matches("Two.").count(), 1);
    editor.leave();
    assert!(!world.conversation().contains("first words"), "{}", world.conversation());
}

#[tokio::test]
async fn editor_that_vanishes_ends_sessions_and_their_transcripts_are_whole() {
    let world = World::new([Step::call("Bash", json!({"command": "cat in"})), Step::text("never")]).await;
    let pipe = Pipe::new(&world.home, "in");
    let mut editor = Editor::start(&world, [], &json!({})).answering(choosing("allow_once"));
    let session = editor.new_session(&world);
    editor.send_prompt(&session, "Wait");
    let held = pipe.reader_came();
    let output = editor.leave();
    drop(held);
    assert_eq!(output.stderr, "", "{output:?}");
    world.session();
}

#[tokio::test]
async fn signals_end_the_agent_with_their_codes() {
    use rustix::process::Signal;
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 0)] {
        let world =
            World::new([Step::call("Bash", json!({"command": "touch a"})), Step::text("never")]).await;
        let mut editor = Editor::start(&world, [], &json!({}));
        let session = editor.new_session(&world);
        editor.send_prompt(&session, "Make it");
        editor.asked("session/request_permission");
        editor.agent().signal(signal);
        while editor.agent().next_line().is_some() {}
        let output = editor.into_agent().finish();
        assert_eq!(output.code, Some(code), "{signal:?}: {output:?}");
        world.session();
    }
}

#[tokio::test]
async fn folder_that_nobody_trusted_has_no_say_and_the_person_is_told() {
    let rules = json!({"permissions": {"allow": ["Bash(touch *)"]}, "hooks": {"SessionStart": [{"hooks": [
        {"type": "command", "command": "touch hooked"}]}]}});
    for has_notices in [false, true] {
        let world =
            World::new([Step::call("Bash", json!({"command": "touch made"})), Step::text("Done.")]).await;
        world.home.write(".claude/settings.json", rules.to_string());
        let capabilities = if has_notices { json!({"session": {"notices": {}}}) } else { json!({}) };
        let mut editor = Editor::start(&world, [], &capabilities).answering(choosing("reject_once"));
        let session = editor.new_session(&world);
        assert_eq!(editor.prompt(&session, "Make it"), "end_turn");
        let notices = editor.updates_of(&session, "notice");
        let told = if has_notices { json!(notices).to_string() } else { editor.said(&session) };
        assert!(told.contains("trust"), "{told}");
        assert_eq!(!notices.is_empty(), has_notices);
        let output = editor.leave();
        assert!(output.stderr.contains("trust"), "{output:?}");
        for name in ["made", "hooked"] {
            assert!(!world.home.project().join(name).exists(), "{name}");
        }
    }
}
