//! Whether an entry of an administrator's list is about the source of a marketplace.
//!
//! The two lists compare in different ways. What is allowed is meant to the letter: another branch, directory or spelling of
//! an address is another source. What is blocked is meant whatever it is called: every spelling of the address of a
//! repository, and all of its branches where none is named. An entry that nobody understands allows nothing and blocks
//! everything.

use serde_json::Value;

/// Tells whether an entry allows a source.
pub(super) fn allows(entry: &Value, source: &Value) -> bool {
    let same = |key: &str| text(entry, key) == text(source, key);
    let is_named = |key: &str| text(entry, key).is_some() && same(key);
    let is_kind = same("source");
    match text(entry, "source") {
        Some("github") => match owner_wildcard(entry) {
            Some(owner) => {
                let is_inner = text(entry, "path").is_none() || same("path");
                is_kind && same("ref") && is_inner && owner_of(source) == Some(owner)
            }
            None => is_kind && is_named("repo") && same("ref") && same("path"),
        },
        Some("git") => is_kind && is_named("url") && same("ref") && same("path"),
        Some("url") => is_kind && is_named("url"),
        Some("npm") => is_kind && is_named("package"),
        Some("file" | "directory") => is_kind && is_named("path"),
        Some("skills-dir") => is_kind,
        Some("hostPattern") => {
            let host = host(source, HostForms::OfGit);
            host.is_some_and(|host| is_match(entry, "hostPattern", &host) == Some(true))
        }
        Some("pathPattern") => {
            local_path(source).is_some_and(|path| is_match(entry, "pathPattern", path) == Some(true))
        }
        _ => false,
    }
}

/// Tells whether an entry blocks a source.
pub(super) fn blocks(entry: &Value, source: &Value) -> bool {
    let same = |key: &str| text(entry, key).is_some() && text(entry, key) == text(source, key);
    let same_if_said = |key: &str| text(entry, key).is_none_or(|said| text(source, key) == Some(said));
    let is_part = || same_if_said("ref") && same_if_said("path");
    let is_kind = text(entry, "source") == text(source, "source");
    match text(entry, "source") {
        Some("github") => match (owner_wildcard(entry), github_repository(source)) {
            (Some(owner), Some(repo)) => {
                let is_owners = repo.split_once('/').is_some_and(|(it, _)| it.eq_ignore_ascii_case(owner));
                is_owners && is_part()
            }
            (None, Some(repo)) => github_repository(entry).as_ref() == Some(&repo) && is_part(),
            (_, None) => false,
        },
        Some("git" | "url") => is_same_address(entry, source) && is_part(),
        Some("npm") => is_kind && same("package"),
        Some("file" | "directory") => is_kind && same("path"),
        Some("skills-dir") => is_kind,
        Some("hostPattern") => {
            let host = host(source, HostForms::Any);
            host.is_some_and(|host| is_match(entry, "hostPattern", &host) != Some(false))
        }
        Some("pathPattern") => {
            local_path(source).is_some_and(|path| is_match(entry, "pathPattern", path) != Some(false))
        }
        _ => true,
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// Returns whose repositories an entry means, all of them.
fn owner_wildcard(entry: &Value) -> Option<&str> {
    let owner = text(entry, "repo")?.strip_suffix("/*")?;
    (!owner.is_empty() && !owner.contains(['*', '/'])).then_some(owner)
}

fn owner_of(source: &Value) -> Option<&str> {
    Some(text(source, "repo")?.split_once('/')?.0)
}

/// Returns the repository on GitHub that a source leads to, in small letters, whichever way it is written.
fn github_repository(source: &Value) -> Option<String> {
    let repo = match text(source, "source") {
        Some("github") => text(source, "repo")?.to_owned(),
        Some("git" | "url") => {
            let address = text(source, "url")?;
            let host = host_of(address, HostForms::Any)?;
            if !matches!(host.as_str(), "github.com" | "www.github.com" | "ssh.github.com") {
                return None;
            }
            repository_path(address)?
        }
        _ => return None,
    };
    Some(trimmed_address(&repo).to_ascii_lowercase())
}

/// Returns what of an address follows its host.
fn repository_path(address: &str) -> Option<String> {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => address.split_once(':')?.1,
    };
    Some(path.trim_start_matches('/').to_owned())
}

/// Tells whether two addresses lead to one place.
fn is_same_address(entry: &Value, source: &Value) -> bool {
    let is_address = matches!(text(source, "source"), Some("git" | "url"));
    let is_same = match (text(entry, "url"), text(source, "url")) {
        (Some(one), Some(other)) => {
            is_address && trimmed_address(one).eq_ignore_ascii_case(trimmed_address(other))
        }
        _ => false,
    };
    is_same || github_repository(entry).is_some_and(|repo| github_repository(source) == Some(repo))
}

/// Takes away what an address may end with or not.
fn trimmed_address(address: &str) -> &str {
    let address = address.split('#').next().unwrap_or(address).trim_end_matches('/');
    address.strip_suffix(".git").unwrap_or(address).trim_end_matches('/')
}

/// Which ways of writing an address are looked at for a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostForms {
    /// Those that git takes for a host, without a doubt.
    OfGit,
    /// All that might name one.
    Any,
}

