//! Who answers permission questions.

use std::io::IsTerminal;

use loci_serve::PermissionPrompter;

use crate::args::{Args, Input};

/// Returns who answers: the client if it was named; a person who sits at the terminal that the prompt and the
/// messages go through; else nobody.
pub(crate) fn permission_prompter(args: &Args) -> PermissionPrompter {
    match args.permission_prompt_tool.as_deref() {
        Some("stdio") => PermissionPrompter::Client,
        Some(_) => PermissionPrompter::Nobody,
        None if args.input_format == Input::Text && is_person_there() => PermissionPrompter::Terminal,
        None => PermissionPrompter::Nobody,
    }
}

/// Tells whether a person sits at the terminal that both standard input and standard error are.
pub(crate) fn is_person_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && loci_stdx::is_in_foreground()
}
