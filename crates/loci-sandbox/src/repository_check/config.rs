//! A configuration of git made anew: settings that are on a list, with values that are what they must be.
//!
//! Whatever this reads otherwise than git would cannot hurt: only what was understood, and is on the list, is written, as
//! this writes it. A URL is kept where it leads to another machine: a push into a directory runs the hooks in it.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::Chars;

/// The configuration of a repository that has none.
pub(crate) const MINIMAL_CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n";

/// The longest value that is kept.
const MOST_CHARS: usize = 1000;

/// What is kept of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HarmlessConfig {
    /// As it is written.
    pub(crate) text: String,
    /// The settings that are left out, by their names; `line 7` where one could not be read.
    pub(crate) left_out: Vec<String>,
}

impl HarmlessConfig {
    /// Makes it of what a command has written.
    pub(crate) fn new(text: &str) -> Self {
        Self::beside(text, "")
    }

    /// Makes it of what a command has written where there was a configuration before, whose settings are somebody's own.
    pub(crate) fn beside(text: &str, before: &str) -> Self {
        let settings = parse(text);
        let own: Vec<Setting> = parse(before).into_iter().flatten().collect();
        let understood: Vec<&Setting> = settings.iter().filter_map(|it| it.as_ref().ok()).collect();
        let remotes: BTreeSet<&str> = understood
            .iter()
            .filter(|it| it.is("remote", "url") && it.value.as_deref().is_some_and(leads_to_another_machine))
            .filter_map(|it| it.subsection.as_deref())
            .collect();
        let mut kept = Self::default();
        let mut section = None;
        for setting in &settings {
            match setting {
                Ok(setting) if setting.is_harmless(&remotes) || own.contains(setting) => {
                    let header = setting.header();
                    if section.as_ref() != Some(&header) {
                        kept.line(&header);
                        section = Some(header);
                    }
                    kept.line(&format!("\t{}", setting.line()));
                }
                Ok(setting) => kept.leave_out(setting.name()),
                Err(line) => kept.leave_out(format!("line {line}")),
            }
        }
        kept
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn leave_out(&mut self, name: String) {
        if !self.left_out.contains(&name) {
            self.left_out.push(name);
        }
    }
}

/// A setting: `[section "subsection"] key = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    section: String,
    subsection: Option<String>,
    key: String,
    /// None where only the key is there, which means yes.
    value: Option<String>,
}

impl Setting {
    fn is(&self, section: &str, key: &str) -> bool {
        self.section == section && self.key == key
    }

    /// Returns its name, for people.
    fn name(&self) -> String {
        let Self { section, subsection, key, .. } = self;
        subsection.as_ref().map_or_else(|| format!("{section}.{key}"), |sub| format!("{section}.{sub}.{key}"))
    }

    fn header(&self) -> String {
        let quoted = self.subsection.as_deref().map(quote);
        quoted.map_or_else(|| format!("[{}]", self.section), |sub| format!("[{} {sub}]", self.section))
    }

    fn line(&self) -> String {
        let Self { key, value, .. } = self;
        value.as_deref().map_or_else(|| key.clone(), |value| format!("{key} = {}", quote(value)))
    }

    fn is_harmless(&self, remotes: &BTreeSet<&str>) -> bool {
        let value = self.value.as_deref();
        let is_text = |it: &str| it.chars().count() <= MOST_CHARS && !it.chars().any(char::is_control);
        if !value.into_iter().chain(self.subsection.as_deref()).all(is_text) {
            return false;
        }
        match self.subsection.as_deref() {
            None => is_harmless_value(&self.section, &self.key, value),
            Some(name) => match self.section.as_str() {
                "remote" => {
                    is_name(name) && remotes.contains(name) && is_harmless_of_remote(&self.key, value)
                }
                "branch" => is_harmless_of_branch(&self.key, value, remotes),
                _ => false,
            },
        }
    }
}

