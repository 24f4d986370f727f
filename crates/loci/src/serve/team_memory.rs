//! `loci serve team-memory`: the server of a team's memories, and its members.
//!
//! It is part of the program only when it was built with the feature `team-server`.

use std::net::SocketAddr;

use loci_app::UserError;
use loci_stdx::Env;

#[derive(Debug, clap::Args)]
pub(super) struct TeamMemoryArgs {
    /// Where to listen. There is no TLS here: leave it on this machine and put a proxy with TLS before it.
    #[arg(long, default_value = "127.0.0.1:7878", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// A SQLite file, or `postgres://...`; without it the variable `LOCI_TEAM_DATABASE`, else `loci/team-memory.db` in the
    /// config home.
    #[arg(long, global = true, value_name = "FILE|ADDRESS")]
    database: Option<String>,
    /// How many requests a member may make in a minute.
    #[arg(long, default_value_t = 1_200, value_name = "N")]
    requests_per_minute: u32,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Let somebody use a repository; prints their token, which is shown this once.
    AddMember(MemberArgs),
    /// Have somebody's token count no longer.
    RemoveMember(MemberArgs),
    /// Print who did what.
    Audit,
    /// Copy everything from one database to another that is empty; the old one stays as it is.
    Move(MoveArgs),
}

#[derive(Debug, clap::Args)]
struct MemberArgs {
    /// Their name.
    name: String,
    /// The repository.
    #[arg(long)]
    repository: String,
}

#[derive(Debug, clap::Args)]
struct MoveArgs {
    /// The database that holds the team's memories; without it the one that `--database` or the variable names.
    #[arg(long, value_name = "FILE|ADDRESS")]
    from: Option<String>,
    /// The database that is to hold them; without it the one that `--database` or the variable names.
    #[arg(long, value_name = "FILE|ADDRESS")]
    to: Option<String>,
}

#[cfg(not(feature = "team-server"))]
pub(super) fn run(_: &Env, _: &TeamMemoryArgs) -> Result<u8, UserError> {
    Err(UserError::new("The server of a team's memories is not part of this build")
        .hint("Build it in: `cargo build --release -p loci --features team-server`."))
}

#[cfg(feature = "team-server")]
pub(super) use built_in::run;

#[cfg(feature = "team-server")]
mod built_in {
    use std::sync::Arc;

    use loci_stdx::{SystemClock, rfc3339_millis, single_line};
    use loci_storage::layout::ConfigHome;
    use loci_team::{Database, Limits, RepositoryName, Server, StoreError};
    use tokio::signal::unix::{SignalKind, signal};

    use super::*;
    use crate::runtime;

    /// The variable that names the database, because a command line with a password in it can be read by others.
    const DATABASE: &str = "LOCI_TEAM_DATABASE";

    pub(in super::super) fn run(env: &Env, args: &TeamMemoryArgs) -> Result<u8, UserError> {
        let runtime = runtime::of_server()?;
        runtime.block_on(run_verb(env, args))
    }

    async fn run_verb(env: &Env, args: &TeamMemoryArgs) -> Result<u8, UserError> {
        if let Some(Verb::Move(ends)) = &args.verb {
            return move_all(env, args, ends).await;
        }
        if let Some(Verb::RemoveMember(_) | Verb::Audit) = &args.verb {
            check_there(env, args.database.as_deref())?;
        }
        let database = open(env, args.database.as_deref()).await.map_err(|error| explain(&error))?;
        let now = rfc3339_millis(env.clock.now());
        match &args.verb {
            None => serve(args, database).await?,
            Some(Verb::AddMember(member)) => {
                let token = new_token(env);
                let added = database.add_member(&member.name, &repository(member)?, &token, &now).await;
                added.map_err(|error| explain(&error))?;
                crate::config::write(&format!("{token}\n"))?;
            }
            Some(Verb::RemoveMember(member)) => {
                let removed = database.remove_member(&member.name, &repository(member)?, &now).await;
                if !removed.map_err(|error| explain(&error))? {
                    return Err(UserError::new(format!("There is no such member: `{}`", member.name)));
                }
            }
            Some(Verb::Audit) => {
                let log = database.audit_log().await.map_err(|error| explain(&error))?;
                crate::config::write(&log.iter().map(audit_line).collect::<String>())?;
            }
            Some(Verb::Move(_)) => {}
        }
        Ok(0)
    }

    /// Copies everything, and tells what that was.
    async fn move_all(env: &Env, args: &TeamMemoryArgs, ends: &MoveArgs) -> Result<u8, UserError> {
        let usual = args.database.as_deref();
        if ends.from.is_none() && ends.to.is_none() {
            return Err(UserError::new("Neither `--from` nor `--to` is given")
                .hint("The one that is left out is the database that `--database` or the variable names."));
        }
        let from = ends.from.as_deref().or(usual);
        check_there(env, from)?;
        let source = open(env, from).await.map_err(|error| explain(&error))?;
        let target = open(env, ends.to.as_deref().or(usual)).await.map_err(|error| explain(&error))?;
        let moved = source.move_to(&target).await.map_err(|error| explain(&error))?;
        let lines: String = moved.counts().map(|(name, n)| format!("{name:<9} {n}\n")).collect();
        crate::config::write(&format!(
            "{lines}All of it was read back and is equal. The old database is as it was: start every server with the \
             new one, so that nobody writes to the old.\n"
        ))?;
        Ok(0)
    }

