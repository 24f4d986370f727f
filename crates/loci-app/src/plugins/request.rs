//! What may be asked of plugins beside turning them on and off: as a value, or read from the words behind `/plugin`.
//!
//! The words are those of `loci plugin`, so that what somebody knows from a shell works in a session, too.

use std::path::PathBuf;

use loci_core::plugin::PluginId;
use loci_settings::Scope;
use loci_storage::config::InstallScope;

use super::configure::needed_options;
use super::details::plugin_details;
use super::install::{Uninstall, install_plugin, uninstall_plugin, update_plugin};
use super::marketplace::{add_marketplace, list_marketplaces, remove_marketplace, update_marketplaces};
use super::prune::{Confirm, list_orphans, prune_orphans};
use super::validate::validate_plugin;
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// Something that is asked of plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginRequest {
    /// Install one, and turn it on.
    Install {
        /// Its name, or `name@marketplace`.
        name: String,
        /// Its options, as `KEY=VALUE`.
        options: Vec<String>,
        /// For whom.
        scope: Option<Scope>,
    },
    /// Bring one up to date.
    Update {
        /// Its name, or `name@marketplace`.
        name: String,
        /// For whom; everywhere it is installed, where nothing is said.
        scope: Option<InstallScope>,
    },
    /// Take one away.
    Uninstall {
        /// Its name, or `name@marketplace`.
        name: String,
        /// How.
        how: Uninstall,
    },
    /// Remove those that came because others needed them, and that nothing needs any more.
    Prune {
        /// For whom.
        scope: Option<Scope>,
        /// Nobody is asked first.
        is_sure: bool,
        /// They are only listed.
        only_lists: bool,
    },
    /// Say what one is, brings and may run.
    Details {
        /// Its name, or `name@marketplace`.
        name: String,
        /// Directories of plugins that count, too.
        dirs: Vec<PathBuf>,
    },
    /// Check a directory.
    Validate {
        /// Which; the current one, where none is named.
        path: Option<PathBuf>,
        /// What is only odd is wrong, too.
        is_strict: bool,
    },
    /// Something about the lists of plugins.
    Marketplace(MarketplaceRequest),
}

/// Something that is asked of marketplaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarketplaceRequest {
    /// Add one.
    Add {
        /// Where it is.
        source: String,
        /// Whose settings name it.
        scope: Option<Scope>,
        /// The only directories of a repository that are fetched.
        sparse: Vec<String>,
    },
    /// List them.
    List {
        /// As JSON.
        is_json: bool,
    },
    /// Fetch one again, or all of them.
    Update {
        /// Its name.
        name: Option<String>,
    },
    /// Forget one, and remove the plugins that were installed from it.
    Remove {
        /// Its name.
        name: String,
        /// Whose settings are meant.
        scope: Option<Scope>,
    },
}

/// What came of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginAnswer {
    /// What is to be said.
    pub said: String,
    /// Whether something was found to be wrong.
    pub is_wrong: bool,
    /// The plugin that was installed, whose options may be asked for.
    pub installed: Option<PluginId>,
}

impl PluginAnswer {
    fn new(said: String) -> Self {
        Self { said, ..Self::default() }
    }
}

impl PluginRequest {
    /// Does it. Blocks: repositories are fetched, files copied.
    pub fn carry_out(&self, ctx: &SettingsContext, confirm: Confirm<'_>) -> Result<PluginAnswer, UserError> {
        if self.changes_something() {
            ctx.refuse_in_demo()?;
        }
        let said = match self {
            Self::Install { name, options, scope } => {
                let done = install_plugin(ctx, name, options, *scope)?;
                return Ok(PluginAnswer { said: done.said, installed: Some(done.id), is_wrong: false });
            }
            Self::Update { name, scope } => update_plugin(ctx, name, *scope)?,
            Self::Uninstall { name, how } => uninstall_plugin(ctx, name, *how, confirm)?,
            Self::Prune { scope, only_lists: true, .. } => list_orphans(ctx, scope.unwrap_or(Scope::User)),
            Self::Prune { scope, is_sure, .. } => {
                prune_orphans(ctx, scope.unwrap_or(Scope::User), *is_sure, confirm)?
            }
            Self::Details { name, dirs } => plugin_details(ctx, name, dirs)?,
            Self::Validate { path, is_strict } => {
                let (said, code) = validate_plugin(&ctx.env, path.as_deref(), *is_strict)?;
                return Ok(PluginAnswer { said, is_wrong: code != 0, installed: None });
            }
            Self::Marketplace(request) => request.carry_out(ctx)?,
        };
        Ok(PluginAnswer::new(said))
    }

