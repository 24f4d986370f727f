//! Questions that the model puts to the user, and the answers to them.
//!
//! The questions are the input of the call; whoever asks them hands the same input back with what was answered filled
//! in: `answers` has a text for each question (the label that was chosen, labels joined by a comma, or what the user
//! typed instead), `annotations` what goes with it, and `response` a reply that answers none of them. The model never
//! fills these in: [`without_answers`] takes them out of what it sends.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Fields that only the user, or a hook in their place, fills in.
const ANSWER_FIELDS: [&str; 4] = ["answers", "annotations", "response", "afkTimeoutMs"];

/// One question with its options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserQuestion {
    /// The whole question.
    pub question: String,
    /// A word or two for a tab.
    #[serde(default)]
    pub header: String,
    /// What may be chosen.
    pub options: Vec<QuestionOption>,
    /// Whether more than one may be.
    #[serde(default)]
    pub multi_select: bool,
}

/// Something that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOption {
    /// Its name, which is the answer.
    pub label: String,
    /// What choosing it means.
    #[serde(default)]
    pub description: String,
    /// Something to show beside it, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// What a person says to one question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserAnswer {
    /// The labels that were chosen.
    pub labels: Vec<String>,
    /// What was typed in their place, or besides.
    pub other: Option<String>,
    /// What was noted beside the question.
    pub notes: Option<String>,
}

impl UserAnswer {
    /// Returns the answer as one text; nothing when nothing was said.
    fn text(&self) -> Option<String> {
        let typed = self.other.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        let said: Vec<&str> = self.labels.iter().map(String::as_str).chain(typed).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

/// Reads the questions of a call.
pub fn parse_questions(input: &Value) -> Result<Vec<UserQuestion>, String> {
    let questions = input.get("questions").cloned().unwrap_or_default();
    serde_json::from_value(questions).map_err(|error| format!("These are no questions: {error}"))
}

/// Says what is wrong with questions that cannot be asked.
pub fn check_questions(questions: &[UserQuestion]) -> Result<(), String> {
    let mut asked = Vec::new();
    for it in questions {
        if it.question.trim().is_empty() {
            return Err("A question is empty".to_owned());
        }
        if asked.contains(&&it.question) {
            return Err(format!("A question is asked twice: {}", it.question));
        }
        asked.push(&it.question);
        let mut labels: Vec<&str> = it.options.iter().map(|option| option.label.trim()).collect();
        labels.sort_unstable();
        if labels.first().is_some_and(|label| label.is_empty()) {
            return Err(format!("An option has no label, for: {}", it.question));
        }
        if let Some(pair) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("The option `{}` is there twice, for: {}", pair[0], it.question));
        }
    }
    Ok(())
}

/// Returns a call's input as the model may send it: nothing is answered in the user's place.
pub fn without_answers(mut input: Value) -> Value {
    if let Value::Object(fields) = &mut input {
        ANSWER_FIELDS.iter().for_each(|name| drop(fields.shift_remove(*name)));
    }
    input
}

/// Returns the input of a call with what a person said to each question, in their order.
pub fn with_answers(input: &Value, answers: &[UserAnswer]) -> Value {
    let questions = parse_questions(input).unwrap_or_default();
    let (mut texts, mut annotations) = (Map::new(), Map::new());
    for (question, answer) in questions.iter().zip(answers) {
        if let Some(text) = answer.text() {
            texts.insert(question.question.clone(), Value::from(text));
        }
        let chosen = question.options.iter().find(|option| answer.labels.contains(&option.label));
        let notes = answer.notes.as_ref().filter(|notes| !notes.trim().is_empty());
        let mut beside = Map::new();
        if let Some(preview) = chosen.and_then(|option| option.preview.clone()) {
            beside.insert("preview".to_owned(), Value::from(preview));
        }
        if let Some(notes) = notes {
            beside.insert("notes".to_owned(), Value::from(notes.trim()));
        }
        if !beside.is_empty() {
            annotations.insert(question.question.clone(), Value::Object(beside));
        }
    }
    let mut input = without_answers(input.clone());
    input["answers"] = Value::Object(texts);
    if !annotations.is_empty() {
        input["annotations"] = Value::Object(annotations);
    }
    input
}

/// Returns the input of a call with what was answered before whoever is asked was taken to be away.
pub fn with_answers_before(input: &Value, answers: &[UserAnswer], waited: Duration) -> Value {
    let mut input = with_answers(input, answers);
    input["afkTimeoutMs"] = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX).into();
    input
}

