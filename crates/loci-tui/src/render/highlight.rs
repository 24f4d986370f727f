//! Colours of code, from a worker: drawing never waits for them.
//!
//! The worker starts, and loads its grammars, with the first line that asks. A line that has its colours when it is to
//! become final gets them; one that has waited [`PATIENCE`] is final without, and while the worker starts
//! [`START_PATIENCE`]. Lines that were coloured lately are remembered, so
//! that a text that is rendered again, for another width, has its colours at once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use crate::theme::Role;

/// How long a line of code waits for its colours before it is final without them.
pub(super) const PATIENCE: Duration = Duration::from_millis(30);
/// The same while the worker has coloured nothing yet: it starts, and loads its grammars.
pub(super) const START_PATIENCE: Duration = Duration::from_millis(300);
/// Lines longer than this are not worth it.
const LONGEST_LINE: usize = 2_000;

/// Which line of code: a block, and its line.
pub(super) type LineKey = (u64, usize);

/// A line in parts, each with what it is.
pub(super) type CodeParts = Vec<(String, Role)>;

/// So many coloured lines are remembered.
const MOST_REMEMBERED: usize = 4_000;

/// Stands for a line of code and all lines before it in its block: its colours depend on these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct LineDigest(u64);

impl LineDigest {
    /// Begins with a language.
    pub(super) fn new(language: &str) -> Self {
        Self::default().then(language)
    }

    /// Goes on with the next line.
    pub(super) fn then(self, line: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.0, line).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Colours code on a thread of its own. Clones are the same worker; it ends with the last of them.
#[derive(Debug, Clone, Default)]
pub struct Highlighter {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Guards what is below; held to look a line up or to send one.
    state: Mutex<State>,
    /// Guards the lines that are done; held to put one in or to take it.
    done: Arc<Mutex<ColoredLines>>,
}

/// Lines that have their colours.
#[derive(Debug, Default)]
struct ColoredLines {
    /// Those that nobody has fetched yet.
    fresh: HashMap<LineKey, CodeParts>,
    /// Those of lately, for whoever renders them again.
    remembered: HashMap<LineDigest, CodeParts>,
}

impl ColoredLines {
    fn insert(&mut self, key: LineKey, digest: LineDigest, parts: CodeParts) {
        // Lines that became final without their colours are never fetched.
        if self.fresh.len() > 10_000 {
            self.fresh.clear();
        }
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered.insert(digest, parts.clone());
        self.fresh.insert(key, parts);
    }
}

impl PartialEq for Highlighter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

#[derive(Debug, Default)]
struct State {
    requests: Option<Sender<Request>>,
    n_blocks: u64,
    has_failed: bool,
}

#[derive(Debug)]
struct Request {
    key: LineKey,
    digest: LineDigest,
    language: String,
    text: String,
}

impl Highlighter {
    /// Returns a number for a new block of code.
    pub(super) fn begin_block(&self) -> u64 {
        let mut state = lock(&self.shared.state);
        state.n_blocks += 1;
        state.n_blocks
    }

    /// Asks for the colours of a line; lines of a block are asked for in order.
    pub(super) fn request(&self, key: LineKey, digest: LineDigest, language: &str, text: &str) {
        let mut state = lock(&self.shared.state);
        if state.has_failed {
            return;
        }
        if state.requests.is_none() {
            let (sender, receiver) = channel();
            let done = Arc::clone(&self.shared.done);
            let thread = std::thread::Builder::new().name("highlighter".to_owned());
            match thread.spawn(move || color_lines(&receiver, &done)) {
                Ok(_) => state.requests = Some(sender),
                // Without a thread code stays plain; nothing else depends on it.
                Err(_) => state.has_failed = true,
            }
        }
        let request = Request { key, digest, language: language.to_owned(), text: text.to_owned() };
        let is_sent = state.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok());
        state.has_failed |= !is_sent;
    }

    /// Takes the parts of a line, if they are there.
    pub(super) fn take(&self, key: LineKey) -> Option<CodeParts> {
        lock(&self.shared.done).fresh.remove(&key)
    }

    /// Tells whether the parts of a line are there to be taken.
    pub(super) fn is_done(&self, key: LineKey) -> bool {
        lock(&self.shared.done).fresh.contains_key(&key)
    }

