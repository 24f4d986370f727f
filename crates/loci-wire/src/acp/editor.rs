//! The editor as tools see it: its files and terminals, over the protocol.

use std::path::Path;

use loci_engine::{
    EditorAbilities, EditorError, EditorHost, HostFuture, TerminalCommand, TerminalExit, TerminalOutput,
};
use serde_json::{Value, json};

use super::peer::Peer;
use super::rpc::{REQUEST_CANCELLED, RpcError};

/// The editor, for one session.
pub(super) struct Editor {
    pub(super) peer: Peer,
    pub(super) session: String,
    pub(super) abilities: EditorAbilities,
}

impl Editor {
    /// Asks for something about the session.
    async fn request(&self, method: &str, mut params: Value) -> Result<Value, EditorError> {
        params["sessionId"] = json!(self.session);
        self.peer.request(method, &params).await.map_err(to_editor_error)
    }

    async fn of_terminal(&self, method: &str, terminal: &str) -> Result<Value, EditorError> {
        self.request(method, json!({"terminalId": terminal})).await
    }
}

fn to_editor_error(error: RpcError) -> EditorError {
    match error.code {
        REQUEST_CANCELLED => EditorError::Gone,
        _ => EditorError::Refused(error.message),
    }
}

fn no_answer(method: &str) -> EditorError {
    EditorError::Refused(format!("its answer to `{method}` cannot be understood"))
}

impl EditorHost for Editor {
    fn abilities(&self) -> EditorAbilities {
        self.abilities
    }

    fn read_text<'a>(&'a self, path: &'a Path) -> HostFuture<'a, Result<String, EditorError>> {
        Box::pin(async move {
            let method = "fs/read_text_file";
            let answer = self.request(method, json!({"path": path})).await?;
            answer["content"].as_str().map(str::to_owned).ok_or_else(|| no_answer(method))
        })
    }

    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> HostFuture<'a, Result<(), EditorError>> {
        Box::pin(async move {
            self.request("fs/write_text_file", json!({"path": path, "content": text})).await.map(drop)
        })
    }

    fn create_terminal(&self, command: TerminalCommand) -> HostFuture<'_, Result<String, EditorError>> {
        Box::pin(async move {
            let method = "terminal/create";
            let env: Vec<Value> =
                command.env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            let params = json!({
                "command": command.program,
                "args": command.args,
                "cwd": command.cwd,
                "env": env,
                "outputByteLimit": command.output_bytes,
            });
            let answer = self.request(method, params).await?;
            answer["terminalId"].as_str().map(str::to_owned).ok_or_else(|| no_answer(method))
        })
    }

    fn wait_for_exit<'a>(&'a self, terminal: &'a str) -> HostFuture<'a, Result<TerminalExit, EditorError>> {
        Box::pin(async move {
            let answer = self.of_terminal("terminal/wait_for_exit", terminal).await?;
            Ok(TerminalExit {
                code: answer["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()),
                signal: answer["signal"].as_str().map(str::to_owned),
            })
        })
    }

    fn terminal_output<'a>(
        &'a self,
        terminal: &'a str,
    ) -> HostFuture<'a, Result<TerminalOutput, EditorError>> {
        Box::pin(async move {
            let answer = self.of_terminal("terminal/output", terminal).await?;
            let text = answer["output"].as_str().unwrap_or_default().to_owned();
            Ok(TerminalOutput { text, is_cut: answer["truncated"] == true })
        })
    }

    fn kill_terminal<'a>(&'a self, terminal: &'a str) -> HostFuture<'a, Result<(), EditorError>> {
        Box::pin(async move { self.of_terminal("terminal/kill", terminal).await.map(drop) })
    }

    fn release_terminal<'a>(&'a self, terminal: &'a str) -> HostFuture<'a, Result<(), EditorError>> {
        Box::pin(async move { self.of_terminal("terminal/release", terminal).await.map(drop) })
    }
}
