//! What calls are judged by beside the session's rules, and the questions that are open about them.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use crate::extensions::ClassifierNote;
use crate::extensions::skills::use_skill::TurnGrants;
use crate::tools::prepared_call::PreparedCall;

/// Judges the calls of a conversation and keeps the questions about them.
pub(crate) struct Permits {
    /// What skills change about the turn at hand.
    pub(super) grants: TurnGrants,
    /// What hooks said of results, for the classifier of later calls.
    pub(super) classifier_notes: Vec<ClassifierNote>,
    /// The questions of the turn at hand that are open.
    pub(super) questions: HashMap<String, PreparedCall>,
    /// Ends whatever waits beside an open question, when it is closed.
    pub(super) beside: HashMap<String, CancellationToken>,
}

impl Permits {
    pub(super) fn new(classifier_notes: Vec<ClassifierNote>) -> Self {
        Self {
            grants: TurnGrants::default(),
            classifier_notes,
            questions: HashMap::new(),
            beside: HashMap::new(),
        }
    }

    /// Forgets the questions of the last turn, which is over.
    pub(super) fn begin_turn(&mut self) {
        self.questions.clear();
        self.beside.clear();
    }
}