/// Returns how long a question waits for whoever is asked; for ever without a limit. `setting` is `askUserQuestionTimeout`,
/// and a number of milliseconds (`CLAUDE_AFK_TIMEOUT_MS`) wins over it.
pub fn answer_timeout(setting: Option<&str>, milliseconds: Option<&str>) -> Option<Duration> {
    if let Some(ms) = milliseconds.and_then(|text| text.trim().parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    match setting? {
        "60s" => Some(Duration::from_secs(60)),
        "5m" => Some(Duration::from_secs(5 * 60)),
        "10m" => Some(Duration::from_secs(10 * 60)),
        _ => None,
    }
}

/// Returns the input of a call with a reply that answers none of its questions.
pub fn with_response(input: &Value, response: &str) -> Value {
    let mut input = without_answers(input.clone());
    input["answers"] = json!({});
    input["response"] = Value::from(response);
    input
}

/// Tells whether somebody has answered.
pub fn is_answered(input: &Value) -> bool {
    let has_answers = input.get("answers").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
    has_answers || given_text(input.get("response")).is_some() || input.get("afkTimeoutMs").is_some()
}

/// What was answered, as the model is told and the transcript has it.
#[derive(Debug, Clone, PartialEq)]
pub struct AnsweredQuestions {
    /// For the model.
    pub text: String,
    /// `{questions, answers, response?, annotations?, afkTimeoutMs?}`.
    pub structured: Value,
}

impl AnsweredQuestions {
    /// Reads what was answered from the input that came back.
    pub fn read(input: &Value) -> Self {
        let questions = parse_questions(input).unwrap_or_default();
        let answers: Map<String, Value> = input
            .get("answers")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(question, answer)| Some((question.clone(), Value::from(answer_text(answer)?))))
            .collect();
        let annotations = input.get("annotations").and_then(Value::as_object);
        let text = match given_text(input.get("response")) {
            Some(response) => format!("The user responded: {response}"),
            None => answers_text(&questions, &answers, annotations, input.get("afkTimeoutMs").is_some()),
        };
        let mut structured = json!({"questions": questions, "answers": answers});
        for name in ["response", "annotations", "afkTimeoutMs"] {
            if let Some(value) = input.get(name).filter(|value| !value.is_null()) {
                structured[name] = value.clone();
            }
        }
        Self { text, structured }
    }
}

/// Clients send a text, or the list of labels.
fn answer_text(answer: &Value) -> Option<String> {
    let text = match answer {
        Value::String(text) => text.clone(),
        Value::Array(labels) => labels.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Object(_) => return None,
        Value::Bool(_) | Value::Number(_) => answer.to_string(),
    };
    (!text.trim().is_empty()).then_some(text)
}

fn given_text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

fn answers_text(
    questions: &[UserQuestion],
    answers: &Map<String, Value>,
    annotations: Option<&Map<String, Value>>,
    is_away: bool,
) -> String {
    let mut lines = Vec::new();
    let mut is_chosen = true;
    for (question, answer) in answers {
        let answer = answer.as_str().unwrap_or_default();
        lines.push(format!("- {question}\n  Answer: {answer}"));
        let beside = annotations.and_then(|all| all.get(question));
        let notes = given_text(beside.and_then(|it| it.get("notes")));
        lines.extend(notes.map(|notes| format!("  The user's note: {notes}")));
        let preview = given_text(beside.and_then(|it| it.get("preview")));
        lines.extend(preview.map(|preview| format!("  What was shown for it:\n{preview}")));
        is_chosen &= notes.is_none() && is_choice(questions, question, answer);
    }
    let open = questions.iter().filter(|it| !answers.contains_key(&it.question));
    lines.extend(open.map(|it| format!("- {}\n  (not answered)", it.question)));
    let lines = lines.join("\n");
    match (is_away, answers.is_empty()) {
        (true, true) => {
            "Nobody answered in time; the user may be away. Go on as you think best, and ask again \
                         later if it still matters."
                .to_owned()
        }
        (true, false) => format!(
            "The user may be away; this is what was chosen until now:\n{lines}\nDecide the rest as you think best, \
             and ask again later if it still matters."
        ),
        (false, true) => format!("The user answered none of the questions:\n{lines}"),
        // Whoever types may also want to wait, or to know more: nothing is said about going on.
        (false, false) if !is_chosen => format!("What the user said to the questions:\n{lines}"),
        (false, false) => format!("The user has answered:\n{lines}\nGo on with that in mind."),
    }
}

/// Tells whether an answer consists of labels alone.
fn is_choice(questions: &[UserQuestion], question: &str, answer: &str) -> bool {
    let Some(asked) = questions.iter().find(|it| it.question == question) else { return false };
    let is_label = |text: &str| asked.options.iter().any(|option| option.label.trim() == text.trim());
    is_label(answer) || (asked.multi_select && answer.split(", ").all(is_label))
}

