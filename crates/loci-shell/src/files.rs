//! Commands whose operands are files: what they read, write and remove, as far as their arguments tell.
//!
//! This is the broad reading. It serves rules that forbid and the question whether a path is inside; a flag it does
//! not know makes it report more, never less.

use crate::value::Value;

/// One use of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    Read(Value),
    Write(Value),
    Remove(Value),
    /// It goes elsewhere, with all that is in it.
    Move(Value),
}

#[rustfmt::skip]
const READERS: &[&str] = &[
    "cat", "head", "tail", "less", "more", "nl", "tac", "od", "xxd", "hexdump", "strings", "wc", "sort", "uniq", "cut",
    "paste", "column", "fold", "rev", "base64", "base32", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum",
    "sha512sum", "b2sum", "cksum", "file", "stat", "diff", "cmp", "comm", "bat", "view", "source", ".", "ls", "tree",
    "find", "du", "realpath", "readlink", "zcat", "zless", "gzip", "bzip2", "xz", "zstd", "gunzip", "zip", "split", "csplit",
    "iconv", "pr", "fmt", "expand", "unexpand", "join", "look", "tsort", "shuf", "numfmt", "vi", "vim", "nano", "emacs", "code",
    "open", "xdg-open", "openssl", "gpg", "scp", "rsync",
];

