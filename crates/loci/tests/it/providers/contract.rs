//! The configuration contract, point by point.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{ask, configure, entry, main_requests, result_of, talk};
use crate::support::{World, assert_fine, loci};

const KEY: &str = "sk-very-secret-key-123";

/// 1: no file of a project names a provider, nor a variable of one.
#[tokio::test]
async fn project_files_name_no_provider() {
    let world = World::new([Step::text("hi")]).await;
    crate::settings::trust(&world);
    let providers = json!({"providers": {"mine": entry(&world, "chat")}, "env": {"OPENAI_BASE_URL": world.model.base_url()}});
    for file in [".claude/settings.json", ".claude/settings.local.json"] {
        world.home.write(file, providers.to_string());
        let output = world.run(&ask("mine/m"));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains("`mine` is no provider"), "{file}: {output:?}");
        let output = world.print(["hello"]);
        assert_eq!(output.stderr.matches("`providers`").count(), 1, "{file}: {output:?}");
        assert!(output.stderr.contains("OPENAI_BASE_URL"), "{file}: {output:?}");
        let output = world.run(
            &ask("openai/m")
                .env("OPENAI_API_KEY", KEY)
                .env("CLAUDE_CODE_MAX_RETRIES", "0")
                .env("HTTPS_PROXY", "http://127.0.0.1:1"),
        );
        assert_ne!(output.code, Some(0), "{output:?}");
        std::fs::remove_file(world.home.project().join(file)).unwrap();
    }
    assert!(main_requests(&world).iter().all(|request| request.path.starts_with("/v1/messages")));
    let output = world.run(&ask("mine/m").args(["--settings", &providers.to_string()]));
    assert_eq!(result_of(&output)["result"], "done");
    assert_eq!(world.last_request().path, "/v1/chat/completions");
}

/// 7: a full name is taken wherever a model is.
#[tokio::test]
async fn full_name_is_taken_from_the_environment_settings_and_the_command() {
    let world = World::new([Step::text("hi")]).await;
    configure(&world, json!({"mine": entry(&world, "chat")}));
    let named = |name: &str| {
        let paths = main_requests(&world).iter().filter(|it| it.path == "/v1/chat/completions").count();
        let last = world.last_request();
        assert_eq!((last.path.as_str(), &last.json["model"]), ("/v1/chat/completions", &json!(name)));
        paths
    };
    let plain = || loci().args(["-p", "hello", "--output-format", "json"]).env("ANTHROPIC_API_KEY", "");
    assert_fine(&world.run(&plain().env("ANTHROPIC_MODEL", "mine/of-the-environment")));
    assert_eq!(named("of-the-environment"), 1);
    let settings = json!({"model": "mine/of-the-settings"}).to_string();
    assert_fine(&world.run(&plain().args(["--settings", &settings])));
    assert_eq!(named("of-the-settings"), 2);
}

/// 2: an entry that cannot be used is a failure of its own models, and of no other.
#[tokio::test]
async fn broken_entry_concerns_its_own_models_alone() {
    let world = World::new([Step::text("hi")]).await;
    configure(
        &world,
        json!({"bad": {"protocol": "telepathy", "baseUrl": "http://h"}, "mine": entry(&world, "chat")}),
    );
    let output = world.run(&ask("bad/m"));
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("`bad`") && output.stderr.contains("telepathy"), "{output:?}");
    assert_fine(&world.run(&ask("mine/m")));
}

