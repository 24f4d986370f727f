//! The layer of settings that whoever started the run has given: it stands above the files and may change while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loci_settings::jsonc;
use loci_storage::config::{GivenSettings, SettingsWatch};
use serde_json::{Map, Value};

/// What was given since the run began, and the session that follows it. Clones are the same layer.
#[derive(Debug, Clone, Default)]
pub struct FlagSettings {
    state: Arc<Mutex<FlagState>>,
}

#[derive(Debug, Default)]
struct FlagState {
    /// What was given since the start; a null takes a key away.
    given: Map<String, Value>,
    watch: Option<Arc<Mutex<SettingsWatch>>>,
}

impl FlagSettings {
    /// Merges settings into the layer: objects are joined, a null takes a key away. The session takes them up with its
    /// next call, as it does with files.
    pub fn apply(&self, settings: &Map<String, Value>) {
        let mut state = lock(&self.state);
        merge(&mut state.given, settings);
        if let Some(watch) = &state.watch {
            let mut watch = lock(watch);
            let given = with_given(watch.given().cloned(), settings);
            watch.set_given(given);
        }
    }

    /// Returns what a session is started with: what the command line gave, and what was given since.
    pub(crate) fn over(&self, given: Option<GivenSettings>) -> Option<GivenSettings> {
        let state = lock(&self.state);
        match state.given.is_empty() {
            true => given,
            false => Some(with_given(given, &state.given)),
        }
    }

    /// Lets a session follow the layer from now on.
    pub(crate) fn follow(&self, watch: &Arc<Mutex<SettingsWatch>>) {
        lock(&self.state).watch = Some(Arc::clone(watch));
    }

    /// Returns the layer as it stands.
    pub fn to_value(&self) -> Value {
        let state = lock(&self.state);
        let given = state.watch.as_ref().and_then(|watch| lock(watch).given().cloned());
        Value::Object(fields_of(given.as_ref()))
    }
}

fn with_given(given: Option<GivenSettings>, settings: &Map<String, Value>) -> GivenSettings {
    let mut fields = fields_of(given.as_ref());
    merge(&mut fields, settings);
    without_nulls(&mut fields);
    let name = given.map_or_else(|| "--settings".to_owned(), |given| given.name);
    GivenSettings { text: Value::Object(fields).to_string(), name }
}

fn fields_of(given: Option<&GivenSettings>) -> Map<String, Value> {
    let value = given.and_then(|given| jsonc::parse(&given.text).root?.to_value());
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => _ = into.insert(key.clone(), value.clone()),
        }
    }
}

fn without_nulls(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
    for value in fields.values_mut() {
        if let Value::Object(inner) = value {
            without_nulls(inner);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn settings_are_merged_and_a_null_takes_a_key_away() {
        let layer = FlagSettings::default();
        let given = GivenSettings {
            text: r#"{"model": "opus", "permissions": {"deny": ["Bash"]}} // mine"#.to_owned(),
            name: "mine.json".to_owned(),
        };
        assert_eq!(layer.over(Some(given.clone())).unwrap().text, given.text);
        layer.apply(&object(json!({"model": null, "permissions": {"allow": ["Read"]}})));
        layer.apply(&object(json!({"effortLevel": "low"})));
        let over = layer.over(Some(given)).unwrap();
        assert_eq!(over.name, "mine.json");
        let expected = json!({"permissions": {"deny": ["Bash"], "allow": ["Read"]}, "effortLevel": "low"});
        assert_eq!(serde_json::from_str::<Value>(&over.text).unwrap(), expected);
    }
}
