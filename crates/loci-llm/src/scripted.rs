//! A model that plays a script: no key, no network, the same events as any other.
//!
//! It is asked with real requests and answers with blocks chosen from them, streamed word by word. Token counts
//! are estimated from the sizes of request and answer, four characters a token.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use loci_core::message::{Block, BlockKind, Message};
use loci_core::stream::{Delta, Ended, Failure, Started, StreamEvent};
use loci_core::usage::Usage;
use tokio_util::sync::CancellationToken;

use crate::request::Request;

/// Chooses an answer by looking at the request.
type Script = dyn Fn(&Request) -> Vec<Block> + Send + Sync;

/// The scripted provider.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Arc<Script>,
    pace: Duration,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("pace", &self.pace).finish_non_exhaustive()
    }
}

impl Scripted {
    pub(crate) fn new(
        script: impl Fn(&Request) -> Vec<Block> + Send + Sync + 'static,
        pace: Duration,
    ) -> Self {
        Self { script: Arc::new(script), pace }
    }

    /// Answers a request; each word waits for the pace. Cancelling ends the stream without a word.
    pub(crate) fn events(
        &self,
        request: &Request,
        cancel: CancellationToken,
    ) -> impl Stream<Item = Result<StreamEvent, Failure>> + Send + 'static {
        let events = events(request, (self.script)(request));
        let pace = self.pace;
        stream::iter(events)
            .then(move |event| async move {
                if !pace.is_zero() && matches!(event, StreamEvent::Delta { .. }) {
                    tokio::time::sleep(pace).await;
                }
                Ok(event)
            })
            .take_until(cancel.cancelled_owned())
    }
}

fn events(request: &Request, blocks: Vec<Block>) -> Vec<StreamEvent> {
    let usage = Usage { input_tokens: input_tokens(request), output_tokens: 1, ..Usage::default() };
    let turn = request.messages.len();
    let mut events = vec![StreamEvent::Started(Started {
        message_id: format!("msg_scripted_{turn}").as_str().into(),
        model: request.model.clone(),
        usage: usage.clone(),
        request_id: None,
    })];
    let calls = blocks.iter().any(|block| block.kind() == BlockKind::ToolUse);
    let output_tokens =
        blocks.iter().map(|block| block.json().as_str().len() as u64).sum::<u64>().div_ceil(4);
    for (index, block) in blocks.into_iter().enumerate() {
        let name = block.tool_use().map(|call| call.name);
        let kind = if name.is_some() { "tool_use" } else { "text" }.to_owned();
        events.push(StreamEvent::BlockStarted { index, kind, name });
        events.extend(words(&block).map(|word| StreamEvent::Delta { index, delta: Delta::Text(word) }));
        events.push(StreamEvent::BlockDone { index, block });
    }
    events.push(StreamEvent::Ended(Ended {
        stop_reason: Some(if calls { "tool_use" } else { "end_turn" }.to_owned()),
        stop_sequence: None,
        usage: Usage { output_tokens, ..usage },
    }));
    events
}

fn words(block: &Block) -> impl Iterator<Item = String> + use<> {
    let text = block.text().unwrap_or_default();
    text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn input_tokens(request: &Request) -> u64 {
    let system: usize = request.system.iter().map(|block| block.text.len()).sum();
    let tools: usize = request.tools.iter().map(|tool| tool.json.as_str().len()).sum();
    let of =
        |message: &Message| message.content.iter().map(|block| block.json().as_str().len()).sum::<usize>();
    let messages: usize = request.messages.iter().map(of).sum();
    ((system + tools + messages) as u64).div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_script_streams_like_any_model() {
        let scripted = Scripted::new(
            |request| vec![Block::new_text(&format!("{} messages heard", request.messages.len()))],
            Duration::ZERO,
        );
        let request = Request::new("m", 100, vec![Message::user_text("hi")]);
        let events: Vec<StreamEvent> =
            scripted.events(&request, CancellationToken::new()).map(Result::unwrap).collect().await;
        let text: String = events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::Delta { delta: Delta::Text(text), .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "1 messages heard");
        assert!(matches!(events.first(), Some(StreamEvent::Started(_))));
        assert!(matches!(events.last(), Some(StreamEvent::Ended(ended)) if ended.usage.output_tokens > 0));
    }

    #[tokio::test]
    async fn cancelling_ends_it_without_a_word() {
        let scripted = Scripted::new(|_| vec![Block::new_text("never heard")], Duration::from_secs(3600));
        let cancel = CancellationToken::new();
        let request = Request::new("m", 100, vec![Message::user_text("hi")]);
        let mut events = Box::pin(scripted.events(&request, cancel.clone()));
        assert!(matches!(events.next().await, Some(Ok(StreamEvent::Started(_)))));
        cancel.cancel();
        let rest: Vec<_> = events.collect().await;
        assert!(!rest.iter().any(|event| matches!(event, Ok(StreamEvent::Ended(_)))));
    }
}
