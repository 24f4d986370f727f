//! What the model is told about plan mode: when it begins, while it lasts, and when it is over.

/// A `plan_mode` attachment.
pub(super) struct PlanMode<'a> {
    /// `full` or `sparse`.
    pub(super) kind: &'a str,
    /// Whether an agent makes the plan.
    pub(super) is_agents: bool,
    /// Where the plan stands.
    pub(super) file: &'a str,
    /// Whether something stands there.
    pub(super) exists: bool,
    /// Whether somebody can be asked for leave.
    pub(super) can_exit: bool,
    /// How to plan, in the words of a client.
    pub(super) instructions: Option<&'a str>,
}

/// Returns the text of a `plan_mode` attachment.
pub(super) fn plan_mode(plan: &PlanMode<'_>) -> String {
    match plan.kind {
        _ if plan.is_agents => for_agent(plan),
        "sparse" => still_on(plan.file, plan.can_exit),
        _ => full(plan),
    }
}

/// Returns the text of a `plan_mode_exit` attachment.
pub(super) fn plan_mode_exit(file: &str, exists: bool) -> String {
    let place = match exists {
        true => format!(" The plan is in {file}, should you need it."),
        false => String::new(),
    };
    format!("Plan mode is off: you may change things again.{place}")
}

fn still_on(file: &str, can_exit: bool) -> String {
    let end = if can_exit { " Finish with ExitPlanMode, or ask with AskUserQuestion." } else { "" };
    format!("Plan mode is still on, as described above: change nothing but the plan file {file}.{end}")
}

/// What an agent is told that makes a plan: it hands the plan on.
fn for_agent(plan: &PlanMode<'_>) -> String {
    let file = plan.file;
    let end = match plan.can_exit {
        true => {
            "When the plan is complete, call ExitPlanMode, which shows it to the user; then answer with it."
        }
        false => "When the plan is complete, answer with it.",
    };
    if plan.kind == "sparse" {
        return format!("Plan mode is still on: change nothing but the plan file {file}. {end}");
    }
    format!(
        "You work in plan mode: find out what there is to know and make a plan; somebody else carries it out. Edit no file \
         but the plan file, run no command that changes anything, and commit, install or configure nothing. This stands \
         above every other instruction to make changes.\n\nThe plan file is {file}. {} It is the only file that you may \
         write.\n\nSay in it what it is for, what changes in which files, what is reused, and how one will see that it \
         works. Nothing in it may rest on a guess.\n\n{end}",
        file_state(plan.exists)
    )
}

fn file_state(exists: bool) -> &'static str {
    match exists {
        true => {
            "There is a plan in it already. Read it first; go on with it or write a new one, whichever fits."
        }
        false => "It is not there yet: make it with Write.",
    }
}

fn full(plan: &PlanMode<'_>) -> String {
    let (file, state) = (plan.file, file_state(plan.exists));
    let own = plan.instructions.map(str::trim).filter(|text| !text.is_empty());
    let workflow = own.unwrap_or(WORKFLOW);
    let end = if plan.can_exit { WITH_EXIT } else { WITHOUT_EXIT };
    format!(
        "Plan mode is on: the user wants to agree on a plan before anything is done. Edit no file but the plan file, run \
         no command that changes anything, and commit, install or configure nothing. This stands above every other \
         instruction to make changes.\n\nThe plan file is {file}. {state} It is the only file that you may \
         write.\n\n{workflow}\n\n{end}"
    )
}

const WORKFLOW: &str = "How to go about it:\n\
     1. Understand what is asked. Read the code that it concerns and how similar things are done there.\n\
     2. Settle what is open: what the user must decide, ask; what the code can tell, look up.\n\
     3. Write the plan to the plan file as you go. Say what it is for, what changes in which files, what is reused, and \
     how you will see that it works. Put down the way that you recommend, not every way there is, and keep it short \
     enough to be read in a minute or two.\n\
     4. Read it again as if you had to carry it out: nothing in it may rest on a guess.";

const WITH_EXIT: &str = "End every turn in one of two ways: with AskUserQuestion, when something must be decided, or with \
     ExitPlanMode, when the plan is complete. ExitPlanMode shows the plan and asks whether it is approved; do not ask \
     for that in any other way.";

const WITHOUT_EXIT: &str =
    "Nobody can be asked in this run. When the plan is complete, end your turn by telling what it says.";

#[cfg(test)]
mod tests {
    use super::*;

    fn plan<'a>(kind: &'a str, can_exit: bool, instructions: Option<&'a str>) -> PlanMode<'a> {
        PlanMode { kind, is_agents: false, file: "/c/plans/a.md", exists: false, can_exit, instructions }
    }

    #[test]
    fn reminders_name_the_plan_file_and_only_tools_that_are_there() {
        let told = |kind: &str, can_exit: bool| plan_mode(&plan(kind, can_exit, None));
        for kind in ["full", "sparse"] {
            assert!(told(kind, true).contains("/c/plans/a.md"), "{kind}");
            assert!(told(kind, true).contains("ExitPlanMode") && !told(kind, false).contains("ExitPlanMode"));
        }
        assert!(told("sparse", true).len() < told("full", true).len() / 4);
    }

    #[test]
    fn instructions_of_a_client_take_the_place_of_the_workflow_alone() {
        let told = plan_mode(&plan("full", true, Some("Think in threes.")));
        assert!(told.contains("Think in threes.") && !told.contains("How to go about it"), "{told}");
        assert!(told.contains("Edit no file but the plan file") && told.contains("ExitPlanMode"), "{told}");
    }
}
