//! HTTP/2 and HTTP/1.1 over TLS, under a certificate authority made for the occasion.
//!
//! Here hyper speaks HTTP, so faults fall between frames: a cut closes the whole connection, with every
//! stream on it and without a TLS farewell, after what was sent before it has been flushed.

use super::answer::ScriptState;
use super::perform::{End, Transport, perform};
use crate::recorded::{HttpVersion, Recorded};
use crate::wire::Act;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// Who vouches for the server: a fresh authority, and a certificate of its for loopback.
pub(crate) struct Identity {
    pub(crate) ca_pem: String,
    pub(crate) acceptor: TlsAcceptor,
}

impl Identity {
    pub(crate) fn generate() -> Self {
        let authority = authority();
        let key = KeyPair::generate().expect("generate a key");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("the names are valid");
        let certificate = params.signed_by(&key, &authority).expect("sign the certificate");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("the key is PKCS#8");
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("the key fits the certificate");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { ca_pem: authority.pem(), acceptor: TlsAcceptor::from(Arc::new(config)) }
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "loci test authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().expect("generate a key");
    CertifiedIssuer::self_signed(params, key).expect("sign the authority")
}

/// Answers the requests of one connection until either side ends it.
pub(crate) async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    number: usize,
    script_state: Arc<ScriptState>,
) {
    // A client that does not trust the authority ends the handshake; that is its good right.
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let cut = Arc::new(Notify::new());
    let service = service_fn(|request| handle(request, number, script_state.clone(), cut.clone()));
    let builder = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        // How a connection ended is the client's to judge.
        _ended = builder.serve_connection(TokioIo::new(stream), service) => {}
        () = cut.notified() => {}
    }
}

async fn handle(
    request: Request<Incoming>,
    number: usize,
    script_state: Arc<ScriptState>,
    cut: Arc<Notify>,
) -> Result<Response<Frames>, hyper::Error> {
    let recorded = record(request, number).await?;
    let reply = script_state.answer(recorded);
    let mut in_flight = InFlight { script_state, is_over: false };
    if let End::Cut { .. } = perform(reply.before, &mut NoBody).await {
        in_flight.is_over = true;
        cut.notify_one();
        std::future::pending::<()>().await;
    }
    let (sender, frames) = mpsc::channel(1);
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    if let Some(length) = reply.length {
        response = response.header("content-length", length);
    }
    let response = response.body(Frames(frames)).expect("the script's headers are valid");
    tokio::spawn(send_body(reply.body, sender, in_flight, cut));
    Ok(response)
}

async fn record(request: Request<Incoming>, number: usize) -> Result<Recorded, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let headers = head.headers.iter();
    Ok(Recorded {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        headers: headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        json: serde_json::from_slice(&body).unwrap_or_default(),
        body,
        arrived: Instant::now(),
        http_version: if head.version == Version::HTTP_2 { HttpVersion::Http2 } else { HttpVersion::Http11 },
        connection: number,
        violations: Vec::new(),
    })
}

async fn send_body(acts: Vec<Act>, sender: mpsc::Sender<Bytes>, mut in_flight: InFlight, cut: Arc<Notify>) {
    let mut sender = BodySender(sender);
    match perform(acts, &mut sender).await {
        End::Done => in_flight.is_over = true,
        End::Gone => {}
        End::Cut { .. } => {
            in_flight.is_over = true;
            flush().await;
            cut.notify_one();
            sender.0.closed().await;
        }
    }
}

/// Lets the tasks of the connection put on the wire what has been handed to them.
///
/// The server's runtime has one thread, so each yield runs every task that is ready once; a frame goes
/// through three of them.
async fn flush() {
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

/// An answer under way; dropped before it is over, it counts as a client that hung up.
struct InFlight {
    script_state: Arc<ScriptState>,
    is_over: bool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.is_over {
            self.script_state.note_hang_up();
        }
    }
}

/// The transport before there is a body. That the client has gone shows in our being dropped.
struct NoBody;

impl Transport for NoBody {
    async fn send(&mut self, _: Bytes) -> io::Result<()> {
        unreachable!("nothing is sent before the headers")
    }

    async fn send_torn(&mut self, _: Bytes, _: usize) -> io::Result<()> {
        unreachable!("nothing is sent before the headers")
    }

    async fn client_gone(&mut self) {
        std::future::pending::<()>().await;
    }
}

/// The transport of a body.
struct BodySender(mpsc::Sender<Bytes>);

impl Transport for BodySender {
    async fn send(&mut self, piece: Bytes) -> io::Result<()> {
        self.0.send(piece).await.map_err(io::Error::other)
    }

    async fn send_torn(&mut self, whole: Bytes, keep: usize) -> io::Result<()> {
        self.send(whole.slice(..keep)).await
    }

    async fn client_gone(&mut self) {
        self.0.closed().await;
    }
}

/// A body that ends when its sender is dropped.
struct Frames(mpsc::Receiver<Bytes>);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(ctx).map(|piece| piece.map(|it| Ok(Frame::data(it))))
    }
}
