//! A command in a terminal of the editor, where somebody asked for that (V-11).
//!
//! The editor shows the output as it comes and runs the command as it runs its own: no sandbox of ours reaches it, what it
//! starts is the editor's to end, and a `cd` in it moves nothing. A session that has a sandbox runs its commands there.

use std::time::Duration;

use loci_core::tool::ToolOutcome;
use loci_stdx::prefixed_command;

use super::capture::{Capture, Stream};
use super::limits::Limits;
use super::{Input, exit_code, result};
use crate::{EditorError, EditorHost, Host, TerminalCommand, ToolCall, ToolProgress};

/// How much output the editor is asked to keep.
const OUTPUT_BYTES: u64 = 1024 * 1024;
/// How long the editor may take to clean up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a command to its end.
pub(super) async fn run(
    input: &Input,
    call: &ToolCall,
    host: &dyn Host,
    editor: &dyn EditorHost,
    limits: Limits,
) -> ToolOutcome {
    let place = host.workspace();
    let line = prefixed_command(&host.child_env(), &input.command);
    let command = TerminalCommand {
        program: "bash".to_owned(),
        args: vec!["-c".to_owned(), line.unwrap_or_else(|| input.command.clone())],
        cwd: if place.cwd.is_dir() { place.cwd } else { place.project },
        env: host.child_env(),
        output_bytes: OUTPUT_BYTES,
    };
    let created = tokio::select! {
        biased;
        () = call.cancel.cancelled() => return ToolOutcome::error("Interrupted before the command was run"),
        created = editor.create_terminal(command) => created,
    };
    let terminal = match created {
        Ok(terminal) => terminal,
        Err(error) => return ToolOutcome::error(format!("Failed to run the command: {error}")),
    };
    host.progress(&call.id, ToolProgress::Terminal(terminal.clone()));
    let seconds = limits.timeout.as_secs_f64();
    let ended = tokio::select! {
        biased;
        () = call.cancel.cancelled() => Err("The command was interrupted before it ended.".to_owned()),
        ended = tokio::time::timeout(limits.timeout, editor.wait_for_exit(&terminal)) => match ended {
            Ok(Ok(exit)) => Ok(exit),
            Ok(Err(error)) => Err(format!("The command was lost: {error}")),
            Err(_) => Err(format!("The command did not end within {seconds} s and was stopped.")),
        },
    };
    if ended.is_err() {
        // It may be over, or the editor gone: then there is nothing to end.
        drop(patient(editor.kill_terminal(&terminal)).await);
    }
    let output = patient(editor.terminal_output(&terminal)).await.unwrap_or_default();
    // The output is here; an editor that keeps the terminal shows it a little longer.
    drop(patient(editor.release_terminal(&terminal)).await);
    let spill = || host.spill_path(&call.id);
    let mut capture = Capture::new(limits.capture());
    capture.push(Stream::Stdout, output.text.as_bytes(), &spill).await;
    let note = output.is_cut.then(|| format!("Only the last {OUTPUT_BYTES} bytes of the output were kept."));
    let exit = match ended {
        Ok(exit) => exit,
        Err(why) => return result::failure(&why, capture, note, &spill).await,
    };
    let Some(code) = exit.code else {
        let why =
            format!("The command was ended by {}", exit.signal.unwrap_or_else(|| "a signal".to_owned()));
        return result::failure(&why, capture, note, &spill).await;
    };
    let answer = exit_code::meaning(&input.command, code);
    if code == 0 || answer.is_some() {
        return result::success(&input.command, capture, limits.output_chars, answer, note, &spill).await;
    }
    let explanation = exit_code::explanation(code).unwrap_or_default();
    result::failure(&result::join(&format!("Exit code {code}"), &explanation), capture, note, &spill).await
}

async fn patient<T>(asked: impl Future<Output = Result<T, EditorError>>) -> Result<T, EditorError> {
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or(Err(EditorError::Gone))
}
