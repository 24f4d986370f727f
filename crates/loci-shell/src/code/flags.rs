//! Flags and subcommands by which programs run others: a table, and those that need a closer look.

use super::is_vague;
use crate::value::Value;

/// Flags that name a program to run, or a file or text of code.
#[rustfmt::skip]
const RUNNING_FLAGS: &[(&str, &[&str])] = &[
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("zip", &["-TT", "--unzip-command", "-T"]),
    ("man", &["-P", "--pager", "-H", "--html", "-C", "--config-file"]),
    ("less", &["+", "-k", "--lesskey-file", "--lesskey-src"]),
    ("tcpdump", &["-z"]),
    ("cargo", &["--config"]),
    ("go", &["-toolexec", "--toolexec", "-exec", "--exec", "-vettool", "--vettool"]),
    ("wget", &["--use-askpass", "-e", "--execute", "--config"]),
    ("curl", &["-K", "--config"]),
    ("openssl", &["-engine", "-provider", "-provider-path"]),
    ("npm", &["--script-shell", "--node-options"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("gcc", &["-wrapper", "-fplugin", "-specs", "-B"]),
    ("g++", &["-wrapper", "-fplugin", "-specs", "-B"]),
    ("cc", &["-wrapper", "-fplugin", "-specs", "-B"]),
    ("clang", &["-fplugin", "-Xclang", "-B"]),
    ("cmake", &["-P", "-E"]),
    ("ninja", &["-t"]),
    ("gpg", &["--photo-viewer", "--agent-program", "--exec-path"]),
    ("diff", &["--pager"]),
    ("xz", &["--files"]),
];

pub(super) fn has_running_flag(program: &str, arguments: &[Value]) -> bool {
    let flags = RUNNING_FLAGS.iter().filter(|(name, _)| *name == program).flat_map(|(_, flags)| *flags);
    flags.into_iter().any(|flag| arguments.iter().any(|value| is_flag(&value.text, flag)))
}

/// Tells whether a word is a flag: long ones may be cut short, short ones may have their value attached.
fn is_flag(word: &str, flag: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    match flag.starts_with("--") {
        true => name == flag || (name.len() > 3 && flag.starts_with(name) && name.starts_with("--")),
        false if flag.len() > 2 => name == flag,
        false => word.starts_with(flag) && !word.starts_with("--"),
    }
}

/// Subcommands and flags of `git` that run what they are given, global options aside.
pub(super) fn by_git(arguments: &[Value]) -> bool {
    let Some(at) = arguments.iter().position(|value| !value.text.starts_with('-')) else { return false };
    let (name, rest) = (arguments[at].text.as_str(), &arguments[at + 1..]);
    let has = |flag: &str| rest.iter().any(|value| is_flag(&value.text, flag));
    let is_code = |value: &Value| value.text.starts_with("ext::") || value.text.contains("::ext::");
    let by_name = match name {
        "bisect" => rest.first().is_some_and(|value| matches!(value.text.as_str(), "run" | "\0")),
        "submodule" => rest.iter().any(|value| value.text == "foreach"),
        "filter-branch" | "for-each-repo" | "difftool" | "mergetool" | "instaweb" | "send-email" => true,
        "rebase" => has("-x") || has("--exec"),
        "grep" => has("-O") || has("--open-files-in-pager"),
        "clone" => has("-u") || has("-c") || has("--config") || has("--template"),
        "init" => has("--template"),
        "config" => sets_code(rest),
        "archive" => has("--exec"),
        _ => false,
    };
    by_name || has("--upload-pack") || has("--receive-pack") || has("--exec") || rest.iter().any(is_code)
}

/// Keys of git's configuration that say what to run.
fn sets_code(arguments: &[Value]) -> bool {
    #[rustfmt::skip]
    const ENDINGS: &[&str] = &[
        "pager", "editor", "sshcommand", "hookspath", "fsmonitor", "external", "cmd", "textconv", "clean", "smudge", "process",
        "helper", "program", "askpass", "command", "driver", "gitproxy", "path", "insteadof", "attributesfile", "worktree",
    ];
    arguments.iter().filter(|value| !value.text.starts_with('-')).any(|value| {
        let key = value.text.to_ascii_lowercase();
        let is_key = key.contains('.') && ENDINGS.iter().any(|ending| key.ends_with(ending));
        is_key
            || key.starts_with("alias.")
            || key.starts_with("include")
            || key.starts_with('!')
            || is_vague(value)
    })
}

pub(super) fn by_make(arguments: &[Value]) -> bool {
    let is_code = |value: &Value| {
        let text = value.text.as_str();
        let name = text.split(['=', ':', '+', '?', '!']).next().unwrap_or_default();
        let sets_shell = text.contains('=')
            && matches!(name, "SHELL" | "MAKEFLAGS" | ".SHELLFLAGS" | "MAKE" | "MAKEFILES");
        sets_shell || text.contains(['$', '`']) || is_flag(text, "--eval") || text.starts_with("-E")
    };
    let reads_input = |pair: &[Value]| pair[0].text.ends_with('f') && pair[1].text == "-";
    arguments.iter().any(is_code)
        || arguments.windows(2).any(reads_input)
        || arguments.iter().any(|value| matches!(value.text.as_str(), "-f-" | "--file=-" | "--makefile=-"))
}

/// Options of programs that go to other machines and run programs on this one.
pub(super) fn by_remote(program: &str, arguments: &[Value]) -> bool {
    #[rustfmt::skip]
    const HARMLESS: &[&str] = &[
        "connecttimeout", "batchmode", "stricthostkeychecking", "serveraliveinterval", "serveralivecountmax", "loglevel", "port",
        "user", "hostname", "identitiesonly", "passwordauthentication", "requesttty", "compression", "addressfamily",
        "connectionattempts", "preferredauthentications", "forwardx11", "exitonforwardfailure",
    ];
    if program == "rsync" {
        let is_shell = |text: &str| {
            let mut words = text.split_whitespace();
            let is_plain = |word: &str| word == "-p" || word.bytes().all(|byte| byte.is_ascii_digit());
            words.next() == Some("ssh") && words.all(is_plain)
        };
        let names = |flag: &str, text: &str| text == flag || text.starts_with(&format!("{flag}="));
        return arguments.iter().enumerate().any(|(at, value)| {
            let text = value.text.as_str();
            let is_cluster = text.starts_with('-') && !text.starts_with("--") && text.ends_with('e');
            let shell = match text.split_once('=') {
                Some((flag, shell)) if is_flag(flag, "--rsh") => Some(shell),
                None if is_cluster || names("--rsh", text) => {
                    arguments.get(at + 1).map(|it| it.text.as_str())
                }
                _ => None,
            };
            shell.is_some_and(|shell| !is_shell(shell))
                || is_flag(text, "--config")
                || is_flag(text, "--daemon")
        });
    }
    arguments.iter().enumerate().any(|(at, value)| {
        let text = value.text.as_str();
        let option = match text.strip_prefix("-o") {
            Some("") => arguments.get(at + 1).map(|it| it.text.as_str()),
            Some(attached) => Some(attached),
            None => None,
        };
        let is_harmless = |option: &str| {
            let key = option.trim().split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
            HARMLESS.contains(&key.as_str())
        };
        let names_program = match program {
            "ssh" => text.starts_with("-F") || text.starts_with("-I"),
            _ => {
                text.starts_with("-F")
                    || text.starts_with("-S")
                    || (program == "sftp" && text.starts_with("-D"))
            }
        };
        option.is_some_and(|option| !is_harmless(option)) || names_program
    })
}

pub(super) fn by_tar(arguments: &[Value]) -> bool {
    const COMPRESSORS: &[&str] =
        &["gzip", "pigz", "bzip2", "pbzip2", "xz", "pixz", "zstd", "lz4", "lzip", "brotli"];
    const LONG: &[&str] = &[
        "--to-command",
        "--checkpoint-action",
        "--rsh-command",
        "--rmt-command",
        "--info-script",
        "--new-volume-script",
    ];
    let has_compressor = arguments.iter().any(|value| COMPRESSORS.contains(&value.text.as_str()));
    arguments.iter().enumerate().any(|(at, value)| {
        let text = value.text.as_str();
        let is_cluster = (at == 0 || text.starts_with('-')) && !text.starts_with("--") && !text.contains('=');
        let letters: &str = if is_cluster { text.split(['/', '.']).next().unwrap_or_default() } else { "" };
        let compresses = is_flag(text, "--use-compress-program")
            && !text.split_once('=').is_some_and(|(_, it)| COMPRESSORS.contains(&it))
            && !has_compressor;
        LONG.iter().any(|flag| is_flag(text, flag))
            || compresses
            || letters.contains('F')
            || (letters.contains('I') && !has_compressor)
    })
}
