//! Conversations that outgrow their windows again and again: never stuck, never over the window, never wasteful.
//!
//! A few dozen run with the other tests; `cargo xtask torture compaction` runs a thousand.

use loci_context::Window;

use crate::session::{Account, Dice, Manner, Session, words};

/// How many runs; set by `cargo xtask torture compaction`.
const RUNS: &str = "LOCI_TORTURE_COMPACTIONS";

/// Windows and how much their models write.
const WINDOWS: [(u64, u64); 4] = [(8_000, 1_000), (32_000, 4_000), (200_000, 32_000), (1_000_000, 64_000)];

/// Invariant 13 of `docs/design/compaction.md`.
#[test]
fn no_conversation_gets_stuck_or_wastes_its_tokens() {
    let n_runs: u64 = std::env::var(RUNS).map_or(16, |runs| runs.parse().unwrap());
    let mut totals: Vec<(u64, Account)> = WINDOWS.map(|(tokens, _)| (tokens, Account::default())).into();
    for seed in 0..n_runs {
        let idx = (seed % 4) as usize;
        let (tokens, max_output) = WINDOWS[idx];
        let mut dice = Dice(seed);
        let manner = Manner {
            scale: 80 + dice.roll(50),
            failing: [0, 0, 10, 100][dice.roll(4) as usize],
            long_prompts: if seed / 4 % 4 == 3 { 5 } else { 0 },
        };
        let mut session = Session::new(seed, Window { tokens, max_output, percent: None }, manner);
        session.run(40);
        check(seed, tokens, manner, &session.account);
        add(&mut totals[idx].1, &session.account);
    }
    let mut all = Account::default();
    for (tokens, total) in &totals {
        println!("{tokens}: {total:?}");
        add(&mut all, total);
    }
    assert!(all.by_model > 0 && all.by_rule > 0 && all.clearings > 0, "every step is met: {all:?}");
}

/// Instructions that come near the trigger or pass it: what is left of the window is the conversation's, it is made shorter as
/// often as that takes and no more, and no request is over the window.
/// Invariant 29 of `docs/design/compaction.md`.
#[test]
fn instructions_near_the_window_leave_a_conversation_its_room() {
    let mut seed = 0;
    for ((tokens, max_output), percents) in WINDOWS[1..3].iter().zip([[60, 70, 80], [60, 80, 84]]) {
        for percent in percents {
            for scale in [90, 130] {
                seed += 1;
                let window = Window { tokens: *tokens, max_output: *max_output, percent: None };
                let manner = Manner { scale, failing: 0, long_prompts: 0 };
                let instructions = words(tokens * percent / 100);
                let mut session = Session::opened_with(&instructions, seed, window, manner);
                let (before, room) = (session.room().trigger(), session.room());
                assert!(!room.is_filled() && before > room.overhead, "{percent} of {tokens}");
                session.run(12);
                let (account, way) = (&session.account, before - room.overhead);
                let about = format!("{percent} of {tokens}, scale {scale}: {way} {account:?}");
                println!("{about}");
                assert!(account.by_model + account.by_rule > 0, "it outgrew its room: {about}");
                // A quarter of the room at least is free after each.
                assert!(
                    account.by_model <= account.new_tokens * 4 / way + 1,
                    "too many compactions: {about}"
                );
            }
        }
    }
}

fn check(seed: u64, window: u64, manner: Manner, account: &Account) {
    let about = format!("seed {seed}, window {window}, {manner:?}: {account:?}");
    // One compaction by a model for every four tenths of a window of new content, and one to begin with.
    let most = account.new_tokens * 10 / (window * 4) + 1;
    assert!(account.by_model <= most, "too many compactions: more than {most}; {about}");
    // Whoever pastes a window's worth has it summarised at once, whatever that costs.
    if account.session_tokens > 10 * window && manner.long_prompts == 0 {
        assert!(account.summary_tokens * 10 < account.session_tokens, "summaries cost too much; {about}");
    }
    if manner.scale <= 100 {
        assert_eq!(account.refusals, 0, "{about}");
    }
}

fn add(total: &mut Account, account: &Account) {
    total.requests += account.requests;
    total.refusals += account.refusals;
    total.session_tokens += account.session_tokens;
    total.summary_tokens += account.summary_tokens;
    total.new_tokens += account.new_tokens;
    total.by_model += account.by_model;
    total.by_rule += account.by_rule;
    total.clearings += account.clearings;
    total.no_help += account.no_help;
}
