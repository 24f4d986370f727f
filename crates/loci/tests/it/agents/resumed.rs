//! Agents that go on: by a message, after a restart, after a crash.

use loci_testkit::{Gate, Script, Step};
use serde_json::{Value, json};

use super::{agent, has, in_background, is_agents, main_session, many, results, side_files, wait_until};
use crate::support::{World, assert_fine, is_result, stream, user, watched};

/// A step that sends a message to the agent whose id an earlier result has.
fn message(text: &'static str) -> Step {
    Step::dynamic(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let id = body.split("agentId: ").nth(1).unwrap().split([' ', '\\', '\n']).next().unwrap().to_owned();
        Step::call("SendMessage", json!({"to": id, "message": text}))
    })
}

#[tokio::test]
async fn message_lets_an_agent_go_on_with_all_it_knows() {
    let script = Script::new([
        Step::call("Agent", agent("general-purpose", "First.")),
        message("And then?"),
        Step::text("Waiting."),
        Step::text("All heard."),
    ])
    .route([Step::text("One."), Step::text("Two.")], is_agents);
    let world = World::new(script).await;
    assert_fine(&world.run(&watched(["go"])));
    let asked: Vec<_> = world.model.requests().into_iter().filter(is_agents).collect();
    assert_eq!(asked.len(), 2);
    assert!(
        has(&asked[1], "First.")
            && has(&asked[1], "One.")
            && asked[1].last_user_text().ends_with("And then?")
    );
    assert_eq!(side_files(&world).len(), 1, "one file, the history goes on");
    let main = main_session(&world);
    assert!(
        main.iter().any(|it| it["origin"]["kind"] == "task-notification"
            && it.to_string().contains("<result>Two.</result>"))
    );
}

#[tokio::test]
async fn message_lets_an_agent_go_on_after_a_restart() {
    let script = Script::new([Step::call("Agent", agent("general-purpose", "First.")), Step::text("ok")])
        .route([Step::text("One.")], is_agents);
    let world = World::new(script).await;
    assert_fine(&world.run(&watched(["go"])));
    let script = Script::new([message("And then?"), Step::text("Waiting."), Step::text("All heard.")])
        .route([Step::text("Two.")], is_agents);
    let world = world.then(script).await;
    let output = world.run(&watched(["-c", "again"]));
    assert_fine(&output);
    let asked = world.model.requests().into_iter().find(is_agents).unwrap();
    assert!(has(&asked, "First.") && has(&asked, "One."));
    assert_eq!(output.json_lines().iter().rfind(|it| is_result(it)).unwrap()["result"], "All heard.");
    let side = world.home.read_session(&side_files(&world)[0]);
    let texts: Vec<String> = side.iter().map(|it| it["message"]["content"].to_string()).collect();
    assert_eq!(side.len(), 4, "{texts:?}");
    assert!(side.windows(2).all(|pair| pair[1]["parentUuid"] == pair[0]["uuid"]), "one chain");
}

#[tokio::test]
async fn message_to_a_running_agent_comes_before_its_next_request() {
    let gate = Gate::new();
    let script = Script::new([
        Step::call("Agent", in_background("general-purpose", "First.")),
        message("By the way."),
        Step::text("Sent."),
        Step::text("All heard."),
    ])
    .route(
        [
            Step::call("Glob", json!({"pattern": "*"})).wait_before_headers(gate.clone()),
            Step::text("Understood."),
        ],
        is_agents,
    );
    let world = World::new(script).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("go"));
    session.wait_for_json(is_result);
    gate.release();
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    let asked: Vec<_> = world.model.requests().into_iter().filter(is_agents).collect();
    assert!(has(&asked[1], "this message came from the conversation that sent you out:\\nBy the way."));
}

#[tokio::test]
async fn looking_agents_and_unknown_ones_do_not_go_on() {
    let script = Script::new([Step::call("Agent", agent("Explore", "x")), Step::text("ok")])
        .route([Step::text("One.")], is_agents);
    let world = World::new(script).await;
    assert_fine(&world.run(&watched(["go"])));
    let told = results(world.requests().iter().rfind(|it| !is_agents(it)).unwrap());
    assert!(told.contains("One.") && !told.contains("agentId"), "{told}");
    let path = side_files(&world).remove(0);
    let file = path.file_stem().unwrap().to_string_lossy().into_owned();
    let explore = file.trim_start_matches("agent-").to_owned();
    // What takes memories out of a conversation keeps a transcript there, too.
    std::fs::copy(&path, path.with_file_name("agent-memories.jsonl")).unwrap();
    let meta = r#"{"agentType": "memory-extraction"}"#;
    std::fs::write(path.with_file_name("agent-memories.meta.json"), meta).unwrap();
    let mut world = world;
    for (id, expected) in
        [(explore.as_str(), "cannot go on after it has answered"), ("a0", "There is no agent `a0`")]
    {
        let send = Step::call("SendMessage", json!({"to": id, "message": "More."}));
        world = world.then([send, Step::text("ok")]).await;
        assert_fine(&world.run(&watched(["-c", "on"])));
        let told = results(world.requests().iter().rfind(|it| !is_agents(it)).unwrap());
        assert!(told.contains(expected) && !told.contains("memory-extraction"), "{told}");
    }
}

