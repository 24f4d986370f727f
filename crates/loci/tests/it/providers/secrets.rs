//! No secret of any provider is in a trace, an error, an output or a session: each is used, echoed by a server, and searched for.

use loci_testkit::{HttpDouble, Step};
use serde_json::json;

use super::clouds::ask;
use crate::support::World;

/// A provider, by its variables (`{base}` is the model's address, `{tokens}` that of the token service), its files, and the
/// secrets among all that.
struct Case {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    files: &'static [(&'static str, &'static str)],
    secrets: &'static [&'static str],
    /// Those that the model's server gets to see, and says again.
    sent: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        name: "keys of variables",
        variables: &[
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
            ("ANTHROPIC_BEDROCK_BASE_URL", "{base}"),
            ("AWS_ACCESS_KEY_ID", "AKIAVARIABLES"),
            ("AWS_SECRET_ACCESS_KEY", "aws-secret-of-variables"),
            ("AWS_SESSION_TOKEN", "aws-session-of-variables"),
        ],
        files: &[],
        secrets: &["aws-secret-of-variables", "aws-session-of-variables"],
        sent: &["aws-session-of-variables"],
    },
    Case {
        name: "a role",
        variables: &[
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
            ("ANTHROPIC_BEDROCK_BASE_URL", "{base}"),
            ("AWS_PROFILE", "role"),
            ("AWS_ENDPOINT_URL_STS", "{tokens}"),
        ],
        files: &[
            (".aws/config", "[profile role]\nrole_arn = arn:r\nsource_profile = base\n"),
            (
                ".aws/credentials",
                "[base]\naws_access_key_id = A\naws_secret_access_key = secret-of-the-source\n",
            ),
        ],
        secrets: &["secret-of-the-source", "lent-secret-key", "lent-session-token"],
        sent: &["lent-session-token"],
    },
    Case {
        name: "a bearer token of Bedrock",
        variables: &[
            ("CLAUDE_CODE_USE_BEDROCK", "1"),
            ("ANTHROPIC_BEDROCK_BASE_URL", "{base}"),
            ("AWS_BEARER_TOKEN_BEDROCK", "bedrock-bearer-token"),
        ],
        files: &[],
        secrets: &["bedrock-bearer-token"],
        sent: &["bedrock-bearer-token"],
    },
    Case {
        name: "a login at Google",
        variables: &[
            ("CLAUDE_CODE_USE_VERTEX", "1"),
            ("ANTHROPIC_VERTEX_BASE_URL", "{base}/v1"),
            ("ANTHROPIC_VERTEX_PROJECT_ID", "proj"),
        ],
        files: &[(
            ".config/gcloud/application_default_credentials.json",
            r#"{"type":"authorized_user","client_id":"c","client_secret":"google-client-secret","refresh_token":"google-refresh-token","token_uri":"{tokens}/token"}"#,
        )],
        secrets: &["google-client-secret", "google-refresh-token", "token-of-the-service"],
        sent: &["token-of-the-service"],
    },
    Case {
        name: "a key of Foundry",
        variables: &[
            ("CLAUDE_CODE_USE_FOUNDRY", "1"),
            ("ANTHROPIC_FOUNDRY_BASE_URL", "{base}/anthropic"),
            ("ANTHROPIC_FOUNDRY_API_KEY", "foundry-key-secret"),
        ],
        files: &[],
        secrets: &["foundry-key-secret"],
        sent: &["foundry-key-secret"],
    },
    Case {
        name: "a key of a workspace on AWS",
        variables: &[
            ("CLAUDE_CODE_USE_ANTHROPIC_AWS", "1"),
            ("ANTHROPIC_AWS_BASE_URL", "{base}"),
            ("ANTHROPIC_AWS_WORKSPACE_ID", "wrkspc_1"),
            ("ANTHROPIC_AWS_API_KEY", "workspace-key-secret"),
        ],
        files: &[],
        secrets: &["workspace-key-secret"],
        sent: &["workspace-key-secret"],
    },
    Case {
        name: "a client at Entra",
        variables: &[
            ("CLAUDE_CODE_USE_FOUNDRY", "1"),
            ("ANTHROPIC_FOUNDRY_BASE_URL", "{base}/anthropic"),
            ("AZURE_AUTHORITY_HOST", "{tokens}"),
            ("AZURE_TENANT_ID", "tenant"),
            ("AZURE_CLIENT_ID", "client"),
            ("AZURE_CLIENT_SECRET", "entra-client-secret"),
        ],
        files: &[],
        secrets: &["entra-client-secret", "token-of-the-service"],
        sent: &["token-of-the-service"],
    },
];

#[tokio::test]
async fn no_secret_of_a_cloud_is_said_anywhere() {
    for case in CASES {
        // In the words of every cloud at once.
        let words = format!("refused: {}", case.sent.join(" "));
        let error = json!({"type": "invalid_request_error", "message": words});
        let echo = json!({"type": "error", "message": words, "error": error}).to_string();
        let refusal = Step::status(400).raw_body("application/json", &echo);
        let world = World::new([refusal]).await;
        let tokens = HttpDouble::start(|request| {
            match request.header("authorization") {
            Some(_) => (
                200,
                "<AccessKeyId>LENT</AccessKeyId><SecretAccessKey>lent-secret-key</SecretAccessKey><SessionToken>lent-session-token</SessionToken>".to_owned(),
            ),
            None => (200, json!({"access_token": "token-of-the-service", "expires_in": 3599}).to_string()),
        }
        });
        let filled = |text: &str| text.replace("{tokens}", &tokens.base_url());
        for (path, text) in case.files {
            world.home.write_home(path, filled(text));
        }
        let variables: Vec<(&str, String)> =
            case.variables.iter().map(|(name, value)| (*name, filled(value))).collect();
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let trace = world.path("trace.txt");
        let binary = ask(&world, &variables).args(["--debug-file", &trace]);
        let output = world.run(&binary);
        assert_eq!(world.model.main_requests().len(), 1, "{}: {output:?}", case.name);
        let trace = world.home.read("trace.txt");
        assert!(trace.contains("request sent"), "{}: {trace}", case.name);
        assert!(output.stdout.contains("refused: "), "{}: {output:?}", case.name);
        let sessions = world.home.sessions().into_iter().map(|path| std::fs::read_to_string(path).unwrap());
        let said: Vec<String> = sessions.chain([trace, output.stdout, output.stderr]).collect();
        let own: Vec<_> = case.files.iter().map(|(path, _)| world.home.home().join(path)).collect();
        for secret in case.secrets {
            for path in files_below(&world.home.home()).into_iter().filter(|path| !own.contains(path)) {
                let bytes = std::fs::read(&path).unwrap_or_default();
                let is_there = bytes.windows(secret.len()).any(|it| it == secret.as_bytes());
                assert!(!is_there, "{}: {secret} in {}", case.name, path.display());
            }
            assert!(!said.iter().any(|text| text.contains(secret)), "{}: {secret} in {said:?}", case.name);
        }
    }
}

/// Returns all files of a directory, however deep.
fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).flat_map(|path| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    });
    files.collect()
}
