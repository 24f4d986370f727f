//! Ways to the server: TLS, HTTP/2, proxies, and the failures below HTTP.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use loci_core::stream::FailureKind;
use loci_http::{CertStore, NoProxy, ProxySettings};
use loci_llm::{Client, ProviderConfig};
use loci_testkit::{HttpVersion, Script, ScriptedModel, Step};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{config, model, request, run};

/// A TLS server, and a configuration that trusts it by an extra file alone.
async fn tls_model(steps: impl Into<Script>) -> (ScriptedModel, ProviderConfig, tempfile::TempDir) {
    let model = ScriptedModel::start_tls(steps.into().every_request()).await;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.pem"), model.ca_pem()).unwrap();
    let mut config = config(model.base_url());
    config.network.cert_store = CertStore::Bundled;
    config.network.extra_ca = Some(dir.path().join("ca.pem"));
    (model, config, dir)
}

#[tokio::test]
async fn extra_authority_is_trusted_over_http2() {
    let (model, config, _dir) = tls_model([Step::text("1"), Step::text("2")]).await;
    let client = Client::new(config).unwrap();
    client.warm_up();
    for _ in 0..2 {
        assert!(run(&client, request()).await.has_ended());
    }
    let requests = model.requests();
    assert!(requests.iter().all(|request| request.http_version == HttpVersion::Http2));
    assert_eq!(requests[0].connection, requests[1].connection);
}

#[tokio::test]
async fn cut_and_stall_over_http2_are_failures() {
    let steps = [Step::text("Hello").cut_after_events(4), Step::text("Hello").stall_after_events(4)];
    let (model, mut config, _dir) = tls_model(steps).await;
    config.timeouts.byte_idle = Duration::from_secs(1);
    let client = Client::new(config).unwrap();
    assert_eq!(run(&client, request()).await.failure().kind, FailureKind::Cut);
    assert_eq!(run(&client, request()).await.failure().kind, FailureKind::Stalled);
    model.wait_for_hang_ups(1).await;
}

#[tokio::test]
async fn an_unknown_authority_is_refused_with_a_way_out() {
    let (model, mut config, _dir) = tls_model(Step::text("never")).await;
    config.network.extra_ca = None;
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    let failure = outcome.failure();
    assert_eq!((failure.kind, failure.is_retryable()), (FailureKind::Tls, false));
    let message = failure.message.replace(model.base_url(), "BASE");
    expect!["The certificate of `BASE` is not trusted: invalid peer certificate: UnknownIssuer"]
        .assert_eq(&message);
    assert!(failure.hint.as_ref().unwrap().contains("NODE_EXTRA_CA_CERTS"));
}

#[tokio::test]
async fn a_missing_authority_file_is_named() {
    let (_model, mut config, _dir) = tls_model(Step::text("never")).await;
    config.network.extra_ca = Some(PathBuf::from("/no/such/ca.pem"));
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    expect![
        "Failed to read `/no/such/ca.pem` from `NODE_EXTRA_CA_CERTS`: No such file or directory (os error 2)"
    ]
    .assert_eq(&outcome.failure().message);
}

#[tokio::test]
async fn plain_http_reads_no_certificates() {
    let model = model(Step::text("ok")).await;
    let mut config = config(model.base_url());
    config.network.extra_ca = Some(PathBuf::from("/no/such/ca.pem"));
    config.network.cert_store = CertStore::System;
    let client = Client::new(config).unwrap();
    client.warm_up();
    assert!(run(&client, request()).await.has_ended());
}

#[tokio::test]
async fn tls_to_a_plain_server_is_explained() {
    let address = start_without_tls().await;
    let mut config = config(&format!("https://{address}"));
    config.network.cert_store = CertStore::Bundled;
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    assert_eq!(outcome.failure().kind, FailureKind::Tls);
    assert!(outcome.failure().hint.as_ref().unwrap().contains("does not speak TLS"), "{outcome:?}");
}

#[tokio::test]
async fn refused_connection_is_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let outcome = run(&Client::new(config(&base_url)).unwrap(), request()).await;
    assert_eq!(outcome.failure().kind, FailureKind::NoListener);
    let message = outcome.failure().message.replace(&base_url, "BASE");
    expect!["Failed to connect to `BASE`: the connection was refused"].assert_eq(&message);
}

/// A server that answers whatever it gets as plain servers answer a TLS greeting.
async fn start_without_tls() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        // Keeps the connection until the client closes it, so that the answer is read before the end.
        drop(stream.read_to_end(&mut Vec::new()).await);
    });
    address
}

