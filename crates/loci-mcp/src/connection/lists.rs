//! What a server has, page by page, and the use of it: calling tools, reading resources, filling in prompts.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::subscription::time_to_live;
use super::{CallError, Connection, Outgoing, RequestLimits};
use crate::catalog::{HeaderParam, PromptSpec, Resource, ToolSpec, parse_items};
use crate::content::{CallResult, ContentPart};
use crate::names::brief;

/// The most pages and items of one list: a server that never comes to an end is cut short.
const MOST_PAGES: usize = 200;
const MOST_ITEMS: usize = 5_000;
/// The most values that are offered for an argument; the protocol allows no more.
const MOST_COMPLETIONS: usize = 100;
/// How often a list is asked for before giving up, and how long to wait between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);

/// A list, and what is wrong with what is not in it.
pub(crate) type Listed<T> = (Vec<T>, Vec<String>);

impl Connection {
    /// Lists the tools.
    pub(crate) async fn tools(&self, limit: Duration) -> Result<Listed<ToolSpec>, CallError> {
        let mirrors_params = self.mirrors_params();
        let parse = |item: &Value| {
            let tool = ToolSpec::parse(item)?;
            match &tool.header_params {
                Err(problem) if mirrors_params => Err(problem.clone()),
                Ok(_) | Err(_) => Ok(tool),
            }
        };
        self.list("tools/list", "tools", parse, limit).await
    }

    /// Lists the resources.
    pub(crate) async fn resources(&self, limit: Duration) -> Result<Listed<Resource>, CallError> {
        self.list("resources/list", "resources", Resource::parse, limit).await
    }

    /// Lists the prompts.
    pub(crate) async fn prompts(&self, limit: Duration) -> Result<Listed<PromptSpec>, CallError> {
        self.list("prompts/list", "prompts", PromptSpec::parse, limit).await
    }

    /// Calls a tool; `meta` is passed on beside the arguments, and what is known of the tool says which of them headers say
    /// again.
    pub(crate) async fn call(
        &self,
        tool: &str,
        known: Option<&ToolSpec>,
        arguments: Value,
        meta: Value,
        limits: RequestLimits,
    ) -> Result<CallResult, CallError> {
        let header_params = known.and_then(|tool| tool.header_params.as_deref().ok());
        let headers = match header_params.filter(|_| self.mirrors_params()) {
            Some(params) => HeaderParam::headers(params, &arguments),
            None => Vec::new(),
        };
        let mut params =
            Map::from_iter([("name".to_owned(), json!(tool)), ("arguments".to_owned(), arguments)]);
        if meta.is_object() {
            params.insert("_meta".to_owned(), meta);
        }
        // In the newer era the server makes a task of what it likes.
        let is_task = self.shared.envelope.get().is_none() && known.is_some_and(|tool| tool.needs_task);
        if is_task {
            params.insert("task".to_owned(), json!({}));
        }
        let outgoing = Outgoing { headers, ..Outgoing::new("tools/call", params) };
        let result = self.ask(outgoing, limits.clone()).await?;
        let result = match result.get("task").filter(|_| is_task) {
            Some(task) => self.follow_older_task(task, &limits).await?,
            None => result,
        };
        Ok(CallResult::parse(&result))
    }

    /// Reads a resource.
    pub(crate) async fn read(&self, uri: &str, limits: RequestLimits) -> Result<Vec<ContentPart>, CallError> {
        if let Some(parts) = self.shared.reads.get(uri, Instant::now()) {
            return Ok(parts);
        }
        let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
        let result = self.ask(Outgoing::new("resources/read", params), limits).await?;
        let Some(contents) = result.get("contents").and_then(Value::as_array) else {
            return Err(CallError::Unreadable("it has no contents".to_owned()));
        };
        let parts: Vec<ContentPart> = contents.iter().map(ContentPart::parse_resource).collect();
        if let (Some(ttl), true) = (time_to_live(&result), self.shared.envelope.get().is_some()) {
            self.shared.reads.keep(uri, ttl, &parts, Instant::now());
        }
        Ok(parts)
    }

    /// Has a prompt filled in; returns its messages' roles and parts.
    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        limits: RequestLimits,
    ) -> Result<Vec<(String, ContentPart)>, CallError> {
        let params = Map::from_iter([
            ("name".to_owned(), json!(name)),
            ("arguments".to_owned(), Value::Object(arguments)),
        ]);
        let result = self.ask(Outgoing::new("prompts/get", params), limits).await?;
        let Some(messages) = result.get("messages").and_then(Value::as_array) else {
            return Err(CallError::Unreadable("it has no messages".to_owned()));
        };
        let part = |message: &Value| {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("user").to_owned();
            let content = message.get("content").unwrap_or(&Value::Null);
            match content {
                Value::Array(parts) => {
                    parts.iter().map(|part| (role.clone(), ContentPart::parse(part))).collect()
                }
                Value::String(text) => vec![(role, ContentPart::Text(text.clone()))],
                content => vec![(role, ContentPart::parse(content))],
            }
        };
        Ok(messages.iter().flat_map(part).collect())
    }

    /// Asks what an argument of a prompt could be, given what is typed of it and what the others are.
    pub(crate) async fn complete(
        &self,
        prompt: &str,
        (argument, typed): (&str, &str),
        others: Map<String, Value>,
        limit: Duration,
    ) -> Result<Vec<String>, CallError> {
        let mut params = Map::from_iter([
            ("ref".to_owned(), json!({"type": "ref/prompt", "name": prompt})),
            ("argument".to_owned(), json!({"name": argument, "value": typed})),
        ]);
        if !others.is_empty() {
            params.insert("context".to_owned(), json!({"arguments": others}));
        }
        let result = self.request("completion/complete", params, RequestLimits::within(limit)).await?;
        let values = result.get("completion").and_then(|it| it.get("values")).and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str).take(MOST_COMPLETIONS);
        Ok(values.map(brief).collect())
    }

    async fn list<T>(
        &self,
        method: &str,
        key: &str,
        parse: impl Fn(&Value) -> Result<T, String>,
        limit: Duration,
    ) -> Result<Listed<T>, CallError> {
        let (mut items, mut problems) = (Vec::new(), Vec::new());
        let mut cursor: Option<String> = None;
        let mut fresh: Option<Duration> = None;
        for _ in 0..MOST_PAGES {
            let params = cursor.iter().map(|cursor| ("cursor".to_owned(), json!(cursor))).collect();
            let page = self.page(method, params, limit).await?;
            let (more, wrong) = parse_items(&page, key, &parse);
            fresh = [fresh, time_to_live(&page)].into_iter().flatten().min();
            items.extend(more);
            problems.extend(wrong);
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if next.is_none() || next == cursor {
                self.note_freshness(method, fresh);
                return Ok((items, problems));
            }
            if items.len() > MOST_ITEMS {
                break;
            }
            cursor = next;
        }
        items.truncate(MOST_ITEMS);
        problems.push(format!("its list of {key} has no end; {} of them are used", items.len()));
        Ok((items, problems))
    }

    /// Asks for one page, again where that may help.
    async fn page(
        &self,
        method: &str,
        params: Map<String, Value>,
        limit: Duration,
    ) -> Result<Value, CallError> {
        let mut tried = 0;
        loop {
            tried += 1;
            match self.request(method, params.clone(), RequestLimits::within(limit)).await {
                Err(CallError::Transport(error)) if error.is_transient() && tried < TRIES => {
                    tokio::time::sleep(PAUSE * tried).await;
                }
                page => return page,
            }
        }
    }
}
