//! Paths of sandbox settings, and of permission rules, as the sandbox holds them: absolute, symlinks resolved, patterns
//! made into what they match.
//!
//! `/x` starts at the root, `~/x` at home, `./x` and `x` at the project, in the user's file at the config home; a slash, or
//! `/**`, at the end means nothing. Patterns that forbid are looked up when the session starts, in its directories first and
//! then in those that the patterns begin with, within bounds that are told when they are met; patterns that allow are left
//! out, and said.

use std::collections::{HashSet, VecDeque};
use std::path::{Component, Path, PathBuf};

use loci_core::path::normalise;
use loci_core::permission::{RuleList, RuleOrigin, RuleSource, Rulebook};
use loci_sandbox::policy::{PathSettings, PathSource};
use loci_settings::{Scope, Settings, Sourced};
use loci_tools::real_path;

use super::{SandboxWorld, specifier};
use crate::permissions::rules::anchor;

/// How many names are looked at for patterns, and how deep.
const MOST_NAMES: usize = 50_000;
const DEEPEST: usize = 12;
/// How many of them are hidden, or shut, one by one: each is a mount, which every command waits for.
const MOST_FOUND: usize = 1_000;

/// Returns what settings and rules say of paths, and what the user should know.
pub fn path_settings(world: &SandboxWorld<'_>, settings: &Settings) -> (PathSettings, Vec<String>) {
    let mut found = PathRules { world, warnings: Vec::new(), sources: Vec::new() };
    let sandbox = &settings.sandbox;
    let mut deny_read = found.forbidden("sandbox.filesystem.denyRead", &sandbox.deny_read);
    // Which file names a credential is not known here: one that is relative is shut wherever that file may start from.
    for start in [&world.env.cwd, &world.config_home] {
        let paths = sandbox.secret_files.iter().map(|text| found.lexical(text, start));
        let source = || "`sandbox.credentials.files`".to_owned();
        deny_read.extend(paths.map(|path| Forbidden { path, source: source() }));
    }
    let mut deny_write = found.forbidden("sandbox.filesystem.denyWrite", &sandbox.deny_write);
    for rule in &settings.permissions.deny {
        deny_read.extend(found.forbidden_by("Read", rule));
        deny_write.extend(found.forbidden_by("Edit", rule));
    }
    let mut allow_write = found.lexical_all(&sandbox.allow_write);
    allow_write.extend(settings.permissions.allow.iter().filter_map(|rule| found.allowed_dir(rule)));
    let allow_read = found.lexical_all(&sandbox.allow_read);
    let paths = PathSettings {
        allow_write: found.literal("sandbox.filesystem.allowWrite", allow_write),
        allow_read: found.literal("sandbox.filesystem.allowRead", allow_read),
        deny_write: found.matched(deny_write),
        deny_read: found.matched(deny_read),
        sources: std::mem::take(&mut found.sources),
    };
    // What reading and writing have in common is said once.
    let mut said = HashSet::new();
    found.warnings.retain(|warning| said.insert(warning.clone()));
    (paths, found.warnings)
}

/// A path, or a pattern, that is forbidden, and by what.
struct Forbidden {
    path: PathBuf,
    source: String,
}

/// Reads the rules of paths, and notes what they were read from.
struct PathRules<'a> {
    world: &'a SandboxWorld<'a>,
    warnings: Vec<String>,
    sources: Vec<PathSource>,
}

