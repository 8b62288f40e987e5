//! The bytes of a log file: a header, then frames, each under checksums of its own.
//!
//! A frame is what one sync makes durable. The next one is appended only after that, so a crash can
//! harm the last frame and no other: harm to any other is damage. Checksums are seeded with the
//! place in the file, so that a frame is valid nowhere else, and cover the frame's head by itself,
//! so that a frame behind a damaged one can be found.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of the header, and of each frame's head.
pub(super) const HEAD: usize = 32;
const FILE_MAGIC: &[u8; 8] = b"LEASEHLD";
const FRAME_MAGIC: &[u8; 4] = b"lhfr";
/// The format that this program writes, and the only one it reads.
const VERSION: u32 = 1;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The whole state; the first frame of a file, and no other.
    Snapshot,
    /// A process began to serve.
    Boot,
    /// Requests in the order of their application.
    Batch,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Snapshot, Kind::Boot, Kind::Batch];

    fn number(self) -> u32 {
        match self {
            Kind::Snapshot => 1,
            Kind::Boot => 2,
            Kind::Batch => 3,
        }
    }
}

/// A frame of a file that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Where its head begins.
    pub(super) offset: usize,
    pub(super) kind: Kind,
    pub(super) payload: &'a [u8],
}

/// What a file holds, as far as it can be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contents<'a> {
    pub(super) frames: Vec<Frame<'a>>,
    /// Where the valid part ends. What is behind it is a torn tail.
    pub(super) end: usize,
}

/// Where a file is damaged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) offset: usize,
    pub(super) what: String,
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// The header of the file of this generation.
pub(super) fn file_header(generation: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEAD);
    header.extend_from_slice(FILE_MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&generation.to_le_bytes());
    header.extend_from_slice(&xxh3_64_with_seed(&header, 0).to_le_bytes());
    header
}

/// Appends a frame that will begin at this offset.
pub(super) fn write(out: &mut Vec<u8>, offset: u64, kind: Kind, payload: &[u8]) {
    let start = out.len();
    out.reserve(HEAD + payload.len());
    out.extend_from_slice(FRAME_MAGIC);
    out.extend_from_slice(&kind.number().to_le_bytes());
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(&xxh3_64_with_seed(payload, offset).to_le_bytes());
    let check = xxh3_64_with_seed(&out[start..], offset);
    out.extend_from_slice(&check.to_le_bytes());
    out.extend_from_slice(payload);
}

/// A frame's head: what it says of its payload.
struct Head {
    kind: Kind,
    length: u64,
    check: u64,
}

fn head(bytes: &[u8], offset: usize) -> Option<Head> {
    let head: [u8; HEAD] = field(bytes, offset)?;
    let check = u64::from_le_bytes(field(&head, 24)?);
    if !head.starts_with(FRAME_MAGIC) || xxh3_64_with_seed(&head[..24], offset as u64) != check {
        return None;
    }
    let number = u32::from_le_bytes(field(&head, 4)?);
    let kind = Kind::ALL.into_iter().find(|kind| kind.number() == number)?;
    let length = u64::from_le_bytes(field(&head, 8)?);
    Some(Head { kind, length, check: u64::from_le_bytes(field(&head, 16)?) })
}

/// Reads a file.
///
/// # Errors
/// When it is damaged elsewhere than at its end, or is no file of this format and generation.
pub(super) fn read(bytes: &[u8], generation: u64) -> Result<Contents<'_>, Damage> {
    check_header(bytes, generation)?;
    let mut contents = Contents { frames: Vec::new(), end: HEAD };
    while contents.end < bytes.len() {
        let offset = contents.end;
        let Some(head) = head(bytes, offset) else {
            return torn_or_damaged(bytes, contents);
        };
        let start = offset + HEAD;
        let end = usize::try_from(head.length).ok().and_then(|length| start.checked_add(length));
        let end = end.unwrap_or(usize::MAX);
        match bytes.get(start..end) {
            Some(payload) if xxh3_64_with_seed(payload, offset as u64) == head.check => {
                contents.frames.push(Frame { offset, kind: head.kind, payload });
                contents.end = end;
            }
            Some(_) if end < bytes.len() => {
                let what = "the checksum of a frame is wrong, and it is not the last one";
                return Err(Damage { offset, what: what.to_owned() });
            }
            _ => break,
        }
    }
    Ok(contents)
}

