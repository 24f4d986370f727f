//! What a rule must match to let a command run (S-16).

use loci_core::tool::{Cover, HOLE};

use crate::code::{Document, could_run_others};
use crate::value::{Value, show};
use crate::{git, read_only, wrappers};

/// Programs that run others in ways no prefix can speak for: only the exact command is enough.
const ONLY_EXACT: &[&str] = &["watch", "setsid", "ionice", "flock", "strace", "ltrace", "script", "parallel"];

/// Programs that run what they are given, and builtins that change what later commands do: a rule must name them.
#[rustfmt::skip]
const BY_NAME: &[&str] = &[
    "env", "sudo", "doas", "su", "ssh", "npx", "bunx", "pnpx", "uvx", "docker", "podman", "kubectl", "xargs", "bash", "sh",
    "zsh", "dash", "ksh", "fish", "ash", "busybox", "toybox", "eval", "source", ".", "exec", "trap", "alias", "enable",
    "hash", "export", "declare", "typeset", "readonly", "local", "unset", "set", "shopt", "python", "python2", "python3",
    "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "awk", "gawk", "mawk", "nawk", "osascript", "pwsh",
    "powershell", "tclsh", "expect", "chroot", "unshare", "nsenter", "systemd-run", "runuser", "direnv", "devbox", "mise",
    "nix-shell", "nix", "poetry", "pipenv", "uv", "pipx", "make", "time", "command", "builtin", "timeout", "nice",
    "nohup", "stdbuf", "noglob", "pypy", "luajit", "mksh", "rbash", "oksh", "yash", "csh", "tcsh", "gmake", "ninja", "just",
    "rake", "bundle", "tox", "nox", "hatch", "conda", "bazel", "gradle", "gradlew", "mvn", "mvnw", "dotnet", "java", "julia",
    "Rscript", "irb", "ghc", "sqlite", "psql", "mysql", "gdb", "lldb", "vim", "vi", "nvim", "ex", "ed", "emacs", "less",
    "man", "tmux", "screen", "at", "batch", "crontab", "rsync", "scp", "sftp", "tar", "bsdtar", "sed", "m4", "socat",
    "nc", "ncat", "openssl", "tcpdump", "setarch", "prlimit", "taskset", "chrt", "numactl", "unbuffer", "rlwrap", "pkexec",
    "gosu", "su-exec", "setpriv", "capsh", "entr", "valgrind", "perf", "hyperfine", "fakeroot", "firejail", "bwrap", "sg",
    "runcon", "ip", "machinectl", "vagrant", "caffeinate", "corepack",
];

/// Variables that change no more than how a program talks.
const SAFE_VARIABLES: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "TERM",
    "COLUMNS",
    "LINES",
    "NODE_ENV",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "CI",
    "DEBIAN_FRONTEND",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "GO111MODULE",
    "CARGO_TERM_COLOR",
    "TIME_STYLE",
    "BLOCK_SIZE",
    "BLOCKSIZE",
];

/// Returns true for a variable whose assignment changes nothing but output.
pub(crate) fn is_safe_variable(name: &str) -> bool {
    SAFE_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Programs whose first words are their own and whose next ones are a command, which a rule must name, too.
const WRAPPING: &[&str] = &["env", "genv", "xargs", "gxargs", "busybox", "toybox"];

/// Returns what lets a command run; `document` is what it gets as its input by redirection, where that is known.
pub(crate) fn cover(assigned: &[&str], is_harmless: bool, values: &[Value], document: Option<&str>) -> Cover {
    let whole = show(values);
    if !is_harmless {
        let text = format!("{} {whole}", assigned.join(" "));
        return Cover::Spelled { text, n_words: assigned.len() + 1 };
    }
    let inner = wrappers::stripped(values);
    let text = show(inner);
    let Some(first) = inner.first() else { return Cover::Exact(whole) };
    let program = first.text.as_str();
    if program.contains(HOLE) || !first.is_literal {
        return Cover::Never;
    }
    let base = program.rsplit('/').next().unwrap_or(program);
    // A program asked for its version runs nothing else.
    let only_tells = matches!(inner, [_, only] if matches!(only.text.as_str(), "--version" | "--help" | "-V"))
        || only_helps(inner);
    let runs_by_find = base == "find" && !crate::find::is_tame(inner);
    if ONLY_EXACT.contains(&base) || runs_by_find {
        return Cover::Exact(text);
    }
    let document = Document::from_text(document);
    if !only_tells && could_run_others(inner, document) {
        return Cover::Exact(text);
    }
    if WRAPPING.contains(&base) {
        return wrapping(inner, text);
    }
    if wrappers::hides_a_command(inner) {
        return Cover::Exact(text);
    }
    if base == "git" {
        let n = git::sensitive_words(inner);
        return match inner.iter().take(n + 2).any(|value| value.text.contains(HOLE)) {
            // Any option could come in here.
            true => Cover::Never,
            false if n == 0 => Cover::Pattern(text),
            false => Cover::Spelled { text, n_words: n + 1 },
        };
    }
    if only_tells {
        return Cover::Pattern(text);
    }
    match BY_NAME.contains(&base) || BY_NAME.contains(&wrappers::family(base)) {
        true => Cover::Spelled { text, n_words: 1 },
        false => Cover::Pattern(text),
    }
}

/// `make --help x` tells how it is called, whatever targets follow.
fn only_helps(values: &[Value]) -> bool {
    let [program, flag, targets @ ..] = values else { return false };
    let is_plain =
        |value: &Value| value.is_literal && !value.text.starts_with('-') && !value.text.contains('=');
    matches!(program.text.as_str(), "make" | "gmake") && flag.text == "--help" && targets.iter().all(is_plain)
}

/// A command behind a wrapper: the rule must spell it out, unless it only reads.
fn wrapping(values: &[Value], text: String) -> Cover {
    let Some(n_own) = wrappers::n_own_words(values) else { return Cover::Exact(text) };
    let (own, command) = values.split_at(n_own);
    let sets_code =
        own.iter().filter_map(|value| value.text.split_once('=')).any(|(name, _)| is_loading(name));
    match command.first() {
        None if sets_code => Cover::Exact(text),
        None => Cover::Spelled { text, n_words: 1 },
        Some(program) if !program.is_literal || could_run_others(command, Document::Unknown) => {
            Cover::Exact(text)
        }
        Some(_) if !sets_code && read_only::reads_of(command).is_some() => {
            Cover::Spelled { text, n_words: 1 }
        }
        Some(_) => Cover::Spelled { text, n_words: n_own + 1 },
    }
}

/// Returns true for a variable that has programs load or run something.
pub(crate) fn is_loading(name: &str) -> bool {
    const BEGINNINGS: &[&str] =
        &["LD_", "DYLD_", "PYTHON", "PERL", "RUBY", "NODE_", "GIT_", "BASH_", "JAVA_", "GLIBC_"];
    wrappers::is_code_variable(name)
        || name.ends_with("PATH")
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.contains(HOLE)
        || matches!(name, "IFS" | "SHELL" | "SHELLOPTS" | "HOME")
}
