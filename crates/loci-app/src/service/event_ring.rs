//! The last events of a session, for any number of readers that each have a place of their own.
//!
//! Bounded: the oldest go first, and a reader whose place is gone is told so. What a block said bit by bit goes once the block
//! is whole, since that says it all; numbers therefore have gaps.

use std::collections::VecDeque;
use std::sync::Arc;

use loci_protocol::Event;
use loci_protocol::event::AgentRef;
use loci_protocol::frame::Sequenced;

/// How many events are kept.
pub(super) const CAPACITY: usize = 10_000;

/// Events from a place on are not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    /// The last of those that are missing.
    pub(super) seq: u64,
}

/// The last events.
#[derive(Debug)]
pub(super) struct EventRing {
    events: VecDeque<Sequenced>,
    capacity: usize,
    /// The number of the last event there was.
    last: u64,
    /// Everything up to here is gone, apart from what a whole block made needless.
    gone: u64,
    /// Pieces of blocks that are not whole yet, at the end.
    n_pieces: usize,
}

impl EventRing {
    pub(super) fn new(capacity: usize) -> Self {
        Self { events: VecDeque::new(), capacity, last: 0, gone: 0, n_pieces: 0 }
    }

    /// The number of the last event there was.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The place behind which everything is kept.
    pub(super) fn kept_from(&self) -> u64 {
        self.gone
    }

    /// Adds an event; returns its number.
    pub(super) fn push(&mut self, event: Arc<Event>) -> u64 {
        self.insert(Sequenced { seq: self.last + 1, event });
        self.last
    }

    /// Adds an event that has its number already.
    pub(super) fn insert(&mut self, sequenced: Sequenced) {
        if sequenced.seq <= self.last {
            return;
        }
        self.last = sequenced.seq;
        if let Some(speaker) = whole_block_of(&sequenced.event) {
            self.drop_pieces(speaker);
        }
        self.n_pieces += usize::from(piece_of(&sequenced.event).is_some());
        self.events.push_back(sequenced);
        if self.events.len() > self.capacity
            && let Some(oldest) = self.events.pop_front()
        {
            self.n_pieces -= usize::from(piece_of(&oldest.event).is_some());
            self.gone = oldest.seq;
        }
    }

    /// Notes that everything up to a number is gone.
    pub(super) fn skip_to(&mut self, seq: u64) {
        self.events.clear();
        self.n_pieces = 0;
        self.gone = self.gone.max(seq);
        self.last = self.last.max(seq);
    }

    /// Returns events behind a number, the oldest first.
    pub(super) fn read(&self, since: u64, most: usize) -> Result<Vec<Sequenced>, Missing> {
        if since < self.gone {
            return Err(Missing { seq: self.gone });
        }
        let first = self.events.partition_point(|it| it.seq <= since);
        Ok(self.events.range(first..).take(most).cloned().collect())
    }

    /// Drops the pieces of a block that is whole. They are among the last events, so no more is looked at than was said since.
    fn drop_pieces(&mut self, speaker: Option<&AgentRef>) {
        if self.n_pieces == 0 {
            return;
        }
        let mut n_left = self.n_pieces;
        let mut start = self.events.len();
        while n_left > 0 && start > 0 {
            start -= 1;
            n_left -= usize::from(piece_of(&self.events[start].event).is_some());
        }
        let tail = self.events.split_off(start);
        let is_needless = |it: &Sequenced| piece_of(&it.event) == Some(speaker);
        self.events.extend(tail.into_iter().filter(|it| !is_needless(it)));
        self.n_pieces = self.events.range(start..).filter(|it| piece_of(&it.event).is_some()).count();
    }
}

/// Whose piece of a block an event is: an agent's, or the main line's.
fn piece_of(event: &Event) -> Option<Option<&AgentRef>> {
    match event {
        Event::Stream { .. } => Some(None),
        Event::Agent { agent, event } if matches!(**event, Event::Stream { .. }) => Some(Some(agent)),
        _ => None,
    }
}

