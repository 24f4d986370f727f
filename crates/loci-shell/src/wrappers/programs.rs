//! Which programs run what they are given, and in which way.

/// How a wrapper's own arguments end.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Short flags with a value.
    pub(super) valued: &'static str,
    /// Short flags without.
    pub(super) bare: &'static str,
    /// Long flags; those with a value end in `=`.
    pub(super) long: &'static [&'static str],
    /// Operands before the command.
    pub(super) n_operands: usize,
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
pub(super) const TRANSPARENT: &[Wrapper] = &[
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
pub(super) const KNOWN: &[Wrapper] = &[
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
pub(super) const LOOSE: &[&str] = &[
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
    "just", "doppler", "op", "dotenv", "aws-vault", "chpst", "softlimit", "setuidgid", "run-parts", "cmake", "compgen", "fc",
];

/// Verbs of package managers that ask a registry, or what is installed, and run nothing of what follows them.
#[rustfmt::skip]
pub(super) const LOOKUPS: &[(&str, &[&str])] = &[
    ("npm", &["view", "info", "show", "v", "ls", "list", "ll", "la", "search", "find", "s", "se", "outdated", "why", "explain"]),
    ("pnpm", &["view", "info", "show", "ls", "list", "ll", "la", "outdated", "why"]),
    ("yarn", &["info", "list", "why", "outdated"]),
];

/// Compilers and linkers, which take the parts of a command with commas in between.
pub(super) const COMPILERS: &[&str] = &["gcc", "g++", "cc", "c++", "clang", "clang++", "rustc", "ld"];

/// Programs that take commands of their own kind from their input, among them one that runs a shell.
pub(super) const COMMANDED: &[&str] =
    &["ed", "ex", "m4", "dc", "sqlite", "psql", "mysql", "gnuplot", "gdb", "lldb", "ftp", "sftp"];

/// Variables whose value is code, or names a file of code, that a later command runs.
pub(super) const CODE_VARIABLES: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "VISUAL",
    "GIT_SSH",
    "GIT_EXTERNAL_DIFF",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "PERL5OPT",
    "RUBYOPT",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "MAKEFLAGS",
    "RUSTC_WRAPPER",
];

/// Programs with a flag that names another to run.
pub(super) const FLAG_RUNNERS: &[&str] =
    &["sort", "zip", "unzip", "split", "man", "less", "tcpdump", "cargo", "go", "openssl", "wget", "curl"];

pub(super) const SHELLS: &[&str] =
    &["bash", "sh", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "oksh", "yash", "csh", "tcsh"];

/// Interpreters that read their program from their input when they are given none.
pub(super) const INTERPRETERS: &[&str] = &[
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
pub(super) const CODE_TAKERS: &[&str] = &[
    "awk", "gawk", "mawk", "nawk", "powershell", "expect", "sed", "vim", "vi", "nvim", "ex", "ed", "emacs", "sqlite", "psql",
    "mysql", "m4", "dc", "bc", "jq", "Rscript", "julia", "ghc", "irb", "gnuplot",
];
