//! Commands whose operands are files: what they read, write and remove, as far as their arguments tell.
//!
//! This is the broad reading. It serves rules that forbid and the question whether a path is inside; a flag it does
//! not know makes it report more, never less.

mod archive;
mod database;
mod flags;
mod script;
mod transfer;
mod versioned;

use loci_core::tool::HOLE;

use crate::code::{Document, Named, PythonCode, code_in_input, python, python_code};
use crate::read_only;
use crate::value::Value;
use crate::wrappers::family;
use flags::{as_glob, behind_equals, flag_values, is_in_place, long_values, operands, part};

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
    "cat", "head", "tail", "less", "more", "most", "nl", "tac", "od", "xxd", "hd", "hexdump", "strings", "wc", "sort", "uniq",
    "cut", "paste", "column", "fold", "rev", "base64", "base32", "basenc", "uuencode", "md5sum", "sha1sum", "sha224sum",
    "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum", "shasum", "md5", "file", "stat", "diff", "diff3", "sdiff",
    "colordiff", "cmp", "comm", "bat", "batcat", "view", "source", ".", "ls", "tree", "du", "realpath", "readlink", "zcat",
    "zless", "zmore", "bzcat", "xzcat", "zstdcat", "gzip", "bzip2", "xz", "zstd", "gunzip", "bunzip2", "unxz", "zip", "unzip",
    "split", "csplit", "iconv", "pr", "fmt", "expand", "unexpand", "join", "look", "tsort", "shuf", "numfmt", "vi", "vim",
    "nvim", "vimdiff", "nano", "emacs", "code", "open", "xdg-open", "openssl", "gpg", "age", "scp", "sftp", "rsync", "ed",
    "ex", "m4", "ssh-add", "envsubst", "xmllint", "cpio", "ar", "7z", "patch", "ptx", "dos2unix", "unix2dos", "pygmentize", "mail",
    "rg", "tailf", "cloc", "tokei", "man", "groff", "troff", "delta", "pandoc", "cpp", "gcc", "g++", "cc", "c++", "clang", "clang++",
    "as", "shfmt", "shellcheck", "ul", "pg",
];

/// Readers whose first operand is a program or a pattern.
#[rustfmt::skip]
const PATTERN_READERS: &[&str] = &[
    "grep", "egrep", "fgrep", "zgrep", "zegrep", "bzgrep", "xzgrep", "ag", "ack", "sed", "gsed", "awk", "gawk", "mawk",
    "nawk", "jq", "yq", "perl", "ruby",
];

/// Writers of all their operands; those that take something else first are not told apart.
#[rustfmt::skip]
const WRITERS: &[&str] = &[
    "touch", "mkdir", "tee", "sponge", "truncate", "fallocate", "mkfifo", "mknod", "vi", "vim", "nvim", "nano", "emacs", "ed",
    "ex", "split", "csplit", "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "patch", "dos2unix", "unix2dos",
    "chmod", "chown", "chgrp", "setfacl", "chattr", "install", "mktemp", "script",
];

/// Programs that read files which flags of theirs name.
const READ_FLAGS: &[(&str, &[&str])] = &[
    ("date", &["-f", "--file", "-r", "--reference"]),
    ("ssh", &["-i", "-F"]),
    ("scp", &["-i", "-F"]),
    ("sftp", &["-i", "-F", "-b"]),
    ("ssh-keygen", &["-f"]),
    ("psql", &["-f", "--file"]),
    ("make", &["-f", "--file", "--makefile", "-C", "--directory"]),
    ("gmake", &["-f", "--file", "--makefile", "-C", "--directory"]),
    ("gh", &["-F", "--body-file", "--notes-file", "--input"]),
    ("jq", &["--from-file"]),
    ("yq", &["--from-file"]),
    ("npm", &["--prefix", "-C"]),
    ("cargo", &["--manifest-path", "-C"]),
    ("pip", &["-r", "--requirement"]),
    ("pip3", &["-r", "--requirement"]),
    ("dig", &["-f"]),
    ("tar", &["--add-file"]),
    ("bsdtar", &["--add-file"]),
    ("node", &["--env-file", "--env-file-if-exists"]),
    ("bun", &["--env-file"]),
    ("deno", &["--env-file"]),
    ("docker", &["--env-file", "-f", "--file"]),
    ("podman", &["--env-file", "-f", "--file"]),
];

/// Programs that run, or show, the file that is their first operand.
const FILE_RUNNERS: &[&str] = &["php", "node", "nodejs", "deno", "bun", "lua", "luajit", "tclsh", "Rscript"];

