//! The user's and the project's instruction files.

/// One instruction file as it is shown to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Where it lies.
    pub path: String,
    /// Whose it is, in words.
    pub scope: &'static str,
    /// Its text.
    pub text: String,
}

pub(super) fn section(files: &[Instruction]) -> Option<String> {
    let parts: Vec<String> = files
        .iter()
        .filter(|file| !file.text.trim().is_empty())
        .map(|file| format!("Contents of {} ({}):\n\n{}", file.path, file.scope, file.text.trim_end()))
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "# claudeMd\nInstructions from the user and the project. Follow them as written; they take \
             precedence over habits.\n\n{}",
            parts.join("\n\n")
        )
    })
}
