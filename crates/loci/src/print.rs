//! Printing: data to standard output, talk to standard error. Nothing else in the binary writes to either, and tidy holds that.
//!
//! Names, rules, answers and errors come from files and servers of others. At a terminal they are read and do nothing
//! ([`loci_stdx::escape_for_terminal`]); what goes into a file or a pipe is what it is, byte for byte. Talk is for people
//! wherever it goes, and always escaped.

use std::io::{self, IsTerminal, Stderr, Stdout, Write};

use loci_app::UserError;
use loci_stdx::{TerminalWriter, escape_for_terminal};
use serde_json::Value;

/// What our own output is styled with: bold, the bold yellow of what was found, and the end of both.
const STYLES: [&str; 3] = ["\x1b[1m", "\x1b[1;33m", "\x1b[0m"];

/// Standard output as a stream, for what writes while it runs.
pub(crate) fn stdout() -> Box<dyn Write + Send> {
    match is_stdout_terminal() {
        true => Box::new(TerminalWriter::new(io::stdout())),
        false => Box::new(io::stdout()),
    }
}

/// Standard output as it is, for words that are all our own.
pub(crate) fn own_stdout() -> Stdout {
    io::stdout()
}

/// Standard error as a stream.
pub(crate) fn stderr() -> TerminalWriter<Stderr> {
    TerminalWriter::new(io::stderr())
}

/// Standard error as it is, for words that are all our own and move the cursor.
pub(crate) fn own_stderr() -> Stderr {
    io::stderr()
}

/// Tells whether standard output is a terminal.
pub(crate) fn is_stdout_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Tells whether standard error is a terminal.
pub(crate) fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints data; a reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> Result<(), UserError> {
    print_parts(&[text])
}

/// Prints data that was made in parts.
pub(crate) fn print_parts<T: AsRef<[u8]>>(parts: &[T]) -> Result<(), UserError> {
    let mut stdout = stdout();
    let written = parts.iter().try_for_each(|part| stdout.write_all(part.as_ref()));
    result(written.and_then(|()| stdout.flush()))
}

/// Prints data that we have put our own styles into.
pub(crate) fn print_styled(text: &str) -> Result<(), UserError> {
    if !is_stdout_terminal() {
        return print(text);
    }
    let mut stdout = io::stdout();
    result(stdout.write_all(escape_around_styles(text).as_bytes()).and_then(|()| stdout.flush()))
}

/// Prints one JSON value and a newline.
pub(crate) fn print_json(value: &Value) -> Result<(), UserError> {
    print(&format!("{value}\n"))
}

/// Says a line to people.
pub(crate) fn print_message(text: &str) {
    // A closed stderr leaves nobody to tell.
    drop(writeln!(io::stderr(), "{}", escape_for_terminal(text)));
}

/// Asks people something, whose answer is typed behind it.
pub(crate) fn ask(question: &str) -> io::Result<()> {
    let mut stderr = io::stderr();
    stderr.write_all(escape_for_terminal(question).as_bytes())?;
    stderr.flush()
}

fn result(written: io::Result<()>) -> Result<(), UserError> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(UserError::new(format!("Failed to write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Escapes all but our own styles.
fn escape_around_styles(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        out.push_str(&escape_for_terminal(&rest[..at]));
        let style = STYLES.into_iter().find(|style| rest[at..].starts_with(style));
        let length = style.map_or(1, str::len);
        let part = &rest[at..at + length];
        out.push_str(&style.map_or_else(|| escape_for_terminal(part), Into::into));
        rest = &rest[at + length..];
    }
    out + &escape_for_terminal(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_styles_stay_and_all_others_are_visible() {
        let text = "\x1b[1mtitle\x1b[0m \x1b[1;33mhit\x1b[0m \x1b[8mhidden \x1b]0;t\x07 \u{9b}2K";
        assert_eq!(
            escape_around_styles(text),
            "\x1b[1mtitle\x1b[0m \x1b[1;33mhit\x1b[0m \\u001b[8mhidden \\u001b]0;t\\u0007 \\u009b2K"
        );
    }
}
