//! Servers and the client that drives a run: status, changes, questions, hooks.

use loci_testkit::{Session, Step};
use serde_json::{Value, json};

use super::{config, entry};
use crate::settings::tool_result;
use crate::support::{World, control, is_result, print, stream, user};

/// Answers a question of a server, and waits for the end of the run; returns all frames.
fn accept(mut session: Session, asked: &Value) -> Vec<Value> {
    session.write_json(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": asked["request_id"],
        "response": {"action": "accept", "content": {"name": "Ada"}},
    }}));
    session.wait_for_json(is_result);
    session.close_stdin();
    session.finish().json_lines()
}

fn answer_to<'a>(id: &'a str) -> impl Fn(&Value) -> bool + 'a {
    move |frame| frame["type"] == "control_response" && frame["response"]["request_id"] == id
}

#[tokio::test]
async fn servers_are_looked_after_by_control_requests() {
    let world = World::new([Step::text("a"), Step::text("b"), Step::text("c")]).await;
    let servers = config(json!({"s": entry(&["--tools", "a"])}));
    let mut session = world.start(&stream(["--mcp-config", &servers]));
    session.write_json(&user("one"));
    let init = session.wait_for_json(|frame| frame["subtype"] == "init");
    assert_eq!(init["mcp_servers"], json!([{"name": "s", "status": "connected", "source": "dynamic"}]));
    assert!(init["tools"].as_array().unwrap().contains(&json!("mcp__s__a")), "{init}");
    session.wait_for_json(is_result);
    let mut ask = |id: &str, request: Value| {
        session.write_json(&control(id, request));
        session.wait_for_json(answer_to(id))["response"].clone()
    };
    let status = ask("r1", json!({"subtype": "mcp_status"}));
    let row = &status["response"]["mcpServers"][0];
    assert_eq!(
        (&row["name"], &row["status"], &row["scope"]),
        (&json!("s"), &json!("connected"), &json!("dynamic"))
    );
    assert_eq!((&row["serverInfo"]["name"], &row["tools"][0]["name"]), (&json!("small"), &json!("a")));
    assert_eq!(
        ask("r2", json!({"subtype": "mcp_toggle", "serverName": "s", "enabled": false}))["subtype"],
        "success"
    );
    assert_eq!(ask("r3", json!({"subtype": "mcp_reconnect", "serverName": "s"}))["subtype"], "error");
    assert_eq!(
        ask("r4", json!({"subtype": "mcp_toggle", "serverName": "none", "enabled": true}))["subtype"],
        "error"
    );
    let wanted = json!({"t": entry(&["--tools", "b"]), "bad": {"command": "/no/such"}, "odd": {"type": "x"}});
    let set = ask("r5", json!({"subtype": "mcp_set_servers", "servers": wanted}))["response"].clone();
    assert_eq!((&set["added"], &set["removed"]), (&json!(["t", "bad"]), &json!(["s"])), "{set}");
    let mut failed: Vec<_> = set["errors"].as_object().unwrap().keys().cloned().collect();
    failed.sort();
    assert_eq!(failed, ["bad", "odd"]);
    session.write_json(&user("two"));
    let init = session.wait_for_json(|frame| frame["subtype"] == "init");
    let tools = init["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("mcp__t__b")) && !tools.contains(&json!("mcp__s__a")), "{init}");
    session.wait_for_json(is_result);
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
}

#[tokio::test]
async fn question_of_a_server_goes_to_the_client() {
    let world = World::new([Step::call("mcp__s__ask", json!({})), Step::text("Done.")]).await;
    let servers = config(json!({"s": entry(&[])}));
    let mut session = world.start(&stream(["--mcp-config", &servers, "--allowedTools", "mcp__s"]));
    session.write_json(&user("go"));
    let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "elicitation");
    let request = &asked["request"];
    assert_eq!(
        (&request["mcp_server_name"], &request["message"], &request["mode"]),
        (&json!("s"), &json!("Who are you?"), &json!("form"))
    );
    assert_eq!(request["requested_schema"]["required"], json!(["name"]));
    assert_eq!(request["property_order"], json!(["name"]));
    accept(session, &asked);
    assert_eq!(tool_result(&world), r#"{"action": "accept", "content": {"name": "Ada"}}"#);
}

/// Whoever brings a server may say of its tools that each call is asked about, or that none runs; rules that allow and
/// modes that ask nobody do not change that, and what a policy would allow it does not grant.
#[tokio::test]
async fn tool_policies_of_a_server_hold_against_rules_and_modes() {
    let call = |tool: &str| Step::call(&format!("mcp__s__{tool}"), json!({}));
    let world = World::new([call("a"), call("b"), call("c"), Step::text("Done.")]).await;
    let mut server = entry(&["--tools", "a,b,c"]);
    server["tools"] = json!([
        {"name": "a", "permission_policy": "always_deny"},
        {"name": "b", "permission_policy": "always_ask"},
        {"name": "c", "permission_policy": "always_allow"},
    ]);
    let flags = ["--permission-prompt-tool", "stdio", "--allowedTools", "mcp__s__a,mcp__s__b"];
    let mut session = world.start(&stream(flags));
    let set = json!({"subtype": "mcp_set_servers", "servers": {"s": server}});
    session.write_json(&control("set", set));
    let set = session.wait_for_json(answer_to("set"));
    assert_eq!(set["response"]["response"]["added"], json!(["s"]), "{set}");
    session.write_json(&user("go"));
    let mut asked = Vec::new();
    for _ in 0..2 {
        let question = session.wait_for_json(|frame| frame["request"]["subtype"] == "can_use_tool");
        let request = &question["request"];
        assert_eq!(request["mcp_server"], json!({"name": "s", "source": "dynamic"}), "{request}");
        asked.push(request["tool_name"].clone());
        session.write_json(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": question["request_id"], "response": {"behavior": "allow"},
        }}));
    }
    assert_eq!(asked, ["mcp__s__b", "mcp__s__c"], "what is denied is not asked about");
    let result = session.wait_for_json(is_result);
    let denied = result["permission_denials"].as_array().unwrap();
    assert_eq!((denied.len(), &denied[0]["tool_name"]), (1, &json!("mcp__s__a")), "{result}");
    assert_eq!(session.finish().code, Some(0));
    let told = world.requests()[1].json["messages"].to_string();
    assert!(told.contains("denies this tool"), "{told}");
}

