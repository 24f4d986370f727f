//! `loci sessions doctor`: what is wrong with the sessions on disk, and mending it.

use loci_app::UserError;
use loci_stdx::{LockError, counted};
use loci_storage::doctor::{
    DoctorError, Finding, RepairOutcome, StoreReport, check_store_observed, repair_store_observed,
};
use serde_json::{Value, json};

use super::{SessionsContext, format, output};
use crate::progress_bar::{ProgressBar, ProgressUnit};

/// How many places of one kind of finding people are shown.
const MOST_PLACES: usize = 3;

/// The arguments of `loci sessions doctor`.
#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Mend what can be mended; originals are kept under loci/aside in the config home.
    #[arg(long)]
    repair: bool,

    /// Print a JSON object.
    #[arg(long)]
    json: bool,
}

/// Examines or mends all sessions; the exit code is 1 while something is wrong.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &DoctorArgs) -> Result<u8, UserError> {
    let bar = ProgressBar::new("Checking sessions", ProgressUnit::Sessions);
    let progress = |n_done, n_total| bar.set(n_done, n_total);
    let checked = match args.repair {
        true => repair_store_observed(&ctx.home, ctx.env, &progress),
        false => check_store_observed(&ctx.home, ctx.env, &progress),
    };
    bar.finish();
    let check_up = checked.map_err(|error| {
        let user_error = UserError::from_error(&error);
        match error {
            DoctorError::Lock(LockError::Timeout { .. }) => {
                user_error.hint("Another repair is under way; wait for its end.")
            }
            DoctorError::Lock(_) => user_error.hint("See to it that you may write there."),
            DoctorError::Find(_) => user_error.hint("See to it that you may read it."),
        }
    })?;
    if args.json {
        output::print_json(&to_json(&check_up))?;
    } else {
        output::print(&to_text(ctx, &check_up, args.repair))?;
    }
    Ok(u8::from(check_up.n_open() > 0))
}

fn to_json(check_up: &StoreReport) -> Value {
    let finding = |it: &Finding| {
        let (state, said) = match &it.outcome {
            RepairOutcome::Found => ("found", None),
            RepairOutcome::Mended(said) => ("mended", Some(said)),
            RepairOutcome::Left(why) => ("left", Some(why)),
        };
        json!({
            "kind": it.kind.name(),
            "sessionId": it.session.as_ref().map(|id| id.as_str()),
            "file": it.file,
            "offset": it.offset,
            "meaning": it.meaning,
            "remedy": it.remedy,
            "state": state,
            "said": said,
        })
    };
    json!({
        "sessions": check_up.n_sessions,
        "findings": check_up.findings.iter().map(finding).collect::<Vec<_>>(),
        "isWrong": check_up.n_open() > 0,
    })
}

fn to_text(ctx: &SessionsContext<'_>, check_up: &StoreReport, is_repair: bool) -> String {
    let groups = grouped(&check_up.findings);
    let mut text: String = groups.iter().map(|group| paragraph(ctx, group)).collect();
    let n_sessions = counted(check_up.n_sessions as u64, "session", "sessions");
    let n_findings = counted(check_up.findings.len() as u64, "finding", "findings");
    text.push_str(&match (check_up.findings.len(), check_up.n_open()) {
        (0, _) => format!("{n_sessions}, nothing is wrong\n"),
        (_, 0) => format!("{n_sessions}, {n_findings}, all mended\n"),
        (_, n) if is_repair => format!("{n_sessions}, {n_findings}, {n} of them not mended\n"),
        _ => {
            format!("{n_sessions}, {n_findings}: `loci sessions doctor --repair` mends what can be mended\n")
        }
    });
    text
}

/// Puts findings together that are of one kind and have come to the same, in the order of the first of each.
fn grouped(findings: &[Finding]) -> Vec<Vec<&Finding>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let is_alike = |first: &&Finding| first.kind == finding.kind && outcome(first) == outcome(finding);
        match groups.iter_mut().find(|group| group.first().is_some_and(is_alike)) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

fn outcome(finding: &Finding) -> String {
    match &finding.outcome {
        RepairOutcome::Found => format!("repair: {}", finding.remedy),
        RepairOutcome::Mended(said) => format!("mended: {said}"),
        RepairOutcome::Left(why) => format!("not mended: {why}"),
    }
}

/// Describes what was found once, with the first few places.
fn paragraph(ctx: &SessionsContext<'_>, group: &[&Finding]) -> String {
    let place = |finding: &&Finding| {
        let file = format::plain(&format::path(&ctx.env.home, &finding.file.to_string_lossy()));
        let at = finding.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
        format!("{file}{at}")
    };
    let Some((first, others)) = group.split_first() else { return String::new() };
    let mut text = format!("{}  {}\n", first.kind, place(first));
    for other in others.iter().take(MOST_PLACES - 1) {
        text.push_str(&format!("{}  {}\n", " ".repeat(first.kind.name().len()), place(other)));
    }
    let n_more = group.len().saturating_sub(MOST_PLACES) as u64;
    if n_more > 0 {
        let more = counted(n_more, "more place", "more places");
        text.push_str(&format!("{}  and {more} (--json has all)\n", " ".repeat(first.kind.name().len())));
    }
    let (meaning, last) = (format::plain(&first.meaning), format::plain(&outcome(first)));
    let is_same = others.iter().all(|other| other.meaning == first.meaning);
    let example = if is_same { "" } else { "the first: " };
    format!("{text}  {example}{meaning}\n  {last}\n\n")
}

#[cfg(test)]
mod tests {
    use loci_storage::doctor::FindingKind;

    use super::*;

    fn finding(kind: FindingKind, remedy: &str) -> Finding {
        Finding {
            kind,
            session: None,
            file: "/f".into(),
            offset: Some(1),
            meaning: "m".to_owned(),
            remedy: remedy.to_owned(),
            outcome: RepairOutcome::Found,
        }
    }

    #[test]
    fn findings_of_one_kind_and_remedy_are_one_group() {
        use FindingKind::{BrokenLine, StaleLease};
        let findings = [
            finding(BrokenLine, "cut"),
            finding(StaleLease, "remove"),
            finding(BrokenLine, "cut"),
            finding(BrokenLine, "keep"),
        ];
        let groups = grouped(&findings);
        let remedies =
            |group: &Vec<&Finding>| group.iter().map(|it| it.remedy.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(groups.iter().map(remedies).collect::<Vec<_>>(), ["cut cut", "remove", "keep"]);
    }
}
