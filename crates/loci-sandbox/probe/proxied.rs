//! Probes that speak to the proxy as programs do.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// Runs a probe by its name; none where it is not one of these.
pub(crate) fn run(name: &str, a: &str, b: &str) -> Option<io::Result<String>> {
    match name {
        "proxy-connect" => Some(connect(a, b)),
        "proxy-get" => Some(get(a)),
        "proxy-follow" => Some(follow(a)),
        "spend" => Some(spend(a)),
        "loopback-packets" => Some(loopback_packets()),
        "proxy-env" => Some(Ok(environment())),
        _ => None,
    }
}

fn proxy() -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", 3128))?;
    stream.set_read_timeout(Some(SOON))?;
    Ok(stream)
}

/// Asks for a tunnel and sends a word through it; returns the status, and what came back.
fn connect(target: &str, word: &str) -> io::Result<String> {
    let mut stream = proxy()?;
    write!(stream, "CONNECT {target} HTTP/1.1\r\n\r\n")?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (status, _) = head(&mut reader)?;
    if status != "200" {
        return Ok(status);
    }
    stream.write_all(word.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    reader.read_to_string(&mut answer)?;
    Ok(format!("{status} {answer}"))
}

/// Fetches a page; returns its status.
fn get(url: &str) -> io::Result<String> {
    let mut stream = proxy()?;
    write!(stream, "GET {url} HTTP/1.1\r\n\r\n")?;
    head(&mut BufReader::new(stream)).map(|(status, _)| status)
}

/// Fetches a page and then where it leads; returns both statuses.
fn follow(url: &str) -> io::Result<String> {
    let mut stream = proxy()?;
    write!(stream, "GET {url} HTTP/1.1\r\n\r\n")?;
    let (first, headers) = head(&mut BufReader::new(stream))?;
    let location = headers
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("location: ").map(str::to_owned));
    match location {
        Some(location) => Ok(format!("{first} {}", get(&location)?)),
        None => Ok(first),
    }
}

fn head(reader: &mut impl BufRead) -> io::Result<(String, Vec<String>)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let status = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or("closed").to_owned();
    Ok((status, lines))
}

/// Holds a connection that nobody uses, works for a while, and says what the first process has done meanwhile.
fn spend(target: &str) -> io::Result<String> {
    let mut stream = proxy()?;
    write!(stream, "CONNECT {target} HTTP/1.1\r\n\r\n")?;
    head(&mut BufReader::new(stream.try_clone()?))?;
    let (first, own) = (ticks("1")?, ticks("self")?);
    while ticks("self")? < own + 50 {
        std::hint::black_box((0..1_000_000_u64).sum::<u64>());
    }
    let spent = ticks("1")? - first;
    Ok(if spent < 2 { "the first process has spent nothing".to_owned() } else { format!("{spent} ticks") })
}

/// Returns the processor time of a process, in hundredths of a second.
fn ticks(process: &str) -> io::Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |idx: usize| fields.get(idx).and_then(|it| it.parse::<u64>().ok()).unwrap_or_default();
    Ok(number(11) + number(12))
}

/// Returns what leads programs to the proxy, and what keeps them from it.
fn environment() -> String {
    let names = ["HTTP_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "no_proxy"];
    let value = |name: &str| std::env::var(name).unwrap_or_else(|_| "unset".to_owned());
    names.map(|name| format!("{name}={}", value(name))).join(" ")
}

/// Returns how large packets of IPv4 may be on the loopback; `unknown` where the kernel does not say.
fn loopback_packets() -> io::Result<String> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, socket};
    const HEADERS: usize = 16 + 16;
    // `IFLA_GSO_IPV4_MAX_SIZE`
    const SIZE: u16 = 63;
    let words = [
        u32::try_from(HEADERS).unwrap_or_default(),
        u32::from(libc::RTM_GETLINK) | 1 << 16,
        0,
        0,
        0,
        1,
        0,
        0,
    ];
    let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    send(&netlink, words.map(u32::to_ne_bytes).as_flattened(), SendFlags::empty())?;
    let mut answer = vec![0; 64 << 10];
    let (_, n) = recv(&netlink, &mut answer, RecvFlags::empty())?;
    let mut attributes = answer.get(HEADERS..n).unwrap_or_default();
    while let [a, b, c, d, value @ ..] = attributes {
        let (length, kind) = (u16::from_ne_bytes([*a, *b]), u16::from_ne_bytes([*c, *d]));
        if let (SIZE, [e, f, g, h, ..]) = (kind, value) {
            return Ok(u32::from_ne_bytes([*e, *f, *g, *h]).to_string());
        }
        attributes = attributes.get(usize::from(length.max(4)).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok("unknown".to_owned())
}
