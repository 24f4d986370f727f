//! Commands of the shell that get the terminal: editors, pagers, whatever asks for a password.
//!
//! A command behind `!` has no terminal: what it prints is kept for the model. Some can do nothing without one. `!!` gives it to any
//! command, and programs that fill the screen get it behind `!`, too. Such a command runs as an editor does: loci gives the terminal
//! away and waits. The transcript has the command and how it ended; what it showed is not kept, and the model does not
//! answer. It runs outside the sandbox, as what the person runs in another window: where there is one, only for `!!`, and not at
//! all where settings have nothing run outside.

use std::path::Path;

use loci_engine::{Command, SessionSnapshot, ShellCommand, ShellOutput};

use super::Effect;
use super::session_mirror::SessionMirror;

/// The request by which the place of a command is asked for.
pub(super) const SHELL_REQUEST: &str = "shell-place";

/// What is said below a command that asked for a terminal.
pub(super) const ASKED_FOR_TERMINAL: &str =
    "It asked for a terminal: with `!!` in the place of `!` it gets yours";

/// Programs that fill the screen whatever they are given, beside those of [`fills_screen`].
const SCREEN_PROGRAMS: &[&str] = &[
    "view",
    "vimdiff",
    "nano",
    "pico",
    "micro",
    "hx",
    "helix",
    "kak",
    "joe",
    "less",
    "more",
    "most",
    "man",
    "htop",
    "btop",
    "atop",
    "iotop",
    "glances",
    "zellij",
    "fzf",
    "ranger",
    "mc",
    "nnn",
    "lf",
    "yazi",
    "tig",
    "lazygit",
    "gitui",
    "k9s",
    "visudo",
    "vipw",
    "tmate",
    "dialog",
    "whiptail",
    "nmtui",
    "alsamixer",
];

/// What programs say that miss a terminal.
const COMPLAINTS: &[&str] = &[
    "not a tty",
    "not a TTY",
    "not a terminal",
    "not from a terminal",
    "a terminal is required",
    "no tty present",
    "must be run from a terminal",
    "Inappropriate ioctl for device",
    "failed tty get",
    "Error opening terminal",
    "Terminal is dumb, but EDITOR unset",
    "could not read Username",
    "could not read Password",
    "Password change has been aborted",
    "Host key verification failed",
];

/// A command that gets the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TerminalCommand {
    command: String,
    /// It was asked for, so it may be a program that shows its lines and ends.
    is_asked_for: bool,
}

impl TerminalCommand {
    /// Reads what stands behind `!`; none where it needs no terminal.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let asked_for = text.strip_prefix('!').map(str::trim).filter(|command| !command.is_empty());
        let command = asked_for.or_else(|| fills_screen(text).then_some(text))?.to_owned();
        Some(Self { command, is_asked_for: asked_for.is_some() })
    }

    /// Runs it where the session stands; where the conversation has the screen it waits, so that what it showed can be read.
    pub(super) fn run(self, snapshot: &SessionSnapshot, is_fullscreen: bool) -> Effect {
        let waits = self.is_asked_for && is_fullscreen;
        Effect::RunOnTerminal { command: self.command, cwd: snapshot.current_dir.clone(), waits }
    }

    /// Says why a command does not get the terminal: there it runs outside the sandbox, which it does only for whoever asks for
    /// that, and not where settings have nothing run outside.
    pub(super) fn refusal(&self, session: &SessionMirror) -> Option<String> {
        session.sandbox.as_ref()?;
        let Self { command, is_asked_for } = self;
        let command = loci_stdx::single_line(command, 80);
        match (session.is_sandbox_strict, is_asked_for) {
            (true, _) => Some(format!(
                "Not run: `{command}` would have the terminal outside the sandbox, and settings let nothing run there \
                 (sandbox.allowUnsandboxedCommands)"
            )),
            (false, false) => Some(format!(
                "Not run: `{command}` needs a terminal, which no command has inside the sandbox; `!!{command}` gives it yours, \
                 outside of it"
            )),
            (false, true) => None,
        }
    }
}

