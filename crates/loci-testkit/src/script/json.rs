//! The JSON form of a script, for files and fixtures.
//!
//! A script is a list of steps, or an object:
//!
//! ```json
//! {"choose": "main_requests" | "every_request" | "assistant_turns", "steps": [..]}
//! ```
//!
//! A step takes these keys, all optional:
//!
//! - `thinking`, `text`, `tools` (`[{"name", "input", "id"?}]`): short forms, played in that order;
//! - `content`: content blocks in full, after the short forms;
//! - `stop_reason`, `stop_sequence`, `usage`, `delay_ms`, `chunk`, `chunk_delay_ms`, `times`;
//! - `status`, `headers` (object), `error` (`{"type", "message"}`);
//! - `break`: `{"cut": {"after": 3}}`, `{"cut_inside": "middle"}`, `{"stall": {"after": 3}}`,
//!   `{"error_event": {"at": "middle", "kind": .., "message": ..}}`, `{"malformed": "middle"}`, `"hang"`,
//!   `"refuse"`; with `reset` and `unknown_events` as flags.
//!
//! `{"repeat": step, "n": 3}` stands for that step three times. Gates, exceptions and dynamic steps are
//! code and have no JSON form; they are left out when a script is written.

use super::{Break, Choice, Script, Step, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::time::Duration;

#[derive(Deserialize)]
#[serde(untagged)]
enum ScriptForm {
    List(Vec<ItemForm>),
    Object { choose: Option<Choice>, steps: Vec<ItemForm> },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ItemForm {
    Repeat { repeat: Box<StepForm>, n: usize },
    One(Box<StepForm>),
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StepForm {
    #[serde(skip_serializing)]
    thinking: Option<String>,
    #[serde(skip_serializing)]
    text: Option<String>,
    #[serde(skip_serializing)]
    tools: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    content: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "is_zero")]
    delay_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk: Option<usize>,
    #[serde(skip_serializing_if = "is_zero")]
    chunk_delay_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorForm>,
    #[serde(rename = "break", skip_serializing_if = "Option::is_none")]
    broken: Option<Break>,
    #[serde(skip_serializing_if = "is_false")]
    reset: bool,
    #[serde(skip_serializing_if = "is_false")]
    unknown_events: bool,
}

#[derive(Serialize, Deserialize)]
struct ErrorForm {
    r#type: String,
    message: String,
}

impl<'de> Deserialize<'de> for Script {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (choose, items) = match ScriptForm::deserialize(deserializer)? {
            ScriptForm::List(items) => (None, items),
            ScriptForm::Object { choose, steps } => (choose, steps),
        };
        let mut script = items.into_iter().fold(Script::new([]), |script, item| match item {
            ItemForm::Repeat { repeat, n } => script.then_repeat((*repeat).into(), n),
            ItemForm::One(step) => script.then((*step).into()),
        });
        script.choice = choose.unwrap_or(script.choice);
        Ok(script)
    }
}

impl Serialize for Script {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({"choose": self.choice, "steps": self.steps}).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StepForm::deserialize(deserializer).map(Step::from)
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StepForm::from(self).serialize(serializer)
    }
}

impl From<StepForm> for Step {
    fn from(form: StepForm) -> Self {
        let mut step = Step::new();
        if let Some(thinking) = form.thinking {
            step = step.thinking(thinking, "c2lnbmF0dXJl");
        }
        if let Some(text) = form.text {
            step = step.then_text(text);
        }
        for mut tool in form.tools {
            tool.insert("type".into(), "tool_use".into());
            step = step.raw_block(Value::Object(tool));
        }
        step.content.extend(form.content);
        for (name, value) in &form.headers {
            step = step.header(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
        step.stop_reason = form.stop_reason;
        step.stop_sequence = form.stop_sequence;
        step.usage = form.usage.unwrap_or_default();
        step.delay = Duration::from_millis(form.delay_ms);
        step.chunk = form.chunk.unwrap_or(step.chunk).max(1);
        step.chunk_delay = Duration::from_millis(form.chunk_delay_ms);
        step.times = form.times.unwrap_or(1);
        step.status = form.status;
        step.error = form.error.map(|it| (it.r#type, it.message));
        step.broken = form.broken;
        step.reset = form.reset;
        step.unknown_events = form.unknown_events;
        step
    }
}

impl From<&Step> for StepForm {
    fn from(step: &Step) -> Self {
        let plain = Step::new();
        Self {
            content: step.content.clone(),
            stop_reason: step.stop_reason.clone(),
            stop_sequence: step.stop_sequence.clone(),
            usage: (step.usage != plain.usage).then_some(step.usage),
            delay_ms: step.delay.as_millis() as u64,
            chunk: (step.chunk != plain.chunk).then_some(step.chunk),
            chunk_delay_ms: step.chunk_delay.as_millis() as u64,
            times: (step.times != 1).then_some(step.times),
            status: step.status,
            headers: step.headers.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect(),
            error: step.error.clone().map(|(r#type, message)| ErrorForm { r#type, message }),
            broken: step.broken.clone(),
            reset: step.reset,
            unknown_events: step.unknown_events,
            ..Self::default()
        }
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}