/// Programs that read more arguments from what `@file` names.
#[rustfmt::skip]
const ARGUMENT_FILES: &[&str] = &[
    "ld", "gcc", "g++", "cc", "c++", "clang", "clang++", "as", "ar", "nm", "objdump", "objcopy", "strip", "rustc", "javac", "java",
    "link", "lld", "gold",
];

/// Programs that write files which flags of theirs name.
const WRITTEN_FLAGS: &[(&str, &[&str])] = &[
    ("less", &["-o", "-O", "--log-file", "--LOG-FILE"]),
    ("ssh", &["-E"]),
    ("csplit", &["-f", "--prefix"]),
    ("rsync", &["--partial-dir"]),
    ("psql", &["-o", "-L"]),
    ("tar", &["-g", "--listed-incremental", "--index-file", "--volno-file"]),
];

/// Flags by which most programs that have them name what they write.
#[rustfmt::skip]
const USUAL_OUTPUTS: &[&str] = &[
    "--output", "--output-file", "--output-dir", "--output-directory", "--outputFile", "--outfile", "--outFile", "--out-dir",
    "--outdir", "--outDir", "--log-file", "--target-dir", "--artifact-dir", "--junitxml", "--basetemp", "--tee", "--coverprofile",
    "--cpuprofile", "--memprofile", "--outputdir", "--export-json", "--export-markdown", "--export-csv",
];

/// Programs whose `-o` or `--output` names a file they write.
#[rustfmt::skip]
const OUTPUT_FLAGS: &[&str] = &[
    "sort", "tree", "zip", "shuf", "iconv", "gpg", "age", "gcc", "cc", "clang", "rustc", "ld", "as", "pandoc", "xmllint",
    "csplit", "openssl", "time", "patch",
];

/// Programs whose last of several operands is written.
const LAST_WRITTEN: &[&str] = &["uniq", "rsync", "scp", "xxd", "sftp", "uuencode"];

const REMOVERS: &[&str] = &["rm", "rmdir", "unlink", "shred", "trash"];

/// Tells whether a program does no more with a file it reads than to look at its bytes: it takes no code and no names from it.
pub(crate) fn only_opens(values: &[Value]) -> bool {
    const PROGRAMS: &[&str] =
        &["dd", "tee", "cp", "base64", "head", "tail", "cat", "od", "xxd", "hexdump", "wc"];
    let program = values.first().and_then(|first| first.text.rsplit('/').next()).unwrap_or_default();
    PROGRAMS.contains(&program) || read_only::reads_of(values).is_some()
}

/// Returns what a command does to paths; `document` is what it gets as its input by redirection, which may be code.
pub(crate) fn accesses(values: &[Value], document: Document<'_>) -> Vec<Access> {
    let Some((first, arguments)) = values.split_first() else { return Vec::new() };
    if first.text.contains(HOLE) {
        return by_anything(arguments);
    }
    let program = first.text.rsplit('/').next().unwrap_or_default();
    let mut found = Vec::new();
    match program {
        "cp" | "ln" | "install" => copies(arguments, false, &mut found),
        "mv" => copies(arguments, true, &mut found),
        "dd" => blocks(arguments, &mut found),
        "bash" | "sh" | "zsh" | "dash" | "ksh" => {
            let has_code =
                arguments.iter().any(|value| value.text.starts_with('-') && value.text.contains('c'));
            found.extend(operands(arguments).into_iter().filter(|_| !has_code).map(Access::Read));
        }
        "tar" | "bsdtar" => archive::tar(arguments, &mut found),
        "curl" | "wget" => transfer::transfers(program, arguments, &mut found),
        "find" => by_find(arguments, &mut found),
        "git" => versioned::git(values, &mut found),
        _ if family(program) == "sqlite" => database::sqlite(arguments, document, &mut found),
        _ if matches!(family(program), "python" | "pypy") => by_python(arguments, document, &mut found),
        "xargs" => found.extend(flag_values(arguments, &["-a", "--arg-file"]).into_iter().map(Access::Read)),
        _ if REMOVERS.contains(&program) => removals(arguments, &mut found),
        _ if PATTERN_READERS.contains(&program) => by_pattern(program, arguments, document, &mut found),
        _ => {}
    }
    by_list(program, arguments, &mut found);
    found
}

