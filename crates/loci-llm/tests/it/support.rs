//! What all tests here share: a client for a server, a run to the end, and events as lines.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use loci_core::message::{Block, Message};
use loci_core::raw::RawJson;
use loci_core::stream::{Delta, Failure, StreamEvent};
use loci_http::Secret;
use loci_llm::{Auth, Client, EventStream, ProviderConfig, Request, ToolSpec};
use loci_testkit::{Script, ScriptedModel, Step};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub(crate) const KEY: &str = "sk-test-0123456789";

/// A configuration that fails within seconds rather than minutes.
pub(crate) fn config(base_url: &str) -> ProviderConfig {
    let mut config = ProviderConfig::new(base_url, Auth::ApiKey(Secret::new(KEY)));
    config.network.connect_timeout = Duration::from_secs(20);
    config.timeouts.request = Duration::from_secs(20);
    config.timeouts.event_idle = Duration::from_secs(20);
    config.timeouts.byte_idle = Duration::from_secs(20);
    config
}

pub(crate) fn client(model: &ScriptedModel) -> Client {
    Client::new(config(model.base_url())).unwrap()
}

/// Starts a model that plays these steps for any request.
pub(crate) async fn model(steps: impl Into<Script>) -> ScriptedModel {
    ScriptedModel::start(steps.into().every_request()).await
}

pub(crate) fn request() -> Request {
    let json = json!({"name": "Read", "description": "Reads", "input_schema": {"type": "object"}});
    let tool = ToolSpec {
        name: "Read".to_owned(),
        json: RawJson::from_value(&json).unwrap(),
        uses_references: false,
    };
    let mut request = Request::new("claude-sonnet-4-5", 32_000, vec![Message::user_text("Hi")]);
    request.tools = Arc::from([tool]);
    request
}

/// What came of a request: all events, and the failure if it ended with one.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) failure: Option<Failure>,
}

pub(crate) fn stream(client: &Client, request: Request) -> EventStream {
    client.stream(Arc::new(request), CancellationToken::new())
}

pub(crate) async fn run(client: &Client, request: Request) -> Outcome {
    let mut stream = stream(client, request);
    let mut outcome = Outcome { events: Vec::new(), failure: None };
    while let Some(item) = stream.next().await {
        assert!(outcome.failure.is_none(), "nothing follows a failure");
        assert!(!outcome.has_ended(), "nothing follows the end");
        match item {
            Ok(event) => outcome.events.push(event),
            Err(failure) => outcome.failure = Some(failure),
        }
    }
    assert_ne!(outcome.has_ended(), outcome.failure.is_some(), "either an end or a failure: {outcome:?}");
    outcome
}

/// Runs one default request against these steps.
pub(crate) async fn run_steps(steps: impl Into<Script>) -> Outcome {
    let model = model(steps).await;
    run(&client(&model), request()).await
}

impl Outcome {
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.events.last(), Some(StreamEvent::Ended(_)))
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let done = |event: &StreamEvent| match event {
            StreamEvent::BlockDone { block, .. } => Some(block.clone()),
            _ => None,
        };
        self.events.iter().filter_map(done).collect()
    }

    /// Returns the kind and text of the failure.
    pub(crate) fn failure(&self) -> &Failure {
        self.failure.as_ref().unwrap_or_else(|| panic!("no failure: {:?}", self.events))
    }

    /// Renders one line an event, deltas of a block joined.
    pub(crate) fn render(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for event in &self.events {
            match event {
                StreamEvent::Wire(_) => {}
                StreamEvent::Started(started) => lines.push(format!(
                    "started {} {} in={} {}",
                    started.message_id,
                    started.model,
                    started.usage.input_tokens,
                    started.request_id.as_ref().map_or("-", |id| id.as_str())
                )),
                StreamEvent::BlockStarted { index, kind, name } => {
                    lines.push(format!("{index} {kind} {}| ", name.as_deref().unwrap_or_default()));
                }
                StreamEvent::Delta { delta, .. } => {
                    let (Delta::Text(text) | Delta::Thinking(text) | Delta::InputJson(text)) = delta;
                    lines.last_mut().unwrap().push_str(text);
                }
                StreamEvent::BlockDone { index, block } => {
                    lines.push(format!("{index} {}", block.json().as_str()));
                }
                StreamEvent::Ended(ended) => lines.push(format!(
                    "ended {} out={}",
                    ended.stop_reason.as_deref().unwrap_or("-"),
                    ended.usage.output_tokens
                )),
            }
        }
        lines.join("\n")
    }
}

/// An answer with every kind of block the model makes.
pub(crate) fn rich_step() -> Step {
    Step::text("Let me look at both files.")
        .thinking("The user greets me, so I look around.", "c2lnbmF0dXJl")
        .tool("Read", json!({"file_path": "/a", "limit": 3}))
        .tool("Read", json!({"file_path": "/b"}))
        .chunk(7)
        .usage(123, 45, 6, 7)
}
