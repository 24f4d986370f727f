//! What servers may offer beside plain tools: data with a schema, questions for the model, news of directories.

use loci_testkit::{Script, Step};
use serde_json::json;

use super::{config, entry};
use crate::settings::tool_result;
use crate::support::{World, is_result, print, stream, user};

#[tokio::test]
async fn data_that_does_not_fit_its_schema_is_an_error_and_is_shown() {
    for (n, is_error) in [(json!(7), false), (json!("seven"), true)] {
        let world = World::new([Step::call("mcp__s__typed", json!({"n": n})), Step::text("Done.")]).await;
        let servers = config(json!({"s": entry(&[])}));
        world.run(&print(["hi", "--allowedTools", "mcp__s", "--mcp-config", &servers]));
        let result = world.last_request().tool_results().remove(0);
        assert_eq!(result.is_error, is_error, "{result:?}");
        let text = tool_result(&world);
        match is_error {
            false => assert_eq!(text, r#"{"n":7}"#),
            true => assert!(
                text.contains("does not fit the schema") && text.contains("`n`") && text.ends_with("typed"),
                "what the server says in words is kept: {text}"
            ),
        }
    }
}

#[tokio::test]
async fn server_asks_the_model_only_where_the_user_lets_it() {
    let calls = || {
        let steps = [Step::call("mcp__s__sample", json!({})), Step::text("Done.")];
        // What has no tools is no step of the conversation.
        Script::new(steps).side_answer(Step::text("Two words."))
    };
    let servers = config(json!({"s": entry(&[])}));
    let run = print(["hi", "--allowedTools", "mcp__s", "--mcp-config", &servers]);
    let asked_by_server = |world: &World| {
        let requests = world.model.requests().into_iter();
        requests.filter(|it| it.json.to_string().contains("Two words?") && !it.is_main()).collect::<Vec<_>>()
    };
    let world = World::new(calls()).await;
    world.run(&run);
    assert!(tool_result(&world).contains("-32601"), "{}", tool_result(&world));
    assert!(!tool_result(&world).contains("sampling,") && asked_by_server(&world).is_empty());
    let world = World::new(calls()).await;
    world.home.write_config("settings.json", json!({"mcpSampling": ["s"]}).to_string());
    let output = world.run(&run);
    assert_eq!(output.stdout, "Done.\n", "{output:?}");
    let asked = asked_by_server(&world);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].json["messages"][0]["content"][0]["text"], "Two words?");
    assert!(asked[0].system_text().contains("Be a server's."), "{:?}", asked[0].json);
    assert_eq!(asked[0].json["max_tokens"], 100);
    let result = tool_result(&world);
    assert!(result.contains(r#""text": "Two words.""#) && result.contains("endTurn"), "{result}");
    assert!(result.contains("sampling"), "it was declared: {result}");
}

#[tokio::test]
async fn project_cannot_let_its_server_ask_the_model() {
    let world = World::new([Step::call("mcp__s__sample", json!({})), Step::text("Done.")]).await;
    world.home.write(".claude/settings.json", json!({"mcpSampling": ["s"]}).to_string());
    world.home.write(".mcp.json", config(json!({"s": entry(&[])})));
    world.home.write_config("settings.json", json!({"mcpSampling": ["s"]}).to_string());
    crate::settings::trust(&world);
    world.run(&print(["hi", "--allowedTools", "mcp__s"]));
    assert!(tool_result(&world).contains("-32601"), "{}", tool_result(&world));
}

#[tokio::test]
async fn server_is_told_of_a_directory_that_is_added() {
    let world =
        World::new([Step::text("One."), Step::call("mcp__s__roots", json!({})), Step::text("Done.")]).await;
    let news = world.home.project().with_file_name("roots");
    let more = world.home.project().with_file_name("more");
    std::fs::create_dir(&more).unwrap();
    let servers = config(json!({"s": entry(&["--roots", &news.display().to_string()])}));
    let mut session = world.start(&stream(["--mcp-config", &servers, "--allowedTools", "mcp__s"]));
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    let request = json!({"subtype": "register_repo_root", "directory": more});
    session.write_json(&json!({"type": "control_request", "request_id": "r", "request": request}));
    session.wait_for_json(|frame| frame["response"]["request_id"] == "r");
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    session.close_stdin();
    session.finish();
    assert_eq!(std::fs::read_to_string(news).unwrap(), "changed\n");
    assert!(tool_result(&world).contains("/more"), "{}", tool_result(&world));
}