/// The head at the end of what is valid makes no sense: is there a frame behind it?
fn torn_or_damaged<'a>(bytes: &'a [u8], contents: Contents<'a>) -> Result<Contents<'a>, Damage> {
    let offset = contents.end;
    let behind = (offset + 1..bytes.len()).find(|at| {
        // The first byte tells nearly always, and costs nothing.
        bytes[*at] == FRAME_MAGIC[0] && head(bytes, *at).is_some()
    });
    match behind {
        Some(at) => {
            let what = format!("the head of a frame is damaged: the next valid one is at {at}");
            Err(Damage { offset, what })
        }
        None => Ok(contents),
    }
}

fn check_header(bytes: &[u8], generation: u64) -> Result<(), Damage> {
    let damage = |what: String| Err(Damage { offset: 0, what });
    let Some(header) = bytes.get(..HEAD) else {
        return damage(format!("{} bytes are no header of a log: it has {HEAD}", bytes.len()));
    };
    if !header.starts_with(FILE_MAGIC) {
        return damage("it is no log of this storage".to_owned());
    }
    let version = u32::from_le_bytes(field(header, 8).unwrap_or_default());
    let expected = file_header(generation);
    let check = xxh3_64_with_seed(&header[..24], 0).to_le_bytes();
    if check != header[24..] {
        return damage("the checksum of the header is wrong".to_owned());
    }
    if version != VERSION {
        return damage(format!("format {version} is unknown: this program reads {VERSION}"));
    }
    if header != expected {
        return damage("the header is that of another generation: was it renamed?".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut file = file_header(3);
        for payload in payloads {
            let offset = file.len() as u64;
            write(&mut file, offset, Kind::Batch, payload);
        }
        file
    }

    fn lengths(bytes: &[u8]) -> Result<Vec<usize>, usize> {
        let contents = read(bytes, 3).map_err(|damage| damage.offset)?;
        Ok(contents.frames.iter().map(|frame| frame.payload.len()).collect())
    }

    /// Cut anywhere in its last frame, a file has the frames before; whole, it has all.
    #[test]
    fn a_torn_tail_is_told_from_the_rest() {
        let whole = file(&[b"one", b"", b"three"]);
        assert_eq!(lengths(&whole), Ok(vec![3, 0, 5]));
        let last = whole.len() - HEAD - 5;
        for cut in last..whole.len() {
            assert_eq!(lengths(&whole[..cut]), Ok(vec![3, 0]), "cut at {cut}");
            let mut zeros = whole[..cut].to_vec();
            zeros.resize(whole.len(), 0);
            assert_eq!(lengths(&zeros), Ok(vec![3, 0]), "zeros from {cut}");
        }
    }

    /// Any changed bit before the last frame is damage, and is said to be where it is.
    #[test]
    fn damage_before_the_last_frame_is_found() {
        let whole = file(&[b"one", b"two", b"three"]);
        let (first, second) = (HEAD, HEAD + HEAD + 3);
        let last = second + HEAD + 3;
        for at in 0..last * 8 {
            let mut bytes = whole.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            let expected = match at / 8 {
                at if at < first => 0,
                at if at < second => first,
                _ => second,
            };
            assert_eq!(lengths(&bytes), Err(expected), "bit {at}");
        }
        let mut bytes = whole.clone();
        *bytes.last_mut().unwrap() ^= 1;
        assert_eq!(lengths(&bytes), Ok(vec![3, 3]));
    }

    /// A frame is valid at its place only: a value that looks like one is not taken for one.
    #[test]
    fn a_frame_is_valid_at_its_place_only() {
        let mut inner = Vec::new();
        write(&mut inner, 0, Kind::Batch, b"inner");
        let whole = file(&[b"one", &inner]);
        let torn = HEAD + HEAD + 3;
        let mut bytes = whole.clone();
        bytes[torn] ^= 1;
        assert_eq!(lengths(&bytes), Ok(vec![3]));
        assert_eq!(lengths(b"short"), Err(0));
        assert_eq!(read(&whole, 4).unwrap_err().offset, 0);
    }
}
