//! The least of a model: it takes one request, notes when it came, and answers when it is told to.

use anyhow::Context;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long a request is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

const ANSWER: &str = "\
event: message_start
data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}

event: content_block_start
data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}

event: content_block_delta
data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Done.\"}}

event: content_block_stop
data: {\"type\":\"content_block_stop\",\"index\":0}

event: message_delta
data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2}}

event: message_stop
data: {\"type\":\"message_stop\"}

";

/// A server on loopback for one request.
pub(super) struct Model {
    base_url: String,
    arrived: Receiver<Instant>,
    answer: Sender<()>,
}

impl Model {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("Failed to listen on loopback")?;
        let address = listener.local_addr().context("Failed to listen on loopback")?;
        let (tell, arrived) = channel();
        let (answer, may_answer) = channel();
        std::thread::spawn(move || {
            // A connection that goes wrong leaves the program without an answer, which it complains about.
            let served = listener.accept().and_then(|(stream, _)| serve(stream, &tell, &may_answer));
            drop(served);
        });
        Ok(Self { base_url: format!("http://{address}"), arrived, answer })
    }

    pub(super) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Waits for the request and returns when it was there in whole.
    pub(super) fn first_request(&self) -> Option<Instant> {
        self.arrived.recv_timeout(PATIENCE).ok()
    }

    pub(super) fn answer(&self) {
        // Nobody waits any more when the program has gone.
        self.answer.send(()).unwrap_or_default();
    }
}

fn serve(mut stream: TcpStream, tell: &Sender<Instant>, may_answer: &Receiver<()>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    tell.send(Instant::now()).map_err(std::io::Error::other)?;
    if may_answer.recv_timeout(PATIENCE).is_ok() {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            ANSWER.len()
        );
        stream.write_all(format!("{head}{ANSWER}").as_bytes())?;
    }
    Ok(())
}
