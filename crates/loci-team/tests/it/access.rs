//! Who may do what, and what the server refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use futures_util::future::join_all;
use loci_context::{ContentHash, EntryName};
use loci_team::{Database, Expected, Remote, RepositoryName, Stored};

use crate::postgres;
use crate::support::{Office, Person, ServerProcess, open, token};

/// Invariant 6 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_token_opens_one_repository_until_its_member_is_removed() {
    for office in Office::each().await {
        opens_one_repository(&office).await;
    }
}

async fn opens_one_repository(office: &Office) {
    let server = ServerProcess::start(&office.address);
    let ann = office.person("ann", "one", server.address).await;
    ann.write("a.md", "text");
    assert_eq!(ann.push().await, Ok(vec!["a.md Sent".to_owned()]));

    let stranger = Person::new("nobody's", "one", server.address);
    let said = stranger.pull().await.unwrap_err();
    assert!(said.contains("401") && said.contains("No member has this token"), "{said}");
    let elsewhere = Person::new(&token("ann", "one"), "two", server.address);
    let said = elsewhere.pull().await.unwrap_err();
    assert!(said.contains("403") && said.contains("another repository"), "{said}");

    let repository = RepositoryName::parse("one").unwrap();
    let database = office.database().await;
    assert!(database.add_member("ann", &repository, "another", "now").await.is_err());
    assert!(
        database.add_member("eve", &repository, &token("ann", "one"), "now").await.is_err(),
        "one token, one member"
    );
    assert!(database.remove_member("ann", &repository, "now").await.unwrap());
    assert!(ann.pull().await.unwrap_err().contains("401"));

    let log = database.audit_log().await.unwrap();
    let deeds: Vec<String> = log.iter().map(|line| line[1..].join(" ")).collect();
    assert_eq!(
        deeds,
        [
            "ann one add-member  done",
            "ann one write a.md created",
            "ann two request  forbidden",
            "ann one remove-member  done"
        ]
    );
}

/// Nobody writes lines of the audit log but the server.
#[tokio::test]
async fn no_name_makes_a_line_of_its_own_in_the_log() {
    for office in Office::each().await {
        makes_no_line(&office).await;
    }
}

async fn makes_no_line(office: &Office) {
    let server = ServerProcess::start(&office.address);
    let _ann = office.person("ann", "one", server.address).await;
    let asked = async |repository: &str, scheme: &str| {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "GET /v1/repositories/{repository}/entries HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             authorization: {scheme} {}\r\n\r\n",
            token("ann", "one"),
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    assert_eq!(asked("one", "bearer").await, "200", "the scheme is written in any case");
    assert_eq!(asked("one", "Basic").await, "401");
    let long = "a".repeat(20_000);
    for repository in ["one%0A2026%09ben%09one%09write%09a.md%09created", "one%00", "%1B[2J", &long] {
        assert_eq!(asked(repository, "Bearer").await, "403", "{repository}");
    }
    let database = office.database().await;
    let one = RepositoryName::parse("one").unwrap();
    for name in ["", "  ", "b\ten", "ben\n", "\u{1b}[2J", &long] {
        let added = database.add_member(name, &one, "some token", "now").await;
        assert!(added.is_err_and(|error| error.to_string().starts_with("Not a name")), "{name}");
    }
    let log = database.audit_log().await.unwrap();
    let deeds: Vec<String> = log.iter().map(|line| line[1..].join(" ")).collect();
    let forbidden = "ann - request  forbidden";
    assert_eq!(deeds, ["ann one add-member  done", forbidden, forbidden, forbidden, forbidden]);
}

/// Invariant 6 of `docs/design/team-memory.md`.
#[tokio::test]
async fn tokens_are_nowhere_in_the_database_and_others_cannot_read_it() {
    let office = Office::with_file();
    let server = ServerProcess::start(&office.address);
    let ann = office.person("ann", "one", server.address).await;
    ann.write("a.md", "a text that is kept");
    ann.push().await.unwrap();
    drop(server);
    let mut all = Vec::new();
    for entry in fs::read_dir(office.root.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0, "{}", path.display());
        all.extend(fs::read(path).unwrap());
    }
    let has = |text: &str| all.windows(text.len()).any(|it| it == text.as_bytes());
    assert!(has("a text that is kept"), "this is where things are kept");
    assert!(!has(&token("ann", "one")));
}

/// Invariant 3 of `docs/design/team-memory.md`. The server looks again at what a client should have checked.
#[tokio::test]
async fn server_refuses_secrets_bad_names_and_unconditional_writes() {
    for office in Office::each().await {
        takes_nothing_bad(&office).await;
    }
}