#[cfg(test)]
mod tests {
    #[test]
    fn questions_wait_as_long_as_somebody_says() {
        let secs = |n| Some(Duration::from_secs(n));
        for (setting, ms, expected) in [
            (None, None, None),
            (Some("never"), None, None),
            (Some("60s"), None, secs(60)),
            (Some("5m"), None, secs(300)),
            (Some("10m"), None, secs(600)),
            (Some("soon"), None, None),
            (Some("never"), Some("2000"), secs(2)),
            (None, Some("0"), secs(0)),
            (Some("60s"), Some("later"), secs(60)),
        ] {
            assert_eq!(answer_timeout(setting, ms), expected, "{setting:?} {ms:?}");
        }
    }

    use super::*;

    fn input() -> Value {
        json!({"questions": [
            {"question": "Which format?", "header": "Format", "multiSelect": false, "options": [
                {"label": "Short", "description": "a line"},
                {"label": "Long", "description": "all of it", "preview": "# Long"},
            ]},
            {"question": "Which parts?", "header": "Parts", "multiSelect": true, "options": [
                {"label": "Head", "description": ""}, {"label": "Tail", "description": ""},
            ]},
        ]})
    }

    fn answer(labels: &[&str], other: Option<&str>, notes: Option<&str>) -> UserAnswer {
        UserAnswer {
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            other: other.map(str::to_owned),
            notes: notes.map(str::to_owned),
        }
    }

    #[test]
    fn answers_are_labels_joined_by_commas_and_typed_text() {
        let said =
            [answer(&["Long"], None, None), answer(&["Head", "Tail"], Some(" a bit more "), Some("soon"))];
        let filled = with_answers(&input(), &said);
        assert_eq!(
            filled["answers"],
            json!({"Which format?": "Long", "Which parts?": "Head, Tail, a bit more"})
        );
        assert_eq!(
            filled["annotations"],
            json!({"Which format?": {"preview": "# Long"}, "Which parts?": {"notes": "soon"}})
        );
        assert_eq!(without_answers(filled), input(), "and can be taken out again");
    }

    #[test]
    fn chosen_answers_ask_to_go_on_and_typed_ones_do_not() {
        for (answers, goes_on) in [
            (json!({"Which format?": "Short"}), true),
            (json!({"Which format?": "Short", "Which parts?": "Head, Tail"}), true),
            (json!({"Which parts?": ["Head", "Tail"]}), true),
            (json!({"Which format?": "wait, why?"}), false),
            (json!({"Which parts?": "Head, wait"}), false),
            (json!({"Another question": "Short"}), false),
        ] {
            let mut filled = input();
            filled["answers"] = answers.clone();
            let text = AnsweredQuestions::read(&filled).text;
            assert_eq!(text.contains("Go on with that in mind"), goes_on, "{answers}: {text}");
        }
    }

    #[test]
    fn arrays_of_labels_are_joined_in_the_structured_result() {
        let mut filled = input();
        filled["answers"] = json!({"Which parts?": ["Head", "Tail"], "x": null});
        let read = AnsweredQuestions::read(&filled);
        assert_eq!(read.structured["answers"], json!({"Which parts?": "Head, Tail"}));
        assert_eq!(read.structured["questions"], input()["questions"]);
        assert!(read.text.contains("Which format?\n  (not answered)"), "{}", read.text);
    }

    #[test]
    fn a_reply_takes_the_place_of_answers() {
        let read = AnsweredQuestions::read(&with_response(&input(), "Let us talk first."));
        assert_eq!(read.text, "The user responded: Let us talk first.");
        assert_eq!(read.structured["response"], "Let us talk first.");
        assert!(is_answered(&with_response(&input(), "x")) && !is_answered(&with_response(&input(), " ")));
    }

    #[test]
    fn somebody_who_is_away_is_told_as_such() {
        let mut filled = with_answers(&input(), &[]);
        assert!(!is_answered(&filled));
        filled["afkTimeoutMs"] = json!(60_000);
        assert!(is_answered(&filled));
        assert!(AnsweredQuestions::read(&filled).text.contains("may be away"));
    }

    #[test]
    fn questions_that_cannot_be_told_apart_are_refused() {
        let check = |change: fn(&mut Value)| {
            let mut input = input();
            change(&mut input);
            check_questions(&parse_questions(&input).unwrap())
        };
        assert_eq!(check(|_| {}), Ok(()));
        for (change, expected) in [
            ((|it| it["questions"][1]["question"] = json!("Which format?")) as fn(&mut Value), "asked twice"),
            (|it| it["questions"][0]["question"] = json!(" "), "is empty"),
            (|it| it["questions"][0]["options"][1]["label"] = json!("Short"), "there twice"),
            (|it| it["questions"][0]["options"][1]["label"] = json!(""), "no label"),
        ] {
            let error = check(change).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
