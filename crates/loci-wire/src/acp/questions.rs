//! Questions for the person at the editor: may this call run, is this plan good, what should be done, what does a server
//! want to know.
//!
//! A client that shows forms gets forms; any other gets permission requests whose options are the answers. Each question is
//! a future: whoever drops it takes the question back.

use std::path::PathBuf;

use loci_core::user_question::{UserAnswer, UserQuestion, with_answers};
use loci_engine::{Answer, Question, QuestionKind};
use loci_stdx::visible;
use serde_json::{Map, Value, json};

use super::capabilities::ClientCapabilities;
use super::peer::Peer;
use super::permission::{self, Reply, chosen, deny, option};
use super::tool_call::CallView;

const NO: &str = "The user does not want this call to run.";
const NO_PLAN: &str = "The user wants the plan to be worked on further.";
const NO_ANSWER: &str = "The user did not answer the questions.";
/// What the field for a text of one's own is called, behind its question's.
const OTHER: &str = "_other";
const SKIP: &str = "skip";

/// Whoever is asked, about the calls of one session.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) peer: Peer,
    pub(super) session: String,
    pub(super) client: ClientCapabilities,
    pub(super) cwd: PathBuf,
}

impl Asker {
    /// Asks what the engine wants to know.
    pub(super) async fn ask(&self, question: &Question) -> Reply {
        match &question.kind {
            QuestionKind::Permission => self.ask_permission(question, "Allow", "Reject", NO).await,
            QuestionKind::PlanApproval if self.client.has_forms => self.plan_form(question).await.into(),
            QuestionKind::PlanApproval => {
                self.ask_permission(question, "Yes, go ahead", "No, keep planning", NO_PLAN).await
            }
            QuestionKind::Answers(questions) if self.client.has_forms => {
                self.question_form(question, questions).await.into()
            }
            QuestionKind::Answers(questions) => self.ask_in_turn(question, questions).await.into(),
        }
    }

    async fn ask_permission(&self, question: &Question, yes: &str, no: &str, message: &str) -> Reply {
        let view = CallView::new(&question.tool, &question.input);
        let mut call = view.permission_request(question.call.as_str(), &self.cwd);
        if let Some(agent) = &question.agent {
            let title = call["title"].as_str().unwrap_or_default();
            call["title"] = json!(format!("{} asks: {title}", visible(&agent.label())));
        }
        let mut reasons = vec![visible(&question.reason)];
        reasons.extend(
            question.links.iter().map(|link| {
                visible(&format!("{} leads to {}", link.requested.display(), link.real.display()))
            }),
        );
        reasons.retain(|reason| !reason.is_empty());
        if let (Some(content), false) = (call["content"].as_array_mut(), reasons.is_empty()) {
            let text = json!({"type": "text", "text": reasons.join("\n")});
            content.push(json!({"type": "content", "content": text}));
        }
        let options = permission::options(question, yes, no);
        permission::reply(question, self.request_permission(call, options).await, message)
    }

    async fn request_permission(
        &self,
        call: Value,
        options: Vec<Value>,
    ) -> Result<Value, super::rpc::RpcError> {
        let params = json!({"sessionId": self.session, "toolCall": call, "options": options});
        self.peer.request("session/request_permission", &params).await
    }

    /// Shows a form and returns what was filled in; the error is the answer where nothing was.
    async fn show_form(
        &self,
        call: Option<&str>,
        message: &str,
        schema: Value,
    ) -> Result<Map<String, Value>, Action> {
        let mut params = json!({
            "sessionId": self.session, "mode": "form", "message": message, "requestedSchema": schema,
        });
        if let Some(call) = call {
            params["toolCallId"] = json!(call);
        }
        let answer = self.peer.request("elicitation/create", &params).await;
        match answer.as_ref().map(|answer| answer["action"].as_str()) {
            Ok(Some("accept")) => {
                Ok(answer.ok().and_then(|it| it["content"].as_object().cloned()).unwrap_or_default())
            }
            Ok(Some("decline")) => Err(Action::Decline),
            _ => Err(Action::Cancel),
        }
    }

    async fn plan_form(&self, question: &Question) -> Answer {
        let options = permission::options(question, "Yes, go ahead", "No, keep planning");
        let choices: Vec<Value> =
            options.iter().map(|it| json!({"const": it["optionId"], "title": it["name"]})).collect();
        let schema = json!({
            "type": "object",
            "properties": {
                "decision": {"type": "string", "title": "Is this plan good?", "oneOf": choices},
                "comment": {"type": "string", "title": "What is missing?"},
            },
            "required": ["decision"],
        });
        let plan = question.input.get("plan").and_then(Value::as_str).unwrap_or("Is this plan good?");
        let filled = match self.show_form(Some(question.call.as_str()), plan, schema).await {
            Ok(filled) => filled,
            Err(_) => return deny(NO_PLAN),
        };
        let select = json!({"outcome": {"outcome": "selected", "optionId": filled.get("decision")}});
        let comment =
            filled.get("comment").and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
        let no =
            comment.map_or_else(|| NO_PLAN.to_owned(), |comment| format!("{NO_PLAN} They say: {comment}"));
        permission::reply(question, Ok(select), &no).answer
    }

