//! The text of the input in the person's own editor (Ctrl+G).

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};

use loci_stdx::Vars;

use super::chip::Draft;
use crate::terminal::Terminal;

/// Why the text did not come back from the editor.
#[derive(Debug, thiserror::Error)]
pub enum ExternalEditorError {
    /// The file for the editor could not be made, or not read again.
    #[error("Failed to hand the text to the editor through a file in `{directory}`")]
    File {
        /// The directory of temporary files.
        directory: String,
        /// What the system said.
        source: io::Error,
    },
    /// The editor could not be started, or the terminal not be given to it.
    #[error("Failed to start the editor: `{command}`; set `VISUAL` or `EDITOR` to the one you use")]
    Start {
        /// What was run.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// The editor ended badly: the text is as it was.
    #[error("The editor did not end well, so the text is left as it was: `{command}`, {status}")]
    Status {
        /// What was run.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
}

/// Returns the editor of the person: `VISUAL`, `EDITOR`, or `vi`. It may have arguments, such as `code --wait`.
pub fn editor_command(vars: &Vars) -> &str {
    vars.non_empty("VISUAL").or_else(|| vars.non_empty("EDITOR")).unwrap_or("vi")
}

/// Lets the person edit a draft in an editor that gets the terminal, and returns what became of it.
///
/// Chips stand in the text by their labels and are chips again afterwards, where the labels are still there. The file is
/// readable by its owner alone and is gone afterwards. An answer of the model may stand above it, as comments that are taken
/// away again.
pub fn edit_draft(
    terminal: &mut Terminal,
    vars: &Vars,
    draft: &Draft,
    answer: Option<&str>,
) -> Result<Draft, ExternalEditorError> {
    let head = answer.map(commented_answer).unwrap_or_default();
    let edited = edit_text(terminal, vars, &format!("{head}{}", draft.display()))?;
    let edited = if head.is_empty() { &edited } else { without_answer(&edited, &head) };
    Ok(Draft::from_display(draft.mode, edited, draft.chips()))
}

/// How many lines of an answer stand above a draft.
const MOST_ANSWER_LINES: usize = 50;
/// The line before an answer, and the one behind it.
const ANSWER_BEGINS: &str = "# ─── The last answer (to look at; it is taken away again) ───";
const ANSWER_ENDS: &str = "# ─── Write your prompt below this line ───";

/// Makes comments of an answer, of a long one of its end.
fn commented_answer(answer: &str) -> String {
    let lines: Vec<&str> = answer.trim().lines().collect();
    let n_left_out = lines.len().saturating_sub(MOST_ANSWER_LINES);
    let left_out = (n_left_out > 0).then(|| "# … (what came before is left out)".to_owned());
    let shown = lines.iter().skip(n_left_out).map(|line| format!("# {line}").trim_end().to_owned());
    let all = std::iter::once(ANSWER_BEGINS.to_owned()).chain(left_out).chain(shown);
    let all: Vec<String> = all.chain([ANSWER_ENDS.to_owned()]).collect();
    format!("{}\n\n", all.join("\n"))
}

/// Takes the comments away that an answer was: up to the line that ends it, or, where somebody has taken that out, those
/// lines at the beginning that were put there.
fn without_answer<'a>(edited: &'a str, head: &str) -> &'a str {
    let mut at = 0;
    let mut end_of_comments = 0;
    let mut is_comment = true;
    for line in edited.split_inclusive('\n') {
        at += line.len();
        if line.trim_end() == ANSWER_ENDS {
            end_of_comments = at;
            break;
        }
        is_comment &= head.lines().any(|known| known == line.trim_end());
        if is_comment {
            end_of_comments = at;
        }
    }
    edited[end_of_comments..].trim_start_matches(['\n', '\r'])
}

/// Lets the person edit a text in the same way.
pub fn edit_text(terminal: &mut Terminal, vars: &Vars, text: &str) -> Result<String, ExternalEditorError> {
    edit_copy(vars, text, |path| lend_to_editor(terminal, vars, path))
}

/// Shows a text in an editor that gets the terminal; what becomes of the text there is not looked at.
pub fn show_text(terminal: &mut Terminal, vars: &Vars, text: &str) -> Result<(), ExternalEditorError> {
    edit_text(terminal, vars, text).map(drop)
}

