//! Where marketplaces and plugins come from: what people type, what files say, and what can be fetched.

use std::path::{Path, PathBuf};

use loci_core::plugin::plugin_path;
use loci_stdx::Env;
use loci_storage::config::GitSource;
use serde_json::{Map, Value, json};

/// Why a catalogue is not fetched, and what to do in its place.
const CATALOGUE_AT_ADDRESS: &str = "a catalogue at an address is not supported; download it and name the file, or name a directory or a repository";

/// Reads what somebody typed for a marketplace: a directory, a file, `owner/repository` or the address of a repository;
/// `#branch` may follow the last two, `@branch` the first of them.
pub(super) fn parse_marketplace(env: &Env, typed: &str) -> Result<Value, String> {
    let path = env.cwd.join(loci_core::path::expand_home(&env.home, typed));
    let looks_local = typed.starts_with(['.', '/', '~']);
    if looks_local || path.exists() {
        let path = path.canonicalize().map_err(|error| format!("`{typed}` cannot be opened: {error}"))?;
        let kind = if path.is_dir() { "directory" } else { "file" };
        return Ok(json!({"source": kind, "path": path}));
    }
    let (address, reference) = match typed.split_once('#') {
        Some((address, reference)) => (address, Some(reference)),
        None => match typed.split_once('@').filter(|(repo, _)| is_repo(repo)) {
            Some((repo, reference)) => (repo, Some(reference)),
            None => (typed, None),
        },
    };
    let mut source = if is_git_url(address) {
        json!({"source": "git", "url": address})
    } else if address.starts_with("http://") || address.starts_with("https://") {
        return Err(format!("`{address}`: {CATALOGUE_AT_ADDRESS}"));
    } else if is_repo(address) {
        json!({"source": "github", "repo": address})
    } else {
        let is_host = address.split_once('/').is_some_and(|(host, _)| host.contains('.'));
        let hint = if is_host { "; an address begins with https://, a directory with ./" } else { "" };
        return Err(format!(
            "`{typed}` is neither a directory, a file, `owner/repository` nor the address of a repository{hint}"
        ));
    };
    if let Some(reference) = reference {
        source["ref"] = json!(reference);
    }
    Ok(source)
}

fn is_git_url(text: &str) -> bool {
    let has_scheme = ["ssh://", "git://", "file://"].iter().any(|scheme| text.starts_with(scheme));
    let is_web = (text.starts_with("https://") || text.starts_with("http://")) && !text.ends_with(".json");
    has_scheme || is_web || (text.starts_with("git@") && text.contains(':'))
}

fn is_repo(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && !word.starts_with(['.', '-'])
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    // An owner has no dot in its name; a host that is typed without its scheme has.
    text.split_once('/').is_some_and(|(owner, name)| is_word(owner) && !owner.contains('.') && is_word(name))
}

/// Where something is fetched from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// A directory or a file that is there.
    Local(PathBuf),
    /// A repository, and the directory in it.
    Git(GitSource, PathBuf),
}

/// Says where the source of a marketplace is fetched from.
pub(super) fn marketplace_fetch(source: &Value) -> Result<Fetch, String> {
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    match (text("source").unwrap_or_default(), text("path")) {
        ("directory" | "file", Some(path)) => Ok(Fetch::Local(PathBuf::from(path))),
        _ => git_fetch(source),
    }
}

fn git_fetch(source: &Value) -> Result<Fetch, String> {
    let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = text("source").unwrap_or_default();
    let github = |repo: &str| {
        let ssh_url = format!("git@github.com:{repo}.git");
        (format!("https://github.com/{repo}.git"), Some(ssh_url))
    };
    let place = match kind.as_str() {
        "github" => text("repo").filter(|repo| is_repo(repo)).map(|repo| github(&repo)),
        "git" | "url" | "git-subdir" => {
            text("url").map(|url| if is_repo(&url) { github(&url) } else { (url, None) })
        }
        other => return Err(unsupported_source(other)),
    };
    let (url, ssh_url) =
        place.ok_or_else(|| format!("its source of the kind `{kind}` names no repository"))?;
    if kind == "url" && url.ends_with(".json") {
        return Err(CATALOGUE_AT_ADDRESS.to_owned());
    }
    let dir = match text("path").filter(|_| kind == "git-subdir") {
        Some(path) => plugin_path(&format!("./{}", path.trim_start_matches("./")))?,
        None => PathBuf::new(),
    };
    Ok(Fetch::Git(
        GitSource { url, ssh_url, reference: text("ref"), commit: text("sha"), sparse: sparse_paths(source) },
        dir,
    ))
}

