//! The model's questions to the user, asked one after the other, a line each.

use loci_core::user_question::{UserAnswer, UserQuestion, with_answers};
use loci_engine::{Answer, Question, QuestionKind};
use loci_stdx::visible;

/// Stands for "I answer none of this".
const DECLINED: &str = "0";

/// What a line led to.
#[derive(Debug, PartialEq)]
pub(super) enum AnswerLine {
    /// The call is answered.
    Done(Answer),
    /// There is another question.
    Next,
    /// The line answers nothing.
    Again,
}

/// Returns the questions of a call, where it is one that asks them.
pub(super) fn questions(question: &Question) -> Option<&[UserQuestion]> {
    match &question.kind {
        QuestionKind::Answers(questions) => Some(questions),
        QuestionKind::Permission | QuestionKind::PlanApproval => None,
    }
}

/// Returns one question as it is shown.
pub(super) fn text(questions: &[UserQuestion], at: usize) -> String {
    let Some(asked) = questions.get(at) else { return String::new() };
    let place = match questions.len() {
        1 => String::new(),
        n => format!(" ({} of {n})", at + 1),
    };
    let options: String = (1..).zip(&asked.options).map(|(n, option)| option_text(n, option)).collect();
    let how = match asked.multi_select {
        true => "numbers, such as 1,2, or an answer in your own words",
        false => "a number, or an answer in your own words",
    };
    format!("\n{}{place}\n{options}  {DECLINED}  do not answer\n({how})\n> ", visible(&asked.question))
}

fn option_text(n: usize, option: &loci_core::user_question::QuestionOption) -> String {
    let description = match option.description.trim() {
        "" => String::new(),
        text => format!(": {}", visible(text)),
    };
    let preview: String = option
        .preview
        .iter()
        .flat_map(|preview| preview.lines())
        .map(|line| format!("       {}\n", visible(line)))
        .collect();
    format!("  {n}  {}{description}\n{preview}", visible(&option.label))
}

/// Takes a line as the answer to the next question of a call.
pub(super) fn take_line(
    question: &Question,
    asked: &[UserQuestion],
    given: &mut Vec<UserAnswer>,
    line: &str,
) -> AnswerLine {
    let line = line.trim();
    if line == DECLINED {
        let message = "The user does not want to answer these questions.".to_owned();
        return AnswerLine::Done(Answer::Deny { message, stops: false });
    }
    let Some(answer) = asked.get(given.len()).and_then(|asked| parse_line(asked, line)) else {
        return AnswerLine::Again;
    };
    given.push(answer);
    match given.len() < asked.len() {
        true => AnswerLine::Next,
        false => {
            let input = Some(with_answers(&question.input, given));
            AnswerLine::Done(Answer::Allow { input, updates: Vec::new() })
        }
    }
}

/// Reads the answer to one question; none means that it is to be asked again.
fn parse_line(asked: &UserQuestion, line: &str) -> Option<UserAnswer> {
    if line.is_empty() {
        return None;
    }
    let words = line.split([',', ' ']).filter(|word| !word.is_empty());
    let numbers: Option<Vec<usize>> = words.map(|word| word.parse().ok()).collect();
    let Some(mut numbers) = numbers else {
        return Some(UserAnswer { other: Some(line.to_owned()), ..UserAnswer::default() });
    };
    numbers.sort_unstable();
    numbers.dedup();
    let label = |n: usize| Some(asked.options.get(n.checked_sub(1)?)?.label.clone());
    let labels: Vec<String> = numbers.into_iter().map(label).collect::<Option<_>>()?;
    let fits = labels.len() == 1 || (asked.multi_select && !labels.is_empty());
    fits.then(|| UserAnswer { labels, ..UserAnswer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loci_core::user_question::QuestionOption;

    fn asked(multi_select: bool) -> UserQuestion {
        let option = |label: &str| QuestionOption {
            label: label.to_owned(),
            description: "what it is".to_owned(),
            preview: None,
        };
        UserQuestion {
            question: "Which?".to_owned(),
            header: "Which".to_owned(),
            options: vec![option("One"), option("Two\u{1b}[2J")],
            multi_select,
        }
    }

    #[test]
    fn lines_are_numbers_of_options_or_an_answer_in_ones_own_words() {
        let said = |multi, line| {
            parse_line(&asked(multi), line).map(|it| (it.labels.len(), it.other.unwrap_or_default()))
        };
        for (multi, line, expected) in [
            (false, "1", Some((1, ""))),
            (false, "1,2", None),
            (false, "3", None),
            (false, "", None),
            (false, "neither of them", Some((0, "neither of them"))),
            (true, "2, 1", Some((2, ""))),
            (true, "1 1", Some((1, ""))),
            (true, "1 and 2", Some((0, "1 and 2"))),
        ] {
            let expected = expected.map(|(n, text): (usize, &str)| (n, text.to_owned()));
            assert_eq!(said(multi, line), expected, "{line}");
        }
    }

    #[test]
    fn questions_are_shown_with_hidden_characters_made_visible() {
        let shown = text(&[asked(false), asked(true)], 1);
        assert!(
            shown.contains("Which? (2 of 2)") && shown.contains(r"2  Two\u{1b}[2J: what it is"),
            "{shown}"
        );
    }
}
