//! An agent of this process: what it is to hear, and how it gets on, for whoever looks on.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use loci_core::ids::AgentId;
use loci_core::permission::Isolation;
use loci_core::usage::Usage;
use loci_stdx::Timestamp;
use tokio::sync::Notify;

use super::plan::AgentPlan;
use super::work::total_tokens;
use crate::conversation::host::lock;

/// The most counts of tokens that are kept of an agent, the newest last.
const MOST_SAMPLES: usize = 16;

/// An agent that works now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAtWork {
    /// Its id.
    pub id: AgentId,
    /// What the call that sent it out named it.
    pub name: Option<String>,
    /// Its type.
    pub kind: String,
    /// What it does, in a few words.
    pub description: String,
    /// When it began.
    pub started: Timestamp,
    /// The model that it asks.
    pub model: String,
    /// The effort that its call or its definition names; none where it has that of the session.
    pub effort: Option<String>,
    /// How many tokens its model can read.
    pub window: u64,
    /// Where it began to work.
    pub cwd: PathBuf,
    /// How many tokens its requests and their answers were, one after the other; the last few.
    pub samples: Vec<u64>,
}

impl AgentAtWork {
    /// Returns how many tokens its last request and the answer were.
    pub fn tokens(&self) -> u64 {
        self.samples.last().copied().unwrap_or(0)
    }
}

/// An agent of this process.
pub(crate) struct LiveAgent {
    pub(super) id: AgentId,
    pub(super) name: Option<String>,
    /// What it is to hear before its next request; none once it is done. Held to add or take.
    messages: Mutex<Option<Vec<String>>>,
    pub(super) news: Notify,
    /// Whether a person stopped it: then it goes on only when a person says so.
    is_stopped_by_person: AtomicBool,
    /// How it gets on; held to look or to add a sample.
    progress: Mutex<AgentAtWork>,
    /// The worktree that it was sent into, or out from within; of its own, once it has that.
    isolation: OnceLock<Isolation>,
}

impl LiveAgent {
    pub(super) fn new(plan: &AgentPlan, started: Timestamp) -> Self {
        let (id, name) = (plan.agent.id.clone(), plan.name.clone());
        let progress = AgentAtWork {
            id: id.clone(),
            name: name.clone(),
            kind: plan.agent.kind.clone(),
            description: plan.agent.description.clone(),
            started,
            model: plan.model.main.clone(),
            effort: plan.meta.effort.clone().or_else(|| plan.definition.effort.clone()),
            window: plan.model.catalog.facts(&plan.model.main).window,
            cwd: plan.place.cwd.clone(),
            samples: Vec::new(),
        };
        let live = Self {
            id,
            name,
            messages: Mutex::new(Some(Vec::new())),
            news: Notify::new(),
            is_stopped_by_person: AtomicBool::new(false),
            progress: Mutex::new(progress),
            isolation: OnceLock::new(),
        };
        // A worktree of its own is made when it begins.
        live.set_isolation(plan.isolation.clone().filter(|_| !plan.is_isolated));
        live
    }

    /// Notes the worktree that keeps it, and whom it sends out, apart.
    pub(super) fn set_isolation(&self, isolation: Option<Isolation>) {
        if let Some(isolation) = isolation {
            self.isolation.get_or_init(|| isolation);
        }
    }

    pub(super) fn isolation(&self) -> Option<Isolation> {
        self.isolation.get().cloned()
    }

    /// Notes whether a person wants it stopped.
    pub(super) fn set_stopped_by_person(&self, is_stopped: bool) {
        self.is_stopped_by_person.store(is_stopped, Ordering::Relaxed);
    }

    pub(super) fn is_stopped_by_person(&self) -> bool {
        self.is_stopped_by_person.load(Ordering::Relaxed)
    }

    /// Adds a message; false when the agent is done.
    pub(super) fn post(&self, message: String) -> bool {
        let is_taken = lock(&self.messages).as_mut().map(|messages| messages.push(message)).is_some();
        self.news.notify_one();
        is_taken
    }

    /// Takes what it has not heard.
    pub(crate) fn take(&self) -> Vec<String> {
        lock(&self.messages).as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes nothing more, unless there is something it has not heard.
    pub(super) fn close(&self) -> bool {
        let mut messages = lock(&self.messages);
        let is_done = messages.as_ref().is_none_or(Vec::is_empty);
        if is_done {
            *messages = None;
        }
        is_done
    }

    /// Its model has answered a request.
    pub(super) fn answered(&self, usage: &Usage) {
        let samples = &mut lock(&self.progress).samples;
        samples.push(total_tokens(usage));
        if samples.len() > MOST_SAMPLES {
            samples.remove(0);
        }
    }

    /// Returns how it gets on; none once it is done.
    pub(super) fn at_work(&self) -> Option<AgentAtWork> {
        let is_done = lock(&self.messages).is_none();
        (!is_done).then(|| lock(&self.progress).clone())
    }
}