fn is_harmless_value(section: &str, key: &str, value: Option<&str>) -> bool {
    let one_of =
        |words: &[&str]| value.is_some_and(|it| words.iter().any(|word| word.eq_ignore_ascii_case(it)));
    match (section, key) {
        ("core", "filemode" | "ignorecase" | "precomposeunicode" | "symlinks" | "quotepath")
        | ("push", "autosetupremote" | "followtags")
        | ("fetch", "prune") => is_bool(value),
        ("core", "repositoryformatversion") => one_of(&["0", "1"]),
        ("core", "bare") | ("commit" | "tag", "gpgsign") => is_bool(value) && !is_true(value),
        ("core", "logallrefupdates") => is_bool(value) || one_of(&["always"]),
        ("core", "autocrlf") => is_bool(value) || one_of(&["input"]),
        ("core", "eol") => one_of(&["lf", "crlf", "native"]),
        ("user", "name" | "email") => value.is_some(),
        ("init", "defaultbranch") => value.is_some_and(is_name),
        ("extensions", "objectformat") => one_of(&["sha1", "sha256"]),
        ("extensions", "refstorage") => one_of(&["files", "reftable"]),
        ("pull", "rebase") => is_bool(value),
        ("pull", "ff") => is_bool(value) || one_of(&["only"]),
        ("push", "default") => one_of(&["nothing", "current", "upstream", "simple", "matching"]),
        ("gc", "auto") => value.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit())),
        _ => false,
    }
}

fn is_harmless_of_remote(key: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return false };
    match key {
        "url" => leads_to_another_machine(value),
        // What is fetched is kept beside, never in place of, branches of one's own.
        "fetch" => {
            let sides = value.strip_prefix('+').unwrap_or(value).split_once(':');
            let is_remote = |to: &str| to.starts_with("refs/remotes/") || to.starts_with("refs/tags/");
            !value.contains(' ') && sides.is_some_and(|(from, to)| from.starts_with("refs/") && is_remote(to))
        }
        "tagopt" => ["--no-tags", "--tags"].contains(&value),
        "prune" => is_bool(Some(value)),
        _ => false,
    }
}

fn is_harmless_of_branch(key: &str, value: Option<&str>, remotes: &BTreeSet<&str>) -> bool {
    let Some(value) = value else { return false };
    match key {
        // Anything else would be a URL, or a directory.
        "remote" => value == "." || is_name(value) && remotes.contains(value),
        "merge" => value.starts_with("refs/heads/") && !value.contains(' '),
        "rebase" => is_bool(Some(value)),
        _ => false,
    }
}

/// Tells whether a URL leads to another machine, by a protocol of git's own.
fn leads_to_another_machine(url: &str) -> bool {
    let is_host = |it: &str| it.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return false;
    }
    let after_scheme = ["https://", "http://", "ssh://", "git://"].iter().find_map(|it| url.strip_prefix(it));
    if let Some(rest) = after_scheme {
        let authority = rest.split('/').next().unwrap_or_default();
        return !authority.starts_with('-') && is_host(authority.rsplit('@').next().unwrap_or_default());
    }
    // `user@host:path`, as ssh has it.
    let Some((place, path)) = url.split_once(':') else { return false };
    let is_word = |it: &str| it.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let is_place =
        |(user, host): (&str, &str)| is_host(user) && is_host(host) && is_word(user) && is_word(host);
    place.split_once('@').is_some_and(is_place) && !path.starts_with(':')
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c))
        && !text.contains("..")
}

fn is_bool(value: Option<&str>) -> bool {
    let words = ["true", "yes", "on", "1", "false", "no", "off", "0"];
    value.is_none_or(|it| words.iter().any(|word| word.eq_ignore_ascii_case(it)))
}

