//! A tool of a server, as the engine runs it.
//!
//! What it does is known to the server alone, so every call is judged as unknown, whatever the server says of itself: its
//! hint that a tool only reads lets calls run side by side and grants nothing.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use loci_core::agent::sanitize_result;
use loci_core::message::Block;
use loci_core::tool::{CallEffects, Interaction, ToolContent, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_mcp::config::ToolPolicy;
use loci_mcp::{CallError, CallResult, ContentPart, OnProgress, Progress, ServerView, Servers, ToolSpec};
use loci_tools::{
    BackgroundStatus, Host, InputCheck, NewTask, TaskHandle, TaskKind, TaskReport, TaskUsage, Tool, ToolCall,
    ToolFuture, ToolProgress, Workspace, may_background,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::outcome::{ResultLimits, content, outcome, readable_parts};
use crate::tools::calls::interrupted;

/// How much of a result in the background is told with its end.
const REPORT_CHARS: usize = 20_000;

/// A call that a server is working on.
type RunningCall = Pin<Box<dyn Future<Output = Result<CallResult, CallError>> + Send>>;

/// A tool of a server.
#[derive(Clone)]
pub(super) struct McpTool {
    descriptor: ToolDescriptor,
    servers: Servers,
    server: String,
    spec: Arc<ToolSpec>,
    /// Whether somebody sits at a terminal and waits for it.
    is_interactive: bool,
    /// What its data is checked with, once some came.
    output_check: Arc<OnceLock<Option<InputCheck>>>,
}

impl McpTool {
    pub(super) fn new(
        servers: &Servers,
        server: &ServerView,
        name: &str,
        spec: &Arc<ToolSpec>,
        is_interactive: bool,
    ) -> Self {
        let is_deferrable = !server.always_load && !spec.always_load;
        let descriptor = ToolDescriptor {
            name: name.to_owned(),
            aliases: &[],
            description: spec.description.clone(),
            input_schema: spec.input_schema.clone(),
            // Long results are seen to here: they may have pictures in them.
            max_result_chars: None,
            facts: ToolFacts { keeps_input: true, is_deferrable, ..ToolFacts::default() },
        };
        Self {
            descriptor,
            servers: servers.clone(),
            server: server.name.clone(),
            spec: Arc::clone(spec),
            is_interactive,
            output_check: Arc::default(),
        }
    }
}

impl Tool for McpTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Workspace) -> CallEffects {
        let why = format!("what it does is known to the MCP server `{}` alone", self.server);
        let policy = self.servers.tool_policy(&self.server, &self.spec.name);
        let is_asked = self.spec.requires_user || policy == Some(ToolPolicy::Ask);
        let forbidden = (policy == Some(ToolPolicy::Deny))
            .then(|| format!("the configuration of the MCP server `{}` denies this tool", self.server));
        CallEffects {
            interaction: is_asked.then_some(Interaction::Confirmation),
            server: Some(self.server.clone()),
            forbidden,
            ..CallEffects::unknown(why)
        }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        self.spec.is_read_only
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async move {
            let (heard, mut progress) = watch::channel(None);
            let on_progress = Arc::new(move |news| drop(heard.send_replace(Some(news))));
            let mut called = self.call(&call, on_progress);
            let moved = self.moved_to_background(&call, host);
            tokio::pin!(moved);
            let result = loop {
                tokio::select! {
                    result = &mut called => break result,
                    // Dropping the call cancels it at the server.
                    () = call.cancel.cancelled() => return interrupted(),
                    why = &mut moved => return self.go_on_in_background(&why, called, &call, host),
                    Ok(()) = progress.changed() => {
                        let news = progress.borrow_and_update().clone();
                        if let Some(news) = news {
                            host.progress(&call.id, ToolProgress::Output(format_progress(&news)));
                        }
                    }
                }
            };
            match result {
                Ok(result) => {
                    let misfit = self.misfit(&result);
                    outcome(&self.descriptor.name, result, misfit, self.limits(), &|| {
                        host.spill_path(&call.id)
                    })
                }
                Err(error) => ToolOutcome::error(format!("The MCP server `{}` failed: {error}", self.server)),
            }
        })
    }
}

impl McpTool {
    fn call(&self, call: &ToolCall, on_progress: OnProgress) -> RunningCall {
        let meta = json!({"claudecode/toolUseId": call.id.as_str()});
        let (servers, server, tool) = (self.servers.clone(), self.server.clone(), Arc::clone(&self.spec));
        let input = call.input.clone();
        Box::pin(async move { servers.call(&server, &tool.name, input, meta, Some(on_progress)).await })
    }

    fn limits(&self) -> ResultLimits {
        ResultLimits::new(self.servers.limits().output_tokens, self.spec.max_result_chars)
    }

    /// Says what is wrong with the data of a result, as far as the tool declares what it should be. A schema that means
    /// nothing to us asks for nothing.
    fn misfit(&self, result: &CallResult) -> Option<String> {
        let schema = self.spec.output_schema.as_ref()?;
        let structured = result.structured.as_ref().filter(|_| !result.is_error)?;
        let check = self.output_check.get_or_init(|| InputCheck::compile_any(schema).ok()).as_ref()?;
        check.check_exactly(structured).err().map(|wrong| loci_stdx::truncate_chars(&wrong, 2000).to_owned())
    }

