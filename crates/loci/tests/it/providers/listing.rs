//! `loci models list` and `check` (13): what is configured, reachable and allowed, and what servers say of it.

use loci_testkit::{HttpDouble, Output, Step};
use serde_json::{Value, json};

use super::clouds::{BEDROCK, with_variables};
use super::{ask, configure, entry, result_of};
use crate::support::{World, loci};

const KEY: &str = "sk-very-secret-key-123";

fn list(world: &World) -> Output {
    let output = world.run(&loci().args(["models", "list"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    output
}

fn rows(world: &World) -> Vec<Value> {
    let output = world.run(&loci().args(["models", "list", "--json"]));
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test]
async fn models_are_listed_and_checked() {
    let world = World::new([Step::text("hi")]).await;
    let mut mine = entry(&world, "chat");
    mine["models"] = json!({"m": {"window": 32_768, "images": false, "effort": ["low", "high"],
        "price": {"input": 1.25, "output": 10}}});
    let locked = json!({"protocol": "chat", "baseUrl": "http://127.0.0.1:1/v1", "apiKeyEnv": "MY_KEY", "models": {"x": {}}});
    let silent = json!({"protocol": "chat", "baseUrl": "http://127.0.0.1:1/v1", "models": {"x": {"tools": false, "images": false}}});
    let broken = json!({"protocol": "telepathy", "baseUrl": "http://h"});
    let settings = json!({
        "providers": {"mine": mine, "locked": locked, "silent": silent, "broken": broken},
        "models": {"gateway-coder": {"window": 65_536}, "bad": {"window": "much"}},
        "availableModels": ["mine/m", "silent/x", "opus", "gateway-coder"],
    });
    world.home.write_config("settings.json", settings.to_string());
    let output = list(&world);
    for line in [
        "mine/m  32768 tokens, $1.25 in, $10 out per million tokens; tools, effort low/high\n",
        "mine/local-7b  65536 tokens, price unknown; tools, images (not allowed)\n",
        "locked/x  128000 tokens, price unknown; tools, images (not allowed) (no answer)\n",
        "silent/x  128000 tokens, price unknown; text alone (no answer)\n",
        "gateway-coder  65536 tokens, price unknown; tools, images\n",
        "claude-opus-5  1000000 tokens, $5 in, $25 out per million tokens; tools, images, thinking, effort low/medium/high/xhigh/max\n",
        "claude-haiku-4-5  200000 tokens, $1 in, $5 out per million tokens; tools, images, thinking (not allowed)\n",
    ] {
        assert!(output.stdout.contains(line), "{line}{}", output.stdout);
    }
    for note in [
        "The provider `broken` cannot be used: `protocol` is not",
        "The provider `locked` did not answer: `MY_KEY` is not set",
        "The provider `silent` did not answer: ",
        "`models.bad.window` is not a number of tokens",
        "These have no key: gemini, openai, openrouter",
    ] {
        assert!(output.stderr.contains(note), "{note}\n{}", output.stderr);
    }
    let rows = rows(&world);
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(
        *row("mine/m"),
        json!({"name": "mine/m", "provider": "mine", "protocol": "chat", "window": 32_768, "maxOutput": 8_192,
            "price": {"input": 1.25, "output": 10.0, "cacheRead": 1.25},
            "features": {"tools": true, "images": false, "thinking": false, "effort": ["low", "high"]},
            "allowed": true, "reachable": true})
    );
    assert_eq!((&row("silent/x")["reachable"], &row("silent/x")["allowed"]), (&json!(false), &json!(true)));
    assert_eq!(row("claude-opus-5")["reachable"], Value::Null);
    let check = |name: &str| world.run(&loci().args(["models", "check", name]).env("MY_KEY", KEY));
    let output = check("mine/m");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.starts_with("mine/m answers"), "{output:?}");
    let output = check("silent/x");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("127.0.0.1:1"), "{output:?}");
    let output = check("locked/x");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("availableModels") && !output.stderr.contains(KEY), "{output:?}");
}

