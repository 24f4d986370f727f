//! MCP servers and the turns of a session: what is there before a turn begins, and what a prompt wants of them.

use loci_core::entry::Attachment;
use loci_core::message::Content;
use loci_mcp::ContentPart;

use super::Session;
use crate::command::{Command, Prompt};
use crate::conversation::TurnInput;
use crate::event::EngineEvent;
use crate::extensions::mcp::{Mention, PromptCall, mentions};
use crate::extensions::slash_command::{CommandAction, CommandSource};
use crate::extensions::{ExpansionGate, FeatureHooks, PromptExpansion};

/// The most characters of a mentioned resource.
const MENTION_CHARS: usize = 100_000;

impl Session {
    /// Makes servers ready for a turn: the first waits for them, all have what they offer by now. Returns what the turn
    /// begins with; nothing, when it is over already.
    pub(super) async fn with_servers(&mut self, input: TurnInput) -> Option<TurnInput> {
        if self.mcp.is_none() {
            return Some(input);
        }
        if !self.ready_servers().await {
            // Whoever interrupted the wait does not want the turn.
            self.conversation.begin_and_end();
            return None;
        }
        match input {
            TurnInput::Prompt(prompt) => match self.with_prompts(prompt).await {
                Ok(prompt) => Some(TurnInput::Prompt(prompt)),
                Err(text) => {
                    self.conversation.begin_refused(text);
                    None
                }
            },
            input => Some(input),
        }
    }

    /// Waits for servers, where nobody has yet, and takes up what they offer; false when the wait was interrupted.
    pub(super) async fn ready_servers(&mut self) -> bool {
        let Some(link) = &mut self.mcp else { return true };
        link.servers().refresh_stale();
        if link.is_to_wait() && !self.wait_for_servers().await {
            return false;
        }
        self.sync_servers();
        self.conversation.apply_tool_changes();
        true
    }

    /// Waits for the servers that the first request should have; false when the wait was interrupted.
    async fn wait_for_servers(&mut self) -> bool {
        let Some(servers) = self.mcp.as_ref().map(|link| link.servers().clone()) else { return true };
        let waiting = servers.wait_for_first_request();
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                () = &mut waiting => return true,
                command = self.commands.recv(), if !self.is_deaf => match command {
                    Some(Command::Interrupt) => return false,
                    Some(Command::Quit) => {
                        self.take_command(Command::Quit);
                        return false;
                    }
                    Some(command) => self.take_command(command),
                    None => {
                        self.is_deaf = true;
                        self.close();
                    }
                },
            }
        }
    }

    /// Takes over what has changed about servers.
    pub(super) fn sync_servers(&mut self) {
        let Some(link) = &mut self.mcp else { return };
        let sync = link.sync();
        for notice in sync.notices {
            self.conversation.scope.tell(EngineEvent::Warning(notice));
        }
        if let Some(tools) = sync.tools {
            self.conversation.tools.change_tools(tools);
        }
        if let Some(commands) = sync.commands {
            let registry = &self.conversation.scope.ctx.slash_commands;
            let is_other = registry.update_eq(|registry| {
                let mut registry = registry.as_ref().clone();
                registry.replace_all(CommandSource::Mcp, commands);
                registry.into()
            });
            if is_other {
                self.conversation.scope.tell(EngineEvent::CommandsChanged(registry.get()));
            }
        }
        self.conversation
            .sources
            .take_server_instructions(&mut self.conversation.recorder, sync.instructions);
    }

    /// Fills in a prompt that is one of a server's, and reads the resources that a prompt mentions.
    ///
    /// Only a person's words mention resources: a prompt of one server does not have those of another read.
    async fn with_prompts(&mut self, prompt: Prompt) -> Result<Prompt, String> {
        let call = self.conversation.scope.ctx.slash_commands.get().parse(&prompt);
        let call = call.filter(|call| call.command.action == CommandAction::McpPrompt);
        let Some(servers) = self.mcp.as_ref().map(|link| link.servers().clone()) else { return Ok(prompt) };
        let mut prompt = match call {
            Some(call) => self.expand(prompt, &call.command.name, call.argument.unwrap_or_default()).await?,
            None => prompt,
        };
        for Mention { server, uri } in mentions(&servers, &prompt.mention_text()) {
            match servers.read(&server, &uri).await {
                Ok(parts) => {
                    let text = joined(parts.into_iter());
                    let text = loci_stdx::truncate_chars(&text, MENTION_CHARS);
                    prompt.attachments.push(Attachment::McpResource {
                        server,
                        name: uri.clone(),
                        uri,
                        text: text.to_owned(),
                    });
                }
                Err(error) => self.conversation.scope.tell(EngineEvent::Warning(format!(
                    "The resource `{uri}` of the MCP server `{server}` cannot be read: {error}"
                ))),
            }
        }
        Ok(prompt)
    }

    async fn expand(&mut self, prompt: Prompt, command: &str, written: String) -> Result<Prompt, String> {
        let Some(servers) = self.mcp.as_ref().map(|link| link.servers().clone()) else { return Ok(prompt) };
        let PromptCall { server, prompt: name, arguments } = PromptCall::find(&servers, command, &written)?;
        let expansion = PromptExpansion {
            kind: "mcp_prompt",
            command: command.to_owned(),
            arguments: written,
            source: server.clone(),
            prompt: prompt.content.text(),
        };
        let moment = self.conversation.scope.hook_moment(&self.conversation.recorder);
        let added = match self.conversation.scope.ctx.hooks.before_expansion(expansion, moment).await {
            ExpansionGate::Go { attachments } => attachments,
            ExpansionGate::Block { reason } => return Err(reason),
        };
        let filled = servers.prompt(&server, &name, arguments).await;
        let filled = filled.map_err(|error| format!("/{command} failed: {error}"))?;
        let text = joined(filled.into_iter().map(|(_, part)| part));
        let mut expanded = Prompt::new(Content::Text(text), prompt.id.clone());
        expanded.own_words = Some(prompt.mention_text());
        expanded.attachments = prompt.attachments;
        expanded.attachments.extend(added);
        Ok(expanded)
    }
}

/// Returns the texts of parts, and what stands for the others.
fn joined(parts: impl Iterator<Item = ContentPart>) -> String {
    let shown = parts.map(|part| match part {
        ContentPart::Text(text) => text,
        ContentPart::Link { uri, name, .. } => format!("[resource {name} at {uri}]"),
        ContentPart::Image { mime_type, .. } | ContentPart::Blob { mime_type, .. } => {
            format!("[{mime_type}]")
        }
    });
    shown.collect::<Vec<_>>().join("\n")
}
