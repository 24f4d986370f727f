//! The profile of a sandbox on macOS, for `sandbox-exec`. It is made and compiled, and has not been tried on a Mac: no
//! level is claimed there.

use std::path::Path;

use crate::policy::FileRules;

/// What programs look up of the system.
const SERVICES: &[&str] = &[
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.logger",
    "com.apple.SystemConfiguration.configd",
    "com.apple.CoreServices.coreservicesd",
];

/// What every command may write.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper"];

/// Returns the profile: everything is refused but what is named, and of several rules the last one counts.
pub(crate) fn profile(files: Option<&FileRules>, proxy_ports: &[u16]) -> String {
    let mut lines = vec![
        "(version 1)".to_owned(),
        "(deny default)".to_owned(),
        "(allow process-exec process-fork)".to_owned(),
        "(allow signal process-info* (target same-sandbox))".to_owned(),
        "(allow sysctl-read)".to_owned(),
        "(allow pseudo-tty)".to_owned(),
        "(allow ipc-posix-shm ipc-posix-sem)".to_owned(),
        "(allow file-read*)".to_owned(),
    ];
    lines.extend(DEVICES.iter().map(|path| format!("(allow file-write* (literal \"{path}\"))")));
    lines.push(r#"(allow file-read* file-write* file-ioctl (regex #"^/dev/(ptmx|ttys[0-9]+)$"))"#.to_owned());
    match files {
        Some(files) => lines.extend(file_rules(files)),
        None => lines.push("(allow file-write*)".to_owned()),
    }
    lines.extend(
        proxy_ports.iter().map(|port| format!("(allow network-outbound (remote ip \"localhost:{port}\"))")),
    );
    lines.extend(SERVICES.iter().map(|service| format!("(allow mach-lookup (global-name \"{service}\"))")));
    lines.join("\n") + "\n"
}

/// What is shut comes behind what is open, and so do the directories on the way to it: none may be renamed or removed,
/// or another could take its place (SB-3).
fn file_rules(files: &FileRules) -> Vec<String> {
    let rule = |verb: &str, path: &Path| format!("({verb} (subpath {}))", quoted(path));
    let mut lines: Vec<String> = files.roots.iter().map(|root| rule("allow file-write*", root)).collect();
    for path in &files.shut {
        lines.push(rule("deny file-write*", path));
        let is_inside = |dir: &&Path| files.roots.iter().any(|root| dir.starts_with(root));
        let parents = path.ancestors().skip(1).take_while(is_inside);
        let pinned = parents.map(|dir| format!("(deny file-write-unlink (literal {}))", quoted(dir)));
        lines.extend(pinned.filter(|line| !lines.contains(line)).collect::<Vec<_>>());
    }
    lines.extend(files.reopened.iter().map(|path| rule("allow file-write*", path)));
    lines.extend(files.unreadable.iter().map(|path| rule("deny file-read* file-write*", path)));
    lines.extend(files.readable.iter().map(|path| rule("allow file-read*", path)));
    lines
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn denied_paths_come_behind_allowed_ones_in_the_profile() {
        let files = FileRules {
            roots: vec!["/p".into(), "/t/s".into()],
            shut: vec!["/p/.git/hooks".into(), "/p/.git/config".into(), "/p/.mcp.json".into()],
            reopened: vec!["/p/.claude/worktrees".into()],
            unreadable: vec!["/home/a\"b".into(), "/home/c".into()],
            mixed: Vec::new(),
            readable: vec!["/home/c/shown".into()],
        };
        expect![[r#"
            (version 1)
            (deny default)
            (allow process-exec process-fork)
            (allow signal process-info* (target same-sandbox))
            (allow sysctl-read)
            (allow pseudo-tty)
            (allow ipc-posix-shm ipc-posix-sem)
            (allow file-read*)
            (allow file-write* (literal "/dev/null"))
            (allow file-write* (literal "/dev/zero"))
            (allow file-write* (literal "/dev/tty"))
            (allow file-write* (literal "/dev/dtracehelper"))
            (allow file-read* file-write* file-ioctl (regex #"^/dev/(ptmx|ttys[0-9]+)$"))
            (allow file-write* (subpath "/p"))
            (allow file-write* (subpath "/t/s"))
            (deny file-write* (subpath "/p/.git/hooks"))
            (deny file-write-unlink (literal "/p/.git"))
            (deny file-write-unlink (literal "/p"))
            (deny file-write* (subpath "/p/.git/config"))
            (deny file-write* (subpath "/p/.mcp.json"))
            (allow file-write* (subpath "/p/.claude/worktrees"))
            (deny file-read* file-write* (subpath "/home/a\"b"))
            (deny file-read* file-write* (subpath "/home/c"))
            (allow file-read* (subpath "/home/c/shown"))
            (allow network-outbound (remote ip "localhost:3128"))
            (allow network-outbound (remote ip "localhost:1080"))
            (allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
            (allow mach-lookup (global-name "com.apple.system.logger"))
            (allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))
            (allow mach-lookup (global-name "com.apple.CoreServices.coreservicesd"))
        "#]]
        .assert_eq(&profile(Some(&files), &[3128, 1080]));
    }

    #[test]
    fn without_rules_for_files_only_the_network_is_held() {
        let text = profile(None, &[]);
        assert!(text.contains("(allow file-write*)\n") && !text.contains("network-outbound"), "{text}");
    }
}
