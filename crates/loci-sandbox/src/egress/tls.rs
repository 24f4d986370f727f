//! The name in the greeting of a TLS connection, which must be the one that was decided on (SB-8).

/// What the first bytes of a connection are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Greeting {
    /// More is needed to tell.
    Incomplete,
    /// No TLS.
    Other,
    /// TLS that names this host, or none.
    Tls(Option<String>),
    /// TLS that cannot be read, or names more than one.
    Broken,
}

/// How much of a greeting is looked at.
pub(super) const MOST_BYTES: usize = 64 << 10;

/// Looks at the first bytes that a client sends.
pub(super) fn greeting(bytes: &[u8]) -> Greeting {
    match bytes {
        [] | [0x16] => return Greeting::Incomplete,
        [0x16, 3, ..] => {}
        _ => return Greeting::Other,
    }
    let mut handshake = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(length) = whole_hello(&handshake) {
            return match handshake.get(..length) {
                Some(hello) => server_name(&hello[4..]).map_or(Greeting::Broken, Greeting::Tls),
                None => Greeting::Broken,
            };
        }
        let [kind, _, _, high, low, ..] = rest else { break };
        if *kind != 0x16 {
            return Greeting::Broken;
        }
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some(body) = rest.get(5..5 + length) else { break };
        handshake.extend_from_slice(body);
        rest = &rest[5 + length..];
    }
    if bytes.len() >= MOST_BYTES { Greeting::Broken } else { Greeting::Incomplete }
}

/// Returns the length of a whole `ClientHello`, its head included.
fn whole_hello(handshake: &[u8]) -> Option<usize> {
    let [kind, a, b, c, ..] = handshake else { return None };
    if *kind != 1 {
        // Something else than a greeting: as long as what is there, so that it is read and found broken.
        return Some(usize::MAX);
    }
    let length = 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
    (handshake.len() >= length).then_some(length)
}

/// Reads the server's name; the outer `None` is a greeting that cannot be read.
fn server_name(hello: &[u8]) -> Option<Option<String>> {
    let mut reader = Reader(hello);
    // Version and random bytes, session, ciphers, compressions.
    reader.take(34)?;
    let session = usize::from(reader.byte()?);
    reader.take(session)?;
    let ciphers = reader.length()?;
    reader.take(ciphers)?;
    let compressions = usize::from(reader.byte()?);
    reader.take(compressions)?;
    if reader.0.is_empty() {
        return Some(None);
    }
    let length = reader.length()?;
    let mut extensions = Reader(reader.take(length)?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.length()?;
        let length = extensions.length()?;
        let body = extensions.take(length)?;
        if kind == 0 {
            // Twice is two names.
            if found.is_some() {
                return None;
            }
            found = Some(one_name(body)?);
        }
    }
    Some(found)
}

fn one_name(list: &[u8]) -> Option<String> {
    let mut reader = Reader(list);
    let length = reader.length()?;
    let mut names = Reader(reader.take(length)?);
    let kind = names.byte()?;
    let length = names.length()?;
    let name = names.take(length)?;
    let is_one = kind == 0 && names.0.is_empty() && reader.0.is_empty();
    let text = std::str::from_utf8(name).ok().filter(|_| is_one)?;
    Some(text.to_ascii_lowercase().trim_end_matches('.').to_owned())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|it| it[0])
    }

    fn length(&mut self) -> Option<usize> {
        self.take(2).map(|it| usize::from(u16::from_be_bytes([it[0], it[1]])))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Makes a greeting with these names, each in an extension of its own.
    pub(in super::super) fn hello(names: &[&str]) -> Vec<u8> {
        let two = |n: usize| u16::try_from(n).unwrap().to_be_bytes();
        let mut extensions = Vec::new();
        for name in names {
            let entry = [&[0][..], &two(name.len()), name.as_bytes()].concat();
            let list = [&two(entry.len())[..], &entry].concat();
            extensions.extend([&[0, 0][..], &two(list.len()), &list].concat());
        }
        let body =
            [&[3, 3][..], &[7; 32], &[0], &two(2), &[0x13, 1], &[1, 0], &two(extensions.len()), &extensions]
                .concat();
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let handshake = [&[1][..], &length[1..], &body].concat();
        [&[0x16, 3, 1][..], &two(handshake.len()), &handshake].concat()
    }

    #[test]
    fn the_name_is_read_and_nothing_else_passes_for_one() {
        let name = |text: &str| Greeting::Tls(Some(text.to_owned()));
        assert_eq!(greeting(&hello(&["Example.com"])), name("example.com"));
        assert_eq!(greeting(&hello(&[])), Greeting::Tls(None));
        assert_eq!(greeting(&hello(&["a.com", "b.com"])), Greeting::Broken);
        assert_eq!(greeting(b"GET / HTTP/1.1\r\n"), Greeting::Other);
        assert_eq!(greeting(b"SSH-2.0-x\r\n"), Greeting::Other);
        let whole = hello(&["example.com"]);
        for cut in 1..whole.len() {
            assert_eq!(greeting(&whole[..cut]), Greeting::Incomplete, "{cut}");
        }
        // In two records.
        let body = &whole[5..];
        let record = |part: &[u8]| {
            [&[0x16, 3, 1][..], &u16::try_from(part.len()).unwrap().to_be_bytes(), part].concat()
        };
        let split = [record(&body[..9]), record(&body[9..])].concat();
        assert_eq!(greeting(&split), name("example.com"));
        assert_eq!(greeting(&[0x16, 3, 1, 0, 4, 2, 0, 0, 0]), Greeting::Broken);
    }
}