/// A slip in an entry is told: without its key a server is asked without one, without its window a model is thought large.
#[tokio::test]
async fn unknown_key_of_an_entry_is_told_by_the_run_and_by_the_doctor() {
    let world = World::new(Step::text("Hi.")).await;
    let mut slip = entry(&world, "chat");
    slip["apiKeyEnvv"] = json!("LOCAL_KEY");
    configure(&world, json!({"local": slip, "odd": {"protocol": "chats"}}));
    let notice = "`providers.local.apiKeyEnvv` has no effect: no such key is known; `apiKeyEnv` is meant?";
    let output = world.run(&ask("local/tiny"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(output.stderr, format!("Settings: {notice}\n"));
    let doctor = world.run(&loci().arg("doctor"));
    assert_eq!(doctor.code, Some(1));
    assert!(doctor.stdout.contains(notice), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("The provider `odd` cannot be used: `protocol`"), "{}", doctor.stdout);
}

/// 3: a slash at the end changes nothing, and redirects are not followed.
#[tokio::test]
async fn address_is_taken_as_it_stands() {
    let elsewhere = World::new([Step::text("stolen")]).await;
    let moved =
        Step::status(307).header("location", &format!("{}/v1/chat/completions", elsewhere.model.base_url()));
    let world = World::new([Step::text("hi"), moved]).await;
    configure(
        &world,
        json!({"mine": {"protocol": "chat", "baseUrl": format!("{}/v1/", world.model.base_url())}}),
    );
    assert_fine(&world.run(&ask("mine/m")));
    assert_eq!(world.last_request().path, "/v1/chat/completions");
    let output = world.run(&ask("mine/m"));
    assert_eq!(result_of(&output)["is_error"], true, "{output:?}");
    assert!(output.stdout.contains("providers.mine.baseUrl"), "{output:?}");
    assert!(elsewhere.model.requests().is_empty());
}

/// 4: whose key goes where, and that nobody else ever sees it.
#[tokio::test]
async fn keys_go_to_their_own_server_and_nowhere_else() {
    let words = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}});
    let echo = Step::status(401).raw_body("application/json", words.to_string());
    let run_env = Step::call("Bash", json!({"command": "env", "description": "Show variables"}));
    let world = World::new([run_env, Step::text("done"), echo]).await;
    let mut entry = entry(&world, "chat");
    entry["apiKeyEnv"] = "MY_KEY".into();
    entry["headers"] = json!({"X-Team": "a ${TEAM_TOKEN}"});
    configure(&world, json!({"mine": entry}));
    let binary = ask("mine/m")
        .env("MY_KEY", KEY)
        .env("TEAM_TOKEN", "team-token-77")
        .env("ANTHROPIC_API_KEY", "sk-ant-mine");
    let binary = binary
        .env("ANTHROPIC_CUSTOM_HEADERS", "X-Private: first")
        .env("ANTHROPIC_BETAS", "some-beta")
        .env("CLAUDE_CODE_EXTRA_BODY", r#"{"private": 1}"#);
    let traced = binary.clone().args(["--allowedTools", "Bash", "--debug-file", &world.path("trace.txt")]);
    let output = world.run(&traced);
    assert_eq!(result_of(&output)["result"], "done", "{output:?}");
    let requests = main_requests(&world);
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(requests[0].header("x-team"), Some("a team-token-77"));
    for name in ["x-api-key", "x-private", "anthropic-beta", "anthropic-version"] {
        assert_eq!(requests[0].header(name), None, "{name}");
    }
    let body = requests[1].json.to_string();
    assert!(body.contains("PATH=") && !body.contains(KEY) && !body.contains("team-token-77"), "{body}");
    assert!(!body.contains("sk-ant-mine") && !body.contains("\"private\""), "{body}");
    let output = world.run(&binary);
    assert!(output.stdout.contains("Incorrect API key provided: [redacted]"), "{output:?}");
    assert!(output.stdout.contains("MY_KEY"), "{output:?}");
    let trace = world.home.read("trace.txt");
    assert!(trace.contains("request sent"), "{trace}");
    for text in [&trace, &output.stdout, &output.stderr] {
        assert!(!text.contains(KEY) && !text.contains("team-token-77"), "{text}");
    }
    for session in world.home.sessions() {
        let text = std::fs::read_to_string(session).unwrap();
        assert!(!text.contains(KEY) && !text.contains("team-token-77"));
    }
}

/// 4: a key that is missing is named before anything is sent; a command's key is used, and asked for again when refused.
#[tokio::test]
async fn missing_key_is_named_and_helpers_are_run() {
    let world = World::new([Step::status(401), Step::text("hi")]).await;
    let mut entry = entry(&world, "chat");
    entry["apiKeyEnv"] = "MY_KEY".into();
    configure(&world, json!({"mine": entry.clone()}));
    for value in ["", " "] {
        let output = world.run(&ask("mine/m").env("MY_KEY", value));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains("MY_KEY"), "{output:?}");
    }
    assert!(world.model.requests().is_empty());
    entry["apiKeyHelper"] = "echo x >> runs; echo key-$(wc -l < runs)".into();
    configure(&world, json!({"mine": entry}));
    assert_eq!(result_of(&world.run(&ask("mine/m")))["result"], "hi");
    let keys: Vec<String> =
        world.model.main_requests().iter().map(|it| it.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(keys, ["Bearer key-1", "Bearer key-2"]);
}

/// 7: a name that is no provider's is an id of the first provider.
#[tokio::test]
async fn slashes_in_ids_of_the_first_provider_stay() {
    let world = World::new([Step::text("hi")]).await;
    assert_fine(&world.run(&loci().args(["-p", "hello", "--model", "vendor/model:free"])));
    assert_eq!(world.last_request().json["model"], "vendor/model:free");
}

