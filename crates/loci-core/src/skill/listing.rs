//! What the model is told of the skills there are, within a budget.
//!
//! Each has a line with its name and what it is for. Where all of that is too long, descriptions go, those of the skills
//! that were used least first, and of those the ones that come last; names stay, so that none is hidden.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::{SkillDefinition, SkillUsageTable};

/// How long a listing may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListingBudget {
    /// All of it, in characters.
    pub chars: usize,
    /// One description, in characters.
    pub description_chars: usize,
}

/// A listing of skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillListing {
    /// The lines.
    pub text: String,
    /// The names in them, in order.
    pub names: Vec<String>,
    /// How many are named without saying what they are for, since there was no room.
    pub n_without_description: usize,
}

/// How a skill is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Name and description.
    Whole,
    /// The name alone.
    NameOnly,
}

/// What a line takes beside the name: the dash, a space and the line's end.
const NAME_TAKES: usize = 3;

/// Makes a listing, in the order given; `usage` says whose descriptions stay where there is no room for all.
pub fn list_skills<'a>(
    skills: impl IntoIterator<Item = (&'a SkillDefinition, Listed)>,
    budget: ListingBudget,
    usage: &SkillUsageTable,
) -> SkillListing {
    let skills: Vec<_> = skills.into_iter().collect();
    let (descriptions, n_without_description) = descriptions(&skills, budget, usage);
    let mut listing = SkillListing { n_without_description, ..SkillListing::default() };
    listing.names.reserve(skills.len());
    for ((skill, _), description) in skills.into_iter().zip(descriptions) {
        if !listing.text.is_empty() {
            listing.text.push('\n');
        }
        listing.text.push_str("- ");
        listing.text.push_str(&skill.name);
        listing.names.push(skill.name.clone());
        if !description.is_empty() {
            listing.text.push_str(": ");
            listing.text.push_str(&description);
        }
    }
    listing
}

/// Returns what is said of each skill, which is nothing where there is no room, and of how many that is so.
fn descriptions<'a>(
    skills: &[(&'a SkillDefinition, Listed)],
    budget: ListingBudget,
    usage: &SkillUsageTable,
) -> (Vec<Cow<'a, str>>, usize) {
    let names_take: usize = skills.iter().map(|(skill, _)| skill.name.chars().count() + NAME_TAKES).sum();
    let mut room = budget.chars.saturating_sub(names_take);
    let mut descriptions = vec![Cow::Borrowed(""); skills.len()];
    let mut n_without = 0;
    for idx in by_usage(skills, usage) {
        let (skill, listed) = skills[idx];
        if listed == Listed::NameOnly || !skill.has_summary() {
            continue;
        }
        // What has no room is not made.
        let description =
            if room > 0 { description(skill, budget.description_chars) } else { Cow::Borrowed("") };
        let takes = description.chars().count() + 2;
        match takes <= room {
            true if description.is_empty() => {}
            true => {
                room -= takes;
                descriptions[idx] = description;
            }
            false => {
                room = 0;
                n_without += 1;
            }
        }
    }
    (descriptions, n_without)
}

/// Returns the places of skills, those that were used most first.
fn by_usage(skills: &[(&SkillDefinition, Listed)], usage: &SkillUsageTable) -> Vec<usize> {
    let mut order: Vec<usize> = (0..skills.len()).collect();
    if !usage.is_empty() {
        order.sort_by_key(|idx| Reverse(usage.usage(&skills[*idx].0.name)));
    }
    order
}

/// Returns what a skill is for, on one line and not too long. Most are so already, and are not copied.
fn description(skill: &SkillDefinition, most: usize) -> Cow<'_, str> {
    let summary = match &skill.when_to_use {
        None => Cow::Borrowed(skill.description.as_str()),
        Some(_) => Cow::Owned(skill.summary()),
    };
    if summary.len() <= most && is_plain(&summary) {
        return summary;
    }
    // It cannot end, or begin, what the program says around it.
    let text = summary.replace("system-reminder>", "system-reminder >");
    let text = text.replace(|c: char| c.is_control() && !c.is_whitespace(), "");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= most {
        return text.into();
    }
    let cut: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end()).into()
}

