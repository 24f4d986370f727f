//! Which commands fit what is typed behind `/`.
//!
//! A name fits if what is typed begins it, or one of its words, whatever the case and without regard to `:`, `_` and `-`;
//! so does an alias. Names that are only near (a letter wrong or missing) are listed, but none is chosen for the person:
//! Enter sends what was typed.

/// A command as the menu knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandItem {
    /// Its name, without `/`.
    pub name: String,
    /// Other names.
    pub aliases: Vec<String>,
    /// What it does.
    pub description: String,
    /// What its arguments are.
    pub argument_hint: String,
    /// Only shown once its name is typed whole.
    pub is_hidden: bool,
    /// Other skills may follow it.
    pub is_skill: bool,
}

/// The commands that fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandMatches {
    /// Their places in the list that was searched, the best first.
    pub places: Vec<usize>,
    /// The best one fits so well that Enter may run it.
    pub is_sure: bool,
}

/// How well a name fits, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Whole,
    Beginning,
    Word,
    Near,
}

/// Finds the commands that fit what is typed.
pub fn match_commands(items: &[CommandItem], typed: &str) -> CommandMatches {
    let folded = fold(typed);
    let mut found: Vec<((Fit, bool), usize)> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        if item.is_hidden && !item.name.eq_ignore_ascii_case(typed) {
            continue;
        }
        let of_name = fit(&item.name, &folded).map(|fit| (fit, false));
        let of_aliases = item.aliases.iter().filter_map(|alias| fit(alias, &folded)).map(|fit| (fit, true));
        found.extend(of_name.into_iter().chain(of_aliases).min().map(|best| (best, place)));
    }
    // Whoever types a separator means a name that has it there: `mcp__` is no `mcp`.
    let is_exact = |name: &str| {
        typed.contains(is_separator)
            && name.get(..typed.len()).is_some_and(|it| it.eq_ignore_ascii_case(typed))
    };
    // Sorting keeps the order of the list among equals.
    found.sort_by_key(|(best, place)| {
        let name = &items[*place].name;
        (!is_exact(name), *best, if typed.is_empty() { 0 } else { name.len() })
    });
    let is_sure = found.first().is_some_and(|((fit, _), _)| *fit != Fit::Near);
    if is_sure {
        found.retain(|((fit, _), _)| *fit != Fit::Near);
    }
    CommandMatches { places: found.into_iter().map(|(_, place)| place).collect(), is_sure }
}

fn fit(name: &str, folded: &str) -> Option<Fit> {
    let whole = fold(name);
    if whole == *folded {
        return Some(Fit::Whole);
    }
    if whole.starts_with(folded) {
        return Some(Fit::Beginning);
    }
    let mut words = name.match_indices(is_separator).map(|(at, _)| fold(&name[at..]));
    if words.any(|rest| rest.starts_with(folded)) {
        return Some(Fit::Word);
    }
    is_near(&whole, folded).then_some(Fit::Near)
}

/// Small letters without separators.
fn fold(text: &str) -> String {
    text.chars().filter(|char| !is_separator(*char)).flat_map(char::to_lowercase).collect()
}

fn is_separator(char: char) -> bool {
    matches!(char, ':' | '_' | '-')
}

/// Tells whether a name, or its beginning, is a slip of the finger away: one letter in three may be wrong, two at most.
fn is_near(name: &str, typed: &str) -> bool {
    let (name, typed): (Vec<char>, Vec<char>) = (name.chars().collect(), typed.chars().collect());
    let allowed = (typed.len() / 3).min(2);
    if allowed == 0 {
        return false;
    }
    // The distance of what is typed to each beginning of the name.
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (at, char) in typed.iter().enumerate() {
        let earlier = std::mem::replace(&mut before, row);
        row = vec![at + 1];
        for (column, other) in name.iter().enumerate() {
            let mut cost = (before[column] + usize::from(char != other))
                .min(before[column + 1] + 1)
                .min(row[column] + 1);
            let is_swap = at > 0 && column > 0 && typed[at - 1] == *other && name[column - 1] == *char;
            if is_swap {
                cost = cost.min(earlier[column - 1] + 1);
            }
            row.push(cost);
        }
    }
    row.iter().any(|distance| *distance <= allowed)
}
