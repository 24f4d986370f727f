//! The entries of a git index that stand for other repositories: git looks into those as well, by their own configuration.

/// Returns the paths of all submodules in an index; `None` when it cannot be read.
pub(super) fn links(index: &[u8], hash_len: usize) -> Option<Vec<String>> {
    let header = index.get(..12)?;
    let version = number(header, 4)?;
    if &header[..4] != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut path: Vec<u8> = Vec::new();
    let mut found = Vec::new();
    for _ in 0..number(header, 8)? {
        let start = at;
        let mode = number(index, start + 24)?;
        let flags_at = start + 40 + hash_len;
        let is_extended = index.get(flags_at)? & 0x40 != 0;
        at = flags_at + if is_extended { 4 } else { 2 };
        if version == 4 {
            let n_dropped = variable_number(index, &mut at)?;
            path.truncate(path.len().checked_sub(n_dropped)?);
        } else {
            path.clear();
        }
        let rest = index.get(at..)?;
        let len = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&rest[..len]);
        at += len + 1;
        if version < 4 {
            // Entries end with one to eight zeros, so that the next begins at a multiple of eight.
            at = start + (at - start).next_multiple_of(8);
        }
        if mode >> 12 == 0b1110 {
            found.push(String::from_utf8(path.clone()).ok()?);
        }
    }
    Some(found)
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(four)).ok()
}

fn variable_number(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    for _ in 0..6 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
        // Each further byte counts from one above what fewer could say.
        value += 1;
    }
    None
}
