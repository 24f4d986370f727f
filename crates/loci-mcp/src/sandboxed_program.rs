//! Programs that run in a sandbox of their own.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use loci_core::sandbox_profile::SandboxProfile;
use loci_sandbox::{HelperHandle, Sandbox, SandboxRun};
use tokio::process::Command;

use crate::transport::TransportError;

/// Makes the sandbox that a program asks for, which runs in this directory; the error says why it cannot be had.
pub type SandboxMaker = Arc<dyn Fn(&SandboxProfile, &Path) -> Result<Arc<Sandbox>, String> + Send + Sync>;

/// A program about to start, in a sandbox or without one.
pub(crate) struct Confined {
    pub(crate) command: Command,
    pub(crate) env: Vec<(String, String)>,
    supervised: Option<(Arc<Sandbox>, HelperHandle)>,
}

impl Confined {
    /// Makes the command that runs a program, inside where there is a sandbox.
    pub(crate) fn new(
        sandbox: Option<&Arc<Sandbox>>,
        program: &str,
        args: &[String],
        env: Vec<(String, String)>,
    ) -> Result<Self, TransportError> {
        let Some(sandbox) = sandbox else {
            let mut command = Command::new(program);
            command.args(args);
            return Ok(Self { command, env, supervised: None });
        };
        // Its profile says what it may write; no directory is writable for being the session's.
        let (command, helper_handle) = sandbox
            .command(&[], OsStr::new(program), args)
            .map_err(|error| TransportError::Failed(format!("its sandbox could not be made: {error}")))?;
        let env = sandbox.child_env(env);
        Ok(Self { command: command.into(), env, supervised: Some((Arc::clone(sandbox), helper_handle)) })
    }

    /// Follows the program once it was started. When that fails everything in the sandbox ends.
    pub(crate) fn follow(self) -> Result<Option<SandboxRun>, TransportError> {
        let followed =
            self.supervised.map(|(sandbox, helper_handle)| sandbox.watch(helper_handle)).transpose();
        followed
            .map_err(|error| TransportError::Failed(format!("its sandbox could not be followed: {error}")))
    }
}