/// What the lists say of a program.
fn by_list(program: &str, arguments: &[Value], found: &mut Vec<Access>) {
    let operands = operands(arguments);
    if program == "rg" {
        found.extend(chosen_files(arguments).into_iter().map(Access::Read));
    }
    if READERS.contains(&program) {
        found.extend(operands.iter().cloned().map(Access::Read));
        found.extend(long_values(arguments).into_iter().map(Access::Read));
    }
    if WRITERS.contains(&program) {
        found.extend(operands.iter().cloned().map(Access::Write));
    }
    if OUTPUT_FLAGS.contains(&program) {
        let written = flag_values(arguments, &["-o", "--output", "-out"]);
        found.extend(written.into_iter().map(Access::Write));
    }
    found.extend(usual_outputs(program, arguments).into_iter().map(Access::Write));
    for (_, flags) in WRITTEN_FLAGS.iter().filter(|(name, _)| *name == program) {
        found.extend(flag_values(arguments, flags).into_iter().map(Access::Write));
    }
    // What only the run will tell may be one of the flags.
    let is_vague = arguments.iter().any(|value| value.text.starts_with(HOLE) && value.pattern.is_none());
    for (_, flags) in READ_FLAGS.iter().filter(|(name, _)| *name == program) {
        found.extend(flag_values(arguments, flags).into_iter().map(Access::Read));
        let known = operands.iter().filter(|value| is_vague && value.known().is_some());
        found.extend(known.cloned().map(Access::Read));
    }
    if FILE_RUNNERS.contains(&program) {
        found.extend(operands.first().filter(|value| value.known().is_some()).cloned().map(Access::Read));
    }
    if ARGUMENT_FILES.contains(&program) {
        let named = arguments.iter().filter_map(|value| Some(part(value, value.text.strip_prefix('@')?)));
        found.extend(named.map(Access::Read));
    }
    if LAST_WRITTEN.contains(&program) && operands.len() > 1 {
        found.extend(operands.last().cloned().map(Access::Write));
    }
    if program == "zip" {
        found.extend(operands.first().cloned().map(Access::Write));
    }
    if matches!(program, "unzip" | "7z" | "cpio" | "ar") {
        found.extend(flag_values(arguments, &["-d"]).into_iter().map(Access::Write));
        found.push(Access::Write(Value::literal(".")));
    }
}

/// What flags say that mean the same nearly everywhere; those of `go` have one hyphen.
fn usual_outputs(program: &str, arguments: &[Value]) -> Vec<Value> {
    let is_output = |flag: &str| match flag.strip_prefix('-').filter(|_| program == "go") {
        Some(name) if !name.starts_with('-') => {
            name == "o" || USUAL_OUTPUTS.iter().any(|usual| usual[2..] == *name)
        }
        _ => USUAL_OUTPUTS.contains(&flag),
    };
    let mut found = Vec::new();
    for (idx, value) in arguments.iter().enumerate() {
        match value.text.split_once('=') {
            Some((flag, text)) if is_output(flag) => found.push(part(value, text)),
            None if is_output(&value.text) => found.extend(arguments.get(idx + 1).cloned()),
            _ => {}
        }
    }
    found
}

/// A program nobody knows may be any that reads, writes or removes.
fn by_anything(arguments: &[Value]) -> Vec<Access> {
    let recurses = |value: &Value| {
        value.text.starts_with(HOLE) || (value.text.starts_with('-') && value.text.contains(['r', 'R']))
    };
    let removes = arguments.iter().any(recurses);
    let mut found = Vec::new();
    for value in operands(arguments) {
        found.extend([Access::Read(value.clone()), Access::Write(value.clone())]);
        found.extend(removes.then_some(Access::Remove(value)));
    }
    found
}

fn removals(arguments: &[Value], found: &mut Vec<Access>) {
    // What xargs appends is not known; without `-r` it can be no more than files.
    let recurses =
        arguments.iter().any(|value| value.text.starts_with('-') && value.text.contains(['r', 'R']));
    let is_only_named = |value: &Value| !recurses && *value == Value::hole();
    for value in operands(arguments) {
        found.push(if is_only_named(&value) { Access::Write(value) } else { Access::Remove(value) });
    }
}

