//! The reminder of an output style: its words stand at the beginning of the prompt, far above what is being said by then.

use super::context_sources::ContextSources;
use super::scope::ConversationScope;
use crate::conversation::recorder::Recorder;
use loci_core::entry::Attachment;

/// After so many prompts the model is reminded.
const EVERY: u32 = 5;

impl ContextSources {
    /// Reminds the model of the output style, every few prompts. An agent has none.
    pub(super) fn tell_style(&mut self, scope: &mut ConversationScope, recorder: &mut Recorder) {
        if scope.agent.is_some() || !scope.ctx.facts.has_style_prompt {
            return;
        }
        self.n_prompts_in_style += 1;
        if self.n_prompts_in_style <= EVERY {
            return;
        }
        self.n_prompts_in_style = 1;
        let style = scope.ctx.facts.output_style.replace(['<', '>', '\n'], " ");
        let text = format!(
            "<system-reminder>\nThe output style {style} is in force. Keep to what the system prompt says of it.\n</system-reminder>"
        );
        let (rendered, rendered_role) = (Some(text), Some("user".to_owned()));
        recorder.attachment(Attachment::OutputStyle { style, rendered, rendered_role });
    }
}
