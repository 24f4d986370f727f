//! A session's facts as JSON, the same in every verb.

use std::borrow::Cow;
use std::io::Write;

use loci_stdx::put_json_text;
use loci_storage::layout::Dialect;
use loci_storage::sessions::SessionSummary;
use serde_json::{Map, Value};

/// What is told of a session, by name; times are milliseconds since 1970, what is not known is null.
type Fields<'a> = [(&'static str, Field<'a>); 25];

#[derive(Debug)]
enum Field<'a> {
    Unknown,
    Text(Cow<'a, str>),
    Number(i64),
    Size(u64),
    Amount(f64),
    Flag(bool),
}

/// Takes what is told off what is known.
fn fields(session: &SessionSummary) -> Fields<'_> {
    use Field::{Flag, Number, Size};
    let facts = &session.facts;
    let labels = &facts.labels;
    let file = session.place.file();
    let project = file.parent().and_then(|dir| dir.file_name()).map(|name| name.to_string_lossy());
    [
        ("sessionId", text(Some(session.place.id().as_str()))),
        ("origin", text(origin(session.place.dialect()))),
        ("title", text(labels.title())),
        ("customTitle", text(labels.custom.as_deref())),
        ("generatedTitle", text(labels.generated.as_deref())),
        ("name", text(labels.name.as_deref())),
        ("summary", text(facts.headline())),
        ("firstPrompt", text(facts.first_prompt.as_deref())),
        ("lastPrompt", text(labels.last_prompt.as_deref())),
        ("tag", text(labels.tag.as_deref())),
        ("gitBranch", text(facts.git_branch.as_deref())),
        ("cwd", text(facts.cwd.as_deref())),
        ("entrypoint", text(facts.entrypoint.as_deref())),
        ("createdAt", facts.created.map_or(Field::Unknown, |moment| Number(moment.as_millisecond()))),
        ("lastActivity", Number(facts.newest_ms())),
        ("lastModified", Number(facts.modified_ms)),
        ("fileSize", Size(facts.size)),
        ("messages", Size(facts.messages.number())),
        ("messagesAreExact", Flag(facts.messages.is_exact())),
        ("costUsd", facts.cost_usd.map_or(Field::Unknown, Field::Amount)),
        ("forkedFrom", text(facts.forked_from.as_deref())),
        ("isSidechain", Flag(facts.is_sidechain)),
        ("isEmpty", Flag(facts.is_empty)),
        ("project", project.map_or(Field::Unknown, Field::Text)),
        ("path", Field::Text(file.to_string_lossy())),
    ]
}

fn text(text: Option<&str>) -> Field<'_> {
    text.map_or(Field::Unknown, |text| Field::Text(text.into()))
}

/// Returns the facts as a value, for verbs that add to them.
pub(super) fn json(session: &SessionSummary) -> Value {
    let value = |field: Field<'_>| match field {
        Field::Unknown => Value::Null,
        Field::Text(text) => text.into(),
        Field::Number(number) => number.into(),
        Field::Size(number) => number.into(),
        Field::Amount(number) => number.into(),
        Field::Flag(flag) => flag.into(),
    };
    fields(session)
        .into_iter()
        .map(|(name, field)| (name.to_owned(), value(field)))
        .collect::<Map<_, _>>()
        .into()
}

/// Writes the facts without making a value of them: lists have thousands.
pub(super) fn put_json(out: &mut Vec<u8>, session: &SessionSummary) -> std::io::Result<()> {
    for (idx, (name, field)) in fields(session).into_iter().enumerate() {
        out.push(if idx == 0 { b'{' } else { b',' });
        put_json_text(out, name);
        out.push(b':');
        match field {
            Field::Unknown => out.extend_from_slice(b"null"),
            Field::Text(text) => put_json_text(out, &text),
            Field::Number(number) => write!(out, "{number}")?,
            Field::Size(number) => write!(out, "{number}")?,
            Field::Amount(number) => serde_json::to_writer(&mut *out, &number)?,
            Field::Flag(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
        }
    }
    out.push(b'}');
    Ok(())
}

/// Returns the program whose session it is, unless it is in our own form.
pub(super) fn origin(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Own => None,
        Dialect::Codex => Some("codex"),
    }
}

#[cfg(test)]
mod tests {
    use loci_core::ids::SessionId;
    use loci_storage::layout::SessionPlace;
    use loci_storage::sessions::session_summary;

    use super::*;

    #[test]
    fn list_json_agrees_with_other_verbs_json() {
        let dir = tempfile::tempdir().unwrap();
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let file = dir.path().join(format!("{id}.jsonl"));
        let said = r#"{"type":"user","uuid":"u","timestamp":"2026-01-01T00:00:00.500Z","cwd":"/p \\ q","message":{"role":"user","content":"say \"hi\"\n\u0001é"}}"#;
        let title = r#"{"type":"custom-title","customTitle":"a \"title\"","sessionId":"s"}"#;
        std::fs::write(&file, format!("{said}\n{title}\n")).unwrap();
        let session = session_summary(&SessionPlace::new(file, id)).unwrap().unwrap();
        let mut out = Vec::new();
        put_json(&mut out, &session).unwrap();
        let told: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(told, json(&session));
        assert_eq!((&told["title"], &told["cwd"]), (&"a \"title\"".into(), &"/p \\ q".into()));
        assert_eq!(told["createdAt"], 1_767_225_600_500_i64);
    }
}
