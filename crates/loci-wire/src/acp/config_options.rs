//! What can be chosen about a session: permission mode, model, effort. Modes are told twice, for clients of either age.

use loci_app::commands::{SessionCommands, effort, model};
use loci_core::permission::Mode;
use loci_engine::{Command, SessionSnapshot};
use serde_json::{Value, json};

use super::rpc::RpcError;

const NO_BYPASS: &str = "This session may not bypass permissions: loci was not started with \
                         --allow-dangerously-skip-permissions, or settings forbid it";

/// What can be chosen about a session, and what is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ConfigOptions {
    modes: Vec<Mode>,
    mode: Mode,
    /// Names, with what people read of each.
    models: Vec<(String, String)>,
    model: String,
    efforts: Vec<String>,
    effort: String,
}

impl ConfigOptions {
    /// Reads what a session says of itself. `chosen` is the name of the model that was last chosen, since several may stand
    /// for one. May read settings.
    pub(super) fn new(
        commands: &SessionCommands,
        session: &SessionSnapshot,
        may_bypass: bool,
        chosen: Option<&str>,
    ) -> Self {
        let rows = model::rows(commands, session);
        let is_chosen = |row: &&model::ModelRow| row.is_current && Some(row.name.as_str()) == chosen;
        let current = rows.iter().find(is_chosen).or_else(|| rows.iter().find(|row| row.is_current));
        let current = current.map_or_else(|| session.model.clone(), |row| row.name.clone());
        let is_offered = |row: &&model::ModelRow| row.is_available || row.name == current;
        let facts = session.catalog.facts(&session.model);
        let efforts = match (facts.has_effort, facts.effort_levels.is_empty()) {
            (false, _) => Vec::new(),
            (true, true) => effort::LEVELS.map(str::to_owned).to_vec(),
            (true, false) => facts.effort_levels.clone(),
        };
        Self {
            modes: modes(session.mode, may_bypass),
            mode: session.mode,
            models: rows.iter().filter(is_offered).map(|row| (row.name.clone(), describe(row))).collect(),
            model: current,
            effort: facts.effort(session.effort.as_deref()).unwrap_or_default(),
            efforts,
        }
    }

    /// Returns the modes as older clients have them.
    pub(super) fn modes(&self) -> Value {
        let modes: Vec<Value> = self
            .modes
            .iter()
            .map(|mode| json!({"id": mode.as_str(), "name": mode_name(*mode), "description": mode_description(*mode)}))
            .collect();
        json!({"currentModeId": self.mode.as_str(), "availableModes": modes})
    }

    /// Returns all options, the most used first.
    pub(super) fn to_value(&self) -> Value {
        let select = |id: &str, name: &str, category: &str, current: &str, options: Vec<Value>| {
            json!({
                "id": id, "name": name, "category": category, "type": "select", "currentValue": current, "options": options,
            })
        };
        let modes = self.modes.iter().map(|mode| {
            json!({"value": mode.as_str(), "name": mode_name(*mode), "description": mode_description(*mode)})
        });
        let models = self
            .models
            .iter()
            .map(|(name, about)| json!({"value": name, "name": name, "description": about}));
        let mut options = vec![
            select("mode", "Permission mode", "mode", self.mode.as_str(), modes.collect()),
            select("model", "Model", "model", &self.model, models.collect()),
        ];
        if !self.efforts.is_empty() && !self.effort.is_empty() {
            let mut levels = self.efforts.clone();
            if !levels.contains(&self.effort) {
                levels.push(self.effort.clone());
            }
            let levels = levels.iter().map(|level| json!({"value": level, "name": level})).collect();
            options.push(select("thought_level", "Effort", "thought_level", &self.effort, levels));
        }
        Value::Array(options)
    }

    /// Returns the command that chooses another value.
    pub(super) fn choose(&self, id: &str, value: &str) -> Result<Command, RpcError> {
        let refuse = || RpcError::params(format!("`{id}` cannot be set to `{value}`"));
        match id {
            "mode" => self.choose_mode(value),
            "model" if self.models.iter().any(|(name, _)| name == value) => {
                Ok(Command::SetModel { request: None, model: Some(value.to_owned()) })
            }
            "thought_level" if self.efforts.iter().any(|level| level == value) => {
                Ok(Command::SetEffort(Some(value.to_owned())))
            }
            "model" | "thought_level" => Err(refuse()),
            _ => Err(RpcError::params(format!("There is no option `{id}`"))),
        }
    }

