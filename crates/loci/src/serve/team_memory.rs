//! `loci serve team-memory`: the server of a team's memories, and its members.
//!
//! It is part of the program only when it was built with the feature `team-server`.

use std::net::SocketAddr;

use loci_stdx::Env;

use crate::complaint::Complaint;

#[derive(Debug, clap::Args)]
pub(super) struct TeamMemoryArgs {
    /// Where to listen. There is no TLS here: leave it on this machine and put a proxy with TLS before it.
    #[arg(long, default_value = "127.0.0.1:7878", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The SQLite file; `loci/team-memory.db` in the config home when none is named.
    #[arg(long, global = true, value_name = "FILE")]
    database: Option<String>,
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
}

#[derive(Debug, clap::Args)]
struct MemberArgs {
    /// Their name.
    name: String,
    /// The repository.
    #[arg(long)]
    repository: String,
}

#[cfg(not(feature = "team-server"))]
pub(super) fn run(_: &Env, _: &TeamMemoryArgs) -> Result<u8, Complaint> {
    Err(Complaint::new("The server of a team's memories is not part of this build")
        .hint("Build it in: `cargo build --release -p loci --features team-server`."))
}

#[cfg(feature = "team-server")]
pub(super) use built_in::run;

#[cfg(feature = "team-server")]
mod built_in {
    use std::path::PathBuf;
    use std::sync::Arc;

    use loci_stdx::{SystemClock, rfc3339_millis};
    use loci_storage::ConfigHome;
    use loci_team::{Limits, RepositoryName, Server, Store};

    use super::*;

    pub(in super::super) fn run(env: &Env, args: &TeamMemoryArgs) -> Result<u8, Complaint> {
        let store = Store::open(&database(env, args)?).map_err(|error| Complaint::from_error(&error))?;
        let now = rfc3339_millis(env.clock.now());
        match &args.verb {
            None => serve(args, store)?,
            Some(Verb::AddMember(member)) => {
                let token = new_token(env);
                let added = store.add_member(&member.name, &repository(member)?, &token, &now);
                added.map_err(|error| Complaint::from_error(&error))?;
                crate::config::write(&format!("{token}\n"))?;
            }
            Some(Verb::RemoveMember(member)) => {
                let removed = store.remove_member(&member.name, &repository(member)?, &now);
                if !removed.map_err(|error| Complaint::from_error(&error))? {
                    return Err(Complaint::new(format!("There is no such member: `{}`", member.name)));
                }
            }
            Some(Verb::Audit) => {
                let log = store.audit_log().map_err(|error| Complaint::from_error(&error))?;
                crate::config::write(&log.iter().map(|line| line.join("\t") + "\n").collect::<String>())?;
            }
        }
        Ok(0)
    }

    fn database(env: &Env, args: &TeamMemoryArgs) -> Result<PathBuf, Complaint> {
        match &args.database {
            Some(address) if address.contains("://") => {
                Err(Complaint::new("Only SQLite files can be used as a database in this version")
                    .hint("Name a file: `--database /var/lib/loci/team-memory.db`."))
            }
            Some(file) => Ok(env.cwd.join(file)),
            None => Ok(ConfigHome::from_env(env).loci_dir().join("team-memory.db")),
        }
    }

    fn repository(member: &MemberArgs) -> Result<RepositoryName, Complaint> {
        RepositoryName::parse(&member.repository).ok_or_else(|| {
            Complaint::new(format!("Not the name of a repository: `{}`", member.repository))
                .hint("Letters, digits and `-_.`, a hundred at most.")
        })
    }

    fn new_token(env: &Env) -> String {
        let mut bytes = [0; 32];
        env.random.fill(&mut bytes);
        bytes.iter().fold("locitm_".to_owned(), |token, byte| format!("{token}{byte:02x}"))
    }

    fn serve(args: &TeamMemoryArgs, store: Store) -> Result<(), Complaint> {
        let failed = |what: &str, error: std::io::Error| Complaint::new(format!("{what}: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| failed("The runtime cannot start", error))?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind(args.listen)
                .await
                .map_err(|error| failed(&format!("Failed to listen on `{}`", args.listen), error))?;
            let address = listener.local_addr().map_err(|error| failed("Failed to listen", error))?;
            crate::config::write(&format!("Listening on http://{address}\n"))?;
            let stop = async {
                if tokio::signal::ctrl_c().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            let server = Server::new(store, Arc::new(SystemClock::new()), Limits::default());
            server.serve(listener, stop).await.map_err(|error| Complaint::from_error(&error))
        })
    }
}
