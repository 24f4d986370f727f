//! Who may do what, and what the server refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use loci_team::RepositoryName;

use crate::support::{Office, Person, ServerProcess, token};

/// Invariant 6 of `docs/design/team-memory.md`.
#[tokio::test]
async fn a_token_opens_one_repository_until_its_member_is_removed() {
    let office = Office::new();
    let server = ServerProcess::start(&office.database());
    let ann = office.person("ann", "one", server.address);
    ann.write("a.md", "text");
    assert_eq!(ann.push().await, Ok(vec!["a.md Sent".to_owned()]));

    let stranger = Person::new("nobody's", "one", server.address);
    let said = stranger.pull().await.unwrap_err();
    assert!(said.contains("401") && said.contains("No member has this token"), "{said}");
    let elsewhere = Person::new(&token("ann", "one"), "two", server.address);
    let said = elsewhere.pull().await.unwrap_err();
    assert!(said.contains("403") && said.contains("another repository"), "{said}");

    let repository = RepositoryName::parse("one").unwrap();
    assert!(office.store().add_member("ann", &repository, "another", "now").is_err());
    assert!(office.store().remove_member("ann", &repository, "now").unwrap());
    assert!(ann.pull().await.unwrap_err().contains("401"));

    let log = office.store().audit_log().unwrap();
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

/// Invariant 6 of `docs/design/team-memory.md`.
#[tokio::test]
async fn tokens_are_nowhere_in_the_database_and_others_cannot_read_it() {
    let office = Office::new();
    let server = ServerProcess::start(&office.database());
    let ann = office.person("ann", "one", server.address);
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
async fn the_server_takes_no_secret_no_bad_name_and_nothing_unconditional() {
    let office = Office::new();
    let server = ServerProcess::start(&office.database());
    let ann = office.person("ann", "one", server.address);
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
