//! Rules that follow their settings files while a session runs.
//!
//! What restricts counts from the next call on: a new deny or ask rule, an allow rule or directory that is gone.
//! What loosens waits for the next start, since a command of this very session may have written it; the user is
//! told. So a file that is read while half written can only make the session stricter, and the rules it had come
//! back with the whole file.

use std::io::Write;

use loci_core::permission::{Rule, RuleSource, Rulebook};
use loci_engine::FollowRules;
use loci_stdx::Env;
use loci_storage::SettingsWatch;

use crate::rules::rulebook_from_settings;

/// Follows the settings from those that gave `start`; `base` has what the command line gave alone.
pub(crate) fn follow(mut watch: SettingsWatch, env: Env, base: Rulebook, start: Rulebook) -> FollowRules {
    Box::new(move |current| {
        let loaded = watch.poll()?;
        let mut fresh = base.clone();
        let permissions = loaded.settings().permissions;
        let mut notes = rulebook_from_settings(&env, &permissions, Some(current.mode), &mut fresh);
        let book = tightened(current, &start, &fresh);
        if book == *current && !is_looser(&book, &fresh) {
            return None;
        }
        notes.extend(crate::settings::notes(&loaded));
        notes.push("Settings changed: what restricts counts from now on".to_owned());
        if is_looser(&book, &fresh) {
            notes.push("Settings changed: what allows more counts from the next start".to_owned());
        }
        for note in notes {
            // Nobody is left to tell when stderr is gone.
            drop(writeln!(std::io::stderr(), "{note}"));
        }
        (book != *current).then_some(book)
    })
}

/// Returns `current` made stricter by `fresh`; what was allowed at the start may come back.
fn tightened(current: &Rulebook, start: &Rulebook, fresh: &Rulebook) -> Rulebook {
    let has = |rules: &[Rule], rule: &Rule| rules.contains(rule);
    let grown = |rules: &[Rule], more: &[Rule]| -> Vec<Rule> {
        let new = more.iter().filter(|rule| !has(rules, rule)).cloned();
        rules.iter().cloned().chain(new).collect()
    };
    let granted = current.allow.iter().filter(|rule| rule.source() == RuleSource::Session);
    let kept = start.allow.iter().filter(|rule| has(&fresh.allow, rule));
    let added = current.dirs.iter().filter(|dir| !start.dirs.contains(dir));
    Rulebook {
        allow: kept.chain(granted).cloned().collect(),
        ask: grown(&current.ask, &fresh.ask),
        deny: grown(&current.deny, &fresh.deny),
        dirs: start.dirs.iter().filter(|dir| fresh.dirs.contains(dir)).chain(added).cloned().collect(),
        ..current.clone()
    }
}

/// Tells whether the files would now allow more than is in force.
fn is_looser(book: &Rulebook, fresh: &Rulebook) -> bool {
    let has = |rules: &[Rule], rule: &Rule| rules.contains(rule);
    // What an answer granted and saved is in the file too by now, and is no news.
    let is_granted = |rule: &Rule| {
        let mut granted = book.allow.iter().filter(|it| it.source() == RuleSource::Session);
        granted.any(|it| it.text() == rule.text())
    };
    fresh.allow.iter().any(|rule| !has(&book.allow, rule) && !is_granted(rule))
        || book.deny.iter().any(|rule| !has(&fresh.deny, rule))
        || book.ask.iter().any(|rule| !has(&fresh.ask, rule))
        || fresh.dirs.iter().any(|dir| !book.dirs.contains(dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::permission::{RuleList, RuleOrigin, split_list};
    use loci_core::settings::Scope;

    fn book(allow: &str, ask: &str, deny: &str) -> Rulebook {
        let mut book = Rulebook::default();
        let origin = RuleOrigin::new(RuleSource::Settings(Scope::User), "/");
        for (list, texts) in [(RuleList::Allow, allow), (RuleList::Ask, ask), (RuleList::Deny, deny)] {
            for text in split_list(texts) {
                assert_eq!(book.add(list, text, &origin), None);
            }
        }
        book
    }

    fn show(book: &Rulebook) -> String {
        let list = |rules: &[Rule]| rules.iter().map(|rule| format!(" {}", rule.text())).collect::<String>();
        format!("allow{} ask{} deny{}", list(&book.allow), list(&book.ask), list(&book.deny))
    }

    #[test]
    fn changes_only_restrict_until_the_next_start() {
        let start = book("Read Edit", "Glob", "Bash");
        for (fresh, expected, is_looser_now) in [
            (book("Read Edit", "Glob", "Bash"), "allow Read Edit ask Glob deny Bash", false),
            (book("Read Edit Write", "Glob", "Bash"), "allow Read Edit ask Glob deny Bash", true),
            (book("Read", "Glob Grep", "Bash Edit"), "allow Read ask Glob Grep deny Bash Edit", false),
            (book("", "", ""), "allow ask Glob deny Bash", true),
        ] {
            let now = tightened(&start, &start, &fresh);
            assert_eq!(show(&now), expected);
            assert_eq!(is_looser(&now, &fresh), is_looser_now, "{expected}");
            // A file that was half written when it was read costs nothing once it is whole.
            assert!(show(&tightened(&now, &start, &start)).contains("allow Read Edit"));
        }
    }
}
