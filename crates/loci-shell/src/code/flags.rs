//! Flags and subcommands by which programs run others: a table, and those that need a closer look.

use loci_core::tool::HOLE;

use super::is_vague;
use crate::cover::{is_loading, is_safe_variable};
use crate::git::sensitive_words;
use crate::value::Value;

/// Flags that name a program to run, or a file or text of code.
#[rustfmt::skip]
const RUNNING_FLAGS: &[(&str, &[&str])] = &[
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("zip", &["-TT", "--unzip-command", "-T"]),
    ("man", &["-P", "--pager", "-H", "--html", "-C", "--config-file"]),
    ("less", &["+", "-k", "--lesskey-file", "--lesskey-src", "--lesskey-content"]),
    ("bat", &["--pager"]),
    ("batcat", &["--pager"]),
    ("delta", &["--pager"]),
    ("ag", &["--pager"]),
    ("ack", &["--pager", "--ackrc"]),
    ("fzf", &["--preview", "--bind", "--with-shell"]),
    ("just", &["--shell", "--shell-arg", "--command", "-c", "--chooser"]),
    ("rake", &["-e", "--execute", "-p", "--execute-print", "-E", "--execute-continue"]),
    ("mypy", &["--python-executable"]),
    ("ncat", &["--exec", "--sh-exec", "--lua-exec"]),
    ("tcpdump", &["-z"]),
    ("cargo", &["--config"]),
    ("go", &["-toolexec", "--toolexec", "-exec", "--exec", "-vettool", "--vettool"]),
    ("wget", &["--use-askpass", "-e", "--execute", "--config"]),
    ("curl", &["-K", "--config", "--engine"]),
    ("openssl", &["-engine", "-provider", "-provider-path"]),
    ("npm", &["--script-shell", "--node-options", "--shell", "--userconfig", "--globalconfig"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("fdfind", &["-x", "-X", "--exec", "--exec-batch"]),
    ("gcc", &["-wrapper", "-fplugin", "-specs", "-B"]),
    ("g++", &["-wrapper", "-fplugin", "-specs", "-B"]),
    ("cc", &["-wrapper", "-fplugin", "-specs", "-B"]),
    ("clang", &["-fplugin", "-Xclang", "-B"]),
    ("cmake", &["-P", "-E"]),
    ("ninja", &["-t"]),
    ("gpg", &["--photo-viewer", "--agent-program", "--dirmngr-program", "--pinentry-program", "--exec-path", "--options"]),
    ("diff", &["--pager"]),
    ("xz", &["--files"]),
];

pub(super) fn has_running_flag(program: &str, arguments: &[Value]) -> bool {
    let flags = RUNNING_FLAGS.iter().filter(|(name, _)| *name == program).flat_map(|(_, flags)| *flags);
    let is_given = |flag: &str| arguments.iter().any(|value| is_flag(&value.text, flag));
    flags.into_iter().any(|flag| is_given(flag)) || runs_otherwise(program, arguments)
}

/// What of a program's arguments runs something and is no flag by itself.
fn runs_otherwise(program: &str, arguments: &[Value]) -> bool {
    let text = |at: usize| arguments.get(at).map_or("", |value| value.text.as_str());
    let has = |letter: char, valued: &str| arguments.iter().any(|it| has_letter(&it.text, letter, valued));
    let sets = |keys: &[&str]| {
        arguments.iter().any(|value| {
            keys.contains(&value.text.split('=').next().unwrap_or_default()) || value.text.contains(HOLE)
        })
    };
    match program {
        "fd" | "fdfind" => has('x', "dEetcSjo") || has('X', "dEetcSjo"),
        "nc" | "ncat" | "netcat" => has('e', "iIMmOPpqsTVwXx") || has('c', "iIMmOPpqsTVwXx"),
        "zip" => arguments.iter().any(|it| it.text.starts_with('-') && it.text.contains("TT")),
        // A toolchain by its path is a directory with programs.
        "cargo" => arguments.iter().any(|it| it.text.starts_with('+') && it.text.contains('/')),
        "rustc" => arguments.iter().any(|it| it.text.contains("linker=")),
        "go" => (text(0) == "env" && has('w', "")) || arguments.iter().any(|it| it.text.contains("-extld")),
        "npm" => {
            let is_kept = text(0) == "set" || (matches!(text(0), "config" | "c") && text(1) == "set");
            is_kept && sets(&["script-shell", "shell", "node-options", "git", "editor", "viewer", "browser"])
        }
        "gh" => match (text(0), text(1)) {
            ("alias", "import") => true,
            ("alias", "set") => arguments.iter().any(|it| it.text.starts_with(['!', '-', HOLE])),
            ("config", "set") => sets(&["editor", "pager", "browser"]),
            ("codespace" | "cs", "ssh" | "cp") => arguments.len() > 2,
            ("extension" | "ext", "exec") => true,
            _ => false,
        },
        "socat" => arguments.iter().any(|it| {
            let kind = it.text.split([':', ',']).next().unwrap_or_default().to_ascii_uppercase();
            matches!(kind.as_str(), "EXEC" | "SYSTEM" | "SHELL") || it.text.contains(HOLE)
        }),
        _ => false,
    }
}

/// Builtins that set variables whose names they are told, and what they are set to: a variable that has programs load
/// or run something, or says where they lie.
pub(super) fn sets_loading_variable(program: &str, arguments: &[Value]) -> bool {
    let names: Vec<&Value> = match program {
        "printf" => {
            let attached = arguments.first().filter(|it| it.text.starts_with("-v") && it.text.len() > 2);
            let next = arguments.first().filter(|it| it.text == "-v").and_then(|_| arguments.get(1));
            attached.or(next).into_iter().collect()
        }
        _ => arguments.iter().collect(),
    };
    let name = |value: &Value| -> String {
        let text = value.text.strip_prefix("-v").unwrap_or(&value.text);
        text.split('[').next().unwrap_or_default().to_owned()
    };
    let calls_back = |value: &Value| has_letter(&value.text, 'C', "dnOsuc");
    let takes_code = matches!(program, "mapfile" | "readarray") && arguments.iter().any(calls_back);
    let loads = |name: &str| is_loading(name) && !is_safe_variable(name);
    takes_code || names.into_iter().any(|value| loads(&name(value)))
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

/// Tells whether a cluster of short flags has a letter, before one of those that take the rest of it as their value.
pub(super) fn has_letter(word: &str, wanted: char, valued: &str) -> bool {
    let cluster = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    cluster.split(|letter| valued.contains(letter)).next().is_some_and(|letters| letters.contains(wanted))
}

/// Subcommands and flags of `git` that run what they are given, global options aside.
pub(super) fn by_git(values: &[Value]) -> bool {
    let behind_options = values.get(1 + sensitive_words(values)..).unwrap_or_default();
    let Some((subcommand, rest)) = behind_options.split_first() else { return false };
    let name = subcommand.text.as_str();
    let has = |flag: &str| rest.iter().any(|value| is_flag(&value.text, flag));
    let is_code = |value: &Value| {
        let transport = |text: &str| text.starts_with("ext::") || text.starts_with("fd::");
        transport(&value.text)
            || value.text.contains("::ext::")
            || value.text.split_once('=').is_some_and(|(_, text)| transport(text))
    };
    let by_name = match name {
        "bisect" => rest.first().is_some_and(|value| matches!(value.text.as_str(), "run" | "\0")),
        "submodule" => rest.iter().any(|value| value.text == "foreach"),
        "filter-branch" | "filter-repo" | "for-each-repo" | "difftool" | "mergetool" | "instaweb"
        | "send-email" | "merge-index" | "remote-ext" | "remote-fd" => true,
        "daemon" => has("--access-hook"),
        // Git puts `git-` in front of a name and runs what is called so; with a slash it is a file of the project's.
        _ if name.contains(['/', HOLE]) => true,
        "merge" | "pull" | "cherry-pick" | "revert" | "stash" => names_strategy_file(rest),
        "rebase" => {
            has("--exec")
                || rest.iter().any(|value| has_letter(&value.text, 'x', "CsSX"))
                || names_strategy_file(rest)
        }
        "grep" => {
            has("--open-files-in-pager") || rest.iter().any(|value| has_letter(&value.text, 'O', "efABCm"))
        }
        "clone" => has("-u") || has("-c") || has("--config") || has("--template"),
        "init" => has("--template"),
        "config" => sets_code(rest),
        "archive" => has("--exec"),
        _ => false,
    };
    by_name || has("--upload-pack") || has("--receive-pack") || has("--exec") || rest.iter().any(is_code)
}

/// Tells whether a strategy could be a file: git puts `git-merge-` in front of its name and runs that.
fn names_strategy_file(arguments: &[Value]) -> bool {
    arguments.iter().enumerate().any(|(at, value)| {
        let text = value.text.as_str();
        let attached = match text.split_once('=') {
            Some((flag, attached)) if is_flag(flag, "--strategy") => attached,
            None if is_flag(text, "--strategy") => "",
            _ if has_letter(text, 's', "mSX") => text.split_once('s').map_or("", |(_, attached)| attached),
            _ => return false,
        };
        let next = arguments.get(at + 1).map_or("", |next| next.text.as_str());
        let strategy = if attached.is_empty() { next } else { attached };
        strategy.contains(['/', HOLE])
    })
}

/// Keys of git's configuration that say what to run.
pub(crate) fn sets_code(arguments: &[Value]) -> bool {
    #[rustfmt::skip]
    const ENDINGS: &[&str] = &[
        "pager", "editor", "sshcommand", "hookspath", "fsmonitor", "external", "cmd", "textconv", "clean", "smudge", "process",
        "helper", "program", "askpass", "command", "driver", "gitproxy", "path", "insteadof", "attributesfile", "worktree",
        "uploadpack", "receivepack", "uploadarchive", "templatedir",
    ];
    arguments.iter().filter(|value| !value.text.starts_with('-')).any(|value| {
        let key = value.text.to_ascii_lowercase();
        let is_key = key.contains('.') && ENDINGS.iter().any(|ending| key.ends_with(ending));
        is_key
            || key.starts_with("alias.")
            || key.starts_with("include")
            || key.starts_with("protocol.")
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
    let (valued, programs) = match program {
        "ssh" => ("BbcDEeFIiJLlmOoPpQRSWw", "FI"),
        "scp" => ("cDFiJloPSX", "FSD"),
        _ => ("BbcDFiJloPRSsX", "FSD"),
    };
    let is_harmless = |option: &str| {
        let key = option.trim().split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        HARMLESS.contains(&key.as_str())
    };
    let (mut n_operands, mut is_value) = (0, false);
    for (at, value) in arguments.iter().enumerate() {
        let was_value = std::mem::take(&mut is_value);
        let cluster = value.text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let Some(letters) = cluster else {
            n_operands += usize::from(!was_value);
            // Behind its destination `ssh` has what runs over there.
            if program == "ssh" && n_operands > 1 {
                break;
            }
            continue;
        };
        let Some((before, attached)) = letters.split_once(|it| valued.contains(it)) else { continue };
        let letter = &letters[before.len()..letters.len() - attached.len()];
        is_value = attached.is_empty();
        let option = if is_value { arguments.get(at + 1).map(|it| it.text.as_str()) } else { Some(attached) };
        if programs.contains(letter) || (letter == "o" && option.is_some_and(|option| !is_harmless(option))) {
            return true;
        }
    }
    false
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
