//! A team moves from one database to another, and its people go on with the tokens they have.

use loci_team::{Database, RepositoryName};

use crate::support::{Office, Person, ServerProcess, open, token};

/// Invariant 8 of `docs/design/team-memory.md`. From a file to PostgreSQL, and back into a file.
#[tokio::test]
async fn a_team_moves_with_all_it_has_and_goes_on() {
    let old = Office::with_file();
    let texts = fill(&old).await;
    let stages = [Office::with_postgres().await, Some(Office::with_file())];
    let mut from = &old;
    for to in stages.iter().flatten() {
        moves(from, to, &texts).await;
        from = to;
    }
}

/// Gives an office something to move: members that came and went, more often than travels at once, texts that were
/// replaced, requests that were refused.
async fn fill(office: &Office) -> Vec<(String, String)> {
    let server = ServerProcess::start(&office.address);
    let ann = office.person("ann", "app", server.address).await;
    let ben = office.person("ben", "app", server.address).await;
    let (web, database) = (RepositoryName::parse("web").unwrap(), office.database().await);
    for _ in 0..40 {
        database.add_member("cem", &web, &token("cem", "web"), "now").await.unwrap();
        assert!(database.remove_member("cem", &web, "now").await.unwrap());
    }
    // In an order that languages do not agree on, with all that text may hold.
    let texts = ["a.md", "B.md", "a/b.md", "a_b.md", "a-b.md"];
    let text = |name: &str| format!("ümlaut '{name}' \\ \"{{}}\"\n\t,NULL\\N");
    let texts: Vec<(String, String)> = texts.iter().map(|name| ((*name).to_owned(), text(name))).collect();
    texts.iter().for_each(|(name, text)| ann.write(name, text));
    ann.write("a.md", "as it was at first");
    assert_eq!(ann.push().await.unwrap().len(), 5);
    ann.write("a.md", &texts[0].1);
    assert_eq!(ann.push().await, Ok(vec!["a.md Sent".to_owned()]));
    ben.pull().await.unwrap();
    assert!(Person::new(&token("ann", "app"), "web", server.address).pull().await.is_err());
    texts
}

async fn moves(from: &Office, to: &Office, texts: &[(String, String)]) {
    let (source, target) = (from.database().await, to.database().await);
    let before = state(source).await;
    let moved = source.move_to(target).await.unwrap();
    let counts: Vec<(&str, u64)> = moved.counts().collect();
    let n_versions = before.0.len() as u64;
    assert_eq!(counts[..3], [("members", 2), ("entries", 5), ("versions", n_versions)]);
    assert_eq!(counts[3], ("audit", before.1.len() as u64));
    assert_eq!(state(target).await, before, "all of it, in its order");
    assert_eq!(state(source).await, before, "and the source is as it was");

    let again = source.move_to(target).await.unwrap_err().to_string();
    assert!(again.contains("it has `members` already"), "{again}");
    assert_eq!(state(target).await, before);

    let server = ServerProcess::start(&to.address);
    let ann = Person::new(&token("ann", "app"), "app", server.address);
    let ben = Person::new(&token("ben", "app"), "app", server.address);
    assert_eq!(ann.pull().await.unwrap().len(), 5);
    texts.iter().for_each(|(name, text)| assert_eq!(ann.text(name).as_ref(), Some(text)));
    assert_eq!(ann.status().await, Ok(vec![]));
    assert!(Person::new(&token("cem", "web"), "web", server.address).pull().await.is_err(), "gone is gone");
    // What comes after gets its place after all that was there.
    ann.write("a.md", &format!("after {n_versions} versions"));
    assert_eq!(ann.push().await, Ok(vec!["a.md Sent".to_owned()]));
    ben.pull().await.unwrap();
    assert_eq!(ben.text("a.md"), ann.text("a.md"));
    ann.write("a.md", &texts[0].1);
    ann.push().await.unwrap();
    let after = state(target).await;
    assert_eq!(after.0[..before.0.len()], before.0);
    assert_eq!(after.0.len(), before.0.len() + 2);
}

/// Every text that ever was, with its hash, and who did what.
async fn state(database: &Database) -> (Vec<(String, String)>, Vec<[String; 6]>) {
    let repository = RepositoryName::parse("app").unwrap();
    (database.versions(&repository).await.unwrap(), database.audit_log().await.unwrap())
}

/// Nobody writes to the source while it is moved, and a target that somebody uses is left alone.
#[tokio::test]
async fn a_database_is_not_moved_onto_itself_or_another_team() {
    for office in Office::each().await {
        let repository = RepositoryName::parse("r").unwrap();
        office.database().await.add_member("ann", &repository, "a token", "now").await.unwrap();
        let same = open(&office.address).await;
        let other = Office::with_file();
        other.database().await.add_member("eve", &repository, "another", "now").await.unwrap();
        for target in [&same, other.database().await] {
            let before = target.audit_log().await.unwrap();
            let error = office.database().await.move_to(target).await.unwrap_err().to_string();
            assert!(error.contains("it has `members` already"), "{error}");
            assert_eq!(target.audit_log().await.unwrap(), before);
        }
    }
}