/// What the call restricted stays so when the agent goes on.
#[tokio::test]
async fn mode_of_a_call_holds_when_its_agent_goes_on() {
    let mut call = agent("general-purpose", "First.");
    call["mode"] = json!("dontAsk");
    let write = Step::call("Write", json!({"file_path": "made.txt", "content": "x"}));
    let script = Script::new([
        Step::call("Agent", call),
        message("Write it."),
        Step::text("Waiting."),
        Step::text("All heard."),
    ])
    .route([Step::text("One."), write, Step::text("I could not.")], is_agents);
    let world = World::new(script).await;
    assert_fine(&world.run(&watched(["go"])));
    let asked: Vec<_> = world.model.requests().into_iter().filter(is_agents).collect();
    assert_eq!(asked.len(), 3);
    assert!(results(&asked[2]).contains("dontAsk"), "{}", results(&asked[2]));
}

#[tokio::test]
async fn session_that_goes_on_knows_who_had_answered_and_who_was_cut_off() {
    let gate = Gate::new();
    let calls = Step::call("Agent", in_background("general-purpose", "Be quick."))
        .tool("Agent", in_background("general-purpose", "Be slow."));
    let never = || Step::text("never").wait_before_headers(gate.clone());
    // The end of the first is not told before the kill: the conversation waits for its model.
    let script = Script::new([calls, never()])
        .route([Step::text("The answer is 42.")], |it| is_agents(it) && has(it, "Be quick."))
        .route([Step::call("Glob", json!({"pattern": "*"})), never()], is_agents);
    let world = World::new(script).await;
    let session = world.start_closed(&watched(["go"]));
    let is_written = |text: &str| {
        side_files(&world).iter().any(|file| std::fs::read_to_string(file).unwrap().contains(text))
    };
    wait_until(|| is_written("The answer is 42."), "the first has answered");
    wait_until(|| world.model.requests().len() == 5, "everybody else waits");
    session.crash();
    let world = world.then([Step::text("I see.")]).await;
    let output = world.run(&watched(["-c", "what happened?"]));
    assert_eq!(output.code, Some(0));
    let frames = output.json_lines();
    let ended = frames.iter().filter(|it| it["subtype"] == "task_notification");
    let ended: Vec<(&str, bool)> = ended
        .map(|it| (it["status"].as_str().unwrap(), it["summary"].to_string().contains("The answer is 42.")))
        .collect();
    assert_eq!(ended, [("completed", true), ("stopped", false)], "clients hear of both before anything else");
    assert_eq!(frames[2]["subtype"], "init");
    let told = world.last_request();
    assert!(has(&told, "It had answered; what it returned is data:\\n<result>The answer is 42.</result>"));
    assert!(has(&told, "It was cut off; SendMessage with its id lets it go on."));
}

/// kill -9 with ten agents at work, some waited for and some not: every line of every transcript is whole, and the
/// session that goes on knows each of them.
#[tokio::test]
async fn crash_with_ten_agents_loses_no_line_and_each_can_go_on() {
    let gate = Gate::new();
    let half = |step: Step| step.wait_before_headers(gate.clone());
    let calls = (0..5).fold(many(5, &in_background("general-purpose", "Work.")), |step, _| {
        step.tool("Agent", agent("general-purpose", "Work."))
    });
    let works = Step::call("Glob", json!({"pattern": "*"}));
    let script = Script::new([calls])
        .route(Script::repeat(half(Step::text("never")), 10), |it| {
            is_agents(it) && it.n_assistant_turns() == 1
        })
        .route(Script::repeat(works, 10), is_agents);
    let world = World::new(script).await;
    let session = world.start_closed(&watched(["go"]));
    let n_second =
        || world.model.requests().iter().filter(|it| is_agents(it) && it.n_assistant_turns() == 1).count();
    wait_until(|| n_second() == 10, "all ten are in the middle of their work");
    session.crash();
    let files = side_files(&world);
    assert_eq!(files.len(), 10);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.ends_with('\n'));
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // The task, the call, its result: all that was acknowledged.
        assert_eq!(lines.len(), 3, "{file:?}");
    }
    let goes_on = Step::dynamic(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let ids: Vec<&str> = body.split("\\n- a").skip(1).filter_map(|rest| rest.split(':').next()).collect();
        let ids: std::collections::BTreeSet<String> = ids.into_iter().map(|id| format!("a{id}")).collect();
        ids.iter()
            .fold(Step::new(), |step, id| step.tool("SendMessage", json!({"to": id, "message": "Go on."})))
    });
    let script = Script::new([goes_on, Step::text("Sent.")])
        .route(Script::repeat(Step::text("Done at last."), 10), is_agents);
    let world = world.then(script).await;
    let output = world.run(&watched(["-c", "what happened?"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    let first = world.model.main_requests().into_iter().find(|it| !is_agents(it)).unwrap();
    let n_told =
        String::from_utf8_lossy(&first.body).matches("It was cut off; SendMessage with its id").count();
    assert_eq!(n_told, 10);
    let answered = side_files(&world)
        .iter()
        .filter(|file| std::fs::read_to_string(file).unwrap().contains("Done at last."))
        .count();
    assert_eq!(answered, 10, "each went on");
    world.model.requests_valid().unwrap();
}
