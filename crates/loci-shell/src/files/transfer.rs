//! `curl` and `wget`: what they send is read, what they fetch is written.

use super::Access;
use super::flags::{flag_values, operands, part};
use crate::value::Value;

#[rustfmt::skip]
const WRITTEN: &[&str] = &[
    "-o", "--output", "-O", "--output-document", "--output-file", "--output-dir", "-c", "--cookie-jar", "-D", "--dump-header",
    "-P", "--directory-prefix", "-a", "--append-output", "--trace", "--trace-ascii", "--stderr", "--hsts", "--etag-save",
    "--libcurl", "--alt-svc", "--save-cookies", "--warc-file",
];

#[rustfmt::skip]
const SENT: &[&str] = &[
    "-T", "--upload-file", "-K", "--config", "--post-file", "--body-file", "-b", "--cookie", "--load-cookies", "--netrc-file",
    "-E", "--cert", "--key", "--cacert", "-i", "--input-file",
];

/// Notes what is sent and what is fetched to where.
pub(super) fn transfers(program: &str, arguments: &[Value], found: &mut Vec<Access>) {
    let is_address = |value: &Value| value.text.contains("://");
    let written = flag_values(arguments, WRITTEN);
    found.extend(written.into_iter().filter(|value| !is_address(value)).map(Access::Write));
    let sent = flag_values(arguments, SENT);
    found.extend(sent.into_iter().filter(|value| !is_address(value)).map(Access::Read));
    for value in arguments {
        // `-d @file`, `-F name=@file`, `-F name=<file`.
        let sends = value.text.split_once(['@', '<']).filter(|_| !is_address(value));
        found.extend(sends.map(|(_, file)| Access::Read(part(value, file))));
        found.extend(local_file(&value.text).map(|file| Access::Read(part(value, file))));
    }
    // An address without a scheme may be a file then.
    let sets_scheme = |value: &Value| value.text.starts_with("--proto-d");
    if arguments.iter().any(sets_scheme) {
        found.extend(operands(arguments).into_iter().map(Access::Read));
    }
    found.extend(
        flag_values(arguments, &["--unix-socket", "--abstract-unix-socket"]).into_iter().map(Access::Write),
    );
    // Without a name for the output, the address has it.
    let has_letter = |letter: char| {
        let is_cluster = |value: &Value| value.text.starts_with('-') && !value.text.starts_with("--");
        arguments.iter().any(|value| is_cluster(value) && value.text.contains(letter))
    };
    let by_address = match program {
        "wget" => !has_letter('O'),
        _ => has_letter('O') || arguments.iter().any(|value| value.text.starts_with("--remote-")),
    };
    if by_address {
        for address in operands(arguments) {
            let path = address.text.split(['?', '#']).next().unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            found.extend((!name.is_empty()).then(|| Access::Write(part(&address, name))));
        }
    }
}

/// Returns the file that a `file:` address names.
fn local_file(text: &str) -> Option<&str> {
    let scheme = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    let rest = &text[scheme.len()..];
    let path = rest.strip_prefix("//").map_or(rest, |rest| rest.find('/').map_or(rest, |at| &rest[at..]));
    Some(path)
}
