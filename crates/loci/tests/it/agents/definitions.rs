//! Where agents come from, and which of them counts.

use loci_testkit::{Script, Step};
use serde_json::{Value, json};

use super::{agent, define, has, is_agents};
use crate::hooks::{KEEP, command, configure, kept};
use crate::support::{World, assert_fine, control, is_result, loci, print, stream, user, watched};

fn init(output: &loci_testkit::Output) -> Value {
    output.json_lines().into_iter().find(|it| it["subtype"] == "init").unwrap()
}

#[tokio::test]
async fn agents_of_every_source_are_in_the_init_frame_and_the_tool() {
    let world = World::new([Step::text("ok")]).await;
    define(&world, "near", "", "You are near.");
    world
        .home
        .write_config("agents/mine.md", "---\nname: mine\ndescription: The user's own\n---\nYou are mine.\n");
    world.home.write(".claude/agents/broken.md", "no front matter");
    let given = json!({"flagged": {"description": "Given", "prompt": "You are given."}}).to_string();
    let output = world.run(&watched(["hi", "--agents", &given]));
    assert_fine(&output);
    let names: Vec<Value> = init(&output)["agents"].as_array().unwrap().clone();
    assert_eq!(
        names,
        ["claude", "Explore", "flagged", "general-purpose", "mine", "near", "Plan", "statusline-setup"]
            .map(Value::from)
    );
    let request = world.last_request();
    let tool = request.json["tools"].as_array().unwrap().iter().find(|it| it["name"] == "Agent").unwrap();
    let text = tool["description"].as_str().unwrap();
    for line in ["- near: Does near things (Tools: all)", "- mine: The user's own", "- flagged: Given"] {
        assert!(text.contains(line), "{text}");
    }
    let listed = world.run(&loci().args(["agents", "list"]));
    assert!(
        listed.stdout.contains("near  Does near things")
            && listed.stdout.contains("broken.md`: there is no front matter"),
        "{}",
        listed.stdout
    );
    let shown = world.run(&loci().args(["agents", "show", "near"]));
    assert!(
        shown.stdout.contains("source: project") && shown.stdout.ends_with("You are near.\n"),
        "{}",
        shown.stdout
    );
}

#[tokio::test]
async fn escape_sequences_of_a_definition_do_not_reach_the_terminal() {
    let world = World::new([]).await;
    world.home.write(
        ".claude/agents/odd.md",
        "---\nname: odd\ndescription: Harmless\x1b[2J\ntools: Read\x07\n---\nYou are\x1b]0;odd\x07 odd.\n",
    );
    for words in [&["agents", "list"][..], &["agents", "show", "odd"]] {
        let output = world.run(&loci().args(words.iter().copied()));
        assert!(output.stdout.contains("Harmless"), "{}", output.stdout);
        assert!(!output.stdout.contains(['\x1b', '\x07']), "{:?}", output.stdout);
    }
}

