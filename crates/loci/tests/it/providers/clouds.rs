//! Bedrock, Vertex and Foundry: the same conversation behind other doors, with the variables of the reference.

use loci_testkit::{Binary, HttpDouble, Step, check_aws_signature};
use serde_json::json;

use super::{main_requests, result_of};
use crate::support::{World, loci};

pub(super) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

pub(super) fn ask(world: &World, variables: &[(&str, &str)]) -> Binary {
    with_variables(world, loci().args(["-p", "hello", "--output-format", "json"]), variables)
}

/// Runs with variables of a cloud, and nothing of the machine's own; `{base}` is the model's address.
pub(super) fn with_variables(world: &World, binary: Binary, variables: &[(&str, &str)]) -> Binary {
    let binary = binary.env("ANTHROPIC_API_KEY", "").env("ANTHROPIC_BASE_URL", "");
    let binary = binary.env("AWS_EC2_METADATA_DISABLED", "1").env("GCE_METADATA_HOST", "127.0.0.1:1");
    let base = world.model.base_url();
    variables.iter().fold(binary, |binary, (name, value)| binary.env(name, value.replace("{base}", base)))
}

fn turn() -> [Step; 2] {
    [Step::text("Looking.").tool("Read", json!({"file_path": "notes.txt"})), Step::text("It says one.")]
}

pub(super) const BEDROCK: [(&str, &str); 6] = [
    ("CLAUDE_CODE_USE_BEDROCK", "1"),
    ("ANTHROPIC_BEDROCK_BASE_URL", "{base}"),
    ("AWS_REGION", "eu-west-1"),
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_SESSION_TOKEN", "session-token-1"),
];

#[tokio::test]
async fn turn_runs_over_bedrock_with_a_good_signature() {
    let world = World::new(turn()).await;
    world.home.write("notes.txt", "one\n");
    let output = world.run(&ask(&world, &BEDROCK).args(["--model", "haiku"]));
    assert_eq!(result_of(&output)["result"], "It says one.", "{output:?}");
    let requests = main_requests(&world);
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let path = "/model/eu.anthropic.claude-haiku-4-5-20251001-v1:0/invoke-with-response-stream";
        assert_eq!(request.path, path);
        check_aws_signature(request, SECRET).unwrap();
        assert!(check_aws_signature(request, "another").is_err());
        assert_eq!(request.header("x-amz-security-token"), Some("session-token-1"));
        assert!(request.header("authorization").unwrap().contains("/eu-west-1/bedrock/aws4_request"));
        assert_eq!(request.json.get("stream"), None);
    }
}

