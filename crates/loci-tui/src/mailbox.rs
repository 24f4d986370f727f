//! The mailbox of the thread that draws: what was typed is taken out before anything else.
//!
//! Putting in never blocks. Whoever reads the terminal asks [`Mailbox::wait_for_room`] first, so that the queue of what
//! was typed stays bounded.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::key::InputEvent;

/// More events than this are not read ahead.
const INPUT_LIMIT: usize = 4096;
/// So much news does not wait for more.
const MOST_QUIET: usize = 64;

/// A mailbox for input and for news of kind `N`. Clones are the same mailbox.
#[derive(Debug)]
pub struct Mailbox<N> {
    shared: Arc<Shared<N>>,
}

#[derive(Debug)]
struct Shared<N> {
    /// Guards two queues; held for a push or a pop.
    queues: Mutex<Queues<N>>,
    arrived: Condvar,
    /// There is room for input again.
    taken: Condvar,
}

#[derive(Debug)]
struct Queues<N> {
    input: VecDeque<InputEvent>,
    news: VecDeque<N>,
    /// Whether the thread that draws sleeps until its next frame: news waits for that, and wakes nobody.
    holds_news: bool,
    /// How many pieces of news have come for which nobody was woken yet.
    n_quiet: usize,
}

/// What was in the mailbox.
#[derive(Debug, PartialEq, Eq)]
pub enum Letter<N> {
    /// Something was typed.
    Input(InputEvent),
    /// Something happened.
    News(N),
    /// Nothing came within the time.
    Nothing,
}

impl<N> Clone for Mailbox<N> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<N> Default for Mailbox<N> {
    fn default() -> Self {
        let queues = Queues { input: VecDeque::new(), news: VecDeque::new(), holds_news: false, n_quiet: 0 };
        Self {
            shared: Arc::new(Shared {
                queues: Mutex::new(queues),
                arrived: Condvar::new(),
                taken: Condvar::new(),
            }),
        }
    }
}

impl<N> Mailbox<N> {
    /// Puts in what was typed, in its order.
    pub fn put_input(&self, events: impl IntoIterator<Item = InputEvent>) {
        self.lock().input.extend(events);
        self.shared.arrived.notify_one();
    }

    /// Puts in news, which a frame that is being waited for will show.
    pub fn put(&self, news: N) {
        let mut queues = self.lock();
        queues.news.push_back(news);
        let wakes = !queues.holds_news;
        drop(queues);
        if wakes {
            self.shared.arrived.notify_one();
        }
    }

    /// Puts in news that is one of many: nobody is woken before [`wake`](Self::wake), unless a lot has come.
    pub fn put_quietly(&self, news: N) {
        let mut queues = self.lock();
        queues.news.push_back(news);
        queues.n_quiet += 1;
        let is_enough = queues.n_quiet >= MOST_QUIET;
        drop(queues);
        if is_enough {
            self.wake();
        }
    }

    /// Wakes the thread that draws for what was put in quietly.
    pub fn wake(&self) {
        let mut queues = self.lock();
        let wakes = std::mem::take(&mut queues.n_quiet) > 0 && !queues.holds_news;
        drop(queues);
        if wakes {
            self.shared.arrived.notify_one();
        }
    }

    /// Puts in news that somebody waits for as for the echo of a key.
    pub fn put_urgent(&self, news: N) {
        let mut queues = self.lock();
        queues.news.push_back(news);
        queues.holds_news = false;
        drop(queues);
        self.shared.arrived.notify_one();
    }

    /// Puts back what was taken out, before what has come since.
    pub fn put_back(&self, input: Vec<InputEvent>, news: Vec<N>) {
        let mut queues = self.lock();
        for event in input.into_iter().rev() {
            queues.input.push_front(event);
        }
        for it in news.into_iter().rev() {
            queues.news.push_front(it);
        }
    }

    /// Tells whether there is room for input, waiting so long at most until there is.
    pub fn wait_for_room(&self, patience: Duration) -> bool {
        let is_full = |queues: &mut Queues<N>| queues.input.len() >= INPUT_LIMIT;
        let waited = self.shared.taken.wait_timeout_while(self.lock(), patience, is_full);
        waited.unwrap_or_else(PoisonError::into_inner).0.input.len() < INPUT_LIMIT
    }

    /// Waits so long at most, unless something is typed or urgent. Other news wakes nobody meanwhile: a stream of two hundred
    /// deltas a second costs as many wake-ups as there are frames.
    pub fn wait_for_input(&self, patience: Duration) {
        let mut queues = self.lock();
        queues.holds_news = true;
        let sleeps = |queues: &mut Queues<N>| queues.holds_news && queues.input.is_empty();
        let waited = self.shared.arrived.wait_timeout_while(queues, patience, sleeps);
        waited.unwrap_or_else(PoisonError::into_inner).0.holds_news = false;
    }