#[tokio::test]
async fn built_in_agents_can_be_switched_off() {
    let world = World::new([Step::text("ok"), Step::text("ok")]).await;
    define(&world, "only", "", "You are alone.");
    let output = world.run(&watched(["hi"]).env("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "1"));
    assert_eq!(init(&output)["agents"], json!(["only"]));
    let output = world.run(
        &watched(["hi", "--disallowedTools", "Agent(only)"])
            .env("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "1"),
    );
    assert_fine(&output);
    assert!(!world.last_request().tool_names().contains(&"Agent"), "nothing is left that could be sent out");
}

#[tokio::test]
async fn main_conversation_runs_as_an_agent() {
    let world = World::new([Step::text("ok"), Step::text("ok"), Step::text("ok")]).await;
    world.home.write("CLAUDE.md", "Be terse.");
    define(
        &world,
        "guide",
        "tools: Read, Agent(helper)\nmodel: haiku\ninitialPrompt: Begin here.\n",
        "You guide.",
    );
    define(&world, "helper", "", "You help.");
    assert_fine(&world.run(&loci().args(["-p", "hi", "--agent", "guide"])));
    let request = world.last_request();
    assert!(request.system_text().contains("You guide.") && !request.system_text().contains("You help."));
    assert!(request.json["model"].as_str().unwrap().contains("haiku"), "{}", request.json["model"]);
    assert_eq!(request.tool_names(), ["Agent", "Read"]);
    assert!(
        request.last_user_text().contains("Be terse.")
            && request.last_user_text().ends_with("Begin here.\n\nhi")
    );
    let tool = request.json["tools"][0]["description"].as_str().unwrap();
    assert!(tool.contains("- helper:") && !tool.contains("- Explore:"), "{tool}");
    world.home.write_config("settings.json", json!({"agent": "guide"}).to_string());
    assert_fine(&world.run(&loci().args(["-p", "hi"])));
    assert!(world.last_request().system_text().contains("You guide."));
    let n_requests = world.requests().len();
    let output = world.run(&loci().args(["-p", "hi", "--agent", "nobody"]));
    assert!(output.stderr.contains("There is no agent `nobody`"), "{}", output.stderr);
    assert_eq!((output.code, world.requests().len()), (Some(1), n_requests), "nothing is asked without it");
    world.home.write_config("settings.json", json!({"agent": "nobody"}).to_string());
    let output = world.run(&loci().args(["-p", "hi"]));
    assert!(output.stderr.contains("so the conversation runs as usual"), "{}", output.stderr);
    assert_eq!(output.code, Some(0));
}

#[tokio::test]
async fn client_brings_agents_and_sees_those_there_are() {
    let script = Script::new([Step::call("Agent", agent("sdk", "x")), Step::text("ok")])
        .route([Step::text("From the client's agent.")], |it| {
            is_agents(it) && has(it, "You come from a client.")
        });
    let world = World::new(script).await;
    let mut session = world.start(&stream([]));
    let agents = json!({"sdk": {"description": "The client's", "prompt": "You come from a client."}});
    session.write_json(&control("r1", json!({"subtype": "initialize", "agents": agents})));
    let answer = session.wait_for_json(|frame| frame["type"] == "control_response");
    let listed = answer["response"]["response"]["agents"].as_array().unwrap().clone();
    assert!(listed.contains(&json!({"name": "sdk", "description": "The client's"})), "{listed:?}");
    session.write_json(&user("go"));
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    assert!(has(&world.last_request(), "From the client's agent."));
}

#[tokio::test]
async fn definition_that_changes_counts_from_the_next_turn() {
    let script = Script::new([Step::text("one"), Step::call("Agent", agent("late", "x")), Step::text("ok")])
        .route([Step::text("Here I am.")], |it| is_agents(it) && has(it, "You came late."));
    let world = World::new(script).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("first"));
    session.wait_for_json(is_result);
    define(&world, "late", "", "You came late.");
    session.write_json(&user("second"));
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    let requests = world.requests();
    let main: Vec<_> = requests.iter().filter(|it| !is_agents(it)).collect();
    assert_eq!(main[0].json["tools"], main[1].json["tools"], "the cached prefix stays");
    assert!(has(main[1], "- late: Does late things"), "the model is told");
    assert!(has(main[2], "Here I am."));
}

#[tokio::test]
async fn agent_keeps_memories_of_its_own() {
    let script = Script::new([Step::call("Agent", agent("keeper", "x")), Step::text("ok")]).route(
        [
            Step::dynamic(|request| {
                let dir = request
                    .system_text()
                    .split("Markdown files in ")
                    .nth(1)
                    .unwrap()
                    .split(". `")
                    .next()
                    .unwrap()
                    .to_owned();
                Step::call(
                    "Write",
                    json!({"file_path": format!("{dir}/MEMORY.md"), "content": "- it builds with make\n"}),
                )
            }),
            Step::text("Kept."),
        ],
        is_agents,
    );
    let world = World::new(script).await;
    define(&world, "keeper", "memory: project\ntools: Grep\n", "You keep.");
    assert_fine(&world.run(&watched(["go"])));
    assert_eq!(world.home.read(".claude/agent-memory/keeper/MEMORY.md"), "- it builds with make\n");
    let world = world
        .then(
            Script::new([Step::call("Agent", agent("keeper", "x")), Step::text("ok")])
                .route([Step::text("ok")], is_agents),
        )
        .await;
    assert_fine(&world.run(&watched(["go"])));
    let asked = world.model.requests().into_iter().find(is_agents).unwrap();
    assert!(asked.system_text().contains("- it builds with make"));
    assert_eq!(asked.tool_names(), ["Edit", "Grep", "Read", "Write"]);
}

#[tokio::test]
async fn agent_begins_with_its_skills_and_what_is_added_for_agents() {
    let script = Script::new([Step::call("Agent", agent("stylist", "x")), Step::text("ok")])
        .route([Step::text("Styled.")], is_agents);
    let world = World::new(script).await;
    world.home.write(".claude/skills/style/SKILL.md", "Write short lines.");
    define(&world, "stylist", "skills: style, gone\n", "You style.");
    let output = world.run(&print(["go", "--append-subagent-system-prompt", "Be kind."]));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("its skill `gone` is not there"), "{}", output.stderr);
    let all = world.model.requests();
    let (of_agent, main): (Vec<_>, Vec<_>) = all.iter().partition(|it| is_agents(it));
    let prompt = of_agent[0].system_text();
    for text in ["You style.", "## style\n\nThis skill lies in ", "\n\nWrite short lines.", "Be kind."] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    assert!(!main[0].system_text().contains("Be kind."));
}

#[tokio::test]
async fn hooks_of_a_session_that_runs_as_an_agent_are_told_its_type() {
    let world = World::new([Step::text("ok")]).await;
    define(&world, "guide", "", "You guide.");
    configure(&world, json!({"UserPromptSubmit": command("", KEEP)}));
    assert_fine(&world.run(&print(["hi", "--agent", "guide"])));
    let told = &kept(&world, "kept.jsonl")[0];
    assert_eq!((&told["agent_type"], told.get("agent_id")), (&json!("guide"), None));
}

/// A family means the newest of its models that may be chosen; whatever else may not be is the conversation's model.
#[tokio::test]
async fn only_models_of_the_list_can_be_chosen_for_agents() {
    for (asked, expected) in [("opus", "claude-opus-4-6"), ("claude-opus-5", crate::support::MODEL)] {
        let mut call = agent("general-purpose", "x");
        call["model"] = json!(asked);
        let script =
            Script::new([Step::call("Agent", call), Step::text("ok")]).route([Step::text("Yes.")], is_agents);
        let world = World::new(script).await;
        let listed =
            json!({"availableModels": ["claude-sonnet-4-5", "claude-opus-4-6", crate::support::MODEL]});
        world.home.write_config("settings.json", listed.to_string());
        let output = world.run(&print(["go"]));
        assert_eq!(output.code, Some(0), "{output:?}");
        let request = world.model.requests().into_iter().find(is_agents).unwrap();
        assert_eq!(request.json["model"], expected, "{asked}");
        assert!(output.stderr.contains("may not be used here"), "{asked}: {output:?}");
    }
}

/// Who brings agents of their own may have no others; a person at a terminal keeps the built-in ones.
#[tokio::test]
async fn built_in_agents_stay_at_a_terminal() {
    let world = World::new([Step::text("Hi.")]).await;
    let variables = [("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "1")];
    let mut screen = world.start_interface_with(["hello"], &variables, (100, 30));
    screen.wait_for("Hi.");
    screen.type_text("/exit\r");
    assert!(screen.finish().is_cooked);
    let request = world.last_request();
    for kind in ["general-purpose", "Explore", "claude-code-guide", "fork"] {
        assert!(has(&request, &format!("- {kind}: ")), "{kind}");
    }
    let headless = World::new([Step::text("Hi.")]).await;
    assert_fine(&headless.run(&watched(["hello"]).env(variables[0].0, variables[0].1)));
    assert!(!has(&headless.last_request(), "- general-purpose: "));
}
