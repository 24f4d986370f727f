//! Requests in the clear to a server on this machine, over kept connections that acknowledge at once.
//!
//! Here the cost of a turn is the cost of the connection. A new one for each request makes the server accept it
//! first: half a millisecond with a simple one. An ordinary kept one delays its acknowledgements, and a server
//! that writes its head and its body apart is then held up for 40 ms. So connections are kept, and told after
//! each read to acknowledge now; where the system cannot be told, each request has its own.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use reqwest::{Body, Response, Url};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Post;

/// More than this many at rest are closed: the conversation uses one, side requests a few.
const MOST_KEPT: usize = 4;
const CAN_KEEP: bool = cfg!(target_os = "linux");

type Sender = SendRequest<Full<Bytes>>;
type Request = hyper::Request<Full<Bytes>>;

/// A server on this machine, with the connections to it that can be used again.
#[derive(Debug)]
pub(crate) struct LocalServer {
    host: String,
    port: u16,
    connect_timeout: Duration,
    kept: Mutex<Vec<Sender>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalError {
    #[error("failed to connect")]
    Connect(#[source] io::Error),
    #[error("no answer")]
    Exchange(#[source] hyper::Error),
    #[error("failed to write the request")]
    Request(#[source] hyper::http::Error),
}

impl LocalServer {
    /// Describes the server at `url`; `None` if its address asks for more than a connection and a path.
    pub(crate) fn new(url: &Url, connect_timeout: Duration) -> Option<Self> {
        let has_user = !url.username().is_empty() || url.password().is_some();
        if url.scheme() != "http" || has_user {
            return None;
        }
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default()?;
        Some(Self { host, port, connect_timeout, kept: Mutex::default() })
    }

    /// Sends a request and returns its answer as soon as its head is there.
    pub(crate) async fn post(&self, post: Post) -> Result<Response, LocalError> {
        let request = request(post)?;
        if let Some(mut sender) = self.take() {
            // The server may have closed it meanwhile, as servers do with connections at rest.
            if let Ok(answer) = sender.send_request(request.clone()).await {
                return Ok(self.keep(sender, answer));
            }
        }
        let mut sender = self.connect().await?;
        let answer = sender.send_request(request).await.map_err(LocalError::Exchange)?;
        Ok(self.keep(sender, answer))
    }

    async fn connect(&self) -> Result<Sender, LocalError> {
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = match tokio::time::timeout(self.connect_timeout, connecting).await {
            Ok(connected) => connected.map_err(LocalError::Connect)?,
            Err(_) => return Err(LocalError::Connect(io::ErrorKind::TimedOut.into())),
        };
        stream.set_nodelay(true).map_err(LocalError::Connect)?;
        let (sender, connection) =
            handshake(TokioIo::new(Prompt(stream))).await.map_err(LocalError::Exchange)?;
        // How it ends is told to whoever waits for an answer on it.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }

    /// Takes a connection whose last answer was read to its end.
    fn take(&self) -> Option<Sender> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|sender| !sender.is_closed());
        let idx = kept.iter().position(SendRequest::is_ready)?;
        Some(kept.swap_remove(idx))
    }

    fn keep(&self, sender: Sender, answer: hyper::Response<hyper::body::Incoming>) -> Response {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if CAN_KEEP && kept.len() < MOST_KEPT {
            kept.push(sender);
        }
        answer.map(Body::wrap).into()
    }
}

fn request(post: Post) -> Result<Request, LocalError> {
    let url = &post.url;
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    let host = HeaderValue::try_from(host).map_err(|error| LocalError::Request(error.into()))?;
    let request = hyper::Request::post(target).body(Full::new(post.body));
    let mut request = request.map_err(LocalError::Request)?;
    *request.headers_mut() = post.headers;
    request.headers_mut().entry(HOST).or_insert(host);
    Ok(request)
}

/// A connection that acknowledges what it has read at once.
struct Prompt(TcpStream);

impl AsyncRead for Prompt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.0).poll_read(context, buf))?;
        acknowledge(&self.0);
        Poll::Ready(Ok(()))
    }
}

/// The system forgets the wish with the next packet, so it is told again each time. A refusal costs speed only.
#[cfg(target_os = "linux")]
fn acknowledge(stream: &TcpStream) {
    drop(stream.set_quickack(true));
}

#[cfg(not(target_os = "linux"))]
fn acknowledge(_: &TcpStream) {}

impl AsyncWrite for Prompt {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
