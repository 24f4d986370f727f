//! The server over TLS, seen by the HTTP client our providers use.

use crate::client::request;
use futures_util::StreamExt;
use loci_testkit::{Gate, HttpVersion, ScriptedModel, Step};
use reqwest::{Certificate, Client, ClientBuilder, Response};

fn client(model: &ScriptedModel) -> ClientBuilder {
    // The first test to come installs it; the others find it there.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let authority = Certificate::from_pem(model.ca_pem().as_bytes()).unwrap();
    Client::builder().no_proxy().tls_certs_only([authority])
}

async fn post(client: &Client, model: &ScriptedModel) -> reqwest::Result<Response> {
    let url = format!("{}/v1/messages", model.base_url());
    let body = request("hi").to_string();
    client.post(url).header("anthropic-version", "2023-06-01").body(body).send().await
}

/// Reads what there is of a body, and tells whether it ended well.
async fn read(response: Response) -> (String, bool) {
    let mut text = String::new();
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => text.push_str(std::str::from_utf8(&piece).unwrap()),
            Err(_) => return (text, false),
        }
    }
    (text, true)
}

#[tokio::test]
async fn tls_server_streams_over_http1_and_http2() {
    for (version, only_http1) in [(HttpVersion::Http2, false), (HttpVersion::Http11, true)] {
        let model = ScriptedModel::start_tls([Step::text("one"), Step::text("two")]).await;
        let client = client(&model);
        let client = if only_http1 { client.http1_only() } else { client }.build().unwrap();
        for expected in ["one", "two"] {
            let response = post(&client, &model).await.unwrap();
            assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
            let (text, true) = read(response).await else { panic!("torn") };
            assert!(text.contains(&format!("\"{expected}\"")) && text.contains("message_stop"));
        }
        let seen: Vec<_> = model.requests().iter().map(|it| (it.http_version, it.connection)).collect();
        assert_eq!(seen, [(version, 0), (version, 0)]);
        model.requests_valid().unwrap();
    }
}

#[tokio::test]
async fn cuts_after_what_was_sent_has_arrived() {
    for only_http1 in [false, true] {
        let step = Step::text("abcdef").chunk(3).cut_after_events(4);
        let model = ScriptedModel::start_tls([step, Step::text("again")]).await;
        let client = client(&model);
        let client = if only_http1 { client.http1_only() } else { client }.build().unwrap();
        let (text, is_whole) = read(post(&client, &model).await.unwrap()).await;
        assert!(!is_whole && text.ends_with("\"text\":\"abc\"}}\n\n"), "{only_http1} {text}");
        let (text, is_whole) = read(post(&client, &model).await.unwrap()).await;
        assert!(is_whole && text.contains("again"));
        assert_eq!(model.requests()[1].connection, 1, "the old connection was closed");
    }
}

#[tokio::test]
async fn notices_a_client_that_leaves() {
    let gate = Gate::new();
    let steps = [Step::text("a").wait_for(gate.clone()), Step::text("b").hang_before_headers()];
    let model = ScriptedModel::start_tls(steps).await;
    let client = client(&model).build().unwrap();
    let response = post(&client, &model).await.unwrap();
    gate.reached().await;
    drop(response);
    model.wait_for_hang_ups(1).await;
    tokio::select! {
        answer = post(&client, &model) => panic!("{answer:?}"),
        _ = model.wait_for_requests(2) => {}
    }
    model.wait_for_hang_ups(2).await;
}

#[tokio::test]
async fn tls_server_sends_refusals_and_statuses() {
    let steps = [Step::text("a").refuse(), Step::status(529).header("retry-after", "0")];
    let model = ScriptedModel::start_tls(steps).await;
    let client = client(&model).retry(reqwest::retry::never()).build().unwrap();
    assert!(post(&client, &model).await.is_err());
    let response = post(&client, &model).await.unwrap();
    assert_eq!(response.status(), 529);
    assert_eq!(response.headers()["retry-after"], "0");
    assert!(read(response).await.0.contains("overloaded_error"));
}

#[tokio::test]
async fn client_without_the_authority_refuses_the_certificate() {
    let (model, other) = (ScriptedModel::start_tls([]).await, ScriptedModel::start_tls([]).await);
    let client = client(&other).build().unwrap();
    assert!(post(&client, &model).await.is_err());
    assert!(model.requests().is_empty());
}