/// Says that something cannot be fetched, and what to do in its place.
fn unsupported_source(kind: &str) -> String {
    let instead = match kind {
        "npm" => "unpack what `npm pack` fetches into a directory, and name that",
        "archive" | "zip" | "mcpb" => "unpack it into a directory, and name that",
        "command" => "run the command yourself, and name the directory that it makes",
        _ => "name a directory or a repository",
    };
    let kind: String = kind.escape_debug().take(80).collect();
    format!(
        "a source of the kind `{kind}` is not supported; {instead} (`directory`, `github`, `git`, `git-subdir`)"
    )
}

/// Returns the directories that alone are wanted of a repository; all where none is named.
fn sparse_paths(source: &Value) -> Vec<String> {
    let paths = source.get("sparsePaths").and_then(Value::as_array).into_iter().flatten();
    paths.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Says where a plugin of a marketplace is fetched from; `root` is where the marketplace's paths start.
pub(super) fn plugin_fetch(
    catalogue: &Map<String, Value>,
    entry: &Map<String, Value>,
    root: &Path,
) -> Result<Fetch, String> {
    match entry.get("source") {
        Some(Value::String(path)) => {
            let base = catalogue.get("metadata").and_then(|it| it.get("pluginRoot")).and_then(Value::as_str);
            let relative = match base.filter(|_| !path.starts_with("./") && !path.contains('/')) {
                Some(base) => plugin_path(base)?.join(plugin_path(&format!("./{path}"))?),
                None => plugin_path(path)?,
            };
            let dir = root.join(relative);
            let real = dir
                .canonicalize()
                .map_err(|error| format!("`{}` cannot be opened: {error}", dir.display()))?;
            let real_root = root.canonicalize().map_err(|error| error.to_string())?;
            match real.starts_with(&real_root) {
                true => Ok(Fetch::Local(real)),
                false => Err(format!("`{}` leads out of the marketplace", dir.display())),
            }
        }
        Some(source @ Value::Object(_)) => git_fetch(source),
        _ => Err("it has no `source`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_directory_a_file_or_a_repository() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("m")).unwrap();
        std::fs::write(dir.path().join("c.json"), "{}").unwrap();
        let env = Env::for_test(dir.path(), dir.path());
        let kind = |typed: &str| match parse_marketplace(&env, typed) {
            Ok(source) => {
                format!("{} {}", source["source"].as_str().unwrap(), source["ref"].as_str().unwrap_or("-"))
            }
            Err(_) => "refused".to_owned(),
        };
        for (typed, expected) in [
            ("./m", "directory -"),
            ("m", "directory -"),
            ("./c.json", "file -"),
            ("./none", "refused"),
            ("acme/tools", "github -"),
            ("acme/tools#v2", "github v2"),
            ("acme/tools@v2", "github v2"),
            ("git.example.com/team/tools", "refused"),
            ("https://git.example.com/x.git#main", "git main"),
            ("git@example.com:x/y.git", "git -"),
            ("https://example.com/marketplace.json", "refused"),
            ("-x/y", "refused"),
            ("word", "refused"),
        ] {
            assert_eq!(kind(typed), expected, "{typed}");
        }
    }

    #[test]
    fn sources_that_cannot_be_fetched_are_named() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("m/plugins/p")).unwrap();
        std::os::unix::fs::symlink(root.path(), root.path().join("m/out")).unwrap();
        let check = |source: Value, needle: &str| {
            let (catalogue, entry) =
                (json!({"metadata": {"pluginRoot": "./plugins"}}), json!({"source": source}));
            let found = plugin_fetch(
                catalogue.as_object().unwrap(),
                entry.as_object().unwrap(),
                &root.path().join("m"),
            );
            match found {
                Ok(found) => assert!(format!("{found:?}").contains(needle), "{found:?}"),
                Err(why) => assert!(why.contains(needle), "{why}"),
            }
        };
        check(json!("./plugins/p"), "Local");
        check(json!("p"), "Local");
        check(json!("./../x"), "leads out");
        check(json!("./out"), "leads out");
        check(json!("/etc"), "does not begin");
        check(
            json!({"source": "npm", "package": "x"}),
            "`npm` is not supported; unpack what `npm pack` fetches",
        );
        check(
            json!({"source": "archive", "url": "x"}),
            "`archive` is not supported; unpack it into a directory",
        );
        check(
            json!({"source": "command", "command": "x"}),
            "`command` is not supported; run the command yourself",
        );
        check(json!({"source": "ftp"}), "`ftp` is not supported; name a directory or a repository");
        check(
            json!({"source": "url", "url": "https://x/m.json"}),
            "at an address is not supported; download it",
        );
        check(json!({"source": "github", "repo": "a/b", "sha": "c0ffee"}), "c0ffee");
        check(json!({"source": "git-subdir", "url": "a/b", "path": "../x"}), "leads out");
        check(json!(null), "no `source`");
    }
}