#[tokio::test]
async fn server_inside_the_client_takes_the_place_of_one_in_a_file() {
    let world = World::new([]).await;
    let file = json!({"mcpServers": {"calc": entry(&["--tools", "a"])}});
    world.home.write_home(".claude.json", file.to_string());
    let mut session = world.start(&stream([]));
    let initialize = json!({"subtype": "initialize", "sdkMcpServers": ["calc"]});
    session.write_json(&control("init", initialize));
    let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "mcp_message");
    assert_eq!(asked["request"]["server_name"], "calc");
    session.write_json(&control("status", json!({"subtype": "mcp_status"})));
    let status = session.wait_for_json(answer_to("status"))["response"]["response"].clone();
    let rows: Vec<_> =
        status["mcpServers"].as_array().unwrap().iter().map(|row| (&row["name"], &row["source"])).collect();
    assert_eq!(rows, [(&json!("calc"), &json!("sdk"))], "{status}");
    assert_eq!(session.finish().code, Some(0));
}

/// What settings forbid, a client cannot bring: neither a program nor a server of its own.
#[tokio::test]
async fn servers_that_settings_forbid_cannot_be_brought_by_a_client() {
    let world = World::new([Step::text("Done.")]).await;
    let denied = json!({"deniedMcpServers": [{"serverName": "s"}, {"serverName": "calc"}]});
    world.home.write_config("settings.json", denied.to_string());
    let mut session = world.start(&stream([]));
    let initialize = json!({"subtype": "initialize", "sdkMcpServers": ["calc"]});
    session.write_json(&control("init", initialize));
    session.wait_for_json(answer_to("init"));
    let wanted = json!({"s": entry(&["--tools", "a"]), "t": entry(&["--tools", "b"])});
    session.write_json(&control("set", json!({"subtype": "mcp_set_servers", "servers": wanted})));
    let set = session.wait_for_json(answer_to("set"))["response"]["response"].clone();
    assert_eq!(set["added"], json!(["t"]), "{set}");
    assert!(set["errors"]["s"].as_str().unwrap().contains("deniedMcpServers"), "{set}");
    session.write_json(&user("go"));
    let init = session.wait_for_json(|frame| frame["subtype"] == "init");
    assert_eq!(init["mcp_servers"], json!([{"name": "t", "status": "connected", "source": "dynamic"}]));
    session.wait_for_json(is_result);
    let output = session.finish();
    assert!(output.stderr.contains("`calc`") && output.stderr.contains("deniedMcpServers"), "{output:?}");
}

