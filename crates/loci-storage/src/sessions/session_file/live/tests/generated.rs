//! Sessions as programs and crashes write them, from a list of steps.

use loci_core::ids::EntryId;
use proptest::prelude::*;
use serde_json::{Value, json};

/// One thing that happens to a session file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A prompt and its answer, with calls in parallel whose results come in some order.
    Turn {
        n_calls: usize,
        order: usize,
        thinking: bool,
        attachment: bool,
        is_cut: bool,
    },
    /// A compaction that keeps the last `keep` entries of the path.
    Compact {
        keep: usize,
        listed: bool,
        summary: bool,
        rewritten: bool,
    },
    /// The next entry hangs from an older one.
    Rewind {
        back: usize,
    },
    /// A leaf pointer.
    Pointer {
        back: usize,
    },
    PointerNowhere,
    /// The other of two processes writes.
    OtherWriter,
    Sidechain,
    Metadata,
    /// An entry that only passes its children on.
    Link {
        kind: &'static str,
    },
    /// The line just written never reached the disk.
    Lost,
    /// Lines from before are written again.
    Replay {
        back: usize,
        n_lines: usize,
    },
    /// The last two lines are in the wrong order.
    Swapped,
    /// A line that is no entry.
    Garbage {
        line: &'static str,
    },
    /// The newline is missing.
    Glued,
    /// Nothing happens for a while.
    Pause,
}

impl Step {
    pub(super) fn plain_turn() -> Self {
        Self::Turn { n_calls: 1, order: 0, thinking: false, attachment: false, is_cut: false }
    }

    pub(super) fn parallel_turn() -> Self {
        Self::Turn { n_calls: 3, order: 4, thinking: true, attachment: true, is_cut: false }
    }

    pub(super) fn compaction(keep: usize) -> Self {
        Self::Compact { keep, listed: true, summary: true, rewritten: false }
    }
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let turn = (0..4_usize, 0..6_usize, any::<bool>(), any::<bool>(), prop::bool::weighted(0.1)).prop_map(
        |(n_calls, order, thinking, attachment, is_cut)| Step::Turn {
            n_calls,
            order,
            thinking,
            attachment,
            is_cut,
        },
    );
    let compact = (0..8_usize, any::<bool>(), prop::bool::weighted(0.85), prop::bool::weighted(0.2))
        .prop_map(|(keep, listed, summary, rewritten)| Step::Compact { keep, listed, summary, rewritten });
    prop_oneof![
        12 => turn,
        6 => compact,
        2 => (1..40_usize).prop_map(|back| Step::Rewind { back }),
        2 => (0..40_usize).prop_map(|back| Step::Pointer { back }),
        2 => Just(Step::Pointer { back: 0 }),
        1 => Just(Step::PointerNowhere),
        1 => Just(Step::OtherWriter),
        1 => Just(Step::Sidechain),
        1 => Just(Step::Metadata),
        1 => prop::sample::select(vec!["progress", "from-the-future"]).prop_map(|kind| Step::Link { kind }),
        1 => Just(Step::Lost),
        1 => (1..60_usize, 1..6_usize).prop_map(|(back, n_lines)| Step::Replay { back, n_lines }),
        1 => Just(Step::Swapped),
        1 => prop::sample::select(vec!["null", "\0\0\0\0", "{\"type\":", "17"]).prop_map(|line| Step::Garbage { line }),
        1 => Just(Step::Glued),
        1 => Just(Step::Pause),
    ]
}

/// Returns the uuid of the `n`th entry.
pub(super) fn name(n: usize) -> EntryId {
    EntryId::new(format!("n{n:04}"))
}

/// Writes the file that the steps make.
pub(super) fn session(steps: &[Step]) -> Vec<u8> {
    // An entry before the part read that lost its parent, and would hang from one that was written again, is
    // beyond us: only one of the two happens to a session.
    let is_replayed = steps.iter().any(|step| matches!(step, Step::Replay { .. }));
    let mut writer = Writer::default();
    for step in steps.iter().filter(|step| !(is_replayed && matches!(step, Step::Lost))) {
        writer.step(step);
    }
    writer.lines.into_iter().flat_map(|line| line.into_bytes()).collect()
}

#[derive(Default)]
struct Writer {
    /// Each with its newline, unless it is glued to the next.
    lines: Vec<String>,
    /// The uuids of the main chain as they were written.
    nodes: Vec<String>,
    leaf: Option<String>,
    other_leaf: Option<String>,
    n_named: usize,
    seconds: usize,
}