    /// Ends when the call is to go on in the background, with why: somebody wants it to, or it takes too long for whoever
    /// sits at the terminal.
    async fn moved_to_background(&self, call: &ToolCall, host: &dyn Host) -> String {
        if !may_background(host) {
            return std::future::pending().await;
        }
        let patience = self.servers.limits().auto_background;
        let is_wanted = self.is_interactive || host.env().vars.is_truthy("CLAUDE_AUTO_BACKGROUND_TASKS");
        let patience = patience.filter(|_| is_wanted && host.tasks().is_main());
        let too_long = async {
            match patience {
                Some(patience) => tokio::time::sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = call.to_background.cancelled() => {
                "The user moved the call to the background, where it goes on".to_owned()
            }
            () = too_long => {
                let waited = patience.unwrap_or_default().as_millis() as f64 / 1000.0;
                format!("After {waited} s the call goes on in the background")
            }
        }
    }

    /// Lets a call go on beside the conversation, which hears of its end.
    fn go_on_in_background(
        &self,
        why: &str,
        called: RunningCall,
        call: &ToolCall,
        host: &dyn Host,
    ) -> ToolOutcome {
        let id = host.env().random.alphanumeric(9);
        let files = host
            .task_dir()
            .and_then(|dir| Ok((dir.join(format!("{id}.output")), host.spill_path(&call.id)?)));
        let (output, spill) = match files {
            Ok(files) => files,
            Err(error) => {
                return ToolOutcome::error(format!(
                    "The call was stopped: it has no file for its result: {error}"
                ));
            }
        };
        let about = NewTask {
            id: id.clone(),
            kind: TaskKind::McpCall,
            tool_use_id: call.id.clone(),
            command: self.descriptor.name.clone(),
            description: String::new(),
            output: output.clone(),
        };
        let task = host.tasks().register(about, true);
        let background = BackgroundCall { tool: self.clone(), called, task, output: output.clone(), spill };
        host.tasks().keep(tokio::spawn(background.run()));
        let text = format!(
            "{why} as task {id}. You are told when it ends; its result will be in {}. TaskOutput waits for it, TaskStop \
             cancels it.",
            output.display()
        );
        ToolOutcome::text(text, json!({"backgroundTaskId": id}))
    }
}

/// A call that goes on beside the conversation.
struct BackgroundCall {
    tool: McpTool,
    called: RunningCall,
    task: TaskHandle,
    output: PathBuf,
    /// Where what does not fit into a text goes.
    spill: PathBuf,
}

impl BackgroundCall {
    async fn run(self) {
        let Self { tool, called, task, output, spill } = self;
        let result = tokio::select! {
            result = called => result,
            () = task.stop.cancelled() => {
                return task.end(BackgroundStatus::Killed("stopped by request".to_owned()), None);
            }
        };
        let (status, text) = match result {
            Ok(result) => {
                let (is_error, misfit) = (result.is_error, tool.misfit(&result));
                let status = match is_error || misfit.is_some() {
                    true => BackgroundStatus::Broken("the tool says that it failed".to_owned()),
                    false => BackgroundStatus::Completed,
                };
                // Pictures can only be told of as files here.
                let parts = readable_parts(result, misfit).into_iter().map(as_file).collect();
                let unbounded = ResultLimits::new(usize::MAX, None);
                (
                    status,
                    match content(parts, unbounded, &|| Ok(spill.clone())) {
                        ToolContent::Text(text) => text,
                        ToolContent::Blocks(blocks) => blocks.iter().filter_map(Block::text).collect(),
                    },
                )
            }
            Err(error) => {
                let why = format!("the MCP server `{}` failed: {error}", tool.server);
                (BackgroundStatus::Broken(why.clone()), why)
            }
        };
        let status = match std::fs::write(&output, &text) {
            Ok(()) => status,
            Err(error) => BackgroundStatus::Broken(format!("its result could not be kept: {error}")),
        };
        let cut = loci_stdx::truncate_chars(&text, REPORT_CHARS);
        let more = if cut.len() < text.len() { "\n[more in the output file]" } else { "" };
        let report =
            TaskReport { text: format!("{}{more}", sanitize_result(cut)), usage: TaskUsage::default() };
        task.end(status, Some(report));
    }
}

fn as_file(part: ContentPart) -> ContentPart {
    match part {
        ContentPart::Image { mime_type, base64 } => ContentPart::Blob { mime_type, base64, uri: None },
        part => part,
    }
}

/// Returns news of a call on one line.
fn format_progress(progress: &Progress) -> String {
    let total = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = progress.message.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
    match (progress.done == 0.0, progress.total, message.trim_start()) {
        // What a task says of itself has no number.
        (true, None, said) if !said.is_empty() => format!("{said}\n"),
        _ => format!("{}{total}{message}\n", progress.done),
    }
}
