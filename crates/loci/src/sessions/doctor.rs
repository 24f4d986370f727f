//! `loci sessions doctor`: what is wrong with the sessions on disk, and mending it.

use loci_app::UserError;
use loci_stdx::{LockError, counted};
use loci_storage::doctor::{DoctorError, Finding, RepairOutcome, StoreReport, check_store, repair_store};
use serde_json::{Value, json};

use super::{SessionsContext, format, output};

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
    let check = if args.repair { repair_store } else { check_store };
    let check_up = check(&ctx.home, ctx.env).map_err(|error| {
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
    let mut text: String = check_up.findings.iter().map(|finding| paragraph(ctx, finding)).collect();
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

fn paragraph(ctx: &SessionsContext<'_>, finding: &Finding) -> String {
    let file = format::plain(&format::path(&ctx.env.home, &finding.file.to_string_lossy()));
    let place = finding.offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default();
    let last = match &finding.outcome {
        RepairOutcome::Found => format!("repair: {}", finding.remedy),
        RepairOutcome::Mended(said) => format!("mended: {said}"),
        RepairOutcome::Left(why) => format!("not mended: {why}"),
    };
    let (meaning, last) = (format::plain(&finding.meaning), format::plain(&last));
    format!("{}  {file}{place}\n  {meaning}\n  {last}\n\n", finding.kind)
}