impl PathRules<'_> {
    fn lexical_all(&self, texts: &[Sourced]) -> Vec<PathBuf> {
        texts.iter().map(|it| self.lexical(&it.text, &self.base(it))).collect()
    }

    fn forbidden(&self, key: &str, texts: &[Sourced]) -> Vec<Forbidden> {
        let source = |it: &Sourced| format!("`{key}` in {}:{}", it.origin.name, it.line);
        texts
            .iter()
            .zip(self.lexical_all(texts))
            .map(|(it, path)| Forbidden { path, source: source(it) })
            .collect()
    }

    fn forbidden_by(&self, tool: &str, rule: &Sourced) -> Option<Forbidden> {
        let source = format!("`{}` in {}:{}", rule.text.trim(), rule.origin.name, rule.line);
        Some(Forbidden { path: self.rule_path(tool, rule)?, source })
    }

    /// Returns where relative paths of a file start.
    fn base(&self, sourced: &Sourced) -> PathBuf {
        match sourced.origin.scope {
            Scope::User => self.world.config_home.clone(),
            _ => self.world.dirs.first().unwrap_or(&self.world.env.cwd).clone(),
        }
    }

    fn lexical(&self, text: &str, base: &Path) -> PathBuf {
        normalise(base, &loci_core::path::expand_home(&self.world.env.home, directory_of(text.trim())))
    }

    /// Returns the path of a rule that forbids reading, or writing; patterns of one name are for any depth.
    fn rule_path(&self, tool: &str, rule: &Sourced) -> Option<PathBuf> {
        let spec = specifier(&rule.text, tool)?;
        let start = self.world.dirs.first().unwrap_or(&self.world.env.cwd);
        let spec = directory_of(spec);
        let path = match (spec.strip_prefix("//"), spec.strip_prefix('/')) {
            (Some(absolute), _) => Path::new("/").join(absolute),
            (None, Some(below)) => anchor(self.world.env, &rule.origin).join(below),
            (None, None) if !spec.contains('/') && !spec.starts_with('~') && spec != "." => {
                start.join("**").join(spec)
            }
            (None, None) => self.lexical(spec, start),
        };
        Some(normalise(Path::new("/"), &path))
    }

    /// Returns the directory, or file, that a rule lets be edited.
    fn allowed_dir(&self, rule: &Sourced) -> Option<PathBuf> {
        let path = self.rule_path("Edit", rule)?;
        (!is_pattern(&path)).then_some(path)
    }

    /// Resolves paths that allow; patterns are left out, and said.
    fn literal(&mut self, key: &str, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let (patterns, paths): (Vec<PathBuf>, Vec<PathBuf>) =
            paths.into_iter().partition(|it| is_pattern(it));
        self.warnings.extend(
            patterns
                .iter()
                .map(|it| format!("Sandbox: `{key}` takes no patterns; left out: `{}`", it.display())),
        );
        paths.iter().map(|path| real_path(path)).filter(|path| path.parent().is_some()).collect()
    }

    /// Resolves paths that forbid, in both spellings, and patterns to what they match now.
    fn matched(&mut self, forbidden: Vec<Forbidden>) -> Vec<PathBuf> {
        let (patterns, paths): (Vec<Forbidden>, Vec<Forbidden>) =
            forbidden.into_iter().partition(|it| is_pattern(&it.path));
        let mut all = Vec::new();
        for Forbidden { path, source } in paths {
            for path in [real_path(&path), path] {
                self.sources.push(PathSource { path: path.clone(), text: source.clone() });
                all.push(path);
            }
        }
        all.extend(self.look_up(&patterns, MOST_NAMES, MOST_FOUND));
        all.dedup();
        all
    }

    /// Looks patterns up in the session's directories and where they begin, among so many names at most; returns so many of
    /// what they match at most.
    fn look_up(&mut self, patterns: &[Forbidden], most_names: usize, most_found: usize) -> Vec<PathBuf> {
        if patterns.is_empty() {
            return Vec::new();
        }
        let mut book = Rulebook { home: self.world.env.home.clone(), ..Rulebook::default() };
        let origin = RuleOrigin::new(RuleSource::CommandLine, Path::new("/"));
        for Forbidden { path, .. } in patterns {
            if let Some(problem) = book.add(RuleList::Deny, &format!("Read(/{})", path.display()), &origin) {
                self.warnings.push(format!("Sandbox: `{}`: {problem}", path.display()));
            }
        }
        let mut walk = Walk { book: &book, n_left: most_names, found: Vec::new() };
        let dirs = self.world.dirs.clone();
        dirs.iter().for_each(|dir| walk.search(dir));
        let mut elsewhere: Vec<PathBuf> = patterns.iter().map(|it| self.beginning(&it.path)).collect();
        elsewhere.retain(|path| !dirs.iter().any(|dir| path.starts_with(dir)));
        elsewhere.sort();
        elsewhere.dedup_by(|inner, outer| inner.starts_with(outer));
        elsewhere.iter().for_each(|dir| walk.search(dir));
        if walk.n_left == 0 {
            self.warnings.push(format!(
                "Sandbox: patterns were looked up among the first {most_names} names only; name directories to be sure"
            ));
        }
        let texts: Vec<&str> = patterns.iter().map(|it| it.source.as_str()).collect();
        let text = texts.join(" or ");
        if walk.found.len() > most_found {
            self.warnings.push(format!(
                "Sandbox: {} names match {text}; only {most_found} of them, near the top, are kept from commands: name the \
                 directories that they lie in",
                walk.found.len()
            ));
            walk.found.truncate(most_found);
        }
        self.sources
            .extend(walk.found.iter().map(|path| PathSource { path: path.clone(), text: text.clone() }));
        walk.found
    }

    /// Returns the directory that a pattern begins with. In place of the whole machine, with all that is mounted there, it
    /// is the home; that is said.
    fn beginning(&mut self, pattern: &Path) -> PathBuf {
        let is_literal = |part: &Component<'_>| !is_pattern(Path::new(part.as_os_str()));
        let dir: PathBuf = pattern.components().take_while(is_literal).collect();
        if dir.parent().is_some() {
            return dir;
        }
        self.warnings.push(format!(
            "Sandbox: `{}` is looked up in the session's directories and in your home only; name directories to be sure",
            pattern.display()
        ));
        self.world.env.home.clone()
    }
}

