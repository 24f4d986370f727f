//! What goes wrong at a cloud, and what is peculiar to one, end to end.

use loci_testkit::{HttpDouble, Script, Step, bedrock_exception, bedrock_frame, check_aws_signature};
use serde_json::{Value, json};

use super::clouds::{BEDROCK, SECRET, ask};
use super::{main_requests, result_of, second_result, talk};
use crate::support::{World, loci};

const FRAMES: &str = "application/vnd.amazon.eventstream";

/// The events of an answer.
fn answer(text: &str) -> Vec<Value> {
    let metrics = json!({"inputTokenCount": 999, "outputTokenCount": 999});
    vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 3}}),
        json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": metrics}),
    ]
}

fn frames(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(bedrock_frame).collect()
}

/// A frame that is cut, one whose checksum is wrong, and a server that slows down in the middle: asked again, and the answer
/// that is whole counts.
#[tokio::test]
async fn broken_streams_of_bedrock_are_asked_for_again() {
    let mut wrong = frames(&answer("wrong"));
    let at = wrong.len() / 2;
    wrong[at] ^= 0x55;
    let begun = frames(&answer("begun")[..3]);
    let throttled = [begun.clone(), bedrock_exception("throttlingException", "Too many tokens")].concat();
    let failed = [begun, bedrock_exception("modelStreamErrorException", "The model broke off")].concat();
    for (fault, step) in [
        ("cut within a frame", Step::text("cut in the middle of this").cut_mid_event()),
        ("cut between frames", Step::text("cut").cut_after_events(2)),
        ("wrong checksum", Step::status(200).raw_body(FRAMES, &wrong)),
        ("throttled", Step::status(200).raw_body(FRAMES, &throttled)),
        ("failed", Step::status(200).raw_body(FRAMES, &failed)),
    ] {
        let world = World::new([step, Step::text("whole")]).await;
        let output = world.run(&ask(&world, &BEDROCK).args(["--model", "haiku"]));
        assert_eq!(result_of(&output)["result"], "whole", "{fault}: {output:?}");
        assert_eq!(world.model.main_requests().len(), 2, "{fault}");
    }
}

/// A proxy that calls the frames JSON: they are read all the same, and asked for once.
#[tokio::test]
async fn stream_without_its_content_type_is_read() {
    for content_type in ["application/json", "application/octet-stream"] {
        let body = frames(&answer("read all the same"));
        let world = World::new([Step::status(200).raw_body(content_type, &body)]).await;
        let output = world.run(&ask(&world, &BEDROCK).args(["--model", "haiku"]));
        let result = result_of(&output);
        assert_eq!(result["result"], "read all the same", "{content_type}: {output:?}");
        // What the server counts for itself is not what the answer says.
        assert_eq!(result["usage"]["input_tokens"], 5, "{result}");
        assert_eq!(world.model.main_requests().len(), 1, "it is paid for once");
    }
}

/// The tier and the guardrails are headers, and beta features are in the body.
#[tokio::test]
async fn bedrock_hears_tier_guardrails_and_betas() {
    let world = World::new([Step::text("a")]).await;
    let mut variables = BEDROCK.to_vec();
    variables.extend([
        ("ANTHROPIC_BEDROCK_SERVICE_TIER", "flex"),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Amzn-Bedrock-GuardrailIdentifier: g-1"),
        ("ANTHROPIC_BETAS", "some-beta-2026-01-01"),
    ]);
    let output = world.run(&ask(&world, &variables).args(["--model", "claude-sonnet-4-5[1m]"]));
    assert_eq!(result_of(&output)["result"], "a", "{output:?}");
    let request = &main_requests(&world)[0];
    assert_eq!(request.header("x-amzn-bedrock-service-tier"), Some("flex"));
    assert_eq!(request.header("x-amzn-bedrock-guardrailidentifier"), Some("g-1"));
    assert_eq!(request.header("anthropic-beta"), None);
    let betas = request.json["anthropic_beta"].as_array().unwrap();
    assert!(betas.contains(&json!("some-beta-2026-01-01")), "{betas:?}");
    assert!(betas.contains(&json!("context-1m-2025-08-07")), "{betas:?}");
    check_aws_signature(request, SECRET).unwrap();
}

