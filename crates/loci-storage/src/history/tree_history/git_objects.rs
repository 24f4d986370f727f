//! Reading blobs out of a repository: `git cat-file --batch`, which writes nothing and runs nothing of the repository's.
//! Git itself reads packs and deltas, so there is no need for a crate that does (`gix-odb`).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use loci_core::hex::to_hex;
use loci_stdx::Env;

/// The variables of the environment that git is given.
const KEPT: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

/// A reader of one repository's blobs.
#[derive(Debug)]
pub(crate) struct GitObjects {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl GitObjects {
    /// Starts reading the repository around `dir`.
    pub(crate) fn open(dir: &Path, env: &Env) -> io::Result<Self> {
        let mut command = Command::new("git");
        command.args(["--no-optional-locks", "--no-replace-objects", "cat-file", "--batch"]);
        command.current_dir(dir).env_clear();
        command.envs(KEPT.iter().filter_map(|name| Some((*name, env.vars.get(name)?))));
        // What is not here is not fetched from elsewhere.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(questions), Some(answers)) => {
                Ok(Self { child, questions, answers: BufReader::new(answers) })
            }
            _ => Err(io::Error::other("git has no pipes")),
        }
    }

    /// Returns the content of a blob.
    pub(crate) fn blob(&mut self, id: &[u8; 20]) -> io::Result<Vec<u8>> {
        writeln!(self.questions, "{}", to_hex(id))?;
        self.questions.flush()?;
        let mut header = String::new();
        self.answers.read_line(&mut header)?;
        let size = match header.trim_end().split(' ').collect::<Vec<_>>().as_slice() {
            [_, "blob", size] => size.parse::<u64>().ok(),
            _ => None,
        };
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("git has no blob {}", to_hex(id)));
        let size = size.ok_or_else(missing)?;
        let mut bytes = Vec::new();
        self.answers.by_ref().take(size).read_to_end(&mut bytes)?;
        let mut newline = [0];
        self.answers.read_exact(&mut newline)?;
        if bytes.len() as u64 == size { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Drop for GitObjects {
    fn drop(&mut self) {
        // It only reads; ending it early loses nothing.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
