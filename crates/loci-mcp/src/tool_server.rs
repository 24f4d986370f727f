//! The other side: tools of ours, offered to a client over a pair of streams, in both eras of the protocol.
//!
//! A line each way is a message. Calls run side by side; whoever asked may cancel one, and at the end of the input all that
//! still run are cancelled and waited for. What a tool fails with is a result that says so; only what is wrong with the
//! request itself is an error of the protocol.
//!
//! What must stay true: every request is answered once, unless it was cancelled; nothing but messages is written.

mod answers;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::message::{INVALID_PARAMS, Message, RpcError, notification, response};
use crate::transport::line_reader::{Line, LineReader};
use answers::Era;

/// A tool that is offered.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What it takes.
    pub input_schema: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedResult {
    /// Its parts, as the protocol has them.
    pub content: Vec<Value>,
    /// Whether it failed.
    pub is_error: bool,
}

impl ServedResult {
    /// Returns a result of one text.
    pub fn text(text: impl Into<String>, is_error: bool) -> Self {
        Self { content: vec![json!({"type": "text", "text": text.into()})], is_error }
    }
}

/// A call that runs.
pub type ServedCall = Pin<Box<dyn Future<Output = ServedResult> + Send>>;
/// Is told what a call says while it runs.
pub type ServedProgress = Arc<dyn Fn(String) + Send + Sync>;

/// Tools, and whoever runs them.
pub trait ServedTools: Send + Sync {
    /// What there is.
    fn tools(&self) -> Vec<ServedTool>;

    /// Runs a call; it ends soon after `cancel` fires. The name is one of [`ServedTools::tools`].
    fn call(
        &self,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
        progress: Option<ServedProgress>,
    ) -> ServedCall;
}

/// Serves a client until its input ends or `stop` fires; returns when everything that it started has ended.
pub async fn serve(
    tools: Arc<dyn ServedTools>,
    version: &str,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
    stop: CancellationToken,
) {
    let (lines, mut outgoing) = unbounded_channel::<Value>();
    let writing = tokio::spawn(async move {
        while let Some(message) = outgoing.recv().await {
            let mut line = message.to_string().into_bytes();
            line.push(b'\n');
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                // Nobody reads any more; that the input ends too is how it is noticed.
                return;
            }
        }
    });
    let mut server = ToolServer {
        tools,
        version: version.to_owned(),
        era: Era::default(),
        lines,
        calls: Calls::default(),
    };
    let mut input = LineReader::new(Some(input));
    loop {
        let line = tokio::select! {
            line = input.next() => line,
            () = stop.cancelled() => None,
            // What has ended is not kept.
            Some(_) = server.calls.running.join_next(), if !server.calls.running.is_empty() => continue,
        };
        match line {
            Some(Line::Whole(line)) => server.take_line(&line),
            Some(Line::TooLong(line)) => {
                tracing::warn!(target: "loci::mcp", n_bytes = line.n_bytes, "a message of the host is too long and is skipped");
            }
            None => break,
        }
    }
    server.calls.cancel_all();
    while server.calls.running.join_next().await.is_some() {}
    drop(server);
    if let Err(error) = writing.await {
        tracing::debug!(target: "loci::mcp", %error, "the writer of answers ended badly");
    }
}

struct ToolServer {
    tools: Arc<dyn ServedTools>,
    version: String,
    era: Era,
    lines: UnboundedSender<Value>,
    calls: Calls,
}

/// Calls that run, by the id of their request.
#[derive(Default)]
struct Calls {
    running: JoinSet<()>,
    cancels: HashMap<String, CancellationToken>,
}

impl Calls {
    fn cancel(&mut self, id: &Value) {
        if let Some(cancel) = self.cancels.remove(&id.to_string()) {
            cancel.cancel();
        }
    }

    fn cancel_all(&mut self) {
        self.cancels.drain().for_each(|(_, cancel)| cancel.cancel());
    }
}

impl ToolServer {
    fn take_line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match Message::parse(line) {
            Ok(messages) => messages.into_iter().for_each(|message| self.take(message)),
            Err(problem) => {
                let code = if serde_json::from_slice::<Value>(line).is_ok() { -32600 } else { -32700 };
                self.say(response(&Value::Null, Err(RpcError::new(code, problem))));
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Request { id, method, params } => match method.as_str() {
                "tools/call" => self.call(id, params),
                "subscriptions/listen" => self.listen(&id, &params),
                method => {
                    let answer = self.era.answer(method, &params, self.tools.as_ref(), &self.version);
                    self.say(response(&id, answer));
                }
            },
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                self.calls.cancel(params.get("requestId").unwrap_or(&Value::Null));
            }
            // Nothing was asked, so nothing can be answered.
            Message::Notification { .. } | Message::Response { .. } => {}
        }
    }

    fn call(&mut self, id: Value, params: Value) {
        let is_stateless = match self.era.admit("tools/call", &params) {
            Ok(is_stateless) => is_stateless,
            Err(error) => return self.say(response(&id, Err(error))),
        };
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !self.tools.tools().iter().any(|tool| tool.name == name) {
            let error =
                RpcError::new(INVALID_PARAMS, format!("Unknown tool: {}", crate::names::brief(&name)));
            return self.say(response(&id, Err(error)));
        }
        let key = id.to_string();
        self.calls.cancels.retain(|_, call| !call.is_cancelled());
        if self.calls.cancels.contains_key(&key) {
            let error = RpcError::new(-32600, "a request with this id is under way");
            return self.say(response(&id, Err(error)));
        }
        let arguments = params.get("arguments").filter(|it| !it.is_null()).cloned();
        let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
        let cancel = CancellationToken::new();
        self.calls.cancels.insert(key, cancel.clone());
        let work = self.tools.call(&name, arguments, cancel.clone(), self.progress(&params));
        let (lines, version) = (self.lines.clone(), self.version.clone());
        self.calls.running.spawn(async move {
            let result = work.await;
            if cancel.is_cancelled() {
                return;
            }
            // Whoever asks for this id again finds it free.
            cancel.cancel();
            let mut body = json!({"content": result.content, "isError": result.is_error});
            if is_stateless {
                answers::complete(&mut body, &version);
            }
            drop(lines.send(response(&id, Ok(body))));
        });
    }

    /// Returns who is told what a call says, where its request wants that.
    fn progress(&self, params: &Value) -> Option<ServedProgress> {
        let token = params.get("_meta")?.get("progressToken").filter(|it| !it.is_null())?.clone();
        let (lines, count) = (self.lines.clone(), std::sync::atomic::AtomicU64::new(0));
        Some(Arc::new(move |text| {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            let params = json!({"progressToken": token, "progress": n, "message": text});
            drop(lines.send(notification("notifications/progress", params)));
        }))
    }

    /// Takes a subscription: nothing of ours ever changes, so what is told of it is that it stands.
    fn listen(&mut self, id: &Value, params: &Value) {
        match self.era.admit("subscriptions/listen", params) {
            Ok(true) => {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                let params = json!({"notifications": {}, "_meta": meta});
                self.say(notification("notifications/subscriptions/acknowledged", params));
            }
            Ok(false) => {
                self.say(response(id, Err(answers::unknown_method("subscriptions/listen"))));
            }
            Err(error) => self.say(response(id, Err(error))),
        }
    }

    fn say(&self, message: Value) {
        // Whoever does not read any more is not owed an answer.
        drop(self.lines.send(message));
    }
}

#[cfg(test)]
mod tests;