/// A bounded search for what patterns match.
struct Walk<'a> {
    book: &'a Rulebook,
    n_left: usize,
    found: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Searches a directory, what lies near its top first: names run out in the depths of some cache.
    fn search(&mut self, dir: &Path) {
        let mut pending = VecDeque::from([(dir.to_owned(), DEEPEST)]);
        while let Some((dir, depth)) = pending.pop_front() {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                if self.n_left == 0 {
                    return;
                }
                self.n_left -= 1;
                let path = entry.path();
                if self.book.is_read_denied(&path) {
                    self.found.push(path);
                } else if depth > 0 && entry.file_type().is_ok_and(|it| it.is_dir()) {
                    pending.push_back((path, depth - 1));
                }
            }
        }
    }
}

/// Returns the directory of a pattern that matches all in one: what lies in it goes with it, what is made later as well.
fn directory_of(text: &str) -> &str {
    match text {
        "**" => ".",
        "/**" => "/",
        "//**" => "//",
        _ => text.strip_suffix("/**").unwrap_or(text),
    }
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

#[cfg(test)]
mod tests {
    use super::super::tests::sourced;
    use super::*;
    use loci_settings::{PermissionSettings, SandboxSettings};
    use loci_stdx::Env;

    #[test]
    fn patterns_over_a_huge_tree_are_bounded_and_that_is_said() {
        let home = loci_testkit::TestHome::new();
        for n in 0..60 {
            home.write(format!("many/{n}/.env"), "x");
        }
        let project = home.project().canonicalize().unwrap();
        let env = Env::for_test(home.home(), &project);
        let world = SandboxWorld {
            env: &env,
            config_home: "/cfg".into(),
            scratch: "/t".into(),
            dirs: vec![project.clone()],
        };
        let mut found = PathRules { world: &world, warnings: Vec::new(), sources: Vec::new() };
        let pattern = Forbidden { path: project.join("**/.env"), source: "s".to_owned() };
        assert_eq!(found.look_up(std::slice::from_ref(&pattern), 1000, 1000).len(), 60);
        assert!(found.warnings.is_empty());
        assert!(found.look_up(std::slice::from_ref(&pattern), 50, 1000).len() < 50);
        assert!(found.warnings[0].contains("the first 50 names only"), "{:?}", found.warnings);
        // Each is a mount before every command.
        assert_eq!(found.look_up(&[pattern], 1000, 59).len(), 59);
        assert_eq!(
            found.warnings[1],
            "Sandbox: 60 names match s; only 59 of them, near the top, are kept from commands: name the directories that they \
             lie in"
        );
    }

    #[test]
    fn rule_for_all_in_a_directory_shuts_the_directory() {
        let home = loci_testkit::TestHome::new();
        home.write("file", "x");
        let project = home.project().canonicalize().unwrap();
        let env = Env::for_test(home.home(), &project);
        let world = SandboxWorld {
            env: &env,
            config_home: "/cfg".into(),
            scratch: "/t".into(),
            dirs: vec![project.clone()],
        };
        let denied = |sandbox: &[&str], rules: &[&str]| {
            let settings = Settings {
                sandbox: SandboxSettings {
                    deny_write: sourced(Scope::Project, sandbox),
                    ..SandboxSettings::default()
                },
                permissions: PermissionSettings {
                    deny: sourced(Scope::Project, rules),
                    ..PermissionSettings::default()
                },
                ..Settings::default()
            };
            path_settings(&world, &settings).0.deny_write
        };
        let root = PathBuf::from("/");
        for (text, expected) in [
            ("**", &project),
            ("./**", &project),
            (".", &project),
            ("~/**", &env.home),
            ("/**", &root),
            ("/", &root),
        ] {
            assert_eq!(denied(&[text], &[]).last(), Some(expected), "{text}");
        }
        for (rule, expected) in [
            ("Edit(**)", &project),
            ("Edit(./**)", &project),
            ("Edit(/**)", &project),
            ("Edit(~/**)", &env.home),
            ("Edit(//**)", &root),
        ] {
            assert_eq!(denied(&[], &[rule]).last(), Some(expected), "{rule}");
        }
    }

    #[test]
    fn what_is_said_of_reading_and_writing_alike_is_said_once() {
        let home = loci_testkit::TestHome::new();
        let project = home.project().canonicalize().unwrap();
        let env = Env::for_test(home.home(), &project);
        let world =
            SandboxWorld { env: &env, config_home: "/cfg".into(), scratch: "/t".into(), dirs: vec![project] };
        let everywhere = || sourced(Scope::User, &["/**/.token"]);
        let sandbox = SandboxSettings {
            deny_read: everywhere(),
            deny_write: everywhere(),
            ..SandboxSettings::default()
        };
        let (_, warnings) = path_settings(&world, &Settings { sandbox, ..Settings::default() });
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    #[test]
    fn paths_start_where_their_file_says_and_patterns_are_looked_up() {
        let home = loci_testkit::TestHome::new();
        home.write("deep/er/.env", "x");
        home.write("keys/a.pem", "x");
        home.write_home("deep/er/b.key", "x");
        home.write_home(".token", "x");
        let project = home.project().canonicalize().unwrap();
        let env = Env::for_test(home.home(), &project);
        let settings = Settings {
            sandbox: SandboxSettings {
                deny_read: [
                    sourced(Scope::Project, &["./secret/", "**/.env"]),
                    sourced(Scope::User, &["mine", "~/keys/**", "~/**/*.key", "/**/.token"]),
                ]
                .concat(),
                allow_write: sourced(Scope::Project, &["/data/**", "/x/*"]),
                secret_files: vec!["token".to_owned()],
                ..SandboxSettings::default()
            },
            permissions: PermissionSettings {
                deny: sourced(Scope::Project, &["Read(*.pem)", "Edit(//opt/x/**)", "Bash(rm *)"]),
                allow: sourced(Scope::Project, &["Edit(//opt/y/**)", "Edit", "Edit(src/*.rs)"]),
                ..PermissionSettings::default()
            },
            ..Settings::default()
        };
        let world = SandboxWorld {
            env: &env,
            config_home: "/cfg".into(),
            scratch: "/t".into(),
            dirs: vec![project.clone()],
        };
        let (paths, warnings) = path_settings(&world, &settings);
        let below = |name: &str| project.join(name);
        let secrets = [below("token"), "/cfg/token".into()].into_iter();
        let secrets = secrets.chain(["keys", "deep/er/b.key", ".token"].map(|it| env.home.join(it)));
        let named = [below("secret"), "/cfg/mine".into(), below("deep/er/.env"), below("keys/a.pem")];
        for path in secrets.chain(named) {
            assert!(paths.deny_read.contains(&path), "{} in {:?}", path.display(), paths.deny_read);
        }
        assert_eq!(paths.deny_write, [PathBuf::from("/opt/x"), "/opt/x".into()][..1]);
        assert_eq!(paths.source(&below("secret")), Some("`sandbox.filesystem.denyRead` in s.json:1"));
        assert_eq!(paths.source(Path::new("/opt/x")), Some("`Edit(//opt/x/**)` in s.json:1"));
        assert_eq!(paths.allow_write, [PathBuf::from("/data"), "/opt/y".into()]);
        assert_eq!(
            warnings,
            [
                "Sandbox: `sandbox.filesystem.allowWrite` takes no patterns; left out: `/x/*`",
                "Sandbox: `/**/.token` is looked up in the session's directories and in your home only; name directories to be sure"
            ]
        );
    }
}
