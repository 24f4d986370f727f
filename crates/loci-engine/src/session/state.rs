//! The shared state and what its changes carry across boundaries.
//!
//! One place knows which change goes where: [`connect`] gives a store whose `on_change` names the crossings and
//! hands each to its [`StateEffects`]. Front ends and engine only ever update the state.

use std::sync::Arc;

use loci_core::app_state::{AppState, Change, changes};
use loci_core::permission::Mode;
use loci_core::session::SessionIdentity;
use loci_stdx::Store;

/// Everything beyond the app state that a change can reach.
pub trait StateEffects: Send + Sync {
    /// Sets the session's own model; `None` removes it.
    fn session_model(&self, model: Option<&str>);
    /// Tells the headless stream.
    fn permission_mode(&self, mode: Mode);
}

/// Makes the store of the app state; every change crosses its boundaries before any listener hears of it.
pub fn connect(initial: AppState, effects: impl StateEffects + 'static) -> Store<AppState> {
    Store::with_on_change(initial, move |new, old| {
        for change in changes(new, old) {
            apply(&effects, &change);
        }
    })
}

fn apply(effects: &dyn StateEffects, change: &Change) {
    match change {
        Change::SessionModel(model) => effects.session_model(model.as_deref()),
        Change::PermissionMode(mode) => effects.permission_mode(*mode),
    }
}

/// Replaces one field's worth of state; equal states notify nobody.
pub fn change(store: &Store<AppState>, edit: impl FnOnce(&mut AppState)) {
    store.update_eq(|state| {
        let mut next = AppState::clone(state);
        edit(&mut next);
        Arc::new(next)
    });
}

/// Changes the permission mode. What it was before planning is remembered, to go back to.
pub(crate) fn set_mode(store: &Store<AppState>, mode: Mode) {
    change(store, |state| {
        let before = state.permission.rulebook.mode;
        state.permission.rulebook.mode = mode;
        remember_mode(state, before);
    });
}

/// Notes the mode that planning took the place of.
pub(crate) fn remember_mode(state: &mut AppState, before: Mode) {
    if state.permission.rulebook.mode == Mode::Plan && before != Mode::Plan {
        state.permission.before_plan = Some(before);
    }
}

/// Changes the session's identity; listeners hear of it.
pub fn change_identity(store: &Store<SessionIdentity>, edit: impl FnOnce(&mut SessionIdentity)) {
    store.update_eq(|identity| {
        let mut next = SessionIdentity::clone(identity);
        edit(&mut next);
        Arc::new(next)
    });
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use loci_core::ids::SessionId;
    use loci_core::session::{Lineage, NewSession};

    use super::*;

    #[derive(Clone, Default)]
    struct EffectLog(Arc<Mutex<Vec<String>>>);

    impl EffectLog {
        fn record(&self, what: String) {
            self.0.lock().unwrap().push(what);
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    impl StateEffects for EffectLog {
        fn session_model(&self, model: Option<&str>) {
            self.record(format!("session model {model:?}"));
        }
        fn permission_mode(&self, mode: Mode) {
            self.record(format!("mode {mode}"));
        }
    }

    #[test]
    fn changes_cross_their_boundaries_before_listeners_hear() {
        let log = EffectLog::default();
        let store = connect(AppState::default(), log.clone());
        let listener = log.clone();
        let _subscription = store.subscribe(move |_| listener.record("listener".to_owned()));
        change(&store, |state| state.model.session_override = Some("opus".to_owned()));
        assert_eq!(log.take(), [r#"session model Some("opus")"#, "listener"]);
        change(&store, |state| state.model.session_override = None);
        assert_eq!(log.take(), ["session model None", "listener"]);
        change(&store, |state| state.permission.rulebook.mode = Mode::Plan);
        assert_eq!(log.take(), ["mode plan", "listener"]);
        change(&store, |state| {
            state.model.session_override = Some("haiku".to_owned());
            state.settings = serde_json::json!({"env": {}});
        });
        assert_eq!(log.take(), [r#"session model Some("haiku")"#, "listener"]);
        change(&store, |_| {});
        assert_eq!(log.take(), [""; 0], "the same value notifies nobody");
    }

    #[test]
    fn clearing_the_state_leaks_no_identity() {
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let beginning = NewSession {
            id: id.clone(),
            project_dir: "/c/projects/-p".into(),
            cwd: "/p".into(),
            is_interactive: true,
            is_persistent: true,
        };
        let identity = Store::new(SessionIdentity::new(beginning));
        let state = connect(AppState::default(), EffectLog::default());
        change(&state, |state| state.session.title = Some("old".to_owned()));
        change(&state, |state| *state = AppState::default());
        assert_eq!(state.get().session.title, None);
        assert_eq!(identity.get().id(), &id, "replacing the app state leaves the identity alone");
    }

    #[test]
    fn listeners_are_told_of_a_switch() {
        let id = |n: u8| SessionId::parse(&format!("0a0a0a0a-0001-4000-8000-0000000000{n:02}")).unwrap();
        let identity = Store::new(SessionIdentity::new(NewSession {
            id: id(1),
            project_dir: "/c/projects/-p".into(),
            cwd: "/p".into(),
            is_interactive: false,
            is_persistent: true,
        }));
        let log = EffectLog::default();
        let listener = log.clone();
        let _subscription = identity.subscribe(move |identity| {
            listener.record(identity.transcript_path().display().to_string());
        });
        change_identity(&identity, |identity| *identity = identity.switched(id(2), "/c/projects/-q".into()));
        change_identity(&identity, |identity| *identity = identity.regenerated(id(3), Lineage::Child));
        assert_eq!(
            log.take(),
            [format!("/c/projects/-q/{}.jsonl", id(2)), format!("/c/projects/-q/{}.jsonl", id(3))]
        );
        assert_eq!(identity.get().parent(), Some(&id(2)));
        assert_eq!(identity.get().project_root(), Path::new("/p"));
    }
}