/// Readers whose first operand is a program or a pattern.
const PATTERN_READERS: &[&str] =
    &["grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "mawk", "nawk", "jq", "yq", "perl"];

/// Writers of all their operands.
const WRITERS: &[&str] = &[
    "touch", "mkdir", "tee", "truncate", "mkfifo", "mknod", "vi", "vim", "nano", "split", "gzip", "gunzip",
    "bzip2", "xz", "zstd",
];

/// Writers whose first operand is something else.
const SECOND_WRITERS: &[&str] = &["chmod", "chown", "chgrp", "setfacl", "chattr"];

const REMOVERS: &[&str] = &["rm", "rmdir", "unlink", "shred", "trash"];

/// Returns what a command does to paths.
pub(crate) fn accesses(values: &[Value]) -> Vec<Access> {
    let Some((first, arguments)) = values.split_first() else { return Vec::new() };
    let program = first.text.rsplit('/').next().unwrap_or_default();
    let operands = operands(arguments);
    let mut found = Vec::new();
    let mut all =
        |make: fn(Value) -> Access, values: &[Value]| found.extend(values.iter().cloned().map(make));
    match program {
        "cp" | "install" | "ln" => copies(arguments, &operands, false, &mut found),
        "mv" => copies(arguments, &operands, true, &mut found),
        "dd" => {
            for value in arguments {
                match value.text.split_once('=') {
                    Some(("of", _)) => found.push(Access::Write(behind_equals(value))),
                    Some(("if", _)) => found.push(Access::Read(behind_equals(value))),
                    _ => {}
                }
            }
        }
        "bash" | "sh" | "zsh" | "dash" | "ksh" => {
            let has_code =
                arguments.iter().any(|value| value.text.starts_with('-') && value.text.contains('c'));
            all(Access::Read, if has_code { &[] } else { &operands });
        }
        "tar" | "bsdtar" => archive(arguments, &mut found),
        "curl" | "wget" => transfers(arguments, &mut found),
        "find" => by_find(arguments, &mut found),
        _ if REMOVERS.contains(&program) => {
            // What xargs appends is not known; without `-r` it can be no more than files.
            let recurses =
                arguments.iter().any(|value| value.text.starts_with('-') && value.text.contains(['r', 'R']));
            let is_only_named = |value: &Value| !recurses && *value == Value::hole();
            let (named, removed): (Vec<Value>, Vec<Value>) = operands.into_iter().partition(is_only_named);
            all(Access::Write, &named);
            all(Access::Remove, &removed);
        }
        _ if SECOND_WRITERS.contains(&program) => all(Access::Write, operands.get(1..).unwrap_or_default()),
        _ if PATTERN_READERS.contains(&program) => {
            let has_pattern = arguments.iter().any(|value| {
                ["-e", "-f", "--expression", "--file", "--regexp"]
                    .iter()
                    .any(|flag| value.text.starts_with(flag))
            });
            let files = if has_pattern { &operands[..] } else { operands.get(1..).unwrap_or_default() };
            all(Access::Read, files);
            all(Access::Read, &flag_values(arguments, &["-f", "--file"]));
            let edits = arguments.iter().any(|value| is_in_place(&value.text));
            if matches!(program, "sed" | "perl") && edits {
                all(Access::Write, files);
            }
        }
        _ => {
            if READERS.contains(&program) {
                all(Access::Read, &operands);
            }
            if WRITERS.contains(&program) {
                all(Access::Write, &operands);
            }
            if matches!(program, "sort" | "tree" | "zip") {
                all(Access::Write, &flag_values(arguments, &["-o", "--output"]));
            }
            if program == "zip" {
                all(Access::Write, operands.get(..1).unwrap_or_default());
            }
            if matches!(program, "uniq" | "rsync" | "scp") && operands.len() > 1 {
                all(Access::Write, &operands[operands.len() - 1..]);
            }
        }
    }
    found
}

/// Returns true for a file command that an edit mode lets run: plain words, known flags, no way out by `..`.
pub(crate) fn is_plain_edit(values: &[Value]) -> bool {
    let Some((first, arguments)) = values.split_first() else { return false };
    if values.iter().any(|value| !value.is_literal || leaves_a_directory(&value.text)) {
        return false;
    }
    let flags = match first.text.as_str() {
        "mkdir" => "pv",
        "touch" => "acm",
        "rm" => "rRfvdi",
        "rmdir" => "pv",
        "mv" => "fnv",
        "cp" => "",
        "sed" => return is_plain_sed(arguments),
        _ => return false,
    };
    let mut words = arguments.iter().map(|value| value.text.as_str());
    let is_known = |word: &str| match word.strip_prefix('-') {
        Some(letters) if !letters.is_empty() => letters.chars().all(|letter| flags.contains(letter)),
        _ => true,
    };
    let has_operand = arguments.iter().any(|value| !value.text.starts_with('-') && !value.text.is_empty());
    words.all(|word| is_known(word) && !word.is_empty()) && has_operand
}

/// `sed -i script file…` with a script that only substitutes, deletes or prints.
fn is_plain_sed(arguments: &[Value]) -> bool {
    let texts: Vec<&str> = arguments.iter().map(|value| value.text.as_str()).collect();
    match texts.as_slice() {
        ["-i", "-e", script, files @ ..] | ["-i", script, files @ ..] => {
            !files.is_empty()
                && crate::special::is_plain_sed_script(script)
                && files.iter().all(|file| !file.starts_with('-') && !file.is_empty())
        }
        _ => false,
    }
}

/// `a/../b` goes wherever `a` points.
fn leaves_a_directory(text: &str) -> bool {
    let mut seen_name = false;
    text.split('/').any(|part| {
        let is_up = part == "..";
        seen_name |= !is_up && !part.is_empty() && part != ".";
        is_up && seen_name
    })
}

/// Everything that is not a flag; behind `--` everything is not.
fn operands(arguments: &[Value]) -> Vec<Value> {
    let mut found = Vec::new();
    let mut only_operands = false;
    for value in arguments {
        if !only_operands && value.text == "--" {
            only_operands = true;
        } else if only_operands || !value.text.starts_with('-') || value.text == "-" {
            found.push(value.clone());
        }
    }
    found.retain(|value| value.text != "-" && !value.text.is_empty());
    found
}

/// Values of flags: attached, behind `=`, or the next word.
fn flag_values(arguments: &[Value], flags: &[&str]) -> Vec<Value> {
    let mut found = Vec::new();
    for (idx, value) in arguments.iter().enumerate() {
        for flag in flags {
            let Some(rest) = value.text.strip_prefix(flag) else { continue };
            match rest.strip_prefix('=').unwrap_or(rest) {
                "" => found.extend(arguments.get(idx + 1).cloned()),
                attached => found.push(Value { text: attached.to_owned(), pattern: None, ..value.clone() }),
            }
        }
    }
    found
}

fn behind_equals(value: &Value) -> Value {
    let text = value.text.split_once('=').map(|(_, text)| text.to_owned()).unwrap_or_default();
    Value { text, pattern: None, ..value.clone() }
}

fn is_in_place(flag: &str) -> bool {
    flag.starts_with("--in-place") || (flag.starts_with('-') && !flag.starts_with("--") && flag.contains('i'))
}

/// `cp`, `mv`, `ln`, `install`: the last operand, or what `-t` names, is written; into a directory, by each name.
fn copies(arguments: &[Value], operands: &[Value], moves: bool, found: &mut Vec<Access>) {
    let named = flag_values(arguments, &["-t", "--target-directory"]);
    let others: Vec<Value> = operands.iter().filter(|value| !named.contains(value)).cloned().collect();
    let (sources, target) = match (named.first(), operands.split_last()) {
        (Some(target), _) => (&others[..], target.clone()),
        (None, Some((target, sources))) => (sources, target.clone()),
        (None, None) => return,
    };
    for source in sources {
        found.push(Access::Read(source.clone()));
        if moves {
            found.push(Access::Write(source.clone()));
            found.push(Access::Move(source.clone()));
        }
        if let (Some(name), true) =
            (source.text.trim_end_matches('/').rsplit('/').next(), target.pattern.is_none())
        {
            let text = format!("{}/{name}", target.text);
            found.push(Access::Write(Value { text, shown: target.shown.clone(), ..source.clone() }));
        }
    }
    found.push(Access::Write(target));
}

fn archive(arguments: &[Value], found: &mut Vec<Access>) {
    let mode = arguments.first().map(|value| value.text.trim_start_matches('-')).unwrap_or_default();
    let extracts =
        mode.contains('x') || arguments.iter().any(|value| value.text == "-x" || value.text == "--extract");
    let mut files = operands(arguments);
    if arguments.first().is_some_and(|value| !value.text.starts_with('-')) && !files.is_empty() {
        files.remove(0);
    }
    files.extend(flag_values(arguments, &["-f", "--file", "-C", "--directory", "-T", "--files-from"]));
    for file in files {
        found.push(Access::Read(file.clone()));
        if extracts || file.text.contains(".tar") || file.text.ends_with(".tgz") {
            found.push(Access::Write(file));
        }
    }
    if extracts {
        found.push(Access::Write(Value::literal(".")));
    }
}

fn transfers(arguments: &[Value], found: &mut Vec<Access>) {
    let written = flag_values(
        arguments,
        &[
            "-o",
            "--output",
            "-O",
            "--output-document",
            "--output-file",
            "-c",
            "--cookie-jar",
            "-D",
            "--dump-header",
        ],
    );
    found.extend(written.into_iter().filter(|value| !value.text.contains("://")).map(Access::Write));
    let sent =
        flag_values(arguments, &["-T", "--upload-file", "-K", "--config", "--post-file", "--body-file"]);
    found.extend(sent.into_iter().map(Access::Read));
    for value in arguments {
        if let Some((_, file)) = value.text.split_once('@')
            && !value.text.contains("://")
        {
            found.push(Access::Read(Value { text: file.to_owned(), pattern: None, ..value.clone() }));
        }
        if let Some(file) = value.text.strip_prefix("file://") {
            found.push(Access::Read(Value { text: file.to_owned(), pattern: None, ..value.clone() }));
        }
    }
}

/// Roots are read; with `-delete` or `-exec rm` they are what is removed.
fn by_find(arguments: &[Value], found: &mut Vec<Access>) {
    let mut roots: Vec<Value> = arguments
        .iter()
        .skip_while(|value| matches!(value.text.as_str(), "-L" | "-H" | "-P"))
        .take_while(|value| !value.text.starts_with(['-', '(', ')', '!', ',']))
        .cloned()
        .collect();
    if roots.is_empty() {
        roots.push(Value::literal("."));
    }
    let has = |name: &str| arguments.iter().any(|value| value.text == name);
    let runs = has("-exec") || has("-execdir") || has("-ok") || has("-okdir");
    let removes = has("-delete")
        || (runs
            && arguments
                .iter()
                .any(|value| REMOVERS.contains(&value.text.rsplit('/').next().unwrap_or_default())));
    for root in roots {
        found.push(Access::Read(root.clone()));
        if removes {
            found.push(Access::Remove(root));
        }
    }
    let written = flag_values(arguments, &["-fprint0", "-fprintf", "-fprint", "-fls"]);
    found.extend(written.into_iter().map(Access::Write));
}
