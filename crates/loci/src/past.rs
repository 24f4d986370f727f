//! What a run continues: nothing, the newest session here, or the one that was named.

use loci_core::conversation::Conversation;
use loci_core::ids::SessionId;
use loci_engine::Past;
use loci_stdx::Env;
use loci_storage::{ConfigHome, FindError, Lease, LeaseError, SessionPlace, load, newest_here, resolve};

use crate::args::Args;
use crate::complaint::Complaint;

/// A session that begins or goes on.
pub(crate) struct Start {
    /// Its id and file.
    pub(crate) place: SessionPlace,
    /// What came before.
    pub(crate) past: Past,
    /// The model it used last.
    pub(crate) model: Option<String>,
    /// What the user should know about the file.
    pub(crate) notes: Vec<String>,
    /// The right to write it, unless nothing is written.
    pub(crate) lease: Option<Lease>,
}

/// Finds what the arguments ask for.
pub(crate) fn find(env: &Env, home: &ConfigHome, args: &Args) -> Result<Start, Complaint> {
    let place = match (&args.resume, args.continue_newest) {
        (Some(name), _) => Some(resolve(home, &env.cwd, name).map_err(|error| complain(&error))?),
        (None, true) => match newest_here(home, &env.cwd) {
            Ok(place) => Some(place),
            Err(FindError::NoneHere { .. }) => None,
            Err(error) => return Err(complain(&error)),
        },
        (None, false) => None,
    };
    match place {
        // The lease comes first: what is loaded must not grow behind our back.
        Some(place) => {
            let lease = lease(env, home, args, place.id())?;
            Ok(Start { lease, ..open(place)? })
        }
        None => {
            let start = begin(env, home, args)?;
            Ok(Start { lease: lease(env, home, args, start.place.id())?, ..start })
        }
    }
}

/// Asks for the right to write a session; a config home that cannot be written is no obstacle, since the session
/// cannot be written either and says so.
fn lease(env: &Env, home: &ConfigHome, args: &Args, id: &SessionId) -> Result<Option<Lease>, Complaint> {
    if args.no_session_persistence {
        return Ok(None);
    }
    let lease = match args.take_over {
        true => Lease::take_over(home, id, env),
        false => Lease::acquire(home, id, env),
    };
    match lease {
        Ok(lease) => Ok(Some(lease)),
        Err(LeaseError::Lock { .. }) => Ok(None),
        Err(error @ LeaseError::Held { .. }) => Err(Complaint::from_error(&error).hint(
            "Wait for it to end, continue a copy with --fork-session, read along with `loci sessions show`, or take \
             it over with --take-over.",
        )),
    }
}

fn begin(env: &Env, home: &ConfigHome, args: &Args) -> Result<Start, Complaint> {
    let id = match &args.session_id {
        Some(text) => SessionId::parse(text).map_err(|error| Complaint::from_error(&error))?,
        None => SessionId::parse(&env.random.uuid_v4().to_string())
            .map_err(|error| Complaint::from_error(&error))?,
    };
    let place = home.session(&env.cwd, &id);
    if args.session_id.is_some() && place.file().exists() {
        return Err(Complaint::new(format!("Session ID {id} is already in use"))
            .hint(format!("Continue it with `loci -r {id}`, or choose another id.")));
    }
    Ok(Start { place, past: Past::default(), model: None, notes: Vec::new(), lease: None })
}

fn open(place: SessionPlace) -> Result<Start, Complaint> {
    let loaded = load(place.file()).map_err(|error| Complaint::from_error(&error))?;
    let notes = match loaded.skipped.first() {
        Some(first) => vec![format!(
            "{} of `{}` could not be read and was skipped, first at byte {}; nothing was removed",
            match loaded.skipped.len() {
                1 => "One line".to_owned(),
                n => format!("{n} lines"),
            },
            place.file().display(),
            first.offset
        )],
        None => Vec::new(),
    };
    let conversation = Conversation::build(loaded.entries);
    let past = Past {
        leaf: conversation.leaf().cloned(),
        repairs: conversation.repairs().to_vec(),
        path: conversation.path().to_vec(),
    };
    Ok(Start { model: conversation.last_model().map(str::to_owned), place, past, notes, lease: None })
}

fn complain(error: &FindError) -> Complaint {
    let complaint = Complaint::from_error(error);
    match error.hint() {
        Some(hint) => complaint.hint(hint),
        None => complaint,
    }
}
