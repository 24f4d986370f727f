//! HTTP/1.1 over a bare socket.
//!
//! Written by hand because a fault must fall on an exact byte: a library would finish the chunk, or drop what
//! it had buffered, before it closed the connection. It knows just what clients of the API send: a head, and
//! a body by `content-length` or in chunks, one request after the other.

use super::answer::ScriptState;
use super::perform::{End, Transport, perform};
use crate::recorded::{HttpVersion, Recorded};
use crate::wire::Reply;
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Answers the requests of one connection until either side ends it.
pub(crate) async fn serve(stream: TcpStream, number: usize, script_state: Arc<ScriptState>) {
    let mut connection = Connection { stream, unread: BytesMut::new(), is_chunked: false };
    while let Ok(Some(request)) = connection.read_request(number).await {
        let is_head = request.method == "HEAD";
        let is_last = request.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        let reply = script_state.answer(request);
        match connection.write_reply(reply, is_head).await {
            End::Done if !is_last => {}
            End::Done => return,
            End::Cut { reset } => return connection.close(reset).await,
            End::Gone => return script_state.note_hang_up(),
        }
    }
}

struct Connection {
    stream: TcpStream,
    /// Bytes that came in and are not part of a request yet.
    unread: BytesMut,
    /// Whether the answer in hand goes out in chunks.
    is_chunked: bool,
}

/// Reading.
impl Connection {
    /// Returns the next request, or none if the client has closed the connection.
    async fn read_request(&mut self, number: usize) -> io::Result<Option<Recorded>> {
        let Some(head) = self.read_until(b"\r\n\r\n").await? else { return Ok(None) };
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.split("\r\n");
        let mut request_line = lines.next().unwrap_or_default().split(' ');
        let mut request = Recorded {
            method: request_line.next().unwrap_or_default().to_owned(),
            path: request_line.next().unwrap_or_default().to_owned(),
            headers: lines.filter_map(header).collect(),
            body: Bytes::new(),
            json: Value::Null,
            arrived: Instant::now(),
            http_version: HttpVersion::Http11,
            connection: number,
            violations: Vec::new(),
        };
        if request.header("expect").is_some() {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let Some(body) = self.read_body(&request).await? else { return Ok(None) };
        request.json = serde_json::from_slice(&body).unwrap_or_default();
        request.body = body;
        request.arrived = Instant::now();
        Ok(Some(request))
    }

    async fn read_body(&mut self, head: &Recorded) -> io::Result<Option<Bytes>> {
        if head.header("transfer-encoding").is_some_and(|it| it.eq_ignore_ascii_case("chunked")) {
            return self.read_chunks().await;
        }
        let length = head.header("content-length").map_or(Ok(0), str::parse);
        self.read_exactly(length.map_err(io::Error::other)?).await
    }

    async fn read_chunks(&mut self) -> io::Result<Option<Bytes>> {
        let mut body = BytesMut::new();
        loop {
            let Some(line) = self.read_until(b"\r\n").await? else { return Ok(None) };
            let size = String::from_utf8_lossy(&line).into_owned();
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            let Some(chunk) = self.read_exactly(size + 2).await? else { return Ok(None) };
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return Ok(Some(body.freeze()));
            }
        }
    }

    /// Returns what comes before `end`, and takes both from the input.
    async fn read_until(&mut self, end: &[u8]) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|it| it == end) {
                let found = self.unread.split_to(at).freeze();
                self.unread.split_to(end.len()).clear();
                return Ok(Some(found));
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn read_exactly(&mut self, length: usize) -> io::Result<Option<Bytes>> {
        while self.unread.len() < length {
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Ok(None);
            }
        }
        Ok(Some(self.unread.split_to(length).freeze()))
    }
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim().to_lowercase(), value.trim().to_owned()))
}

/// Writing.
impl Connection {
    async fn write_reply(&mut self, reply: Reply, is_head: bool) -> End {
        match perform(reply.before, self).await {
            End::Done => {}
            end @ (End::Cut { .. } | End::Gone) => return end,
        }
        self.is_chunked = reply.length.is_none();
        let head = head(reply.status, &reply.headers, reply.length);
        if self.stream.write_all(head.as_bytes()).await.is_err() {
            return End::Gone;
        }
        if is_head {
            return End::Done;
        }
        let end = perform(reply.body, self).await;
        if end == End::Done && self.is_chunked && self.stream.write_all(b"0\r\n\r\n").await.is_err() {
            return End::Gone;
        }
        end
    }

    async fn close(mut self, reset: bool) {
        // Either way the connection is gone; a client that was quicker has closed it already.
        if reset {
            self.stream.set_zero_linger().ok();
        } else {
            self.stream.shutdown().await.ok();
        }
    }
}

impl Transport for Connection {
    async fn send(&mut self, piece: Bytes) -> io::Result<()> {
        let keep = piece.len();
        self.send_torn(piece.clone(), keep).await?;
        if self.is_chunked { self.stream.write_all(b"\r\n").await } else { Ok(()) }
    }

    async fn send_torn(&mut self, whole: Bytes, keep: usize) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(keep + 16);
        if self.is_chunked {
            bytes.extend_from_slice(format!("{:x}\r\n", whole.len()).as_bytes());
        }
        bytes.extend_from_slice(&whole[..keep]);
        self.stream.write_all(&bytes).await
    }

    async fn client_gone(&mut self) {
        // A client that sends its next request early is still there; one that has closed is not.
        while self.stream.read_buf(&mut self.unread).await.is_ok_and(|n| n > 0) {}
    }
}

fn head(status: u16, headers: &[(String, String)], length: Option<usize>) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match length {
        Some(length) => head.push_str(&format!("content-length: {length}\r\n\r\n")),
        None => head.push_str("transfer-encoding: chunked\r\n\r\n"),
    }
    head
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}
