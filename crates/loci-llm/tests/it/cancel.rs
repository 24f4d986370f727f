//! Requests that somebody stops.

use std::sync::Arc;

use futures_util::StreamExt;
use loci_core::stream::StreamEvent;
use loci_testkit::{Gate, Step};
use tokio_util::sync::CancellationToken;

use crate::support::{client, model, request};

#[tokio::test]
async fn cancelling_in_mid_stream_ends_it_and_hangs_up() {
    let gate = Gate::new();
    let model = model(Step::text("so far").wait_for(gate.clone()).then_text("never")).await;
    let cancel = CancellationToken::new();
    let mut stream = client(&model).stream(Arc::new(request()), cancel.clone());
    while !matches!(stream.next().await, Some(Ok(StreamEvent::Delta { .. }))) {}
    gate.reached().await;
    let waiting = tokio::spawn(async move { stream.next().await });
    cancel.cancel();
    assert_eq!(waiting.await.unwrap(), None);
    model.wait_for_hang_ups(1).await;
}

#[tokio::test]
async fn cancelling_before_the_response_head_ends_the_request() {
    let model = model(Step::new().hang_before_headers()).await;
    let cancel = CancellationToken::new();
    let mut stream = client(&model).stream(Arc::new(request()), cancel.clone());
    let waiting = tokio::spawn(async move { (stream.next().await, stream.next().await) });
    model.wait_for_requests(1).await;
    cancel.cancel();
    assert_eq!(waiting.await.unwrap(), (None, None));
    model.wait_for_hang_ups(1).await;
}

#[tokio::test]
async fn a_cancelled_request_is_never_sent() {
    let model = model(Step::text("never")).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(client(&model).stream(Arc::new(request()), cancel).next().await, None);
    assert!(model.requests().is_empty());
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    let gate = Gate::new();
    let model = model(Step::text("so far").wait_for(gate.clone())).await;
    let mut stream = client(&model).stream(Arc::new(request()), CancellationToken::new());
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::Started(_)))));
    drop(stream);
    model.wait_for_hang_ups(1).await;
}