    fn changes_something(&self) -> bool {
        let only_tells = matches!(
            self,
            Self::Details { .. }
                | Self::Validate { .. }
                | Self::Prune { only_lists: true, .. }
                | Self::Marketplace(MarketplaceRequest::List { .. })
        );
        !only_tells
    }

    /// Does it for a session, where nobody is asked anything meanwhile: options that an installed plugin needs are named.
    pub fn carry_out_unasked(&self, ctx: &SettingsContext) -> Result<PluginAnswer, UserError> {
        let mut answer = self.carry_out(ctx, &|_| None)?;
        if let Some(id) = &answer.installed {
            // What was installed is in settings that were read before.
            answer.said += &needed_options(&SettingsContext::with_inputs(&ctx.env, ctx.inputs()), id);
        }
        Ok(answer)
    }

    /// Reads the words behind `/plugin`; none where they are no request of this kind.
    pub fn parse(words: &[&str]) -> Option<Result<Self, UserError>> {
        Some(match words {
            ["install" | "i", rest @ ..] if !rest.is_empty() => install(rest),
            ["uninstall" | "remove" | "rm", rest @ ..] if !rest.is_empty() => uninstall(rest),
            ["update", rest @ ..] if !rest.is_empty() => update(rest),
            ["details", rest @ ..] if !rest.is_empty() => details(rest),
            ["validate", rest @ ..] if !rest.is_empty() => validate(rest),
            ["prune" | "autoremove", rest @ ..] => prune(rest),
            ["marketplace" | "market", rest @ ..] => return marketplace(rest),
            _ => return None,
        })
    }
}

impl MarketplaceRequest {
    fn carry_out(&self, ctx: &SettingsContext) -> Result<String, UserError> {
        match self {
            Self::Add { source, scope, sparse } => add_marketplace(ctx, source, *scope, sparse),
            Self::List { is_json } => Ok(list_marketplaces(ctx, *is_json)),
            Self::Update { name } => update_marketplaces(ctx, name.as_deref()),
            Self::Remove { name, scope } => remove_marketplace(ctx, name, *scope),
        }
    }
}

const SCOPES: &[&str] = &["--user", "--project", "--local"];
const SCOPE: &[&str] = &["--scope", "-s"];

fn install(words: &[&str]) -> Result<PluginRequest, UserError> {
    let typed = TypedWords::read(words, &[SCOPE, &["--config"]], &[SCOPES, &["--yes", "-y"]])?;
    Ok(PluginRequest::Install {
        name: typed.one("a plugin")?,
        options: typed.values(&["--config"]),
        scope: typed.scope()?,
    })
}

fn update(words: &[&str]) -> Result<PluginRequest, UserError> {
    let typed = TypedWords::read(words, &[SCOPE], &[&["--yes", "-y"]])?;
    let scope = typed.values(SCOPE).pop();
    let scope = scope.map(|word| InstallScope::parse(&word).ok_or_else(|| no_scope(&word))).transpose()?;
    Ok(PluginRequest::Update { name: typed.one("a plugin")?, scope })
}

fn uninstall(words: &[&str]) -> Result<PluginRequest, UserError> {
    let flags = ["--prune", "--yes", "-y", "--keep-data"];
    let typed = TypedWords::read(words, &[SCOPE], &[SCOPES, &flags])?;
    let how = Uninstall {
        scope: typed.scope()?,
        keeps_data: typed.has(&["--keep-data"]),
        prunes: typed.has(&["--prune"]),
        is_sure: typed.has(&["--yes", "-y"]),
    };
    Ok(PluginRequest::Uninstall { name: typed.one("a plugin")?, how })
}

fn prune(words: &[&str]) -> Result<PluginRequest, UserError> {
    let typed = TypedWords::read(words, &[SCOPE], &[SCOPES, &["--yes", "-y", "--dry-run"]])?;
    typed.none()?;
    Ok(PluginRequest::Prune {
        scope: typed.scope()?,
        is_sure: typed.has(&["--yes", "-y"]),
        only_lists: typed.has(&["--dry-run"]),
    })
}

