//! LiteLLM's proxy between loci and a scripted model: an independent server of all three protocols, which says each of them
//! in another's words to what stands behind it.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};

use loci_testkit::{PythonVenv, Step};
use serde_json::json;

use super::{ask, configure, main_requests, result_of};
use crate::support::{World, loci};

/// The key that the proxy wants; its upstream has another.
const KEY: &str = "sk-0f6c5a1de84b4d0b9a7e3c2f1d0e9b8a7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f";

/// The proxy, which ends with the test.
struct LiteLlm {
    child: Child,
    stdin: Option<ChildStdin>,
    address: String,
}

impl LiteLlm {
    /// Starts it before an upstream; none where there is no Python.
    fn start(upstream: &str) -> Option<Self> {
        let python = PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "litellm", &["litellm[proxy]"])?;
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/providers/litellm/serve.py");
        let mut command = python.script(script);
        command.args([upstream, KEY]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        if !address.starts_with("http://127.0.0.1:") {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("it did not start: {said}");
        }
        let stdin = child.stdin.take();
        Some(Self { child, stdin, address: address.trim().to_owned() })
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        // The end of its input ends the script and the proxy with it.
        self.stdin = None;
        self.child.wait().ok();
    }
}

/// What is spoken before the proxy, and the model of it, whose name says what is spoken behind it.
const WAYS: [(&str, &str); 5] = [
    ("chat", "by-chat"),
    ("chat", "by-messages"),
    ("messages", "by-messages"),
    ("messages", "by-chat"),
    ("responses", "by-chat"),
];

/// Calls, results, streams and counts get through, whichever protocol is spoken before the proxy and behind it.
#[tokio::test]
async fn turns_with_tools_get_through_an_independent_proxy() {
    let turn = || {
        let calls = Step::text("Looking.").tool("Read", json!({"file_path": "notes.txt"}));
        [calls, Step::text("It says one.").usage(1_000, 100, 0, 0)]
    };
    let world = World::new(WAYS.iter().flat_map(|_| turn()).collect::<Vec<_>>()).await;
    let Some(proxy) = LiteLlm::start(world.model.base_url()) else {
        eprintln!("skipped: there is no python3");
        return;
    };
    world.home.write("notes.txt", "one\n");
    for (at, (protocol, model)) in WAYS.into_iter().enumerate() {
        configure(
            &world,
            json!({"proxy": {
                "protocol": protocol,
                "baseUrl": format!("{}/v1", proxy.address),
                "apiKeyEnv": "PROXY_KEY",
                "models": {model: {"window": 100_000, "maxOutput": 4_096}},
            }}),
        );
        let output = world.run(&ask(&format!("proxy/{model}")).env("PROXY_KEY", KEY));
        let result = result_of(&output);
        assert_eq!(result["result"], "It says one.", "{protocol} {model}: {output:?}");
        let usage = &result["modelUsage"][format!("proxy/{model}")];
        let n_written = usage["outputTokens"].as_u64().unwrap_or_default();
        assert!(n_written > 0, "{protocol} {model}: {usage}");
        let requests = main_requests(&world);
        assert_eq!(requests.len(), 2 * (at + 1), "{protocol} {model}");
        let last = requests.last().unwrap();
        let told = last.json.to_string();
        assert!(told.contains("notes.txt") && told.contains("one"), "{protocol} {model}: {told}");
        let sent = [last.header("authorization"), last.header("x-api-key")];
        assert!(!format!("{sent:?}").contains(KEY), "the proxy's key is the proxy's");
    }
}

/// What the proxy says of a model that it does not have, and of an upstream that is gone, is said to the user.
#[tokio::test]
async fn errors_of_an_independent_proxy_are_understood() {
    let world = World::new([Step::text("Never.")]).await;
    let Some(proxy) = LiteLlm::start("http://127.0.0.1:9") else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let models = json!({"by-chat": {"window": 100_000, "maxOutput": 512}});
    let address = format!("{}/v1", proxy.address);
    let entry = json!({"protocol": "chat", "baseUrl": address, "apiKeyEnv": "PROXY_KEY", "models": models});
    configure(&world, json!({"proxy": entry}));
    let run = |model: &str, key: &str| {
        let output = world.run(&ask(model).env("PROXY_KEY", key).env("CLAUDE_CODE_MAX_RETRIES", "0"));
        let result = result_of(&output);
        assert_eq!(result["is_error"], true, "{model}: {output:?}");
        result["result"].as_str().unwrap_or_default().to_owned()
    };
    let unknown = run("proxy/nobody", KEY);
    assert!(unknown.contains("nobody"), "{unknown}");
    // Without a database the proxy calls a key that it does not know a bad request.
    let refused = run("proxy/by-chat", "sk-another");
    assert!(refused.contains("refused") && !refused.contains("sk-another"), "{refused}");
    run("proxy/by-chat", KEY);
    assert!(world.requests().is_empty(), "nothing went elsewhere");
    let list = world.run(&loci().args(["models", "list"]).env("PROXY_KEY", KEY));
    assert!(list.stdout.contains("by-messages"), "what the proxy has is listed: {list:?}");
}
