//! The network is cut and the server killed in the middle: nothing is lost, nothing is doubled.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use loci_team::RepositoryName;

use crate::support::{Cut, Office, Person, Relay, ServerProcess};

/// Everybody has all texts, and the server took each once.
fn expect_all(office: &Office, repository: &str, people: &[&Person], texts: &[(String, String)]) {
    for (name, text) in texts {
        for person in people {
            assert_eq!(person.text(name).as_ref(), Some(text), "{repository} {name}");
        }
    }
    let versions = office.store().versions(&RepositoryName::parse(repository).unwrap()).unwrap();
    let once: BTreeSet<&(String, String)> = versions.iter().collect();
    assert_eq!((versions.len(), once.len()), (texts.len(), texts.len()), "{repository}: {versions:?}");
}

/// Invariant 5 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_connection_cut_anywhere_loses_and_doubles_nothing() {
    let office = Office::new();
    let server = ServerProcess::start(&office.database());
    let relay = Relay::start(server.address).await;
    for (n, cut) in (0..9).flat_map(|n| [(n, Cut::Request), (n, Cut::Answer)]) {
        let repository = format!("r{n}-{cut:?}");
        let ann = office.person("ann", &repository, relay.address);
        let ben = office.person("ben", &repository, relay.address);
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
        expect_all(&office, &repository, &[&ann, &ben], &texts);
        let came: usize = [&ann, &ben].iter().map(|it| it.book.changes().unwrap().len()).sum();
        assert_eq!(came, 4, "{repository}: each text came to the other once");
    }
}

/// Invariant 5 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_server_killed_in_the_middle_loses_and_doubles_nothing() {
    let office = Office::new();
    let server = ServerProcess::start(&office.database());
    let relay = Relay::start(server.address).await;
    let ann = office.person("ann", "r", relay.address);
    let ben = office.person("ben", "r", relay.address);
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
        let again = ServerProcess::start(&office.database());
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
    expect_all(&office, "r", &[&ann, &ben], &texts);
}
