//! What is on the wire: path, headers, body.

use expect_test::expect;
use loci_http::Secret;
use loci_llm::{Auth, Client, Request, SystemBlock, Thinking};
use loci_testkit::{Recorded, Step};

use crate::support::{client, config, model, request, run};

async fn recorded(change: impl FnOnce(&mut loci_llm::ProviderConfig), request: Request) -> Recorded {
    let model = model(Step::text("ok")).await;
    let mut config = config(model.base_url());
    change(&mut config);
    run(&Client::new(config).unwrap(), request).await;
    model.requests_valid().unwrap();
    model.requests().remove(0)
}

fn shown_headers(recorded: &Recorded) -> String {
    let mut headers: Vec<String> = recorded
        .headers
        .iter()
        .filter(|(name, _)| !["host", "content-length"].contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    headers.sort();
    headers.join("\n")
}

#[tokio::test]
async fn request_has_the_path_and_headers_of_the_api() {
    let mut full = request();
    full.model.push_str("[1m]");
    full.thinking = Thinking::Budget(2000);
    full.session_id = Some("s-1".to_owned());
    full.agent_id = Some("a-1".to_owned());
    full.parent_agent_id = Some("a-0".to_owned());
    full.client_request_id = Some("r-1".to_owned());
    full.system = vec![SystemBlock { text: "You help.".to_owned(), is_cached: true }];
    let recorded = recorded(|_| {}, full).await;
    assert_eq!((recorded.method.as_str(), recorded.path.as_str()), ("POST", "/v1/messages?beta=true"));
    expect![[r#"
        accept: application/json
        anthropic-beta: context-1m-2025-08-07,interleaved-thinking-2025-05-14,context-management-2025-06-27
        anthropic-version: 2023-06-01
        content-type: application/json
        user-agent: loci/0.1.0 (external, sdk-cli)
        x-api-key: sk-test-0123456789
        x-app: cli
        x-claude-code-agent-id: a-1
        x-claude-code-parent-agent-id: a-0
        x-claude-code-session-id: s-1
        x-client-request-id: r-1"#]]
    .assert_eq(&shown_headers(&recorded));
    assert_eq!(recorded.json["model"], "claude-sonnet-4-5");
}

#[tokio::test]
async fn a_bearer_token_and_headers_of_the_users_own() {
    let change = |config: &mut loci_llm::ProviderConfig| {
        config.auth = Auth::Bearer(Secret::new("token"));
        config.user_agent = "loci/0.1.0 (external, sdk-py)".to_owned();
        config.extra_betas = vec!["mine".to_owned()];
        config.custom_headers =
            vec![("X-Team".to_owned(), "platform".to_owned()), ("X-App".to_owned(), "theirs".to_owned())];
    };
    expect![[r#"
        accept: application/json
        anthropic-beta: mine
        anthropic-version: 2023-06-01
        authorization: Bearer token
        content-type: application/json
        user-agent: loci/0.1.0 (external, sdk-py)
        x-app: theirs
        x-team: platform"#]]
    .assert_eq(&shown_headers(&recorded(change, request()).await));
}

#[tokio::test]
async fn request_without_credentials_has_no_auth_header() {
    let recorded = recorded(|config| config.auth = Auth::None, request()).await;
    assert_eq!((recorded.header("x-api-key"), recorded.header("authorization")), (None, None));
}

#[tokio::test]
async fn stable_features_send_no_beta_header() {
    let mut full = request();
    full.thinking = Thinking::Budget(2000);
    full.effort = Some("high".to_owned());
    let recorded = recorded(|config| config.allows_experimental_betas = false, full).await;
    assert_eq!(recorded.header("anthropic-beta"), None);
    assert!(
        recorded.json.get("context_management").is_none() && recorded.json.get("output_config").is_none()
    );
    assert_eq!(recorded.json["thinking"]["budget_tokens"], 2000);
}

#[tokio::test]
async fn bad_configurations_are_refused_before_anything_is_sent() {
    let model = model(Step::text("ok")).await;
    let refused = |change: &dyn Fn(&mut loci_llm::ProviderConfig)| {
        let mut config = config(model.base_url());
        change(&mut config);
        Client::new(config).unwrap_err().message
    };
    expect!["`ANTHROPIC_BASE_URL` is not an http or https address: `localhost`"]
        .assert_eq(&refused(&|config| config.base_url = "localhost".to_owned()));
    expect!["The credentials hold characters that cannot be sent"]
        .assert_eq(&refused(&|config| config.auth = Auth::ApiKey(Secret::new("hush\n"))));
    expect!["Not a header that can be sent: `X-Bad`"].assert_eq(&refused(&|config| {
        config.custom_headers = vec![("X-Bad".to_owned(), "hush\n".to_owned())];
    }));
    assert!(!format!("{:?}", client(&model)).contains(crate::support::KEY));
}