#[tokio::test]
async fn inference_profiles_bearer_tokens_and_skipped_auth_work() {
    let world = World::new([Step::text("a"), Step::text("b")]).await;
    let arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab";
    world.home.write_config("settings.json", json!({"modelOverrides": {"claude-opus-5": arn}}).to_string());
    let mut variables = BEDROCK.to_vec();
    let output = world.run(&ask(&world, &variables).args(["--model", "opus"]));
    assert_eq!(result_of(&output)["result"], "a", "{output:?}");
    let request = world.last_request();
    assert!(request.path.contains("application-inference-profile%2Fab/"), "{}", request.path);
    check_aws_signature(&request, SECRET).unwrap();
    variables.push(("AWS_BEARER_TOKEN_BEDROCK", "bearer-1"));
    world.run(&ask(&world, &variables));
    assert_eq!(world.last_request().header("authorization"), Some("Bearer bearer-1"));
    variables.push(("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "1"));
    world.run(&ask(&world, &variables));
    assert_eq!(world.last_request().header("authorization"), None);
}

/// The ARN of a profile does not tell its model; what Bedrock says of it decides how it is asked to think, and what it costs.
#[tokio::test]
async fn model_behind_an_inference_profile_is_asked_for_once() {
    let behind = "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0";
    let control = HttpDouble::start(move |_| (200, json!({"models": [{"modelArn": behind}]}).to_string()));
    let world = World::new(turn()).await;
    world.home.write("notes.txt", "one\n");
    let arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile/ab";
    let address = control.base_url();
    let mut variables = BEDROCK.to_vec();
    variables.push(("AWS_ENDPOINT_URL_BEDROCK", &address));
    let output = world.run(&ask(&world, &variables).args(["--model", arn]));
    let result = result_of(&output);
    assert_eq!(result["result"], "It says one.", "{output:?}");
    assert_eq!(control.paths(), [format!("GET /inference-profiles/{}", arn.replace('/', "%2F"))]);
    check_aws_signature(&control.requests()[0], SECRET).unwrap();
    assert_eq!(
        main_requests(&world)[0].json["thinking"]["type"],
        "enabled",
        "that model thinks with a budget"
    );
    assert!(result["modelUsage"][arn]["costUSD"].as_f64().unwrap() > 0.0, "{result}");

    let silent = HttpDouble::start(|_| (403, json!({"message": "not authorized"}).to_string()));
    let address = silent.base_url();
    variables.pop();
    variables.push(("AWS_ENDPOINT_URL_BEDROCK", &address));
    let world = World::new([Step::text("all the same")]).await;
    let output = world.run(&ask(&world, &variables).args(["--model", arn]));
    assert_eq!(result_of(&output)["result"], "all the same", "{output:?}");
    assert_eq!(main_requests(&world)[0].json.get("thinking"), None);
}

#[tokio::test]
async fn small_model_is_asked_in_its_own_region() {
    let world = World::new([Step::text("a"), Step::text("b")]).await;
    let mut variables = BEDROCK.to_vec();
    variables.push(("ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION", "us-west-2"));
    for (model, geography) in
        [("haiku", "/model/us.anthropic.claude-haiku"), ("sonnet", "/model/eu.anthropic.claude-sonnet")]
    {
        let output = world.run(&ask(&world, &variables).args(["--model", model]));
        assert_eq!(output.code, Some(0), "{output:?}");
        let path = world.last_request().path;
        assert!(path.starts_with(geography), "{path}");
    }
    variables.pop();
    variables.push(("ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION", "nowhere"));
    let output = world.run(&ask(&world, &variables).args(["--model", "haiku"]));
    assert!(output.stderr.contains("not shaped like a region"), "{output:?}");
}

/// Keys that have expired are got again, after the command that renews them; what is too long is made room for.
#[tokio::test]
async fn expired_keys_are_renewed_once() {
    let expired = Step::status(403).raw_body(
        "application/json",
        r#"{"message":"The security token included in the request is expired"}"#,
    );
    let world = World::new([expired, Step::text("renewed")]).await;
    let file = world
        .home
        .write_home(".aws/credentials", "[default]\naws_access_key_id = OLD\naws_secret_access_key = s\n");
    let refresh = format!("sed -i s/OLD/NEW/ {}", file.display());
    world.home.write_config("settings.json", json!({"awsAuthRefresh": refresh}).to_string());
    let output = world.run(&ask(&world, &BEDROCK[..3]));
    assert_eq!(result_of(&output)["result"], "renewed", "{output:?}");
    let keys: Vec<String> =
        world.model.main_requests().iter().map(|it| it.header("authorization").unwrap().to_owned()).collect();
    assert!(keys[0].contains("Credential=OLD/") && keys[1].contains("Credential=NEW/"), "{keys:?}");
}

#[tokio::test]
async fn missing_credentials_and_places_are_said() {
    let world = World::new([Step::text("never")]).await;
    let output = world.run(&ask(&world, &BEDROCK[..3]));
    assert!(output.stdout.contains("No Amazon credentials were found"), "{output:?}");
    for (variables, words) in [
        (&[("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1")][..], "ANTHROPIC_AWS_WORKSPACE_ID"),
        (&[("CLAUDE_CODE_USE_VERTEX", "1")], "ANTHROPIC_VERTEX_PROJECT_ID"),
        (&[("CLAUDE_CODE_USE_FOUNDRY", "1")], "ANTHROPIC_FOUNDRY_RESOURCE"),
    ] {
        let output = world.run(&ask(&world, variables));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(words), "{output:?}");
    }
    assert!(world.model.requests().is_empty());
}

#[tokio::test]
async fn turn_runs_over_vertex_with_a_token_of_the_login() {
    let world = World::new(turn()).await;
    world.home.write("notes.txt", "one\n");
    let tokens = token_server();
    let login = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r+1",
        "token_uri": format!("{}/token", tokens.base_url()), "quota_project_id": "payer"});
    world.home.write_home(".config/gcloud/application_default_credentials.json", login.to_string());
    let variables = [
        ("CLAUDE_CODE_USE_VERTEX", "1"),
        ("ANTHROPIC_VERTEX_BASE_URL", "{base}/v1"),
        ("ANTHROPIC_VERTEX_PROJECT_ID", "proj"),
        ("CLOUD_ML_REGION", "europe-west1"),
        ("VERTEX_REGION_CLAUDE_HAIKU_4_5", "us-east5"),
    ];
    let output = world.run(&ask(&world, &variables).args(["--model", "haiku"]));
    assert_eq!(result_of(&output)["result"], "It says one.", "{output:?}");
    let requests = main_requests(&world);
    let path = "/v1/projects/proj/locations/us-east5/publishers/anthropic/models/claude-haiku-4-5@20251001:streamRawPredict";
    assert_eq!(requests[0].path, path);
    assert_eq!(requests[1].header("authorization"), Some("Bearer google-token"));
    assert_eq!(requests[1].header("x-goog-user-project"), Some("payer"));
    assert_eq!(tokens.bodies(), ["grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r%2B1"]);
}

