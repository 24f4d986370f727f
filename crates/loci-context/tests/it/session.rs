//! A conversation that runs through the pipeline as the engine runs it, with a pretended model and server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use loci_context::{
    CompactionAttempt, CompactionCarryover, CompactionGuard, CompactionInput, CompactionResult,
    CompactionStep, ContextAction, ContextRoom, ContextState, KeepRecent, Notes, Replaced, ResultBudget,
    SummarySource, Window, context_tokens, estimate_messages, estimate_path, next_context_action,
    prose_tokens, summary_text,
};
use loci_core::entry::Entry;
use loci_core::message::{Block, Message};
use loci_core::tool::{ToolFactTable, ToolFacts};
use serde_json::{Value, json};

/// A small generator of numbers: the same seed gives the same run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % below.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }
}

/// How the pretended model behaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// How many tokens the server counts where we estimate a hundred.
    pub(crate) scale: u64,
    /// How often a summary fails, in percent.
    pub(crate) failing: u64,
    /// How often a prompt has a tenth of the window to twice as much, in percent.
    pub(crate) long_prompts: u64,
}

/// What a run came to.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) requests: u64,
    pub(crate) refusals: u64,
    /// Tokens of all requests and answers.
    pub(crate) session_tokens: u64,
    /// Of those, tokens of summaries.
    pub(crate) summary_tokens: u64,
    /// Tokens that were added to the conversation.
    pub(crate) new_tokens: u64,
    pub(crate) by_model: u64,
    pub(crate) by_rule: u64,
    pub(crate) clearings: u64,
    pub(crate) no_help: u64,
}

pub(crate) struct Session {
    pub(crate) window: Window,
    /// What every request has, what opens the conversation included.
    overhead: u64,
    /// What opens the conversation.
    context: Block,
    manner: Manner,
    dice: Dice,
    path: Vec<Arc<Entry>>,
    replaced: Replaced,
    tools: ToolFactTable,
    guard: CompactionGuard,
    so_far: Option<Notes>,
    n_entries: usize,
    pub(crate) account: Account,
    /// Which entries a model has summarised.
    summarised: HashSet<String>,
    /// What each entry takes, as long as nothing is replaced.
    sizes: HashMap<String, u64>,
}

impl Session {
    pub(crate) fn new(seed: u64, window: Window, manner: Manner) -> Self {
        Self::opened_with("context", seed, window, manner)
    }

    /// The same with instructions of so many words.
    pub(crate) fn opened_with(context: &str, seed: u64, window: Window, manner: Manner) -> Self {
        Self {
            window,
            overhead: window.tokens / 25 + prose_tokens(context),
            context: Block::new_text(context),
            manner,
            dice: Dice(seed),
            path: Vec::new(),
            replaced: Replaced::default(),
            tools: ToolFactTable::from_iter([(
                "Read",
                ToolFacts { is_clearable: true, ..ToolFacts::default() },
            )]),
            guard: CompactionGuard::default(),
            so_far: None,
            n_entries: 0,
            account: Account::default(),
            summarised: HashSet::new(),
            sizes: HashMap::new(),
        }
    }

    /// Runs so many prompts to their end.
    pub(crate) fn run(&mut self, n_prompts: u64) {
        for _ in 0..n_prompts {
            let size = match self.dice.chance(self.manner.long_prompts) {
                true => self.window.tokens * (1 + self.dice.roll(20)) / 10,
                false => 10 + self.dice.roll(self.window.tokens / 100),
            };
            let text = words(size);
            self.push(json!({"type": "user", "message": {"role": "user", "content": text}}));
            for n_round in 0..=self.dice.roll(12) {
                self.request();
                if !self.respond(n_round) {
                    break;
                }
            }
        }
    }

    /// Brings the conversation into shape and sends it; the server refuses what does not fit, once at most.
    fn request(&mut self) {
        loop {
            match next_context_action(&self.state()) {
                ContextAction::Nothing => break,
                ContextAction::Clear(clearing) => {
                    let after = self.path.last().and_then(|entry| entry.head().uuid.clone());
                    self.replaced.add(&clearing, after);
                    self.sizes.clear();
                    self.account.clearings += 1;
                }
                ContextAction::Compact => {
                    self.compact(None);
                    break;
                }
                ContextAction::NoHelp => {
                    self.account.no_help += 1;
                    break;
                }
            }
        }
        let size = self.true_size();
        if size > self.window.tokens {
            self.account.refusals += 1;
            let message = format!("prompt is too long: {size} tokens > {} maximum", self.window.tokens);
            self.compact(Some(&message));
        }
        let size = self.true_size();
        assert!(size <= self.window.tokens, "over the window: {size} of {}", self.window.tokens);
        self.account.requests += 1;
        self.account.session_tokens += size;
    }

