//! The terminal for moments in which there is no interface: a key that is typed unseen, and putting right what a program
//! that was killed has left behind.

use std::io::{self, IsTerminal, Read, Write};

use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, Termios, tcgetattr, tcsetattr,
};

use super::modes::RESET_TERMINAL;

/// Asks for something that is not shown while it is typed; none when whoever types gave up (Ctrl+C, Ctrl+D, Escape).
pub fn read_secret(question: &str) -> io::Result<Option<String>> {
    // Hidden before it is asked: whoever answers at once is not shown either.
    let hidden = Hidden::begin()?;
    let mut stderr = io::stderr();
    write!(stderr, "{question}")?;
    stderr.flush()?;
    let read = read_line();
    drop(hidden);
    writeln!(stderr)?;
    read
}

/// Puts the terminal right: every mode off, letters echoed, lines edited.
pub fn reset_terminal() -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(RESET_TERMINAL.as_bytes())?;
    stdout.flush()?;
    let stdin = io::stdin();
    if stdin.is_terminal() {
        let mut modes = tcgetattr(&stdin)?;
        make_sane(&mut modes);
        tcsetattr(&stdin, OptionalActions::Now, &modes)?;
    }
    Ok(())
}

fn make_sane(modes: &mut Termios) {
    modes.input_modes |= InputModes::ICRNL | InputModes::IXON | InputModes::BRKINT;
    modes.input_modes -= InputModes::IGNCR | InputModes::INLCR | InputModes::ISTRIP;
    modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    modes.control_modes |= ControlModes::CREAD;
    modes.local_modes |= LocalModes::ICANON
        | LocalModes::ECHO
        | LocalModes::ECHOE
        | LocalModes::ECHOK
        | LocalModes::ISIG
        | LocalModes::IEXTEN;
    modes.local_modes -= LocalModes::NOFLSH | LocalModes::ECHONL;
}

/// Nothing is echoed, and no key is a signal, as long as this lives.
struct Hidden {
    found: Termios,
}

impl Hidden {
    fn begin() -> io::Result<Self> {
        let stdin = io::stdin();
        let found = tcgetattr(&stdin)?;
        let mut modes = found.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        tcsetattr(&stdin, OptionalActions::Now, &modes)?;
        Ok(Self { found })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // The terminal may be gone.
        tcsetattr(io::stdin(), OptionalActions::Now, &self.found).ok();
    }
}

fn read_line() -> io::Result<Option<String>> {
    let mut typed = Vec::new();
    let mut stdin = io::stdin();
    let mut byte = [0];
    // A key is no longer than this, whatever is pasted.
    while typed.len() < 4096 {
        if stdin.read(&mut byte)? == 0 {
            return Ok(None);
        }
        match byte[0] {
            b'\r' | b'\n' => break,
            // Ctrl+C, Ctrl+D and Escape.
            3 | 4 | 27 => return Ok(None),
            8 | 127 => {
                typed.pop();
            }
            21 => typed.clear(),
            other => typed.push(other),
        }
    }
    Ok(Some(String::from_utf8_lossy(&typed).trim().to_owned()))
}
