//! Where the changes of the app state go: the user's settings, the global state file, the session's identity, the
//! front end.

use std::sync::{Arc, Mutex};

use loci_core::app_state::AppState;
use loci_core::permission::Mode;
use loci_core::session::SessionIdentity;
use loci_core::settings::edit::{EditError, set, unset};
use loci_stdx::{Store, WriteOptions};
use loci_storage::{ConfigHome, edit_settings, edit_state};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::config::{Ambient, SettingsApplier};
use crate::event::EngineEvent;
use crate::host::lock;
use crate::state::{Outside, change_identity};

/// What the app state's changes reach from a session.
pub(crate) struct SessionOutside {
    pub(crate) home: ConfigHome,
    pub(crate) events: UnboundedSender<EngineEvent>,
    pub(crate) identity: Arc<Store<SessionIdentity>>,
    /// The world around the session, which its calls see too.
    pub(crate) ambient: Arc<Mutex<Ambient>>,
    /// Gives that world anew, and forgets credentials got before.
    pub(crate) apply: Option<SettingsApplier>,
}

impl Outside for SessionOutside {
    fn main_model(&self, model: Option<&str>) {
        let edit = |text: &str| match model {
            Some(model) => set(text, &["model"], &Value::from(model)),
            None => unset(text, &["model"]),
        };
        let options = WriteOptions::private().creating_parents();
        let kept = edit_settings(&self.home, &self.home.user_settings(), &options, edit);
        self.report("The choice of model", kept.map(drop));
    }

    fn session_model(&self, model: Option<&str>) {
        change_identity(&self.identity, |identity| identity.model_override = model.map(str::to_owned));
    }

    fn permission_mode(&self, mode: Mode) {
        // Without a listener there is nobody to tell.
        drop(self.events.send(EngineEvent::ModeChanged(mode)));
    }

    fn verbose(&self, is_verbose: bool) {
        self.keep_state("verbose", &Value::from(is_verbose));
    }

    fn expanded_view(&self, is_expanded: bool) {
        self.keep_state("expandedView", &Value::from(if is_expanded { "tasks" } else { "none" }));
    }

    /// Applies the environment again and clears credential caches, whoever changed the files.
    fn settings(&self, _state: &AppState) {
        if let Some(apply) = &self.apply {
            *lock(&self.ambient) = apply();
        }
    }
}

impl SessionOutside {
    fn keep_state(&self, key: &str, value: &Value) {
        let edit = |text: &str| -> Result<String, EditError> { set(text, &[key], value) };
        self.report(&format!("`{key}`"), edit_state(&self.home, edit).map(drop));
    }

    /// A wish that cannot be kept holds for this session; the person is told.
    fn report(&self, what: &str, kept: Result<(), impl std::error::Error>) {
        if let Err(error) = kept {
            let trouble = format!("{what} holds for this session only, it could not be kept: {error}");
            drop(self.events.send(EngineEvent::Trouble(trouble)));
        }
    }
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_core::session::Beginning;
    use loci_stdx::Env;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::state::{change, wire};

    struct World {
        dir: tempfile::TempDir,
        home: ConfigHome,
        identity: Arc<Store<SessionIdentity>>,
        state: Store<AppState>,
        events: UnboundedReceiver<EngineEvent>,
        ambient: Arc<Mutex<Ambient>>,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let home = ConfigHome::from_env(&Env::for_test(dir.path().to_str().unwrap(), "/p"));
        let identity = Arc::new(Store::new(SessionIdentity::new(Beginning {
            id: SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
            project_dir: dir.path().join("projects/-p"),
            cwd: "/p".into(),
            is_interactive: false,
            is_persistent: true,
        })));
        let (sender, events) = unbounded_channel();
        let env = Env::for_test(dir.path().to_str().unwrap(), "/p");
        let ambient = Arc::new(Mutex::new(Ambient { env: env.clone(), child_env: Vec::new() }));
        let child_env = vec![("NEW".to_owned(), "1".to_owned())];
        let outside = SessionOutside {
            home: home.clone(),
            events: sender,
            identity: Arc::clone(&identity),
            ambient: Arc::clone(&ambient),
            apply: Some(Box::new(move || Ambient { env: env.clone(), child_env: child_env.clone() })),
        };
        World { dir, home, identity, state: wire(AppState::default(), outside), events, ambient }
    }

    #[test]
    fn the_main_model_is_kept_in_the_users_settings_and_removed_again() {
        let world = world();
        let file = world.home.user_settings();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{\n  // mine\n  \"theme\": \"dark\"\n}\n").unwrap();
        change(&world.state, |state| state.model.main = Some("opus".to_owned()));
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, "{\n  // mine\n  \"theme\": \"dark\",\n  \"model\": \"opus\"\n}\n");
        change(&world.state, |state| state.model.main = None);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\n  // mine\n  \"theme\": \"dark\"\n}\n");
    }

    #[test]
    fn a_sessions_own_model_is_its_identitys() {
        let world = world();
        change(&world.state, |state| state.model.session_override = Some("haiku".to_owned()));
        assert_eq!(world.identity.get().model_override.as_deref(), Some("haiku"));
        change(&world.state, |state| state.model.session_override = None);
        assert_eq!(world.identity.get().model_override, None);
        assert!(!world.home.user_settings().exists(), "the settings are another matter");
    }

    #[test]
    fn view_flags_are_kept_in_the_global_state_beside_what_is_there() {
        let world = world();
        std::fs::write(world.home.state_file(), "{\"numStartups\":7}").unwrap();
        change(&world.state, |state| state.view.is_verbose = true);
        change(&world.state, |state| state.view.is_expanded = true);
        let text = std::fs::read_to_string(world.home.state_file()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, serde_json::json!({"numStartups": 7, "verbose": true, "expandedView": "tasks"}));
    }

    #[test]
    fn what_cannot_be_kept_is_said_and_holds_for_the_session() {
        let mut world = world();
        std::fs::write(world.home.state_file(), "{ broken").unwrap();
        change(&world.state, |state| state.view.is_verbose = true);
        assert!(world.state.get().view.is_verbose);
        let EngineEvent::Trouble(text) = world.events.try_recv().unwrap() else { panic!("no trouble") };
        assert!(text.starts_with("`verbose` holds for this session only"), "{text}");
        assert_eq!(std::fs::read_to_string(world.home.state_file()).unwrap(), "{ broken");
        drop(world.dir);
    }

    #[test]
    fn settings_that_change_are_applied_to_the_world_around() {
        let world = world();
        change(&world.state, |state| state.view.is_verbose = true);
        assert!(lock(&world.ambient).child_env.is_empty(), "nothing of the settings changed");
        change(&world.state, |state| state.settings = serde_json::json!({"env": {"NEW": "#1"}}));
        assert_eq!(lock(&world.ambient).child_env, [("NEW".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn a_new_mode_is_told_to_the_front_end() {
        let mut world = world();
        change(&world.state, |state| state.permission.rulebook.mode = Mode::Plan);
        assert!(matches!(world.events.try_recv(), Ok(EngineEvent::ModeChanged(Mode::Plan))));
    }
}
