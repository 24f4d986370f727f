//! Grep: finding files and lines by what they contain, with ripgrep's own engine in this process.
//!
//! A search has two phases. The tree is walked and every file that may be read is noted with its time of change;
//! then the files are searched newest first, until the page that was asked for is full. Half of the time limit
//! belongs to the walk, so that a tree too big to walk still gives something.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use loci_core::tool::{CallEffects, MainArgument, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_stdx::RealDir;
use serde_json::Value;

use crate::files::walk::{self, Ending, Ignores, Limit, Walk, WalkEntry};
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

mod file_type;
mod line;
mod request;
mod search;
mod sink;
mod tally;
#[cfg(test)]
mod tests;

use request::Request;
use search::{Root, Search};
use tally::{Partial, Tally};

/// Results longer than this go to a file.
const MAX_RESULT_CHARS: usize = 20_000;
/// How many files are noted before they are searched.
const MAX_FILES: usize = 1_000_000;

/// The Grep tool.
pub(crate) struct Grep {
    descriptor: ToolDescriptor,
    n_threads: usize,
}

impl Default for Grep {
    fn default() -> Self {
        Self {
            descriptor: ToolDescriptor {
                name: "Grep".to_owned(),
                aliases: &[],
                description: include_str!("grep.md").trim_end().to_owned(),
                input_schema: request::schema(),
                max_result_chars: Some(MAX_RESULT_CHARS),
                facts: ToolFacts {
                    is_clearable: true,
                    main_argument: Some(MainArgument {
                        name: "path",
                        is_optional: true,
                        others: &[("pattern", "*")],
                    }),
                    ..ToolFacts::default()
                },
            },
            n_threads: walk::thread_count(),
        }
    }
}

impl Tool for Grep {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        CallEffects::read(request::root(input, place))
    }

    fn is_concurrency_safe(&self, _input: &Value) -> bool {
        true
    }

    fn validate(&self, input: &Value, host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        match Request::parse(input, &host.workspace()) {
            Ok(_) => Ok(()),
            Err(problem) => Err(Box::new(ToolOutcome::refusal(problem))),
        }
    }

    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a> {
        Box::pin(run(call, host, self.n_threads))
    }
}

async fn run(call: ToolCall, host: &dyn Host, n_threads: usize) -> ToolOutcome {
    let place = host.workspace();
    // The root is not resolved again: what was judged is what is searched.
    let request = call.judged_path().and_then(|root| Request::parse_at(&call.input, &place, root));
    let opened = request.and_then(|request| Ok((open_root(&request, &place)?, Arc::new(request))));
    let (root, request) = match opened {
        Ok(opened) => opened,
        Err(problem) => return ToolOutcome::refusal(problem),
    };
    let limit = Limit::start(&host.env(), call.cancel);
    let (files, walked) = match &root {
        Root::File => (one_file(&request, host), Ending::Complete),
        Root::Dir(dir) => files_below(&request, Arc::clone(dir), &limit, host).await,
    };
    let is_one_file = matches!(root, Root::File);
    let search =
        Search { request: Arc::clone(&request), limit: limit.clone(), cwd: place.cwd, root, n_threads };
    let mut tally = Tally::new(&request);
    let searched = match walked {
        Ending::Complete | Ending::OutOfTime | Ending::Full => {
            walk::drain(&limit, move |sender| search.run(files, &sender), |hits| tally.add(hits)).await
        }
        Ending::Cancelled | Ending::Failed(_) => walked.clone(),
    };
    outcome(tally, &request, is_one_file, &limit, [searched, walked])
}

/// Opens the root, or says why it cannot be searched.
fn open_root(request: &Request, place: &Workspace) -> Result<Root, String> {
    let path = request.root.requested.display();
    match request.root.real.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() || metadata.is_symlink() => {
            let opened = walk::open_root(&request.root).map(Root::Dir);
            opened.map_err(|error| walk::open_problem(&request.root, &error))
        }
        Ok(metadata) if metadata.is_file() => Ok(Root::File),
        Ok(_) => Err(format!(
            "Path is neither a file nor a directory: {path}. Pipes and devices are not searched."
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let cwd = place.cwd.display();
            Err(format!("Path does not exist: {path}. Note: your current working directory is {cwd}."))
        }
        Err(error) => Err(walk::open_problem(&request.root, &error)),
    }
}

fn one_file(request: &Request, host: &dyn Host) -> Vec<WalkEntry> {
    let found = WalkEntry { path: PathBuf::new(), modified: SystemTime::UNIX_EPOCH, target: None };
    if walk::is_hidden_by_rule(host, &request.root, &found) { Vec::new() } else { vec![found] }
}

async fn files_below(
    request: &Request,
    dir: Arc<RealDir>,
    limit: &Limit,
    host: &dyn Host,
) -> (Vec<WalkEntry>, Ending) {
    let plan = Walk {
        root: request.root.real.clone(),
        dir,
        ignores: Ignores::of(&host.env()),
        skip_hidden: false,
        max_depth: None,
        overrides: request.overrides.clone(),
        types: request.types.clone(),
        symlinked_files: false,
        accept: Box::new(|_| true),
    };
    let mut files = Vec::new();
    let ending = walk::walk(plan, &request.root, &limit.first_half(), host, |found| {
        files.push(found);
        if files.len() < MAX_FILES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .await;
    if files.len() < MAX_FILES { (files, ending) } else { (files, Ending::Full) }
}

/// Judges how the phases ended, the search first: what it lacks matters more than what the walk left out.
fn outcome(
    tally: Tally<'_>,
    request: &Request,
    is_one_file: bool,
    limit: &Limit,
    endings: [Ending; 2],
) -> ToolOutcome {
    let path = request.root.requested.display();
    let partial = match &endings {
        [Ending::Cancelled, _] | [_, Ending::Cancelled] => {
            return ToolOutcome::error("The search was interrupted.");
        }
        [Ending::Failed(problem), _] | [_, Ending::Failed(problem)] => {
            return ToolOutcome::error(format!("Failed to search `{path}`: {problem}"));
        }
        [Ending::OutOfTime, _] | [_, Ending::OutOfTime] => Some(Partial::Time(limit.seconds())),
        [Ending::Full, _] => Some(Partial::Size),
        [Ending::Complete, Ending::Full] => Some(Partial::Files),
        [Ending::Complete, Ending::Complete] => None,
    };
    match (partial, tally.first_problem()) {
        (Some(Partial::Time(seconds)), _) if tally.is_empty() => ToolOutcome::error(format!(
            "Failed to search `{path}` in {seconds} s: nothing was found up to there, which does not mean there \
             is nothing. Search a smaller directory, or fewer files with `glob` or `type`.",
        )),
        (_, Some(problem)) if is_one_file && tally.is_empty() => {
            ToolOutcome::error(format!("Failed to search `{problem}`"))
        }
        _ => tally.into_outcome(partial),
    }
}
