//! `user.name` of git's configuration, read from its files.
//!
//! Files that include others, or continue lines, are git's to read.

use std::path::{Path, PathBuf};

use loci_stdx::{Env, read_regular_to_string};

use super::command::find_git;

/// What the files say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UserName {
    /// They name the user.
    Named(String),
    /// No file does.
    Unnamed,
    /// Git had better be asked.
    Unclear,
}

/// Reads the user's name as git would find it: the repository's own, the user's, the machine's.
pub(super) fn user_name(common: &Path, env: &Env) -> UserName {
    if std::fs::symlink_metadata(common.join("config.worktree")).is_ok() {
        return UserName::Unclear;
    }
    let xdg = env.vars.non_empty("XDG_CONFIG_HOME").map_or_else(|| env.home.join(".config"), PathBuf::from);
    for file in [common.join("config"), env.home.join(".gitconfig"), xdg.join("git/config")] {
        match read_name(&file) {
            UserName::Unnamed => {}
            found => return found,
        }
    }
    system_config(env).map_or(UserName::Unclear, |file| read_name(&file))
}

/// Returns the machine's file, which depends on where git was installed.
fn system_config(env: &Env) -> Option<PathBuf> {
    match find_git(&env.vars)?.parent()?.to_str()? {
        "/usr/bin" | "/bin" => Some("/etc/gitconfig".into()),
        dir @ ("/usr/local/bin" | "/opt/homebrew/bin") => {
            Some(Path::new(dir).parent()?.join("etc/gitconfig"))
        }
        _ => None,
    }
}

fn read_name(path: &Path) -> UserName {
    match read_regular_to_string(path) {
        Ok(text) => parse_name(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => UserName::Unnamed,
        Err(_) => UserName::Unclear,
    }
}

fn parse_name(text: &str) -> UserName {
    let mut found = UserName::Unnamed;
    let mut is_user = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let Some((name, rest)) = section.split_once(']') else { return UserName::Unclear };
            let name = name.trim().to_ascii_lowercase();
            if name.starts_with("include") || !is_blank(rest) {
                return UserName::Unclear;
            }
            is_user = name == "user";
        } else if line.ends_with('\\') {
            return UserName::Unclear;
        } else if let Some(value) = assigned(line, "name").filter(|_| is_user) {
            found = match plain(value) {
                Some(value) => UserName::Named(value.to_owned()),
                None => return UserName::Unclear,
            };
        }
    }
    found
}

fn is_blank(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with(['#', ';'])
}

/// Returns what a line sets a key to.
fn assigned<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (name, value) = line.split_once('=')?;
    name.trim().eq_ignore_ascii_case(key).then(|| value.trim())
}

/// Returns a value that means itself; one with escapes, or quotes in the middle, is git's to read.
fn plain(value: &str) -> Option<&str> {
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    (!inner.contains(['"', '\\', '#', ';']) && !inner.is_empty()).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_files_are_read_and_others_left_to_git() {
        let named = |name: &str| UserName::Named(name.to_owned());
        for (text, expected) in [
            ("", UserName::Unnamed),
            ("[user]\n\tname = A Person\n\temail = a@b\n", named("A Person")),
            ("[User] # me\n  NAME=\"A Person\"\n", named("A Person")),
            ("[user]\nname = a\n[core]\nname = b\n", named("a")),
            ("[user]\nname = a\n[user]\nname = b\n", named("b")),
            ("[user \"x\"]\nname = a\n", UserName::Unnamed),
            ("[user]\nname = a # b\n", UserName::Unclear),
            ("[user]\nname = \"a\\\"b\"\n", UserName::Unclear),
            ("[include]\npath = other\n", UserName::Unclear),
            ("[includeIf \"gitdir:~/work/\"]\npath = other\n", UserName::Unclear),
            ("[core]\nx = a\\\n  b\n", UserName::Unclear),
            ("[user] name = a\n", UserName::Unclear),
            ("[user\nname = a\n", UserName::Unclear),
        ] {
            assert_eq!(parse_name(text), expected, "{text}");
        }
    }
}
