//! What calls are judged by, and the answers to questions about them.

use loci_core::hooks::PermissionReply;
use loci_core::permission::{Mode, Update};
use serde::{Deserialize, Serialize};

/// Answers a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerQuestion {
    /// The question's id.
    pub question: String,
    /// The answer.
    pub reply: PermissionReply,
}

/// Changes the permission mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMode {
    /// Which.
    pub mode: Mode,
}

/// Changes what calls are judged by: for the session, or in a settings file, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangePermission {
    /// The change.
    pub update: Update,
}