#[tokio::test]
async fn foundry_takes_keys_and_tokens() {
    let world = World::new([Step::text("a"), Step::text("b")]).await;
    let mut variables = vec![
        ("CLAUDE_CODE_USE_FOUNDRY", "1"),
        ("ANTHROPIC_FOUNDRY_BASE_URL", "{base}/anthropic"),
        ("ANTHROPIC_FOUNDRY_API_KEY", "foundry-key"),
    ];
    let output = world.run(&ask(&world, &variables).args(["--model", "my-deployment"]));
    assert_eq!(result_of(&output)["result"], "a", "{output:?}");
    let request = world.last_request();
    assert_eq!(
        (request.route(), request.header("x-api-key")),
        ("/anthropic/v1/messages", Some("foundry-key"))
    );
    assert_eq!(request.json["model"], "my-deployment");
    variables.push(("ANTHROPIC_FOUNDRY_AUTH_TOKEN", "foundry-token"));
    world.run(&ask(&world, &variables));
    assert_eq!(world.last_request().header("authorization"), Some("Bearer foundry-token"));
}

#[tokio::test]
async fn ids_of_settings_are_sent_to_foundry_and_to_gateways() {
    let world = World::new([Step::text("a"), Step::text("b")]).await;
    let overrides =
        json!({"modelOverrides": {"claude-opus-4-6": "my-opus", "claude-opus-5": "gateway-opus"}});
    world.home.write_config("settings.json", overrides.to_string());
    let foundry = [
        ("CLAUDE_CODE_USE_FOUNDRY", "1"),
        ("ANTHROPIC_FOUNDRY_BASE_URL", "{base}/anthropic"),
        ("ANTHROPIC_FOUNDRY_API_KEY", "foundry-key"),
        ("CLAUDE_CODE_SKIP_FOUNDRY_AUTH", "1"),
    ];
    world.run(&ask(&world, &foundry).args(["--model", "opus"]));
    let request = world.last_request();
    assert_eq!(request.json["model"], "my-opus");
    assert_eq!(request.header("x-api-key"), Some("foundry-key"), "a key that is set is sent");
    let gateway = [("ANTHROPIC_BASE_URL", "{base}"), ("ANTHROPIC_API_KEY", "key")];
    world.run(&ask(&world, &gateway).args(["--model", "claude-opus-5"]));
    assert_eq!(world.last_request().json["model"], "gateway-opus");
}

