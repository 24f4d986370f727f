//! What the scripted model will answer, as data.
//!
//! A [`Script`] is a list of [`Step`]s and a rule for choosing one:
//!
//! - **in order** (the default): each main request takes the next step. A main request is one with a
//!   non-empty `tools` array; anything else (titles, probes) gets the side answer `ok` and takes no step.
//! - **every request** ([`Script::every_request`]): requests without tools take steps too.
//! - **by assistant turns** ([`Script::by_assistant_turns`]): the step played is the number of assistant
//!   messages already in the request, so the order in which requests arrive does not matter. Steps that
//!   end without a whole answer (errors, cuts) stand before the turn they disturb and are skipped once
//!   they have been played as often as they say.
//!
//! When the steps have run out, the answer is the text `done`.

mod json;
mod playhead;
mod step;

pub(crate) use playhead::Playhead;
pub(crate) use step::{Break, GateAt, StreamPosition};
pub use step::{Step, Usage};

use crate::recorded::Recorded;
use std::fmt;
use std::sync::Arc;

/// The steps a scripted model plays, and how it chooses among them.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) steps: Vec<Step>,
    pub(crate) choice: Choice,
    pub(crate) side: Step,
    pub(crate) exceptions: Vec<Exception>,
    pub(crate) routes: Vec<Route>,
    pub(crate) first_id: u64,
    pub(crate) lenient: bool,
}

/// How a request finds its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Choice {
    MainRequests,
    EveryRequest,
    AssistantTurns,
}

/// A fixed answer to the requests a test points out.
#[derive(Clone)]
pub(crate) struct Exception {
    pub(crate) applies: Arc<dyn Fn(&Recorded) -> bool + Send + Sync>,
    pub(crate) step: Step,
}

/// A script of its own for the requests a test points out: those of one agent.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) applies: Arc<dyn Fn(&Recorded) -> bool + Send + Sync>,
    pub(crate) script: Script,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("script", &self.script).finish_non_exhaustive()
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exception").field("step", &self.step).finish_non_exhaustive()
    }
}

impl Script {
    /// Returns a script that plays `steps` in order, one a main request.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            choice: Choice::MainRequests,
            side: Step::text("ok"),
            exceptions: Vec::new(),
            routes: Vec::new(),
            first_id: 1,
            lenient: false,
        }
    }

    /// Returns a script that plays `step` `n` times; continue it with [`Script::then`].
    pub fn repeat(step: Step, n: usize) -> Self {
        Self::new(std::iter::repeat_n(step, n))
    }

    /// Adds one step at the end.
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds `step` `n` times at the end.
    pub fn then_repeat(mut self, step: Step, n: usize) -> Self {
        self.steps.extend(std::iter::repeat_n(step, n));
        self
    }

    /// Chooses the step by the number of assistant messages in the request.
    pub fn by_assistant_turns(mut self) -> Self {
        self.choice = Choice::AssistantTurns;
        self
    }

    /// Lets requests without tools take steps too; what tests of a bare model client want.
    pub fn every_request(mut self) -> Self {
        self.choice = Choice::EveryRequest;
        self
    }

    /// Answers side requests (those without tools) with `step` rather than with `ok`.
    pub fn side_answer(mut self, step: Step) -> Self {
        self.side = step;
        self
    }

    /// Answers every request for which `applies` holds with `step`, taking no step from the list.
    ///
    /// The first exception that applies wins; useful for subagents and summaries that run beside the
    /// main conversation.
    pub fn answer_when(
        mut self,
        step: Step,
        applies: impl Fn(&Recorded) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.exceptions.push(Exception { applies: Arc::new(applies), step });
        self
    }

    /// Plays another script for the requests for which `applies` holds, in its own order: the conversation of an agent.
    ///
    /// The first route that applies wins; exceptions come before all routes.
    pub fn route(
        mut self,
        script: impl Into<Script>,
        applies: impl Fn(&Recorded) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.routes.push(Route { applies: Arc::new(applies), script: script.into() });
        self
    }

    /// Starts the counters behind `msg_`, `toolu_` and `req_` ids at `first` rather than at 1.
    ///
    /// A second server that goes on with an old session should not hand out the same ids again.
    pub fn first_id(mut self, first: u64) -> Self {
        self.first_id = first;
        self
    }

    /// Lets requests pass that the real API would refuse with 400; violations are still recorded.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Parses the JSON form: a list of steps, or `{"choose": .., "steps": [..]}`.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

impl From<Step> for Script {
    fn from(step: Step) -> Self {
        Self::new([step])
    }
}

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self::new(steps)
    }
}

impl<const N: usize> From<[Step; N]> for Script {
    fn from(steps: [Step; N]) -> Self {
        Self::new(steps)
    }
}
