//! What else than paths a command may have been refused: sockets, other calls of the system, servers of the machine.
//!
//! The filter answers EPERM, which no mount does: a line that ends so is about a call and not about the path it names, and
//! settings that open paths would not help (`docker` names its socket).

use super::Printed;

/// What of a sandbox is not about paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallRules {
    /// Whether Unix sockets may be opened.
    pub(crate) allows_unix_sockets: bool,
    /// Whether commands have a loopback of their own.
    pub(crate) has_own_loopback: bool,
}

/// What the filter answers.
const SIGNS: &[&str] = &["operation not permitted", "eperm", "[errno 1]", "(os error 1)"];

/// What is in the words of a program that wanted a Unix socket.
const SOCKET_WORDS: &[&str] = &["socket", ".sock", "unix", "connect", "listen", "agent", "bind"];

const SOCKETS: &str = "a Unix socket may have been refused: they are shut in the sandbox, since what listens on those of the machine \
                       (docker, databases, agents) acts outside; sandbox.network.allowAllUnixSockets would allow all of them";
const TRACING: &str = "tracing may have been refused: no process traces another in the sandbox (ptrace)";
const OTHER_CALLS: &str = "a call of the system may have been refused: in the sandbox nothing mounts, makes namespaces, loads programs \
                           into the kernel, changes the clock or gains rights";
const OWNERS: &str = "changing the owner may have been refused: there is one user in the sandbox (`tar` and `cp` work without it: \
                      `--no-same-owner`, `--no-preserve=ownership`)";
const LOOPBACK: &str = "nobody listens there in the sandbox, where each command has a loopback of its own. What this command starts itself is \
                        reached as ever; what another command has started is not, so start both in one. A server of the machine is \
                        reached through the proxy: `127.0.0.1:PORT` under sandbox.network.allowedDomains allows it, and the program \
                        must be told to ask (`curl --noproxy ''`, `NO_PROXY=`)";

const NO_NETWORK: &str = "there is no network in the sandbox but its proxy, and no name is resolved: programs that ask HTTP_PROXY, HTTPS_PROXY \
                          or ALL_PROXY reach what is allowed, and others nothing. In the place of `ssh`, `$GIT_SSH_COMMAND` goes \
                          through it";

/// How programs say that a name has no address, or that nothing leads to one.
const NOT_RESOLVED: &[&str] = &[
    "name resolution",
    "could not resolve host",
    "name or service not known",
    "network is unreachable",
    "enetunreach",
    "enotfound",
    "eai_again",
];

/// How programs say that nobody listens.
const NOBODY_LISTENS: &[&str] = &[
    "connection refused",
    "econnrefused",
    "failed to connect to",
    "couldn't connect",
    "[errno 111]",
    "(os error 111)",
];

/// The machine's own names.
const LOOPBACK_NAMES: &[&str] = &["127.0.0.1", "localhost", "[::1]", " ::1"];

/// Returns what may have been refused, in words, each kind once.
pub(super) fn refused_calls(printed: Printed<'_>, rules: CallRules) -> Vec<String> {
    let mut words = Vec::new();
    if rules.has_own_loopback && may_have_missed_a_server(&printed) {
        words.push(LOOPBACK.to_owned());
    }
    if !printed.has_failed {
        return words;
    }
    let whole = printed.output.to_ascii_lowercase();
    for line in whole.lines() {
        let Some(kind) = kind_of(line, &whole, rules) else { continue };
        if !words.iter().any(|it| it == kind) {
            words.push(kind.to_owned());
        }
    }
    words
}

/// Tells whether a line in small letters is about a call, whatever paths it names.
pub(super) fn is_about_call(line: &str) -> bool {
    SIGNS.iter().any(|it| line.contains(it)) || line.starts_with("mount: ")
}

/// Returns what a line in small letters is about; the lines around a bare error often have the word that says it.
fn kind_of(line: &str, whole: &str, rules: CallRules) -> Option<&'static str> {
    let says = |text: &str, words: &[&str]| words.iter().any(|it| text.contains(it));
    if rules.has_own_loopback && says(line, NOT_RESOLVED) {
        return Some(NO_NETWORK);
    }
    if line.contains("invalid argument") && says(line, &["ownership", "chown", "owner"]) {
        return Some(OWNERS);
    }
    if !is_about_call(line) {
        return None;
    }
    let wants_socket =
        !rules.allows_unix_sockets && (says(line, SOCKET_WORDS) || says(whole, &["af_unix", ".sock"]));
    match () {
        () if says(line, &["ptrace", "trace:"]) => Some(TRACING),
        () if wants_socket => Some(SOCKETS),
        () => Some(OTHER_CALLS),
    }
}