fn host(source: &Value, forms: HostForms) -> Option<String> {
    match text(source, "source")? {
        "github" => Some("github.com".to_owned()),
        "git" | "url" => host_of(text(source, "url")?, forms),
        _ => None,
    }
}

/// Returns the host of an address: `scheme://user@host:port/path`, or `user@host:path`.
fn host_of(address: &str, forms: HostForms) -> Option<String> {
    // What programs read in different ways has no host that could be relied on.
    let is_odd = address.contains(|c: char| c == '\\' || c.is_whitespace() || c.is_control());
    if is_odd && forms == HostForms::OfGit {
        return None;
    }
    let host = match address.split_once("://") {
        Some((_, rest)) => {
            let authority = rest.split(['/', '?', '#']).next()?;
            let host = authority.rsplit('@').next()?;
            host.split(':').next()?
        }
        None => {
            let (before, _) = address.split_once(':').filter(|(before, _)| !before.contains('/'))?;
            match before.rsplit_once('@') {
                Some((_, host)) => host,
                None if forms == HostForms::Any => before,
                None => return None,
            }
        }
    };
    Some(host.to_ascii_lowercase()).filter(|host| !host.is_empty())
}

fn local_path(source: &Value) -> Option<&str> {
    matches!(text(source, "source"), Some("file" | "directory")).then(|| text(source, "path"))?
}