fn is_true(value: Option<&str>) -> bool {
    value.is_none_or(|it| ["true", "yes", "on", "1"].iter().any(|word| word.eq_ignore_ascii_case(it)))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads a configuration: settings, and the numbers of the lines that are none.
fn parse(text: &str) -> Vec<Result<Setting, usize>> {
    let mut reader = Reader { chars: text.trim_start_matches('\u{feff}').chars().peekable(), line: 1 };
    let (mut found, mut section) = (Vec::new(), None);
    while let Some(next) = reader.skip_to_word() {
        let line = reader.line;
        let read = match next {
            '[' => reader.header().map(|header| section = Some(header)),
            _ => match (reader.key_and_value(), &section) {
                (Some((key, value)), Some((section, subsection))) => {
                    let (section, subsection) = (String::clone(section), Option::clone(subsection));
                    found.push(Ok(Setting { section, subsection, key, value }));
                    Some(())
                }
                _ => None,
            },
        };
        if read.is_none() {
            found.push(Err(line));
            reader.skip_line();
            if next == '[' {
                // What stands below a header that was not understood belongs to nothing that is known.
                section = None;
            }
        }
    }
    found
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn skip_line(&mut self) {
        while self.chars.peek().is_some_and(|c| *c != '\n') {
            self.next();
        }
    }

    fn skip_spaces(&mut self) {
        while self.chars.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\r')) {
            self.next();
        }
    }

    /// Goes on to what is neither space nor comment, and returns its first letter.
    fn skip_to_word(&mut self) -> Option<char> {
        loop {
            match self.chars.peek()? {
                '#' | ';' => self.skip_line(),
                c if c.is_whitespace() => {
                    self.next();
                }
                other => return Some(*other),
            }
        }
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let mut word = String::new();
        while let Some(c) = self.chars.next_if(|c| is_part(*c)) {
            word.push(c.to_ascii_lowercase());
        }
        word
    }

    /// Reads `[section]`, `[section "subsection"]` or `[section.subsection]`.
    fn header(&mut self) -> Option<(String, Option<String>)> {
        self.next();
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
        self.skip_spaces();
        let subsection = match self.next()? {
            ']' => {
                let (section, subsection) = name.split_once('.').unwrap_or((&name, ""));
                let subsection = (!subsection.is_empty()).then(|| subsection.to_owned());
                return (!section.is_empty()).then(|| (section.to_owned(), subsection));
            }
            '"' => self.quoted()?,
            _ => return None,
        };
        (self.next()? == ']' && !name.is_empty()).then_some((name, Some(subsection)))
    }

    fn quoted(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                '"' => return Some(text),
                '\n' => return None,
                '\\' => text.push(self.next().filter(|c| *c != '\n')?),
                other => text.push(other),
            }
        }
    }

    fn key_and_value(&mut self) -> Option<(String, Option<String>)> {
        let key = self.word(|c| c.is_ascii_alphanumeric() || c == '-');
        self.skip_spaces();
        if key.is_empty() {
            return None;
        }
        match self.chars.peek() {
            None | Some('\n' | '#' | ';') => Some((key, None)),
            Some('=') => {
                self.next();
                self.skip_spaces();
                Some((key, Some(self.value()?)))
            }
            Some(_) => None,
        }
    }

    /// Reads a value to the end of its line, which a backslash carries on.
    fn value(&mut self) -> Option<String> {
        let (mut text, mut n_kept, mut is_quoted) = (String::new(), 0, false);
        loop {
            match self.chars.peek() {
                None | Some('\n') if is_quoted => return None,
                None | Some('\n') => break,
                Some('#' | ';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some(_) => {}
            }
            match self.next()? {
                '"' => is_quoted = !is_quoted,
                '\\' => match self.next()? {
                    '\n' => continue,
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    c @ ('"' | '\\') => text.push(c),
                    _ => return None,
                },
                c if c.is_whitespace() && !is_quoted => {
                    // Spaces at the end are none of it.
                    text.push(c);
                    continue;
                }
                other => text.push(other),
            }
            n_kept = text.len();
        }
        text.truncate(n_kept);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is kept, a line each, and what is left out.
    fn made(text: &str) -> (Vec<String>, Vec<String>) {
        let HarmlessConfig { text, left_out } = HarmlessConfig::new(text);
        (text.lines().map(|it| it.trim().to_owned()).collect(), left_out)
    }

    #[test]
    fn configurations_that_git_writes_are_kept_whole() {
        let fresh = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";
        let cloned = "[remote \"origin\"]\n\turl = https://example.com/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A \"B\" C\n\temail = a@b\n";
        let (lines, left_out) = made(&format!("{fresh}{cloned}"));
        assert_eq!(left_out, Vec::<String>::new());
        assert_eq!(
            lines,
            [
                "[core]",
                "repositoryformatversion = \"0\"",
                "filemode = \"true\"",
                "bare = \"false\"",
                "logallrefupdates = \"true\"",
                "[remote \"origin\"]",
                "url = \"https://example.com/a/b.git\"",
                "fetch = \"+refs/heads/*:refs/remotes/origin/*\"",
                "[branch \"main\"]",
                "remote = \"origin\"",
                "merge = \"refs/heads/main\"",
                "[user]",
                "name = \"A B C\"",
                "email = \"a@b\"",
            ]
        );
    }

    #[test]
    fn settings_that_run_something_or_lead_elsewhere_are_left_out_by_name() {
        for (text, name) in [
            ("[core]\nfsmonitor = touch x", "core.fsmonitor"),
            ("[core] hooksPath = h", "core.hookspath"),
            ("[CORE]\nsshCommand = \"x\"", "core.sshcommand"),
            ("[core]\neditor = x", "core.editor"),
            ("[core]\npager = x", "core.pager"),
            ("[core]\nworktree = /", "core.worktree"),
            ("[core]\nbare = true", "core.bare"),
            ("[core]\nbare", "core.bare"),
            ("[core]\nattributesFile = x", "core.attributesfile"),
            ("[core]\nexcludesFile = x", "core.excludesfile"),
            ("[core]\naskPass = x", "core.askpass"),
            ("[core]\ngitProxy = x", "core.gitproxy"),
            ("[core]\nalternateRefsCommand = x", "core.alternaterefscommand"),
            ("[include]\npath = x", "include.path"),
            ("[includeIf \"gitdir:/\"]\npath = x", "includeif.gitdir:/.path"),
            ("[alias]\nst = !x", "alias.st"),
            ("[filter \"a\"]\nclean = x", "filter.a.clean"),
            ("[diff \"a\"]\ntextconv = x", "diff.a.textconv"),
            ("[diff]\nexternal = x", "diff.external"),
            ("[merge \"a\"]\ndriver = x", "merge.a.driver"),
            ("[credential]\nhelper = !x", "credential.helper"),
            ("[gpg]\nprogram = x", "gpg.program"),
            ("[commit]\ngpgsign = true", "commit.gpgsign"),
            ("[url \"a\"]\ninsteadOf = b", "url.a.insteadof"),
            ("[http]\nproxy = x", "http.proxy"),
            ("[protocol \"ext\"]\nallow = always", "protocol.ext.allow"),
            ("[extensions]\nworktreeConfig = true", "extensions.worktreeconfig"),
            ("[submodule \"a\"]\nupdate = !x", "submodule.a.update"),
            ("[remote \"o\"]\nuploadpack = x", "remote.o.uploadpack"),
            ("[remote \"o\"]\nurl = https://a/b\nvcs = x", "remote.o.vcs"),
            ("[remote \"o\"]\nurl = https://a/b\nfetch = +refs/heads/*:refs/heads/*", "remote.o.fetch"),
            ("[remote \"o\"]\nfetch = +refs/heads/*:refs/remotes/o/*", "remote.o.fetch"),
            ("[remote \"../o\"]\nurl = https://a/b", "remote.../o.url"),
            ("[branch \"m\"]\nremote = ./evil", "branch.m.remote"),
            ("[branch \"m\"]\nremote = evil", "branch.m.remote"),
            ("[remote]\npushDefault = ./evil", "remote.pushdefault"),
            ("[user]\nname = \"a\\nb\"", "user.name"),
            ("[user]\nname", "user.name"),
            ("[core\nfilemode = true", "line 1"),
            ("filemode = true", "line 1"),
            ("[core]\nfile mode", "line 2"),
            ("[core]\neol = \"lf", "line 2"),
            ("[core \"x\"]\nfilemode = true", "core.x.filemode"),
        ] {
            let (lines, left_out) = made(text);
            assert!(left_out.iter().any(|it| it == name), "{text}: {left_out:?}");
            assert!(
                !lines.iter().any(|it| it.contains("evil") || it.contains(" = \"x\"")),
                "{text}: {lines:?}"
            );
        }
    }

    #[test]
    fn only_urls_of_other_machines_are_kept() {
        for (url, expected) in [
            ("https://example.com/a.git", true),
            ("https://user:token@example.com:8443/a", true),
            ("ssh://git@example.com/a", true),
            ("git@example.com:a/b.git", true),
            ("http://[::1]/a", true),
            ("/srv/a.git", false),
            ("./a", false),
            ("a", false),
            ("file:///srv/a", false),
            ("ext::sh -c x", false),
            ("ext::x", false),
            ("https::x", false),
            ("ssh://-oProxyCommand=x/a", false),
            ("ssh://a@-oProxyCommand=x/a", false),
            ("-a@b:c", false),
            ("a@-b:c", false),
            ("a@b::c", false),
            ("example.com:a", false),
            ("https:///a", false),
        ] {
            let config = format!("[remote \"o\"]\nurl = {url}");
            let kept = HarmlessConfig::new(&config).text.contains("url = ");
            assert_eq!(kept, expected, "{url}");
        }
    }

    #[test]
    fn lines_are_read_as_git_reads_them() {
        for (text, value) in [
            ("[user] name = a", "a"),
            ("[user]name=a ; b", "a"),
            ("[user]\r\nname = a\r\n", "a"),
            ("[user]\nname = a # b", "a"),
            ("[user]\nname = \"a # b\" ", "a # b"),
            ("[user]\nname = a\\\n b", "a b"),
            ("[user]\nname = a\\\\b", "a\\\\b"),
            ("# [core]\n; x\n[USER]\n\tNAME = a  b\t", "a  b"),
        ] {
            let (lines, left_out) = made(text);
            assert_eq!(
                (lines[1].as_str(), left_out.len()),
                (format!("name = \"{value}\"").as_str(), 0),
                "{text}"
            );
        }
    }
}
