//! What people hear while a request waits for credentials: a command that renews a login may name a page to open.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

type Listener = Box<dyn Fn(&str) + Send + Sync>;

/// Passes words on to whoever listens, and to standard error while nobody does. Clones are one and the same.
#[derive(Clone, Default)]
pub struct Announcer {
    /// Held to speak or to change who hears it.
    listener: Arc<Mutex<Option<Listener>>>,
}

impl Announcer {
    /// Lets somebody listen, in the place of whoever did.
    pub fn listen(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(listener));
    }

    /// Says a line.
    pub fn say(&self, text: &str) {
        match &*self.listener.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(listener) => listener(text),
            // Nobody is left to tell when stderr is gone.
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Announcer")
    }
}
