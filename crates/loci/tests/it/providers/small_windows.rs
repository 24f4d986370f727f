//! Models that can read little: what they are told, when they are compacted, and servers that cut prompts in silence.

use loci_testkit::{Script, Step};
use serde_json::{Value, json};

use super::{ask, configure, entry, main_requests, result_of, second_result, talk};
use crate::support::{World, assert_fine, is_result, loci, user};

fn with_window(world: &World, window: u64) {
    let mut entry = entry(world, "chat");
    entry["models"] = json!({"m": {"window": window, "maxOutput": 2_000}});
    configure(world, json!({"mine": entry}));
}

/// Below 32k a model is told what matters most and offered the tools of a bare run.
#[tokio::test]
async fn small_window_has_a_small_prompt_and_few_tools() {
    let sizes = |window: u64| async move {
        let world = World::new([Step::text("hi")]).await;
        with_window(&world, window);
        let output = world.run(&ask("mine/m"));
        assert_eq!(result_of(&output)["result"], "hi", "{output:?}");
        let request = main_requests(&world)[0].json.clone();
        let system = request["messages"][0]["content"].as_str().unwrap().len();
        (system, request["tools"].as_array().unwrap().len(), output.stderr)
    };
    let (system, n_tools, said) = sizes(16_384).await;
    let (usual_system, n_usual_tools, nothing) = sizes(65_536).await;
    assert!(system < 2_500 && system * 2 < usual_system, "{system} {usual_system}");
    assert!(n_tools * 2 < n_usual_tools, "{n_tools} {n_usual_tools}");
    assert!(said.contains("can read 16384 tokens at once") && !nothing.contains("can read"), "{said}");
}

/// A conversation is compacted before it outgrows a small window.
#[tokio::test]
async fn small_window_is_compacted_in_time() {
    let world = World::new(Script::new([
        Step::text("word ".repeat(4_000)).usage(11_500, 1_500, 0, 0),
        Step::text("<summary>It was long.</summary>"),
        Step::text("after"),
    ]))
    .await;
    with_window(&world, 16_384);
    let result = second_result(&world, &talk("mine/m"), "hello");
    assert_eq!(result["result"], "after", "{result}");
    let last = world.last_request().json.to_string();
    assert!(!last.contains("word word word") && last.contains("It was long."), "{last}");
    let is_boundary = |entry: &&Value| entry["subtype"] == "compact_boundary";
    assert!(world.session().iter().any(|entry| is_boundary(&entry)));
}

/// A server that counts far less than was sent has cut the prompt; that is said once.
#[tokio::test]
async fn prompt_that_was_cut_is_told() {
    for (counted, is_said) in [(2_000, true), (30_000, false)] {
        let world = World::new([Step::text("hi").usage(counted, 5, 0, 0)]).await;
        with_window(&world, 200_000);
        let long = "word ".repeat(20_000);
        let binary = loci().args(["-p", &long, "--model", "mine/m", "--output-format", "json"]);
        let output = world.run(&binary.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", ""));
        assert_eq!(result_of(&output)["result"], "hi", "{output:?}");
        assert_eq!(
            output.stderr.matches("seems to cut prompts").count(),
            usize::from(is_said),
            "{}",
            output.stderr
        );
    }
}

/// 7: a full name is taken by `/model`, and by an agent's definition.
#[tokio::test]
async fn full_name_is_taken_by_the_command_and_by_agents() {
    let other = World::new([Step::text("from the agent"), Step::text("chosen")]).await;
    let call =
        json!({"description": "d", "prompt": "x", "subagent_type": "helper", "run_in_background": false});
    let world = World::new([Step::call("Agent", call), Step::text("ok")]).await;
    configure(&world, json!({"mine": entry(&other, "chat")}));
    let agents =
        json!({"helper": {"description": "d", "prompt": "p", "model": "mine/of-the-agent"}}).to_string();
    let output = world.run(&loci().args(["-p", "go", "--agents", &agents]));
    assert_fine(&output);
    assert_eq!(main_requests(&other)[0].json["model"], "of-the-agent");
    let binary =
        loci().args(["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    let mut session = world.start(&binary);
    session.write_json(&user("/model mine/of-the-command"));
    session.wait_for_json(is_result);
    session.write_json(&user("hello"));
    let result = session.wait_for_json(is_result);
    assert_eq!(result["result"], "chosen", "{result}");
    session.finish();
    assert_eq!(other.last_request().json["model"], "of-the-command");
}
