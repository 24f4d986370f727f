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
    "perf", "hyperfine", "tmux", "screen", "fd", "rg", "tar", "rsync", "scp", "make", "ninja",
];

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash"];

#[rustfmt::skip]
const INTERPRETERS: &[&str] = &[
    "python", "python2", "python3", "perl", "ruby", "node", "nodejs", "deno", "php", "lua", "awk", "gawk", "mawk", "nawk",
    "osascript", "pwsh", "powershell", "tclsh", "expect", "sed", "vim", "vi", "ex", "emacs", "sqlite3", "alias",
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

/// Returns everything a command runs.
pub(crate) fn inner(values: &[Value]) -> Vec<Inner> {
    let Some((first, arguments)) = values.split_first() else { return Vec::new() };
    if first.text.contains(HOLE) {
        return vec![Inner::Suffixes];
    }
    let base = first.text.rsplit('/').next().unwrap_or_default();
    let known = KNOWN.iter().chain(TRANSPARENT).filter(|wrapper| wrapper.name == base);
    let mut found: Vec<Inner> = Vec::new();
    let mut is_wrapper = false;
    for wrapper in known {
        is_wrapper = true;
        if let Some(inner) = behind(wrapper, values) {
            found.extend(wrapped(base, inner));
            break;
        }
    }
    if is_wrapper {
        if found.is_empty() {
            found.push(Inner::Suffixes);
            found.extend(spaced(arguments));
        }
        return found;
    }
    match base {
        _ if SHELLS.contains(&base) => shell(arguments),
        "eval" => vec![Inner::Code(joined(arguments))],
        "trap" => arguments.first().cloned().map(Inner::Code).into_iter().collect(),
        "at" | "batch" | "crontab" => vec![Inner::Suffixes, Inner::Input],
        "mapfile" | "readarray" => spaced(arguments),
        "find" => by_find(arguments),
        "git" => by_git(values),
        _ if INTERPRETERS.contains(&base) => spaced(arguments),
        _ if LOOSE.contains(&base) => std::iter::once(Inner::Suffixes).chain(spaced(arguments)).collect(),
        _ => Vec::new(),
    }
}

fn wrapped(base: &str, inner: &[Value]) -> Vec<Inner> {
    let mut words = inner.to_vec();
    if matches!(base, "env" | "sudo" | "doas") {
        let is_own =
            |word: &&Value| word.text == "-" || (word.text.contains('=') && !word.text.starts_with('='));
        let n = words.iter().take_while(is_own).count();
        words.drain(..n);
    }
    if base == "xargs" {
        words.push(Value::hole());
    }
    if words.is_empty() { Vec::new() } else { vec![Inner::Words(words)] }
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
    let is_code = |value: &Value| {
        value.text.starts_with('-') && !value.text.starts_with("--") && value.text.contains('c')
    };
    if let Some(at) = arguments.iter().position(is_code) {
        let code = arguments[at + 1..].iter().find(|value| !value.text.starts_with(['-', '+']));
        return match code {
            Some(code) => vec![Inner::Code(code.clone())],
            None => vec![Inner::Anything],
        };
    }
    let operands = arguments.iter().filter(|value| !value.text.starts_with(['-', '+']));
    let reads_input = arguments.iter().any(|value| value.text == "-s") || operands.count() == 0;
    let only_tells = matches!(arguments, [only] if only.text == "--version" || only.text == "--help");
    if reads_input && !only_tells { vec![Inner::Input] } else { Vec::new() }
}

fn joined(arguments: &[Value]) -> Value {
    let text: Vec<&str> = arguments.iter().map(|value| value.text.as_str()).collect();
    Value::literal(&text.join(" "))
}

/// Arguments that could be code.
fn spaced(arguments: &[Value]) -> Vec<Inner> {
    let codes = arguments.iter().filter(|value| value.text.contains([' ', '(', ';', '\'', '"', '!']));
    codes.map(|value| Inner::Foreign(value.text.clone())).collect()
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
    found
}

/// Takes global options off, and looks into configuration given on the line.
fn by_git(values: &[Value]) -> Vec<Inner> {
    let n = crate::git::sensitive_words(values);
    let aliases = values.iter().skip(1).filter(|value| value.text.starts_with('!'));
    let mut found: Vec<Inner> = aliases.map(|value| Inner::Foreign(value.text[1..].to_owned())).collect();
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