    fn state(&self) -> ContextState<'_> {
        ContextState {
            path: &self.path,
            replaced: &self.replaced,
            tools: &self.tools,
            window: self.window,
            tokens: context_tokens(&self.path, &self.replaced, self.overhead),
            compact_from: self.room().trigger(),
            guard: &self.guard,
            snips: true,
            clears_cold: true,
            now_ms: 0,
        }
    }

    /// What bounds it, by what the server counted last.
    pub(crate) fn room(&self) -> ContextRoom {
        ContextRoom::from_path(self.window, self.overhead, &self.path, &self.replaced)
    }

    /// What the server counts.
    fn true_size(&mut self) -> u64 {
        let replaced = &self.replaced;
        let sizes = self.path.iter().map(|entry| {
            let id = entry.head().uuid.as_ref().map_or("", |id| id.as_str());
            match self.sizes.get(id) {
                Some(size) => *size,
                None => {
                    let size = estimate_path(std::slice::from_ref(entry), replaced);
                    self.sizes.insert(id.to_owned(), size);
                    size
                }
            }
        });
        self.overhead + sizes.sum::<u64>() * self.manner.scale / 100
    }

    fn compact(&mut self, refusal: Option<&str>) {
        let estimated = self.overhead + estimate_path(&self.path, &self.replaced);
        let tokens = context_tokens(&self.path, &self.replaced, self.overhead);
        let room = match refusal {
            Some(message) => ContextRoom::new(self.window, self.overhead).refused(message, estimated),
            None => self.room(),
        };
        let input = CompactionInput {
            path: self.path.clone(),
            replaced: self.replaced.clone(),
            room,
            context: self.context.clone(),
            tasks: Vec::new(),
            to_do: Vec::new(),
            focus: None,
            keep_from: None,
        };
        let keep = if refusal.is_some() { KeepRecent::NewerHalf } else { KeepRecent::LastRound };
        let Some(mut attempt) = CompactionAttempt::new(input, keep, None, self.so_far.take()) else {
            panic!("there is always something to make shorter: {} entries", self.path.len())
        };
        let must = refusal.is_some() || tokens >= room.at_least(self.window.thresholds().usable);
        let may_ask = self.guard.may_ask();
        let mut step = if may_ask { attempt.begin() } else { CompactionStep::Record(attempt.last_resort()) };
        let mut n_asked = 0;
        let result = loop {
            match step {
                CompactionStep::Record(result) => break result,
                CompactionStep::Ask(messages) => {
                    n_asked += 1;
                    match self.summarise(&messages).and_then(|answer| attempt.on_answer(&answer)) {
                        Some(next) => step = next,
                        None => {
                            self.guard.failed();
                            self.so_far = attempt.so_far().cloned();
                            if !must {
                                return;
                            }
                            break attempt.last_resort();
                        }
                    }
                }
            }
        };
        assert!(n_asked <= 8, "{n_asked} requests for one summary");
        self.record(&result, &room);
    }

    /// Plays the model that is asked for a summary.
    fn summarise(&mut self, messages: &[Message]) -> Option<String> {
        let opening = prose_tokens(&self.context.text().unwrap());
        let (has, said) = match messages[0].content.first() == Some(&self.context) {
            true => (self.overhead, estimate_messages(messages).saturating_sub(opening)),
            // A part is read without what opens the conversation.
            false => (self.overhead - opening, estimate_messages(messages)),
        };
        let size = has + said * self.manner.scale / 100;
        assert!(size <= self.window.tokens, "a summary's request is over the window: {size}");
        if self.dice.chance(self.manner.failing) {
            return None;
        }
        let answer = format!("<summary>{}</summary>", words(100 + self.dice.roll(self.window.tokens / 10)));
        self.account.summary_tokens += size + prose_tokens(&answer);
        self.account.session_tokens += size + prose_tokens(&answer);
        Some(answer)
    }

    fn record(&mut self, result: &CompactionResult, room: &ContextRoom) {
        let gone = self.path[result.plan.summarised.clone()].iter();
        let gone = gone.filter(|entry| !entry.head().is_compact_summary && !entry.is_compact_boundary());
        for id in gone.filter_map(|entry| entry.head().uuid.clone()) {
            assert!(self.summarised.insert(id.as_str().to_owned()), "{id} is summarised twice");
        }
        let kept = self.path[result.plan.preserved.clone()].to_vec();
        let ids: Vec<String> = kept
            .iter()
            .filter_map(|entry| entry.head().uuid.clone())
            .map(|id| id.as_str().to_owned())
            .collect();
        let mut metadata = json!({"preservedMessages": {"uuids": ids}});
        result.carryover.keep_in(&mut metadata);
        self.path.clear();
        self.push(json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata}));
        let text = summary_text(&result.summary, Some("/t.jsonl"));
        self.push(
            json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": text}}),
        );
        self.path.extend(kept);
        self.guard.succeeded();
        match result.source {
            SummarySource::Model => self.account.by_model += 1,
            SummarySource::Rule => self.account.by_rule += 1,
            SummarySource::Notes => {}
        }
        let size = room.overhead + room.scaled(estimate_path(&self.path, &self.replaced));
        let trigger = room.trigger();
        assert!(size < trigger, "as full as before: {size} of {trigger} after {:?}", result.source);
        assert_eq!(
            CompactionCarryover::from_path(&self.path, Vec::new(), Vec::new()).changed,
            result.carryover.changed,
            "paths go over"
        );
    }

    /// Plays the model's turn; tells whether it made calls.
    fn respond(&mut self, n_round: u64) -> bool {
        let tokens = self.true_size();
        let n_calls = self.dice.roll(4).min(12 - n_round);
        let said = words(5 + self.dice.roll(self.window.tokens / 120));
        let id = format!("m{}", self.n_entries);
        let output = prose_tokens(&said);
        let usage = json!({"input_tokens": tokens, "output_tokens": output});
        self.account.session_tokens += output;
        self.guard.on_response();
        let message = |block: Value| json!({"type": "assistant", "message": {"id": id, "role": "assistant", "content": [block], "usage": usage}});
        self.push(message(json!({"type": "text", "text": said})));
        let calls: Vec<String> = (0..n_calls).map(|n| format!("t{}_{n}", self.n_entries)).collect();
        for call in &calls {
            let input = json!({"file_path": format!("/p/{call}")});
            self.push(message(json!({"type": "tool_use", "id": call, "name": "Read", "input": input})));
        }
        let mut taken = 0;
        for call in &calls {
            taken += self.answer(call, taken);
        }
        n_calls > 0
    }

    /// Plays a tool: its output has a tenth of the window to twenty times as much, and goes through the budget.
    fn answer(&mut self, call: &str, taken: u64) -> u64 {
        let tenths = match self.dice.roll(3) {
            0 => 1,
            1 => 1 + self.dice.roll(10),
            _ => 1 + self.dice.roll(200),
        };
        let size = self.window.tokens * tenths / 10;
        let allowed = ResultBudget::of(&self.room()).allows(size, taken);
        // What is too long is a preview of two thousand characters.
        let text = words(if allowed { size } else { 560.min(self.window.tokens / 50) });
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
        let result = match self.dice.chance(20) {
            true => json!({"filePath": format!("/p/{}", self.dice.roll(300))}),
            false => json!({}),
        };
        self.push(
            json!({"type": "user", "message": {"role": "user", "content": [block]}, "toolUseResult": result}),
        );
        prose_tokens(&text)
    }

    fn push(&mut self, mut line: Value) {
        line["uuid"] = json!(format!("e{}", self.n_entries));
        self.n_entries += 1;
        let entry = Arc::new(Entry::parse(line.to_string()).unwrap());
        self.account.new_tokens += estimate_path(std::slice::from_ref(&entry), &Replaced::default());
        self.path.push(entry);
    }
}

/// So many tokens of prose.
pub(crate) fn words(tokens: u64) -> String {
    let n_chars = usize::try_from(tokens * 4).unwrap();
    let mut text = "some words here. ".repeat(n_chars / 17 + 1);
    text.truncate(n_chars);
    text
}