async fn takes_nothing_bad(office: &Office) {
    let server = ServerProcess::start(&office.address);
    let ann = office.person("ann", "one", server.address).await;
    let secret = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let put = async |name: &str, text: String, header: Option<(&'static str, &'static str)>| {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let header = header.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
        let head = format!(
            "PUT /v1/repositories/one/entries/{name} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             authorization: Bearer {}\r\ncontent-length: {}\r\n{header}\r\n",
            token("ann", "one"),
            text.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may refuse a long text before it has all of it.
        drop(stream.write_all(text.as_bytes()).await);
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    let absent = Some(("if-none-match", "*"));
    assert_eq!(put("a.md", format!("use {secret}"), absent).await, "422");
    let refused = ann.remote.store(&EntryName::parse("a.md").unwrap(), &secret, &Expected::Absent).await;
    assert!(
        matches!(&refused, Ok(Stored::Refused(why)) if why.contains("github-token") && !why.contains(&secret)),
        "{refused:?}"
    );
    assert_eq!(put(&format!("{secret}.md"), "x".to_owned(), absent).await, "422");
    assert_eq!(put("a.md", "a\0b".to_owned(), absent).await, "422");
    assert_eq!(put("..%2Fa.md", "x".to_owned(), absent).await, "422");
    assert_eq!(put("CLAUDE.md", "x".to_owned(), absent).await, "422");
    assert_eq!(put("a.md", "x".to_owned(), None).await, "428");
    assert_eq!(put("a.md", "x".to_owned(), Some(("if-match", "\"0\""))).await, "428");
    assert_eq!(put("a.md", "x".repeat(256 * 1024 + 1), absent).await, "413");
    assert_eq!(put("a.md", "x".to_owned(), absent).await, "201");
    assert_eq!(put("a.md", "x".to_owned(), absent).await, "200");
    assert_eq!(put("a.md", "y".to_owned(), absent).await, "412");
    assert_eq!(put("A.md", "y".to_owned(), absent).await, "409");
    assert_eq!(ann.pull().await, Ok(vec!["a.md Added(Some(1))".to_owned()]));
}

/// Invariant 2 of `docs/design/team-memory.md`. Many write the same entries at once, through two servers that share the
/// database: of those that expect the same text, one wins.
#[tokio::test]
async fn of_many_writers_at_once_one_wins() {
    for office in Office::each().await {
        one_of_many_wins(&office).await;
    }
}

async fn one_of_many_wins(office: &Office) {
    const WRITERS: usize = 12;
    let servers = [ServerProcess::start(&office.address), ServerProcess::start(&office.address)];
    let repository = RepositoryName::parse("r").unwrap();
    let mut people = Vec::new();
    for n in 0..WRITERS {
        people.push(office.person(&format!("p{n}"), "r", servers[n % 2].address).await);
    }
    let names = ["a.md", "b.md"].map(|name| EntryName::parse(name).unwrap());
    let mut expected = Expected::Absent;
    for round in 0..3 {
        for name in &names {
            let texts: Vec<String> = (0..WRITERS).map(|n| format!("round {round} by {n}")).collect();
            let writes = people.iter().zip(&texts).map(|(it, text)| it.remote.store(name, text, &expected));
            let stored = join_all(writes).await;
            let won: Vec<&String> = stored
                .iter()
                .zip(&texts)
                .filter(|(it, _)| matches!(it, Ok(Stored::Done)))
                .map(|(_, text)| text)
                .collect();
            assert_eq!(won.len(), 1, "{stored:?}");
            assert!(stored.iter().all(Result::is_ok), "{stored:?}");
            assert_eq!(people[0].remote.fetch(name).await.unwrap().as_ref(), Some(won[0]));
            // The next round begins from a text that all know.
            let same = format!("round {round}");
            let won = Expected::Hash(ContentHash::of(won[0]));
            assert!(matches!(people[0].remote.store(name, &same, &won).await, Ok(Stored::Done)));
        }
        expected = Expected::Hash(ContentHash::of(&format!("round {round}")));
    }
    let versions = office.database().await.versions(&repository).await.unwrap();
    assert_eq!(versions.len(), 3 * 2 * 2);
    let list = people[1].remote.list().await.unwrap();
    assert_eq!(list.keys().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_database_is_brought_up_to_date_once() {
    for office in Office::each().await {
        let (one, two) = tokio::join!(open(&office.address), open(&office.address));
        let repository = RepositoryName::parse("r").unwrap();
        one.add_member("ann", &repository, "token", "now").await.unwrap();
        assert_eq!(two.audit_log().await.unwrap().len(), 1);
        drop((one, two));
        assert_eq!(
            open(&office.address).await.audit_log().await.unwrap().len(),
            1,
            "and what is there stays"
        );
    }
}

/// What a newer version has made is left alone.
#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let Some(office) = Office::with_postgres().await else { return };
    drop(open(&office.address).await);
    postgres::execute(&office.address, "INSERT INTO loci_team_steps VALUES (99)").await;
    let error = Database::connect(&office.address).await.unwrap_err().to_string();
    assert!(error.contains("it is at step 99, this program knows 1"), "{error}");
}
