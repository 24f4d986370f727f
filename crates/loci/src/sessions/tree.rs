//! `loci sessions tree`: branches, compactions, forks and subagents as a picture.

mod picture;
mod relatives;
mod turns;

use loci_app::UserError;
use loci_core::conversation::Outline;
use serde_json::{Value, json};

use self::relatives::{Agent, Fork};
use self::turns::{Turn, Turns};
use super::{SessionsContext, output, target};

/// The arguments of `loci sessions tree`.
#[derive(Debug, clap::Args)]
pub(super) struct TreeArgs {
    /// The session: id, title or path.
    session: String,

    /// Draw with plain characters.
    #[arg(long)]
    ascii: bool,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Draws the session.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &TreeArgs) -> Result<(), UserError> {
    let place = target::find(ctx, "tree", &args.session)?;
    let session = target::summary(&place)?;
    let outline = Outline::build(&target::entries(&place)?);
    let mut turns = Turns::of(&outline);
    let agents = relatives::agents(&place);
    let stray = turns.seat_agents(&outline, agents);
    for fork in relatives::forks(ctx, &session, &outline)? {
        turns.seat_fork(fork);
    }
    if args.json {
        return output::print_json(&json!({
            "sessionId": place.id().as_str(),
            "title": session.facts.labels.title(),
            "forkedFrom": session.facts.forked_from,
            "leaf": outline.leaf().and_then(|leaf| outline.nodes()[leaf].entry.head().uuid.as_ref()).map(|uuid| uuid.as_str()),
            "turns": turns.all().iter().map(|turn| turn_json(&turns, turn)).collect::<Vec<_>>(),
            "strayAgents": stray.iter().map(agent_json).collect::<Vec<_>>(),
        }));
    }
    output::print(&picture::draw(&session, &turns, &stray, args.ascii))
}

fn turn_json(turns: &Turns, turn: &Turn) -> Value {
    json!({
        "kind": turn.kind.name(),
        "text": turn.text,
        "uuid": turn.uuid,
        "lastUuid": turn.last_uuid,
        "parentUuid": turn.parent.and_then(|parent| turns.all()[parent].uuid.as_deref()),
        "timestamp": turn.time,
        "answers": turn.n_answers,
        "calls": turn.n_calls,
        "isLive": turn.is_live,
        "isLeaf": turn.is_leaf,
        "agents": turn.agents.iter().map(agent_json).collect::<Vec<_>>(),
        "forks": turn.forks.iter().map(fork_json).collect::<Vec<_>>(),
    })
}

fn agent_json(agent: &Agent) -> Value {
    json!({"agentId": agent.id, "agentType": agent.kind, "description": agent.description, "entries": agent.n_entries, "path": agent.file})
}

fn fork_json(fork: &Fork) -> Value {
    json!({"sessionId": fork.id.as_str(), "title": fork.headline, "isSource": fork.is_source, "lastSharedUuid": fork.last_shared})
}