/// Tells whether a program looked for a server on this machine. `curl -s` fails without a word.
fn may_have_missed_a_server(printed: &Printed<'_>) -> bool {
    let is_named = |text: &str| LOOPBACK_NAMES.iter().any(|it| text.contains(it));
    let is_silent = printed.has_failed && printed.output.trim().is_empty();
    if is_silent {
        return printed.command.contains("curl") && is_named(printed.command);
    }
    printed.output.lines().filter(|line| is_named(line)).any(|line| {
        let lower = line.to_ascii_lowercase();
        NOBODY_LISTENS.iter().any(|it| lower.contains(it))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SHUT: CallRules = CallRules { allows_unix_sockets: false, has_own_loopback: true };

    fn found(command: &str, output: &str, has_failed: bool, rules: CallRules) -> Vec<String> {
        refused_calls(Printed { command, output, cwd: Path::new("/h/p"), has_failed }, rules)
    }

    #[test]
    fn calls_that_fail_are_explained_by_their_kind() {
        for (line, expected) in [
            ("dial unix /var/run/docker.sock: socket: operation not permitted", Some(SOCKETS)),
            ("error connecting to /tmp/tmux-0/default (Operation not permitted)", Some(SOCKETS)),
            ("Error connecting to agent: Operation not permitted", Some(SOCKETS)),
            ("Error: listen EPERM: operation not permitted /tmp/s.sock", Some(SOCKETS)),
            (
                "  s = socket.socket(socket.AF_UNIX)\nPermissionError: [Errno 1] Operation not permitted",
                Some(SOCKETS),
            ),
            ("strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted", Some(TRACING)),
            (
                "permission denied while trying to connect: dial unix /var/run/docker.sock: socket: operation not permitted",
                Some(SOCKETS),
            ),
            ("mount: /mnt: permission denied.", Some(OTHER_CALLS)),
            ("unshare: unshare failed: Operation not permitted", Some(OTHER_CALLS)),
            ("tar: a: Cannot change ownership to uid 1000, gid 1000: Invalid argument", Some(OWNERS)),
            ("chown: changing ownership of 'a': Invalid argument", Some(OWNERS)),
            (
                "ssh: Could not resolve hostname example.com: Temporary failure in name resolution",
                Some(NO_NETWORK),
            ),
            ("Error: getaddrinfo EAI_AGAIN example.com", Some(NO_NETWORK)),
            ("connect: Network is unreachable", Some(NO_NETWORK)),
            ("find: invalid argument 'x' to '-type'", None),
            ("curl: (22) The requested URL returned error: 404", None),
            ("cat: /etc/shadow: Permission denied", None),
        ] {
            let words = found("c", line, true, SHUT);
            assert_eq!(words, expected.map(str::to_owned).into_iter().collect::<Vec<_>>(), "{line}");
            assert_eq!(found("c", line, false, SHUT), Vec::<String>::new(), "{line}");
        }
        let open = CallRules { allows_unix_sockets: true, ..SHUT };
        let line = "dial unix /var/run/docker.sock: socket: operation not permitted";
        assert_eq!(found("c", line, true, open), [OTHER_CALLS]);
    }

    #[test]
    fn server_of_the_machine_that_is_not_reached_is_explained() {
        for (command, output, has_failed, expected) in [
            (
                "curl -sS http://localhost:3000",
                "curl: (7) Failed to connect to localhost port 3000",
                true,
                true,
            ),
            ("x", "Error: connect ECONNREFUSED 127.0.0.1:5432", true, true),
            (
                "x | tail -1",
                "psql: error: connection to server at \"localhost\" (::1): Connection refused",
                false,
                true,
            ),
            ("curl -s http://127.0.0.1:8000/health", "", true, true),
            ("curl -s http://127.0.0.1:8000/health", "", false, false),
            ("curl -s http://example.com/", "", true, false),
            ("x", "Failed to connect to example.com port 443", true, false),
            ("cat README", "see http://localhost:3000", false, false),
        ] {
            let words = found(command, output, has_failed, SHUT);
            assert_eq!(words == [LOOPBACK], expected, "{command}: {output}: {words:?}");
            let shared = CallRules { has_own_loopback: false, ..SHUT };
            assert!(!found(command, output, has_failed, shared).contains(&LOOPBACK.to_owned()), "{command}");
        }
    }
}
