//! Glob.

use loci_core::tool::{Effects, ToolDescriptor, ToolOutcome};
use serde_json::{Value, json};

use crate::{Host, Place, Tool, ToolCall, ToolFuture};

/// The Glob tool.
pub(crate) struct Glob {
    descriptor: ToolDescriptor,
}

impl Default for Glob {
    fn default() -> Self {
        Self {
            descriptor: ToolDescriptor {
                name: "Glob".to_owned(),
                aliases: &[],
                description: String::new(),
                input_schema: json!({"type": "object"}),
                max_result_chars: None,
            },
        }
    }
}

impl Tool for Glob {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, _input: &Value, _place: &Place) -> Effects {
        Effects { unknown: vec!["not written yet".to_owned()], ..Effects::default() }
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        false
    }

    fn run<'a>(&'a self, _call: ToolCall, _host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(async { ToolOutcome::error("not written yet") })
    }
}
