//! The profile of a sandbox on macOS, for `sandbox-exec`. It is made and compiled, and has not been tried on a Mac: no
//! level is claimed there.

use std::fmt::Write;
use std::path::Path;

use crate::policy::FileRules;

/// What programs look up of the system.
const SERVICES: &[&str] = &[
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.logger",
    "com.apple.SystemConfiguration.configd",
    "com.apple.CoreServices.coreservicesd",
];

/// Returns the profile: everything is refused but what is named.
pub(crate) fn profile(files: &FileRules, proxy_ports: &[u16]) -> String {
    let mut text = String::from(
        "(version 1)\n(deny default)\n(allow process-exec process-fork signal (target same-sandbox))\n\
         (allow sysctl-read)\n(allow file-read*)\n(allow file-write* (literal \"/dev/null\") (literal \"/dev/tty\"))\n",
    );
    let mut rule = |verb: &str, path: &Path| {
        // A line that cannot be written to a text does not exist.
        writeln!(text, "({verb} (subpath {}))", quoted(path)).ok();
    };
    files.roots.iter().for_each(|root| rule("allow file-write*", root));
    files.shut.iter().for_each(|path| rule("deny file-write*", path));
    files.reopened.iter().for_each(|path| rule("allow file-write*", path));
    files.unreadable.iter().for_each(|path| rule("deny file-read*", path));
    files.readable.iter().for_each(|path| rule("allow file-read*", path));
    for port in proxy_ports {
        writeln!(text, "(allow network-outbound (remote ip \"localhost:{port}\"))").ok();
    }
    for service in SERVICES {
        writeln!(text, "(allow mach-lookup (global-name \"{service}\"))").ok();
    }
    text
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shut_comes_behind_what_is_open() {
        let files = FileRules {
            roots: vec!["/p".into()],
            shut: vec!["/p/.git/hooks".into()],
            unreadable: vec!["/home/a\"b".into()],
            ..FileRules::default()
        };
        let text = profile(&files, &[3128]);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing in {text}"));
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        assert!(
            at("(allow file-write* (subpath \"/p\"))") < at("(deny file-write* (subpath \"/p/.git/hooks\"))")
        );
        at("(deny file-read* (subpath \"/home/a\\\"b\"))");
        at("localhost:3128");
    }
}