    /// Returns the command that chooses another mode.
    pub(super) fn choose_mode(&self, value: &str) -> Result<Command, RpcError> {
        let mode = value.parse::<Mode>().map_err(|bad| RpcError::params(bad.to_string()))?;
        match self.modes.contains(&mode) {
            true => Ok(Command::SetMode(mode)),
            false if mode == Mode::BypassPermissions => Err(RpcError::params(NO_BYPASS)),
            false => Err(RpcError::params(format!("The mode `{value}` is not on offer here"))),
        }
    }
}

fn modes(current: Mode, may_bypass: bool) -> Vec<Mode> {
    let mut modes = vec![Mode::Default, Mode::AcceptEdits, Mode::Plan, Mode::DontAsk];
    if may_bypass {
        modes.push(Mode::BypassPermissions);
    }
    if !modes.contains(&current) {
        modes.push(current);
    }
    modes
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "Ask",
        Mode::AcceptEdits => "Accept edits",
        Mode::Plan => "Plan",
        Mode::Auto => "Auto",
        Mode::DontAsk => "Don't ask",
        Mode::BypassPermissions => "Bypass permissions",
    }
}

fn mode_description(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "Reads run; everything else is asked about",
        Mode::AcceptEdits => "Edits of files in the working directories run, too",
        Mode::Plan => "Nothing is changed until a plan is approved",
        Mode::Auto => "What would be asked about is judged by a classifier first",
        Mode::DontAsk => "What would be asked about is denied",
        Mode::BypassPermissions => "Everything runs unasked, but for what rules forbid",
    }
}

fn describe(row: &model::ModelRow) -> String {
    match row.name == row.id {
        true => row.facts(),
        false => format!("{}: {}", row.id, row.facts()),
    }
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_stdx::Env;
    use loci_storage::layout::ConfigHome;

    use loci_app::settings::editor::SettingsInputs;

    use super::*;

    fn options(may_bypass: bool, model: &str, chosen: Option<&str>) -> ConfigOptions {
        let env = Env::for_test("/home/dev", "/p");
        let home = ConfigHome::from_env(&env);
        let commands = SessionCommands {
            env,
            home,
            build: String::new(),
            settings: SettingsInputs::default(),
            plugin_reload: None,
        };
        let id = SessionId::parse("00000000-0000-4000-8000-000000000000").unwrap();
        ConfigOptions::new(&commands, &SessionSnapshot::empty(id, model), may_bypass, chosen)
    }

    #[test]
    fn every_option_has_a_current_value_that_is_on_offer() {
        for model in ["claude-opus-5-5", "claude-sonnet-4-5", "somebody-elses-model"] {
            let value = options(false, model, None).to_value();
            for option in value.as_array().unwrap() {
                let values: Vec<&Value> =
                    option["options"].as_array().unwrap().iter().map(|it| &it["value"]).collect();
                assert!(values.contains(&&option["currentValue"]), "{model}: {option}");
            }
        }
    }

    #[test]
    fn values_that_are_not_on_offer_are_refused() {
        let options = options(false, "claude-opus-5-5", None);
        for (id, value, is_fine) in [
            ("mode", "plan", true),
            ("mode", "bypassPermissions", false),
            ("mode", "auto", false),
            ("mode", "yolo", false),
            ("model", "sonnet", true),
            ("model", "no-such-model", false),
            ("thought_level", "high", true),
            ("thought_level", "extreme", false),
            ("brave", "yes", false),
        ] {
            assert_eq!(options.choose(id, value).is_ok(), is_fine, "{id} {value}");
        }
    }

    #[test]
    fn bypassing_is_on_offer_where_the_session_may() {
        assert!(options(true, "claude-opus-5-5", None).choose_mode("bypassPermissions").is_ok());
        assert!(options(true, "claude-opus-5-5", None).modes().to_string().contains("bypassPermissions"));
    }
}