/// `grep`, `sed`, `awk` and their like: a program or pattern, then files; some change them in place.
fn by_pattern(program: &str, arguments: &[Value], document: Document<'_>, found: &mut Vec<Access>) {
    const GIVEN: &[&str] = &["-e", "-f", "--expression", "--file", "--regexp"];
    let is_short = |text: &str| text.starts_with('-') && !text.starts_with("--");
    // `-pe`, `-lane`: the code may come behind a cluster of flags.
    let takes_code =
        |text: &str| matches!(program, "perl" | "ruby") && is_short(text) && text.contains(['e', 'E']);
    let awk_arguments: Vec<Value>;
    let arguments = match program {
        "awk" | "gawk" | "mawk" | "nawk" => {
            awk_arguments = without_separators(arguments);
            &awk_arguments[..]
        }
        _ => arguments,
    };
    let is_given = |text: &str| GIVEN.iter().any(|flag| text.starts_with(flag)) || takes_code(text);
    let has_pattern = arguments.iter().any(|value| is_given(&value.text));
    let without_code = without_code(program, arguments);
    // The empty program is one, too.
    let mut words = without_code.iter().filter(|value| !value.text.starts_with('-'));
    let is_empty_first = words.next().is_some_and(|first| first.text.is_empty());
    let operands = operands(&without_code);
    let n_programs = usize::from(!has_pattern && !is_empty_first);
    let files = operands.get(n_programs..).unwrap_or_default();
    found.extend(files.iter().cloned().map(Access::Read));
    found.extend(chosen_files(arguments).into_iter().map(Access::Read));
    found.extend(flag_values(arguments, &["-f", "--file"]).into_iter().map(Access::Read));
    let edits = arguments.iter().any(|value| is_in_place(&value.text));
    if matches!(program, "sed" | "gsed" | "perl" | "ruby" | "yq" | "awk" | "gawk") && edits {
        found.extend(files.iter().cloned().map(Access::Write));
    }
    let mut scripts: Vec<&Value> = arguments.iter().filter(|value| !files.contains(value)).collect();
    scripts.retain(|value| !value.text.is_empty());
    let input = match document {
        Document::Known(code) if code_in_input(arguments) => Some(Value::literal(code)),
        Document::Known(_) | Document::Unknown => None,
    };
    scripts.extend(&input);
    match program {
        "sed" | "gsed" => scripts.iter().for_each(|value| script::sed(value, found)),
        "awk" | "gawk" | "mawk" | "nawk" => scripts.iter().for_each(|value| script::awk(value, found)),
        _ => {}
    }
}

/// What a search is told to look into, at any depth: `--include=.env`.
fn chosen_files(arguments: &[Value]) -> Vec<Value> {
    let chosen = flag_values(arguments, &["--include", "-g", "--glob", "--iglob"]);
    let as_chosen = |value: &Value| {
        let glob = read_only::chosen_files(&value.text)?;
        let is_glob = glob.contains(['*', '?', '[']);
        Some(if is_glob { as_glob(value, glob) } else { part(value, glob) })
    };
    chosen.iter().filter_map(as_chosen).collect()
}

/// Takes code and patterns off that a flag of their own gives: they are no files.
fn without_code(program: &str, arguments: &[Value]) -> Vec<Value> {
    let takes_next = |value: &Value| {
        let letters = value.text.strip_prefix('-').unwrap_or_default();
        // What follows an `i` is its suffix: `-ie` takes no code.
        let is_cluster =
            letters.ends_with('e') && letters.chars().all(|c| c.is_ascii_alphabetic() && c != 'i');
        let takes_code =
            is_cluster && matches!(program, "sed" | "gsed" | "perl" | "ruby" | "grep" | "egrep" | "fgrep");
        takes_code || matches!(value.text.as_str(), "-e" | "--expression" | "--regexp" | "--source")
    };
    let is_code = |idx: usize| idx > 0 && takes_next(&arguments[idx - 1]);
    let kept = arguments.iter().enumerate().filter(|(idx, _)| !is_code(*idx));
    kept.map(|(_, value)| value.clone()).collect()
}

/// Takes the values of `-F` and `-v` off, which are neither code nor files.
fn without_separators(arguments: &[Value]) -> Vec<Value> {
    let takes_next =
        |value: &Value| matches!(value.text.as_str(), "-F" | "-v" | "--field-separator" | "--assign");
    let is_value = |idx: usize| idx > 0 && takes_next(&arguments[idx - 1]);
    let kept = arguments.iter().enumerate().filter(|(idx, _)| !is_value(*idx));
    kept.map(|(_, value)| value.clone()).collect()
}