fn details(words: &[&str]) -> Result<PluginRequest, UserError> {
    let typed = TypedWords::read(words, &[&["--plugin-dir"]], &[])?;
    let dirs = typed.values(&["--plugin-dir"]).into_iter().map(PathBuf::from).collect();
    Ok(PluginRequest::Details { name: typed.one("a plugin")?, dirs })
}

fn validate(words: &[&str]) -> Result<PluginRequest, UserError> {
    let typed = TypedWords::read(words, &[], &[&["--strict"]])?;
    let path = typed.at_most_one()?.map(PathBuf::from);
    Ok(PluginRequest::Validate { path, is_strict: typed.has(&["--strict"]) })
}

fn marketplace(words: &[&str]) -> Option<Result<PluginRequest, UserError>> {
    let request = match words {
        ["add", rest @ ..] if !rest.is_empty() => add(rest),
        ["list", rest @ ..] => TypedWords::read(rest, &[], &[&["--json"]]).and_then(|typed| {
            typed.none()?;
            Ok(MarketplaceRequest::List { is_json: typed.has(&["--json"]) })
        }),
        ["update", rest @ ..] => TypedWords::read(rest, &[], &[])
            .and_then(|typed| Ok(MarketplaceRequest::Update { name: typed.at_most_one()? })),
        ["remove" | "rm", rest @ ..] if !rest.is_empty() => {
            TypedWords::read(rest, &[SCOPE], &[]).and_then(|typed| {
                Ok(MarketplaceRequest::Remove { name: typed.one("a marketplace")?, scope: typed.scope()? })
            })
        }
        _ => return None,
    };
    Some(request.map(PluginRequest::Marketplace))
}

fn add(words: &[&str]) -> Result<MarketplaceRequest, UserError> {
    let typed = TypedWords::read(words, &[SCOPE, SPARSE], &[])?;
    Ok(MarketplaceRequest::Add {
        source: typed.one("where the marketplace is")?,
        scope: typed.scope()?,
        sparse: typed.values(SPARSE),
    })
}

/// The flag that takes all words up to the next flag.
const SPARSE: &[&str] = &["--sparse"];

fn no_scope(word: &str) -> UserError {
    UserError::new(format!("`{word}` is no scope")).hint("There are user, project and local.")
}

/// Words told apart: flags, flags with values, and the others.
#[derive(Default)]
struct TypedWords {
    others: Vec<String>,
    flags: Vec<String>,
    values: Vec<(String, String)>,
}

impl TypedWords {
    fn read(words: &[&str], valued: &[&[&str]], plain: &[&[&str]]) -> Result<Self, UserError> {
        let is_among = |names: &[&[&str]], flag: &str| names.iter().any(|all| all.contains(&flag));
        let mut typed = Self::default();
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) if word.starts_with('-') => (flag, Some(value)),
                _ => (word, None),
            };
            if !word.starts_with('-') {
                typed.others.push(word.to_owned());
            } else if is_among(valued, flag) {
                let value = inline.or_else(|| words.next());
                let value = value.ok_or_else(|| UserError::new(format!("`{flag}` wants a value")))?;
                typed.values.push((flag.to_owned(), value.to_owned()));
                while SPARSE.contains(&flag)
                    && let Some(next) = words.next_if(|next| !next.starts_with('-'))
                {
                    typed.values.push((flag.to_owned(), next.to_owned()));
                }
            } else if is_among(plain, word) {
                typed.flags.push(word.to_owned());
            } else {
                return Err(UserError::new(format!("`{word}` is not known here"))
                    .hint("`loci plugin help`, in a shell, shows what there is."));
            }
        }
        Ok(typed)
    }

    fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|flag| names.contains(&flag.as_str()))
    }

    fn values(&self, names: &[&str]) -> Vec<String> {
        let meant = self.values.iter().filter(|(flag, _)| names.contains(&flag.as_str()));
        meant.map(|(_, value)| value.clone()).collect()
    }

    fn scope(&self) -> Result<Option<Scope>, UserError> {
        let words = self.values(SCOPE).into_iter();
        let flags = self.flags.iter().filter(|flag| SCOPES.contains(&flag.as_str()));
        let words = words.chain(flags.map(|flag| flag.trim_start_matches('-').to_owned()));
        let mut scopes = Vec::new();
        for word in words {
            scopes.push(match word.as_str() {
                "user" => Scope::User,
                "project" => Scope::Project,
                "local" => Scope::Local,
                _ => return Err(no_scope(&word)),
            });
        }
        match scopes.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            _ => Err(UserError::new("More than one scope is named")),
        }
    }

    fn none(&self) -> Result<(), UserError> {
        self.others.first().map_or(Ok(()), |word| Err(too_many(word)))
    }

    fn at_most_one(&self) -> Result<Option<String>, UserError> {
        match self.others.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            [_, second, ..] => Err(too_many(second)),
        }
    }

    fn one(&self, what: &str) -> Result<String, UserError> {
        self.at_most_one()?.ok_or_else(|| UserError::new(format!("Name {what}")))
    }
}

