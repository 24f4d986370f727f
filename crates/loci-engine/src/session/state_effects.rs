//! Where the changes of the app state go, the session's identity and the front end, and what changed settings change.

use std::sync::{Arc, Mutex};

use loci_core::app_state::AppState;
use loci_core::permission::{Mode, Rulebook};
use loci_core::session::SessionIdentity;
use loci_stdx::Store;
use tokio::sync::mpsc::UnboundedSender;

use crate::conversation::host::lock;
use crate::event::EngineEvent;
use crate::session::config::{Ambient, Reloaded};
use crate::session::state::{StateEffects, change, change_identity};

/// What the app state's changes reach from a session.
pub(crate) struct SessionStateEffects {
    pub(crate) events: UnboundedSender<EngineEvent>,
    pub(crate) identity: Arc<Store<SessionIdentity>>,
}

impl StateEffects for SessionStateEffects {
    fn session_model(&self, model: Option<&str>) {
        change_identity(&self.identity, |identity| identity.model_override = model.map(str::to_owned));
    }

    fn permission_mode(&self, mode: Mode) {
        // Without a listener there is nobody to tell.
        drop(self.events.send(EngineEvent::ModeChanged(mode)));
    }
}

/// Has what changed settings mean count from now on, and tells front ends; returns the rules in force. Hooks are the
/// caller's.
pub(crate) fn apply_reloaded(
    reloaded: Reloaded,
    state: &Store<AppState>,
    ambient: &Mutex<Ambient>,
    events: &UnboundedSender<EngineEvent>,
) -> Rulebook {
    let Reloaded { rulebook, settings, hooks: _, ambient: new, warnings } = reloaded;
    if let Some(new) = new {
        *lock(ambient) = new;
    }
    let is_new = state.get().settings != settings;
    change(state, |state| {
        state.permission.rulebook = rulebook.clone();
        state.settings.clone_from(&settings);
    });
    // Without a listener there is nobody to tell.
    warnings.into_iter().for_each(|text| drop(events.send(EngineEvent::Warning(text))));
    if is_new {
        drop(events.send(EngineEvent::SettingsChanged(settings)));
    }
    rulebook
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_core::session::NewSession;
    use loci_stdx::Env;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::session::state::connect;

    struct World {
        identity: Arc<Store<SessionIdentity>>,
        state: Store<AppState>,
        sender: UnboundedSender<EngineEvent>,
        events: UnboundedReceiver<EngineEvent>,
        ambient: Mutex<Ambient>,
        env: Env,
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
        let ambient = Mutex::new(Ambient { env: env.clone(), child_env: Vec::new(), sandbox: None });
        let effects = SessionStateEffects { events: sender.clone(), identity: Arc::clone(&identity) };
        World { identity, state: connect(AppState::default(), effects), sender, events, ambient, env }
    }

    #[test]
    fn a_sessions_own_model_is_its_identitys() {
        let world = world();
        change(&world.state, |state| state.model.session_override = Some("haiku".to_owned()));
        assert_eq!(world.identity.get().model_override.as_deref(), Some("haiku"));
        change(&world.state, |state| state.model.session_override = None);
        assert_eq!(world.identity.get().model_override, None);
    }

    fn reloaded(ambient: Option<Ambient>, settings: serde_json::Value) -> Reloaded {
        let warnings = vec!["told".to_owned()];
        Reloaded { rulebook: Rulebook::default(), settings, hooks: None, ambient, warnings }
    }

    #[test]
    fn settings_that_change_are_applied_to_the_world_around() {
        let mut world = world();
        let apply = |world: &World, ambient, settings| {
            apply_reloaded(reloaded(ambient, settings), &world.state, &world.ambient, &world.sender);
        };
        apply(&world, None, serde_json::Value::Null);
        assert!(lock(&world.ambient).child_env.is_empty(), "nothing of the settings changed");
        assert!(matches!(world.events.try_recv(), Ok(EngineEvent::Warning(text)) if text == "told"));
        assert!(world.events.try_recv().is_err(), "settings that stay are no news");
        let child_env = vec![("NEW".to_owned(), "1".to_owned())];
        let ambient = Ambient { env: world.env.clone(), child_env: child_env.clone(), sandbox: None };
        let settings = serde_json::json!({"env": {"NEW": "#1"}});
        apply(&world, Some(ambient), settings.clone());
        assert_eq!(lock(&world.ambient).child_env, child_env);
        assert_eq!(world.state.get().settings, settings);
        assert!(matches!(world.events.try_recv(), Ok(EngineEvent::Warning(text)) if text == "told"));
        assert!(matches!(world.events.try_recv(), Ok(EngineEvent::SettingsChanged(now)) if now == settings));
    }

    #[test]
    fn a_new_mode_is_told_to_the_front_end() {
        let mut world = world();
        change(&world.state, |state| state.permission.rulebook.mode = Mode::Plan);
        assert!(matches!(world.events.try_recv(), Ok(EngineEvent::ModeChanged(Mode::Plan))));
    }
}
