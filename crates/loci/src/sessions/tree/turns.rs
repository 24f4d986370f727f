//! A session's tree by turns: a prompt with all that answered it, or a compaction.
//!
//! The tree of entries forks at every batch of parallel calls; the tree of turns forks only where somebody went
//! back and asked something else. An entry belongs to the nearest prompt or compaction above it.

use std::collections::HashMap;

use loci_app::sessions::transcript;
use loci_core::conversation::{Outline, OutlineNode};
use loci_core::entry::EntryKind;
use loci_core::message::{Block, BlockKind};

use super::relatives::{Agent, Fork};

/// What a turn begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Somebody asked.
    Prompt,
    /// The conversation was compacted.
    Compaction,
    /// Entries without a prompt above them.
    Loose,
}

impl Kind {
    /// Returns the kind's name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Compaction => "compaction",
            Self::Loose => "loose",
        }
    }
}

/// One turn.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) kind: Kind,
    /// What was asked.
    pub(super) text: String,
    pub(super) uuid: Option<String>,
    /// The last entry of the turn: to branch there takes all of it over.
    pub(super) last_uuid: Option<String>,
    pub(super) time: Option<String>,
    /// The turn it follows.
    pub(super) parent: Option<usize>,
    pub(super) n_answers: usize,
    pub(super) n_calls: usize,
    /// Whether it is on the way to where a resume goes on.
    pub(super) is_live: bool,
    /// Whether a resume goes on here.
    pub(super) is_leaf: bool,
    pub(super) agents: Vec<Agent>,
    pub(super) forks: Vec<Fork>,
}

/// All turns of a session, in the order they were written.
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// The turn of each node of the outline.
    owners: Vec<usize>,
    /// The node of each entry.
    nodes: HashMap<String, usize>,
}

impl Turns {
    /// Gathers the turns of an outline.
    pub(super) fn of(outline: &Outline) -> Self {
        let nodes = outline.nodes();
        let mut turns: Vec<Turn> = Vec::new();
        let mut begins = vec![None; nodes.len()];
        for (idx, node) in nodes.iter().enumerate() {
            if let Some(turn) = opening(node) {
                begins[idx] = Some(turns.len());
                turns.push(turn);
            }
        }
        let mut gathering = Gathering { outline, begins, owners: vec![None; nodes.len()], turns };
        let owners: Vec<usize> = (0..nodes.len()).map(|idx| gathering.owner(idx)).collect();
        let mut all = Self { turns: gathering.turns, owners, nodes: HashMap::new() };
        for (idx, node) in nodes.iter().enumerate() {
            all.count(outline, idx, node);
        }
        if let Some(leaf) = outline.leaf() {
            all.turns[all.owners[leaf]].is_leaf = true;
        }
        all
    }

    /// Returns the turns.
    pub(super) fn all(&self) -> &[Turn] {
        &self.turns
    }

    /// Puts each subagent into the turn that started it and returns those that no turn knows.
    pub(super) fn seat_agents(&mut self, outline: &Outline, agents: Vec<Agent>) -> Vec<Agent> {
        let mut callers = HashMap::new();
        let is_caller = |node: &&OutlineNode| node.entry.line().contains("\"tool_use\"");
        for node in outline.nodes().iter().filter(is_caller) {
            let owner = node.entry.head().uuid.as_ref().and_then(|uuid| self.turn_of(uuid.as_str()));
            for call in node.entry.blocks().iter().filter_map(Block::tool_use) {
                callers.extend(owner.map(|owner| (call.id.to_string(), owner)));
            }
        }
        let mut stray = Vec::new();
        for agent in agents {
            match agent.call.as_ref().and_then(|call| callers.get(call)) {
                Some(owner) => self.turns[*owner].agents.push(agent),
                None => stray.push(agent),
            }
        }
        stray
    }

    /// Puts a fork into the turn where it left.
    pub(super) fn seat_fork(&mut self, fork: Fork) {
        if let Some(owner) = self.turn_of(&fork.last_shared) {
            self.turns[owner].forks.push(fork);
        }
    }

    fn turn_of(&self, uuid: &str) -> Option<usize> {
        self.nodes.get(uuid).map(|node| self.owners[*node])
    }

    fn count(&mut self, outline: &Outline, idx: usize, node: &OutlineNode) {
        let owner = self.owners[idx];
        let head = node.entry.head();
        let turn = &mut self.turns[owner];
        turn.is_live |= node.is_live;
        if head.kind == EntryKind::Assistant {
            let blocks = node.entry.blocks();
            turn.n_answers += blocks.iter().filter(|block| block.kind() == BlockKind::Text).count();
            turn.n_calls += blocks.iter().filter(|block| block.kind() == BlockKind::ToolUse).count();
        }
        if let Some(uuid) = &head.uuid {
            turn.last_uuid = Some(uuid.to_string());
            self.nodes.insert(uuid.to_string(), idx);
        }
        let is_opening = turn.uuid.as_deref() == head.uuid.as_ref().map(|uuid| uuid.as_str());
        if is_opening && let Some(parent) = outline.nodes()[idx].parent {
            let parent = self.owners[parent];
            self.turns[owner].parent = Some(parent).filter(|parent| *parent != owner);
        }
    }
}

/// Returns the turn that a node begins, if it begins one.
fn opening(node: &OutlineNode) -> Option<Turn> {
    let (kind, text) = if node.entry.is_compact_boundary() {
        (Kind::Compaction, transcript::compaction_text(&node.entry))
    } else {
        let text = transcript::prompt_text(&node.entry)?;
        (Kind::Prompt, Some(text).filter(|text| !transcript::is_note(text))?)
    };
    let head = node.entry.head();
    let uuid = head.uuid.as_ref().map(|uuid| uuid.to_string());
    Some(Turn { uuid, time: head.timestamp.as_deref().map(str::to_owned), ..Turn::empty(kind, text) })
}

impl Turn {
    fn empty(kind: Kind, text: String) -> Self {
        Self {
            kind,
            text,
            uuid: None,
            last_uuid: None,
            time: None,
            parent: None,
            n_answers: 0,
            n_calls: 0,
            is_live: false,
            is_leaf: false,
            agents: Vec::new(),
            forks: Vec::new(),
        }
    }
}

struct Gathering<'a> {
    outline: &'a Outline,
    /// The turn that each node begins.
    begins: Vec<Option<usize>>,
    owners: Vec<Option<usize>>,
    turns: Vec<Turn>,
}

impl Gathering<'_> {
    /// Finds the turn of a node and remembers it for everything passed on the way.
    fn owner(&mut self, idx: usize) -> usize {
        let known = |node: &usize| self.begins[*node].or(self.owners[*node]);
        let mut trail: Vec<usize> = Vec::new();
        let mut found = None;
        for node in std::iter::once(idx).chain(self.outline.ancestors(idx)) {
            trail.push(node);
            found = known(&node);
            if found.is_some() {
                break;
            }
        }
        let owner = found.unwrap_or_else(|| {
            self.turns.push(Turn::empty(Kind::Loose, "(no prompt)".to_owned()));
            self.turns.len() - 1
        });
        for node in trail {
            self.owners[node] = Some(owner);
        }
        owner
    }
}