#[tokio::test]
async fn page_of_a_server_is_shown_to_the_client() {
    let world = World::new([Step::call("mcp__s__visit", json!({})), Step::text("Done.")]).await;
    let servers = config(json!({"s": entry(&[])}));
    let mut session = world.start(&stream(["--mcp-config", &servers, "--allowedTools", "mcp__s"]));
    session.write_json(&user("go"));
    let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "elicitation");
    let request = &asked["request"];
    assert_eq!((&request["mode"], &request["elicitation_id"]), (&json!("url"), &json!("e1")), "{request}");
    assert_eq!(request["url"], "https://example.com/login?state=1");
    let frames = accept(session, &asked);
    assert_eq!(tool_result(&world), r#"{"action": "accept"}"#, "an address takes no content");
    let done: Vec<_> = frames.iter().filter(|it| it["subtype"] == "elicitation_complete").collect();
    assert_eq!(done.len(), 1, "what was asked is told once, and nothing else: {frames:?}");
    assert_eq!(
        (&done[0]["mcp_server_name"], &done[0]["elicitation_id"], &done[0]["type"]),
        (&json!("s"), &json!("e1"), &json!("system"))
    );
    assert!(done[0]["uuid"].is_string() && done[0]["session_id"].is_string(), "{}", done[0]);
}

#[tokio::test]
async fn call_that_is_refused_until_a_page_was_visited_is_repeated_then() {
    for (answer, expected) in [("accept", "members"), ("decline", "for members")] {
        let world = World::new([]).await;
        let done = world.home.project().with_file_name("done");
        let call = Step::call("mcp__s__members", json!({"done": done}));
        let world = world.then([call, Step::text("Done.")]).await;
        let servers = config(json!({"s": entry(&[])}));
        let mut session = world.start(&stream(["--mcp-config", &servers, "--allowedTools", "mcp__s"]));
        session.write_json(&user("go"));
        let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "elicitation");
        assert_eq!(asked["request"]["url"], "https://example.com/join", "{asked}");
        session.write_json(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": asked["request_id"], "response": {"action": answer},
        }}));
        if answer == "accept" {
            std::fs::write(&done, "").unwrap();
        }
        session.wait_for_json(is_result);
        session.close_stdin();
        session.finish();
        assert!(tool_result(&world).contains(expected), "{answer}: {}", tool_result(&world));
        assert_eq!(world.last_request().tool_results()[0].is_error, answer == "decline");
    }
}