/// 9: what the server says of its window counts, and one that is too small is refused.
#[tokio::test]
async fn window_comes_from_the_server_and_must_be_large_enough() {
    let world = World::new([Step::text("hi"), Step::text("hi"), Step::text("hi")]).await;
    let mut small = entry(&world, "chat");
    small["models"] = json!({"tiny": {"window": 4_096}, "said": {"window": 40_000}});
    configure(&world, json!({"mine": small}));
    let window = |model: &str, variables: &[(&str, &str)]| {
        let binary = variables.iter().fold(ask(model), |binary, (name, value)| binary.env(name, *value));
        result_of(&world.run(&binary))["modelUsage"][model]["contextWindow"].clone()
    };
    assert_eq!(window("mine/local-7b", &[]), 65_536);
    assert_eq!(window("mine/said", &[]), 40_000);
    assert_eq!(window("mine/said", &[("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "50000")]), 50_000);
    assert_eq!(window("mine/other", &[]), 128_000);
    let n_requests = main_requests(&world).len();
    let output = world.run(&ask("mine/tiny"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("4096") && output.stderr.contains("-c 32768"), "{output:?}");
    assert_eq!(main_requests(&world).len(), n_requests);
}

/// 10: without a price the cost is unknown, and a budget is refused.
#[tokio::test]
async fn price_unknown_is_said_and_budget_refused() {
    let world = World::new([Step::text("hi")]).await;
    configure(&world, json!({"mine": entry(&world, "chat")}));
    let result = result_of(&world.run(&ask("mine/claude-opus-5")));
    let usage = &result["modelUsage"]["mine/claude-opus-5"];
    assert_eq!((&usage["priceUnknown"], &usage["costUSD"]), (&json!(true), &json!(0.0)), "{result}");
    let output = world.run(&ask("mine/claude-opus-5").args(["--max-budget-usd", "1"]));
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("The price of `mine/claude-opus-5` is unknown"), "{output:?}");
}

/// 11: models that take no tools or no images get none.
#[tokio::test]
async fn tools_and_images_are_left_out_for_models_without() {
    let world = World::new([Step::text("hi")]).await;
    let mut entry = entry(&world, "chat");
    entry["models"] = json!({"m": {"tools": false, "effort": ["low", "high"]}});
    configure(&world, json!({"mine": entry}));
    let output = world.run(&ask("mine/m").args(["--effort", "medium"]));
    assert_eq!(result_of(&output)["result"], "ok", "{output:?}");
    let request = world.model.requests().into_iter().find(|it| it.path.ends_with("completions")).unwrap();
    assert_eq!((&request.json["tools"], &request.json["reasoning_effort"]), (&Value::Null, &json!("low")));
}

/// 4: where Messages are spoken, the key has the header of that API.
#[tokio::test]
async fn key_of_a_messages_provider_has_its_own_header() {
    let world = World::new([Step::text("hi")]).await;
    let mut entry = entry(&world, "messages");
    entry["apiKeyEnv"] = "MY_KEY".into();
    configure(&world, json!({"mine": entry}));
    assert_fine(&world.run(&ask("mine/m").env("MY_KEY", KEY)));
    let request = &main_requests(&world)[0];
    assert_eq!((request.header("x-api-key"), request.header("authorization")), (Some(KEY), None));
}

/// 11: reasoning in tags is split off where settings say so, and a text stands for an image that a model does not take.
#[tokio::test]
async fn think_tags_and_images_are_as_settings_say() {
    let world = World::new([Step::text("<think>Hm.</think>Seen.")]).await;
    let mut entry = entry(&world, "chat");
    entry["models"] = json!({"m": {"thinking": "tags", "images": false}});
    configure(&world, json!({"mine": entry}));
    let mut session = world.start(&talk("mine/m"));
    let pixel =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    session.write_json(&json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "text", "text": "look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}}]}}));
    let result = session.wait_for_json(crate::support::is_result);
    session.finish();
    assert_eq!(result["result"], "Seen.", "{result}");
    let body = main_requests(&world)[0].json.to_string();
    assert!(body.contains("this model takes no images") && !body.contains("image_url"), "{body}");
    let thought = world.session().iter().any(|entry| entry["message"]["content"][0]["thinking"] == "Hm.");
    assert!(thought, "{:?}", world.session());
}

/// What the table does not know of the first provider's models, settings say: a gateway's ids, say.
#[tokio::test]
async fn models_of_the_first_provider_are_described_by_settings() {
    let world = World::new([Step::text("a").usage(1000, 100, 0, 0), Step::text("b")]).await;
    let described = json!({"models": {
        "gateway-coder": {"window": 65_536, "maxOutput": 4_096, "price": {"input": 1.0, "output": 2.0}},
        "broken": {"window": "much"},
    }});
    world.home.write_config("settings.json", described.to_string());
    let binary = loci().args(["-p", "hello", "--output-format", "json", "--max-budget-usd", "5"]);
    let output = world.run(&binary.clone().args(["--model", "gateway-coder"]));
    let result = result_of(&output);
    let usage = &result["modelUsage"]["gateway-coder"];
    assert_eq!(
        (&usage["contextWindow"], &usage["maxOutputTokens"]),
        (&json!(65_536), &json!(4_096)),
        "{result}"
    );
    assert_eq!(usage.get("priceUnknown"), None, "{result}");
    assert_eq!(result["total_cost_usd"], 0.0012, "{result}");
    assert!(output.stderr.contains("`models.broken.window` is not a number of tokens"), "{}", output.stderr);
    assert_eq!(world.last_request().json["max_tokens"], 4_096);
    let refused = world.run(&binary.args(["--model", "gateway-other"]));
    assert!(refused.code != Some(0), "a model without a price has no budget: {refused:?}");
    // A project's files say nothing of prices.
    world.home.write(
        ".claude/settings.json",
        json!({"models": {"gateway-other": {"price": {"input": 0, "output": 0}}}}).to_string(),
    );
    let again = loci().args([
        "-p",
        "hello",
        "--output-format",
        "json",
        "--max-budget-usd",
        "5",
        "--model",
        "gateway-other",
    ]);
    assert!(world.run(&again).code != Some(0));
}