/// Files that code on the command line or in the input opens by name.
fn by_python(arguments: &[Value], document: Document<'_>, found: &mut Vec<Access>) {
    let (script, code) = match python_code(arguments) {
        PythonCode::Text(value) => (value.clone(), value.text.clone()),
        PythonCode::Attached(code) => (Value::literal(code), code.to_owned()),
        PythonCode::Input => match document {
            Document::Known(code) => (Value::literal(code), code.to_owned()),
            Document::Unknown => return,
        },
        PythonCode::None | PythonCode::Unknown => return by_module(arguments, found),
    };
    for (name, is_written) in python::read(&code).unwrap_or_default() {
        let value = script::named(&script, &name);
        match is_written {
            true => found.push(Access::Write(value)),
            // What is read by a name of the run's is left to the rule that lets it run.
            false if name != Named::Unknown => found.push(Access::Read(value)),
            false => {}
        }
    }
}

/// What a module of Python's own reads, and what some of them write.
fn by_module(arguments: &[Value], found: &mut Vec<Access>) {
    let is_flag = |value: &Value| value.text.starts_with("-m");
    let Some(at) = arguments.iter().position(is_flag) else { return };
    let (module, rest) = match arguments[at].text.strip_prefix("-m") {
        Some("") => (arguments.get(at + 1).map_or("", |it| it.text.as_str()), arguments.get(at + 2..)),
        module => (module.unwrap_or_default(), arguments.get(at + 1..)),
    };
    let operands = operands(rest.unwrap_or_default());
    #[rustfmt::skip]
    const READERS: &[&str] = &["json.tool", "base64", "tokenize", "ast", "dis", "quopri", "uu", "pickle", "pickletools", "zipfile",
        "tarfile", "py_compile", "compileall", "pydoc", "mimetypes", "sqlite3", "tabnanny", "pyclbr", "lib2to3", "inspect"];
    if READERS.contains(&module) {
        found.extend(operands.iter().cloned().map(Access::Read));
    }
    let writes = match module {
        "json.tool" | "uu" | "quopri" | "zipfile" | "tarfile" => operands.len() > 1,
        "venv" | "zipapp" | "virtualenv" => true,
        _ => false,
    };
    if writes {
        found.extend(operands.last().cloned().map(Access::Write));
    }
}

fn blocks(arguments: &[Value], found: &mut Vec<Access>) {
    for value in arguments {
        match value.text.split_once('=') {
            Some(("of", _)) => found.push(Access::Write(behind_equals(value))),
            Some(("if", _)) => found.push(Access::Read(behind_equals(value))),
            _ => {}
        }
    }
}

/// Returns true for a file command that an edit mode lets run: plain words, known flags, no way out by `..`.
pub(crate) fn is_plain_edit(values: &[Value]) -> bool {
    let Some((first, arguments)) = values.split_first() else { return false };
    if values.iter().any(|value| !value.is_literal || leaves_a_directory(&value.text)) {
        return false;
    }
    let mut arguments = arguments;
    if let ("mkdir", [flag, mode, rest @ ..]) = (first.text.as_str(), arguments)
        && flag.text == "-m"
        && is_mode(&mode.text)
    {
        arguments = rest;
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
    let end = arguments.iter().position(|value| value.text == "--").unwrap_or(arguments.len());
    let mut words = arguments[..end].iter().map(|value| value.text.as_str());
    let is_known = |word: &str| match word.strip_prefix('-') {
        Some(letters) if !letters.is_empty() => letters.chars().all(|letter| flags.contains(letter)),
        _ => true,
    };
    let is_whole = arguments.iter().all(|value| !value.text.is_empty());
    words.all(is_known) && is_whole && !operands(arguments).is_empty()
}

/// `755`, `u+x,go-w`.
fn is_mode(text: &str) -> bool {
    let is_symbolic =
        |part: &str| part.contains(['+', '-', '=']) && part.chars().all(|c| "ugoarwxXst+-=".contains(c));
    text.bytes().all(|byte| (b'0'..=b'7').contains(&byte)) || text.split(',').all(is_symbolic)
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

/// `cp`, `mv`, `ln`, `install`: the last operand, or what `-t` names, is written; into a directory, by each name.
fn copies(arguments: &[Value], moves: bool, found: &mut Vec<Access>) {
    let operands = operands(arguments);
    let named = flag_values(arguments, &["-t", "--target-directory"]);
    let others: Vec<Value> = operands.iter().filter(|value| !named.contains(value)).cloned().collect();
    let here = Value::literal(".");
    let (sources, target) = match (named.first(), operands.split_last()) {
        (Some(target), _) => (&others[..], target),
        (None, Some((target, []))) => (std::slice::from_ref(target), &here),
        (None, Some((target, sources))) => (sources, target),
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
    found.extend(named.iter().chain(named.is_empty().then_some(target)).cloned().map(Access::Write));
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
