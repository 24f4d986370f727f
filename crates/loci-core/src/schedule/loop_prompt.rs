//! `/loop`: whether what was typed names an interval, or lets the loop set its own pace.

/// Tells whether a prompt is a loop that sets its own pace: `/loop` without an interval.
pub fn is_self_paced_loop(prompt: &str) -> bool {
    let Some(rest) = prompt.trim().strip_prefix("/loop") else { return false };
    (rest.is_empty() || rest.starts_with(char::is_whitespace)) && !has_interval(rest)
}

/// Looks for `5m` at the beginning, or `every 20 minutes` at the end.
fn has_interval(arguments: &str) -> bool {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let leads = words.first().is_some_and(|word| is_short_interval(word));
    let trails = match words.as_slice() {
        [.., every, unit] if is_every(every) => is_unit(unit) || is_short_interval(unit),
        [.., every, number, unit] if is_every(every) => number.parse::<u32>().is_ok() && is_unit(unit),
        _ => false,
    };
    leads || trails
}

fn is_every(word: &str) -> bool {
    word.eq_ignore_ascii_case("every")
}

fn is_short_interval(word: &str) -> bool {
    let number = word.strip_suffix(['s', 'm', 'h', 'd']);
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_unit(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let one = word.strip_suffix('s').unwrap_or(&word);
    matches!(one, "second" | "sec" | "minute" | "min" | "hour" | "hr" | "day")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_without_an_interval_sets_its_own_pace() {
        for (prompt, expected) in [
            ("/loop", true),
            ("/loop check the deploy", true),
            ("  /loop /review-pr 12\n", true),
            ("/loop tell me every problem", true),
            ("/loop say m", true),
            ("/loop 5m", false),
            ("/loop 30s check", false),
            ("/loop check the deploy every 2 hours", false),
            ("/loop check every minute", false),
            ("/loop check every 5m", false),
            ("/looping", false),
            ("loop", false),
            ("do /loop", false),
        ] {
            assert_eq!(is_self_paced_loop(prompt), expected, "{prompt}");
        }
    }
}
