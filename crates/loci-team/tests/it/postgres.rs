//! A PostgreSQL of the tests' own: a cluster in a temporary directory, spoken with over a socket there.
//!
//! It is made once a test process, when first needed, and goes with it: a shell holds it and waits for its input to
//! end. PostgreSQL refuses to run as root, so then it runs as nobody.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Set where it must not be missing.
const REQUIRED: &str = "LOCI_TEST_POSTGRES";
/// The user and group `nobody`.
const NOBODY: u32 = 65_534;
/// A test does not pull the plug of the machine; a measurement is to tell what it costs that one may.
const FSYNC: &str = if cfg!(test) { "off" } else { "on" };
/// Makes the cluster, says so, and takes it away at the end of input.
const SCRIPT: &str = r#"
set -eu
"$1/initdb" -D "$2/data" -U loci -A trust -E UTF8 --locale=C --no-sync --no-instructions >"$2/log" 2>&1
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= -c "fsync=$3" >>"$2/log" 2>&1 &
n=0
until "$1/pg_isready" -q -h "$2"; do
    n=$((n + 1))
    [ "$n" -lt 600 ] && kill -0 $!
    sleep 0.1
done
echo ready
read -r end || true
kill -INT $!
wait $! || true
rm -rf "$2"
"#;

static CLUSTER: LazyLock<Result<Cluster, String>> =
    LazyLock::new(|| Cluster::start().inspect_err(|why| say(why)));
static N_DATABASES: AtomicUsize = AtomicUsize::new(0);

struct Cluster {
    dir: PathBuf,
    /// The shell; its input ends with this process.
    _shell: Child,
}

/// Returns the address of a new, empty database; `None`, and why, where there is no PostgreSQL on this machine.
pub(crate) async fn new_database() -> Option<String> {
    let cluster = match &*CLUSTER {
        Ok(cluster) => cluster,
        Err(why) => {
            assert!(std::env::var_os(REQUIRED).is_none(), "{why}");
            return None;
        }
    };
    let name = format!("team_{}", N_DATABASES.fetch_add(1, Ordering::SeqCst));
    execute(&cluster.address("postgres"), &format!("CREATE DATABASE {name}")).await;
    Some(cluster.address(&name))
}

/// Has a database do something.
pub(crate) async fn execute(address: &str, sql: &str) {
    let (client, wire) = tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
    let wire = tokio::spawn(wire);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    wire.await.unwrap().unwrap();
}

/// Says what is left out, past the harness, which shows only what failed tests print.
fn say(why: &str) {
    drop(writeln!(std::io::stderr(), "not tried with PostgreSQL: {why}"));
}

impl Cluster {
    fn start() -> Result<Self, String> {
        let programs = programs().ok_or("`initdb` is neither in PATH nor in /usr/lib/postgresql")?;
        let dir = tempfile::Builder::new().prefix("loci-pg").tempdir().unwrap().keep();
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(programs).arg(&dir).arg(FSYNC).current_dir("/");
        shell.env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::piped()).stdout(Stdio::piped());
        if chown(&dir, Some(NOBODY), Some(NOBODY)).is_ok() {
            shell.uid(NOBODY).gid(NOBODY);
        }
        let mut shell = shell.spawn().unwrap();
        let said = BufReader::new(shell.stdout.take().unwrap()).lines().next();
        if said.and_then(Result::ok).as_deref() != Some("ready") {
            let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
            panic!("PostgreSQL does not start: {log}");
        }
        Ok(Self { dir, _shell: shell })
    }

    fn address(&self, database: &str) -> String {
        format!("postgres://loci@/{database}?host={}", self.dir.display())
    }
}

/// Finds where the programs lie: Debian keeps them out of PATH, by version.
fn programs() -> Option<PathBuf> {
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut by_version: Vec<PathBuf> =
        versions.filter_map(Result::ok).map(|entry| entry.path().join("bin")).collect();
    by_version.sort();
    let has_all =
        |dir: &PathBuf| ["initdb", "postgres", "pg_isready"].iter().all(|it| is_file(&dir.join(it)));
    std::env::split_paths(&in_path).chain(by_version.into_iter().rev()).find(has_all)
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
