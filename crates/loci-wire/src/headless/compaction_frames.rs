//! The order in which a compaction is told: that it is under way, that it is over, and only then what came of it. The turn of
//! a command that asked for it is told with that, too.

use loci_engine::EngineEvent;
use serde_json::Value;

/// Frames of a compaction that wait for its end.
#[derive(Debug, Default)]
pub(super) struct CompactionFrames {
    /// Whether a command asked for it.
    pub(super) is_manual: bool,
    is_under_way: bool,
    held: Vec<Value>,
}

impl CompactionFrames {
    /// Returns what is written now that an event has this frame.
    pub(super) fn order(&mut self, event: &EngineEvent, frame: Value) -> Vec<Value> {
        match event {
            EngineEvent::TurnStarted(start) => {
                *self = Self { is_manual: start.is_compaction, ..Self::default() };
                if start.is_compaction {
                    self.held.push(frame);
                    return Vec::new();
                }
            }
            EngineEvent::Compacting => self.is_under_way = true,
            EngineEvent::CompactionEnded { .. } => {
                return std::iter::once(frame).chain(self.take()).collect();
            }
            EngineEvent::Compacted { .. } if self.is_under_way => {
                self.held.push(frame);
                return Vec::new();
            }
            EngineEvent::User(message) if self.is_under_way && message.is_synthetic => {
                self.held.push(frame);
                return Vec::new();
            }
            _ => {}
        }
        vec![frame]
    }

    /// Returns what waits; nothing is waited for any more.
    pub(super) fn take(&mut self) -> Vec<Value> {
        self.is_under_way = false;
        std::mem::take(&mut self.held)
    }
}
