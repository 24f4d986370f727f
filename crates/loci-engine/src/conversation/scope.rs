//! Whose conversation it is: what it may do, which model it asks, and the session that it belongs to.

use std::sync::Arc;

use loci_stdx::Env;

use super::host::ConversationHost;
use super::{AgentLimits, SessionContext};
use crate::agents::AgentWork;
use crate::agents::background::Policy;
use crate::event::{AgentRef, EventSink};
use crate::session::config::{ModelConfig, TurnLimits};

/// What every part of a conversation may ask: it says who they work for, and lives as long as the conversation.
pub(crate) struct ConversationScope {
    /// What all conversations of a session share.
    pub(crate) ctx: Arc<SessionContext>,
    pub(crate) host: Arc<ConversationHost>,
    pub(super) env: Env,
    /// Whose it is; nobody's but the person's, for the main line.
    pub(super) agent: Option<AgentRef>,
    pub(super) events: EventSink,
    /// Whether people are asked what the rules leave open.
    pub(super) asks: bool,
    /// What its calls may do at most, before the rules have their say.
    pub(super) policy: Option<Policy>,
    /// What makes it an agent's that was sent out.
    pub(super) agent_limits: AgentLimits,
    /// What the agent has done so far.
    pub(super) work: Option<AgentWork>,
    pub(super) model: ModelConfig,
    /// The model that plans where somebody chose two for the session by one name.
    pub(super) chosen_planner: Option<String>,
    pub(super) limits: TurnLimits,
}
