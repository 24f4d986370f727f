//! Commands in commands: programs that run what they are given, and how to find it.

use loci_core::tool::HOLE;

use crate::value::Value;

/// What a command runs.
#[derive(Debug)]
pub(crate) enum Inner {
    /// These words, as a command.
    Words(Vec<Value>),
    /// This string, as a line of shell.
    Code(Value),
    /// This string, in another language.
    Foreign(String),
    /// What it gets as its input.
    Input,
    /// What it gets as its input, in another language.
    ForeignInput,
    /// The words behind any of its own.
    Suffixes,
    /// Only the run will tell.
    Anything,
}

/// How a wrapper's own arguments end.
struct Wrapper {
    name: &'static str,
    /// Short flags with a value.
    valued: &'static str,
    /// Short flags without.
    bare: &'static str,
    /// Long flags; those with a value end in `=`.
    long: &'static [&'static str],
    /// Operands before the command.
    n_operands: usize,
}

const fn wrapper(
    name: &'static str,
    valued: &'static str,
    bare: &'static str,
    long: &'static [&'static str],
    n_operands: usize,
) -> Wrapper {
    Wrapper { name, valued, bare, long, n_operands }
}

/// Wrappers that rules for the inner command see through (S-16).
const TRANSPARENT: &[Wrapper] = &[
    wrapper("timeout", "ks", "v", &["kill-after=", "signal=", "foreground", "preserve-status", "verbose"], 1),
    wrapper("time", "", "p", &[], 0),
    wrapper("nice", "n", "", &["adjustment="], 0),
    wrapper("nohup", "", "", &[], 0),
    wrapper("stdbuf", "ioe", "", &["input=", "output=", "error="], 0),
    wrapper("command", "", "", &[], 0),
    wrapper("builtin", "", "", &[], 0),
    wrapper("noglob", "", "", &[], 0),
    wrapper("xargs", "", "", &[], 0),
];

/// Wrappers that only rules that restrict see through (S-17).
#[rustfmt::skip]
const KNOWN: &[Wrapper] = &[
    wrapper("env", "uC", "i0v", &["unset=", "chdir=", "ignore-environment", "null"], 0),
    wrapper("sudo", "ughpCrtTUDR", "AbEHiKklnPSsvV", &["user=", "group=", "login", "preserve-env"], 0),
    wrapper("doas", "uC", "ns", &[], 0),
    wrapper("command", "", "p", &[], 0),
    wrapper("exec", "a", "cl", &[], 0),
    wrapper("xargs", "InLPsdEa", "0rtpxi", &["null", "no-run-if-empty", "max-args=", "max-procs=", "delimiter=", "arg-file=", "verbose", "replace="], 0),
    wrapper("setsid", "", "cfw", &["fork", "wait", "ctty"], 0),
    wrapper("ionice", "cn", "t", &["class=", "classdata=", "ignore"], 0),
    wrapper("chroot", "", "", &["userspec=", "groups="], 1),
    wrapper("flock", "wE", "exnsuoF", &["shared", "exclusive", "nonblock", "timeout="], 1),
    wrapper("busybox", "", "", &[], 0),
    wrapper("toybox", "", "", &[], 0),
    wrapper("time", "fo", "apqv", &[], 0),
    wrapper("nocorrect", "", "", &[], 0),
];

