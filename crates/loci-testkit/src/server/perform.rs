//! Performs the acts of a reply on a transport.

use crate::wire::Act;
use bytes::Bytes;
use std::io;
use tokio::time::sleep;

/// What a transport can do with the answer in hand.
pub(crate) trait Transport: Send {
    /// Sends a piece of the body.
    fn send(&mut self, piece: Bytes) -> impl Future<Output = io::Result<()>> + Send;

    /// Announces a piece of the body and sends only its first `keep` bytes.
    fn send_torn(&mut self, whole: Bytes, keep: usize) -> impl Future<Output = io::Result<()>> + Send;

    /// Waits until the client has gone away.
    fn client_gone(&mut self) -> impl Future<Output = ()> + Send;
}

/// How a list of acts ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All were performed.
    Done,
    /// The script wants the connection closed.
    Cut { reset: bool },
    /// The client went away first.
    Gone,
}

/// Performs `acts` in order until they end, cut the connection, or the client goes away.
pub(crate) async fn perform(acts: Vec<Act>, transport: &mut impl Transport) -> End {
    for act in acts {
        let is_sent = match act {
            Act::Send(piece) => transport.send(piece).await.is_ok(),
            Act::Torn { whole, keep } => transport.send_torn(whole, keep).await.is_ok(),
            Act::Pause(time) => unless_gone(transport, sleep(time)).await,
            Act::Wait(gate) => unless_gone(transport, gate.pass()).await,
            Act::Stall => unless_gone(transport, std::future::pending()).await,
            Act::Cut { reset } => return End::Cut { reset },
        };
        if !is_sent {
            return End::Gone;
        }
    }
    End::Done
}

/// Waits for `event`, and tells whether it came before the client went away.
async fn unless_gone(transport: &mut impl Transport, event: impl Future<Output = ()>) -> bool {
    tokio::select! {
        () = event => true,
        () = transport.client_gone() => false,
    }
}
