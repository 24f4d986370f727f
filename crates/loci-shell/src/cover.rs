//! What a rule must match to let a command run (S-16).

use loci_core::tool::{Cover, HOLE};

use crate::value::{Value, show};
use crate::{git, wrappers};

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

/// Returns what lets a command run.
pub(crate) fn cover(assigned: &[&str], is_harmless: bool, values: &[Value]) -> Cover {
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
    let only_tells =
        matches!(inner, [_, only] if matches!(only.text.as_str(), "--version" | "--help" | "-V"));
    let runs_by_find = base == "find" && !crate::find::is_tame(inner);
    if ONLY_EXACT.contains(&base) || runs_by_find {
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
