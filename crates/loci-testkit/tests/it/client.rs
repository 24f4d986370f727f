//! A client made of a bare socket, which sees exactly what the server put on the wire.

use serde_json::{Value, json};
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back until the answer ended or the connection did.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// The body, chunks taken apart; torn chunks as far as they came.
    pub(crate) body: String,
    pub(crate) end: End,
}

/// How an answer ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    Closed,
    Reset,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|it| it.split_once(": "));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns the names of the whole events.
    pub(crate) fn event_names(&self) -> Vec<&str> {
        self.body.lines().filter_map(|it| it.strip_prefix("event: ")).collect()
    }

    /// Returns the data of the events that carry whole JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|it| it.strip_prefix("data: "));
        data.filter_map(|it| serde_json::from_str(it).ok()).collect()
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    seen: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(base_url: &str) -> Self {
        let address = base_url.strip_prefix("http://").unwrap();
        Self { stream: TcpStream::connect(address).await.unwrap(), seen: Vec::new() }
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &str) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all((head + body).as_bytes()).await.unwrap();
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn post(&mut self, body: &Value) -> Answer {
        self.send("POST", "/v1/messages?beta=true", &body.to_string()).await;
        self.answer().await
    }

    /// Reads one answer, or what there is of it.
    pub(crate) async fn answer(&mut self) -> Answer {
        loop {
            if let Some((answer, length)) = parse(&self.seen) {
                self.seen.drain(..length);
                return answer;
            }
            match self.stream.read_buf(&mut self.seen).await {
                Ok(0) => return partial(&self.seen, End::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return partial(&self.seen, End::Reset);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads until the answer so far contains `text`.
    pub(crate) async fn read_until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            assert_ne!(self.stream.read_buf(&mut self.seen).await.unwrap(), 0, "closed before {text}");
        }
    }
}

pub(crate) async fn post(base_url: &str, body: &Value) -> Answer {
    Client::connect(base_url).await.post(body).await
}

/// Returns a small main request that asks for a stream.
pub(crate) fn request(prompt: &str) -> Value {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 1000, "stream": true,
        "tools": [{"name": "Read", "description": "reads", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": prompt}],
    })
}

fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let head_end = find(bytes, b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let body = &bytes[head_end + 4..];
    let mut answer = partial(bytes, End::Whole);
    if head.contains("transfer-encoding: chunked") {
        let (text, length, true) = chunks(body) else { return None };
        answer.body = text;
        return Some((answer, head_end + 4 + length));
    }
    let length: usize = answer.header("content-length").unwrap().parse().unwrap();
    (body.len() >= length).then(|| {
        answer.body = String::from_utf8(body[..length].to_vec()).unwrap();
        (answer, head_end + 4 + length)
    })
}

fn partial(bytes: &[u8], end: End) -> Answer {
    let head_end = find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let status = head.split(' ').nth(1).map_or(0, |it| it.parse().unwrap());
    let rest = bytes.get(head_end + 4..).unwrap_or_default();
    let body = match head.contains("chunked") {
        true => chunks(rest).0,
        false => String::from_utf8_lossy(rest).into_owned(),
    };
    Answer { status, head, body, end }
}

/// Returns the text of the chunks, the bytes they took, and whether the last one was there.
fn chunks(mut bytes: &[u8]) -> (String, usize, bool) {
    let all = bytes.len();
    let mut text = Vec::new();
    while let Some(line_end) = find(bytes, b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line_end]).unwrap(), 16).unwrap();
        let rest = &bytes[line_end + 2..];
        text.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            break;
        }
        bytes = &rest[size + 2..];
        if size == 0 {
            return (String::from_utf8(text).unwrap(), all - bytes.len(), true);
        }
    }
    (String::from_utf8_lossy(&text).into_owned(), all, false)
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|it| it == needle)
}