    async fn question_form(&self, question: &Question, questions: &[UserQuestion]) -> Answer {
        let message = match questions {
            [only] => only.question.clone(),
            _ => "Some questions before this goes on".to_owned(),
        };
        let filled =
            match self.show_form(Some(question.call.as_str()), &message, form_schema(questions)).await {
                Ok(filled) => filled,
                Err(_) => return deny(NO_ANSWER),
            };
        answered(question, &form_answers(questions, &filled))
    }

    /// Asks one question after another, each by options.
    async fn ask_in_turn(&self, question: &Question, questions: &[UserQuestion]) -> Answer {
        let mut answers = Vec::new();
        for (n, it) in questions.iter().enumerate() {
            let mut options: Vec<Value> = it
                .options
                .iter()
                .enumerate()
                .map(|(idx, choice)| {
                    option(&idx.to_string(), &choice_name(&choice.label, &choice.description), "allow_once")
                })
                .collect();
            options.push(option(SKIP, "Skip", "reject_once"));
            let text = json!({"type": "text", "text": visible(&it.question)});
            let call = json!({
                "toolCallId": question.call.as_str(),
                "title": visible(&it.question),
                "kind": "other",
                "status": "pending",
                "content": [{"type": "content", "content": text}],
            });
            tracing::debug!(target: "loci::control", "question {} of {} as options", n + 1, questions.len());
            let label = match chosen(self.request_permission(call, options).await) {
                Ok(id) => {
                    id.parse::<usize>().ok().and_then(|idx| it.options.get(idx)).map(|it| it.label.clone())
                }
                Err(answer) => return answer,
            };
            answers.push(UserAnswer { labels: label.into_iter().collect(), ..UserAnswer::default() });
        }
        answered(question, &answers)
    }

    /// Asks what a server wants to know; returns the answer as the engine reads it.
    pub(super) async fn elicit(&self, payload: &Map<String, Value>) -> Value {
        let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = visible(&format!("{} asks: {}", text("mcp_server_name"), text("message")));
        let schema = payload.get("requested_schema").cloned().unwrap_or_else(|| json!({"type": "object"}));
        let outcome = match text("mode") {
            "url" if self.client.opens_urls => {
                self.open_url(&message, text("url"), text("elicitation_id")).await
            }
            "url" => Err(Action::Cancel),
            _ if self.client.has_forms => self.show_form(None, &message, schema).await,
            _ => self.elicit_by_options(&message, &schema).await,
        };
        match outcome {
            Ok(content) => json!({"action": "accept", "content": content}),
            Err(Action::Decline) => json!({"action": "decline"}),
            Err(Action::Cancel) => json!({"action": "cancel"}),
        }
    }

    async fn open_url(&self, message: &str, url: &str, id: &str) -> Result<Map<String, Value>, Action> {
        let params = json!({
            "sessionId": self.session, "mode": "url", "message": message, "url": url, "elicitationId": id,
        });
        match self.peer.request("elicitation/create", &params).await {
            Ok(answer) if answer["action"] == "accept" => Ok(Map::new()),
            Ok(answer) if answer["action"] == "decline" => Err(Action::Decline),
            Ok(_) | Err(_) => Err(Action::Cancel),
        }
    }

