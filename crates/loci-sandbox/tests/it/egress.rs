//! The proxy, spoken to as programs speak to it, with servers on the loopback behind it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use loci_sandbox::egress::rules::DomainRules;
use loci_sandbox::egress::{Egress, HostDecision, OwnProxies, UpstreamProxy, connections, forward};
use loci_sandbox::{Connections, ProxyConnection, ProxyPort, RefusedHosts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_secs(20);

fn rules(allowed: &[&str], denied: &[&str]) -> DomainRules {
    let mut rules = DomainRules::default();
    allowed.iter().for_each(|it| rules.allow(it).unwrap());
    denied.iter().for_each(|it| rules.deny(it).unwrap());
    rules
}

/// A proxy to which every name leads to the loopback.
fn egress(allowed: &[&str], denied: &[&str]) -> Egress {
    let mut egress = Egress::new(rules(allowed, denied), None);
    egress.resolver = Some(Arc::new(|_| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
    egress
}

/// Connects to a port of the proxy.
async fn client(egress: &Arc<Egress>, port: ProxyPort) -> TcpStream {
    client_of(egress, port, &RefusedHosts::default()).await
}

/// Connects to a port of the proxy, for a command whose refusals are kept.
async fn client_of(egress: &Arc<Egress>, port: ProxyPort, refused: &RefusedHosts) -> TcpStream {
    client_by(&connections(Arc::clone(egress)), port, refused).await
}

/// Connects to what takes the connections of a port.
async fn client_by(taker: &Connections, port: ProxyPort, refused: &RefusedHosts) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let stream = accepted.into_std().unwrap();
    taker(ProxyConnection { port, stream, command: None, refused: refused.clone() });
    client
}

/// Sends bytes and returns all that comes back.
async fn say(egress: &Arc<Egress>, port: ProxyPort, bytes: &[u8]) -> Vec<u8> {
    say_for(egress, port, bytes, &RefusedHosts::default()).await
}

/// The same for a command whose refusals are kept.
async fn say_for(egress: &Arc<Egress>, port: ProxyPort, bytes: &[u8], refused: &RefusedHosts) -> Vec<u8> {
    let taker = connections(Arc::clone(egress));
    say_by(&taker, port, bytes, refused).await
}

/// The same to whatever takes the connections of a port.
async fn say_by(taker: &Connections, port: ProxyPort, bytes: &[u8], refused: &RefusedHosts) -> Vec<u8> {
    let mut client = client_by(taker, port, refused).await;
    // Who is refused at once may be gone.
    client.write_all(bytes).await.ok();
    let mut answer = Vec::new();
    // A connection that is cut is an answer too.
    tokio::time::timeout(SOON, client.read_to_end(&mut answer)).await.unwrap().ok();
    answer
}

async fn say_text(egress: &Arc<Egress>, port: ProxyPort, bytes: &[u8]) -> String {
    String::from_utf8_lossy(&say(egress, port, bytes).await).into_owned()
}

/// A server that keeps what it is sent, answers once, and closes; returns its port and what it got.
async fn server(answer: &'static [u8]) -> (u16, tokio::task::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut got = vec![0; 64 << 10];
        let n = stream.read(&mut got).await.unwrap();
        got.truncate(n);
        stream.write_all(answer).await.unwrap();
        stream.shutdown().await.unwrap();
        got
    });
    (port, task)
}

#[tokio::test]
async fn connect_reaches_an_allowed_host_and_no_other() {
    let (port, got) = server(b"hello").await;
    let egress = Arc::new(egress(&["good.com", "127.0.0.1"], &["bad.com"]));
    let text = say_text(
        &egress,
        ProxyPort::Http,
        format!("CONNECT good.com:{port} HTTP/1.1\r\n\r\nping").as_bytes(),
    )
    .await;
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("hello"), "{text}");
    assert_eq!(got.await.unwrap(), b"ping");
    let refusals = RefusedHosts::default();
    for host in ["bad.com:443", "BAD.com.:443", "other.com:443", "sub.good.com:443"] {
        let request = format!("CONNECT {host} HTTP/1.1\r\n\r\n");
        let answer = say_for(&egress, ProxyPort::Http, request.as_bytes(), &refusals).await;
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 403") && text.contains("x-loci-sandbox: "), "{host}: {text}");
    }
    let refused = refusals.told().join("\n");
    assert!(
        refused.contains("`other.com:443`") && refused.contains("WebFetch(domain:other.com)"),
        "{refused}"
    );
    let text = say_text(&egress, ProxyPort::Http, b"CONNECT good.com@bad.com:443 HTTP/1.1\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 400"), "{text}");
}

