//! A PostgreSQL of the tests' own: a cluster in a temporary directory, spoken with over a socket there, or over loopback
//! with TLS under an authority made for the occasion (`authority.pem` there; `stranger.pem` is another).
//!
//! It is made once a test process, when first needed, and goes with it: a shell holds it and waits for its input to
//! end. PostgreSQL refuses to run as root, so then it runs as nobody.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Set where it must not be missing.
const REQUIRED: &str = "LOCI_TEST_POSTGRES";
/// The user and group `nobody`.
const NOBODY: u32 = 65_534;
/// A test does not pull the plug of the machine; a measurement is to tell what it costs that one may.
const FSYNC: &str = if cfg!(test) { "off" } else { "on" };
/// Makes the cluster, says at which of a few ports it listens, and takes it away at the end of input.
const SCRIPT: &str = r#"
set -eu
programs=$1 dir=$2 fsync=$3
shift 3
"$programs/initdb" -D "$dir/data" -U loci -A trust -E UTF8 --locale=C --no-sync --no-instructions >"$dir/log" 2>&1
start() {
    "$programs/postgres" -D "$dir/data" -k "$dir" -p "$1" -c "fsync=$fsync" -c listen_addresses=127.0.0.1 \
        -c ssl=on -c "ssl_cert_file=$dir/server.pem" -c "ssl_key_file=$dir/server.key" -c "hba_file=$dir/hba.conf" \
        >>"$dir/log" 2>&1 &
    n=0
    until "$programs/pg_isready" -q -h "$dir" -p "$1"; do
        n=$((n + 1))
        { [ "$n" -lt 600 ] && kill -0 $!; } 2>/dev/null || return 1
        sleep 0.1
    done
}
for port; do
    if start "$port"; then
        echo "ready $port"
        read -r end || true
        kill -INT $!
        wait $! || true
        break
    fi
done
rm -rf "$dir"
"#;
/// Who is let in how: over loopback the role `keeper` only with TLS and a password.
const WHO: &str =
    "local all all trust\nhostssl all keeper 127.0.0.1/32 scram-sha-256\nhost all loci 127.0.0.1/32 trust\n";
/// What the certificate is for.
const NAMES: [&str; 2] = ["127.0.0.1", "db.example.com"];

static CLUSTER: LazyLock<Result<Cluster, String>> =
    LazyLock::new(|| Cluster::start().inspect_err(|why| print_skipped(why)));
static N_DATABASES: AtomicUsize = AtomicUsize::new(0);

struct Cluster {
    dir: PathBuf,
    port: String,
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
fn print_skipped(why: &str) {
    drop(writeln!(std::io::stderr(), "not tried with PostgreSQL: {why}"));
}

impl Cluster {
    fn start() -> Result<Self, String> {
        let programs = programs().ok_or("`initdb` is neither in PATH nor in /usr/lib/postgresql")?;
        let dir = tempfile::Builder::new().prefix("loci-pg").tempdir().unwrap().keep();
        lay_out(&dir);
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(programs).arg(&dir).arg(FSYNC).args(free_ports());
        shell.current_dir("/").env_clear().env("PATH", "/usr/bin:/bin");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let files = ["", "server.pem", "server.key", "hba.conf"].map(|name| dir.join(name));
        if files.iter().all(|path| chown(path, Some(NOBODY), Some(NOBODY)).is_ok()) {
            shell.uid(NOBODY).gid(NOBODY);
        }
        let mut shell = shell.spawn().unwrap();
        let said = BufReader::new(shell.stdout.take().unwrap()).lines().next().and_then(Result::ok);
        let Some(port) = said.as_deref().and_then(|said| said.strip_prefix("ready ")) else {
            let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
            panic!("PostgreSQL does not start: {log}");
        };
        Ok(Self { dir, port: port.to_owned(), _shell: shell })
    }

    fn address(&self, database: &str) -> String {
        format!("postgres://loci@/{database}?host={}&port={}", self.dir.display(), self.port)
    }
}

/// Writes what PostgreSQL reads at its start: who is let in, and a certificate.
fn lay_out(dir: &Path) {
    let (authority, stranger) = (authority("ours"), authority("another"));
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(NAMES.map(str::to_owned)).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    for (name, text) in [
        ("hba.conf", WHO.to_owned()),
        ("server.pem", certificate.pem()),
        ("server.key", key.serialize_pem()),
        ("authority.pem", authority.pem()),
        ("stranger.pem", stranger.pem()),
    ] {
        std::fs::write(dir.join(name), text).unwrap();
        std::fs::set_permissions(dir.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Returns ports that nobody used a moment ago; somebody may be faster, so a few.
fn free_ports() -> Vec<String> {
    let taken: Vec<TcpListener> = (0..5).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    taken.iter().map(|it| it.local_addr().unwrap().port().to_string()).collect()
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
