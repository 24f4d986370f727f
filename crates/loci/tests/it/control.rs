//! The control channel: what a client asks of a running session, and what the session asks of its client.

use crate::support::{
    Pipe, World, assert_ended, assert_fine, control, frames, is_result, shape, stream, user,
};
use expect_test::{Expect, expect};
use loci_testkit::{Gate, Output, Session, Step};
use serde_json::{Value, json};

fn is_response(frame: &Value) -> bool {
    frame["type"] == "control_response"
}

fn is_question(frame: &Value) -> bool {
    frame["request"]["subtype"] == "can_use_tool"
}

/// Asks, and returns the answer.
fn ask(session: &mut Session, request: Value) -> Value {
    session.write_json(&control("r1", request));
    session.wait_for_json(is_response)["response"].clone()
}

#[tokio::test]
async fn control_requests_are_answered_between_turns() {
    let cases = [
        (
            json!({"subtype": "initialize", "hooks": null}),
            expect![[r#"
                {"subtype":"success","request_id":"r1","response":{"commands":[{"name":"clear","description":"Begin a new conversation; the one at hand is kept and can be resumed","argumentHint":"[name for what is left]","aliases":["reset","new"]},{"name":"compact","description":"Put a summary in the place of the conversation so far","argumentHint":"[what to keep above all]"},{"name":"rename","description":"Give this session a name to find it by","argumentHint":"[name]"},{"name":"tasks","description":"What runs in the background: its output, and a way to stop it","argumentHint":"","aliases":["bashes"]},{"name":"context","description":"Show what fills the model's window","argumentHint":"[all|time]"},{"name":"usage","description":"Show cost, time and tokens of the session","argumentHint":"","aliases":["cost","stats"]},{"name":"model","description":"Ask another model","argumentHint":"[model]"},{"name":"effort","description":"Change how hard the model thinks","argumentHint":"[level|auto|status]"},{"name":"config","description":"Look at settings and change them","argumentHint":"[key=value]","aliases":["settings"]},{"name":"mcp","description":"Look after MCP servers","argumentHint":"[reconnect|enable|disable server]"},{"name":"status","description":"Show version, session, model, settings and servers","argumentHint":""},{"name":"permissions","description":"Look at permission rules and change them","argumentHint":"[allow|ask|deny rule]","aliases":["allowed-tools"]},{"name":"add-dir","description":"Let the session work in another directory, too","argumentHint":"<path>"},{"name":"autocompact","description":"Choose the size at which the conversation is compacted","argumentHint":"[tokens|auto]"},{"name":"memory","description":"Instruction files and memories","argumentHint":"[accept|reject|forget file]"},{"name":"diff","description":"Show what changed since the last commit","argumentHint":""},{"name":"doctor","description":"Say what this installation is made of and what is wrong with it","argumentHint":"","aliases":["checkup"]},{"name":"hooks","description":"List the hooks","argumentHint":""},{"name":"skills","description":"List the skills","argumentHint":""},{"name":"reload-skills","description":"Read all skills and commands anew","argumentHint":""},{"name":"reload-plugins","description":"Read all plugins anew","argumentHint":""},{"name":"agents","description":"Agents at work: look on, say something to one, stop it; and those that can be sent out","argumentHint":"[message|stop agent]"},{"name":"list-agents","description":"List the agents that can be spoken to, by name","argumentHint":"","aliases":["peers"]},{"name":"subtask","description":"Give a side task to a copy of this conversation, in the background","argumentHint":"<task>","aliases":["fork"]},{"name":"plugin","description":"What plugins there are, which are on, and what marketplaces offer","argumentHint":"[list|enable|disable plugin]","aliases":["plugins"]},{"name":"sandbox","description":"Whether commands run in a sandbox, and how","argumentHint":""},{"name":"fewer-permission-prompts","description":"Rules that would have answered most questions of this session, and what else they allow","argumentHint":"[save numbers]"},{"name":"debug","description":"Why is this slow: the last turn as a timeline","argumentHint":""},{"name":"stop","description":"Stop work in the background","argumentHint":"[task]"},{"name":"goal","description":"Work until a condition holds; without one, say how far it is","argumentHint":"[condition|clear]"},{"name":"init","description":"Write a CLAUDE.md for this project, or improve the one there is","argumentHint":"[what to pay attention to]"},{"name":"code-review","description":"Review the changes of this branch, or those that are named, and report what should be mended","argumentHint":"[branch, commit, range or files]","aliases":["review"]},{"name":"security-review","description":"Look for security problems that the changes of this branch bring in","argumentHint":"[branch, commit, range or files]"},{"name":"loop","description":"Run a prompt over and over, at an interval or at a pace of your own","argumentHint":"[interval] [prompt]"},{"name":"simplify","description":"Make the code that was just changed simpler without changing what it does","argumentHint":"[files or what to look at]"},{"name":"verify","description":"Try out that a change really works, by running it and not only its tests","argumentHint":"[what should work]"},{"name":"statusline","description":"Set up the status line: say what it should show, or take it from the prompt of your shell","argumentHint":"[what it should show]"},{"name":"run","description":"Start this project's program and use it, to see a change at work","argumentHint":"[what to look at]"},{"name":"batch","description":"Make one change in many places with agents side by side, after a plan","argumentHint":"<the change>"}],"agents":[{"name":"claude","description":"For work that fits no other type."},{"name":"Explore","description":"Finds things in code quickly and changes nothing: files by name, code by content, answers to how something works. Say how thorough it should be: quick, medium or very thorough."},{"name":"general-purpose","description":"Researches questions, searches code and carries out tasks of several steps. For when it would take many searches, or work whose details this conversation does not need."},{"name":"Plan","description":"Designs how a change should be built and changes nothing: steps, files that matter, what was weighed against what."},{"name":"statusline-setup","description":"Sets up the user's status line."}],"output_style":"default","available_output_styles":["default","Proactive","Concise","Explanatory","Learning"],"models":[{"value":"default","resolvedModel":"claude-opus-5-5","displayName":"default","description":"1M tokens, $4 in, $20 out per million tokens","supportsEffort":true,"supportedEffortLevels":["low","medium","high","xhigh","max"],"supportsAdaptiveThinking":true},{"value":"opus","resolvedModel":"claude-opus-5-5","displayName":"opus","description":"1M tokens, $4 in, $20 out per million tokens","supportsEffort":true,"supportedEffortLevels":["low","medium","high","xhigh","max"],"supportsAdaptiveThinking":true},{"value":"sonnet","resolvedModel":"claude-sonnet-5-5","displayName":"sonnet","description":"1M tokens, $2 in, $10 out per million tokens","supportsEffort":true,"supportedEffortLevels":["low","medium","high","xhigh","max"],"supportsAdaptiveThinking":true},{"value":"haiku","resolvedModel":"claude-haiku-5-5","displayName":"haiku","description":"1M tokens, $0.1 in, $0.5 out per million tokens","supportsEffort":true,"supportedEffortLevels":["low","medium","high","xhigh","max"],"supportsAdaptiveThinking":true},{"value":"fable","resolvedModel":"claude-fable-5-2","displayName":"fable","description":"1M tokens, $8 in, $40 out per million tokens","supportsEffort":true,"supportedEffortLevels":["low","medium","high","xhigh","max"],"supportsAdaptiveThinking":true},{"value":"claude-sonnet-4-5","resolvedModel":"claude-sonnet-4-5","displayName":"claude-sonnet-4-5","description":"200k tokens, $3 in, $15 out per million tokens"}],"account":{"tokenSource":"none","apiKeySource":"ANTHROPIC_API_KEY","apiProvider":"firstParty"},"pid":0,"claude_code_version":"2.1.325","fast_mode_state":"off","current_permission_mode":"default","session_state":"idle","capabilities":["interrupt_receipt_v1","interrupt_cancel_queued_v1","msg_lifecycle_v1","sdk_mcp_tools_list_changed","mcp_read_resource_v1","reload_plugins_refuse_if_busy_v1"],"hook_on_failure_supported":true}}
            "#]],
        ),
        (
            json!({"subtype": "interrupt"}),
            expect![[r#"
                {"subtype":"success","request_id":"r1","response":{"still_queued":[]}}
            "#]],
        ),
        (
            json!({"subtype": "set_permission_mode", "mode": "plan"}),
            expect![[r#"
            {"subtype":"success","request_id":"r1","response":{"mode":"plan"}}
        "#]],
        ),
        (
            json!({"subtype": "set_permission_mode", "mode": "yolo"}),
            expect![[r#"
                {"subtype":"error","request_id":"r1","error":"Unknown permission mode: `yolo` (expected default, acceptEdits, plan, auto, dontAsk or bypassPermissions)"}
            "#]],
        ),
        (
            json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
            expect![[r#"
            {"subtype":"error","request_id":"r1","error":"Cannot set permission mode to bypassPermissions: the session was not started with --dangerously-skip-permissions or --allow-dangerously-skip-permissions"}
        "#]],
        ),
        (
            json!({"subtype": "set_model", "model": "haiku"}),
            expect![[r#"
                {"subtype":"success","request_id":"r1","response":{"model":"claude-haiku-5-5"}}
            "#]],
        ),
        (
            json!({"subtype": "mcp_status"}),
            expect![[r#"
            {"subtype":"success","request_id":"r1","response":{"mcpServers":[]}}
        "#]],
        ),
        (
            json!({"subtype": "teleport"}),
            expect![[r#"
                {"subtype":"error","request_id":"r1","error":"Unsupported control request subtype: teleport","error_code":"unsupported_request"}
            "#]],
        ),
        (
            json!({}),
            expect![[r#"
                {"subtype":"error","request_id":"r1","error":"Unsupported control request subtype: ","error_code":"unsupported_request"}
            "#]],
        ),
    ];
    let world = World::new([]).await;
    let mut session = world.start(&stream([]));
    for (request, expected) in cases {
        let answer = ask(&mut session, request);
        expected.assert_eq(&frames(&[answer], &mut world.normaliser()));
    }
    let output = session.finish();
    assert_fine(&output);
    assert_eq!(world.model.requests().len(), 0, "no question costs a request");
    assert_eq!(world.home.sessions().len(), 0);
}

#[tokio::test]
async fn set_permission_mode_and_set_model_hold_from_the_next_turn() {
    let world = World::new([]).await;
    let mut session = world.start(&stream([]));
    let mut told = String::new();
    for request in [
        json!({"subtype": "keep_all"}),
        json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}),
        json!({"subtype": "set_model", "model": "claude-haiku-4-5"}),
        json!({"subtype": "set_model", "model": "opus"}),
        json!({"subtype": "set_model", "model": null}),
    ] {
        ask(&mut session, request.clone());
        session.write_json(&user("hi"));
        let init = session.wait_for_json(|frame| frame["subtype"] == "init");
        session.wait_for_json(is_result);
        let asked = world.last_request().json["model"].clone();
        told += &format!("{request}: {} {} {asked}\n", init["permissionMode"], init["model"]);
    }
    let output = session.finish();
    assert_fine(&output);
    expect![[r#"
        {"subtype":"keep_all"}: "default" "claude-sonnet-4-5" "claude-sonnet-4-5"
        {"subtype":"set_permission_mode","mode":"acceptEdits"}: "acceptEdits" "claude-sonnet-4-5" "claude-sonnet-4-5"
        {"subtype":"set_model","model":"claude-haiku-4-5"}: "acceptEdits" "claude-haiku-4-5" "claude-haiku-4-5"
        {"subtype":"set_model","model":"opus"}: "acceptEdits" "claude-opus-5-5" "claude-opus-5-5"
        {"subtype":"set_model","model":null}: "acceptEdits" "claude-sonnet-4-5" "claude-sonnet-4-5"
    "#]].assert_eq(&told);
    let status = output.json_lines().into_iter().filter(|it| it["subtype"] == "status");
    expect![[r#"
        system status acceptEdits
    "#]]
    .assert_eq(&shape(&status.collect::<Vec<_>>()));
}

#[tokio::test]
async fn set_permission_mode_holds_for_the_rest_of_the_turn() {
    let world = World::new([]).await;
    let path = world.path("new.txt");
    let calls = Step::call("Bash", json!({"command": "cat held.pipe"}));
    let write = Step::call("Write", json!({"file_path": path, "content": "x"}));
    let world = world.then([calls, write, Step::text("Done.")]).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let mut session = world.start(&stream([]));
    session.write_json(&user("hi"));
    let writer = held.reader_came();
    ask(&mut session, json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}));
    drop(writer);
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    assert_eq!(world.home.read("new.txt"), "x");
}

#[tokio::test]
async fn interrupt_ends_the_turn_and_keeps_the_session() {
    let gate = Gate::new();
    let step = Step::call("Bash", json!({"command": "touch ran"})).then_text("And").wait_for(gate.clone());
    let world = World::new([step, Step::text("Again.")]).await;
    let mut session = world.start(&stream(["--include-partial-messages", "--allowedTools", "Bash"]));
    session.write_json(&user("hi"));
    session.wait_for_json(|frame| frame["event"]["delta"]["type"] == "text_delta");
    session.write_json(&control("r1", json!({"subtype": "interrupt"})));
    session.wait_for_json(is_result);
    session.write_json(&user("go on"));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_fine(&output);
    expect![[r#"
        system init
        system status requesting
        assistant Bash {"command":"touch ran"} <toolu-1>
        control_response r1 success
        user <toolu-1> error: Not run: the user interrupted before this call began.
        assistant And
        user [Request interrupted by user]
        result error_during_execution (error) aborted_streaming
        system init
        system status requesting
        assistant Again.
        result success completed
    "#]]
    .assert_eq(&render_frames(&world, &output));
    expect![[r#"
        user: hi
        assistant: Bash {"command":"touch ran"} <toolu-1>
        user: <toolu-1> error: Not run: the user interrupted before this call began.
        assistant: And
        user: [Request interrupted by user]
        user: go on
    "#]]
    .assert_eq(&world.conversation());
}

#[tokio::test]
async fn interrupt_kills_a_running_command() {
    let calls = Step::call("Bash", json!({"command": "sleep 600 > alive.pipe"}));
    let world = World::new([calls, Step::text("Again.")]).await;
    let alive = Pipe::new(&world.home, "alive.pipe");
    let mut session = world.start(&stream(["--allowedTools", "Bash,Edit(*.pipe)"]));
    session.write_json(&user("hi"));
    let alive = alive.writer_came();
    session.write_json(&control("r1", json!({"subtype": "interrupt"})));
    session.wait_for_json(is_result);
    assert_ended(alive);
    session.write_json(&user("go on"));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_fine(&output);
    expect![[r#"
        system init
        assistant Bash {"command":"sleep 600 > alive.pipe"} <toolu-1>
        control_response r1 success
        user <toolu-1> error: The command was interrupted before it ended.
        user [Request interrupted by user for tool use]
        result error_during_execution (error) aborted_tools
        system init
        assistant Again.
        result success completed
    "#]]
    .assert_eq(&render_frames(&world, &output));
    expect![[r#"
        user: hi
        assistant: Bash {"command":"sleep 600 > alive.pipe"} <toolu-1>
        user: <toolu-1> error: The command was interrupted before it ended.
        user: [Request interrupted by user for tool use]
        user: go on
    "#]]
    .assert_eq(&world.conversation());
}

/// Renders what a client was told, without partial messages.
fn render_frames(world: &World, output: &Output) -> String {
    let frames = output.json_lines().into_iter().filter(|it| it["type"] != "stream_event");
    world.normaliser().text(&shape(&frames.collect::<Vec<_>>()))
}

/// Lets the model make calls that need a yes, answers the first question so, and compares.
async fn check_answer(answer: Value, frames: Expect, result: Expect) -> World {
    let calls = Step::call("Bash", json!({"command": "touch asked", "description": "make a file"}));
    let world = World::new([calls, Step::text("I see.")]).await;
    let mut session =
        world.start(&stream(["--permission-prompt-tool", "stdio", "--disallowedTools", "Bash(touch no)"]));
    session.write_json(&user("hi"));
    let question = session.wait_for_json(is_question);
    let response = match answer.get("error") {
        Some(error) => json!({"subtype": "error", "request_id": question["request_id"], "error": error}),
        None => json!({"subtype": "success", "request_id": question["request_id"], "response": answer}),
    };
    session.write_json(&json!({"type": "control_response", "response": response}));
    let last = session.wait_for_json(is_result);
    let output = session.finish();
    frames.assert_eq(&render_frames(&world, &output));
    result.assert_eq(&world.normaliser().value(&last["permission_denials"]).to_string());
    world.requests();
    world.session();
    world
}

#[tokio::test]
async fn can_use_tool_request_describes_the_call() {
    let world = World::new([
        Step::call("Bash", json!({"command": "touch x", "description": "make"})),
        Step::text("ok"),
    ])
    .await;
    let mut session = world.start(&stream(["--permission-prompt-tool=stdio"]));
    session.write_json(&user("hi"));
    let question = session.wait_for_json(is_question);
    expect![[r#"
        {
          "type": "control_request",
          "request_id": "<uuid-1>",
          "request": {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "display_name": "Bash",
            "input": {
              "command": "touch x",
              "description": "make"
            },
            "permission_suggestions": [
              {
                "type": "addRules",
                "rules": [
                  {
                    "toolName": "Bash",
                    "ruleContent": "touch x"
                  }
                ],
                "behavior": "allow",
                "destination": "localSettings"
              }
            ],
            "decision_reason": "it changes something and no rule allows it",
            "decision_reason_type": "other",
            "tool_use_id": "<toolu-1>",
            "description": "make"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&world.normaliser().value(&question)).unwrap());
    session.write_json(&control("r1", json!({"subtype": "interrupt"})));
    session.finish();
}

#[tokio::test]
async fn allow_answer_runs_the_call() {
    let world = check_answer(
        json!({"behavior": "allow", "updatedInput": {"command": "touch asked"}}),
        expect![[r#"
            system init
            assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
            control_request can_use_tool
            user <toolu-1>: (no output)
            assistant I see.
            result success completed
        "#]],
        expect!["[]"],
    )
    .await;
    assert!(world.home.project().join("asked").exists());
}

#[tokio::test]
async fn allow_answer_without_input_runs_the_call_as_asked() {
    let world = check_answer(
        json!({"behavior": "allow"}),
        expect![[r#"
        system init
        assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
        control_request can_use_tool
        user <toolu-1>: (no output)
        assistant I see.
        result success completed
    "#]],
        expect!["[]"],
    )
    .await;
    assert!(world.home.project().join("asked").exists());
}

/// P-1.
#[tokio::test]
async fn allow_answer_with_updated_input_runs_that_input() {
    let answer = json!({"behavior": "allow", "updatedInput": {"command": "touch other"}});
    let world = check_answer(
        answer,
        expect![[r#"
        system init
        assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
        control_request can_use_tool
        user <toolu-1>: (no output)
        assistant I see.
        result success completed
    "#]],
        expect!["[]"],
    )
    .await;
    assert!(world.home.project().join("other").exists() && !world.home.project().join("asked").exists());
}

/// P-1, P-2.
#[tokio::test]
async fn updated_input_that_a_deny_rule_matches_is_refused() {
    let answer = json!({"behavior": "allow", "updatedInput": {"command": "touch no"}});
    let world = check_answer(answer, expect![[r#"
        system init
        assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
        control_request can_use_tool
        system permission_denied
        user <toolu-1> error: Permission to use Bash was not granted: the rule `Bash(touch no)` (command line). Do not try to get around this; take another way or say what you need.
        assistant I see.
        result success completed
    "#]], expect![[r#"[{"tool_name":"Bash","tool_use_id":"<toolu-1>","tool_input":{"command":"touch no"}}]"#]]).await;
    assert!(!world.home.project().join("no").exists());
}

#[tokio::test]
async fn deny_answer_is_told_to_the_model() {
    let world =
        check_answer(json!({"behavior": "deny", "message": "Not today."}), expect![[r#"
            system init
            assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
            control_request can_use_tool
            user <toolu-1> error: Not today.
            assistant I see.
            result success completed
        "#]], expect![[r#"[{"tool_name":"Bash","tool_use_id":"<toolu-1>","tool_input":{"command":"touch asked","description":"make a file"}}]"#]])
            .await;
    assert!(!world.home.project().join("asked").exists());
}

#[tokio::test]
async fn deny_answer_with_interrupt_ends_the_turn() {
    let answer = json!({"behavior": "deny", "message": "Stop it.", "interrupt": true});
    let world = check_answer(answer, expect![[r#"
        system init
        assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
        control_request can_use_tool
        user <toolu-1> error: Stop it.
        user [Request interrupted by user for tool use]
        result error_during_execution (error) aborted_tools
    "#]], expect![[r#"[{"tool_name":"Bash","tool_use_id":"<toolu-1>","tool_input":{"command":"touch asked","description":"make a file"}}]"#]]).await;
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn answer_that_cannot_be_parsed_is_a_denial() {
    check_answer(json!({"behavior": "perhaps"}), expect![[r#"
        system init
        assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
        control_request can_use_tool
        user <toolu-1> error: The answer to the permission question could not be understood.
        assistant I see.
        result success completed
    "#]], expect![[r#"[{"tool_name":"Bash","tool_use_id":"<toolu-1>","tool_input":{"command":"touch asked","description":"make a file"}}]"#]]).await;
    check_answer(json!({"error": "callback failed"}), expect![[r#"
        system init
        assistant Bash {"command":"touch asked","description":"make a file"} <toolu-1>
        control_request can_use_tool
        user <toolu-1> error: The permission question failed: callback failed
        assistant I see.
        result success completed
    "#]], expect![[r#"[{"tool_name":"Bash","tool_use_id":"<toolu-1>","tool_input":{"command":"touch asked","description":"make a file"}}]"#]]).await;
}

#[tokio::test]
async fn open_question_is_denied_when_the_client_closes_stdin() {
    let calls = Step::call("Bash", json!({"command": "touch asked"}));
    let again = Step::call("Bash", json!({"command": "touch again"}));
    let world = World::new([calls, again, Step::text("I see.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("hi"));
    session.wait_for_json(is_question);
    let output = session.finish();
    assert_fine(&output);
    expect![[r#"
        system init
        assistant Bash {"command":"touch asked"} <toolu-1>
        control_request can_use_tool
        user <toolu-1> error: Nobody is left to ask whether this call may run.
        assistant Bash {"command":"touch again"} <toolu-2>
        system permission_denied
        user <toolu-2> error: Permission to use Bash was not granted: it changes something and no rule allows it. The rule `Bash(touch again)` under permissions.allow would allow it. This run cannot ask anyone. Take another way, or tell the user which permission is needed.
        assistant I see.
        result success completed
    "#]].assert_eq(&render_frames(&world, &output));
    assert!(!world.home.project().join("asked").exists() && !world.home.project().join("again").exists());
    world.session();
}

/// P-9.
#[tokio::test]
async fn interrupt_withdraws_the_open_question() {
    let calls = Step::call("Bash", json!({"command": "touch asked"}));
    let world = World::new([calls, Step::text("Again.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("hi"));
    let question = session.wait_for_json(is_question);
    session.write_json(&control("r1", json!({"subtype": "interrupt"})));
    session.wait_for_json(is_result);
    // A late yes is too late.
    let yes = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
    session.write_json(&json!({"type": "control_response", "response": yes}));
    session.write_json(&user("go on"));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_fine(&output);
    expect![[r#"
        system init
        assistant Bash {"command":"touch asked"} <toolu-1>
        control_request can_use_tool
        control_cancel_request
        control_response r1 success
        user <toolu-1> error: Not run: the user interrupted before this call began.
        user [Request interrupted by user for tool use]
        result error_during_execution (error) aborted_tools
        system init
        assistant Again.
        result success completed
    "#]]
    .assert_eq(&render_frames(&world, &output));
    assert!(!world.home.project().join("asked").exists());
    world.requests();
    world.session();
}

#[tokio::test]
async fn parallel_calls_ask_one_question_each() {
    let calls = Step::call("Bash", json!({"command": "touch a"})).tool("Bash", json!({"command": "touch b"}));
    let world = World::new([calls, Step::text("Both.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("hi"));
    for name in ["a", "b"] {
        let question = session.wait_for_json(is_question);
        assert_eq!(question["request"]["input"]["command"], format!("touch {name}"));
        let yes = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
        session.write_json(&json!({"type": "control_response", "response": yes}));
    }
    session.wait_for_json(is_result);
    assert_fine(&session.finish());
    assert!(world.home.project().join("a").exists() && world.home.project().join("b").exists());
}

/// A yes to a question.
fn yes_to(question: &Value) -> Value {
    let yes = json!({"subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"}});
    json!({"type": "control_response", "response": yes})
}

#[tokio::test]
async fn responses_that_answer_nothing_are_reported_once_and_change_nothing() {
    let calls = Step::call("Bash", json!({"command": "touch asked"}));
    let world = World::new([calls, Step::text("Done.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&yes_to(&json!({"request_id": "never-sent"})));
    session.write_json(&user("hi"));
    let question = session.wait_for_json(is_question);
    session.write_json(&yes_to(&json!({"request_id": "another"})));
    assert!(!world.home.project().join("asked").exists());
    session.write_json(&yes_to(&question));
    session.write_json(&yes_to(&question));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert_eq!(output.code, Some(0));
    expect![[r#"
        A control response was ignored: no open request has the id `never-sent`
    "#]]
    .assert_eq(&output.stderr);
    assert!(world.home.project().join("asked").exists());
    world.session();
}

#[tokio::test]
async fn question_of_a_session_that_is_left_is_denied_when_the_client_goes() {
    let calls = Step::call("Bash", json!({"command": "touch asked"}));
    let again = Step::call("Bash", json!({"command": "touch again"}));
    let world = World::new([calls, again, Step::text("I see."), Step::text("New.")]).await;
    let mut session = world.start(&stream(["--permission-prompt-tool", "stdio"]));
    session.write_json(&user("hi"));
    session.wait_for_json(is_question);
    session.write_json(&user("/clear"));
    session.write_json(&user("go on"));
    let output = session.finish();
    assert_fine(&output);
    expect![[r#"
        system init
        assistant Bash {"command":"touch asked"} <toolu-1>
        control_request can_use_tool
        user <toolu-1> error: Nobody is left to ask whether this call may run.
        assistant Bash {"command":"touch again"} <toolu-2>
        user <toolu-2> error: Nobody is left to ask whether this call may run.
        assistant I see.
        result success completed
        conversation_reset
        system init
        result success completed
        system init
        assistant New.
        result success completed
    "#]]
    .assert_eq(&render_frames(&world, &output));
}