/// Tells whether the pattern of an entry is found in a text; none where it is no pattern.
fn is_match(entry: &Value, key: &str, text_: &str) -> Option<bool> {
    fancy_regex::Regex::new(text(entry, key)?).ok()?.is_match(text_).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn github(repo: &str) -> Value {
        json!({"source": "github", "repo": repo})
    }

    fn git(url: &str) -> Value {
        json!({"source": "git", "url": url})
    }

    fn host(pattern: &str) -> Value {
        json!({"source": "hostPattern", "hostPattern": pattern})
    }

    fn path(pattern: &str) -> Value {
        json!({"source": "pathPattern", "pathPattern": pattern})
    }

    #[test]
    fn what_is_allowed_is_meant_to_the_letter() {
        let with = |mut value: Value, key: &str, text: &str| {
            value[key] = json!(text);
            value
        };
        let dir = json!({"source": "directory", "path": "/opt/approved/m"});
        for (entry, source, is_allowed) in [
            (github("acme/tools"), github("acme/tools"), true),
            (github("acme/tools"), github("Acme/tools"), false),
            (github("acme/tools"), with(github("acme/tools"), "ref", "main"), false),
            (with(github("acme/tools"), "ref", "main"), github("acme/tools"), false),
            (with(github("acme/tools"), "ref", "v2"), with(github("acme/tools"), "ref", "v2"), true),
            (github("acme/tools"), with(github("acme/tools"), "path", "m"), false),
            (github("acme/tools"), git("https://github.com/acme/tools.git"), false),
            (github("acme/*"), github("acme/tools"), true),
            (github("acme/*"), github("ACME/tools"), false),
            (github("acme/*"), github("acme-x/tools"), false),
            (github("acme/*"), with(github("acme/tools"), "ref", "main"), false),
            (github("acme/*"), with(github("acme/tools"), "path", "m"), true),
            (github("*/tools"), github("acme/tools"), false),
            (github("*"), github("acme/tools"), false),
            (git("https://g.example/t.git"), git("https://g.example/t.git"), true),
            (git("https://g.example/t.git"), git("https://g.example/t"), false),
            (host(r"^git\.example\.com$"), git("https://git.example.com/a/b.git"), true),
            (host(r"^git\.example\.com$"), git("ssh://git@git.example.com:2222/a/b"), true),
            (host(r"^git\.example\.com$"), git("git@git.example.com:a/b.git"), true),
            (host(r"^git\.example\.com$"), git("git.example.com:a/b.git"), false),
            (host(r"^git\.example\.com$"), git("https://evil.example/git.example.com"), false),
            (host(r"^git\.example\.com$"), git("https://git.example.com@evil.example/x"), false),
            (host(r"^git\.example\.com$"), git("https://evil.example\\@git.example.com/x"), false),
            (host("^github.com$"), github("acme/tools"), true),
            (host(".*"), dir.clone(), false),
            (host("["), github("acme/tools"), false),
            (path("^/opt/approved/"), dir.clone(), true),
            (path("^/opt/approved/"), json!({"source": "file", "path": "/tmp/m.json"}), false),
            (path(".*"), github("acme/tools"), false),
            (dir.clone(), dir, true),
            (json!({"source": "strange"}), json!({"source": "strange"}), false),
            (json!("acme/tools"), github("acme/tools"), false),
        ] {
            assert_eq!(allows(&entry, &source), is_allowed, "{entry} {source}");
        }
    }

    #[test]
    fn what_is_blocked_is_meant_whatever_it_is_called() {
        let main = json!({"source": "github", "repo": "bad/tools", "ref": "main"});
        let dir = json!({"source": "directory", "path": "/opt/m"});
        for (entry, source, is_blocked) in [
            (github("bad/tools"), github("Bad/Tools"), true),
            (github("bad/tools"), main.clone(), true),
            (main, github("bad/tools"), false),
            (github("bad/tools"), git("https://github.com/bad/tools.git"), true),
            (github("bad/tools"), git("git@github.com:bad/tools"), true),
            (github("bad/tools"), git("ssh://git@github.com/bad/tools.git"), true),
            (github("bad/tools"), git("https://gitlab.com/bad/tools.git"), false),
            (github("bad/tools"), github("bad/tools-x"), false),
            (github("bad/*"), git("https://user@GitHub.com/Bad/x"), true),
            (github("bad/*"), github("badly/x"), false),
            (git("https://g.example/t"), git("https://g.example/t.git"), true),
            (git("https://github.com/bad/tools"), github("bad/tools"), true),
            (
                json!({"source": "url", "url": "https://gitlab.com/bad/tools"}),
                git("https://gitlab.com/bad/tools.git"),
                true,
            ),
            (host("evil"), git("evil.example:a/b"), true),
            (host("evil"), git("https://good.example/evil"), false),
            (host("["), github("a/b"), true),
            (host(".*"), dir.clone(), false),
            (path("^/opt"), dir.clone(), true),
            (path("^/srv"), dir.clone(), false),
            (json!({"source": "strange"}), dir.clone(), true),
            (json!({"source": "skills-dir"}), dir, false),
        ] {
            assert_eq!(blocks(&entry, &source), is_blocked, "{entry} {source}");
        }
    }
}
