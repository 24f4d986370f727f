//! Environments as data.

use expect_test::{Expect, expect};

use super::*;
use loci_http::Secret;

fn config(vars: &[(&str, &str)]) -> Result<ProviderConfig, Failure> {
    let mut env = Env::for_test("/home/me", "/code");
    env.vars = vars.iter().copied().collect();
    ProviderConfig::from_env(&env)
}

#[test]
fn empty_environment_gives_the_default_config() {
    expect![[r#"
        ProviderConfig {
            base_url: "https://api.anthropic.com",
            auth: None,
            custom_headers: [],
            extra_betas: [],
            allows_experimental_betas: true,
            interleaves_thinking: true,
            model_overrides: {},
            caching: PromptCaching {
                is_off: false,
                without: [],
                main: Short,
                agents: Short,
            },
            user_agent: "loci/0.1.0 (external, sdk-cli)",
            network: NetworkSettings {
                proxy: None,
                extra_ca: None,
                cert_file: None,
                cert_dir: None,
                cert_store: Both,
                client_identity: None,
                connect_timeout: 30s,
            },
            timeouts: Timeouts {
                request: 600s,
                event_idle: 300s,
                byte_idle: 180s,
            },
            dialect: Anthropic,
        }
    "#]]
    .assert_debug_eq(&config(&[]).unwrap());
}

#[test]
fn debug_of_a_full_config_shows_no_credential() {
    let vars = [
        ("ANTHROPIC_BASE_URL", " http://localhost:4000 "),
        ("ANTHROPIC_API_KEY", "sk-hush"),
        ("ANTHROPIC_AUTH_TOKEN", "token-hush"),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Team: a: b\n\n  x-empty:  \r\n"),
        ("ANTHROPIC_BETAS", "one, two,"),
        ("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-py"),
        ("CLAUDE_AGENT_SDK_VERSION", "0.1.9"),
        ("CLAUDE_AGENT_SDK_CLIENT_APP", "my\napp/1"),
        ("HTTPS_PROXY", "http://user:hush@proxy:3128"),
        ("NO_PROXY", "localhost"),
        ("NODE_EXTRA_CA_CERTS", "ca.pem"),
        ("CLAUDE_CODE_CERT_STORE", "System"),
        ("CLAUDE_CODE_CLIENT_CERT", "/c.pem"),
        ("CLAUDE_CODE_CLIENT_KEY", "/k.pem"),
        ("API_TIMEOUT_MS", "1000"),
        ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "1"),
        ("CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS", "1"),
    ];
    let shown = format!("{:#?}", config(&vars).unwrap());
    assert!(!shown.contains("hush"), "{shown}");
    expect![[r#"
        ProviderConfig {
            base_url: "http://localhost:4000",
            auth: Bearer(
                Secret([redacted]),
            ),
            custom_headers: [
                (
                    "X-Team",
                    "a: b",
                ),
                (
                    "x-empty",
                    "",
                ),
            ],
            extra_betas: [
                "one",
                "two",
            ],
            allows_experimental_betas: false,
            interleaves_thinking: true,
            model_overrides: {},
            caching: PromptCaching {
                is_off: false,
                without: [],
                main: Short,
                agents: Short,
            },
            user_agent: "loci/0.1.0 (external, sdk-py, agent-sdk/0.1.9, client-app/myapp/1)",
            network: NetworkSettings {
                proxy: Some(
                    ProxySettings(http://proxy:3128, NoProxy { entries: ["localhost"] }),
                ),
                extra_ca: Some(
                    "/code/ca.pem",
                ),
                cert_file: None,
                cert_dir: None,
                cert_store: System,
                client_identity: Some(
                    ClientIdentity {
                        cert: "/c.pem",
                        key: "/k.pem",
                    },
                ),
                connect_timeout: 30s,
            },
            timeouts: Timeouts {
                request: 1s,
                event_idle: 300s,
                byte_idle: 10s,
            },
            dialect: Anthropic,
        }"#]]
    .assert_eq(&shown);
}

#[test]
fn the_token_comes_before_the_key() {
    let auth = |vars: &[(&str, &str)]| config(vars).unwrap().auth;
    let (key, token) = (("ANTHROPIC_API_KEY", " k\n"), ("ANTHROPIC_AUTH_TOKEN", "t"));
    assert_eq!(auth(&[key]), Auth::ApiKey(Secret::new("k")));
    assert_eq!(auth(&[key, token]), Auth::Bearer(Secret::new("t")));
    assert_eq!(auth(&[key, ("ANTHROPIC_AUTH_TOKEN", "")]), Auth::ApiKey(Secret::new("k")));
    assert_eq!(auth(&[("ANTHROPIC_API_KEY", "  ")]), Auth::None);
}

fn check_bad(name: &str, value: &str, expected: Expect) {
    let failure = config(&[(name, value)]).unwrap_err();
    expected.assert_eq(&format!("{failure}\n{}", failure.hint.as_deref().unwrap_or_default()));
}

#[test]
fn bad_values_name_the_variable_the_value_and_the_way_out() {
    check_bad(
        "API_TIMEOUT_MS",
        "10s",
        expect![[r#"
            `API_TIMEOUT_MS` is not a whole number: `10s`
            Set API_TIMEOUT_MS to something like `10000`, or unset it."#]],
    );
    check_bad(
        "CLAUDE_CODE_CERT_STORE",
        "mozilla",
        expect![[r#"
            `CLAUDE_CODE_CERT_STORE` is not a list of `bundled` and `system`: `mozilla`
            Set CLAUDE_CODE_CERT_STORE to something like `bundled,system`, or unset it."#]],
    );
    check_bad(
        "ANTHROPIC_CUSTOM_HEADERS",
        "Bad Name: secret",
        expect![[r#"
            `ANTHROPIC_CUSTOM_HEADERS` is not a list of headers, one `Name: value` a line: `Bad Name`
            Set ANTHROPIC_CUSTOM_HEADERS to something like `X-Team: platform`, or unset it."#]],
    );
    check_bad(
        "ANTHROPIC_CUSTOM_HEADERS",
        "NoColon",
        expect![[r#"
            `ANTHROPIC_CUSTOM_HEADERS` is not a list of headers, one `Name: value` a line: `NoColon`
            Set ANTHROPIC_CUSTOM_HEADERS to something like `X-Team: platform`, or unset it."#]],
    );
    check_bad(
        "CLAUDE_CODE_CLIENT_CERT",
        "/c.pem",
        expect![[r#"
            `CLAUDE_CODE_CLIENT_CERT` is set but `CLAUDE_CODE_CLIENT_KEY` is not
            Set CLAUDE_CODE_CLIENT_KEY to a PEM file too, or unset CLAUDE_CODE_CLIENT_CERT."#]],
    );
}

#[test]
fn the_extra_body_is_an_object() {
    let mut env = Env::for_test("/home/me", "/code");
    assert_eq!(crate::extra_body_from_env(&env), Ok(None));
    env.vars = [("CLAUDE_CODE_EXTRA_BODY", r#"{"top_k":5}"#)].into_iter().collect();
    assert_eq!(crate::extra_body_from_env(&env).unwrap().unwrap()["top_k"], 5);
    env.vars = [("CLAUDE_CODE_EXTRA_BODY", "[]")].into_iter().collect();
    let failure = crate::extra_body_from_env(&env).unwrap_err();
    assert!(failure.message.starts_with("`CLAUDE_CODE_EXTRA_BODY` is not a JSON object"), "{failure}");
}

/// A model on this machine may think longer than any limit before it says its first word.
#[test]
fn watchdogs_of_streams_can_be_turned_off() {
    let (usual_byte, usual_event) = (Duration::from_secs(180), Duration::from_secs(300));
    for (name, value, byte_idle, event_idle) in [
        ("API_FORCE_IDLE_TIMEOUT", "0", FOREVER, usual_event),
        ("API_FORCE_IDLE_TIMEOUT", "1", usual_byte, usual_event),
        ("CLAUDE_ENABLE_BYTE_WATCHDOG", "false", FOREVER, usual_event),
        ("CLAUDE_ENABLE_STREAM_WATCHDOG", "0", usual_byte, FOREVER),
        ("CLAUDE_ENABLE_STREAM_WATCHDOG", "", usual_byte, usual_event),
    ] {
        let timeouts = config(&[(name, value)]).unwrap().timeouts;
        assert_eq!((timeouts.byte_idle, timeouts.event_idle), (byte_idle, event_idle), "{name}={value}");
    }
}

#[test]
fn region_of_vertex_that_is_shaped_like_none_counts_as_unset() {
    for (region, of_haiku, expected) in [
        ("global", "europe-west1", "global [(\"HAIKU_4_5\", \"europe-west1\")]"),
        ("", "", "us-east5 []"),
        ("evil.example/", "us east5", "us-east5 []"),
        (" us-central1 ", "a.b", "us-central1 []"),
    ] {
        let mut env = Env::for_test("/home/me", "/code");
        env.vars =
            [("CLOUD_ML_REGION", region), ("VERTEX_REGION_CLAUDE_HAIKU_4_5", of_haiku)].into_iter().collect();
        let config = ProviderConfig::vertex(&env, "p", BTreeMap::new()).unwrap();
        let Dialect::Vertex(vertex) = config.dialect else { panic!("another dialect") };
        assert_eq!(
            format!("{} {:?}", vertex.region, vertex.model_regions),
            expected,
            "{region:?} {of_haiku:?}"
        );
    }
}