/// With a cloud switched on, the models of the first provider are the cloud's, and a check goes there.
#[tokio::test]
async fn models_of_a_cloud_are_listed_and_checked() {
    let world = World::new([Step::text("fine")]).await;
    let with = |args: &[&str]| {
        world.run(
            &with_variables(&world, loci().args(args.iter().copied()), &BEDROCK)
                .env("ANTHROPIC_DEFAULT_HAIKU_MODEL", "my-own"),
        )
    };
    let output = with(&["models", "list", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let of_cloud: Vec<&Value> = rows.iter().filter(|row| row["provider"] == "bedrock").collect();
    let names: Vec<&str> = of_cloud.iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(names.contains(&"claude-opus-5") && names.contains(&"my-own"), "{names:?}");
    assert!(!names.contains(&"claude-opus-5-5"), "{names:?}");
    assert!(!rows.iter().any(|row| row["provider"] == "anthropic"), "{rows:?}");
    let opus = of_cloud.iter().find(|row| row["name"] == "claude-opus-4-8").unwrap();
    assert_eq!(opus["window"], 200_000, "clouds give it less");
    let output = with(&["models", "check", "sonnet"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("claude-sonnet-4-5 answers"), "{output:?}");
    let request = world.model.requests().pop().unwrap();
    assert!(request.path.starts_with("/model/eu.anthropic.claude-sonnet-4-5-"), "{}", request.path);
}

/// What a server says of its models counts where settings say nothing: limits and prices.
#[tokio::test]
async fn limits_and_prices_come_from_the_server() {
    let chunk = json!({"id": "a", "choices": [{"index": 0, "finish_reason": "stop", "delta": {"content": "hi"}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100}});
    let answer = format!("data: {chunk}\n\ndata: [DONE]\n\n");
    let server = HttpDouble::start(move |request| match request.path.as_str() {
        "/v1/models" => (
            200,
            json!({"data": [{"id": "vendor/coder", "context_length": 100_000,
            "pricing": {"prompt": "0.000001", "completion": "0.000002"},
            "top_provider": {"max_completion_tokens": 5_000}}, {"id": "other"}]})
            .to_string(),
        ),
        "/v1/chat/completions" => (200, answer.clone()),
        _ => (404, String::new()),
    });
    let world = World::new([]).await;
    let base = format!("{}/v1", server.base_url());
    configure(
        &world,
        json!({"openrouter": {"baseUrl": base, "models": {"vendor/coder": {"window": 90_000}}}}),
    );
    let run = |model: &str| {
        result_of(&world.run(&ask(model).args(["--max-budget-usd", "1"]).env("OPENROUTER_API_KEY", KEY)))
    };
    let result = run("openrouter/vendor/coder");
    let usage = &result["modelUsage"]["openrouter/vendor/coder"];
    assert_eq!(
        (&usage["contextWindow"], &usage["maxOutputTokens"]),
        (&json!(90_000), &json!(5_000)),
        "{result}"
    );
    let cost = usage["costUSD"].as_f64().unwrap();
    assert!((cost - 0.0012).abs() < 1e-9, "{usage}");
    let n_lists = server.paths().iter().filter(|path| path.as_str() == "GET /v1/models").count();
    assert_eq!(n_lists, 1, "{:?}", server.paths());
    let listed = rows_with_key(&world);
    let row = listed.iter().find(|row| row["name"] == "openrouter/vendor/coder").unwrap();
    assert_eq!((&row["price"]["input"], &row["maxOutput"]), (&json!(1.0), &json!(5_000)));
}

fn rows_with_key(world: &World) -> Vec<Value> {
    let output = world.run(&loci().args(["models", "list", "--json"]).env("OPENROUTER_API_KEY", KEY));
    serde_json::from_str(&output.stdout).unwrap()
}

/// Ollama and LM Studio say their windows by addresses of their own; so does an entry of another name that points there.
#[tokio::test]
async fn windows_are_asked_of_local_servers_in_their_own_way() {
    let server = HttpDouble::start(|request| match request.path.as_str() {
        "/v1/models" => (
            200,
            json!({"data": [{"id": "runs:latest", "owned_by": "library"},
            {"id": "sleeps", "owned_by": "library"}, {"id": "loaded"}]})
            .to_string(),
        ),
        "/api/ps" => {
            (200, json!({"models": [{"name": "runs:latest", "context_length": 24_576}]}).to_string())
        }
        "/api/v0/models" => (
            200,
            json!({"data": [{"id": "loaded", "max_context_length": 131_072,
            "loaded_context_length": 12_288}]})
            .to_string(),
        ),
        "/api/show" if request.json["model"] == "sleeps" => (
            200,
            json!({"parameters": "num_ctx 16384",
            "model_info": {"qwen3.context_length": 40_960}})
            .to_string(),
        ),
        _ => (404, String::new()),
    });
    let world = World::new([]).await;
    configure(&world, json!({"box": {"protocol": "chat", "baseUrl": format!("{}/v1", server.base_url())}}));
    let listed = rows(&world);
    let window = |name: &str| listed.iter().find(|row| row["name"] == name).unwrap()["window"].clone();
    assert_eq!(window("box/runs:latest"), 24_576);
    assert_eq!(window("box/sleeps"), 16_384);
    assert_eq!(window("box/loaded"), 12_288);
}

/// A server that takes its time is waited for no longer than two seconds, once.
#[tokio::test]
async fn server_that_hangs_holds_nobody_up() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let world = World::new([]).await;
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let models = json!({"a": {}, "b": {}, "c": {}});
    configure(&world, json!({"slow": {"protocol": "chat", "baseUrl": base, "models": models}}));
    let output = list(&world);
    assert!(output.stderr.contains("The provider `slow` did not answer"), "{output:?}");
    assert_eq!(output.stdout.matches("(no answer)").count(), 3, "{output:?}");
    listener.set_nonblocking(true).unwrap();
    let n_connections = std::iter::from_fn(|| listener.accept().ok()).count();
    assert_eq!(n_connections, 1, "it is asked once");
}

/// A version of a family that is listed may be chosen, an alias means the newest that may, and anything else is replaced.
#[tokio::test]
async fn listed_models_are_chosen_by_family_and_version() {
    for (listed, asked, expected, is_said) in [
        (json!(["sonnet"]), "claude-sonnet-4-6", "claude-sonnet-4-6", false),
        (json!(["sonnet", "claude-opus-4-6"]), "opus", "claude-opus-4-6", true),
        (json!(["sonnet", "claude-sonnet-4-5"]), "claude-sonnet-5", "claude-opus-5-5", true),
    ] {
        let world = World::new([Step::text("hi")]).await;
        world.home.write_config("settings.json", json!({"availableModels": listed}).to_string());
        let output = world.run(&loci().args(["-p", "hello", "--model", asked]));
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(world.last_request().json["model"], expected, "{asked}");
        assert_eq!(output.stderr.contains("availableModels"), is_said, "{asked}: {output:?}");
    }
}
