//! Forks share the cached prefix byte for byte.

use loci_testkit::{Gate, Recorded, Script, Step};
use serde_json::{Value, json};

use super::{agent, has, in_background, is_agents, main_session, results, side_files, wait_until};
use crate::support::{World, assert_fine, is_result, stream, user, watched};

/// Returns a part of a request's body without the marks of what is to be cached, which move along.
fn unmarked(value: &Value) -> String {
    let mut value = value.clone();
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value.to_string()
}

fn is_fork(request: &Recorded) -> bool {
    String::from_utf8_lossy(&request.body).contains("This conversation was forked here")
}

/// What a fork is answered first; which of two asks first is not known.
fn way() -> Step {
    Step::dynamic(|request| match request.last_user_text().contains("Go left.") {
        true => Step::call("Agent", agent("fork", "Further.")),
        false => Step::text("Right was found."),
    })
}

/// A fork whose own part grows too long is compacted; what it goes on from stays, byte for byte, and its calls answered.
#[tokio::test]
async fn fork_that_is_compacted_still_begins_with_the_bytes_of_the_conversation() {
    let reading =
        |tokens: u64| Step::call("Read", json!({"file_path": "notes.txt"})).usage(10, 20, tokens - 30, 0);
    let summary = "<analysis>x</analysis>\n<summary>The notes say 9000.</summary>";
    let script = Script::new([
        Step::call("Glob", json!({"pattern": "*"})),
        Step::new().then_text("Look.").tool("Agent", agent("fork", "Read a lot.")),
        Step::text("It is on its way."),
        Step::text("It came back."),
    ])
    .route([Step::text(summary)], |it| is_fork(it) && it.last_user_text().contains("<summary>"))
    .route([reading(30_000), reading(67_500), Step::text("It is 9000.")], is_fork);
    let world = World::new(script).await;
    world.home.write("notes.txt", "port=9000\n");
    let run = watched(["Which port?"]).env("CLAUDE_CODE_FORK_SUBAGENT", "1");
    let output = world.run(&run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    assert_fine(&output);
    world.model.requests_valid().unwrap();
    let requests = world.model.requests();
    let parent = requests.iter().filter(|it| !is_fork(it)).nth(1).unwrap();
    let last =
        requests.iter().rfind(|it| it.json["messages"].to_string().contains("The notes say 9000.")).unwrap();
    for part in ["system", "tools", "model"] {
        assert_eq!(unmarked(&last.json[part]), unmarked(&parent.json[part]), "{part}");
    }
    let shared = parent.messages().len();
    assert_eq!(unmarked(&json!(last.messages()[..shared])), unmarked(&json!(parent.messages())));
    let side = world.home.read_session(&side_files(&world)[0]);
    assert!(side.iter().any(|it| it["subtype"] == "compact_boundary"), "{side:?}");
    let told = requests.iter().rfind(|it| !is_fork(it)).unwrap().last_user_text();
    assert!(told.contains("It is 9000."), "{told}");
}

#[tokio::test]
async fn fork_begins_with_the_bytes_of_the_conversation() {
    let script = Script::new([
        Step::call("Glob", json!({"pattern": "*"})),
        Step::new()
            .then_text("Two ways.")
            .tool("Agent", agent("fork", "Go left."))
            .tool("Agent", agent("fork", "Go right.")),
        Step::text("On their way."),
        Step::text("One came back."),
        Step::text("Both came back."),
    ])
    .route([way(), way(), Step::text("Left was found.")], is_fork);
    let world = World::new(script).await;
    let output = world.run(&watched(["Which way?"]).env("CLAUDE_CODE_FORK_SUBAGENT", "1"));
    assert_fine(&output);
    let requests = world.model.main_requests();
    world.model.requests_valid().unwrap();
    let parent = requests.iter().filter(|it| !is_fork(it)).nth(1).unwrap();
    let forks: Vec<&Recorded> = requests.iter().filter(|it| is_fork(it)).collect();
    assert!(forks.len() >= 3, "{}", forks.len());
    for fork in &forks {
        for part in ["system", "tools", "model", "max_tokens", "thinking", "metadata"] {
            assert_eq!(unmarked(&fork.json[part]), unmarked(&parent.json[part]), "{part}");
        }
        let shared = parent.messages().len();
        let (ours, theirs) =
            (unmarked(&json!(fork.messages()[..shared])), unmarked(&json!(parent.messages())));
        assert_eq!(ours, theirs);
        // The bytes themselves: everything before the first message that differs, up to the marks.
        let text = |request: &Recorded| String::from_utf8_lossy(&request.body).into_owned();
        let (ours, theirs) = (text(fork), text(parent));
        let common = ours.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count();
        let marked = theirs.find("\"messages\"").unwrap();
        assert!(common > marked, "they part at byte {common}, before the messages at {marked}");
    }
    let told = requests.iter().rfind(|it| !is_fork(it)).unwrap();
    assert!(has(told, "Right was found.") && has(told, "Left was found."), "{}", told.last_user_text());
    assert_eq!(side_files(&world).len(), 2, "a fork does not fork");
    assert!(main_session(&world).iter().any(|it| it.to_string().contains("agentType\":\"fork")));
}

/// Where forks can be sent out, the model has no say in whether an agent works in the background, forks or not; what is
/// denied is not forked, and where nothing works in the background the agents are waited for.
#[tokio::test]
async fn agents_work_in_the_background_where_forks_can_be_sent_out() {
    let mut waited_for = agent("general-purpose", "Look.");
    waited_for["run_in_background"] = json!(false);
    let script = |call: &Value| {
        let steps = [Step::call("Agent", call.clone()), Step::text("On."), Step::text("Heard.")];
        Script::new(steps).route([Step::text("Found.")], is_agents)
    };
    let plain = agent("general-purpose", "Look.");
    let tried = |variables: &'static [(&str, &str)], args: &'static [&str], call: Value| async move {
        let world = World::new(script(&call)).await;
        let run = watched(["go"]).args(args.to_vec());
        let run = variables.iter().fold(run, |run, (name, value)| run.env(name, *value));
        assert_fine(&world.run(&run));
        let requests = world.model.main_requests();
        results(requests.iter().filter(|it| !is_agents(it)).nth(1).unwrap())
    };
    let on = &[("CLAUDE_CODE_FORK_SUBAGENT", "1"), ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "")][..];
    let off = &[("CLAUDE_CODE_FORK_SUBAGENT", "1"), ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")][..];
    let told = tried(on, &[], waited_for).await;
    assert!(told.contains("Async agent launched"), "{told}");
    let told = tried(off, &[], plain.clone()).await;
    assert!(told.contains("Found."), "{told}");
    let told = tried(on, &["--disallowedTools", "Agent(fork)"], agent("fork", "x")).await;
    assert!(told.contains("Forks are switched off here") || told.contains("not granted"), "{told}");
    let told = tried(on, &["--disallowedTools", "Agent(fork)"], plain).await;
    assert!(told.contains("Async agent launched"), "fork mode itself stays on: {told}");
}

/// A fork that was cut off goes on with the very bytes that it went on from, and one that only looks goes on, too, as long
/// as it has not answered.
#[tokio::test]
async fn fork_and_looking_agent_that_were_cut_off_go_on_after_a_restart() {
    let gate = Gate::new();
    let never = || Step::text("never").wait_before_headers(gate.clone());
    let works = || Step::call("Glob", json!({"pattern": "*"}));
    let calls = Step::new()
        .then_text("Two ways.")
        .tool("Agent", in_background("fork", "Go left."))
        .tool("Agent", in_background("Explore", "Look right."));
    let script =
        Script::new([calls, never()]).route([works(), never()], is_fork).route([works(), never()], is_agents);
    let world = World::new(script).await;
    let run = |args: &[&str]| watched([]).args(args.to_vec()).env("CLAUDE_CODE_FORK_SUBAGENT", "1");
    let session = world.start_closed(&run(&["Which way?"]));
    wait_until(|| world.model.requests().len() == 6, "everybody waits");
    let before = world.model.requests().into_iter().find(is_fork).unwrap();
    session.crash();
    let goes_on = Step::dynamic(|request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let ids = body.split("\\n- a").skip(1).filter_map(|rest| rest.split(':').next());
        ids.fold(Step::new(), |step, id| {
            step.tool("SendMessage", json!({"to": format!("a{id}"), "message": "Go on."}))
        })
    });
    let script = Script::new([goes_on, Step::text("Sent."), Step::text("Heard."), Step::text("Heard.")])
        .route([Step::text("Left is done.")], is_fork)
        .route([Step::text("Right is done.")], is_agents);
    let world = world.then(script).await;
    assert_fine(&world.run(&run(&["-c", "What happened?"])));
    world.model.requests_valid().unwrap();
    let after = world.model.requests().into_iter().find(is_fork).unwrap();
    for part in ["system", "tools", "model"] {
        assert_eq!(unmarked(&after.json[part]), unmarked(&before.json[part]), "{part}");
    }
    let shared = before.messages().len();
    assert_eq!(unmarked(&json!(after.messages()[..shared])), unmarked(&json!(before.messages())));
    assert!(has(&after, "Go on."), "and it hears the message");
    let said = |text: &str| {
        side_files(&world).iter().filter(|file| std::fs::read_to_string(file).unwrap().contains(text)).count()
    };
    assert_eq!((said("Left is done."), said("Right is done.")), (1, 1));
}

