//! git's configuration, read from its files: the user's name, and whether anything in it has a say in a plain status.
//!
//! Files that include others, or continue lines, are git's to read.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use loci_stdx::{Env, read_regular_to_string};

use super::command::find_git;

/// What each file says, the weakest first; nothing of one that is git's to read.
#[derive(Debug, Default)]
pub(super) struct GitConfig(Vec<Option<Vec<Setting>>>);

/// A file of the configuration is a pipe or a device: git would wait for it, so it is not asked anything.
#[derive(Debug)]
pub(super) struct Unreadable;

/// One line that sets a key.
#[derive(Debug)]
struct Setting {
    /// The section in lower case, without what is quoted behind it.
    section: String,
    has_subsection: bool,
    key: String,
    /// As it is written; a key that stands alone has none.
    value: Option<String>,
}

/// What the files say of the user's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UserName {
    /// They name the user.
    Named(String),
    /// No file does.
    Unnamed,
    /// Git had better be asked.
    Unclear,
}

/// What the files say about a status, where they are plain enough to tell it without git.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StatusConfig {
    /// Whether files may be kept otherwise than they lie in the working tree.
    pub(super) may_convert: bool,
    /// The user's own file of rules for all repositories, as it is named.
    pub(super) excludes_file: Option<String>,
}

/// Sections that say nothing about which files have changed, and which files there are.
const NO_MATTER: [&str; 61] = [
    "add",
    "advice",
    "alias",
    "am",
    "apply",
    "author",
    "bisect",
    "blame",
    "branch",
    "browser",
    "checkout",
    "clean",
    "clone",
    "color",
    "commit",
    "committer",
    "credential",
    "delta",
    "diff",
    "difftool",
    "fetch",
    "filter",
    "format",
    "gc",
    "github",
    "gitlab",
    "gpg",
    "gui",
    "help",
    "http",
    "https",
    "init",
    "instaweb",
    "interactive",
    "lfs",
    "log",
    "mailinfo",
    "mailmap",
    "maintenance",
    "man",
    "merge",
    "mergetool",
    "notes",
    "pack",
    "pager",
    "pretty",
    "protocol",
    "pull",
    "push",
    "rebase",
    "receive",
    "remote",
    "rerere",
    "safe",
    "sendemail",
    "sequence",
    "stash",
    "tag",
    "trailer",
    "url",
    "user",
];

impl GitConfig {
    /// Reads the files that git would: the machine's, the user's, the repository's own.
    pub(super) fn read(common: &Path, env: &Env) -> Result<Self, Unreadable> {
        let is_absent = |path: &PathBuf| std::fs::symlink_metadata(path).is_err();
        let worktree = is_absent(&common.join("config.worktree")).then(Vec::new);
        let files = [user_dir(env).join("config"), env.home.join(".gitconfig"), common.join("config")];
        let mut read = vec![system_config(env).map_or(Ok(None), |file| read_file(&file))?];
        for file in files {
            read.push(read_file(&file)?);
        }
        read.push(worktree);
        Ok(Self(read))
    }

    /// Leaves out what the machine's own file says, which is the first.
    #[cfg(test)]
    pub(super) fn without_machine(mut self) -> Self {
        self.0[0] = Some(Vec::new());
        self
    }

    /// Returns the user's name as git would find it.
    pub(super) fn user_name(&self) -> UserName {
        let is_name = |it: &&Setting| it.section == "user" && !it.has_subsection && it.key == "name";
        for file in self.0.iter().rev() {
            let Some(settings) = file else { return UserName::Unclear };
            if let Some(setting) = settings.iter().rfind(is_name) {
                let name = setting.plain_value();
                return name.map_or(UserName::Unclear, |name| UserName::Named(name.to_owned()));
            }
        }
        UserName::Unnamed
    }

    /// Returns what the files say about a status; nothing, where one has a say in it that only git knows.
    pub(super) fn status(&self) -> Option<StatusConfig> {
        let mut status = StatusConfig::default();
        for file in &self.0 {
            for setting in file.as_ref()? {
                if setting.section == "core" && !setting.has_subsection {
                    setting.apply_core(&mut status)?;
                } else if !NO_MATTER.contains(&setting.section.as_str()) {
                    return None;
                }
            }
        }
        Some(status)
    }
}

impl Setting {
    /// Takes in a key of `core`; nothing for one that is unknown, or set otherwise than almost everywhere.
    fn apply_core(&self, status: &mut StatusConfig) -> Option<()> {
        let is = |usual: &str| self.plain_value().is_some_and(|value| value.eq_ignore_ascii_case(usual));
        match self.key.as_str() {
            "repositoryformatversion" => is("0").then_some(()),
            "filemode" | "symlinks" => is("true").then_some(()),
            "bare" | "ignorecase" => is("false").then_some(()),
            "autocrlf" => {
                status.may_convert |= !is("false");
                Some(())
            }
            "eol" | "safecrlf" | "attributesfile" => {
                status.may_convert = true;
                Some(())
            }
            "excludesfile" => {
                status.excludes_file = Some(self.plain_value()?.to_owned());
                Some(())
            }
            // What a status compares is the content in the end, so how git saves itself looking does not matter; names that
            // would be quoted are git's to write; and what could run a command is switched off, or not asked.
            "abbrev" | "askpass" | "checkstat" | "commentchar" | "compression" | "editor" | "fsmonitor"
            | "fsync" | "fsyncmethod" | "fsyncobjectfiles" | "hookspath" | "logallrefupdates"
            | "loosecompression" | "notesref" | "pager" | "precomposeunicode" | "preloadindex"
            | "quotepath" | "sshcommand" | "trustctime" | "untrackedcache" | "whitespace" => Some(()),
            _ => None,
        }
    }

