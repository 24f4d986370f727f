//! What a session may do: the rules of options and settings, its directories and its mode.

use std::path::PathBuf;

use loci_core::permission::{Mode, RuleList, Rulebook};
use loci_settings::PermissionSettings;
use loci_stdx::Env;

use crate::options::PermissionOptions;
use crate::permissions::rules::{add_flag_rules, rulebook_from_settings};
use crate::start::bypass_warning::refuse_root;
use crate::user_error::UserError;

/// The rules of a session.
pub struct Permissions {
    /// Those of the options alone.
    pub base: Rulebook,
    /// Those with the settings.
    pub rulebook: Rulebook,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl Permissions {
    /// Brings options and settings together; `before` is the mode that a resumed session was in last.
    pub fn new(
        env: &Env,
        asked: &PermissionOptions,
        settings: &PermissionSettings,
        before: Option<Mode>,
    ) -> Result<Self, UserError> {
        let dirs = directories(env, &asked.dirs)?;
        let mut book = Rulebook {
            dirs,
            cwd: env.cwd.clone(),
            home: env.home.clone(),
            is_confined: asked.is_confined,
            ..Rulebook::default()
        };
        let mut warnings = add_flag_rules(env, RuleList::Allow, &asked.allow, &mut book);
        warnings.extend(add_flag_rules(env, RuleList::Deny, &asked.deny, &mut book));
        if settings.is_bypass_disabled && asked.mode == Some(Mode::BypassPermissions) {
            return Err(UserError::new("Settings forbid bypassing permissions")
                .hint("See `loci config explain permissions.disableBypassPermissionsMode`."));
        }
        if settings.is_auto_disabled && asked.mode == Some(Mode::Auto) {
            return Err(UserError::new("Settings forbid the mode auto")
                .hint("See `loci config explain permissions.disableAutoMode`."));
        }
        let base = book.clone();
        warnings.extend(rulebook_from_settings(env, settings, asked.mode.or(before), &mut book));
        if asked.is_confined && book.mode == Mode::BypassPermissions {
            return Err(UserError::new("A restricted run cannot bypass permissions")
                .hint("Leave out --restricted, or choose another permission mode."));
        }
        if book.mode == Mode::BypassPermissions || asked.may_bypass {
            refuse_root(env)?;
        }
        Ok(Self { base, rulebook: book, warnings })
    }
}

/// Tells whether the session may switch to running everything unasked.
pub(super) fn may_bypass(asked: &PermissionOptions, settings: &PermissionSettings) -> bool {
    asked.may_bypass && !settings.is_bypass_disabled
}

/// Returns the working directory and those that were added to it.
fn directories(env: &Env, added: &[PathBuf]) -> Result<Vec<PathBuf>, UserError> {
    let mut dirs = vec![env.cwd.clone()];
    for dir in added {
        let path = env.cwd.join(loci_core::path::expand_home(&env.home, &dir.to_string_lossy()));
        let real = path.canonicalize().map_err(|error| {
            UserError::new(format!("Failed to add directory: `{}`: {error}", path.display()))
                .hint("Give --add-dir directories that exist.")
        })?;
        if !real.is_dir() {
            return Err(UserError::new(format!("Not a directory: `{}`", real.display())));
        }
        dirs.push(real);
    }
    Ok(dirs)
}
