//! Putting text on the clipboard.
//!
//! The terminal is asked to (OSC 52), which works over ssh as well; but many terminals do not listen to that, and tmux does not
//! by default. So where the clipboard is on this machine the window system's own program is run as well, and within tmux its
//! buffer is filled.

use std::process::{Command, ExitStatus};
use std::time::Duration;

use base64::Engine as _;
use loci_stdx::{CommandFailure, Vars, run_for_status};

/// How long such a program has.
const PATIENCE: Duration = Duration::from_secs(2);

/// What such a program may know; nothing else of the environment is its business.
const VARIABLES: &[&str] = &[
    "DISPLAY",
    "HOME",
    "LANG",
    "PATH",
    "TMUX",
    "TMUX_TMPDIR",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Why a program did not take what is to be copied.
#[derive(Debug, thiserror::Error)]
enum NotCopied {
    #[error(transparent)]
    Run(#[from] CommandFailure),
    #[error("it ended with {0}")]
    Status(ExitStatus),
}

/// A program that takes what is to be copied on its standard input.
#[derive(Debug, PartialEq, Eq)]
struct CopyProgram {
    name: &'static str,
    /// The variable that says that it is of use; on macOS there always is one.
    variable: Option<&'static str>,
    /// Each of these arguments is run in turn: for the clipboard, and for what the middle button pastes.
    runs: &'static [&'static [&'static str]],
}

/// For the window system of this machine; the first that is installed is used.
const LOCAL: &[CopyProgram] = &[
    CopyProgram { name: "wl-copy", variable: Some("WAYLAND_DISPLAY"), runs: &[&[], &["--primary"]] },
    CopyProgram {
        name: "xclip",
        variable: Some("DISPLAY"),
        runs: &[&["-selection", "clipboard"], &["-selection", "primary"]],
    },
    CopyProgram {
        name: "xsel",
        variable: Some("DISPLAY"),
        runs: &[&["--clipboard", "--input"], &["--primary", "--input"]],
    },
    CopyProgram { name: "clip.exe", variable: Some("WSL_DISTRO_NAME"), runs: &[&[]] },
    #[cfg(target_os = "macos")]
    CopyProgram { name: "pbcopy", variable: None, runs: &[&[]] },
];

/// For tmux: with the clipboard of the terminal around it, and as older ones know it.
const TMUX: &[CopyProgram] = &[
    CopyProgram { name: "tmux", variable: Some("TMUX"), runs: &[&["load-buffer", "-w", "-"]] },
    CopyProgram { name: "tmux", variable: Some("TMUX"), runs: &[&["load-buffer", "-"]] },
];

/// Returns the bytes that put a text on the clipboard of the terminal, wherever that is.
pub(crate) fn terminal_sequence(text: &str) -> Vec<u8> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    format!("\x1b]52;c;{encoded}\x07").into_bytes()
}

/// Tells whether there is more to do than to ask the terminal.
pub(crate) fn has_programs(vars: &Vars) -> bool {
    alternatives(vars).iter().any(|programs| !programs.is_empty())
}

/// Puts a text where programs can: of each kind the first one that does it. Blocks, so no thread that draws calls it.
pub(crate) fn copy_by_programs(text: &str, vars: &Vars) {
    for programs in alternatives(vars) {
        for program in programs {
            match program.copy(text, vars) {
                Ok(()) => break,
                Err(error) => {
                    tracing::debug!(target: "loci::tui", program = program.name, %error, "not copied");
                }
            }
        }
    }
}

/// Returns a command that runs a program of the clipboard, which learns nothing of this one. It runs in the root, so that a
/// relative entry of PATH does not bring a program of the project's own.
pub(crate) fn clipboard_program(name: &str, vars: &Vars) -> Command {
    let mut command = Command::new(name);
    command.current_dir("/").env_clear();
    command.envs(VARIABLES.iter().filter_map(|name| Some((*name, vars.get(name)?))));
    command
}

/// Returns the programs that are of use here, by what they fill. Over ssh the clipboard of this machine is nobody's.
fn alternatives(vars: &Vars) -> [Vec<&'static CopyProgram>; 2] {
    let is_remote =
        ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].iter().any(|name| vars.non_empty(name).is_some());
    let of_use = |program: &&CopyProgram| program.variable.is_none_or(|name| vars.non_empty(name).is_some());
    let local = LOCAL.iter().filter(|_| !is_remote).filter(of_use).collect();
    [TMUX.iter().filter(of_use).collect(), local]
}

impl CopyProgram {
    fn copy(&self, text: &str, vars: &Vars) -> Result<(), NotCopied> {
        self.runs.iter().try_for_each(|arguments| self.run(arguments, text, vars))
    }

    fn run(&self, arguments: &[&str], text: &str, vars: &Vars) -> Result<(), NotCopied> {
        let mut command = clipboard_program(self.name, vars);
        command.args(arguments);
        // Some go on in the background, where they answer whoever pastes.
        match run_for_status(command, text.as_bytes(), PATIENCE)? {
            status if status.success() => Ok(()),
            status => Err(NotCopied::Status(status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_those_of_the_window_system_and_of_tmux() {
        let cases: &[(&[&str], &[&str], &[&str])] = &[
            (&[], &[], &[]),
            (&["DISPLAY"], &[], &["xclip", "xsel"]),
            (&["WAYLAND_DISPLAY", "DISPLAY"], &[], &["wl-copy", "xclip", "xsel"]),
            (&["WSL_DISTRO_NAME"], &[], &["clip.exe"]),
            (&["TMUX"], &["tmux", "tmux"], &[]),
            (&["TMUX", "DISPLAY", "SSH_TTY"], &["tmux", "tmux"], &[]),
            (&["DISPLAY", "SSH_CONNECTION"], &[], &[]),
        ];
        for (set, tmux, local) in cases {
            let vars = set.iter().fold(Vars::default(), |vars, name| vars.with(*name, "x"));
            let names = alternatives(&vars).map(|programs| {
                programs
                    .into_iter()
                    .map(|program| program.name)
                    .filter(|name| *name != "pbcopy")
                    .collect::<Vec<_>>()
            });
            assert_eq!(names, [tmux.to_vec(), local.to_vec()], "{set:?}");
        }
    }

    #[test]
    fn first_program_that_is_installed_is_given_the_text_and_no_secrets() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path();
        let script = |name: &str, body: &str| {
            std::fs::write(dir.join(name), format!("#!/bin/sh\n{body}\n")).unwrap();
            std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let out = dir.display();
        script("xsel", &format!("cat > '{out}/xsel'\"$1\"; env > '{out}/env'"));
        script("tmux", &format!("[ \"$2\" = - ] || exit 1; cat > '{out}/tmux-buffer'"));
        let path = format!("{out}:/usr/bin:/bin");
        let vars = Vars::default().with("PATH", path.as_str()).with("DISPLAY", ":9").with("TMUX", "t,1,0");
        let vars = vars.with("ANTHROPIC_API_KEY", "secret");
        assert!(has_programs(&vars) && !has_programs(&Vars::default()));
        copy_by_programs("some\ntext", &vars);
        for file in ["xsel--clipboard", "xsel--primary", "tmux-buffer"] {
            assert_eq!(std::fs::read_to_string(dir.join(file)).unwrap(), "some\ntext", "{file}");
        }
        let environment = std::fs::read_to_string(dir.join("env")).unwrap();
        assert!(environment.contains("DISPLAY=:9") && !environment.contains("secret"), "{environment}");
    }
}