/// Programs that run something of what they are given, in ways that are not followed.
#[rustfmt::skip]
const LOOSE: &[&str] = &[
    "strace", "ltrace", "watch", "script", "parallel", "docker", "podman", "kubectl", "ssh", "npx", "bunx", "pnpx", "uvx",
    "pnpm", "yarn", "npm", "bun", "poetry", "pipenv", "uv", "pipx", "direnv", "devbox", "mise", "nix-shell", "nix", "su",
    "runuser", "unshare", "nsenter", "systemd-run", "taskset", "chrt", "numactl", "fakeroot", "xvfb-run", "firejail",
    "bwrap", "entr", "start-stop-daemon", "dbus-run-session", "proxychains", "eatmydata", "catchsegv", "gdb", "valgrind",
    "perf", "hyperfine", "tmux", "screen", "fd", "fdfind", "rg", "tar", "bsdtar", "rsync", "scp", "sftp", "make", "gmake",
    "ninja", "setarch", "linux32", "linux64", "prlimit", "unbuffer", "rlwrap", "pkexec", "gosu", "su-exec", "setpriv",
    "capsh", "tini", "dumb-init", "cgexec", "torsocks", "torify", "ssh-agent", "sg", "newgrp", "runcon", "ip", "lxc",
    "machinectl", "vagrant", "multipass", "caffeinate", "arch", "gtimeout", "gnice", "genv", "gxargs", "gfind", "ccache",
    "sccache", "bear", "rr", "heaptrack", "chronic", "ifne", "pee", "cpulimit", "rsh", "pdsh", "socat", "nc", "ncat",
    "xterm", "konsole", "gnome-terminal", "hash", "alias", "complete", "bind", "conda", "hatch", "tox", "nox", "bundle",
    "just", "doppler", "op", "dotenv", "aws-vault", "chpst", "softlimit", "setuidgid", "run-parts",
];

/// Programs with a flag that names another to run.
const FLAG_RUNNERS: &[&str] =
    &["sort", "zip", "unzip", "split", "man", "less", "tcpdump", "cargo", "go", "openssl", "wget", "curl"];

const SHELLS: &[&str] =
    &["bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "oksh", "yash", "csh", "tcsh"];

/// Interpreters that read their program from their input when they are given none.
const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "php",
    "lua",
    "luajit",
    "osascript",
    "pwsh",
    "tclsh",
];

/// Programs whose arguments are, or may be, code of their own kind.
#[rustfmt::skip]
const CODE_TAKERS: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "powershell", "expect", "sed", "vim", "vi", "nvim", "ex", "ed", "emacs", "sqlite", "psql",
    "mysql", "m4", "dc", "bc", "jq", "Rscript", "julia", "ghc", "irb", "gnuplot",
];

/// Returns the words a rule for a command sees: fully understood wrappers taken off.
pub(crate) fn stripped(values: &[Value]) -> &[Value] {
    let mut rest = values;
    while let Some(first) = rest.first().filter(|first| first.is_literal) {
        let Some(wrapper) = TRANSPARENT.iter().find(|wrapper| wrapper.name == first.text) else { break };
        match behind(wrapper, rest) {
            Some(inner) if !inner.is_empty() => rest = inner,
            _ => break,
        }
    }
    rest
}

/// Returns a program's name without its path and its version: `/usr/bin/python3.11` is `python`.
pub(crate) fn family(program: &str) -> &str {
    let base = program.rsplit('/').next().unwrap_or_default();
    let bare = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if bare.is_empty() { base } else { bare }
}

/// Returns everything a command runs.
pub(crate) fn inner(values: &[Value]) -> Vec<Inner> {
    let Some((first, arguments)) = values.split_first() else { return Vec::new() };
    if first.text.contains(HOLE) {
        return vec![Inner::Suffixes];
    }
    let base = first.text.rsplit('/').next().unwrap_or_default();
    let family = family(base);
    let known: Vec<&Wrapper> = KNOWN.iter().chain(TRANSPARENT).filter(|it| it.name == base).collect();
    if !known.is_empty() {
        if base == "command" && only_looks_up(arguments) {
            return Vec::new();
        }
        let behind = known.iter().find_map(|wrapper| behind(wrapper, values));
        let found = behind.map(|inner| wrapped(base, arguments, inner)).unwrap_or_default();
        return if found.is_empty() { loosely(arguments) } else { found };
    }
    match base {
        _ if SHELLS.contains(&family) => shell(arguments),
        "eval" => vec![Inner::Code(joined(arguments))],
        "trap" => arguments.iter().map(|value| Inner::Code(value.clone())).take(1).collect(),
        "source" | "." => sourced(arguments),
        "at" | "batch" | "crontab" => vec![Inner::Suffixes, Inner::Input],
        "mapfile" | "readarray" => spaced(arguments),
        // Without a command of its own it runs what it reads.
        "parallel" if arguments.iter().all(|value| value.text.starts_with('-')) => vec![Inner::Anything],
        "find" | "gfind" => by_find(arguments),
        "git" => by_git(values),
        _ if INTERPRETERS.contains(&family) => interpreter(arguments),
        _ if CODE_TAKERS.contains(&family) => code_taker(arguments),
        _ if LOOSE.contains(&base) => loosely(arguments),
        _ if FLAG_RUNNERS.contains(&base) => spaced(arguments),
        _ => Vec::new(),
    }
}

