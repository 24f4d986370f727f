//! What one message says, word for word.
//!
//! Only lines in which the id stands are read; where a result's tool is to be told, those that name its call are, too.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use loci_core::entry::Entry;
use loci_core::passage::{CallNames, Passage, passages};
use loci_core::recall::{RecallSource, Recalled};
use memchr::memmem;

use super::source;
use crate::session_file::{Loaded, each_line, read_line};

/// Quotes the message whose id is, or begins with, `message`; of two versions the later.
pub(super) fn quote(
    mut file: &File,
    message: &str,
    offset: usize,
    limit: usize,
    stop: &AtomicBool,
) -> io::Result<Recalled> {
    let mut found: Option<(RecallSource, Vec<Passage>)> = None;
    let mut matching = HashSet::new();
    each_entry_with(&mut file, message, stop, |entry| {
        let Some(uuid) = entry.head().uuid.as_ref().filter(|uuid| uuid.as_str().starts_with(message)) else {
            return;
        };
        let said = passages(entry);
        if let Some(first) = said.first() {
            matching.insert(uuid.clone());
            found = Some((source(entry, first.voice, first.tool.clone()), said));
        }
    })?;
    let Some((mut source, mut said)) = found.filter(|_| matching.len() == 1) else {
        return Ok(Recalled::NoSuchMessage { n_matching: matching.len() });
    };
    source.tool = tool_of(file, &mut said[0], stop)?;
    let texts: Vec<&str> = said.iter().map(|passage| passage.text.as_str()).collect();
    let text = texts.join("\n\n");
    let n_chars = text.chars().count();
    Ok(Recalled::Quoted { source, n_chars, text: text.chars().skip(offset).take(limit).collect() })
}

/// Returns the tool that a call is for, or whose result a passage is.
fn tool_of(mut file: &File, passage: &mut Passage, stop: &AtomicBool) -> io::Result<Option<String>> {
    if let (None, Some(call)) = (&passage.tool, passage.call.clone()) {
        let mut names = CallNames::default();
        io::Seek::rewind(&mut file)?;
        each_entry_with(&mut file, &call, stop, |entry| {
            let calls = passages(entry).into_iter().filter(|it| it.tool.is_some());
            calls.for_each(|mut call| names.complete(&mut call));
        })?;
        names.complete(passage);
    }
    Ok(passage.tool.clone())
}

/// Hands out the entries of a conversation in whose lines `id` stands, until `stop` says so. Without an id there are none.
fn each_entry_with(
    file: &mut &File,
    id: &str,
    stop: &AtomicBool,
    mut take: impl FnMut(&Entry),
) -> io::Result<()> {
    let finder = memmem::Finder::new(id.as_bytes());
    if id.is_empty() {
        return Ok(());
    }
    each_line(file, |line| {
        if finder.find(line.bytes).is_some() {
            let mut loaded = Loaded::default();
            read_line(line, &mut loaded);
            loaded.entries.iter().filter(|entry| !entry.head().is_sidechain).for_each(|entry| take(entry));
        }
        !stop.load(Ordering::Relaxed)
    })
}
