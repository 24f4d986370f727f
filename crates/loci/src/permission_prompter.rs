//! Who answers permission questions.

use std::io::IsTerminal;

use loci_wire::PermissionPrompter;

use crate::args::{Args, Input, PermissionPrompts};

/// Returns who answers: nobody, if that was asked for; the client or a tool, if it was named; a person who sits at the terminal that the prompt and the
/// messages go through; else nobody.
pub(crate) fn permission_prompter(args: &Args) -> PermissionPrompter {
    match args.permission_prompt_tool.as_deref() {
        _ if args.client.permission_prompts == Some(PermissionPrompts::None) => PermissionPrompter::Nobody,
        Some("stdio") => PermissionPrompter::Client,
        Some(tool) => PermissionPrompter::Tool(tool.to_owned()),
        None if args.input_format == Input::Text && is_person_there() => PermissionPrompter::Terminal,
        None => PermissionPrompter::Nobody,
    }
}

/// Tells whether a person sits at the terminal that both standard input and standard error are.
pub(crate) fn is_person_there() -> bool {
    std::io::stdin().is_terminal() && crate::print::is_stderr_terminal() && loci_stdx::is_in_foreground()
}
