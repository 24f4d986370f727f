//! The configuration contract, point by point.

use loci_testkit::Step;
use serde_json::{Value, json};

use super::{ask, configure, entry, main_requests, result_of};
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
    let echo = Step::status(401).raw_body("application/json", &words.to_string());
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

/// 13: the list and the check.
#[tokio::test]
async fn models_are_listed_and_checked() {
    let world = World::new([Step::text("hi")]).await;
    let mut mine = entry(&world, "chat");
    mine["models"] = json!({"m": {"window": 32_768, "price": {"input": 1.25, "output": 10}}});
    let locked = json!({"protocol": "chat", "baseUrl": "http://127.0.0.1:1/v1", "apiKeyEnv": "MY_KEY", "models": {"x": {}}});
    configure(&world, json!({"mine": mine, "locked": locked}));
    let output = world.run(&loci().args(["models", "list"]));
    assert_fine(&output);
    assert!(
        output.stdout.contains("mine/m  32768 tokens, $1.25 in, $10 out per million tokens\n"),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("mine/local-7b  65536 tokens, price unknown\n"), "{}", output.stdout);
    assert!(output.stdout.contains("locked/x  128000 tokens, price unknown\n"), "{}", output.stdout);
    assert!(output.stdout.contains("claude-opus-5"), "{}", output.stdout);
    let output = world.run(&loci().args(["models", "list", "--json"]));
    let list: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let row = list.iter().find(|row| row["name"] == "mine/m").unwrap();
    assert_eq!(
        *row,
        json!({"name": "mine/m", "provider": "mine", "protocol": "chat", "window": 32_768, "maxOutput": 8_192,
        "price": {"input": 1.25, "output": 10.0, "cacheRead": 1.25}})
    );
    let check = |name: &str| world.run(&loci().args(["models", "check", name]).env("MY_KEY", KEY));
    let output = check("mine/m");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.starts_with("mine/m answers"), "{output:?}");
    let output = check("locked/x");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("127.0.0.1:1") && !output.stderr.contains(KEY), "{output:?}");
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