/// Whose block is whole with an event.
fn whole_block_of(event: &Event) -> Option<Option<&AgentRef>> {
    match event {
        Event::Assistant(_) | Event::TurnEnded(_) => Some(None),
        Event::Agent { agent, event } if matches!(**event, Event::Assistant(_) | Event::TurnEnded(_)) => {
            Some(Some(agent))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use loci_core::stream::{Delta, StreamEvent};
    use loci_protocol::event::AssistantBlock;
    use serde_json::Value;

    use super::*;

    fn delta(text: &str) -> Event {
        let delta = Delta::Text(text.to_owned());
        Event::Stream { event: StreamEvent::Delta { index: 0, delta }, first_after: None }
    }

    fn block() -> Event {
        let entry = "e".into();
        let block =
            AssistantBlock { entry, message: Value::Null, request: None, error: None, is_aborted: false };
        Event::Assistant(block)
    }

    fn of_agent(id: &str, event: Event) -> Event {
        let agent =
            AgentRef { id: id.into(), kind: "a".into(), parent: None, description: String::new(), depth: 1 };
        Event::Agent { agent, event: Box::new(event) }
    }

    fn numbers(ring: &EventRing, since: u64) -> Result<Vec<u64>, Missing> {
        Ok(ring.read(since, usize::MAX)?.into_iter().map(|it| it.seq).collect())
    }

    fn ring_of(capacity: usize, events: impl IntoIterator<Item = Event>) -> EventRing {
        let mut ring = EventRing::new(capacity);
        for event in events {
            ring.push(Arc::new(event));
        }
        ring
    }

    #[test]
    fn reader_goes_on_behind_what_it_has_heard() {
        let ring = ring_of(10, [Event::Requesting, Event::Compacting, Event::Requesting]);
        assert_eq!(numbers(&ring, 0), Ok(vec![1, 2, 3]));
        assert_eq!(numbers(&ring, 2), Ok(vec![3]));
        assert_eq!(numbers(&ring, 3), Ok(vec![]));
        assert_eq!(ring.read(0, 2).unwrap().len(), 2);
    }

    #[test]
    fn reader_whose_place_is_gone_is_told_the_last_that_is_missing() {
        let ring = ring_of(3, (0..5).map(|_| Event::Requesting));
        assert_eq!(numbers(&ring, 1), Err(Missing { seq: 2 }));
        assert_eq!(numbers(&ring, 2), Ok(vec![3, 4, 5]));
    }

    #[test]
    fn pieces_of_a_whole_block_are_gaps_and_not_a_loss() {
        let ring = ring_of(10, [Event::Requesting, delta("a"), delta("b"), block(), delta("c")]);
        assert_eq!(numbers(&ring, 0), Ok(vec![1, 4, 5]));
        assert_eq!(numbers(&ring, 2), Ok(vec![4, 5]), "a reader in the middle of them hears the block");
    }

    #[test]
    fn pieces_of_others_stay() {
        let ring = ring_of(
            10,
            [
                delta("main"),
                of_agent("x", delta("of x")),
                of_agent("y", delta("of y")),
                Event::Requesting,
                of_agent("x", block()),
            ],
        );
        assert_eq!(numbers(&ring, 0), Ok(vec![1, 3, 4, 5]));
    }

    #[test]
    fn ring_never_holds_more_than_its_capacity() {
        let mut ring = EventRing::new(7);
        for number in 0..1_000_u32 {
            ring.push(Arc::new(match number % 5 {
                0 => block(),
                1 => of_agent("x", delta("x")),
                2 => of_agent("x", block()),
                _ => delta("x"),
            }));
            assert!(ring.events.len() <= 7);
            let n_pieces = ring.events.iter().filter(|it| piece_of(&it.event).is_some()).count();
            assert_eq!(n_pieces, ring.n_pieces, "after {number}");
            assert!(ring.read(ring.gone, 100).is_ok());
        }
    }

    #[test]
    fn numbers_of_another_process_are_kept_and_none_is_taken_twice() {
        let mut ring = EventRing::new(10);
        for seq in [3, 5, 5, 4, 9] {
            ring.insert(Sequenced { seq, event: Arc::new(Event::Requesting) });
        }
        assert_eq!(numbers(&ring, 0), Ok(vec![3, 5, 9]));
        ring.skip_to(20);
        assert_eq!(numbers(&ring, 9), Err(Missing { seq: 20 }));
        assert_eq!(numbers(&ring, 20), Ok(vec![]));
    }
}