    fn plain_value(&self) -> Option<&str> {
        plain(self.value.as_deref()?)
    }
}

/// Returns the directory of the user's files other than `.gitconfig`.
pub(super) fn user_dir(env: &Env) -> PathBuf {
    let xdg = env.vars.non_empty("XDG_CONFIG_HOME").map_or_else(|| env.home.join(".config"), PathBuf::from);
    xdg.join("git")
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

fn read_file(path: &Path) -> Result<Option<Vec<Setting>>, Unreadable> {
    match read_regular_to_string(path) {
        Ok(text) => Ok(parse(&text)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(Some(Vec::new())),
            // What is no regular file.
            ErrorKind::InvalidInput => Err(Unreadable),
            _ => Ok(None),
        },
    }
}

fn parse(text: &str) -> Option<Vec<Setting>> {
    let mut settings = Vec::new();
    let mut section: Option<(String, bool)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix('[') {
            section = Some(section_head(rest)?);
        } else if line.ends_with('\\') {
            return None;
        } else if !is_blank(line) {
            let (section, has_subsection) = section.clone()?;
            let (key, value) = match line.split_once('=') {
                Some((key, value)) => (key, Some(value.trim().to_owned())),
                None => (line, None),
            };
            settings.push(Setting { section, has_subsection, key: key.trim().to_ascii_lowercase(), value });
        }
    }
    Some(settings)
}

/// Reads `name]` or `name "more"]`; nothing for one that brings other files in, or has a key behind it.
fn section_head(text: &str) -> Option<(String, bool)> {
    let (head, _) = text.rsplit_once(']').filter(|(_, rest)| is_blank(rest))?;
    let (name, more) = match head.split_once('"') {
        Some((name, more)) => (name, Some(more)),
        None => (head, None),
    };
    let name = name.trim().to_ascii_lowercase();
    // A section in the older spelling, or one with a bracket in its name or its comment, is git's to take apart.
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_closed = more.is_none_or(|more| more.ends_with('"') && !more.contains([']', '\\']));
    (is_plain && is_closed && !name.starts_with("include")).then_some((name, more.is_some()))
}

fn is_blank(rest: &str) -> bool {
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with(['#', ';'])
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
            ("[user]\nname\n", UserName::Unclear),
            ("[include]\npath = other\n", UserName::Unclear),
            ("[includeIf \"gitdir:~/work/\"]\npath = other\n", UserName::Unclear),
            ("[core]\nx = a\\\n  b\n", UserName::Unclear),
            ("[user] name = a\n", UserName::Unclear),
            ("[user\nname = a\n", UserName::Unclear),
            ("name = a\n", UserName::Unclear),
        ] {
            assert_eq!(GitConfig(vec![parse(text)]).user_name(), expected, "{text}");
        }
    }

    #[test]
    fn strongest_file_names_the_user_and_all_have_a_say_in_a_status() {
        let files = |texts: [&str; 2]| GitConfig(texts.into_iter().map(parse).collect());
        let (named, unclear) = ("[user]\nname = a\n", "[include]\npath = x\n");
        assert_eq!(files([unclear, named]).user_name(), UserName::Named("a".to_owned()));
        assert_eq!(files([named, unclear]).user_name(), UserName::Unclear);
        assert_eq!(files([named, ""]).user_name(), UserName::Named("a".to_owned()));
        assert_eq!(files([unclear, named]).status(), None);
        assert_eq!(files(["", named]).status(), Some(StatusConfig::default()));
    }

    #[test]
    fn settings_with_a_say_in_a_status_leave_it_to_git() {
        let usual = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
        let converting = StatusConfig { may_convert: true, ..StatusConfig::default() };
        let ignoring =
            StatusConfig { excludes_file: Some("~/.gitignore".to_owned()), ..StatusConfig::default() };
        for (text, expected) in [
            ("", Some(StatusConfig::default())),
            (usual, Some(StatusConfig::default())),
            (
                "[remote \"origin\"]\n\turl = x\n[branch \"main\"]\n\tremote = origin\n[color]\nui=auto\n",
                Some(StatusConfig::default()),
            ),
            ("[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n", Some(StatusConfig::default())),
            ("[core]\nautocrlf = false\n", Some(StatusConfig::default())),
            ("[core]\nautocrlf = input\n", Some(converting)),
            ("[core]\nexcludesfile = ~/.gitignore\n", Some(ignoring)),
            ("[core]\nfilemode = false\n", None),
            ("[core]\nbare\n", None),
            ("[core]\nrepositoryformatversion = 1\n", None),
            ("[core]\nsparseCheckout = true\n", None),
            ("[core]\nworktree = ../x\n", None),
            ("[status]\nshowUntrackedFiles = no\n", None),
            ("[extensions]\nobjectFormat = sha256\n", None),
            ("[submodule \"x\"]\nurl = y\n", None),
            ("[core.x]\nfilemode = false\n", None),
        ] {
            assert_eq!(GitConfig(vec![parse(text)]).status(), expected, "{text}");
        }
    }
}