#[tokio::test]
async fn turn_runs_over_claude_platform_on_aws() {
    let world = World::new(turn()).await;
    world.home.write("notes.txt", "one\n");
    let mut variables = vec![
        ("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1"),
        ("ANTHROPIC_AWS_BASE_URL", "{base}"),
        ("ANTHROPIC_AWS_WORKSPACE_ID", "wrkspc_1"),
    ];
    variables.extend(&BEDROCK[2..]);
    let output = world.run(&ask(&world, &variables).args(["--model", "sonnet"]));
    assert_eq!(result_of(&output)["result"], "It says one.", "{output:?}");
    for request in &main_requests(&world) {
        assert_eq!(request.route(), "/v1/messages");
        check_aws_signature(request, SECRET).unwrap();
        let scope = "/eu-west-1/aws-external-anthropic/aws4_request";
        assert!(request.header("authorization").unwrap().contains(scope), "{request:?}");
        assert_eq!(request.header("anthropic-workspace-id"), Some("wrkspc_1"));
        assert_eq!(request.json["model"], "claude-sonnet-4-6");
    }
    variables.push(("ANTHROPIC_AWS_API_KEY", "workspace-key"));
    world.run(&ask(&world, &variables));
    let request = world.last_request();
    assert_eq!((request.header("x-api-key"), request.header("authorization")), (Some("workspace-key"), None));
    variables
        .extend([("CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH", "1"), ("ANTHROPIC_AUTH_TOKEN", "of-the-gateway")]);
    world.run(&ask(&world, &variables));
    let request = world.last_request();
    assert_eq!(request.header("authorization"), Some("Bearer of-the-gateway"));
    assert_eq!(request.header("x-api-key"), None);
}

#[tokio::test]
async fn mantle_serves_its_own_ids_beside_bedrock_and_all_alone() {
    let world = World::new([Step::text("a"), Step::text("b"), Step::text("c")]).await;
    let mut variables = BEDROCK.to_vec();
    variables
        .extend([("CLAUDE_CODE_USE_MANTLE", "1"), ("ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "{base}/mantle")]);
    let asked = |variables: &[(&str, &str)], model: &str| {
        let output = world.run(&ask(&world, variables).args(["--model", model]));
        assert_eq!(output.code, Some(0), "{output:?}");
        world.last_request()
    };
    let request = asked(&variables, "anthropic.claude-haiku-4-5");
    assert_eq!(request.route(), "/mantle/v1/messages");
    assert_eq!(request.json["model"], "anthropic.claude-haiku-4-5");
    check_aws_signature(&request, SECRET).unwrap();
    assert!(request.header("authorization").unwrap().contains("/eu-west-1/bedrock-mantle/aws4_request"));
    let request = asked(&variables, "haiku");
    assert!(request.path.starts_with("/model/eu.anthropic.claude-haiku-4-5"), "{}", request.path);
    let request = asked(&variables[1..], "claude-haiku-4-5");
    assert_eq!(request.json["model"], "anthropic.claude-haiku-4-5");
    variables.push(("CLAUDE_CODE_SKIP_MANTLE_AUTH", "1"));
    let request = asked(&variables[1..], "sonnet");
    assert_eq!((request.header("authorization"), request.header("x-api-key")), (None, None));
}

/// Answers every request with a token.
fn token_server() -> HttpDouble {
    HttpDouble::start(|_| (200, json!({"access_token": "google-token", "expires_in": 3599}).to_string()))
}
