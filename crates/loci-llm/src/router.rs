//! Which provider answers a request: the one whose name stands before the model's id.
//!
//! A name is split at its first slash. If what stands before it is no provider, the whole is an id of the first provider,
//! for gateways have slashes in their ids. Named providers are put together when they are first asked: a run that uses none
//! pays nothing for them, and what is wrong with one is a failure of its own models alone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use loci_core::stream::{Failure, FailureKind};

use crate::announcer::Announcer;
use crate::client::Client;

/// Puts a provider together.
type Make = Box<dyn Fn() -> Result<Client, Failure> + Send + Sync>;

/// Says why a model may not be asked.
type Refuse = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Tells whether an id is a client's own.
type HasId = fn(&str) -> bool;

/// The providers of a run.
pub struct Router {
    first: Result<Client, Failure>,
    /// Which ids of the first provider have another door, and that.
    second: Option<(HasId, Client)>,
    named: BTreeMap<String, Named>,
    announcer: Announcer,
    refuse: Option<Refuse>,
}

struct Named {
    make: Make,
    made: OnceLock<Result<Client, Failure>>,
}

impl Router {
    /// Begins with the provider of the environment, or with why there is none.
    pub fn new(first: Result<Client, Failure>) -> Self {
        Self { first, second: None, named: BTreeMap::new(), announcer: Announcer::default(), refuse: None }
    }

    /// Asks another client for the models whose ids are its own.
    #[must_use]
    pub fn with_ids(mut self, has_id: HasId, client: Client) -> Self {
        self.second = Some((has_id, client));
        self
    }

    /// Adds a provider; `make` is called when it is first asked.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        make: impl Fn() -> Result<Client, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.named.insert(name.into(), Named { make: Box::new(make), made: OnceLock::new() });
        self
    }

    /// Asks no model that this gives a reason against: whoever wants one, nothing leaves.
    #[must_use]
    pub fn refusing(mut self, refuse: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.refuse = Some(Box::new(refuse));
        self
    }

    /// Names by whom people hear what happens while credentials are got.
    #[must_use]
    pub fn announced_by(mut self, announcer: Announcer) -> Self {
        self.announcer = announcer;
        self
    }

    pub(crate) fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    /// Returns the provider that answers for a model.
    pub(crate) fn client(&self, model: &str) -> Result<&Client, Failure> {
        if let Some(why) = self.refuse.as_ref().and_then(|refuse| refuse(model)) {
            return Err(Failure::new(FailureKind::InvalidRequest, why)
                .with_hint("Choose another model, or ask the administrator."));
        }
        let named = model.split_once('/').and_then(|(name, _)| self.named.get(name.trim()));
        let found = match named {
            Some(named) => named.made.get_or_init(|| (named.make)()),
            None => match &self.second {
                Some((has_id, client)) if has_id(model) => return Ok(client),
                _ => &self.first,
            },
        };
        found.as_ref().map_err(Clone::clone)
    }

    /// Returns the provider of the environment.
    pub(crate) fn first(&self) -> Option<&Client> {
        self.first.as_ref().ok()
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("named", &self.named.keys()).finish_non_exhaustive()
    }
}