    /// Returns how long a line waits.
    pub(super) fn patience(&self) -> Duration {
        let has_begun = !lock(&self.shared.done).remembered.is_empty();
        let has_failed = || lock(&self.shared.state).has_failed;
        if has_begun || has_failed() { PATIENCE } else { START_PATIENCE }
    }

    /// Returns the parts of a line that was coloured lately.
    pub(super) fn remembered(&self, digest: LineDigest) -> Option<CodeParts> {
        lock(&self.shared.done).remembered.get(&digest).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn color_lines(requests: &Receiver<Request>, done: &Mutex<ColoredLines>) {
    let syntaxes = two_face::syntax::extra_newlines();
    let mut block = None;
    while let Ok(Request { key, digest, language, text }) = requests.recv() {
        if block.as_ref().is_none_or(|open: &OpenBlock| open.number != key.0) {
            block = Some(OpenBlock::new(key.0, &language, &syntaxes));
        }
        let parts = block.as_mut().and_then(|block| block.color(&text, &syntaxes));
        lock(done).insert(key, digest, parts.unwrap_or_else(|| vec![(text, Role::Text)]));
    }
}

struct OpenBlock {
    number: u64,
    state: Option<ParseState>,
    scopes: ScopeStack,
}

impl OpenBlock {
    fn new(number: u64, language: &str, syntaxes: &SyntaxSet) -> Self {
        let syntax = syntaxes.find_syntax_by_token(language);
        Self { number, state: syntax.map(ParseState::new), scopes: ScopeStack::new() }
    }

    fn color(&mut self, text: &str, syntaxes: &SyntaxSet) -> Option<CodeParts> {
        let state = self.state.as_mut().filter(|_| text.len() <= LONGEST_LINE)?;
        let line = format!("{text}\n");
        let ops = state.parse_line(&line, syntaxes).ok()?;
        let mut parts: CodeParts = Vec::new();
        let mut start = 0;
        for (at, op) in ops {
            push_part(&mut parts, line.get(start..at)?, role_of(&self.scopes));
            start = at;
            self.scopes.apply(&op).ok()?;
        }
        push_part(&mut parts, line.get(start..)?, role_of(&self.scopes));
        if let Some((last, _)) = parts.last_mut() {
            last.truncate(last.trim_end_matches('\n').len());
        }
        Some(parts)
    }
}

fn push_part(parts: &mut CodeParts, text: &str, role: Role) {
    match parts.last_mut() {
        Some((last, last_role)) if *last_role == role => last.push_str(text),
        _ if text.is_empty() => {}
        _ => parts.push((text.to_owned(), role)),
    }
}

/// What text within scopes is: the innermost that says so.
fn role_of(scopes: &ScopeStack) -> Role {
    const ROLES: &[(&str, Role)] = &[
        ("comment", Role::Comment),
        ("string", Role::StringLiteral),
        ("constant", Role::Constant),
        ("entity.name.function", Role::Function),
        ("support.function", Role::Function),
        ("variable.function", Role::Function),
        ("entity.name.tag", Role::Keyword),
        ("entity.name", Role::TypeName),
        ("support.type", Role::TypeName),
        ("support.class", Role::TypeName),
        ("keyword.operator", Role::Text),
        ("keyword", Role::Keyword),
        ("storage", Role::Keyword),
    ];
    let found = scopes.as_slice().iter().rev().find_map(|scope| {
        let name = scope.build_string();
        ROLES.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, role)| *role)
    });
    found.unwrap_or(Role::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_line_have_their_roles_and_all_of_its_text() {
        let syntaxes = two_face::syntax::extra_newlines();
        let mut block = OpenBlock::new(1, "rust", &syntaxes);
        let text = "fn main() { let s = \"漢字\"; } // why";
        let parts = block.color(text, &syntaxes).unwrap();
        assert_eq!(parts.iter().map(|(text, _)| text.as_str()).collect::<String>(), text);
        for (part, role) in [
            ("fn", Role::Keyword),
            ("main", Role::Function),
            ("\"漢字\"", Role::StringLiteral),
            ("// why", Role::Comment),
        ] {
            assert!(parts.contains(&(part.to_owned(), role)), "{part} in {parts:?}");
        }
        // A string that is open goes on in the next line.
        block.color("let open = \"first", &syntaxes).unwrap();
        assert_eq!(block.color("second\";", &syntaxes).unwrap()[0].1, Role::StringLiteral);
        assert!(OpenBlock::new(2, "no-such-language", &syntaxes).color("x", &syntaxes).is_none());
    }
}