/// Returns where a wrapper goes before it runs its command.
pub(crate) fn directory(values: &[Value]) -> Option<Value> {
    let (first, arguments) = values.split_first()?;
    let (short, long) = match first.text.rsplit('/').next()? {
        "env" => ("-C", "--chdir"),
        "sudo" => ("-D", "--chdir"),
        "git" | "make" | "gmake" | "ninja" => ("-C", "--directory"),
        _ => return None,
    };
    let n_own = match values.first()?.text.ends_with("git") {
        true => crate::git::sensitive_words(values),
        false => arguments.len(),
    };
    let mut own = arguments.iter().take(n_own).enumerate();
    own.find_map(|(idx, value)| {
        let (flag, text) = value.text.split_once('=').unwrap_or((&value.text, ""));
        if flag == long && !text.is_empty() {
            return Some(Value { text: text.to_owned(), pattern: None, ..value.clone() });
        }
        if flag == short || flag == long {
            return Some(arguments.get(idx + 1).cloned().unwrap_or_else(Value::hole));
        }
        let attached = value.text.strip_prefix(short)?;
        Some(Value { text: attached.to_owned(), pattern: None, ..value.clone() })
    })
}

fn wrapped(base: &str, arguments: &[Value], inner: &[Value]) -> Vec<Inner> {
    let mut words = inner.to_vec();
    if matches!(base, "env" | "sudo" | "doas") {
        let is_own =
            |word: &&Value| word.text == "-" || (word.text.contains('=') && !word.text.starts_with('='));
        let n = words.iter().take_while(is_own).count();
        words.drain(..n);
    }
    if base == "xargs" {
        fill_in(arguments, &mut words);
        words.push(Value::hole());
    }
    // A flag behind the wrapper's own arguments is one of its own after all: `flock file -c code`.
    let is_command = words.first().is_some_and(|first| !first.text.starts_with('-'));
    if is_command { vec![Inner::Words(words)] } else { Vec::new() }
}

/// `xargs -I{}` puts what it reads wherever the mark stands.
fn fill_in(arguments: &[Value], words: &mut [Value]) {
    let mark = arguments.iter().enumerate().find_map(|(idx, value)| {
        let text = value.text.as_str();
        let attached = ["--replace=", "-I", "-i"].iter().find_map(|flag| text.strip_prefix(flag));
        match (attached, text) {
            (_, "-I") => arguments.get(idx + 1).map(|next| next.text.clone()),
            (_, "-i" | "--replace") => Some("{}".to_owned()),
            (Some(mark), _) => Some(mark.to_owned()),
            (None, _) => None,
        }
    });
    let Some(mark) = mark.filter(|mark| !mark.is_empty()) else { return };
    for word in words.iter_mut().filter(|word| word.text.contains(&mark)) {
        word.text = word.text.replace(&mark, &HOLE.to_string());
        word.pattern = None;
    }
}

/// `command -v` runs nothing.
fn only_looks_up(arguments: &[Value]) -> bool {
    arguments.first().is_some_and(|value| {
        let letters = value.text.strip_prefix('-').unwrap_or_default();
        letters.contains(['v', 'V']) && letters.chars().all(|c| "vVp".contains(c))
    })
}

/// Any of the words may be the command, or hold it.
fn loosely(arguments: &[Value]) -> Vec<Inner> {
    std::iter::once(Inner::Suffixes).chain(spaced(arguments)).collect()
}

