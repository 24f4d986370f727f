//! Permissions that outlast a session, into the settings file they are for.

use std::path::Path;

use loci_engine::SaveUpdate;
use loci_settings::{Refusal, Role, Scope};
use loci_stdx::{Env, WriteOptions};
use loci_storage::config::{
    MANAGED_DIR, SettingsPlaces, SettingsSources, edit_settings, exclude_local_settings, load_settings,
};
use loci_storage::layout::ConfigHome;

use crate::user_error::UserError;

/// Returns what takes changes of permissions in the demo: they hold until it ends.
pub(crate) fn save_nothing() -> SaveUpdate {
    Box::new(|_| Ok(Some("The demo leaves your settings as they are: this holds until it ends".to_owned())))
}

/// Returns what saves changes of permissions for sessions in this directory.
pub(crate) fn save_to_settings(env: Env) -> SaveUpdate {
    let mut has_told = false;
    Box::new(move |update| {
        let home = ConfigHome::from_env(&env);
        let places = SettingsPlaces::new(&env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
        let scope = update.destination().scope();
        let (path, options) = match scope {
            None | Some(Scope::CommandLine | Scope::Managed) => return Ok(None),
            Some(Scope::User) => (&places.user, WriteOptions::private()),
            Some(Scope::Project) => (&places.project, WriteOptions::project()),
            Some(Scope::Local) => {
                exclude_local_settings(&env, &home, &places.local).map_err(|error| message_of(&error))?;
                (&places.local, WriteOptions::project())
            }
        };
        edit_settings(&home, path, &options, |text| update.edit(text)).map_err(|error| message_of(&error))?;
        if scope != Some(Scope::User) && !has_told && waits_for_trust(&places) {
            has_told = true;
            return Ok(Some(format!(
                "Saved to {}, which allows more only in folders that are trusted: for later sessions, run `loci config trust`",
                places.display_path(path)
            )));
        }
        Ok(None)
    })
}

/// Tells whether permissions of the project's files do not count because the folder is not trusted.
fn waits_for_trust(places: &SettingsPlaces) -> bool {
    let loaded = load_settings(places, None);
    let of_permissions = loaded.merged.iter().filter(|setting| setting.key.path.starts_with("permissions."));
    of_permissions
        .flat_map(|setting| &setting.parts)
        .any(|part| part.role == Role::Refused(Refusal::Untrusted))
}

fn message_of(error: &dyn std::error::Error) -> String {
    UserError::from_error(error).message().to_owned()
}
