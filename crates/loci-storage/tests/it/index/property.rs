//! Whatever is done to sessions and index in whatever order, a search finds what a plain look finds.

use std::fs;

use loci_storage::search::{IndexUse, SearchQuery};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    add, append, check_same, file_of, index_dir, messages, plain, prompt, search, search_for, segments,
    update,
};
use crate::support::World;

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Say(u32, String),
    Tear(u32, String),
    Mend(u32),
    Remove(u32),
    Update,
    Search,
    LoseIndex,
    LoseSegment,
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0_u32..5;
    let text = "(aa|ab|ba|bb|cc)( |, |_)(aa|ab|zz é)(\\PC{0,8})";
    prop_oneof![
        8 => (session.clone(), text).prop_map(|(n, text)| Step::Say(n, text)),
        1 => (session.clone(), text).prop_map(|(n, text)| Step::Tear(n, text)),
        1 => session.clone().prop_map(Step::Mend),
        1 => session.prop_map(Step::Remove),
        3 => Just(Step::Update),
        1 => Just(Step::Search),
        1 => Just(Step::LoseIndex),
        1 => Just(Step::LoseSegment),
    ]
}

fn happen(world: &World, n: usize, step: &Step) {
    match step {
        Step::Say(session, text) => drop(add(world, *session, &[prompt(&format!("m{n}"), text)])),
        Step::Tear(session, text) => {
            let line = prompt(&format!("m{n}"), text).to_string();
            let cut = (0..=line.len() / 2).rev().find(|at| line.is_char_boundary(*at)).unwrap();
            append(&file_of(world, *session), &line[..cut]);
        }
        Step::Mend(session) => append(&file_of(world, *session), "\n"),
        Step::Remove(session) => drop(fs::remove_file(file_of(world, *session))),
        Step::Update => update(world, &format!("s{n:04}")),
        Step::Search => drop(search(world, &search_for("aa"), IndexUse::Normal)),
        Step::LoseIndex => drop(fs::remove_dir_all(index_dir(world))),
        Step::LoseSegment => {
            segments(world).first().into_iter().for_each(|path| fs::remove_file(path).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    /// Invariant 1 of `docs/design/index.md`.
    #[test]
    fn search_agrees_with_a_plain_scan(steps in prop::collection::vec(step(), 1..30)) {
        let world = World::new();
        for (n, step) in steps.iter().enumerate() {
            happen(&world, n, step);
        }
        for query in [&["aa"][..], &["ab"], &["zz", "é"], &["aa", "bb"], &["absent"]] {
            let found = check_same(&world, &search_for(&query.join(" ")));
            let mut found = messages(&found);
            found.sort();
            prop_assert_eq!(found, plain::messages_with(&world.home.projects_dir(), query));
        }
    }
}

/// Says texts from `start` to `end`, each session's at once.
fn say(world: &World, texts: &[String], start: usize, end: usize) {
    for session in 0..3 {
        let of_session = (start..end).filter(|n| n % 3 == session);
        let lines: Vec<Value> = of_session.map(|n| prompt(&format!("m{n}"), &texts[n])).collect();
        add(world, session as u32, &lines);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Of many passages only the best are kept on the way; what is shown is what ranking all of them shows.
    /// Invariant 1 of `docs/design/index.md`.
    #[test]
    fn few_hits_of_many_are_the_first_of_all_hits(
        texts in prop::collection::vec("(aa|ab|bb)( (aa|ab|bb|cc)){0,6}(, aa)?(( zz){60,140} aa ab)?", 150..250),
        n_unindexed in 0_usize..20, skip in 0_usize..40, limit in 0_usize..20
    ) {
        let world = World::new();
        let n_indexed = texts.len() - n_unindexed;
        say(&world, &texts, 0, n_indexed);
        update(&world, "a");
        say(&world, &texts, n_indexed, texts.len());
        for query in ["aa", "aa bb", "a*", "\"aa ab\"", "\"ab aa bb\" cc", "bb,aa"] {
            let all = check_same(&world, &search_for(query));
            let expected: Vec<_> = all.hits.iter().skip(skip).take(limit).cloned().collect();
            for how in [IndexUse::AsItIs, IndexUse::None] {
                let page = search(&world, &SearchQuery { skip, limit, ..search_for(query) }, how);
                prop_assert_eq!(&page.hits, &expected);
            }
        }
    }
}
