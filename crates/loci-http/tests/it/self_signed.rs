//! A server whose certificate signed itself, as `openssl req -x509` makes it, and who trusts it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loci_core::web::{PageAnswer, PageRequest};
use loci_http::{HttpCall, JsonPostError, fetch_page, http_call};
use loci_stdx::Env;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// Starts a server that greets whoever trusts it; its certificate is written to `own.pem`.
async fn start(name: &str, dir: &Path) -> SocketAddr {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let own = params.self_signed(&key).unwrap();
    std::fs::write(dir.join("own.pem"), own.pem()).unwrap();
    // Another one of the same words, whose key the server does not have.
    std::fs::write(dir.join("other.pem"), params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem())
        .unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).await.is_ok_and(|n| n > 2) {
                line.clear();
            }
            stream.write_all(ANSWER).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    address
}

fn env(dir: &Path, vars: &[(&str, &str)]) -> Env {
    let mut env = Env::for_test(dir, dir);
    env.vars = vars.iter().copied().collect();
    env
}

async fn call(env: &Env, address: SocketAddr) -> Result<(u16, String), String> {
    let call = HttpCall {
        method: "GET",
        url: format!("https://{address}/"),
        headers: Vec::new(),
        body: None,
        limit: Duration::from_secs(60),
    };
    http_call(env, call).await.map_err(|error| match error {
        JsonPostError::TimedOut => "it took too long".to_owned(),
        JsonPostError::Failed(why) => why,
    })
}

async fn page(env: &Env, address: SocketAddr) -> Result<Vec<u8>, String> {
    let request = PageRequest {
        url: format!("https://{address}/"),
        host: address.ip().to_string(),
        may_be_private: true,
    };
    match fetch_page(env, request).await? {
        PageAnswer::Page(page) => Ok(page.body),
        PageAnswer::Elsewhere(redirect) => Err(redirect.to),
    }
}

#[tokio::test]
async fn certificate_that_is_named_is_accepted_for_requests_and_pages() {
    let dir = tempfile::tempdir().unwrap();
    let address = start("127.0.0.1", dir.path()).await;
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        let env = env(dir.path(), &[(variable, "own.pem")]);
        assert_eq!(call(&env, address).await, Ok((200, "hello".to_owned())), "{variable}");
        assert_eq!(page(&env, address).await, Ok(b"hello".to_vec()), "{variable}");
    }
}

#[tokio::test]
async fn certificate_that_is_not_named_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let address = start("127.0.0.1", dir.path()).await;
    for vars in [&[][..], &[("NODE_EXTRA_CA_CERTS", "other.pem")], &[("SSL_CERT_FILE", "other.pem")]] {
        let env = env(dir.path(), vars);
        let error = call(&env, address).await.unwrap_err();
        assert!(error.contains("certificate"), "{vars:?}: {error}");
        assert!(page(&env, address).await.is_err(), "{vars:?}");
    }
}

#[tokio::test]
async fn certificate_for_another_name_is_refused_though_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let address = start("gateway.test", dir.path()).await;
    let env = env(dir.path(), &[("NODE_EXTRA_CA_CERTS", "own.pem")]);
    let error = call(&env, address).await.unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");
}