    /// Takes out the next letter, input first; waits so long at most, or for ever.
    pub fn take(&self, patience: Option<Duration>) -> Letter<N> {
        let queues = self.lock();
        let is_empty = |queues: &mut Queues<N>| queues.input.is_empty() && queues.news.is_empty();
        let mut queues = match patience {
            None => self.shared.arrived.wait_while(queues, is_empty).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = self.shared.arrived.wait_timeout_while(queues, patience, is_empty);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        if let Some(event) = queues.input.pop_front() {
            if queues.input.len() == INPUT_LIMIT - 1 {
                self.shared.taken.notify_one();
            }
            return Letter::Input(event);
        }
        queues.news.pop_front().map_or(Letter::Nothing, Letter::News)
    }

    fn lock(&self) -> MutexGuard<'_, Queues<N>> {
        // A panic elsewhere leaves whole events in the queues.
        self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_taken_before_news_and_each_in_its_order() {
        let mailbox = Mailbox::default();
        mailbox.put(1);
        mailbox.put_input([InputEvent::Focus(true), InputEvent::Closed]);
        mailbox.put(2);
        let taken: Vec<_> = std::iter::repeat_with(|| mailbox.take(Some(Duration::ZERO))).take(5).collect();
        let expected = [
            Letter::Input(InputEvent::Focus(true)),
            Letter::Input(InputEvent::Closed),
            Letter::News(1),
            Letter::News(2),
            Letter::Nothing,
        ];
        assert_eq!(taken, expected);
    }

    #[test]
    fn what_is_put_back_is_taken_first_and_in_its_order() {
        let mailbox = Mailbox::default();
        mailbox.put_input([InputEvent::Closed]);
        mailbox.put(3);
        mailbox.put_back(vec![InputEvent::Focus(true), InputEvent::Focus(false)], vec![1, 2]);
        let taken: Vec<_> = std::iter::repeat_with(|| mailbox.take(Some(Duration::ZERO))).take(6).collect();
        let input =
            [InputEvent::Focus(true), InputEvent::Focus(false), InputEvent::Closed].map(Letter::Input);
        let expected: Vec<_> = input.into_iter().chain([1, 2, 3].map(Letter::News)).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn news_waits_for_the_frame_and_input_or_urgent_news_does_not() {
        type Wake = fn(&Mailbox<u8>);
        let cases: [(&str, Wake); 2] = [
            ("input", |mailbox| mailbox.put_input([InputEvent::Closed])),
            ("urgent", |mailbox| mailbox.put_urgent(9)),
        ];
        for (what, end) in cases {
            let mailbox = Mailbox::default();
            let (is_asleep, other) = (mailbox.clone(), mailbox.clone());
            let sleeper = std::thread::spawn(move || other.wait_for_input(Duration::from_secs(3600)));
            while !is_asleep.lock().holds_news {
                std::thread::yield_now();
            }
            mailbox.put(1);
            assert!(mailbox.lock().holds_news, "{what}: news woke the sleeper");
            end(&mailbox);
            assert!(sleeper.join().is_ok(), "{what}");
            assert!(!mailbox.lock().holds_news, "{what}: the next news would wake nobody");
        }
        let mailbox = Mailbox::<u8>::default();
        mailbox.wait_for_input(Duration::ZERO);
        mailbox.put(1);
        assert_eq!(mailbox.take(Some(Duration::ZERO)), Letter::News(1));
    }

    #[test]
    fn quiet_news_wakes_once_for_all_that_came() {
        let mailbox = Mailbox::<u8>::default();
        let other = mailbox.clone();
        let reader = std::thread::spawn(move || other.take(None));
        // Whether the other thread sleeps already or not, it hears of what was put in.
        mailbox.put_quietly(1);
        mailbox.put_quietly(2);
        mailbox.wake();
        assert_eq!(reader.join().unwrap(), Letter::News(1));
        assert_eq!(mailbox.lock().n_quiet, 0);
        for n in 0..MOST_QUIET {
            mailbox.put_quietly(u8::try_from(n).unwrap());
            assert_eq!(mailbox.lock().n_quiet, (n + 1) % MOST_QUIET, "a lot of news does not wait");
        }
    }

    #[test]
    fn full_mailbox_has_room_again_once_something_was_taken() {
        let mailbox = Mailbox::<()>::default();
        mailbox.put_input(std::iter::repeat_n(InputEvent::Closed, INPUT_LIMIT));
        assert!(!mailbox.wait_for_room(Duration::ZERO));
        mailbox.take(None);
        assert!(mailbox.wait_for_room(Duration::ZERO));
    }
}
