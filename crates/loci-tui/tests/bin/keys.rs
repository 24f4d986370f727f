//! Shows what a terminal sends, an event a line, as loci understands it; the tests drive it through every way out.
//!
//! `cargo run -p loci-tui --bin terminal-keys`. Ctrl+C ends it, Ctrl+Z stops it, `e` lends the terminal to `$EDITOR` or `true`,
//! `g` a draft to the editor, `p` panics, `t` panics on another thread, `a` aborts, `h` hangs without listening any more, `m` and `s` switch the
//! mouse and the alternate screen on, `!` ends with an error.

#![expect(clippy::print_stdout, reason = "it is a front end of its own")]

use std::io::{self, Write};
use std::process::{Command, ExitCode};

use loci_stdx::Env;
use loci_tui::input::{Draft, InputMode, edit_draft};
use loci_tui::key::{InputEvent, Key, KeyCode, TerminalSignal};
use loci_tui::mailbox::{Letter, Mailbox};
use loci_tui::terminal::{Terminal, TerminalOptions};

fn main() -> ExitCode {
    match run() {
        Ok(last) => {
            println!("ended by {last}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<String> {
    let env = Env::from_process()?;
    let mailbox = Mailbox::<()>::default();
    let options = TerminalOptions::from_vars(&env.vars);
    let mut terminal = Terminal::open(&options, &mailbox).map_err(io::Error::other)?;
    let mut output = terminal.output()?;
    write!(output, "ready {:?}\r\n", terminal.size())?;
    loop {
        // As if a row of ours stood below the cursor.
        terminal.set_rows_below(Some(1));
        let Letter::Input(event) = mailbox.take(None) else { continue };
        // In one write: a window that is closed as soon as a part of it is seen must not look like a fault of ours.
        output.write_all(format!("{event:?}\r\n").as_bytes())?;
        match event {
            InputEvent::Closed => return Ok("the end of the terminal".to_owned()),
            InputEvent::Reply(reply) => terminal.accept_reply(&reply)?,
            InputEvent::Signal(TerminalSignal::Suspend) => suspend(&mut terminal, &mut output)?,
            InputEvent::Signal(TerminalSignal::Continued) => drop(terminal.set_up_again()?),
            InputEvent::Signal(signal) => return Ok(format!("{signal:?}")),
            InputEvent::Key(Key { code: KeyCode::Char('c'), ctrl: true, .. }) => {
                return Ok("a key".to_owned());
            }
            InputEvent::Key(Key { code: KeyCode::Char('z'), ctrl: true, .. }) => {
                suspend(&mut terminal, &mut output)?;
            }
            InputEvent::Key(Key { code: KeyCode::Char(char), .. }) => {
                act(char, &mut terminal, &mut output, &env)?;
            }
            _ => {}
        }
    }
}

fn suspend(terminal: &mut Terminal, output: &mut impl Write) -> io::Result<()> {
    let what = if terminal.suspend()? { "went on" } else { "left to the shell" };
    write!(output, "{what}\r\n")
}

#[expect(clippy::panic, reason = "panicking is what the tests ask for")]
fn act(char: char, terminal: &mut Terminal, output: &mut impl Write, env: &Env) -> io::Result<()> {
    match char {
        'e' => {
            let editor = env.vars.non_empty("EDITOR").unwrap_or("true").to_owned();
            let status = terminal.lend(|| Command::new("sh").args(["-c", &editor]).status())??;
            write!(output, "back: {status}\r\n")
        }
        'g' => {
            let draft = Draft::plain(InputMode::Prompt, "a draft");
            match edit_draft(terminal, &env.vars, &draft, None) {
                Ok(edited) => write!(output, "edited: {}\r\n", edited.display()),
                Err(error) => write!(output, "not edited: {error}\r\n"),
            }
        }
        'p' => panic!("on purpose"),
        't' => {
            let panicked = std::thread::spawn(|| panic!("beside")).join().is_err();
            write!(output, "beside: {panicked} {:?}\r\n", terminal.take_panics().len())
        }
        'u' => {
            let panicked = std::thread::spawn(|| panic!("told at the end")).join().is_err();
            write!(output, "beside: {panicked}\r\n")
        }
        'a' => std::process::abort(),
        'h' => loop {
            std::thread::park();
        },
        'm' => terminal.set_mouse(true),
        's' => terminal.set_alternate_screen(true),
        'l' => terminal.set_title("a title"),
        '!' => Err(io::Error::other("on purpose")),
        _ => Ok(()),
    }
}
