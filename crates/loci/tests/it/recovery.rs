//! Answers that stop short, and the limits a user sets.

use crate::support::{World, assert_fine, is_result, shape, stream, user, watched};
use expect_test::{Expect, expect};
use loci_testkit::{Script, Step};
use serde_json::{Value, json};

/// Runs one prompt and renders the frames, what was sent last, and the file.
async fn check(script: impl Into<Script>, frames: Expect, conversation: Expect) -> World {
    let world = World::new(script).await;
    let output = world.run(&watched(["hi", "--allowedTools", "Bash"]));
    let seen = format!("{}exit {}\n{}", shape(&output.json_lines()), output.code.unwrap(), output.stderr);
    frames.assert_eq(&world.normaliser().text(&seen));
    conversation.assert_eq(&world.conversation());
    world.session();
    world
}

fn limits(world: &World) -> Vec<Value> {
    world.requests().iter().map(|it| it.json["max_tokens"].clone()).collect()
}

#[tokio::test]
async fn an_answer_cut_at_its_limit_goes_on_with_a_higher_one() {
    let world = check(
        [Step::text("One, two,").stop_reason("max_tokens"), Step::text("three.")],
        expect![[r#"
            system init
            assistant One, two,
            assistant three.
            result success completed
            exit 0
        "#]],
        expect![[r#"
            user: hi
            assistant: One, two,
            user: Your answer reached the output limit and was cut there. Go on exactly where it stopped; do not repeat or apologise. If a tool call was cut, make it again in smaller pieces.
        "#]],
    )
    .await;
    assert_eq!(limits(&world), [32_000, 64_000]);
    // What was asked of the model between the two is part of the session that goes on.
    let world = world.then(Step::text("four.")).await;
    assert_fine(&world.print(["more", "-c"]));
    expect![[r#"
        user: hi
        assistant: One, two,
        user: Your answer reached the output limit and was cut there. Go on exactly where it stopped; do not repeat or apologise. If a tool call was cut, make it again in smaller pieces.
        assistant: three.
        user: more
    "#]].assert_eq(&world.conversation());
}

#[tokio::test]
async fn a_call_cut_at_the_limit_does_not_run() {
    let cut = Step::text("I write.").tool("Bash", json!({"command": "touch half"})).stop_reason("max_tokens");
    let world = check([cut, Step::text("Shorter.")], expect![[r#"
        system init
        assistant I write.
        assistant Bash {"command":"touch half"} <toolu-1>
        assistant Shorter.
        result success completed
        exit 0
    "#]], expect![[r#"
        user: hi
        assistant: I write.
        user: Your answer reached the output limit and was cut there. Go on exactly where it stopped; do not repeat or apologise. If a tool call was cut, make it again in smaller pieces.
    "#]]).await;
    assert!(!world.home.project().join("half").exists());
}

#[tokio::test]
async fn an_answer_that_is_always_cut_ends_as_an_error() {
    let cut = Step::text("and").stop_reason("max_tokens").times(9);
    let world = check(cut, expect![[r#"
        system init
        assistant and
        assistant and
        assistant and
        assistant and
        assistant API Error: The answer reached the output limit again and again
        Ask for the work in smaller steps.
        result success (error) api_error
        exit 1
    "#]], expect![[r#"
        user: hi
        assistant: and
        user: Your answer reached the output limit and was cut there. Go on exactly where it stopped; do not repeat or apologise. If a tool call was cut, make it again in smaller pieces.
        assistant: and
        user: Your answer reached the output limit and was cut there. Go on exactly where it stopped; do not repeat or apologise. If a tool call was cut, make it again in smaller pieces.
        assistant: and
        user: Your answer reached the output limit and was cut there. Go on exactly where it stopped; do not repeat or apologise. If a tool call was cut, make it again in smaller pieces.
    "#]]).await;
    assert_eq!(world.requests().len(), 4);
}

#[tokio::test]
async fn model_refusal_is_reported() {
    let world = check(
        Step::text("I").stop_reason("refusal"),
        expect![[r#"
            system init
            assistant I
            assistant API Error: the model declined to answer. Rephrase the request or try another model.
            system model_refusal_no_fallback
            result success (error) completed
            exit 1
        "#]],
        expect![[r#"
        user: hi
    "#]],
    )
    .await;
    let world = world.then(Step::text("That I can do.")).await;
    assert_fine(&world.print(["something else", "-c"]));
    check(
        Step::new().stop_reason("refusal"),
        expect![[r#"
            system init
            assistant API Error: the model declined to answer. Rephrase the request or try another model.
            system model_refusal_no_fallback
            result success (error) completed
            exit 1
        "#]],
        expect![[r#"
        user: hi
    "#]],
    )
    .await;
}

#[tokio::test]
async fn empty_answer_is_requested_again() {
    let thinking = || Step::new().thinking("Hm.", "c2ln");
    check(
        [Step::new(), Step::text("Here.")],
        expect![[r#"
            system init
            assistant Here.
            result success completed
            exit 0
        "#]],
        expect![[r#"
            user: hi
            user: Your answer had no text and no tool calls. If the work is done, say in a sentence what came of it; otherwise go on.
        "#]],
    )
    .await;
    check(
        [thinking(), Step::text("Here.")],
        expect![[r#"
            system init
            system thinking_tokens
            assistant (thinks Hm.; signed c2ln)
            assistant Here.
            result success completed
            exit 0
        "#]],
        expect![[r#"
            user: hi
            user: Your answer had no text and no tool calls. If the work is done, say in a sentence what came of it; otherwise go on.
        "#]],
    )
    .await;
    check(
        [Step::text(" \n"), Step::text("Here.")],
        expect![[r#"
            system init
            assistant  

            assistant Here.
            result success completed
            exit 0
        "#]],
        expect![[r#"
            user: hi
            user: Your answer had no text and no tool calls. If the work is done, say in a sentence what came of it; otherwise go on.
        "#]],
    )
    .await;
}

#[tokio::test]
async fn paused_turn_is_continued() {
    let search = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}});
    let pause = Step::text("Searching.").raw_block(search).stop_reason("pause_turn");
    check(
        [pause, Step::text("Found.")],
        expect![[r#"
        system init
        assistant Searching.
        assistant {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}
        assistant Found.
        result success completed
        exit 0
    "#]],
        expect![[r#"
        user: hi
        assistant: Searching.
        assistant: {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_limit_of_round_trips_ends_the_turn() {
    let call = || Step::call("Bash", json!({"command": "ls"}));
    let world = World::new([call(), call(), call()]).await;
    let output = world.run(&watched(["hi", "--max-turns", "2"]));
    assert_eq!(output.code, Some(1));
    let result = output.json_lines().pop().unwrap();
    let told =
        ["subtype", "is_error", "num_turns", "errors", "result", "terminal_reason"].map(|key| &result[key]);
    expect![[r#"["error_max_turns",true,3,["Reached maximum number of turns (2)"],null,"max_turns"]"#]]
        .assert_eq(&json!(told).to_string());
    assert_eq!(world.requests().len(), 2);
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant calls Bash #1
        4 <- 3: user answers #1 (no output)
        5 <- 4: assistant calls Bash #2
        6 <- 5: user answers #2 (no output)
        7 <- 6: attachment {"type":"max_turns_reached","maxTurns":2,"turnCount":3}
        8 cost-state
        9 last-prompt -> 7
    "#]]
    .assert_eq(&world.sketch());

    let output = world.print(["hi", "--max-turns", "1"]);
    assert_eq!(output.code, Some(1));
    expect![[r#"
        Error: Reached maximum number of turns (1)
    "#]]
    .assert_eq(&output.stdout);

    let world = world.then(Step::text("Going on.")).await;
    assert_fine(&world.print(["go on", "-c", "--max-turns", "1"]));
}

#[tokio::test]
async fn the_limit_counts_for_each_prompt() {
    let call = || Step::call("Bash", json!({"command": "ls"}));
    let world = World::new([call(), Step::text("one"), call(), Step::text("two")]).await;
    let mut session = world.start(&stream(["--max-turns", "2"]));
    for answer in ["one", "two"] {
        session.write_json(&user("hi"));
        let result = session.wait_for_json(is_result);
        assert_eq!((&result["result"], &result["num_turns"]), (&json!(answer), &json!(2)));
    }
    assert_fine(&session.finish());
}

#[tokio::test]
async fn a_spending_limit_ends_the_turn() {
    // A million tokens in and out of this model cost 3 and 15 dollars.
    let dear = || Step::call("Bash", json!({"command": "touch bought"})).usage(1_000_000, 100_000, 0, 0);
    let world = World::new([dear(), Step::text("Done.")]).await;
    let binary = watched(["hi", "--allowedTools", "Bash", "--max-budget-usd", "4.5"]);
    let output = world.run(&binary);
    assert_eq!(output.code, Some(1));
    let result = output.json_lines().pop().unwrap();
    let told =
        ["subtype", "is_error", "num_turns", "errors", "result", "total_cost_usd"].map(|key| &result[key]);
    expect![[r#"["error_max_budget_usd",true,1,["Reached maximum budget ($4.5)"],null,4.5]"#]]
        .assert_eq(&json!(told).to_string());
    assert!(!world.home.project().join("bought").exists(), "nothing runs once the money is spent");
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user hi
        3 <- 2: assistant calls Bash #1
        4 <- 3: user answers #1 (error) <tool_use_error>Not run: the spending limit of this session was reached before this call.</tool_use_error>
        5 cost-state
        6 last-prompt -> 4
    "#]].assert_eq(&world.sketch());

    // Below the limit the turn goes on.
    let world = World::new([dear(), Step::text("Done.")]).await;
    let output = world.print(["hi", "--allowedTools", "Bash", "--max-budget-usd", "4.6"]);
    assert_fine(&output);
    assert!(world.home.project().join("bought").exists());
}

#[tokio::test]
async fn cost_and_usage_are_added_up() {
    let world = World::new([
        Step::call("Bash", json!({"command": "ls"})).usage(1000, 100, 10_000, 2000),
        Step::text("one").usage(500, 50, 20_000, 0),
        Step::text("two").usage(100, 10, 0, 0),
    ])
    .await;
    let mut session = world.start(&stream([]));
    let mut told = String::new();
    for _ in 0..2 {
        session.write_json(&user("hi"));
        let result = session.wait_for_json(is_result);
        let usage = &result["usage"];
        let keys =
            ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
        told += &format!(
            "{:?} {} {}\n",
            keys.map(|key| usage[key].as_u64().unwrap()),
            result["total_cost_usd"],
            result["modelUsage"]
        );
    }
    assert_fine(&session.finish());
    expect![[r#"
        [1500, 150, 30000, 2000] 0.02325 {"claude-sonnet-4-5":{"inputTokens":1500,"outputTokens":150,"cacheReadInputTokens":30000,"cacheCreationInputTokens":2000,"thinkingTokens":0,"cacheCreationEphemeral5mInputTokens":2000,"cacheCreationEphemeral1hInputTokens":0,"webSearchRequests":0,"costUSD":0.02325,"contextWindow":200000,"maxOutputTokens":32000,"canonicalModel":"claude-sonnet-4-5","provider":"firstParty","costBasis":"list"}}
        [100, 10, 0, 0] 0.0237 {"claude-sonnet-4-5":{"inputTokens":1600,"outputTokens":160,"cacheReadInputTokens":30000,"cacheCreationInputTokens":2000,"thinkingTokens":0,"cacheCreationEphemeral5mInputTokens":2000,"cacheCreationEphemeral1hInputTokens":0,"webSearchRequests":0,"costUSD":0.0237,"contextWindow":200000,"maxOutputTokens":32000,"canonicalModel":"claude-sonnet-4-5","provider":"firstParty","costBasis":"list"}}
    "#]].assert_eq(&told);
}
