//! A server made with the official SDK: it was written for other clients and knows nothing of us.

use std::sync::{Arc, Mutex};

use loci_mcp::{ContentPart, ElicitationAnswer, Progress, ServerStatus};
use serde_json::{Map, Value, json};

use crate::support::{Answering, World, official_sdk, script, until};

/// Returns a world with the official server in it; none if there is no Python.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
async fn official() -> Option<World> {
    let Some(python) = official_sdk() else {
        eprintln!("skipped: there is no python3 on this machine");
        return None;
    };
    let python = python.script("x").get_program().to_string_lossy().into_owned();
    let entry = json!({"command": python, "args": [script("official_server.py"), "stdio"]});
    let world = World::start(json!({"official": entry}), &[]).await;
    assert_eq!(
        world.status("official"),
        (ServerStatus::Connected, String::new()),
        "{}",
        world.log("official")
    );
    Some(world)
}

#[tokio::test]
async fn everything_a_server_has_is_listed() {
    let Some(world) = official().await else { return };
    let view = world.view("official");
    let handshake = view.handshake.unwrap();
    assert_eq!((handshake.name.as_str(), handshake.protocol.as_str()), ("official", "2025-11-25"));
    assert_eq!(handshake.instructions.as_deref(), Some("Use add for sums."));
    let names: Vec<&str> =
        view.offer.tools.iter().map(|(name, _)| name.trim_start_matches("mcp__official__")).collect();
    assert_eq!(names, ["add", "ask", "echo", "fail", "grow", "large", "picture", "slow", "where"]);
    assert!(view.offer.tools[0].1.is_read_only && !view.offer.tools[1].1.is_read_only);
    assert_eq!(
        view.offer.resources.iter().map(|it| it.uri.as_str()).collect::<Vec<_>>(),
        ["note://today", "bytes://raw"]
    );
    let prompt = &view.offer.prompts[0];
    let arguments: Vec<_> = prompt.arguments.iter().map(|it| (it.name.as_str(), it.is_required)).collect();
    assert_eq!((prompt.name.as_str(), arguments), ("review", vec![("code", true), ("tone", false)]));
    assert_eq!(world.servers.take_notices(), [""; 0]);
}

#[tokio::test]
async fn calls_give_text_data_pictures_and_failures() {
    let Some(world) = official().await else { return };
    let call = |tool: &'static str, arguments: Value| {
        world.servers.call("official", tool, arguments, Value::Null, None)
    };
    let sum = call("add", json!({"a": 2, "b": 3})).await.unwrap();
    assert_eq!((sum.text().as_str(), sum.structured, sum.is_error), ("5", Some(json!({"result": 5})), false));
    let picture = call("picture", json!({})).await.unwrap();
    assert!(
        matches!(&picture.parts[..], [ContentPart::Image { mime_type, .. }] if mime_type == "image/png"),
        "{picture:?}"
    );
    let failed = call("fail", json!({})).await.unwrap();
    assert!(failed.is_error && failed.text().contains("Error executing tool fail"), "{failed:?}");
    let wrong = call("add", json!({"a": "x"})).await.unwrap();
    assert!(wrong.is_error, "{wrong:?}");
}

#[tokio::test]
async fn progress_is_told_while_a_call_runs() {
    let Some(world) = official().await else { return };
    let heard: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let hearing = Arc::clone(&heard);
    let on_progress = Arc::new(move |progress| hearing.lock().unwrap().push(progress));
    let result =
        world.servers.call("official", "slow", json!({}), Value::Null, Some(on_progress)).await.unwrap();
    assert_eq!(result.text(), "done");
    let heard = heard.lock().unwrap();
    let last = heard.last().unwrap();
    assert_eq!(
        (heard.len(), last.done, last.total, last.message.as_deref()),
        (3, 3.0, Some(3.0), Some("step 3"))
    );
}

#[tokio::test]
async fn resources_are_read_and_prompts_filled_in() {
    let Some(world) = official().await else { return };
    let read = world.servers.read("official", "note://today").await.unwrap();
    assert_eq!(read, [ContentPart::Text("buy milk".to_owned())]);
    let read = world.servers.read("official", "bytes://raw").await.unwrap();
    assert!(matches!(&read[..], [ContentPart::Blob { base64, .. }] if base64 == "AAE="), "{read:?}");
    assert!(world.servers.read("official", "note://never").await.is_err());
    let arguments = Map::from_iter([("code".to_owned(), json!("x = 1"))]);
    let messages = world.servers.prompt("official", "review", arguments).await.unwrap();
    let said = "Review this in a kind tone: x = 1".to_owned();
    assert_eq!(messages, [("user".to_owned(), ContentPart::Text(said))]);
    assert!(world.servers.prompt("official", "review", Map::new()).await.is_err());
}

#[tokio::test]
async fn questions_of_a_server_reach_whoever_answers() {
    let Some(world) = official().await else { return };
    assert_eq!(
        world.call("official", "ask", json!({})).await,
        Ok("cancel None".to_owned()),
        "nobody is there"
    );
    let accept =
        Answering::new(ElicitationAnswer::Accept(Map::from_iter([("name".to_owned(), json!("Ada"))])));
    world.servers.set_client(accept.clone());
    assert_eq!(world.call("official", "ask", json!({})).await, Ok("accept name='Ada' age=30".to_owned()));
    assert_eq!(accept.asked.lock().unwrap()[0].message, "Who are you?");
    assert_eq!(
        world.call("official", "where", json!({})).await,
        Ok("file:///first file:///second%20place".to_owned())
    );
}

#[tokio::test]
async fn tool_that_is_announced_later_is_listed() {
    let Some(world) = official().await else { return };
    assert_eq!(world.call("official", "grow", json!({})).await, Ok("grown".to_owned()));
    until("the new tool is listed", || world.tools("official").contains(&"mcp__official__grown".to_owned()))
        .await;
    assert_eq!(world.call("official", "grown", json!({})).await, Ok("new".to_owned()));
}
