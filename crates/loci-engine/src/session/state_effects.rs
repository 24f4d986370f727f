//! Where the changes of the app state go: the session's identity, the world around its calls, the front end.

use std::sync::{Arc, Mutex};

use loci_core::permission::Mode;
use loci_core::session::SessionIdentity;
use loci_stdx::Store;
use tokio::sync::mpsc::UnboundedSender;

use crate::conversation::host::lock;
use crate::event::EngineEvent;
use crate::session::config::{Ambient, SettingsApplier};
use crate::session::state::{StateEffects, change_identity};

/// What the app state's changes reach from a session.
pub(crate) struct SessionStateEffects {
    pub(crate) events: UnboundedSender<EngineEvent>,
    pub(crate) identity: Arc<Store<SessionIdentity>>,
    /// The world around the session, which its calls see too.
    pub(crate) ambient: Arc<Mutex<Ambient>>,
    /// Gives that world anew, and forgets credentials got before.
    pub(crate) apply: Option<SettingsApplier>,
}

impl StateEffects for SessionStateEffects {
    fn session_model(&self, model: Option<&str>) {
        change_identity(&self.identity, |identity| identity.model_override = model.map(str::to_owned));
    }

    fn permission_mode(&self, mode: Mode) {
        // Without a listener there is nobody to tell.
        drop(self.events.send(EngineEvent::ModeChanged(mode)));
    }

    /// Applies the environment again and clears credential caches, whoever changed the files.
    fn settings(&self) {
        if let Some(apply) = &self.apply {
            let (ambient, warnings) = apply();
            *lock(&self.ambient) = ambient;
            // Without a listener there is nobody to tell.
            warnings.into_iter().for_each(|text| drop(self.events.send(EngineEvent::Warning(text))));
        }
    }
}

#[cfg(test)]
mod tests {
    use loci_core::app_state::AppState;
    use loci_core::ids::SessionId;
    use loci_core::session::NewSession;
    use loci_stdx::Env;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::session::state::{change, connect};

    struct World {
        identity: Arc<Store<SessionIdentity>>,
        state: Store<AppState>,
        events: UnboundedReceiver<EngineEvent>,
        ambient: Arc<Mutex<Ambient>>,
    }

    fn world() -> World {
        let identity = Arc::new(Store::new(SessionIdentity::new(NewSession {
            id: SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap(),
            project_dir: "/c/projects/-p".into(),
            cwd: "/p".into(),
            is_interactive: false,
            is_persistent: true,
        })));
        let (sender, events) = unbounded_channel();
        let env = Env::for_test("/h", "/p");
        let ambient =
            Arc::new(Mutex::new(Ambient { env: env.clone(), child_env: Vec::new(), sandbox: None }));
        let child_env = vec![("NEW".to_owned(), "1".to_owned())];
        let effects = SessionStateEffects {
            events: sender,
            identity: Arc::clone(&identity),
            ambient: Arc::clone(&ambient),
            apply: Some(Box::new(move || {
                (
                    Ambient { env: env.clone(), child_env: child_env.clone(), sandbox: None },
                    vec!["told".to_owned()],
                )
            })),
        };
        World { identity, state: connect(AppState::default(), effects), events, ambient }
    }

    #[test]
    fn a_sessions_own_model_is_its_identitys() {
        let world = world();
        change(&world.state, |state| state.model.session_override = Some("haiku".to_owned()));
        assert_eq!(world.identity.get().model_override.as_deref(), Some("haiku"));
        change(&world.state, |state| state.model.session_override = None);
        assert_eq!(world.identity.get().model_override, None);
    }

    #[test]
    fn settings_that_change_are_applied_to_the_world_around() {
        let mut world = world();
        change(&world.state, |state| state.session.title = Some("new".to_owned()));
        assert!(lock(&world.ambient).child_env.is_empty(), "nothing of the settings changed");
        change(&world.state, |state| state.settings = serde_json::json!({"env": {"NEW": "#1"}}));
        assert_eq!(lock(&world.ambient).child_env, [("NEW".to_owned(), "1".to_owned())]);
        assert!(matches!(world.events.try_recv(), Ok(EngineEvent::Warning(text)) if text == "told"));
    }

    #[test]
    fn a_new_mode_is_told_to_the_front_end() {
        let mut world = world();
        change(&world.state, |state| state.permission.rulebook.mode = Mode::Plan);
        assert!(matches!(world.events.try_recv(), Ok(EngineEvent::ModeChanged(Mode::Plan))));
    }
}
