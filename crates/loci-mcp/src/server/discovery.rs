//! What a server offers: asked for when it is connected, and again when it says that a list has changed.

use std::sync::Arc;

use super::{Offer, Server};
use crate::catalog::ToolSpec;
use crate::connection::{CallError, Changes, Connection, Handshake};
use crate::names::tool_name;
use crate::servers::ServersShared;

/// The most problems of one server that are told.
const MOST_PROBLEMS: usize = 5;

impl Server {
    /// Asks what the server has; only that the tools cannot be told counts as a failure.
    pub(super) async fn discover(
        &self,
        world: &ServersShared,
        connection: &Connection,
        handshake: &Handshake,
    ) -> Result<Offer, CallError> {
        let limit = world.world.limits.start;
        let (tools, resources, prompts) = tokio::join!(
            async {
                if handshake.has("tools") { connection.tools(limit).await } else { Ok(Default::default()) }
            },
            async {
                if handshake.has("resources") {
                    connection.resources(limit).await
                } else {
                    Ok(Default::default())
                }
            },
            async {
                if handshake.has("prompts") {
                    connection.prompts(limit).await
                } else {
                    Ok(Default::default())
                }
            },
        );
        let mut problems = Vec::new();
        let (tools, wrong) = tools?;
        problems.extend(wrong);
        let mut optional = |what: &str, wrong: Result<Vec<String>, CallError>| match wrong {
            Ok(wrong) => problems.extend(wrong),
            Err(error) => problems.push(format!("its {what} cannot be listed: {error}")),
        };
        let (resources, wrong) = split(resources);
        optional("resources", wrong);
        let (prompts, wrong) = split(prompts);
        optional("prompts", wrong);
        let offer = Offer {
            tools: self.named(tools, &mut problems),
            resources,
            has_resources: handshake.has("resources"),
            prompts,
        };
        self.tell_problems(world, &problems);
        Ok(offer)
    }

    /// Gives tools their names for the model, in their order; of two that would have the same, the first has it.
    fn named(&self, tools: Vec<ToolSpec>, problems: &mut Vec<String>) -> Vec<(String, Arc<ToolSpec>)> {
        let mut named: Vec<(String, Arc<ToolSpec>)> = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = tool_name(&self.config.name, &tool.name);
            match named.iter().any(|(held, _)| *held == name) {
                true => problems.push(format!("there are two tools `{name}`; the second is left out")),
                false => named.push((name, Arc::new(tool))),
            }
        }
        named.sort_by(|a, b| a.0.cmp(&b.0));
        named
    }

    fn tell_problems(&self, world: &ServersShared, problems: &[String]) {
        for problem in problems {
            self.log.note(problem);
        }
        for problem in problems.iter().take(MOST_PROBLEMS) {
            world.notice(format!("MCP server `{}`: {problem}", self.config.name));
        }
        if problems.len() > MOST_PROBLEMS {
            let n_more = problems.len() - MOST_PROBLEMS;
            let name = &self.config.name;
            world.notice(format!("MCP server `{name}`: {n_more} more problems; see `loci mcp logs {name}`"));
        }
    }

    /// Follows what the server announces, until it has gone. A list that cannot be had anew stays as it was.
    pub(super) async fn follow(&self, world: &ServersShared, connection: &Connection) {
        loop {
            let changes = connection.next_changes().await;
            if changes.is_closed {
                return;
            }
            let mut offer = Offer::clone(&self.state().offer);
            let before = offer.clone();
            self.refresh(world, connection, changes, &mut offer).await;
            if offer != before {
                self.state().offer = Arc::new(offer);
                world.announce();
            }
        }
    }

    async fn refresh(
        &self,
        world: &ServersShared,
        connection: &Connection,
        changes: Changes,
        offer: &mut Offer,
    ) {
        let limit = world.world.limits.start;
        let mut problems = Vec::new();
        if changes.tools {
            match connection.tools(limit).await {
                Ok((tools, wrong)) => {
                    problems.extend(wrong);
                    offer.tools = self.named(tools, &mut problems);
                }
                Err(error) => problems.push(format!("its tools cannot be listed anew: {error}")),
            }
        }
        if changes.resources {
            match connection.resources(limit).await {
                Ok((resources, _)) => offer.resources = resources,
                Err(error) => problems.push(format!("its resources cannot be listed anew: {error}")),
            }
        }
        if changes.prompts {
            match connection.prompts(limit).await {
                Ok((prompts, _)) => offer.prompts = prompts,
                Err(error) => problems.push(format!("its prompts cannot be listed anew: {error}")),
            }
        }
        problems.iter().for_each(|problem| self.log.note(problem));
    }
}

fn split<T>(listed: Result<(Vec<T>, Vec<String>), CallError>) -> (Vec<T>, Result<Vec<String>, CallError>) {
    match listed {
        Ok((items, problems)) => (items, Ok(problems)),
        Err(error) => (Vec::new(), Err(error)),
    }
}