/// Lets the person edit a file of their own; the directory of one that is not there yet is made.
pub fn edit_file(terminal: &mut Terminal, vars: &Vars, path: &Path) -> Result<(), ExternalEditorError> {
    let command = || editor_command(vars).to_owned();
    if let Some(parent) = path.parent() {
        let failed = |source| ExternalEditorError::File { directory: parent.display().to_string(), source };
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let status = lend_to_editor(terminal, vars, path)
        .map_err(|source| ExternalEditorError::Start { command: command(), source })?;
    match status.success() {
        true => Ok(()),
        false => Err(ExternalEditorError::Status { command: command(), status }),
    }
}

fn lend_to_editor(terminal: &mut Terminal, vars: &Vars, path: &Path) -> io::Result<ExitStatus> {
    // The shell takes the command apart; the path is an argument of its own.
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{} \"$@\"", editor_command(vars)), "sh"]).arg(path);
    terminal.lend(|| shell.status()).and_then(|status| status)
}

fn edit_copy(
    vars: &Vars,
    text: &str,
    run: impl FnOnce(&Path) -> io::Result<ExitStatus>,
) -> Result<String, ExternalEditorError> {
    let command = || editor_command(vars).to_owned();
    let directory = vars.non_empty("TMPDIR").unwrap_or("/tmp");
    let failed = |source| ExternalEditorError::File { directory: directory.to_owned(), source };
    let mut file = tempfile::Builder::new()
        .prefix("loci-prompt-")
        .suffix(".md")
        .tempfile_in(directory)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    let status =
        run(file.path()).map_err(|source| ExternalEditorError::Start { command: command(), source })?;
    if !status.success() {
        return Err(ExternalEditorError::Status { command: command(), status });
    }
    // Editors may put another file in its place, so it is opened by its name again.
    let edited = std::fs::read(file.path()).map_err(failed)?;
    let edited = String::from_utf8_lossy(&edited).replace("\r\n", "\n");
    // Editors end the last line.
    Ok(edited.strip_suffix('\n').unwrap_or(&edited).to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn editor_is_the_persons_own() {
        let vars = |pairs: &[(&str, &str)]| {
            pairs.iter().fold(Vars::default(), |vars, (name, value)| vars.with(*name, *value))
        };
        assert_eq!(editor_command(&vars(&[("VISUAL", "code --wait"), ("EDITOR", "nano")])), "code --wait");
        assert_eq!(editor_command(&vars(&[("VISUAL", ""), ("EDITOR", "nano")])), "nano");
        assert_eq!(editor_command(&vars(&[])), "vi");
    }

    #[test]
    fn text_goes_through_a_private_file_that_is_gone_afterwards() {
        let directory = tempfile::tempdir().unwrap();
        let vars = Vars::default().with("TMPDIR", directory.path().to_str().unwrap());
        let edited = edit_copy(&vars, "one\ntwo", |path| {
            assert_eq!(std::fs::metadata(path)?.permissions().mode() & 0o777, 0o600);
            assert_eq!(std::fs::read_to_string(path)?, "one\ntwo");
            // As editors do that write beside and rename.
            std::fs::write(directory.path().join("new"), "three\r\nfour\n")?;
            std::fs::rename(directory.path().join("new"), path)?;
            Ok(ExitStatus::from_raw(0))
        });
        assert_eq!(edited.unwrap(), "three\nfour");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn answer_above_a_draft_is_taken_away_again() {
        let head = commented_answer("Done.\n\n    code\n");
        assert_eq!(head, format!("{ANSWER_BEGINS}\n# Done.\n#\n#     code\n{ANSWER_ENDS}\n\n"));
        for (edited, expected) in [
            (format!("{head}my prompt"), "my prompt"),
            (format!("{head}# a heading of mine\ntext"), "# a heading of mine\ntext"),
            (format!("{ANSWER_ENDS}\nmy prompt"), "my prompt"),
            (head.replace(ANSWER_ENDS, "") + "# mine\ntext", "# mine\ntext"),
            ("all of it is mine".to_owned(), "all of it is mine"),
            (head.clone(), ""),
        ] {
            assert_eq!(without_answer(&edited, &head), expected, "{edited:?}");
        }
        let long: Vec<String> = (0..80).map(|n| format!("line {n}")).collect();
        let head = commented_answer(&long.join("\n"));
        assert_eq!(head.lines().count(), MOST_ANSWER_LINES + 4);
        assert!(
            head.contains("left out") && !head.contains("line 29\n") && head.contains("line 30\n"),
            "{head}"
        );
    }

    #[test]
    fn editor_that_fails_leaves_the_text_alone() {
        let directory = tempfile::tempdir().unwrap();
        let vars = Vars::default().with("TMPDIR", directory.path().to_str().unwrap()).with("EDITOR", "ed");
        let failed = edit_copy(&vars, "text", |_| Ok(ExitStatus::from_raw(256))).unwrap_err();
        assert!(failed.to_string().contains("`ed`"), "{failed}");
        let missing = Vars::default().with("TMPDIR", "/nonexistent");
        assert!(matches!(
            edit_copy(&missing, "text", |_| Ok(ExitStatus::from_raw(0))),
            Err(ExternalEditorError::File { .. })
        ));
    }
}