/// Tells whether a text is words of ASCII with one space between two, and has nothing in it that could end what stands
/// around it.
fn is_plain(text: &str) -> bool {
    let mut was_space = true;
    for byte in text.bytes() {
        match byte {
            b' ' if was_space => return false,
            b' ' => was_space = true,
            b'>' => return false,
            b'!'..=b'~' => was_space = false,
            _ => return false,
        }
    }
    !was_space
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skill::{SkillSource, SkillUsage, parse_skill};

    fn skill(name: &str, text: &str) -> SkillDefinition {
        parse_skill(text, name, SkillSource::bundled())
    }

    fn check(chars: usize, description_chars: usize, expected: &str, n_without: usize) {
        let skills = [
            skill("one", "---\ndescription: First\nwhen_to_use: often\n---\n"),
            skill("two", "Second\nthing."),
            skill("three", "---\nname: x\n---\n"),
        ];
        let listed = skills.iter().map(|skill| (skill, Listed::Whole));
        let budget = ListingBudget { chars, description_chars };
        let listing = list_skills(listed, budget, &SkillUsageTable::default());
        assert_eq!((listing.text.as_str(), listing.n_without_description), (expected, n_without));
        assert_eq!(listing.names, ["one", "two", "three"]);
    }

    #[test]
    fn names_stay_when_descriptions_have_no_room() {
        check(1000, 100, "- one: First often\n- two: Second thing.\n- three", 0);
        check(1000, 8, "- one: First o…\n- two: Second…\n- three", 0);
        check(36, 100, "- one: First often\n- two\n- three", 1);
        check(30, 100, "- one\n- two\n- three", 2);
        check(0, 100, "- one\n- two\n- three", 2);
    }

    #[test]
    fn descriptions_of_the_least_used_skills_go_first() {
        let skills = ["one", "two", "three", "four"].map(|name| skill(name, "Does it."));
        let check = |used: &[(&str, u64, i64)], chars: usize, expected: &str| {
            let mut usage = SkillUsageTable::default();
            for (name, count, last_used_ms) in used {
                usage.add(name, SkillUsage { count: *count, last_used_ms: *last_used_ms });
            }
            let listed = skills.iter().map(|skill| (skill, Listed::Whole));
            let listing = list_skills(listed, ListingBudget { chars, description_chars: 100 }, &usage);
            let with: Vec<&str> =
                listing.text.lines().filter_map(|line| line.strip_suffix(": Does it.")).collect();
            assert_eq!(with.join(" "), expected, "{used:?}");
            assert_eq!(listing.names, ["one", "two", "three", "four"], "the order stays");
            assert_eq!(listing.n_without_description, 4 - with.len());
        };
        let names_and = |n: usize| 27 + n * 10;
        check(&[], names_and(2), "- one - two");
        check(&[("three", 1, 0)], names_and(2), "- one - three");
        check(&[("three", 2, 5), ("four", 9, 1), ("gone", 99, 9)], names_and(2), "- three - four");
        check(&[("two", 2, 5), ("four", 2, 7)], names_and(1), "- four");
        check(&[("four", 1, 1)], names_and(4), "- one - two - three - four");
    }

    #[test]
    fn description_is_one_line_that_ends_nothing_around_it() {
        for (text, expected) in [
            ("Ships the build (to 3 servers).", "Ships the build (to 3 servers)."),
            ("Ships  the\n build", "Ships the build"),
            ("Shïps é", "Shïps é"),
            ("x </system-reminder> y", "x </system-reminder > y"),
            ("a\u{1b}[2Jb", "a[2Jb"),
            ("a -> b", "a -> b"),
        ] {
            let described = SkillDefinition { description: text.to_owned(), ..skill("s", "x") };
            assert_eq!(description(&described, 100), expected);
            let said = SkillDefinition { when_to_use: Some("Often.".to_owned()), ..described };
            assert_eq!(description(&said, 100), format!("{expected} Often."));
        }
    }

    #[test]
    fn overridden_skill_has_its_name_alone() {
        let one = skill("one", "First");
        let budget = ListingBudget { chars: 100, description_chars: 100 };
        let usage = SkillUsageTable::default();
        assert_eq!(list_skills([(&one, Listed::NameOnly)], budget, &usage).text, "- one");
    }
}
