//! What the tests share: a world to run the binary in, and readable forms of what it sent and left.

mod pipe;
mod render;
mod transcript;

pub(crate) use pipe::{Pipe, assert_ended};
pub(crate) use render::{brief, conversation, frames, shape};
pub(crate) use transcript::{assert_calls_answered, sketch};

use loci_testkit::{
    Binary, Normaliser, Output, Recorded, Screen, Script, ScriptedModel, Session, Terminal, TestHome,
};
use serde_json::{Value, json};

/// The model that tests ask for unless they are about the choice.
pub(crate) const MODEL: &str = "claude-sonnet-4-5";

/// A home, a project and a scripted model.
pub(crate) struct World {
    pub(crate) home: TestHome,
    pub(crate) model: ScriptedModel,
}

impl World {
    /// Makes an empty home and project, with a model that plays `script`.
    pub(crate) async fn new(script: impl Into<Script>) -> Self {
        Self { home: TestHome::new(), model: ScriptedModel::start(script).await }
    }

    /// Makes the same with a project that is a git repository.
    pub(crate) async fn with_git(script: impl Into<Script>) -> Self {
        Self { home: TestHome::with_git(), model: ScriptedModel::start(script).await }
    }

    /// Keeps the home and goes on with another script, as after a restart.
    pub(crate) async fn then(self, script: impl Into<Script>) -> Self {
        Self { home: self.home, model: ScriptedModel::start(script.into().first_id(500)).await }
    }

    /// Runs `loci -p` with these further arguments and nothing on standard input.
    pub(crate) fn print<const N: usize>(&self, args: [&str; N]) -> Output {
        self.run(&print(args))
    }

    /// Runs a binary to its end with nothing on standard input.
    pub(crate) fn run(&self, binary: &Binary) -> Output {
        self.run_with_stdin(binary, "")
    }

    /// Runs a binary to its end.
    pub(crate) fn run_with_stdin(&self, binary: &Binary, stdin: &str) -> Output {
        self.at_home(binary).run(&self.home, self.model.base_url(), stdin)
    }

    /// Starts a binary and leaves it running, with standard input open.
    pub(crate) fn start(&self, binary: &Binary) -> Session {
        self.at_home(binary).start(&self.home, self.model.base_url())
    }

    /// Starts a binary at a terminal of its own.
    pub(crate) fn start_at_terminal(&self, binary: &Binary) -> Terminal {
        self.at_home(binary).start_at_terminal(&self.home, self.model.base_url())
    }

    /// Starts a binary that reads from and writes to nothing but a terminal.
    pub(crate) fn start_on_screen(&self, binary: &Binary) -> Terminal {
        self.at_home(binary).start_on_screen(&self.home, self.model.base_url())
    }

    /// Starts the terminal interface on a screen of this size, in a folder that is trusted.
    pub(crate) fn start_interface<const N: usize>(&self, args: [&str; N], size: (u16, u16)) -> Screen {
        self.start_interface_with(args, &[], size)
    }

    /// The same with variables of the environment.
    pub(crate) fn start_interface_with<const N: usize>(
        &self,
        args: [&str; N],
        variables: &[(&str, &str)],
        size: (u16, u16),
    ) -> Screen {
        crate::settings::trust(self);
        let binary = loci().args(["--model", MODEL]).args(args);
        let binary = variables.iter().fold(binary, |binary, (name, value)| binary.env(name, *value));
        self.at_home(&binary).start_screen(&self.home, self.model.base_url(), size)
    }

    /// Keeps what would go to the temporary directory of the machine.
    fn at_home(&self, binary: &Binary) -> Binary {
        binary
            .clone()
            .env("CLAUDE_CODE_TMPDIR", self.home.project().with_file_name("tmp").display().to_string())
    }

    /// Starts a binary and leaves it running, with nothing on standard input.
    pub(crate) fn start_closed(&self, binary: &Binary) -> Session {
        let mut session = self.start(binary);
        session.close_stdin();
        session
    }

    /// Returns the requests of the conversation, all of which the real API must have taken.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.model.requests_valid().unwrap();
        self.model.main_requests()
    }

    /// Returns the last of them.
    pub(crate) fn last_request(&self) -> Recorded {
        self.requests().pop().expect("there was a request")
    }

    /// Returns a normaliser that knows this world.
    pub(crate) fn normaliser(&self) -> Normaliser {
        Normaliser::of(&self.home).literal(self.model.base_url(), "<model>")
    }

    /// Returns the only session, every call of which must have exactly one answer.
    pub(crate) fn session(&self) -> Vec<Value> {
        let entries = self.home.only_session();
        assert_calls_answered(&entries);
        entries
    }

    /// Renders the only session.
    pub(crate) fn sketch(&self) -> String {
        sketch(&self.session(), &mut self.normaliser())
    }

    /// Renders the conversation of the last request.
    pub(crate) fn conversation(&self) -> String {
        conversation(&self.last_request(), &mut self.normaliser())
    }

    /// Returns a path of the project as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.home.project().join(name).display().to_string()
    }
}

/// The binary, with no arguments yet.
pub(crate) fn loci() -> Binary {
    Binary::new(env!("CARGO_BIN_EXE_loci"))
}

/// `loci -p --model ..` with these further arguments.
pub(crate) fn print<const N: usize>(args: [&str; N]) -> Binary {
    loci().args(["-p", "--model", MODEL]).args(args)
}

/// `loci -p` with stream-json both ways.
pub(crate) fn stream<const N: usize>(args: [&str; N]) -> Binary {
    print(["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]).args(args)
}

/// `loci -p` that takes one prompt and answers with stream-json.
pub(crate) fn watched<const N: usize>(args: [&str; N]) -> Binary {
    print(["--output-format", "stream-json", "--verbose"]).args(args)
}

/// A prompt as a line of stream-json.
pub(crate) fn user(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}

/// A control request as a line of stream-json.
pub(crate) fn control(id: &str, request: Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

/// Whether a frame is the last of a turn.
pub(crate) fn is_result(frame: &Value) -> bool {
    frame["type"] == "result"
}

/// Asserts that a run went well and said nothing on standard error.
pub(crate) fn assert_fine(output: &Output) {
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{output:?}");
}

/// Waits for a file that another program makes.
pub(crate) fn wait_for_file(path: &std::path::Path) {
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !path.exists() && std::time::Instant::now() < limit {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(path.exists(), "{}", path.display());
}