    /// One line, whatever is in it.
    fn audit_line(fields: &[String; 6]) -> String {
        let fields: Vec<String> = fields.iter().map(|field| single_line(field, 200)).collect();
        fields.join("\t") + "\n"
    }

    /// A database that is only looked at is not made.
    fn check_there(env: &Env, address: Option<&str>) -> Result<(), UserError> {
        let path = match address.or_else(|| env.vars.non_empty(DATABASE)) {
            Some(address) if address.contains("://") => return Ok(()),
            Some(file) => env.cwd.join(file),
            None => usual_file(env),
        };
        match path.is_file() {
            true => Ok(()),
            false => Err(UserError::new(format!("There is no such database: `{}`", path.display()))
                .hint("Name the one that holds the team's memories.")),
        }
    }

    fn usual_file(env: &Env) -> std::path::PathBuf {
        ConfigHome::from_env(env).loci_dir().join("team-memory.db")
    }

    /// Opens the database that an argument names, else the variable, else the usual file.
    async fn open(env: &Env, address: Option<&str>) -> Result<Database, StoreError> {
        match address.or_else(|| env.vars.non_empty(DATABASE)) {
            Some(address) if Database::is_postgres(address) => Database::connect(address).await,
            Some(address) if address.contains("://") => {
                Err(StoreError::Address("it is neither a file nor `postgres://...`".to_owned()))
            }
            Some(file) => Database::open_file(&env.cwd.join(file)).await,
            None => Database::open_file(&usual_file(env)).await,
        }
    }

    fn explain(error: &StoreError) -> UserError {
        let user_error = UserError::from_error(error);
        match error {
            StoreError::Make(_) | StoreError::Sqlite(_) => {
                user_error.hint("`--database <file>` names another; only one who may write it can serve it.")
            }
            StoreError::Postgres(_) | StoreError::Busy => user_error.hint(
                "Check that PostgreSQL runs, and that the address names a role that may make tables there.",
            ),
            StoreError::Address(_) => user_error
                .hint("`--database /var/lib/loci/team-memory.db` or `--database postgres://role@host/name`."),
            StoreError::Tls(_) => user_error.hint(
                "`sslrootcert=<file>` names who may sign its certificate; `sslmode=disable` does without TLS, which is \
                 for a network that nobody else reads, or a tunnel.",
            ),
            StoreError::TooNew { .. } => user_error.hint("Run the newer loci."),
            StoreError::NotEmpty(_) => {
                user_error.hint("Name a new one: a file that is not there, or an empty database of PostgreSQL.")
            }
            StoreError::Damaged(_) => {
                user_error.hint("Nothing was changed. Bring it back from a backup, or mend it, and move again.")
            }
            StoreError::CutShort | StoreError::NotEqual => user_error.hint("Run it again."),
            StoreError::NotAName(_) => user_error.hint("A hundred characters at most, on one line."),
            StoreError::MemberExists(_) => {
                user_error.hint("For a new token, `remove-member` first and add them again.")
            }
        }
    }

    fn repository(member: &MemberArgs) -> Result<RepositoryName, UserError> {
        RepositoryName::parse(&member.repository).ok_or_else(|| {
            UserError::new(format!("Not the name of a repository: `{}`", member.repository))
                .hint("Letters, digits and `-_.`, a hundred at most.")
        })
    }

    fn new_token(env: &Env) -> String {
        let mut bytes = [0; 32];
        env.random.fill(&mut bytes);
        bytes.iter().fold("locitm_".to_owned(), |token, byte| format!("{token}{byte:02x}"))
    }

    async fn serve(args: &TeamMemoryArgs, database: Database) -> Result<(), UserError> {
        let failed = |what: &str, error: std::io::Error| UserError::new(format!("{what}: {error}"));
        let listener = tokio::net::TcpListener::bind(args.listen)
            .await
            .map_err(|error| failed(&format!("Failed to listen on `{}`", args.listen), error))?;
        let address = listener.local_addr().map_err(|error| failed("Failed to listen", error))?;
        let mut terminate =
            signal(SignalKind::terminate()).map_err(|error| failed("Failed to wait for signals", error))?;
        crate::config::write(&format!("Listening on http://{address}\n"))?;
        let stop = async move {
            tokio::select! {
                Ok(()) = tokio::signal::ctrl_c() => {}
                Some(()) = terminate.recv() => {}
                else => std::future::pending().await,
            }
        };
        let limits = Limits { requests_per_minute: args.requests_per_minute };
        let server = Server::new(database, Arc::new(SystemClock::new()), limits);
        server.serve(listener, stop).await.map_err(|error| UserError::from_error(&error))
    }
}