/// Returns what follows a wrapper's own arguments; `None` when one of them is not known.
fn behind<'v>(wrapper: &Wrapper, values: &'v [Value]) -> Option<&'v [Value]> {
    let mut rest = values.get(1..)?;
    while let Some((flag, after)) = rest.split_first() {
        let text = flag.known()?;
        if text == "--" {
            rest = after;
            break;
        }
        let Some(body) = text.strip_prefix('-').filter(|body| !body.is_empty()) else { break };
        if let Some(long) = body.strip_prefix('-') {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is_bare = value.is_none() && wrapper.long.contains(&name);
            let is_valued = wrapper.long.iter().any(|known| known.strip_suffix('=') == Some(name));
            rest = match (is_bare, is_valued, value) {
                (true, _, _) | (_, true, Some(_)) => after,
                (_, true, None) => after.get(1..)?,
                _ => return None,
            };
            continue;
        }
        let is_number = wrapper.name == "nice" && body.bytes().all(|byte| byte.is_ascii_digit());
        let takes_next = if is_number { false } else { short_flags(wrapper, body)? };
        rest = if takes_next { after.get(1..)? } else { after };
    }
    rest.get(wrapper.n_operands..)
}

/// Returns whether a cluster of short flags takes the next word; `None` when one is not known.
fn short_flags(wrapper: &Wrapper, body: &str) -> Option<bool> {
    for (at, letter) in body.char_indices() {
        if wrapper.valued.contains(letter) {
            return Some(at + letter.len_utf8() == body.len());
        }
        if !wrapper.bare.contains(letter) {
            return None;
        }
    }
    Some(false)
}

fn shell(arguments: &[Value]) -> Vec<Inner> {
    let is_flag = |value: &Value| value.text.starts_with(['-', '+']);
    let is_code = |value: &Value| {
        value.text.starts_with('-') && !value.text.starts_with("--") && value.text.contains('c')
    };
    let own = arguments.iter().position(|value| !is_flag(value)).unwrap_or(arguments.len());
    if arguments.iter().take(own + 1).any(|value| value.text.starts_with(HOLE)) {
        return vec![Inner::Anything];
    }
    if let Some(at) = arguments.iter().position(is_code) {
        // `-o` and `-O` take a word of their own, so the code may be any that follows.
        let takes_more = arguments.iter().any(|value| is_flag(value) && value.text.contains(['o', 'O']));
        let codes = arguments[at + 1..].iter().filter(|value| !is_flag(value));
        let n = if takes_more { usize::MAX } else { 1 };
        let found: Vec<Inner> = codes.take(n).cloned().map(Inner::Code).collect();
        return if found.is_empty() { vec![Inner::Anything] } else { found };
    }
    let operand = arguments.iter().find(|value| !is_flag(value));
    let reads_input = arguments.iter().any(|value| value.text == "-s") || operand.is_none_or(is_input);
    let only_tells = matches!(arguments, [only] if only.text == "--version" || only.text == "--help");
    if reads_input && !only_tells { vec![Inner::Input] } else { Vec::new() }
}