    /// Asks by options what one choice answers; whatever needs more cannot be asked here.
    async fn elicit_by_options(&self, message: &str, schema: &Value) -> Result<Map<String, Value>, Action> {
        let (name, values) = single_choice(schema).ok_or(Action::Cancel)?;
        let mut options: Vec<Value> = values
            .iter()
            .enumerate()
            .map(|(idx, (_, title))| option(&idx.to_string(), &visible(title), "allow_once"))
            .collect();
        options.push(option(SKIP, "Decline", "reject_once"));
        let id = format!("elicitation-{}", self.session);
        let call = json!({"toolCallId": id, "title": message, "kind": "other", "status": "pending"});
        let id = chosen(self.request_permission(call, options).await).map_err(|_| Action::Cancel)?;
        let (value, _) = id.parse::<usize>().ok().and_then(|idx| values.get(idx)).ok_or(Action::Decline)?;
        Ok(name.map(|name| (name, value.clone())).into_iter().collect())
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Decline,
    Cancel,
}

fn choice_name(label: &str, description: &str) -> String {
    match description.trim() {
        "" => visible(label),
        about => visible(&format!("{label}: {about}")),
    }
}

fn answered(question: &Question, answers: &[UserAnswer]) -> Answer {
    let has_said = answers.iter().any(|it| !it.labels.is_empty() || it.other.is_some());
    match has_said {
        true => Answer::Allow { input: Some(with_answers(&question.input, answers)), updates: Vec::new() },
        false => deny(NO_ANSWER),
    }
}

fn field_name(n: usize) -> String {
    format!("question_{}", n + 1)
}

/// Returns the form of some questions: a choice for each, and room for a text of one's own.
fn form_schema(questions: &[UserQuestion]) -> Value {
    let mut properties = Map::new();
    for (n, it) in questions.iter().enumerate() {
        let choices: Vec<Value> = it
            .options
            .iter()
            .map(|choice| json!({"const": choice.label, "title": choice.label, "description": choice.description}))
            .collect();
        let title = if it.header.is_empty() { &it.question } else { &it.header };
        let field = match it.multi_select {
            true => {
                json!({"type": "array", "title": title, "description": it.question, "items": {"anyOf": choices}})
            }
            false => json!({"type": "string", "title": title, "description": it.question, "oneOf": choices}),
        };
        properties.insert(field_name(n), field);
        let other = json!({"type": "string", "title": format!("{title}: something else")});
        properties.insert(format!("{}{OTHER}", field_name(n)), other);
    }
    json!({"type": "object", "properties": properties, "required": []})
}

fn form_answers(questions: &[UserQuestion], filled: &Map<String, Value>) -> Vec<UserAnswer> {
    let answer = |(n, it): (usize, &UserQuestion)| {
        let name = field_name(n);
        let said = match filled.get(&name) {
            Some(Value::String(label)) => vec![label.as_str()],
            Some(Value::Array(labels)) => labels.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        // The client's word is not taken for what was on offer.
        let labels = said.into_iter().filter(|label| it.options.iter().any(|choice| choice.label == *label));
        let other = filled.get(&format!("{name}{OTHER}")).and_then(Value::as_str).map(str::trim);
        UserAnswer {
            labels: labels.map(str::to_owned).collect(),
            other: other.filter(|text| !text.is_empty()).map(str::to_owned),
            notes: None,
        }
    };
    questions.iter().enumerate().map(answer).collect()
}

/// Returns the field and the values of a schema that one choice fills in: a yes or no, one of some texts, or nothing at all.
#[expect(clippy::type_complexity, reason = "a name and its values with their titles, used once")]
fn single_choice(schema: &Value) -> Option<(Option<String>, Vec<(Value, String)>)> {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let mut fields = properties.iter();
    let Some((name, field)) = fields.next() else {
        return Some((None, vec![(Value::Null, "Accept".to_owned())]));
    };
    if fields.next().is_some() {
        return None;
    }
    let titled = |value: &Value| Some((value["const"].clone(), value["title"].as_str()?.to_owned()));
    let values: Vec<(Value, String)> = match (field["type"].as_str()?, &field["enum"], &field["oneOf"]) {
        ("boolean", _, _) => vec![(json!(true), "Yes".to_owned()), (json!(false), "No".to_owned())],
        ("string", Value::Array(values), _) => {
            values.iter().filter_map(|value| Some((value.clone(), value.as_str()?.to_owned()))).collect()
        }
        ("string", _, Value::Array(values)) => values.iter().filter_map(titled).collect(),
        _ => return None,
    };
    (!values.is_empty()).then(|| (Some(name.clone()), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn questions() -> Vec<UserQuestion> {
        let questions = json!([
            {"question": "Which?", "header": "Kind", "options": [{"label": "A", "description": "first"}, {"label": "B"}]},
            {"question": "What else?", "options": [{"label": "C"}, {"label": "D"}], "multiSelect": true},
        ]);
        serde_json::from_value(questions).unwrap()
    }

    #[test]
    fn questions_become_a_form_and_the_form_answers() {
        let schema = form_schema(&questions());
        assert_eq!(
            schema["properties"]["question_1"]["oneOf"][0],
            json!({"const": "A", "title": "A", "description": "first"})
        );
        assert_eq!(schema["properties"]["question_2"]["items"]["anyOf"][1]["const"], "D");
        let filled =
            json!({"question_1": "A", "question_2": ["C", "D", "made up"], "question_2_other": " e "});
        let answers = form_answers(&questions(), filled.as_object().unwrap());
        assert_eq!(answers[0].labels, ["A"]);
        assert_eq!((answers[1].labels.join(" "), answers[1].other.as_deref()), ("C D".to_owned(), Some("e")));
        let wrong = json!({"question_1": 5, "question_2": "Z"});
        assert!(
            form_answers(&questions(), wrong.as_object().unwrap())
                .iter()
                .all(|it| *it == UserAnswer::default())
        );
    }

    #[test]
    fn one_choice_fills_in_small_schemas_alone() {
        let names = |schema: Value| {
            single_choice(&schema).map(|(name, values)| {
                let values: Vec<String> = values.into_iter().map(|(_, title)| title).collect();
                format!("{} {}", name.unwrap_or_default(), values.join(","))
            })
        };
        for (schema, expected) in [
            (json!({}), Some(" Accept")),
            (json!({"properties": {"go": {"type": "boolean"}}}), Some("go Yes,No")),
            (json!({"properties": {"k": {"type": "string", "enum": ["a", "b"]}}}), Some("k a,b")),
            (
                json!({"properties": {"k": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}}}),
                Some("k A"),
            ),
            (json!({"properties": {"k": {"type": "string"}}}), None),
            (json!({"properties": {"k": {"type": "string", "enum": []}}}), None),
            (json!({"properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}), None),
        ] {
            assert_eq!(names(schema.clone()).as_deref(), expected, "{schema}");
        }
    }
}
