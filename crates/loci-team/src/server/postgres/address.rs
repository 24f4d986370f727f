//! What an address of PostgreSQL says: where it is, and how far whoever answers there is trusted.
//!
//! `sslmode` and `sslrootcert` mean what they mean to the programs of PostgreSQL, with one exception: nothing is said in
//! the clear to another machine unless the address has `sslmode=disable`. There, `prefer` is `require`.

use std::net::IpAddr;
use std::path::PathBuf;

use loci_core::hex::decode_percent;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::super::store::StoreError;

/// An address that was read.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) config: Config,
    /// Whom to speak TLS with; `None` where all is in the clear.
    pub(super) trust: Option<Trust>,
}

/// Whose certificate is good enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Anybody's: what is said cannot be read on the way, but who hears it is not known.
    Anyone,
    /// One that is signed by these.
    SignedBy(Roots),
    /// One that is signed by these for the host's name.
    Named(Roots),
}

/// Who may sign certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those in a PEM file.
    File(PathBuf),
    /// Those that this system trusts.
    System,
}

/// What `sslmode` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Address {
    /// Reads an address; nothing is opened yet.
    pub(super) fn parse(address: &str) -> Result<Self, StoreError> {
        let (rest, mode, roots) = take_tls(address)?;
        let mut config: Config = rest.parse::<Config>().map_err(|error| refused(in_words(&error)))?;
        name_all_hosts(&mut config)?;
        let trust = if is_all_sockets(&config) { None } else { trust(mode, roots)? };
        config.ssl_mode(match (&trust, mode) {
            (None, _) => SslMode::Disable,
            (Some(_), Mode::Prefer) if is_near(&config) => SslMode::Prefer,
            (Some(_), _) => SslMode::Require,
        });
        Ok(Self { config, trust })
    }
}

/// Decides whom to trust.
fn trust(mode: Mode, roots: Option<Roots>) -> Result<Option<Trust>, StoreError> {
    Ok(match (mode, roots) {
        (Mode::Disable, _) => None,
        (Mode::VerifyFull, roots) => Some(Trust::Named(roots.unwrap_or(Roots::System))),
        (_, Some(Roots::System)) => {
            return Err(refused(
                "the system's certificate authorities sign for everybody, so `sslrootcert=system` needs \
                 `sslmode=verify-full`"
                    .to_owned(),
            ));
        }
        (_, Some(roots)) => Some(Trust::SignedBy(roots)),
        (Mode::VerifyCa, None) => {
            return Err(refused("`sslmode=verify-ca` needs `sslrootcert=<file>`".to_owned()));
        }
        (Mode::Prefer | Mode::Require, None) => Some(Trust::Anyone),
    })
}

/// Takes what is about TLS out of an address; the client library knows only a part of it.
fn take_tls(address: &str) -> Result<(String, Mode, Option<Roots>), StoreError> {
    let (place, query) = address.split_once('?').unwrap_or((address, ""));
    let (mut mode, mut roots, mut others) = (Mode::Prefer, None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = to_mode(&unescaped(value)?)?,
            Some(("sslrootcert", "system")) => roots = Some(Roots::System),
            Some(("sslrootcert", value)) => roots = Some(Roots::File(PathBuf::from(unescaped(value)?))),
            Some((key @ ("sslcert" | "sslkey"), _)) => {
                return Err(refused(format!(
                    "`{key}`: client certificates are not supported; members of the database prove who they are by \
                     password"
                )));
            }
            _ => others.push(pair),
        }
    }
    let others = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    Ok((format!("{place}{others}"), mode, roots))
}

fn to_mode(value: &str) -> Result<Mode, StoreError> {
    Ok(match value {
        "disable" => Mode::Disable,
        "prefer" => Mode::Prefer,
        "require" => Mode::Require,
        "verify-ca" => Mode::VerifyCa,
        "verify-full" => Mode::VerifyFull,
        other => {
            return Err(refused(format!(
                "`sslmode={other}` is none of `disable`, `prefer`, `require`, `verify-ca` and `verify-full`"
            )));
        }
    })
}

/// Reads `%` and two hexadecimal digits as the byte that they stand for.
fn unescaped(value: &str) -> Result<String, StoreError> {
    let wrong = || refused(format!("`{value}` is not text with `%` and two digits for what is special"));
    decode_percent(value).ok_or_else(wrong)
}

/// A certificate is held against a name, so a host that is given by its number alone is called by that.
fn name_all_hosts(config: &mut Config) -> Result<(), StoreError> {
    if !config.get_hosts().is_empty() {
        return Ok(());
    }
    let numbers = config.get_hostaddrs().to_vec();
    if numbers.is_empty() {
        return Err(refused("it names no host".to_owned()));
    }
    for number in numbers {
        config.host(number.to_string());
    }
    Ok(())
}