impl Writer {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Turn { n_calls, order, thinking, attachment, is_cut } => {
                self.turn(n_calls, order, thinking, attachment, is_cut);
            }
            Step::Compact { keep, listed, summary, rewritten } => {
                self.compact(keep, listed, summary, rewritten);
            }
            Step::Rewind { back } => self.leaf = self.older(back),
            Step::Pointer { back } => {
                let leaf = if back == 0 { self.leaf.clone() } else { self.older(back) };
                self.line(&json!({"type": "last-prompt", "leafUuid": leaf, "sessionId": "s"}));
            }
            Step::PointerNowhere => {
                self.line(&json!({"type": "last-prompt", "leafUuid": "nowhere", "sessionId": "s"}));
            }
            Step::OtherWriter => {
                let leaf = self.leaf.clone();
                std::mem::swap(&mut self.leaf, &mut self.other_leaf);
                self.leaf = self.leaf.take().or(leaf);
            }
            Step::Sidechain => self.sidechain(),
            Step::Metadata => {
                self.line(&json!({"type": "custom-title", "customTitle": "t", "sessionId": "s"}));
            }
            Step::Link { kind } => {
                let name = self.named();
                let line = json!({"type": kind, "uuid": name, "parentUuid": self.leaf, "sessionId": "s"});
                self.line(&line);
                self.leaf = Some(name);
            }
            Step::Lost => {
                self.lines.pop();
            }
            Step::Replay { back, n_lines } => {
                let start = self.lines.len().saturating_sub(back);
                let end = (start + n_lines).min(self.lines.len());
                self.lines.extend_from_within(start..end);
            }
            Step::Swapped => {
                let n_lines = self.lines.len();
                if n_lines > 1 {
                    self.lines.swap(n_lines - 2, n_lines - 1);
                }
            }
            Step::Garbage { line } => self.lines.push(format!("{line}\n")),
            Step::Glued => {
                if let Some(last) = self.lines.last_mut() {
                    last.truncate(last.trim_end().len());
                }
            }
            Step::Pause => self.seconds += 600,
        }
    }

    fn turn(&mut self, n_calls: usize, order: usize, thinking: bool, attachment: bool, is_cut: bool) {
        self.node(json!({"type": "user", "promptId": "p", "message": {"role": "user", "content": "go"}}));
        let message = format!("msg{}", self.n_named);
        if thinking {
            self.block(&message, json!({"type": "thinking", "thinking": "hm", "signature": "s"}));
        }
        let calls: Vec<(String, String)> = (0..n_calls)
            .map(|call| {
                let id = format!("{message}-{call}");
                let node = self.block(
                    &message,
                    json!({"type": "tool_use", "id": id, "name": "Read", "input": {"n": call}}),
                );
                (id, node)
            })
            .collect();
        for at in 0..n_calls {
            // Any order: a step through the calls that is prime to their number.
            let (id, node) =
                &calls[(at * if order.is_multiple_of(2) { 1 } else { n_calls.max(2) - 1 } + order) % n_calls];
            self.leaf = Some(node.clone());
            let result = json!([{"type": "tool_result", "tool_use_id": id, "content": "ok"}]);
            self.node(
                json!({"type": "user", "promptId": "p", "message": {"role": "user", "content": result}}),
            );
            if is_cut {
                return;
            }
            if attachment && at == 0 {
                self.node(json!({"type": "attachment", "attachment": {"type": "file", "filename": "f"}}));
            }
        }
        let message = format!("msg{}", self.n_named);
        self.block(&message, json!({"type": "text", "text": "done"}));
    }

    fn block(&mut self, message: &str, block: Value) -> String {
        let usage = json!({"input_tokens": self.n_named, "output_tokens": 1});
        let message =
            json!({"id": message, "role": "assistant", "model": "m", "content": [block], "usage": usage});
        self.node(json!({"type": "assistant", "message": message}))
    }

    fn compact(&mut self, keep: usize, listed: bool, summary: bool, rewritten: bool) {
        let kept: Vec<String> = self.nodes[self.nodes.len().saturating_sub(keep)..].to_vec();
        if rewritten && let Some(last) = self.lines.last().cloned() {
            self.lines.push(last);
        }
        let logical = self.leaf.take();
        let (boundary, anchor) = (self.named(), name(self.n_named).to_string());
        let mut metadata = json!({"trigger": "auto"});
        if let (Some(head), Some(tail)) = (kept.first(), kept.last()) {
            metadata["preservedSegment"] = json!({"headUuid": head, "anchorUuid": anchor, "tailUuid": tail});
            if listed {
                metadata["preservedMessages"] = json!({"anchorUuid": anchor, "uuids": kept});
            }
        }
        let line = json!({
            "type": "system", "subtype": "compact_boundary", "parentUuid": null, "logicalParentUuid": logical,
            "uuid": boundary, "compactMetadata": metadata, "sessionId": "s", "timestamp": self.now(),
        });
        self.line(&line);
        self.leaf = Some(boundary);
        if summary {
            let message = json!({"role": "user", "content": "summary"});
            self.node(json!({"type": "user", "isCompactSummary": true, "message": message}));
        }
    }

    fn sidechain(&mut self) {
        let name = self.named();
        let line = json!({
            "type": "user", "uuid": name, "parentUuid": self.leaf, "isSidechain": true, "sessionId": "s",
            "message": {"role": "user", "content": "aside"}, "timestamp": self.now(),
        });
        self.line(&line);
    }

    /// Writes a chain entry under the leaf and makes it the leaf.
    fn node(&mut self, mut fields: Value) -> String {
        let name = self.named();
        fields["uuid"] = json!(name);
        fields["parentUuid"] = json!(self.leaf);
        fields["sessionId"] = json!("s");
        fields["timestamp"] = json!(self.now());
        self.line(&fields);
        self.nodes.push(name.clone());
        self.leaf = Some(name.clone());
        name
    }

    fn line(&mut self, value: &Value) {
        self.lines.push(format!("{value}\n"));
    }

    fn named(&mut self) -> String {
        self.n_named += 1;
        name(self.n_named - 1).to_string()
    }

    fn older(&self, back: usize) -> Option<String> {
        self.nodes.get(self.nodes.len().saturating_sub(back + 1)).cloned()
    }

    fn now(&mut self) -> String {
        self.seconds += 1;
        let (hour, rest) = (self.seconds / 3600, self.seconds % 3600);
        format!("2026-01-{:02}T{:02}:{:02}:{:02}.000Z", hour / 24 + 1, hour % 24, rest / 60, rest % 60)
    }
}
