//! MCP servers that were switched off in a project: kept where other programs keep it, in `disabledMcpServers` of the
//! project's entry in the state file, so that they stay off in later sessions.

use std::path::Path;

use loci_settings::edit;
use loci_stdx::Env;
use loci_storage::config::{MANAGED_DIR, SettingsPlaces, SettingsSources, edit_state};
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use crate::user_error::UserError;

/// The names of servers that are switched off, of whatever scope.
const DISABLED_KEY: &str = "disabledMcpServers";

/// Keeps whether a server is used in the project around the working directory.
pub fn keep_server_toggle(env: &Env, home: &ConfigHome, server: &str, is_on: bool) -> Result<(), UserError> {
    let places = SettingsPlaces::new(env, home, Path::new(MANAGED_DIR), SettingsSources::ALL);
    let root = places.main_checkout().unwrap_or(places.tree_root());
    let text_of = |dir: &Path| dir.display().to_string();
    let (root, server) = (text_of(root), Value::from(server));
    let dirs = [root.clone(), text_of(places.tree_root()), text_of(&env.cwd)];
    let edited = edit_state(home, |text| match is_on {
        // Each of them counts.
        true => dirs.iter().try_fold(text.to_owned(), |text, dir| {
            edit::take_out(&text, &["projects", dir, DISABLED_KEY], &server)
        }),
        false => edit::append(text, &["projects", &root, DISABLED_KEY], &server),
    });
    edited.map(drop).map_err(|error| UserError::from_error(&error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn server_stays_off_in_the_project_until_it_is_switched_on() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("p");
        let deep = project.join("sub");
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::create_dir_all(&deep).unwrap();
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let env = Env::for_test(dir.path(), deep.clone());
        let home = ConfigHome::from_env(&env);
        let in_sub = project.join("sub").display().to_string();
        let state = serde_json::json!({"projects": {in_sub: {"disabledMcpServers": ["b"], "kept": 1}}});
        fs::write(home.state_file(), state.to_string()).unwrap();
        let off = |dir: &Path| -> Vec<String> {
            let state: Value = serde_json::from_str(&fs::read_to_string(home.state_file()).unwrap()).unwrap();
            let names = state["projects"][dir.to_str().unwrap()]["disabledMcpServers"].clone();
            serde_json::from_value(names).unwrap_or_default()
        };
        keep_server_toggle(&env, &home, "a", false).unwrap();
        keep_server_toggle(&env, &home, "a", false).unwrap();
        assert_eq!((off(&project), off(&deep)), (vec!["a".to_owned()], vec!["b".to_owned()]));
        keep_server_toggle(&env, &home, "b", true).unwrap();
        keep_server_toggle(&env, &home, "a", true).unwrap();
        assert_eq!((off(&project), off(&deep)), (Vec::new(), Vec::new()));
        let state = fs::read_to_string(home.state_file()).unwrap();
        assert!(state.contains("\"kept\""), "{state}");
    }
}