/// Tells whether nothing of it leaves this machine.
fn is_near(config: &Config) -> bool {
    config.get_hosts().iter().all(is_near_host) && config.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

fn is_near_host(host: &Host) -> bool {
    match host {
        Host::Tcp(host) => host == "localhost" || host.parse().is_ok_and(|it: IpAddr| it.is_loopback()),
        Host::Unix(_) => true,
    }
}

/// PostgreSQL speaks no TLS over a socket of this machine.
fn is_all_sockets(config: &Config) -> bool {
    config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
}

fn refused(why: String) -> StoreError {
    StoreError::Address(why)
}

fn in_words(error: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("it cannot be read ({error}{cause})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says how an address is used.
    fn describe_address(address: &str) -> String {
        match Address::parse(address) {
            Err(error) => error.to_string(),
            Ok(Address { config, trust }) => format!("{:?} {trust:?}", config.get_ssl_mode()),
        }
    }

    /// Invariant 6 of `docs/design/team-memory.md`.
    #[test]
    fn an_address_on_another_machine_is_used_in_the_clear_only_by_name() {
        for (address, expected) in [
            ("postgres://loci@localhost/team", "Prefer Some(Anyone)"),
            ("postgres://loci:pw@127.0.0.1:5433/team", "Prefer Some(Anyone)"),
            ("postgresql:///team?host=/run/postgresql&user=loci", "Disable None"),
            ("postgresql:///team?host=/run/postgresql&user=loci&sslmode=require", "Disable None"),
            ("postgres://loci@localhost/team?sslmode=disable", "Disable None"),
            ("postgres://loci@db.example.com/team?sslmode=disable", "Disable None"),
            ("postgres://loci@db.example.com/team", "Require Some(Anyone)"),
            ("postgres://loci@db.example.com/team?sslmode=prefer", "Require Some(Anyone)"),
            ("postgres://loci@localhost,db.example.com/team", "Require Some(Anyone)"),
            ("postgres://loci@/team?host=/run/postgresql&host=db.example.com", "Require Some(Anyone)"),
            // One path with a comma in it, as the library reads it.
            ("postgres://loci@/team?host=/run/postgresql,db.example.com", "Disable None"),
            ("postgres://loci@localhost/team?hostaddr=192.0.2.1", "Require Some(Anyone)"),
            ("postgres://loci@/team?hostaddr=127.0.0.1", "Prefer Some(Anyone)"),
            ("postgres://loci@/team?hostaddr=192.0.2.1", "Require Some(Anyone)"),
            ("postgres://loci@localhost/team?sslmode=require", "Require Some(Anyone)"),
        ] {
            assert_eq!(describe_address(address), expected, "{address}");
        }
    }

    #[test]
    fn an_address_says_whose_certificate_is_good_enough() {
        for (query, expected) in [
            ("sslmode=verify-full", "Require Some(Named(System))"),
            ("sslmode=verify-full&sslrootcert=system", "Require Some(Named(System))"),
            ("sslrootcert=/etc/ca.pem&sslmode=verify-full", "Require Some(Named(File(\"/etc/ca.pem\")))"),
            (
                "sslmode=verify-ca&sslrootcert=%2Fetc%2Fmy%20ca.pem",
                "Require Some(SignedBy(File(\"/etc/my ca.pem\")))",
            ),
            ("sslmode=require&sslrootcert=ca.pem", "Require Some(SignedBy(File(\"ca.pem\")))"),
            ("sslrootcert=ca.pem", "Prefer Some(SignedBy(File(\"ca.pem\")))"),
            ("sslmode=disable&sslrootcert=ca.pem", "Disable None"),
        ] {
            assert_eq!(
                describe_address(&format!("postgres://loci@localhost/team?{query}")),
                expected,
                "{query}"
            );
        }
    }

    #[test]
    fn unusable_address_is_an_error_without_the_password() {
        for (rest, expected) in [
            ("localhost:port/team", "it cannot be read"),
            ("/team", "it names no host"),
            ("localhost/team?sslmode=allow", "`sslmode=allow` is none of"),
            ("localhost/team?sslmode=verify-ca", "needs `sslrootcert=<file>`"),
            ("localhost/team?sslmode=require&sslrootcert=system", "needs `sslmode=verify-full`"),
            ("localhost/team?sslrootcert=%2", "`%` and two digits"),
            ("localhost/team?sslrootcert=%ff", "`%` and two digits"),
            ("localhost/team?sslcert=me.pem", "`sslcert`: client certificates are not supported; members"),
            ("localhost/team?sslkey=me.key", "`sslkey`: client certificates are not supported"),
        ] {
            let said = describe_address(&format!("postgres://loci:hunter2@{rest}"));
            assert!(
                said.starts_with("The address of the database cannot be used")
                    && said.contains(expected)
                    && !said.contains("hunter2"),
                "{rest}: {said}"
            );
        }
    }
}