#[tokio::test]
async fn allowed_name_that_leads_to_a_private_address_is_refused() {
    for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:10.0.0.1"] {
        let mut egress = Egress::new(rules(&["good.com"], &[]), None);
        let address: IpAddr = address.parse().unwrap();
        egress.resolver = Some(Arc::new(move |_| vec![address]));
        let refusals = RefusedHosts::default();
        let request = b"CONNECT good.com:80 HTTP/1.1\r\n\r\n";
        let answer = say_for(&Arc::new(egress), ProxyPort::Http, request, &refusals).await;
        let text = String::from_utf8_lossy(&answer);
        assert!(text.starts_with("HTTP/1.1 403") && text.contains("no public address"), "{address}: {text}");
        // What would allow it is named to people, and the network to no program.
        let number = address.to_canonical().to_string();
        assert!(!text.contains(&number) && refusals.told().join("").contains(&number), "{address}: {text}");
    }
    // Named by its number in no rule.
    let egress = Arc::new(egress(&["*"], &[]));
    for target in ["127.0.0.1:80", "2130706433:80", "[::ffff:127.0.0.1]:80", "0x7f.1:80"] {
        let text =
            say_text(&egress, ProxyPort::Http, format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await;
        assert!(text.starts_with("HTTP/1.1 403"), "{target}: {text}");
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_what_was_looked_at_is_connected_to() {
    let (port, got) = server(b"x").await;
    let n_calls = Arc::new(AtomicUsize::new(0));
    let mut egress = egress(&["good.com", "127.0.0.1"], &[]);
    let counted = Arc::clone(&n_calls);
    egress.resolver = Some(Arc::new(move |_| {
        // Another address for everybody who asks again.
        match counted.fetch_add(1, Ordering::SeqCst) {
            0 => vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            _ => vec!["169.254.169.254".parse().unwrap()],
        }
    }));
    let text = say_text(
        &Arc::new(egress),
        ProxyPort::Http,
        format!("CONNECT good.com:{port} HTTP/1.1\r\n\r\nx").as_bytes(),
    )
    .await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    got.await.unwrap();
    assert_eq!(n_calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn plain_request_has_the_host_that_was_decided_on_and_nothing_behind_it() {
    let (port, got) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let egress = Arc::new(egress(&["good.com", "127.0.0.1"], &[]));
    let request = format!(
        "POST http://good.com:{port}/a HTTP/1.1\r\nHost: evil.com\r\nContent-Length: 2\r\n\r\nokGET /secret HTTP/1.1\r\nHost: evil.com\r\n\r\n"
    );
    let text = say_text(&egress, ProxyPort::Http, request.as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let got = String::from_utf8(got.await.unwrap()).unwrap();
    assert!(
        got.contains(&format!("Host: good.com:{port}\r\n"))
            && !got.contains("evil")
            && !got.contains("secret"),
        "{got}"
    );
    let (port, _got) = server(b"HTTP/1.1 302 Found\r\nLocation: http://evil.com/\r\n\r\n").await;
    let text = say_text(
        &egress,
        ProxyPort::Http,
        format!("GET http://good.com:{port}/ HTTP/1.1\r\n\r\n").as_bytes(),
    )
    .await;
    assert!(text.contains("302"), "a redirect is the program's to follow, and asked about then: {text}");
}

/// A TLS greeting that names a host.
fn hello(name: &str) -> Vec<u8> {
    let two = |n: usize| u16::try_from(n).unwrap().to_be_bytes();
    let entry = [&[0][..], &two(name.len()), name.as_bytes()].concat();
    let list = [&two(entry.len())[..], &entry].concat();
    let extensions = [&[0, 0][..], &two(list.len()), &list].concat();
    let body =
        [&[3, 3][..], &[7; 32], &[0], &two(2), &[0x13, 1], &[1, 0], &two(extensions.len()), &extensions]
            .concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    let handshake = [&[1][..], &length[1..], &body].concat();
    [&[0x16, 3, 1][..], &two(handshake.len()), &handshake].concat()
}

#[tokio::test]
async fn tls_greeting_must_name_the_host_of_the_tunnel() {
    let egress = Arc::new(egress(&["good.com", "127.0.0.1"], &[]));
    for (name, passes) in
        [("good.com", true), ("GOOD.com", true), ("evil.com", false), ("good.com.evil.com", false)]
    {
        let (port, got) = server(b"answer").await;
        let mut request = format!("CONNECT good.com:{port} HTTP/1.1\r\n\r\n").into_bytes();
        request.extend(hello(name));
        let text = say_text(&egress, ProxyPort::Http, &request).await;
        assert_eq!(text.contains("answer"), passes, "{name}: {text}");
        if passes {
            assert_eq!(got.await.unwrap(), hello(name), "not a byte is changed");
        } else {
            // The connection was made and nothing was sent on it.
            assert_eq!(got.await.unwrap(), b"", "{name}");
        }
    }
}

#[tokio::test]
async fn socks_serves_names_and_refuses_what_is_not_certain() {
    let (port, got) = server(b"hello").await;
    let egress = Arc::new(egress(&["good.com", "127.0.0.1"], &[]));
    let request = |command: u8, name: &[u8], port: u16| {
        [
            &[5, 1, 0, 5, command, 0, 3, u8::try_from(name.len()).unwrap()][..],
            name,
            &port.to_be_bytes(),
            b"ping",
        ]
        .concat()
    };
    let answer = say(&egress, ProxyPort::Socks, &request(1, b"good.com", port)).await;
    assert_eq!((&answer[..4], &answer[answer.len() - 5..]), (&[5, 0, 5, 0][..], &b"hello"[..]));
    assert_eq!(got.await.unwrap(), b"ping");
    for (command, name, code) in [
        (1, &b"evil.com"[..], 2),
        (1, b"good.com\0.evil.com", 2),
        (1, b"evil.com\0good.com", 2),
        (1, &[b'a'; 255][..], 2),
        (2, b"good.com", 7),
        (3, b"good.com", 7),
    ] {
        let answer = say(&egress, ProxyPort::Socks, &request(command, name, 80)).await;
        assert_eq!(answer.get(..4), Some(&[5, 0, 5, code][..]), "{command} {name:?}");
    }
    assert_eq!(say(&egress, ProxyPort::Socks, b"\x04\x01").await, b"", "another version");
}

#[tokio::test]
async fn one_question_is_asked_about_a_host_and_its_answer_kept() {
    let n_asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_asked);
    let egress = egress(&["127.0.0.1"], &[]);
    egress.set_asker(Arc::new(move |target, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let is_good = target.host.to_string() == "yes.com";
        Box::pin(async move {
            tokio::task::yield_now().await;
            if is_good {
                HostDecision::Allowed
            } else {
                HostDecision::Refused(Some("use a mirror".to_owned()))
            }
        })
    }));
    let egress = Arc::new(egress);
    let target = |text: &str| loci_sandbox::egress::target::Target::parse(text).unwrap();
    let (yes, no) = (target("yes.com:443"), target("no.com:443"));
    let (a, b, c) =
        tokio::join!(egress.decide(&yes, None), egress.decide(&yes, None), egress.decide(&no, None));
    assert!(a.is_ok() && b.is_ok());
    let refusal = c.unwrap_err();
    assert!(refusal.why.contains("said no") && !refusal.why.contains("mirror"), "{refusal:?}");
    assert!(refusal.text.contains("use a mirror") && refusal.text.contains("`no.com:443`"), "{refusal:?}");
    assert!(
        egress.decide(&no, None).await.is_err() && egress.decide(&target("yes.com:80"), None).await.is_ok()
    );
    assert_eq!(n_asked.load(Ordering::SeqCst), 2, "once for each host");
}

#[tokio::test]
async fn proxy_of_the_machine_is_asked_for_a_tunnel_behind_the_decision() {
    let (port, got) = server(b"HTTP/1.1 200 OK\r\n\r\nthrough").await;
    let mut egress = egress(&["good.com"], &[]);
    egress.upstream = UpstreamProxy::parse(&format!("http://u:p@127.0.0.1:{port}"), "");
    let egress = Arc::new(egress);
    let refused = say_text(&egress, ProxyPort::Http, b"CONNECT evil.com:443 HTTP/1.1\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let text = say_text(&egress, ProxyPort::Http, b"CONNECT good.com:443 HTTP/1.1\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("through"), "{text}");
    let got = String::from_utf8(got.await.unwrap()).unwrap();
    assert!(got.starts_with("CONNECT good.com:443 HTTP/1.1\r\n") && got.contains("Basic dTpw"), "{got}");
}

#[tokio::test]
async fn proxy_of_the_machine_is_told_who_asks_for_a_plain_request_too() {
    let (port, got) = server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let mut egress = egress(&["good.com"], &[]);
    egress.upstream = UpstreamProxy::parse(&format!("http://u:p@127.0.0.1:{port}"), "");
    let request =
        b"GET http://good.com/a HTTP/1.1\r\nHost: good.com\r\nProxy-Authorization: Basic aGVy\r\n\r\n";
    let text = say_text(&Arc::new(egress), ProxyPort::Http, request).await;
    assert!(text.ends_with("ok"), "{text}");
    let got = String::from_utf8(got.await.unwrap()).unwrap();
    let start = "GET http://good.com/a HTTP/1.1\r\nProxy-Authorization: Basic dTpw\r\n";
    assert!(got.starts_with(start), "{got}");
    assert!(!got.contains("aGVy"), "what a command says of itself is not passed on: {got}");
}

#[tokio::test]
async fn large_upload_is_carried_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let counting = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut sink = tokio::io::sink();
        tokio::io::copy(&mut stream, &mut sink).await.unwrap()
    });
    let egress = Arc::new(egress(&["good.com", "127.0.0.1"], &[]));
    let mut client = client(&egress, ProxyPort::Http).await;
    client.write_all(format!("CONNECT good.com:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..32 {
        client.write_all(&chunk).await.unwrap();
    }
    client.shutdown().await.unwrap();
    assert_eq!(counting.await.unwrap(), 32 << 20);
}

#[tokio::test]
async fn large_download_is_carried_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let sending = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..32 {
            stream.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
        }
    });
    let egress = Arc::new(egress(&["good.com", "127.0.0.1"], &[]));
    let mut client = client(&egress, ProxyPort::Http).await;
    client.write_all(format!("CONNECT good.com:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    client.read_exact(&mut [0; 39]).await.unwrap();
    let n_bytes = tokio::io::copy(&mut client, &mut tokio::io::sink()).await.unwrap();
    assert_eq!(n_bytes, 32 << 20);
    sending.await.unwrap();
}

/// A proxy of the user's own takes the place of one of ours, and the other stays.
#[tokio::test]
async fn proxy_of_the_user_takes_what_it_speaks_and_the_rest_is_decided_on_as_ever() {
    let request = b"CONNECT anything.test:443 HTTP/1.1\r\n\r\n";
    let ours = || connections(Arc::new(egress(&[], &[])));
    let refusals = RefusedHosts::default();
    let (port, got) = server(b"of the user").await;
    let by_http = forward(OwnProxies { http: Some(port), socks: None }, ours());
    assert_eq!(say_by(&by_http, ProxyPort::Http, request, &refusals).await, b"of the user");
    assert_eq!(got.await.unwrap(), request);
    assert_eq!(refusals.told(), Vec::<String>::new());
    let greeting = [b"\x05\x01\x00\x05\x01\x00\x03\x0danything.test\x01\xbb".as_slice()].concat();
    let answer = say_by(&by_http, ProxyPort::Socks, &greeting, &refusals).await;
    assert_eq!(answer[..4], [5, 0, 5, 2], "ours refuses it");
    assert!(refusals.told()[0].contains("`anything.test:443` was refused"), "{:?}", refusals.told());
    let by_socks = forward(OwnProxies { http: None, socks: Some(port) }, ours());
    let answer = say_by(&by_socks, ProxyPort::Http, request, &RefusedHosts::default()).await;
    assert!(answer.starts_with(b"HTTP/1.1 403"), "{}", String::from_utf8_lossy(&answer));
    // Nobody listens there any more.
    let refusals = RefusedHosts::default();
    assert_eq!(say_by(&by_socks, ProxyPort::Socks, &greeting, &refusals).await, b"");
    let told = refusals.told().join("");
    assert!(told.contains("`sandbox.network.socksProxyPort`") && told.contains(&port.to_string()), "{told}");
}
