//! Glob: finding files by the shape of their path.
//!
//! Paths are shown relative to the working directory when they lie inside it and absolute otherwise, in the
//! text and in the structured result alike.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ignore::overrides::Override;
use ignore::types::Types;
use loci_core::tool::{CallEffects, MainArgument, PathEffect, ToolDescriptor, ToolFacts, ToolOutcome};
use loci_stdx::{Env, RealDir};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files::walk::{self, Ending, Ignores, Limit, Walk, WalkEntry};
use crate::spill::with_notes;
use crate::{Host, Tool, ToolCall, ToolFuture, Workspace};

mod pattern;
#[cfg(test)]
mod tests;

use pattern::Pattern;

/// How many files are shown.
const MAX_FILES: usize = 100;

/// The Glob tool.
pub(crate) struct Glob {
    descriptor: ToolDescriptor,
}

impl Default for Glob {
    fn default() -> Self {
        Self {
            descriptor: ToolDescriptor {
                name: "Glob".to_owned(),
                aliases: &[],
                description: include_str!("glob.md").trim_end().to_owned(),
                input_schema: json!({
                    "type": "object",
                    "properties": {
                        "pattern": {
                            "type": "string",
                            "description": "Which files to list, such as `**/*.test.ts` or `src/*.{c,h}`",
                        },
                        "path": {
                            "type": "string",
                            "description": "The directory to search in; the working directory when left out",
                        },
                    },
                    "required": ["pattern"],
                    "additionalProperties": false,
                }),
                max_result_chars: None,
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
        }
    }
}

#[derive(Deserialize)]
struct Input {
    pattern: String,
    path: Option<String>,
}

/// An input that makes sense.
struct Request {
    pattern: Pattern,
    /// The directory asked for, absolute.
    base: PathEffect,
    /// Where the walk starts: the directory asked for and the literal prefix of the pattern.
    root: PathEffect,
}

impl Request {
    fn parse(input: &Value, place: &Workspace) -> Result<Self, String> {
        let input = Input::deserialize(input).map_err(|error| error.to_string())?;
        let path = input.path.filter(|path| !path.is_empty()).unwrap_or_default();
        if path.contains('\0') {
            return Err("`path` contains a NUL byte, which no path can".to_owned());
        }
        let pattern = Pattern::parse(&input.pattern)?;
        let base = place.resolve(&path);
        let root = Workspace { cwd: base.requested.clone(), ..place.clone() }.resolve(&pattern.prefix);
        Ok(Self { pattern, base, root })
    }
}

impl Tool for Glob {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects {
        match Request::parse(input, place) {
            Ok(request) => CallEffects::read(request.root),
            Err(problem) => CallEffects { unknown: vec![problem], ..CallEffects::default() },
        }
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
        Box::pin(run(call, host))
    }
}

async fn run(call: ToolCall, host: &dyn Host) -> ToolOutcome {
    let place = host.workspace();
    let request = match Request::parse(&call.input, &place) {
        Ok(request) => request,
        Err(problem) => return ToolOutcome::refusal(problem),
    };
    if let Err(problem) = check_directory(&request.base, &place) {
        return ToolOutcome::refusal(problem);
    }
    // Not resolved again: what was judged is what is searched.
    let root = match call.judged_path() {
        Ok(root) => root,
        Err(problem) => return ToolOutcome::refusal(problem),
    };
    let limit = Limit::start(&host.env(), call.cancel);
    let dir = match walk::open_root(&root) {
        Ok(dir) => dir,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return outcome(Newest::default(), &root, &place.cwd, &limit, Completeness::Whole);
        }
        Err(error) => return ToolOutcome::refusal(walk::open_problem(&root, &error)),
    };
    let pattern = request.pattern;
    let mut newest = Newest::default();
    let ending = walk::walk(plan(pattern, &root, dir, &host.env()), &root, &limit, host, |found| {
        newest.push(found);
        ControlFlow::Continue(())
    })
    .await;
    match ending {
        Ending::Complete | Ending::Full => outcome(newest, &root, &place.cwd, &limit, Completeness::Whole),
        Ending::OutOfTime if newest.total > 0 => {
            outcome(newest, &root, &place.cwd, &limit, Completeness::Partial)
        }
        Ending::OutOfTime => ToolOutcome::error(format!(
            "Failed to search `{}` in {} s: nothing was found up to there, which does not mean there is nothing. \
             Search a smaller directory.",
            root.requested.display(),
            limit.seconds(),
        )),
        Ending::Cancelled => ToolOutcome::error("The search was interrupted."),
        Ending::Failed(problem) => {
            ToolOutcome::error(format!("Failed to search `{}`: {problem}", root.requested.display()))
        }
    }
}

fn check_directory(base: &PathEffect, place: &Workspace) -> Result<(), String> {
    let (path, cwd) = (base.requested.display(), place.cwd.display());
    match base.real.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => {
            Err(format!("Path is not a directory: {path}. Give its directory and put the name in `pattern`."))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("Directory does not exist: {path}. Note: your current working directory is {cwd}."))
        }
        Err(error) => Err(format!("Failed to open directory: {path}: {error}")),
    }
}

fn plan(pattern: Pattern, root: &PathEffect, dir: Arc<RealDir>, env: &Env) -> Walk {
    let is_off = |name: &str| env.vars.non_empty(name).is_some() && !env.vars.is_truthy(name);
    Walk {
        root: root.real.clone(),
        dir,
        ignores: if is_off("CLAUDE_CODE_GLOB_NO_IGNORE") { Ignores::of(env) } else { Ignores::Nothing },
        skip_hidden: is_off("CLAUDE_CODE_GLOB_HIDDEN"),
        max_depth: pattern.max_depth,
        overrides: Override::empty(),
        types: Types::empty(),
        symlinked_files: true,
        accept: Box::new(move |path| pattern.matches(path)),
    }
}

/// The newest files of all that were found; the others are only counted.
#[derive(Default)]
struct Newest {
    files: Vec<WalkEntry>,
    total: usize,
}

impl Newest {
    fn push(&mut self, found: WalkEntry) {
        self.files.push(found);
        self.total += 1;
        if self.files.len() >= 2 * MAX_FILES {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.files.sort_by(WalkEntry::cmp_newest);
        self.files.truncate(MAX_FILES);
    }
}

/// Whether the whole tree was seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Whole,
    Partial,
}

fn outcome(
    mut newest: Newest,
    root: &PathEffect,
    cwd: &Path,
    limit: &Limit,
    completeness: Completeness,
) -> ToolOutcome {
    newest.cut();
    let filenames: Vec<String> =
        newest.files.iter().map(|found| walk::display_below(cwd, root, &found.path)).collect();
    let body = if filenames.is_empty() { "No files found".to_owned() } else { filenames.join("\n") };
    let mut notes = Vec::new();
    if newest.total > filenames.len() {
        notes.push(format!(
            "(Showing the newest {} of {} files. Use a narrower pattern or directory to see others.)",
            filenames.len(),
            newest.total,
        ));
    }
    if completeness == Completeness::Partial {
        notes.push(format!(
            "(Partial result: the search stopped at its limit of {} s, so there may be more.)",
            limit.seconds(),
        ));
    }
    let structured = json!({
        "filenames": filenames,
        "durationMs": u64::try_from(limit.elapsed().as_millis()).unwrap_or(u64::MAX),
        "numFiles": filenames.len(),
        "truncated": newest.total > filenames.len() || completeness == Completeness::Partial,
        "totalMatches": newest.total,
        "countIsComplete": completeness == Completeness::Whole,
    });
    ToolOutcome::text(with_notes(body, notes), structured)
}