#[tokio::test]
async fn prompts_of_a_server_are_told_when_they_change() {
    let world = World::new([Step::call("mcp__s__renew", json!({})), Step::text("Done.")]).await;
    let servers = config(json!({"s": entry(&["--all", "--delay", "0.5"])}));
    let mut session = world.start(&stream(["--mcp-config", &servers, "--allowedTools", "mcp__s"]));
    session.write_json(&control("i", json!({"subtype": "initialize"})));
    session.wait_for_json(answer_to("i"));
    let of_server = |frame: &Value| -> Vec<String> {
        let commands = frame["commands"].as_array().cloned().unwrap_or_default();
        let names = commands.iter().filter_map(|it| it["name"].as_str().map(str::to_owned));
        names.filter(|name| name.starts_with("mcp__")).collect()
    };
    // Before any turn: as soon as it is connected.
    let told = session.wait_for_json(|frame| frame["subtype"] == "commands_changed");
    assert_eq!(of_server(&told), ["mcp__s__review"], "{told}");
    session.write_json(&user("go"));
    let told = session.wait_for_json(|frame| frame["subtype"] == "commands_changed");
    assert_eq!(of_server(&told), ["mcp__s__check"], "what is gone is not offered any more: {told}");
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
}

#[tokio::test]
async fn question_of_a_server_goes_to_hooks_first_and_to_nobody_at_last() {
    let world = World::new([Step::call("mcp__s__ask", json!({})), Step::text("Done.")]).await;
    let run =
        print(["hi", "--allowedTools", "mcp__s"]).args(["--mcp-config", &config(json!({"s": entry(&[])}))]);
    world.run(&run);
    assert_eq!(tool_result(&world), r#"{"action": "cancel"}"#, "nobody is there");
    let said = json!({"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": {"name": "Eve"}}});
    let hook = json!({"type": "command", "command": format!("echo '{said}'")});
    world.home.write_config(
        "settings.json",
        json!({"hooks": {"Elicitation": [{"matcher": "s", "hooks": [hook]}]}}).to_string(),
    );
    let world = world.then([Step::call("mcp__s__ask", json!({})), Step::text("Done.")]).await;
    world.run(&run);
    assert_eq!(tool_result(&world), r#"{"action": "accept", "content": {"name": "Eve"}}"#);
}

#[tokio::test]
async fn hook_that_is_a_tool_of_a_server_has_its_say() {
    let world = World::new([Step::call("mcp__s__count", json!({})), Step::text("Done.")]).await;
    let handler = json!({"type": "mcp_tool", "server": "s", "tool": "echo", "input": {"decision": "block", "reason": "${tool_name} is not wanted"}});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "mcp__s__.*", "hooks": [handler]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    let servers = config(json!({"s": entry(&[])}));
    world.run(&print(["hi", "--allowedTools", "mcp__s", "--mcp-config", &servers]));
    assert!(tool_result(&world).contains("mcp__s__count is not wanted"), "{}", tool_result(&world));
}

#[tokio::test]
async fn hook_has_the_last_word_about_an_answer() {
    let world = World::new([Step::call("mcp__s__ask", json!({})), Step::text("Done.")]).await;
    let said = json!({"hookSpecificOutput": {"hookEventName": "ElicitationResult", "action": "decline"}});
    let seen = world.home.project().join("seen");
    let command = format!("cat > '{}'; echo '{said}'", seen.display());
    let hooks = json!({"hooks": {"ElicitationResult": [{"matcher": "s", "hooks": [{"type": "command", "command": command}]}]}});
    world.home.write_config("settings.json", hooks.to_string());
    let servers = config(json!({"s": entry(&[])}));
    let mut session = world.start(&stream(["--mcp-config", &servers, "--allowedTools", "mcp__s"]));
    session.write_json(&user("go"));
    let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "elicitation");
    accept(session, &asked);
    assert_eq!(tool_result(&world), r#"{"action": "decline"}"#);
    let input: Value = serde_json::from_str(&std::fs::read_to_string(seen).unwrap()).unwrap();
    assert_eq!(
        (&input["hook_event_name"], &input["action"]),
        (&json!("ElicitationResult"), &json!("accept")),
        "{input}"
    );
    assert_eq!(input["mcp_server_name"], "s", "{input}");
}

#[tokio::test]
async fn tools_are_called_and_resources_read_for_the_client_without_a_turn() {
    let world = World::new([]).await;
    let servers = config(json!({"s": entry(&["--all"])}));
    let mut session = world.start(&stream(["--mcp-config", &servers]));
    let mut ask = |id: &str, request: Value| {
        session.write_json(&control(id, request));
        session.wait_for_json(answer_to(id))["response"].clone()
    };
    // Servers may still be starting.
    let mut echo = Value::Null;
    for n in 0..200 {
        echo = ask(
            &format!("c{n}"),
            json!({"subtype": "mcp_call", "tool": "mcp__s__echo", "arguments": {"text": "x"}}),
        );
        if echo["subtype"] == "success" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let content = &echo["response"]["content"];
    assert_eq!(content, &json!([{"type": "text", "text": "{\"text\": \"x\"}"}]), "{echo}");
    let failed = ask("f", json!({"subtype": "mcp_call", "tool": "mcp__s__fail"}));
    assert_eq!(failed["response"]["isError"], true, "{failed}");
    let typed = ask("t", json!({"subtype": "mcp_call", "tool": "mcp__s__typed", "arguments": {"n": 4}}));
    assert_eq!(typed["response"]["structuredContent"], json!({"n": 4}), "{typed}");
    let read = ask("r", json!({"subtype": "mcp_read_resource", "serverName": "s", "uri": "note://today"}));
    let row = &read["response"]["contents"][0];
    assert_eq!((&row["uri"], &row["text"]), (&json!("note://today"), &json!("buy milk")), "{read}");
    for (id, bad, why) in [
        ("1", json!({"subtype": "mcp_call", "tool": "mcp__s__none"}), "There is no MCP tool `mcp__s__none`"),
        (
            "2",
            json!({"subtype": "mcp_call", "tool": "mcp__s__echo", "check_permissions": true}),
            "check_permissions",
        ),
        ("3", json!({"subtype": "mcp_read_resource", "serverName": "x", "uri": "u"}), "no MCP server `x`"),
    ] {
        let answer = ask(id, bad);
        assert!(answer["error"].as_str().is_some_and(|text| text.contains(why)), "{answer}");
    }
    assert_eq!(session.finish().code, Some(0));
    assert_eq!(world.requests().len(), 0);
}

/// Plays the server in the client: answers one request of the process, and returns its method.
fn play_server(session: &mut Session, tools: &[&str]) -> String {
    let asked = session.wait_for_json(|frame| frame["request"]["subtype"] == "mcp_message");
    let message = &asked["request"]["message"];
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let rows: Vec<Value> = tools
        .iter()
        .map(|name| json!({"name": name, "description": "Does.", "inputSchema": {"type": "object"}}))
        .collect();
    let result = match method.as_str() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "calc", "version": "1"},
        }),
        "tools/list" => json!({"tools": rows}),
        _ => json!({}),
    };
    let answer = json!({"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}});
    session.write_json(&json!({"type": "control_response", "response": {
        "subtype": "success", "request_id": asked["request_id"], "response": answer,
    }}));
    method
}

#[tokio::test]
async fn mcp_message_of_the_client_tells_that_its_server_has_other_tools() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let servers = config(json!({"calc": {"type": "sdk", "name": "calc"}}));
    let mut session = world.start(&stream(["--mcp-config", &servers]));
    session.write_json(&user("one"));
    for expected in ["initialize", "notifications/initialized", "tools/list"] {
        assert_eq!(play_server(&mut session, &["add"]), expected);
    }
    session.wait_for_json(is_result);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    session.write_json(&control(
        "n",
        json!({"subtype": "mcp_message", "server_name": "calc", "message": changed}),
    ));
    assert_eq!(play_server(&mut session, &["add", "subtract"]), "tools/list");
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    let frames = session.finish().json_lines();
    assert!(
        frames.iter().any(|it| it["response"]["request_id"] == "n" && it["response"]["subtype"] == "success")
    );
    let tools = |request: &loci_testkit::Recorded| request.json["tools"].to_string();
    let requests = world.requests();
    assert!(!tools(&requests[0]).contains("mcp__calc__subtract"));
    assert!(requests[1].json.to_string().contains("mcp__calc__subtract"), "{}", tools(&requests[1]));
}
