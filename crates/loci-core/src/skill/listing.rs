//! What the model is told of the skills there are, within a budget.
//!
//! Each has a line with its name and what it is for. Where all of that is too long, descriptions go, those of the skills
//! that come last first; names stay, so that none is hidden.

use std::borrow::Cow;

use super::SkillDefinition;

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

/// Makes a listing, in the order given.
pub fn list_skills<'a>(
    skills: impl IntoIterator<Item = (&'a SkillDefinition, Listed)>,
    budget: ListingBudget,
) -> SkillListing {
    let skills: Vec<_> = skills.into_iter().collect();
    let names_take: usize = skills.iter().map(|(skill, _)| skill.name.chars().count() + NAME_TAKES).sum();
    let mut room = budget.chars.saturating_sub(names_take);
    let mut listing = SkillListing { names: Vec::with_capacity(skills.len()), ..SkillListing::default() };
    for (skill, listed) in skills {
        if !listing.text.is_empty() {
            listing.text.push('\n');
        }
        listing.text.push_str("- ");
        listing.text.push_str(&skill.name);
        listing.names.push(skill.name.clone());
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
                listing.text.push_str(": ");
                listing.text.push_str(&description);
            }
            false => {
                room = 0;
                listing.n_without_description += 1;
            }
        }
    }
    listing
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
    use crate::skill::{SkillSource, parse_skill};

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
        let listing = list_skills(listed, ListingBudget { chars, description_chars });
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
        assert_eq!(list_skills([(&one, Listed::NameOnly)], budget).text, "- one");
    }
}
