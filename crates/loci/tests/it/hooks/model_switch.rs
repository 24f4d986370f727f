//! Hooks of another model: who may choose it, and what they are told.

use loci_testkit::{Session, Step};
use serde_json::{Value, json};

use super::{KEEP, answering, command, configure, kept, specific};
use crate::support::{World, control, is_result, print, stream, user};

fn set_model(session: &mut Session, model: &str) -> Value {
    session.write_json(&control("m", json!({"subtype": "set_model", "model": model})));
    session.wait_for_json(|frame| frame["response"]["request_id"] == "m")["response"].clone()
}

fn model_of_last_request(world: &World) -> String {
    world.last_request().json["model"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn model_that_a_hook_refuses_is_not_asked() {
    let deny = |word: &str| {
        specific(
            "PreModelSwitch",
            json!({"permissionDecision": word, "permissionDecisionReason": "too dear"}),
        )
    };
    for (hook, is_refused) in [
        (answering("", &deny("deny")), true),
        (answering("", &deny("ask")), true),
        (command("", "echo too dear >&2; exit 2"), true),
        (answering("", &deny("allow")), false),
        (answering("claude-haiku-.*", &deny("deny")), false),
        (command("", "exit 1"), false),
    ] {
        let world = World::new([Step::text("One."), Step::text("Two.")]).await;
        configure(&world, json!({"PreModelSwitch": hook}));
        let mut session = world.start(&stream([]));
        session.write_json(&user("one"));
        session.wait_for_json(is_result);
        let before = model_of_last_request(&world);
        let answer = set_model(&mut session, "claude-opus-4-8");
        match is_refused {
            true => {
                let found = (&answer["subtype"], &answer["error_code"], &answer["model"]);
                assert_eq!(found, (&json!("error"), &json!("blocked_by_hook"), &json!(before)), "{hook}");
                assert!(answer["error"].as_str().unwrap().contains("too dear"), "{answer}");
            }
            false => assert_eq!(answer["response"]["model"], "claude-opus-4-8", "{hook} {answer}"),
        }
        session.write_json(&user("two"));
        session.wait_for_json(is_result);
        session.close_stdin();
        session.finish();
        let asked = model_of_last_request(&world);
        assert_eq!(asked == before, is_refused, "{hook}: {asked}");
    }
}

/// A prompt behind another model is for that model, however long hooks think.
#[tokio::test]
async fn prompt_behind_a_model_waits_for_the_hooks_and_payloads_tell_all() {
    let world = World::new([Step::text("One.").usage(100, 20, 3, 4), Step::text("Two.")]).await;
    let told = specific("PostModelSwitch", json!({"additionalContext": "be brief now"}));
    configure(
        &world,
        json!({
            "PreModelSwitch": command("claude-opus-4-8", &format!("sleep 0.5; {KEEP}")),
            "PostModelSwitch": command("", &format!("{KEEP}; echo '{told}'")),
        }),
    );
    let mut session = world.start(&stream([]));
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    session.write_json(&control("m", json!({"subtype": "set_model", "model": "claude-opus-4-8"})));
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    session.close_stdin();
    session.finish();
    assert_eq!(model_of_last_request(&world), "claude-opus-4-8");
    let payloads = kept(&world, "kept.jsonl");
    let names: Vec<&Value> = payloads.iter().map(|it| &it["hook_event_name"]).collect();
    assert_eq!(names, ["PreModelSwitch", "PostModelSwitch"]);
    let keys = payloads[0].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys,
        "session_id transcript_path cwd prompt_id hook_event_name from_model to_model requested_model source \
         context_tokens prompt_cache_warm cache_ttl estimated_cache_write_usd pricing"
    );
    let fields = ["to_model", "requested_model", "source", "prompt_cache_warm", "cache_ttl", "pricing"];
    let found: Vec<&Value> = fields.iter().map(|field| &payloads[0][field]).collect();
    assert_eq!(json!(found), json!(["claude-opus-4-8", "claude-opus-4-8", "sdk", true, "5m", "catalog"]));
    assert!(payloads[0]["context_tokens"].as_u64().unwrap() > 100, "{}", payloads[0]);
    assert!(payloads[0]["estimated_cache_write_usd"].as_f64().unwrap() > 0.0, "{}", payloads[0]);
}

#[tokio::test]
async fn no_hook_of_models_runs_at_the_start_or_for_the_same_model() {
    let world = World::new([Step::text("One.")]).await;
    configure(&world, json!({"PreModelSwitch": command("", &format!("{KEEP}; exit 2"))}));
    let mut session = world.start(&stream(["--model", "claude-opus-4-8"]));
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    assert_eq!(set_model(&mut session, "claude-opus-4-8")["subtype"], "success");
    session.close_stdin();
    session.finish();
    assert_eq!(kept(&world, "kept.jsonl"), [json!(null); 0]);
}

#[tokio::test]
async fn slash_command_says_that_a_hook_keeps_the_model() {
    let world = World::new([Step::text("One.")]).await;
    configure(&world, json!({"PreModelSwitch": command("", &format!("{KEEP}; echo too dear >&2; exit 2"))}));
    let output = world.run(&print(["/model claude-opus-4-8", "--output-format", "json"]));
    assert!(output.stdout.contains("too dear"), "{output:?}");
    assert_eq!(kept(&world, "kept.jsonl")[0]["source"], "command");
}