/// Lets whoever was cut off go on: a message to each agent that the conversation is told of.
fn messages_to_the_lost() -> Step {
    Step::dynamic(|request| {
        let told = request.last_user_text();
        let ids = told.split("\n- a").skip(1).filter_map(|rest| rest.split(':').next());
        ids.fold(Step::new(), |step, id| {
            step.tool("SendMessage", json!({"to": format!("a{id}"), "message": "Go on."}))
        })
    })
}

/// A fork that a person sent out goes on after a kill with the very bytes that it went on from, also where the
/// conversation was made shorter since.
#[tokio::test]
async fn side_task_goes_on_after_a_restart_with_the_bytes_that_it_went_on_from() {
    for is_compacted in [false, true] {
        let gate = Gate::new();
        let works = || Step::call("Glob", json!({"pattern": "*"}));
        let summary = Step::text("<analysis>x</analysis>\n<summary>A port was named.</summary>");
        let script = Script::new([works(), Step::text("The port is 7007."), summary])
            .route([works(), Step::text("never").wait_before_headers(gate.clone())], is_agents);
        let world = World::new(script).await;
        world.home.write("CLAUDE.md", "Ports are numbers.\n");
        let mut session = world.start(&stream([]));
        session.write_json(&user("remember the port"));
        session.wait_for_json(is_result);
        session.write_json(&user("/subtask look for other callers"));
        session.wait_for_json(is_result);
        let forked = || world.model.requests().into_iter().filter(is_agents).collect::<Vec<_>>();
        wait_until(|| forked().len() == 2, "the fork waits");
        if is_compacted {
            session.write_json(&user("/compact"));
            session.wait_for_json(is_result);
        }
        let before = forked().remove(0);
        session.crash();
        let script = Script::new([messages_to_the_lost(), Step::text("Sent."), Step::text("Heard.")])
            .route([Step::text("No other callers.")], is_agents);
        let world = world.then(script).await;
        assert_fine(&world.run(&watched(["-c", "What happened?"])));
        world.model.requests_valid().unwrap();
        let after = world.model.requests().into_iter().find(is_agents).unwrap();
        for part in ["system", "tools", "model"] {
            assert_eq!(unmarked(&after.json[part]), unmarked(&before.json[part]), "{part}");
        }
        let shared = before.messages().len();
        assert!(has(&before, "The port is 7007.") && has(&before, "Ports are numbers."));
        assert_eq!(unmarked(&json!(after.messages()[..shared])), unmarked(&json!(before.messages())));
        assert!(has(&after, "Go on."), "and it hears the message");
        assert!(main_session(&world).iter().any(|it| it.to_string().contains("No other callers.")));
    }
}
