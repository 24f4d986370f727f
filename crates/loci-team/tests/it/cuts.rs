//! The network is cut and the server killed in the middle: nothing is lost, nothing is doubled.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loci_team::RepositoryName;

use crate::postgres;
use crate::support::{Cut, Office, Person, Relay, ServerProcess};

/// Everybody has all texts, and the server took each once.
async fn expect_all(office: &Office, repository: &str, people: &[&Person], texts: &[(String, String)]) {
    for (name, text) in texts {
        for person in people {
            assert_eq!(person.text(name).as_ref(), Some(text), "{repository} {name}");
        }
    }
    let versions =
        office.database().await.versions(&RepositoryName::parse(repository).unwrap()).await.unwrap();
    let once: BTreeSet<&(String, String)> = versions.iter().collect();
    assert_eq!((versions.len(), once.len()), (texts.len(), texts.len()), "{repository}: {versions:?}");
}

/// Invariant 5 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_connection_cut_anywhere_loses_and_doubles_nothing() {
    // What is cut lies before the database, so with the second a few places are enough.
    let places: [&[usize]; 2] = [&[0, 1, 2, 3, 4, 5, 6, 7, 8], &[1, 4, 7]];
    for (office, places) in Office::each().await.iter().zip(places) {
        cut_anywhere(office, places).await;
    }
}

async fn cut_anywhere(office: &Office, places: &[usize]) {
    let server = ServerProcess::start(&office.address);
    let relay = Relay::start(server.address).await;
    for (n, cut) in places.iter().flat_map(|n| [(*n, Cut::Request), (*n, Cut::Answer)]) {
        let repository = format!("r{n}-{cut:?}");
        let ann = office.person("ann", &repository, relay.address).await;
        let ben = office.person("ben", &repository, relay.address).await;
        let texts: Vec<(String, String)> =
            (0..4).map(|n| (format!("{n}.md"), format!("text {n}\n"))).collect();
        texts[..2].iter().for_each(|(name, text)| ann.write(name, text));
        texts[2..].iter().for_each(|(name, text)| ben.write(name, text));
        relay.cut_after(n, cut);
        let mut n_failed = 0;
        for _ in 0..2 {
            for person in [&ann, &ben] {
                n_failed += usize::from(person.push().await.is_err());
                n_failed += usize::from(person.pull().await.is_err());
            }
        }
        assert_eq!(n_failed, 1, "{repository}: the cut was felt once");
        for person in [&ann, &ben] {
            person.pull().await.unwrap();
            assert_eq!(person.status().await, Ok(vec![]), "{repository}");
        }
        expect_all(office, &repository, &[&ann, &ben], &texts).await;
        let came: usize = [&ann, &ben].iter().map(|it| it.journal.changes().unwrap().len()).sum();
        assert_eq!(came, 4, "{repository}: each text came to the other once");
    }
}

/// Invariant 5 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_server_killed_in_the_middle_loses_and_doubles_nothing() {
    for office in Office::each().await {
        killed_in_the_middle(&office).await;
    }
}

async fn killed_in_the_middle(office: &Office) {
    let server = ServerProcess::start(&office.address);
    let relay = Relay::start(server.address).await;
    let ann = office.person("ann", "r", relay.address).await;
    let ben = office.person("ben", "r", relay.address).await;
    let texts: Vec<(String, String)> = (0..40).map(|n| (format!("{n}.md"), format!("text {n}\n"))).collect();
    texts[..20].iter().for_each(|(name, text)| ann.write(name, text));
    texts[20..].iter().for_each(|(name, text)| ben.write(name, text));
    let mut server = Some(server);
    for n_requests in [5, 9, 11] {
        let until = relay.n_connections.load(Ordering::SeqCst) + n_requests;
        let killed = async {
            while relay.n_connections.load(Ordering::SeqCst) < until {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            drop(server.take());
        };
        let (pushed, also_pushed, ()) = tokio::join!(ann.push(), ben.push(), killed);
        assert!(pushed.is_err() || also_pushed.is_err(), "{pushed:?} {also_pushed:?}");
        let again = ServerProcess::start(&office.address);
        relay.lead_to(again.address);
        server = Some(again);
    }
    for person in [&ann, &ben] {
        person.push().await.unwrap();
    }
    for person in [&ann, &ben] {
        person.pull().await.unwrap();
        assert_eq!(person.status().await, Ok(vec![]));
    }
    expect_all(office, "r", &[&ann, &ben], &texts).await;
}

/// Invariant 5 of `docs/design/team-memory.md`. PostgreSQL may close its connections at any time; the next request makes
/// new ones.
#[tokio::test]
async fn a_database_that_closes_its_connections_loses_and_doubles_nothing() {
    let Some(office) = Office::with_postgres().await else { return };
    let server = ServerProcess::start(&office.address);
    let ann = office.person("ann", "r", server.address).await;
    let texts: Vec<(String, String)> = (0..6).map(|n| (format!("{n}.md"), format!("text {n}\n"))).collect();
    let close = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for (name, text) in &texts {
        ann.write(name, text);
        postgres::execute(&office.address, close).await;
        // The first request may still go to a connection that is about to be closed.
        for _ in 0..3 {
            if ann.push().await.is_ok() {
                break;
            }
        }
    }
    assert_eq!(ann.push().await, Ok(vec![]));
    assert_eq!(ann.status().await, Ok(vec![]));
    expect_all(&office, "r", &[&ann], &texts).await;
}