/// Other names of what a program gets as its input.
fn is_input(value: &Value) -> bool {
    matches!(value.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

fn sourced(arguments: &[Value]) -> Vec<Inner> {
    match arguments.first() {
        Some(file) if is_input(file) => vec![Inner::Input],
        Some(file) if file.text.contains(HOLE) => vec![Inner::Anything],
        _ => Vec::new(),
    }
}

/// Code in another language: what could be code is looked at, and what only the run will tell could be any.
fn interpreter(arguments: &[Value]) -> Vec<Inner> {
    let mut found = code_taker(arguments);
    let is_flag = |value: &Value| value.text.starts_with('-') && value.text != "-";
    let takes_code =
        |value: &Value| is_flag(value) && value.text.contains(['c', 'e', 'r', 'm', 'v', 'V', 'h', 'p']);
    let operand = arguments.iter().find(|value| !is_flag(value));
    if operand.is_none_or(is_input) && !arguments.iter().any(takes_code) {
        found.push(Inner::ForeignInput);
    }
    found
}

fn code_taker(arguments: &[Value]) -> Vec<Inner> {
    let mut found = spaced(arguments);
    let is_flag = |value: &Value| value.text.starts_with('-');
    let n_leading = arguments.iter().take_while(|value| is_flag(value)).count() + 1;
    if arguments.iter().take(n_leading).any(|value| value.text.contains(HOLE) && value.pattern.is_none()) {
        found.push(Inner::Anything);
    }
    found
}

fn joined(arguments: &[Value]) -> Value {
    let text: Vec<&str> = arguments.iter().map(|value| value.text.as_str()).collect();
    Value::literal(&text.join(" "))
}

/// Arguments that could be code, also where they are attached to a flag.
fn spaced(arguments: &[Value]) -> Vec<Inner> {
    let is_code = |value: &&Value| {
        value.text.contains([' ', '(', ';', '\'', '"', '!'])
            || (value.text.contains('=') && value.text.starts_with('-'))
    };
    let codes = arguments.iter().filter(is_code);
    codes
        .flat_map(|value| [value.text.as_str(), attached(&value.text)])
        .map(|it| Inner::Foreign(it.to_owned()))
        .collect()
}

/// Returns what is attached to a short flag, or the text as it is.
fn attached(text: &str) -> &str {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some('-'), Some(letter)) if letter.is_alphabetic() => letters.as_str(),
        _ => text,
    }
}

fn by_find(arguments: &[Value]) -> Vec<Inner> {
    let mut found = Vec::new();
    let mut rest = arguments;
    while let Some(at) =
        rest.iter().position(|value| matches!(value.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))
    {
        let command = &rest[at + 1..];
        let end = command
            .iter()
            .position(|value| matches!(value.text.as_str(), ";" | "+"))
            .unwrap_or(command.len());
        let fill = |value: &Value| {
            if value.text.contains("{}") {
                Value { text: value.text.replace("{}", &HOLE.to_string()), ..value.clone() }
            } else {
                value.clone()
            }
        };
        found.push(Inner::Words(command[..end].iter().map(fill).collect()));
        rest = &command[end..];
    }
    // What only the run will tell may be `-exec` itself.
    let is_known = |value: &Value| !value.text.contains(HOLE) || value.pattern.is_some();
    if !arguments.iter().all(is_known) {
        found.push(Inner::Anything);
    }
    found
}

/// Takes global options off, and looks into configuration given on the line.
fn by_git(values: &[Value]) -> Vec<Inner> {
    /// Subcommands that run what they are given.
    const RUNNERS: &[&str] =
        &["bisect", "submodule", "rebase", "filter-branch", "clone", "fetch", "pull", "grep"];
    let n = crate::git::sensitive_words(values);
    let is_vague = values.iter().take(n + 2).any(|value| value.text.contains(HOLE));
    let aliases = values.iter().skip(1).filter(|value| value.text.starts_with('!'));
    let mut found: Vec<Inner> = aliases.map(|value| Inner::Foreign(value.text[1..].to_owned())).collect();
    found.extend(is_vague.then_some(Inner::Anything));
    let runs_arguments = |value: &Value| RUNNERS.contains(&value.text.as_str());
    if values.get(n + 1).is_some_and(runs_arguments) {
        found.extend(spaced(&values[n + 1..]));
        let suffixes = (n + 2..values.len()).map(|at| Inner::Words(values[at..].to_vec()));
        found.extend(suffixes.take(8));
    }
    if n == 0 {
        return found;
    }
    let mut words = vec![values[0].clone()];
    words.extend_from_slice(values.get(n + 1..).unwrap_or_default());
    let settings = values[1..].iter().take(n).filter_map(|value| value.text.split_once('='));
    let code = settings.map(|(_, code)| Inner::Foreign(code.trim_start_matches('!').to_owned()));
    found.extend(code);
    found.push(Inner::Words(words));
    found
}