/// A proxy that notes the head of each request and lets it through, or asks for credentials.
struct TinyProxy {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TinyProxy {
    async fn start(answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let noted = heads.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(proxy_one(stream, noted.clone(), answer));
            }
        });
        Self { address, heads }
    }

    fn settings(&self, no_proxy: &str) -> ProxySettings {
        let url = format!("http://user:hush-hush@{}", self.address).parse().unwrap();
        ProxySettings { url, no_proxy: NoProxy::parse(no_proxy) }
    }

    fn first_lines(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().map(|head| head.lines().next().unwrap().to_owned()).collect()
    }
}

async fn proxy_one(stream: TcpStream, heads: Arc<Mutex<Vec<String>>>, answer: Option<&str>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).await.unwrap() > 0, "a whole head");
    }
    heads.lock().unwrap().push(head.clone());
    if let Some(answer) = answer {
        stream.write_all(answer.as_bytes()).await.unwrap();
        return;
    }
    let target = head.split(' ').nth(1).unwrap();
    if head.starts_with("CONNECT ") {
        let mut server = TcpStream::connect(target).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        // Either side may go away first.
        drop(copy_bidirectional(&mut stream, &mut server).await);
        return;
    }
    let host = target.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut server = TcpStream::connect(host).await.unwrap();
    server.write_all(head.replacen(&format!("http://{host}"), "", 1).as_bytes()).await.unwrap();
    let mut already_read = vec![0; stream.buffer().len()];
    stream.read_exact(&mut already_read).await.unwrap();
    server.write_all(&already_read).await.unwrap();
    drop(copy_bidirectional(&mut stream, &mut server).await);
}

#[tokio::test]
async fn plain_requests_name_the_whole_address_to_a_proxy() {
    let (model, proxy) = (model(Step::text("ok")).await, TinyProxy::start(None).await);
    let mut config = config(model.base_url());
    config.network.proxy = Some(proxy.settings("example.com"));
    assert!(run(&Client::new(config).unwrap(), request()).await.has_ended());
    assert_eq!(proxy.first_lines(), [format!("POST {}/v1/messages?beta=true HTTP/1.1", model.base_url())]);
    let head = proxy.heads.lock().unwrap()[0].to_lowercase();
    assert!(head.contains("proxy-authorization: basic"), "{head}");
}

#[tokio::test]
async fn tls_goes_through_a_tunnel() {
    let proxy = TinyProxy::start(None).await;
    let (model, mut config, _dir) = tls_model(Step::text("ok")).await;
    config.network.proxy = Some(proxy.settings(""));
    assert!(run(&Client::new(config).unwrap(), request()).await.has_ended());
    let server = model.base_url().strip_prefix("https://").unwrap();
    assert_eq!(proxy.first_lines(), [format!("CONNECT {server} HTTP/1.1")]);
    assert_eq!(model.requests()[0].http_version, HttpVersion::Http2);
}

#[tokio::test]
async fn exempt_hosts_go_around_the_proxy() {
    let (model, proxy) = (model(Step::text("ok")).await, TinyProxy::start(None).await);
    let mut config = config(model.base_url());
    config.network.proxy = Some(proxy.settings("localhost, 127.0.0.1"));
    assert!(run(&Client::new(config).unwrap(), request()).await.has_ended());
    assert_eq!(proxy.first_lines(), [""; 0]);
}

#[tokio::test]
async fn refusal_of_a_proxy_is_explained() {
    for (answer, hint) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "user and password"),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "HTTPS_PROXY"),
    ] {
        let proxy = TinyProxy::start(Some(answer)).await;
        let (_model, mut config, _dir) = tls_model(Step::text("never")).await;
        config.network.proxy = Some(proxy.settings(""));
        let outcome = run(&Client::new(config).unwrap(), request()).await;
        let failure = outcome.failure();
        assert_eq!(failure.kind, FailureKind::Connect);
        assert!(failure.hint.as_ref().unwrap().contains(hint), "{failure:?}");
        assert!(!format!("{failure:?}").contains("hush"), "{failure:?}");
    }
}

#[tokio::test]
async fn missing_proxy_is_explained() {
    let model = model(Step::text("never")).await;
    let proxy = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let mut config = config(model.base_url());
    let url = format!("http://user:hush-hush@{proxy}").parse().unwrap();
    config.network.proxy = Some(ProxySettings { url, no_proxy: NoProxy::default() });
    let outcome = run(&Client::new(config).unwrap(), request()).await;
    let message =
        outcome.failure().message.replace(model.base_url(), "BASE").replace(&proxy.to_string(), "PROXY");
    expect!["Failed to connect to `BASE` through the proxy `http://PROXY`: the connection was refused"]
        .assert_eq(&message);
}
