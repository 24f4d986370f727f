//! A real local server: llama.cpp's own, with a tiny random model. The text is noise; the framing, the counts and the
//! errors are real.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use loci_testkit::PythonVenv;
use serde_json::{Value, json};

use super::{ask, configure, result_of, second_result, talk};
use crate::support::{World, is_result, user};

/// The server, which ends with the test.
struct LocalServer {
    child: Child,
    address: String,
}

impl LocalServer {
    /// Starts it; none where there is no Python.
    fn start(window: u64) -> Option<Self> {
        let packages = ["xllamacpp==2026.10.11549", "gguf==0.19.0", "numpy==2.4.6"];
        let python = PythonVenv::new(env!("CARGO_TARGET_TMPDIR"), "local-model", &packages)?;
        let script =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/providers/local_model/serve.py");
        let mut command = python.script(script);
        command.arg(window.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
        Some(Self { child, address: address.trim().to_owned() })
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Every protocol of the server gives an answer that is counted, and the window is the server's.
#[tokio::test]
async fn real_local_server_answers_by_every_protocol() {
    let Some(server) = LocalServer::start(16_384) else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let world = World::new([]).await;
    let entry = |protocol: &str| json!({"protocol": protocol, "baseUrl": format!("{}/v1", server.address)});
    configure(
        &world,
        json!({"chat": entry("chat"), "responses": entry("responses"), "messages": entry("messages")}),
    );
    let small = |model: &str| ask(model).args(["--bare", "--tools", "", "--system-prompt", "Be brief."]);
    for protocol in ["chat", "responses", "messages"] {
        let model = format!("{protocol}/tiny");
        let output = world.run(&small(&model));
        let result = result_of(&output);
        assert_eq!((output.code, &result["is_error"]), (Some(0), &json!(false)), "{protocol}: {output:?}");
        let usage = &result["modelUsage"][&model];
        assert_eq!(usage["contextWindow"], 16_384, "{protocol}: {usage}");
        let count = |name: &str| usage[name].as_u64().unwrap();
        let read = count("inputTokens") + count("cacheReadInputTokens");
        assert!(read > 20 && count("outputTokens") >= 1, "{protocol}: {usage}");
        assert_eq!(usage["priceUnknown"], true);
    }
    let list = world.run(&crate::support::loci().args(["models", "list"]));
    assert!(list.stdout.contains("tiny.gguf") && list.stdout.contains("16384 tokens"), "{list:?}");
    let check = world.run(&crate::support::loci().args(["models", "check", "chat/tiny"]));
    assert_eq!(check.code, Some(0), "{check:?}");
}

/// What the server says of a prompt that does not fit is understood, with its number.
#[tokio::test]
async fn real_context_error_is_understood() {
    let Some(server) = LocalServer::start(8_192) else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let world = World::new([]).await;
    let models: Value = json!({"tiny": {"window": 200_000, "maxOutput": 64}});
    configure(
        &world,
        json!({"local": {"protocol": "chat", "baseUrl": format!("{}/v1", server.address), "models": models}}),
    );
    let long = "word ".repeat(4_000);
    let binary =
        crate::support::loci().args(["-p", &long, "--model", "local/tiny", "--output-format", "json"]);
    let binary = binary.args(["--bare", "--tools", "", "--system-prompt", "Be brief."]);
    let output = world.run(&binary.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", ""));
    let result = result_of(&output);
    assert_eq!(result["is_error"], true, "{output:?}");
    let text = result["result"].as_str().unwrap_or_default();
    assert!(text.contains("8192") || text.contains("does not fit"), "{output:?}");
}

/// A real context error in the second turn is made room for, and the session goes on.
#[tokio::test]
async fn real_context_error_leads_to_compaction() {
    let Some(server) = LocalServer::start(16_384) else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let world = World::new([]).await;
    // What settings say of the window is wrong, so that only the error tells.
    let models: Value = json!({"tiny": {"window": 200_000, "maxOutput": 64}});
    configure(
        &world,
        json!({"local": {"protocol": "chat", "baseUrl": format!("{}/v1", server.address), "models": models}}),
    );
    let binary = talk("local/tiny").args(["--bare", "--tools", "", "--system-prompt", "Be brief."]);
    let result = second_result(&world, &binary, &"word ".repeat(1_700));
    // Noise does not come to an end by itself; what counts is that it was read.
    let said = result["result"].as_str().unwrap_or_default();
    assert!(!said.contains("does not fit"), "{result}");
    assert!(world.session().iter().any(|entry| entry["subtype"] == "compact_boundary"));
}

/// A window that the server alone tells is kept to: room is made before the conversation is refused. (The request for a
/// summary may be: its instructions alone are thousands of tokens where a byte is one.)
#[tokio::test]
async fn real_window_of_32k_is_compacted_in_time() {
    const WINDOW: u64 = 32_768;
    let Some(server) = LocalServer::start(WINDOW) else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let world = World::new([]).await;
    let models: Value = json!({"tiny": {"maxOutput": 64}});
    configure(
        &world,
        json!({"local": {"protocol": "chat", "baseUrl": format!("{}/v1", server.address), "models": models}}),
    );
    let binary = talk("local/tiny").args(["--bare", "--tools", "", "--system-prompt", "Be brief."]);
    let mut session = world.start(&binary);
    // To this model a byte is a token: two prompts fill more than 70 % of the window.
    for n_words in [2_400, 2_400, 1] {
        session.write_json(&user(&"word ".repeat(n_words)));
        let result = session.wait_for_json(is_result);
        // Noise does not come to an end by itself; what counts is that it was read.
        let said = result["result"].as_str().unwrap_or_default();
        assert!(!said.contains("does not fit"), "{result}");
    }
    session.finish();
    let entries = world.session();
    let boundary = entries.iter().find(|entry| entry["subtype"] == "compact_boundary");
    let metadata = &boundary.expect("the session is compacted")["compactMetadata"];
    assert_eq!(metadata["trigger"], "auto", "{metadata}");
    assert!(metadata["preTokens"].as_u64().is_some_and(|tokens| tokens < WINDOW), "{metadata}");
    let words = entries.iter().map(Value::to_string).collect::<String>();
    assert!(!words.contains("exceed_context_size_error"), "the conversation was not refused");
}
