//! Permissions that outlast a session, into the settings file they are for.

use std::path::Path;

use loci_engine::SaveUpdate;
use loci_settings::Scope;
use loci_stdx::{Env, WriteOptions};
use loci_storage::config::{
    MANAGED_DIR, SettingsPlaces, SettingsSources, edit_settings, exclude_local_settings,
};
use loci_storage::layout::ConfigHome;

use crate::user_error::UserError;

/// Returns what saves changes of permissions for sessions in this directory.
pub(crate) fn save_to_settings(env: Env) -> SaveUpdate {
    Box::new(move |update| {
        let home = ConfigHome::from_env(&env);
        let places = SettingsPlaces::new(&env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
        let (path, options) = match update.destination().scope() {
            None | Some(Scope::CommandLine | Scope::Managed) => return Ok(()),
            Some(Scope::User) => (places.user, WriteOptions::private()),
            Some(Scope::Project) => (places.project, WriteOptions::project()),
            Some(Scope::Local) => {
                exclude_local_settings(&env, &home, &places.local).map_err(|error| message_of(&error))?;
                (places.local, WriteOptions::project())
            }
        };
        match edit_settings(&home, &path, &options, |text| update.edit(text)) {
            Ok(_) => Ok(()),
            Err(error) => Err(message_of(&error)),
        }
    })
}

fn message_of(error: &dyn std::error::Error) -> String {
    UserError::from_error(error).message().to_owned()
}
