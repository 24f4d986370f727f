//! Another session in the place of one that is left: what `/clear` does.
//!
//! The session that is left finishes what it was asked, and what it does beside the conversation; the new one begins
//! meanwhile. No state is shared between them but what [`Carried`] names.

use std::sync::Arc;

use loci_core::ids::SessionId;
use loci_core::permission::Mode;
use loci_core::session::{SessionIdentity, Totals};
use loci_engine::{EngineEvent, Session, SessionHandle};
use loci_stdx::Store;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

/// What a session takes over from the one it takes the place of.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// The permission mode.
    pub mode: Mode,
    /// The model, where one was chosen in the session.
    pub model: Option<String>,
    /// What this process has used so far; limits count on.
    pub totals: Totals,
}

/// A session that takes the place of another.
pub struct Renewed {
    /// Its id.
    pub id: SessionId,
    /// The session.
    pub session: Session,
    /// The way to talk to it.
    pub handle: SessionHandle,
    /// What it says.
    pub events: UnboundedReceiver<EngineEvent>,
}

/// Makes a session that takes the place of another; the error says why there is none.
pub type Renew = Box<dyn FnMut(Carried) -> Result<Renewed, String> + Send>;

/// The session that runs, and those that were left.
pub(super) struct Stage {
    // Not its state, which holds the sender of its events: they would never end.
    identity: Arc<Store<SessionIdentity>>,
    engines: Vec<JoinHandle<()>>,
    /// What those that were left still have to say.
    left: Vec<UnboundedReceiver<EngineEvent>>,
    renew: Option<Renew>,
}

impl Stage {
    /// Lets a session run.
    pub(super) fn new(session: Session, renew: Option<Renew>) -> Self {
        let identity = session.identity();
        let engines = vec![tokio::spawn(session.run())];
        Self { identity, engines, left: Vec::new(), renew }
    }

    /// Tells whether another session can take this one's place.
    pub(super) fn can_renew(&self) -> bool {
        self.renew.is_some()
    }

    pub(super) fn identity(&self) -> Arc<Store<SessionIdentity>> {
        Arc::clone(&self.identity)
    }

    /// Lets another session run in the place of the one whose turns are over; `events` become its own.
    pub(super) fn renew(
        &mut self,
        mode: Mode,
        events: &mut UnboundedReceiver<EngineEvent>,
    ) -> Result<(SessionId, SessionHandle), String> {
        let identity = self.identity.get();
        let carried =
            Carried { mode, model: identity.model_override.clone(), totals: identity.totals.clone() };
        let renew = self.renew.as_mut().ok_or("This session cannot be left for another")?;
        let renewed = renew(carried)?;
        self.left.push(std::mem::replace(events, renewed.events));
        self.identity = renewed.session.identity();
        self.engines.push(tokio::spawn(renewed.session.run()));
        Ok((renewed.id, renewed.handle))
    }

    /// Waits for all of them to end; returns what troubled those that were left, and whether one failed.
    pub(super) async fn finish(mut self) -> (Vec<String>, bool) {
        let mut troubles = Vec::new();
        for events in &mut self.left {
            while let Some(event) = events.recv().await {
                if let EngineEvent::Trouble(trouble) = event {
                    troubles.push(trouble);
                }
            }
        }
        let mut has_failed = false;
        for engine in self.engines {
            has_failed |= engine.await.is_err();
        }
        (troubles, has_failed)
    }
}
