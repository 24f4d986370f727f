//! Printing: data to stdout, talk to stderr.

use std::io::{self, Write};

use loci_app::UserError;
use serde_json::Value;

/// Prints data; a reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> Result<(), UserError> {
    print_parts(&[text])
}

/// Prints data that was made in parts.
pub(crate) fn print_parts<T: AsRef<[u8]>>(parts: &[T]) -> Result<(), UserError> {
    let mut stdout = io::stdout().lock();
    let written = parts.iter().try_for_each(|part| stdout.write_all(part.as_ref()));
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(UserError::new(format!("Failed to write to standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Prints one JSON value and a newline.
pub(crate) fn print_json(value: &Value) -> Result<(), UserError> {
    print(&format!("{value}\n"))
}

/// Prints a line for people, on stderr.
pub(crate) fn print_message(text: &str) {
    // A closed stderr leaves nobody to tell.
    drop(writeln!(io::stderr(), "{text}"));
}