fn too_many(word: &str) -> UserError {
    UserError::new(format!("`{word}` is one word too many"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Result<PluginRequest, String>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        PluginRequest::parse(&words).map(|parsed| parsed.map_err(|error| error.message().to_owned()))
    }

    #[test]
    fn words_are_read_as_the_arguments_of_the_verbs() {
        let install = |scope, options: &[&str]| PluginRequest::Install {
            name: "kit@m".into(),
            options: options.iter().map(|it| (*it).to_owned()).collect(),
            scope,
        };
        let uninstall = |how| PluginRequest::Uninstall { name: "kit".into(), how };
        let market = PluginRequest::Marketplace;
        for (text, expected) in [
            ("install kit@m", install(None, &[])),
            ("i kit@m -s project -y", install(Some(Scope::Project), &[])),
            (
                "install --local kit@m --config a=b=c --config=d=e",
                install(Some(Scope::Local), &["a=b=c", "d=e"]),
            ),
            (
                "update kit --scope=local",
                PluginRequest::Update { name: "kit".into(), scope: Some(InstallScope::Local) },
            ),
            ("rm kit", uninstall(Uninstall::default())),
            (
                "uninstall kit --prune -y --keep-data --user",
                uninstall(Uninstall {
                    scope: Some(Scope::User),
                    keeps_data: true,
                    prunes: true,
                    is_sure: true,
                }),
            ),
            ("prune --dry-run", PluginRequest::Prune { scope: None, is_sure: false, only_lists: true }),
            (
                "details kit --plugin-dir a",
                PluginRequest::Details { name: "kit".into(), dirs: vec!["a".into()] },
            ),
            ("validate . --strict", PluginRequest::Validate { path: Some(".".into()), is_strict: true }),
            ("market list", market(MarketplaceRequest::List { is_json: false })),
            ("marketplace update", market(MarketplaceRequest::Update { name: None })),
            (
                "marketplace add a/b --sparse x y --scope project",
                market(MarketplaceRequest::Add {
                    source: "a/b".into(),
                    scope: Some(Scope::Project),
                    sparse: vec!["x".into(), "y".into()],
                }),
            ),
            ("marketplace rm m", market(MarketplaceRequest::Remove { name: "m".into(), scope: None })),
        ] {
            assert_eq!(parse(text), Some(Ok(expected)), "{text}");
        }
    }

    #[test]
    fn words_that_cannot_be_carried_out_are_refused_and_others_are_nobodys() {
        for (text, why) in [
            ("install kit extra", "`extra` is one word too many"),
            ("install kit --shout", "`--shout` is not known here"),
            ("install kit --yes=no", "`--yes=no` is not known here"),
            ("install --user", "Name a plugin"),
            ("install kit --scope", "`--scope` wants a value"),
            ("install kit --scope all", "`all` is no scope"),
            ("install kit --user --local", "More than one scope is named"),
            ("prune kit", "`kit` is one word too many"),
        ] {
            assert_eq!(parse(text), Some(Err(why.to_owned())), "{text}");
        }
        for text in [
            "",
            "install",
            "list",
            "enable kit",
            "tag",
            "marketplace",
            "marketplace add",
            "marketplace shout",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn demo_leaves_plugins_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let env = loci_stdx::Env::for_test(dir.path(), dir.path());
        let options = crate::options::RunOptions { is_demo: true, ..Default::default() };
        let inputs = crate::settings::editor::SettingsInputs::from_options(&env, &options);
        let ctx = SettingsContext::with_inputs(&env, &inputs);
        let request = PluginRequest::Marketplace(MarketplaceRequest::Update { name: None });
        assert!(request.carry_out_unasked(&ctx).unwrap_err().message().starts_with("The demo leaves"));
    }
}