/// Tells whether a simple command fills the screen. One whose input or output goes elsewhere does not.
fn fills_screen(command: &str) -> bool {
    if command.contains(['|', '&', ';', '<', '>', '$', '`', '(', '\n']) {
        return false;
    }
    let is_assignment =
        |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.contains(['/', '-']));
    let mut words = command.split_whitespace().skip_while(is_assignment);
    let Some(program) = words.next() else { return false };
    let arguments: Vec<&str> = words.collect();
    let is_help = arguments.iter().any(|it| matches!(*it, "--version" | "--help"));
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name {
        "git" => opens_editor(&arguments),
        "crontab" => arguments == ["-e"],
        // Without a window to draw in they print.
        "top" | "emacs" => !arguments.iter().any(|it| it.starts_with("-b") || it.contains("batch")),
        "tmux" | "screen" => {
            arguments.is_empty() || matches!(arguments[0], "attach" | "a" | "new" | "-r" | "-x")
        }
        "vi" | "vim" | "nvim" => {
            !is_help && !arguments.iter().any(|it| matches!(*it, "-es" | "-Es" | "--headless"))
        }
        _ => !is_help && SCREEN_PROGRAMS.contains(&name),
    }
}

/// Tells whether git would open an editor or ask.
fn opens_editor(arguments: &[&str]) -> bool {
    let has = |flags: &[&str]| {
        arguments.iter().any(|it| flags.iter().any(|flag| it == flag || it.starts_with(&format!("{flag}="))))
    };
    let has_message = arguments.iter().any(|it| {
        let is_short = it.starts_with('-') && !it.starts_with("--");
        is_short && it.contains(['m', 'F', 'C'])
    });
    match arguments.first() {
        Some(&"commit") => {
            let says_all = has(&[
                "--message",
                "--file",
                "--reuse-message",
                "--no-edit",
                "--fixup",
                "--squash",
                "--dry-run",
            ]);
            !has_message && !says_all && !has(&["--help", "-h"])
        }
        Some(&"rebase") => has(&["-i", "--interactive", "--edit-todo"]),
        Some(&("add" | "checkout" | "restore" | "reset" | "stash")) => {
            has(&["-p", "--patch", "-i", "--interactive"])
        }
        _ => false,
    }
}

/// Tells whether what a command printed is that it misses a terminal.
pub(super) fn asks_for_terminal(printed: &str) -> bool {
    COMPLAINTS.iter().any(|complaint| printed.contains(complaint))
}

/// Has a command recorded that had the terminal. The model hears of it with the next prompt.
pub(super) fn ran_on_terminal(command: String, exit_code: Option<i32>, has_sandbox: bool) -> Effect {
    let place = if has_sandbox { ", outside the sandbox" } else { "" };
    // The model hears what is printed, and not the code.
    let code = match exit_code {
        Some(0) => String::new(),
        Some(code) => format!(", ended with code {code}"),
        None => ", ended by a signal".to_owned(),
    };
    let stdout = format!("(ran on the terminal{place}{code}; what it showed there is not kept)");
    let ran = Some(ShellOutput { stdout, stderr: String::new(), exit_code, is_interrupted: false });
    Effect::Send(Command::Shell(ShellCommand { command, is_answered: false, ran }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_fill_the_screen_get_the_terminal() {
        for (text, expected) in [
            ("vim x", Some("vim x")),
            ("EDITOR=vi /usr/bin/vim x", Some("EDITOR=vi /usr/bin/vim x")),
            ("!sudo ls | cat", Some("sudo ls | cat")),
            ("! ls", Some("ls")),
            ("!", None),
            ("vim --version", None),
            ("less log", Some("less log")),
            ("ls | less", None),
            ("man ls > page", None),
            ("sudo ls", None),
            ("ssh host ls", None),
            ("top", Some("top")),
            ("top -bn1", None),
            ("tmux ls", None),
            ("tmux a", Some("tmux a")),
            ("crontab -l", None),
            ("git commit", Some("git commit")),
            ("git commit --amend", Some("git commit --amend")),
            ("git commit -am done", None),
            ("git commit --amend --no-edit", None),
            ("git commit --message=x", None),
            ("git rebase -i main", Some("git rebase -i main")),
            ("git rebase main", None),
            ("git add -p", Some("git add -p")),
            ("git log -p", None),
            ("git", None),
            ("echo vim", None),
        ] {
            let parsed = TerminalCommand::parse(text);
            assert_eq!(parsed.as_ref().map(|it| it.command.as_str()), expected, "{text}");
            let is_asked_for = text.starts_with('!');
            assert!(parsed.is_none_or(|it| it.is_asked_for == is_asked_for), "{text}");
        }
    }

    #[test]
    fn command_that_misses_a_terminal_is_known_by_what_it_says() {
        for (printed, expected) in [
            ("sudo: a terminal is required to read the password; either use ssh", true),
            ("top: failed tty get", true),
            ("the input device is not a TTY", true),
            ("fatal: could not read Username for 'https://x': No such device or address", true),
            ("total 0", false),
        ] {
            assert_eq!(asks_for_terminal(printed), expected, "{printed}");
        }
    }
}
