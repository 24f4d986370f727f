//! What to fetch and what to send, from three lists of hashes: the files here, the server's, and the last the two agreed on.
//!
//! The server wins where both sides changed; what it overwrites stays in the journal of memories. What only this side
//! changed waits to be sent. Nothing is ever deleted on either side: an entry that is gone here comes back.

use std::collections::{BTreeMap, BTreeSet};

use super::{ContentHash, EntryName};

/// Entries and the hashes of their texts.
pub type Hashes = BTreeMap<EntryName, ContentHash>;

/// What a pull does with an entry; entries that are alike on both sides are not named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// It is not here: it is fetched.
    Add,
    /// Only the server's changed: it is fetched.
    Update,
    /// Both changed: the server's is fetched, and what was here can be brought back.
    Overwrite,
    /// Only ours changed: it stays, to be sent.
    Keep,
}

/// What a push does with an entry; entries that are alike on both sides are not named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// The server does not have it.
    Create,
    /// The server still has what we last agreed on.
    Update(ContentHash),
    /// The server has something we have not seen: pull first.
    Conflict,
    /// Only the server's changed: there is nothing to send.
    Behind,
}

/// Plans a pull.
pub fn pull_plan(local: &Hashes, agreed: &Hashes, server: &Hashes) -> BTreeMap<EntryName, Pull> {
    let step = |name: &EntryName, theirs: &ContentHash| match (local.get(name), agreed.get(name)) {
        (Some(ours), _) if ours == theirs => None,
        (None, _) => Some(Pull::Add),
        (Some(ours), Some(last)) if ours == last => Some(Pull::Update),
        (Some(_), Some(last)) if theirs == last => Some(Pull::Keep),
        (Some(_), _) => Some(Pull::Overwrite),
    };
    server.iter().filter_map(|(name, theirs)| Some((name.clone(), step(name, theirs)?))).collect()
}

/// Plans a push.
pub fn push_plan(local: &Hashes, agreed: &Hashes, server: &Hashes) -> BTreeMap<EntryName, Push> {
    // A new name that some systems take for one the server has would hide it there.
    let taken: BTreeSet<String> = server.keys().map(EntryName::case_key).collect();
    let step = |name: &EntryName, ours: &ContentHash| match (server.get(name), agreed.get(name)) {
        (Some(theirs), _) if ours == theirs => None,
        (None, _) if taken.contains(&name.case_key()) => Some(Push::Conflict),
        (None, _) => Some(Push::Create),
        (Some(_), Some(last)) if ours == last => Some(Push::Behind),
        (Some(theirs), Some(last)) if theirs == last => Some(Push::Update(theirs.clone())),
        (Some(_), _) => Some(Push::Conflict),
    };
    local.iter().filter_map(|(name, ours)| Some((name.clone(), step(name, ours)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hashes(text: Option<&str>) -> Hashes {
        text.map(|text| (EntryName::parse("a.md").unwrap(), ContentHash::of(text))).into_iter().collect()
    }

    fn check(
        local: Option<&str>,
        agreed: Option<&str>,
        server: Option<&str>,
        pull: Option<Pull>,
        push: Option<Push>,
    ) {
        let [local, agreed, server] = [local, agreed, server].map(hashes);
        assert_eq!(pull_plan(&local, &agreed, &server).into_values().next(), pull);
        assert_eq!(push_plan(&local, &agreed, &server).into_values().next(), push);
    }

    /// Invariant 2 of `docs/design/team-memory.md`.
    #[test]
    fn the_server_wins_and_only_what_changed_is_sent() {
        let (x, y, z) = (Some("x"), Some("y"), Some("z"));
        check(x, x, x, None, None);
        check(x, None, x, None, None);
        check(None, None, x, Some(Pull::Add), None);
        // Deleted here: not sent on, and it comes back.
        check(None, x, x, Some(Pull::Add), None);
        check(None, x, y, Some(Pull::Add), None);
        check(x, None, None, None, Some(Push::Create));
        check(x, x, None, None, Some(Push::Create));
        check(x, x, y, Some(Pull::Update), Some(Push::Behind));
        check(y, x, x, Some(Pull::Keep), Some(Push::Update(ContentHash::of("x"))));
        check(y, x, z, Some(Pull::Overwrite), Some(Push::Conflict));
        check(y, None, z, Some(Pull::Overwrite), Some(Push::Conflict));
        check(y, x, y, None, None);
    }

    #[test]
    fn name_that_differs_by_case_from_the_servers_is_a_conflict() {
        let name = |name: &str| EntryName::parse(name).unwrap();
        let local = Hashes::from([(name("A.md"), ContentHash::of("x"))]);
        let server = Hashes::from([(name("a.md"), ContentHash::of("x"))]);
        let plan = push_plan(&local, &Hashes::new(), &server);
        assert_eq!(plan, BTreeMap::from([(name("A.md"), Push::Conflict)]));
    }

    proptest! {
        /// Invariant 2 of `docs/design/team-memory.md`. After a pull and a push, carried out as planned, both sides agree
        /// on every entry, no entry is gone from either side, and there is nothing left to do.
        #[test]
        fn a_pull_and_a_push_make_both_sides_agree(
            cells in proptest::collection::vec((0..4usize, 0..4usize, 0..4usize), 0..8)
        ) {
            let texts = [None, Some("x"), Some("y"), Some("z")];
            let [mut local, mut agreed, mut server] = [Hashes::new(), Hashes::new(), Hashes::new()];
            for (n, (ours, last, theirs)) in cells.iter().enumerate() {
                let name = EntryName::parse(&format!("{n}.md")).unwrap();
                for (side, text) in [(&mut local, ours), (&mut agreed, last), (&mut server, theirs)] {
                    side.extend(texts[*text].map(|text| (name.clone(), ContentHash::of(text))));
                }
            }
            let before: BTreeSet<EntryName> = local.keys().chain(server.keys()).cloned().collect();
            let pull = pull_plan(&local, &agreed, &server);
            for (name, _) in pull.iter().filter(|(_, step)| **step != Pull::Keep) {
                local.insert(name.clone(), server[name].clone());
            }
            for (name, theirs) in &server {
                if local.get(name) == Some(theirs) {
                    agreed.insert(name.clone(), theirs.clone());
                }
            }
            for (name, step) in push_plan(&local, &agreed, &server) {
                prop_assert!(matches!(step, Push::Create | Push::Update(_)), "{name} {step:?}");
                server.insert(name.clone(), local[&name].clone());
            }
            prop_assert_eq!(&local, &server);
            prop_assert_eq!(local.into_keys().collect::<BTreeSet<_>>(), before);
        }
    }
}