/// Bedrock's own words for a prompt that is too long lead to a compaction, and those about throughput to an advice.
#[tokio::test]
async fn errors_of_bedrock_are_understood() {
    let too_long = json!({"message": "Input is too long for requested model."}).to_string();
    let world = World::new(Script::new([
        Step::text("word ".repeat(60_000)).usage(80_000, 70_000, 0, 0),
        Step::status(400).raw_body("application/json", &too_long),
        Step::text("<summary>It was long.</summary>"),
        Step::text("after"),
    ]))
    .await;
    let binary = super::clouds::with_variables(&world, talk("haiku"), &BEDROCK);
    let result = second_result(&world, &binary, "hello");
    assert_eq!(result["result"], "after", "{result}");

    let words = "Invocation of model ID x with on-demand throughput isn\u{2019}t supported.";
    let refused = Step::status(400).raw_body("application/json", json!({"message": words}).to_string());
    let world = World::new([refused]).await;
    let output = world.run(&ask(&world, &BEDROCK).args(["--model", "haiku"]));
    assert!(output.stdout.contains("inference profile"), "{output:?}");
}

/// Whose project pays, in the order in which it is looked for; without authentication no token is asked for.
#[tokio::test]
async fn project_of_vertex_comes_from_the_first_place_that_names_one() {
    let file = json!({"type": "authorized_user", "project_id": "of-the-file"}).to_string();
    for (named, expected) in [
        (
            &["ANTHROPIC_VERTEX_PROJECT_ID", "GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT"][..],
            "ANTHROPIC_VERTEX_PROJECT_ID",
        ),
        (&["GCLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT"], "GCLOUD_PROJECT"),
        (&["GOOGLE_CLOUD_PROJECT"], "GOOGLE_CLOUD_PROJECT"),
        (&[], "of-the-file"),
    ] {
        let world = World::new([Step::text("a")]).await;
        world.home.write_home("gcloud/application_default_credentials.json", &file);
        let dir = world.home.home().join("gcloud").display().to_string();
        let mut variables = vec![
            ("CLAUDE_CODE_USE_VERTEX", "1"),
            ("ANTHROPIC_VERTEX_BASE_URL", "{base}/v1"),
            ("CLAUDE_CODE_SKIP_VERTEX_AUTH", "1"),
            ("ANTHROPIC_BETAS", "some-beta-2026-01-01"),
            ("CLOUDSDK_CONFIG", dir.as_str()),
        ];
        variables.extend(named.iter().map(|name| (*name, *name)));
        let output = world.run(&ask(&world, &variables).args(["--model", "opus"]));
        assert_eq!(result_of(&output)["result"], "a", "{output:?}");
        let request = world.last_request();
        let path =
            format!("/v1/projects/{expected}/locations/us-east5/publishers/anthropic/models/claude-opus-5:");
        assert!(request.path.starts_with(&path), "{}", request.path);
        assert_eq!(request.header("authorization"), None);
        assert!(request.header("anthropic-beta").unwrap().contains("some-beta-2026-01-01"));
    }
}

/// Nothing of a cloud is read, run or asked unless its switch is set.
#[tokio::test]
async fn clouds_that_are_not_switched_on_are_left_alone() {
    let anybody = HttpDouble::start(|_| (200, "{}".to_owned()));
    let world = World::new([Step::text("first party")]).await;
    let marks = world.home.home().join("marks");
    let mark = |name: &str| format!("echo {name} >> {}", marks.display());
    world
        .home
        .write_home(".aws/config", format!("[default]\ncredential_process = sh -c '{}'\n", mark("process")));
    let settings = json!({"awsAuthRefresh": mark("refresh"), "awsCredentialExport": mark("export"), "gcpAuthRefresh": mark("google")});
    world.home.write_config("settings.json", settings.to_string());
    let at = anybody.base_url();
    let authority = anybody.authority();
    let plain = loci().args(["-p", "hello", "--output-format", "json"]);
    let variables = [
        ("CLAUDE_CODE_USE_BEDROCK", "0"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("ANTHROPIC_BEDROCK_BASE_URL", &at),
        ("AWS_ENDPOINT_URL_STS", &at),
        ("AWS_EC2_METADATA_SERVICE_ENDPOINT", &at),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &at),
        ("GCE_METADATA_HOST", &authority),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/at/all.json"),
        ("ANTHROPIC_VERTEX_BASE_URL", &at),
        ("AZURE_AUTHORITY_HOST", &at),
        ("ANTHROPIC_FOUNDRY_RESOURCE", "mine"),
    ];
    let binary = variables.iter().fold(plain, |binary, (name, value)| binary.env(name, *value));
    let output = world.run(&binary);
    assert_eq!(result_of(&output)["result"], "first party", "{output:?}");
    assert!(anybody.paths().is_empty(), "{:?}", anybody.paths());
    assert!(!marks.exists());
}
