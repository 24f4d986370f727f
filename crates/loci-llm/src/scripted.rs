//! A model that plays a script: no key, no network, the same events as any other.
//!
//! It is asked with real requests and answers with what the script chooses from them ([`Played`]). A script that only
//! knows blocks has them streamed word by word, with token counts estimated from the sizes of request and answer, four
//! characters a token.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use loci_core::message::{Block, BlockKind, Message};
use loci_core::stream::{Delta, Ended, Failure, Started, StreamEvent};
use loci_core::usage::Usage;
use tokio_util::sync::CancellationToken;

use crate::request::Request;

/// What a script plays in answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Played {
    /// A whole response.
    Response(Box<PlayedResponse>),
    /// A failure.
    Failed(Failure),
    /// Nothing, until the request is cancelled.
    Silence,
}

/// A response that a script plays.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayedResponse {
    /// Its head.
    pub started: Started,
    /// What it says.
    pub blocks: Vec<Block>,
    /// Its end.
    pub ended: Ended,
}

/// Chooses what is played by looking at the request.
type Script = dyn Fn(&Request) -> Played + Send + Sync;

/// The scripted provider.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Arc<Script>,
    /// How long each word takes; without it blocks come whole.
    pace: Option<Duration>,
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
        let script = move |request: &Request| estimated(request, script(request));
        Self { script: Arc::new(script), pace: Some(pace) }
    }

    pub(crate) fn playing(script: impl Fn(&Request) -> Played + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), pace: None }
    }

    /// Answers a request; each word waits for the pace. Cancelling ends the stream without a word.
    pub(crate) fn events(
        &self,
        request: &Request,
        cancel: CancellationToken,
    ) -> impl Stream<Item = Result<StreamEvent, Failure>> + Send + 'static {
        let played = (self.script)(request);
        let rest = match played {
            Played::Silence => stream::pending().left_stream(),
            Played::Response(_) | Played::Failed(_) => stream::empty().right_stream(),
        };
        let pace = self.pace.filter(|pace| !pace.is_zero());
        stream::iter(events(played, self.pace.is_some()))
            .then(move |event| async move {
                if let (Some(pace), Ok(StreamEvent::Delta { .. })) = (pace, &event) {
                    tokio::time::sleep(pace).await;
                }
                event
            })
            .chain(rest)
            .take_until(cancel.cancelled_owned())
    }
}

/// Makes a response of blocks alone.
fn estimated(request: &Request, blocks: Vec<Block>) -> Played {
    let usage = Usage { input_tokens: input_tokens(request), output_tokens: 1, ..Usage::default() };
    let turn = request.messages.len();
    let started = Started {
        message_id: format!("msg_scripted_{turn}").as_str().into(),
        model: request.model.clone(),
        usage: usage.clone(),
        request_id: None,
        rate_limits: None,
    };
    let calls = blocks.iter().any(|block| block.kind() == BlockKind::ToolUse);
    let output_tokens =
        blocks.iter().map(|block| block.json().as_str().len() as u64).sum::<u64>().div_ceil(4);
    let ended = Ended {
        stop_reason: Some(if calls { "tool_use" } else { "end_turn" }.to_owned()),
        stop_sequence: None,
        usage: Usage { output_tokens, ..usage },
        context_management: None,
    };
    Played::Response(Box::new(PlayedResponse { started, blocks, ended }))
}

fn events(played: Played, is_word_by_word: bool) -> Vec<Result<StreamEvent, Failure>> {
    let PlayedResponse { started, blocks, ended } = match played {
        Played::Response(response) => *response,
        Played::Failed(failure) => return vec![Err(failure)],
        Played::Silence => return Vec::new(),
    };
    let mut events = vec![StreamEvent::Started(started)];
    for (index, block) in blocks.into_iter().enumerate() {
        let name = block.tool_use().map(|call| call.name);
        let kind = if name.is_some() { "tool_use" } else { "text" }.to_owned();
        events.push(StreamEvent::BlockStarted { index, kind, name });
        if is_word_by_word {
            events.extend(words(&block).map(|word| StreamEvent::Delta { index, delta: Delta::Text(word) }));
        }
        events.push(StreamEvent::BlockDone { index, block });
    }
    events.push(StreamEvent::Ended(ended));
    events.into_iter().map(Ok).collect()
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
    async fn played_blocks_arrive_unchanged() {
        let request = Request::new("m", 100, vec![Message::user_text("hi")]);
        let failure = Failure::new(loci_core::stream::FailureKind::Overloaded, "too much");
        let says = failure.clone();
        let failing = Scripted::playing(move |_| Played::Failed(says.clone()));
        let events: Vec<_> = failing.events(&request, CancellationToken::new()).collect().await;
        assert_eq!(events, [Err(failure)]);

        let Played::Response(response) = estimated(&request, vec![Block::new_text("two words")]) else {
            unreachable!("blocks make a response");
        };
        let PlayedResponse { started, blocks, ended: end } = (*response).clone();
        let response = Played::Response(response);
        let whole = Scripted::playing(move |_| response.clone());
        let events: Vec<_> =
            whole.events(&request, CancellationToken::new()).map(Result::unwrap).collect().await;
        assert_eq!(events.len(), 4, "no deltas: {events:?}");
        assert_eq!(events[0], StreamEvent::Started(started));
        assert_eq!(events[2], StreamEvent::BlockDone { index: 0, block: blocks[0].clone() });
        assert_eq!(events[3], StreamEvent::Ended(end));

        let cancel = CancellationToken::new();
        cancel.cancel();
        let silent = Scripted::playing(|_| Played::Silence);
        assert_eq!(silent.events(&request, cancel).count().await, 0);
    }

    #[tokio::test]
    async fn cancelling_ends_a_scripted_stream_without_events() {
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
