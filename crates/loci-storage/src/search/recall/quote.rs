//! What one message says, word for word.
//!
//! Only lines in which the id stands are read; where a result's tool is to be told, those that name its call are, too.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::AtomicBool;

use loci_core::passage::{CallNames, Passage, passages};
use loci_core::recall::{RecallResult, RecallSource};
use memchr::memmem;

use super::source;
use super::stretch::Stretch;

/// Quotes the message whose id is, or begins with, `message`; of two versions the later.
pub(super) fn quote(
    stretch: &Stretch,
    message: &str,
    offset: usize,
    limit: usize,
    stop: &AtomicBool,
) -> io::Result<RecallResult> {
    let mut found: Option<(RecallSource, Vec<Passage>)> = None;
    let mut matching = HashSet::new();
    if message.is_empty() {
        return Ok(RecallResult::NoSuchMessage { n_matching: 0 });
    }
    stretch.each_entry_with(&[memmem::Finder::new(message)], stop, |_, entry| {
        let Some(uuid) = entry.head().uuid.as_ref().filter(|uuid| uuid.as_str().starts_with(message)) else {
            return true;
        };
        let said = passages(entry);
        if let Some(first) = said.first() {
            matching.insert(uuid.clone());
            found = Some((source(entry, first.voice, first.tool.clone()), said));
        }
        true
    })?;
    let Some((mut source, mut said)) = found.filter(|_| matching.len() == 1) else {
        return Ok(RecallResult::NoSuchMessage { n_matching: matching.len() });
    };
    source.tool = tool_of(stretch, &mut said[0], stop)?;
    let texts: Vec<&str> = said.iter().map(|passage| passage.text.as_str()).collect();
    let text = texts.join("\n\n");
    let n_chars = text.chars().count();
    Ok(RecallResult::Quoted { source, n_chars, text: text.chars().skip(offset).take(limit).collect() })
}

/// Returns the tool that a call is for, or whose result a passage is.
fn tool_of(stretch: &Stretch, passage: &mut Passage, stop: &AtomicBool) -> io::Result<Option<String>> {
    if let (None, Some(call)) = (&passage.tool, passage.call.clone()) {
        let mut names = CallNames::default();
        stretch.each_entry_with(&[memmem::Finder::new(&call)], stop, |_, entry| {
            let calls = passages(entry).into_iter().filter(|it| it.tool.is_some());
            calls.for_each(|mut call| names.complete(&mut call));
            true
        })?;
        names.complete(passage);
    }
    Ok(passage.tool.clone())
}
