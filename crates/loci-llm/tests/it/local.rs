//! Connections to a server on this machine: kept, used again, and done without when the server closed them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loci_llm::Client;
use loci_testkit::Step;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{client, config, model, request, run};

/// Whether a connection is at rest in time is up to the scheduler, so a run gets this many chances.
const TRIES: usize = 200;

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let model = model((0..TRIES).map(|idx| Step::text(idx.to_string())).collect::<Vec<_>>()).await;
    let client = client(&model);
    let mut n_sent = 0;
    loop {
        assert!(run(&client, request()).await.has_ended());
        n_sent += 1;
        let connections: BTreeSet<_> = model.requests().iter().map(|request| request.connection).collect();
        if connections.len() < n_sent {
            break;
        }
        assert!(n_sent < TRIES, "no connection was used twice: {connections:?}");
    }
}

/// Servers close connections at rest, often at the very moment they are used again. Nobody is told: it is sent once more.
#[tokio::test]
async fn a_kept_connection_that_the_server_closes_costs_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let n_closed = Arc::new(AtomicUsize::new(0));
    let counter = n_closed.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_once(stream, counter.clone()));
        }
    });
    let client = Client::new(config(&base_url)).unwrap();
    for _ in 0..TRIES {
        let outcome = run(&client, request()).await;
        assert!(outcome.has_ended(), "{outcome:?}");
        if n_closed.load(Ordering::SeqCst) > 2 {
            return;
        }
    }
    panic!("no kept connection was used again");
}

/// Answers the first request; closes the connection when the second has come, and counts that.
async fn serve_once(stream: TcpStream, n_closed: Arc<AtomicUsize>) {
    let mut stream = BufReader::new(stream);
    read_request(&mut stream).await;
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    if read_request(&mut stream).await {
        n_closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// Tells whether a whole request came before the end.
async fn read_request(stream: &mut BufReader<TcpStream>) -> bool {
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).await.unwrap_or(0) > 0 {
        if line == "\r\n" {
            return stream.read_exact(&mut vec![0; length]).await.is_ok();
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    false
}
