//! Tools that the model is not told of until it looks for them.
//!
//! A deferred tool is not in the request. Once it was found it is sent behind all others, marked so that the provider
//! leaves it out of the cached beginning; in the order in which tools were found, whichever came first. When the
//! conversation is compacted nothing is cached any more, and what was found becomes an ordinary tool.

use std::sync::Arc;

use loci_core::tool::ToolDescriptor;

use super::{AppendError, Toolbox};
use crate::Tool;

/// Whether the model is told of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Deferral {
    /// It is, from the beginning.
    #[default]
    Offered,
    /// It has to look for it.
    Deferred,
    /// It was found before the last compaction, as the so-manieth.
    Settled(usize),
    /// It was found, as the so-manieth.
    Loaded(usize),
}

/// A tool as a request has it.
#[derive(Debug, Clone, Copy)]
pub struct SentTool<'a> {
    /// The tool.
    pub descriptor: &'a ToolDescriptor,
    /// Whether it was looked for, and is kept out of the cached beginning.
    pub is_deferred: bool,
}

impl Toolbox {
    /// Has tools looked for that nothing was sent of yet.
    pub fn defer(&mut self, is_deferred: impl Fn(&ToolDescriptor) -> bool) {
        for offer in &mut self.offers {
            if offer.deferral == Deferral::Offered && is_deferred(offer.entry.tool.descriptor()) {
                offer.deferral = Deferral::Deferred;
            }
        }
    }

    /// Adds a tool that has to be looked for; one that was there before is as it was.
    pub fn append_deferred(&mut self, tool: Arc<dyn Tool>) -> Result<(), AppendError> {
        let name = tool.descriptor().name.clone();
        let is_known = self.offers.iter().any(|offer| offer.has_name(&name));
        self.append(tool)?;
        if let Some(offer) = self.offers.last_mut().filter(|_| !is_known) {
            offer.deferral = Deferral::Deferred;
        }
        Ok(())
    }

    /// Offers a tool that was found, as the so-manieth; false when none of this name is deferred.
    pub fn load(&mut self, name: &str, order: usize) -> bool {
        self.find_deferred(name, Deferral::Loaded(order))
    }

    /// Offers a tool that was found before a compaction, as the so-manieth.
    pub fn settle(&mut self, name: &str, order: usize) -> bool {
        self.find_deferred(name, Deferral::Settled(order))
    }

    fn find_deferred(&mut self, name: &str, deferral: Deferral) -> bool {
        let mut offers = self.offers.iter_mut().filter(|offer| offer.deferral == Deferral::Deferred);
        let offer = offers.find(|offer| offer.has_name(name));
        offer.map(|offer| offer.deferral = deferral).is_some()
    }

    /// Makes what was found ordinary, as soon as nothing of the conversation is cached any more; true when that changes
    /// anything.
    pub fn settle_loaded(&mut self) -> bool {
        let n_settled =
            self.offers.iter().filter(|offer| matches!(offer.deferral, Deferral::Settled(_))).count();
        let mut has_changed = false;
        for offer in &mut self.offers {
            if let Deferral::Loaded(order) = offer.deferral {
                offer.deferral = Deferral::Settled(n_settled + order);
                has_changed = true;
            }
        }
        has_changed
    }

    /// Returns the same with every tool offered from the beginning.
    #[must_use]
    pub fn undeferred(&self) -> Self {
        let mut all = self.clone();
        all.offers.iter_mut().for_each(|offer| offer.deferral = Deferral::Offered);
        all
    }

    /// Tells whether a tool has to be looked for before it can be called.
    pub fn is_deferred(&self, name: &str) -> bool {
        self.offers.iter().any(|offer| offer.is_deferred() && !offer.is_retired && offer.has_name(name))
    }

    /// Iterates in order over the tools that have to be looked for.
    pub fn deferred(&self) -> impl Iterator<Item = &ToolDescriptor> {
        let offers = self.offers.iter().filter(|offer| offer.is_deferred() && !offer.is_retired);
        offers.map(|offer| offer.entry.tool.descriptor())
    }

    /// Returns the names of tools that were found before the last compaction, in order.
    pub fn settled(&self) -> Vec<String> {
        self.names_in_order(|deferral| match deferral {
            Deferral::Settled(order) => Some(order),
            Deferral::Offered | Deferral::Deferred | Deferral::Loaded(_) => None,
        })
    }

    /// Returns the names of tools that were found since, in order.
    pub fn loaded(&self) -> Vec<String> {
        self.names_in_order(|deferral| match deferral {
            Deferral::Loaded(order) => Some(order),
            Deferral::Offered | Deferral::Deferred | Deferral::Settled(_) => None,
        })
    }

    fn names_in_order(&self, order: impl Fn(Deferral) -> Option<usize>) -> Vec<String> {
        let found = self.offers.iter().filter_map(|offer| Some((order(offer.deferral)?, offer)));
        let mut found: Vec<(usize, &str)> =
            found.map(|(order, offer)| (order, offer.entry.tool.descriptor().name.as_str())).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// Returns all that the model is told of, in the order that it is sent, retired tools included.
    pub fn sent(&self) -> Vec<SentTool<'_>> {
        let mut sent: Vec<((u8, usize), SentTool<'_>)> = self
            .offers
            .iter()
            .enumerate()
            .filter_map(|(at, offer)| {
                let (place, is_deferred) = match offer.deferral {
                    Deferral::Offered => ((0, at), false),
                    Deferral::Settled(order) => ((1, order), false),
                    Deferral::Loaded(order) => ((2, order), true),
                    Deferral::Deferred => return None,
                };
                Some((place, SentTool { descriptor: offer.entry.tool.descriptor(), is_deferred }))
            })
            .collect();
        sent.sort_by_key(|(place, _)| *place);
        sent.into_iter().map(|(_, tool)| tool).collect()
    }
}
