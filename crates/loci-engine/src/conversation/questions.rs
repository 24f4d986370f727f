//! Permission questions of a conversation: put, withdrawn, answered when nobody is left who could.

use tokio_util::sync::CancellationToken;

use super::Conversation;
use super::host::lock;
use crate::command::Answer;
use crate::event::{EngineEvent, Question};
use crate::tools::prepared_call::PreparedCall;

impl Conversation {
    /// Puts a question; the answer comes by way of the inbox.
    pub(super) fn put_question(&mut self, question: Question, call: PreparedCall) {
        self.run.questions.insert(question.id.clone(), call);
        lock(&self.ctx.questions).insert(question.id.clone(), self.run.inbox.clone());
        self.tell(EngineEvent::QuestionAsked(question));
    }

    /// Takes an open question back and returns its call.
    pub(super) fn close_question(&mut self, question: &str) -> Option<PreparedCall> {
        lock(&self.ctx.questions).remove(question);
        if self.is_main() {
            self.ctx.timeline.end_question(question, self.env.clock.monotonic());
        }
        if let Some(beside) = self.run.beside_questions.remove(question) {
            beside.cancel();
        }
        self.run.questions.remove(question)
    }

    /// Returns what ends when a question is closed: hooks that were asked beside it, or wait to be told of it.
    pub(super) fn beside_question(&mut self, question: &str) -> CancellationToken {
        let calls = &self.run.calls;
        self.run.beside_questions.entry(question.to_owned()).or_insert_with(|| calls.child_token()).clone()
    }

    /// Tells whether a question of this conversation is open.
    pub(crate) fn has_asked(&self, question: &str) -> bool {
        self.run.questions.contains_key(question)
    }

    /// Takes every open question back.
    pub(super) fn withdraw_questions(&mut self) {
        let open: Vec<String> = self.run.questions.keys().cloned().collect();
        for question in open {
            self.close_question(&question);
            self.tell(EngineEvent::QuestionWithdrawn { question });
        }
    }

    /// Answers every open question with no: nobody is left to ask. What hooks alone were asked they answer all the same.
    pub(crate) fn deny_open_questions(&mut self) {
        let open = self.run.questions.keys().filter(|id| lock(&self.ctx.questions).contains_key(*id));
        let open: Vec<String> = open.cloned().collect();
        for question in open {
            let message = "Nobody is left to ask whether this call may run.".to_owned();
            self.answered(&question, Answer::Deny { message, stops: false });
        }
    }
}
