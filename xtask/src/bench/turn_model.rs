//! A model on loopback that plays whole conversations: calls first, then an answer, and notes when each request came.
//!
//! What is asked beside the conversation (titles, summaries, token counts) is answered with a word and not counted.

use anyhow::Context;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What the model answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    /// It calls tools: names and inputs as JSON.
    Calls(Vec<(String, String)>),
    /// It says something, and the turn is over.
    Text(String),
}

/// One request of the conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    /// When it was there in whole.
    pub(crate) arrived: Instant,
    /// When the answer was written.
    pub(crate) answered: Instant,
}

/// Says what is answered: to the body of a request, and how many of the conversation came before it. None for a request
/// that is not part of it.
pub(crate) type Script = dyn Fn(&str, usize) -> Option<Reply> + Send + Sync;

/// A model that answers until the process ends.
pub(crate) struct TurnModel {
    base_url: String,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl TurnModel {
    /// Starts to listen.
    pub(crate) fn start(script: Box<Script>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("Failed to listen on loopback")?;
        let address = listener.local_addr().context("Failed to listen on loopback")?;
        let exchanges = Arc::new(Mutex::new(Vec::new()));
        let (kept, script) = (Arc::clone(&exchanges), Arc::<Script>::from(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, script) = (Arc::clone(&kept), Arc::clone(&script));
                // A connection that breaks is the program's own, which complains if it minds.
                std::thread::spawn(move || drop(serve(stream, &*script, &kept)));
            }
        });
        Ok(Self { base_url: format!("http://{address}"), exchanges })
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the requests of the conversation so far.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(mut stream: TcpStream, script: &Script, kept: &Mutex<Vec<Exchange>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some((head, body)) = read_request(&mut reader)? {
        let arrived = Instant::now();
        let is_messages = head.starts_with("POST /v1/messages ") || head.starts_with("POST /v1/messages?");
        let n_before = kept.lock().unwrap_or_else(PoisonError::into_inner).len();
        let reply = is_messages.then(|| script(&body, n_before)).flatten();
        let is_counted = reply.is_some();
        let reply = reply.unwrap_or_else(|| Reply::Text("ok".to_owned()));
        let answer = match (is_messages, body.contains("\"stream\":true")) {
            (false, _) => http("application/json", "{\"input_tokens\":1}"),
            (true, true) => http("text/event-stream", &events(&reply, n_before)),
            (true, false) => http("application/json", &message(&reply, n_before)),
        };
        if is_counted {
            // Noted before it is written: the next request may come before this thread goes on.
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(Exchange { arrived, answered: Instant::now() });
        }
        stream.write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// Reads a request: its first line and its body; none at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<(String, String)>> {
    let (mut first, mut length) = (String::new(), 0);
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = Vec::new();
    reader.by_ref().take(length).read_to_end(&mut body)?;
    Ok(Some((first, String::from_utf8_lossy(&body).into_owned())))
}

fn http(kind: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Returns a reply as the stream of events that the API sends.
fn events(reply: &Reply, n: usize) -> String {
    let mut out = String::new();
    let mut event = |name: &str, data: &str| out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    let start = format!(
        "{{\"type\":\"message_start\",\"message\":{{\"id\":\"msg_{n}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{{\"input_tokens\":1,\"output_tokens\":1}}}}}}"
    );
    event("message_start", &start);
    let blocks: Vec<(String, String)> = match reply {
        Reply::Text(text) => vec![(
            "{\"type\":\"text\",\"text\":\"\"}".to_owned(),
            format!("{{\"type\":\"text_delta\",\"text\":{}}}", quoted(text)),
        )],
        Reply::Calls(calls) => calls.iter().enumerate().map(|(idx, call)| call_block(call, n, idx)).collect(),
    };
    for (idx, (block, delta)) in blocks.iter().enumerate() {
        event(
            "content_block_start",
            &format!("{{\"type\":\"content_block_start\",\"index\":{idx},\"content_block\":{block}}}"),
        );
        event(
            "content_block_delta",
            &format!("{{\"type\":\"content_block_delta\",\"index\":{idx},\"delta\":{delta}}}"),
        );
        event("content_block_stop", &format!("{{\"type\":\"content_block_stop\",\"index\":{idx}}}"));
    }
    let end = format!(
        "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{}\",\"stop_sequence\":null}},\"usage\":{{\"output_tokens\":2}}}}",
        stop_reason(reply)
    );
    event("message_delta", &end);
    event("message_stop", "{\"type\":\"message_stop\"}");
    out
}

fn call_block((name, input): &(String, String), n: usize, idx: usize) -> (String, String) {
    (
        format!("{{\"type\":\"tool_use\",\"id\":\"toolu_{n}_{idx}\",\"name\":\"{name}\",\"input\":{{}}}}"),
        format!("{{\"type\":\"input_json_delta\",\"partial_json\":{}}}", quoted(input)),
    )
}

/// Returns a reply in one piece.
fn message(reply: &Reply, n: usize) -> String {
    let content = match reply {
        Reply::Text(text) => format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text)),
        Reply::Calls(calls) => {
            let block = |(idx, (name, input)): (usize, &(String, String))| {
                format!(
                    "{{\"type\":\"tool_use\",\"id\":\"toolu_{n}_{idx}\",\"name\":\"{name}\",\"input\":{input}}}"
                )
            };
            calls.iter().enumerate().map(block).collect::<Vec<_>>().join(",")
        }
    };
    format!(
        "{{\"id\":\"msg_{n}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[{content}],\"stop_reason\":\"{}\",\"stop_sequence\":null,\"usage\":{{\"input_tokens\":1,\"output_tokens\":1}}}}",
        stop_reason(reply)
    )
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply {
        Reply::Calls(_) => "tool_use",
        Reply::Text(_) => "end_turn",
    }
}

/// Returns a text as a JSON string; scripts hold nothing stranger than quotes and backslashes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(model: &TurnModel, body: &str) -> String {
        let address = model.base_url().trim_start_matches("http://").to_owned();
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!("POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn conversation_is_played_and_other_requests_are_not_counted() {
        let script = |body: &str, n: usize| {
            body.contains("mine").then(|| match n {
                0 => Reply::Calls(vec![("Read".to_owned(), "{\"file_path\":\"a\"}".to_owned())]),
                _ => Reply::Text("Done.".to_owned()),
            })
        };
        let model = TurnModel::start(Box::new(script)).unwrap();
        assert!(ask(&model, "{\"other\":1}").contains("\"text\":\"ok\""));
        let call = ask(&model, "{\"mine\":1,\"stream\":true}");
        assert!(call.contains("\"partial_json\":\"{\\\"file_path\\\":\\\"a\\\"}\""), "{call}");
        let done = ask(&model, "{\"mine\":1}");
        assert!(done.contains("Done.") && done.contains("end_turn"), "{done}");
        assert_eq!(model.exchanges().len(), 2);
    }
}
