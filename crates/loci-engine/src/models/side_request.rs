//! One question to a model beside the conversation: no tools of ours, no transcript; what it costs counts.

use std::sync::Arc;

use futures_util::StreamExt;
use loci_core::message::Block;
use loci_core::model::ModelCatalog;
use loci_core::session::SessionIdentity;
use loci_core::stream::{Ended, Failure, FailureKind, StreamEvent};
use loci_llm::{Client, Request};
use loci_stdx::Store;
use tokio_util::sync::CancellationToken;

use crate::session::state::change_identity;

/// Sends a request and returns the blocks of the answer.
pub(crate) async fn ask_model(
    client: &Client,
    models: &ModelCatalog,
    identity: &Store<SessionIdentity>,
    request: Request,
    cancel: &CancellationToken,
) -> Result<Vec<Block>, Failure> {
    let asked = ask_model_to_end(client, models, identity, request, cancel).await;
    asked.map(|(blocks, _)| blocks)
}

/// The same, with how the answer ended.
pub(crate) async fn ask_model_to_end(
    client: &Client,
    models: &ModelCatalog,
    identity: &Store<SessionIdentity>,
    request: Request,
    cancel: &CancellationToken,
) -> Result<(Vec<Block>, Ended), Failure> {
    let model = request.model.clone();
    let mut stream = client.stream(Arc::new(request), cancel.child_token());
    let mut blocks = Vec::new();
    while let Some(event) = stream.next().await {
        match event? {
            StreamEvent::BlockDone { block, .. } => blocks.push(block),
            StreamEvent::Ended(ended) => {
                let facts = models.facts(&model);
                change_identity(identity, |identity| {
                    identity.totals.add(&model, &facts, &ended.usage);
                });
                return Ok((blocks, ended));
            }
            _ => {}
        }
    }
    Err(Failure::new(FailureKind::Cut, "The model broke off"))
}

/// Returns the text among the blocks of an answer.
pub(crate) fn answer_text(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::text).collect()
}
