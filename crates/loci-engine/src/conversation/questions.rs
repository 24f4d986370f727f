//! Permission questions of a conversation: put, withdrawn, answered when nobody is left who could.

use super::permits::Permits;
use super::running_turn::TurnTasks;
use super::scope::ConversationScope;
use tokio_util::sync::CancellationToken;

use super::Conversation;
use super::host::lock;
use crate::command::Answer;
use crate::event::{EngineEvent, Question};
use crate::tools::prepared_call::PreparedCall;

impl Conversation {
    /// Answers every open question with no: nobody is left to ask. What hooks alone were asked they answer all the same.
    pub(crate) fn deny_open_questions(&mut self) {
        let open = self
            .permits
            .questions
            .keys()
            .filter(|id| lock(&self.scope.ctx.policy.questions).contains_key(*id));
        let open: Vec<String> = open.cloned().collect();
        for question in open {
            let message = "Nobody is left to ask whether this call may run.".to_owned();
            self.answered(&question, Answer::Deny { message, stops: false });
        }
    }
}

impl Permits {
    /// Puts a question; the answer comes by way of the inbox.
    pub(super) fn put_question(
        &mut self,
        scope: &ConversationScope,
        tasks: &TurnTasks,
        question: Question,
        call: PreparedCall,
    ) {
        self.questions.insert(question.id.clone(), call);
        lock(&scope.ctx.policy.questions).insert(question.id.clone(), tasks.inbox.clone());
        scope.tell(EngineEvent::QuestionAsked(question));
    }

    /// Takes an open question back and returns its call.
    pub(super) fn close_question(
        &mut self,
        scope: &ConversationScope,
        question: &str,
    ) -> Option<PreparedCall> {
        lock(&scope.ctx.policy.questions).remove(question);
        if scope.is_main() {
            scope.ctx.usage.timeline.end_question(question, scope.env.clock.monotonic());
        }
        if let Some(beside) = self.beside.remove(question) {
            beside.cancel();
        }
        self.questions.remove(question)
    }

    /// Returns what ends when a question is closed: hooks that were asked beside it, or wait to be told of it.
    pub(super) fn beside_question(&mut self, tasks: &TurnTasks, question: &str) -> CancellationToken {
        let calls = &tasks.calls;
        self.beside.entry(question.to_owned()).or_insert_with(|| calls.child_token()).clone()
    }

    /// Tells whether a question of this conversation is open.
    pub(crate) fn has_asked(&self, question: &str) -> bool {
        self.questions.contains_key(question)
    }

    /// Takes every open question back.
    pub(super) fn withdraw_questions(&mut self, scope: &ConversationScope) {
        let open: Vec<String> = self.questions.keys().cloned().collect();
        for question in open {
            self.close_question(scope, &question);
            scope.tell(EngineEvent::QuestionWithdrawn { question });
        }
    }
}
