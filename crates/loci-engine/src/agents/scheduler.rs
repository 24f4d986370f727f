//! Which agents may work now. Pure: requests and ends go in, starts come out.
//!
//! No more than a number of agents work at once; the others wait their turn, first come, first served. An agent that
//! waits for one it has sent out itself does not work, so it takes no place: were it otherwise, agents that wait for each
//! other's places would wait for ever. The same holds for one that has nothing left to do until those in the background
//! are done. When its last one is done it goes on at once, whoever has taken its place. What a person asks for, and an
//! agent that goes on, begin at once as well, however many work.

use std::collections::VecDeque;

use loci_core::ids::AgentId;

/// The agents of a session that have not ended.
#[derive(Debug)]
pub(crate) struct Scheduler {
    limit: usize,
    started: Vec<Job>,
    waiting: VecDeque<Job>,
    /// Those that have nothing to do until others in the background are done.
    resting: Vec<AgentId>,
}

/// An agent, and the one that does nothing until it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Job {
    id: AgentId,
    waited_for_by: Option<AgentId>,
}

impl Scheduler {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), started: Vec::new(), waiting: VecDeque::new(), resting: Vec::new() }
    }

    /// Takes an agent that wants to work; `waited_for_by` is the agent that waits for it, where one does. Returns those
    /// that begin now.
    pub(crate) fn request(&mut self, id: AgentId, waited_for_by: Option<AgentId>) -> Vec<AgentId> {
        self.waiting.push_back(Job { id, waited_for_by });
        self.start()
    }

    /// Takes an agent that begins at once, however many work.
    pub(crate) fn admit(&mut self, id: AgentId, waited_for_by: Option<AgentId>) -> Vec<AgentId> {
        self.started.push(Job { id: id.clone(), waited_for_by });
        std::iter::once(id).chain(self.start()).collect()
    }

    /// An agent has nothing to do until others in the background are done. Returns those that begin now.
    pub(crate) fn rest(&mut self, id: &AgentId) -> Vec<AgentId> {
        if self.has_started(id) && !self.resting.contains(id) {
            self.resting.push(id.clone());
        }
        self.start()
    }

    /// It goes on, at once.
    pub(crate) fn wake(&mut self, id: &AgentId) {
        self.resting.retain(|resting| resting != id);
    }

    /// An agent is no longer waited for: it went to the background, or whoever waited was stopped.
    pub(crate) fn release(&mut self, id: &AgentId) -> Vec<AgentId> {
        for job in self.started.iter_mut().chain(&mut self.waiting).filter(|job| job.id == *id) {
            job.waited_for_by = None;
        }
        self.start()
    }

    /// Takes note that an agent has ended, whether or not it ever began. Returns those that begin now.
    pub(crate) fn end(&mut self, id: &AgentId) -> Vec<AgentId> {
        self.started.retain(|job| job.id != *id);
        self.waiting.retain(|job| job.id != *id);
        self.wake(id);
        self.start()
    }

    /// Tells whether an agent has begun.
    pub(crate) fn has_started(&self, id: &AgentId) -> bool {
        self.started.iter().any(|job| job.id == *id)
    }

    /// Returns how many work: those that wait for others do not.
    fn n_working(&self) -> usize {
        self.started.iter().filter(|job| !self.is_waiting_for_others(&job.id)).count()
    }

    fn is_waiting_for_others(&self, id: &AgentId) -> bool {
        self.resting.contains(id)
            || self.started.iter().chain(&self.waiting).any(|job| job.waited_for_by.as_ref() == Some(id))
    }

    fn start(&mut self) -> Vec<AgentId> {
        let mut begun = Vec::new();
        while self.n_working() < self.limit {
            let Some(job) = self.waiting.pop_front() else { break };
            begun.push(job.id.clone());
            self.started.push(job);
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> AgentId {
        AgentId::new(format!("a{n}"))
    }

    #[test]
    fn twenty_work_at_once_and_the_next_waits() {
        let mut scheduler = Scheduler::new(20);
        for n in 0..20 {
            assert_eq!(scheduler.request(id(n), None), [id(n)]);
        }
        assert_eq!(scheduler.request(id(20), None), []);
        assert_eq!(scheduler.request(id(21), None), []);
        assert_eq!(scheduler.end(&id(7)), [id(20)]);
        assert_eq!(scheduler.end(&id(21)), [], "one that never began");
        assert_eq!(scheduler.end(&id(8)), []);
    }

    #[test]
    fn agents_that_wait_for_their_own_leave_their_place() {
        let mut scheduler = Scheduler::new(1);
        assert_eq!(scheduler.request(id(1), None), [id(1)]);
        assert_eq!(scheduler.request(id(2), Some(id(1))), [id(2)]);
        assert_eq!(scheduler.request(id(3), Some(id(2))), [id(3)]);
        assert_eq!(scheduler.request(id(4), None), []);
        assert_eq!(scheduler.end(&id(3)), [], "the second goes on");
        assert_eq!(scheduler.release(&id(2)), [], "in the background it takes a place");
        assert_eq!(scheduler.end(&id(2)), []);
        assert_eq!(scheduler.end(&id(1)), [id(4)]);
    }

    #[test]
    fn agents_that_rest_take_no_place_and_some_begin_whatever_the_number() {
        let mut scheduler = Scheduler::new(1);
        assert_eq!(scheduler.request(id(1), None), [id(1)]);
        assert_eq!(scheduler.request(id(2), None), [], "in the background, sent out by the first");
        assert_eq!(scheduler.rest(&id(1)), [id(2)], "which has nothing else to do");
        assert_eq!(scheduler.request(id(3), None), []);
        scheduler.wake(&id(1));
        assert_eq!(scheduler.end(&id(2)), [], "it goes on in the place of the other");
        assert_eq!(scheduler.admit(id(4), None), [id(4)], "a person's does not wait");
        assert_eq!(scheduler.end(&id(1)), [], "and counts");
        assert_eq!(scheduler.end(&id(4)), [id(3)]);
        assert_eq!(scheduler.rest(&id(9)), [], "nobody");
    }

    /// A small generator, so that the histories are the same each time.
    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % sides
        }
    }

    /// Random histories: agents come, send out others, are stopped at any time; whoever works may end.
    #[test]
    fn random_histories_never_starve_and_never_overfill() {
        for seed in 0..400 {
            let mut dice = Dice(seed);
            let limit = 1 + dice.roll(5) as usize;
            let mut scheduler = Scheduler::new(limit);
            let (mut begun, mut next): (Vec<AgentId>, u64) = (Vec::new(), 0);
            let mut history = Vec::new();
            for _ in 0..200 {
                let before = scheduler.n_working();
                let all: Vec<Job> = scheduler.started.iter().chain(&scheduler.waiting).cloned().collect();
                let working: Vec<AgentId> = scheduler
                    .started
                    .iter()
                    .map(|job| job.id.clone())
                    .filter(|id| !scheduler.is_waiting_for_others(id))
                    .collect();
                let pick = |dice: &mut Dice, from: &[AgentId]| {
                    from.get(dice.roll(from.len().max(1) as u64) as usize).cloned()
                };
                let resting = scheduler.resting.clone();
                let (what, started) = match dice.roll(7) {
                    0 => ("comes", {
                        next += 1;
                        scheduler.request(id(next), None)
                    }),
                    1 => match pick(&mut dice, &working) {
                        Some(parent) => ("sends out", {
                            next += 1;
                            scheduler.request(id(next), Some(parent))
                        }),
                        None => continue,
                    },
                    2 => match pick(&mut dice, &all.iter().map(|job| job.id.clone()).collect::<Vec<_>>()) {
                        Some(stopped) => ("stopped", scheduler.end(&stopped)),
                        None => continue,
                    },
                    3 => match pick(&mut dice, &all.iter().map(|job| job.id.clone()).collect::<Vec<_>>()) {
                        Some(moved) => ("released", scheduler.release(&moved)),
                        None => continue,
                    },
                    4 => match pick(&mut dice, &working) {
                        Some(rests) => ("rests", scheduler.rest(&rests)),
                        None => continue,
                    },
                    5 => match pick(&mut dice, &resting) {
                        Some(wakes) => ("wakes", {
                            scheduler.wake(&wakes);
                            Vec::new()
                        }),
                        None => continue,
                    },
                    _ => match pick(&mut dice, &working) {
                        Some(done) => ("ends", scheduler.end(&done)),
                        None => continue,
                    },
                };
                history.push((what, started.clone()));
                for id in &started {
                    assert!(!begun.contains(id), "seed {seed}: {id} began twice: {history:?}");
                    begun.push(id.clone());
                }
                let n_working = scheduler.n_working();
                let is_full = n_working >= limit;
                assert!(
                    scheduler.waiting.is_empty() || is_full,
                    "seed {seed}: somebody waits for nothing: {history:?}"
                );
                // Going on after having waited may overfill for a while; beginning never does.
                assert!(started.is_empty() || n_working <= limit.max(before), "seed {seed}: {history:?}");
            }
            // Whatever happened, everybody gets a turn.
            for _ in 0..10_000 {
                let working = scheduler
                    .started
                    .iter()
                    .map(|job| job.id.clone())
                    .find(|id| !scheduler.is_waiting_for_others(id));
                match working {
                    Some(done) => begun.extend(scheduler.end(&done)),
                    None => match scheduler.resting.first().cloned() {
                        Some(wakes) => scheduler.wake(&wakes),
                        None => break,
                    },
                }
            }
            assert!(
                scheduler.started.is_empty() && scheduler.waiting.is_empty(),
                "seed {seed}: {scheduler:?}"
            );
        }
    }
}
