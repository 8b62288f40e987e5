//! Bytes of what is kept on the disk: integers, strings, and the requests that changed the state.
//!
//! Little endian, lengths in front, no alignment. The frame around it has the checksum, so what is
//! read here was written by this code; it is checked all the same, because a wrong program may have
//! written it.

use super::protocol::Request;
use crate::history::OpKind;

/// Kept bytes that make no sense to the reader, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EncodingError(pub String);

/// Appends what will be read by [`Reader`].
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Appends a number.
    pub fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends a number that may be negative.
    pub fn i64(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends a byte.
    pub fn u8(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Appends bytes and how many they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes apart what [`Writer`] wrote.
#[derive(Debug, Clone)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader(bytes)
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], EncodingError> {
        let end = usize::try_from(length).ok().filter(|end| *end <= self.0.len());
        let Some(end) = end else {
            let text = format!("{length} bytes are missing: {} are left", self.0.len());
            return Err(EncodingError(text));
        };
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        Ok(taken)
    }

    fn eight(&mut self) -> Result<[u8; 8], EncodingError> {
        let mut eight = [0; 8];
        eight.copy_from_slice(self.take(8)?);
        Ok(eight)
    }

    /// The next number.
    ///
    /// # Errors
    /// When the bytes end before it does, as with all methods here.
    pub fn u64(&mut self) -> Result<u64, EncodingError> {
        Ok(u64::from_le_bytes(self.eight()?))
    }

    /// The next number that may be negative.
    ///
    /// # Errors
    /// See [`Reader::u64`].
    pub fn i64(&mut self) -> Result<i64, EncodingError> {
        Ok(i64::from_le_bytes(self.eight()?))
    }

    /// The next byte.
    ///
    /// # Errors
    /// See [`Reader::u64`].
    pub fn u8(&mut self) -> Result<u8, EncodingError> {
        Ok(self.take(1)?[0])
    }

    /// The next bytes.
    ///
    /// # Errors
    /// See [`Reader::u64`].
    pub fn bytes(&mut self) -> Result<&'a [u8], EncodingError> {
        let length = self.u64()?;
        self.take(length)
    }

    /// The next bytes as text.
    ///
    /// # Errors
    /// See [`Reader::u64`]; and when they are no text.
    pub fn text(&mut self) -> Result<String, EncodingError> {
        let bytes = self.bytes()?.to_vec();
        String::from_utf8(bytes).map_err(|error| EncodingError(error.to_string()))
    }
}

/// A request that changed the state, and its place in the order of application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) index: u64,
    pub(super) request: Request,
}

const WRITE: u8 = 1;
const HAS_VERSION: u8 = 2;
const HAS_SEQ: u8 = 4;

/// Appends an entry.
pub(super) fn write_entry(out: &mut Writer, index: u64, request: &Request) {
    let mut flags = 0;
    if request.op == OpKind::Write {
        flags |= WRITE;
    }
    if request.version.is_some() {
        flags |= HAS_VERSION;
    }
    if request.seq.is_some() {
        flags |= HAS_SEQ;
    }
    out.u8(flags);
    out.u64(index);
    out.bytes(request.domain.as_bytes());
    out.bytes(request.key.as_bytes());
    if let Some(version) = request.version {
        out.i64(version);
    }
    if let Some(seq) = request.seq {
        out.u64(seq);
    }
    // A read's too: it is part of the hash by which a resend is known.
    out.bytes(request.val.as_bytes());
}

/// Reads an entry.
pub(super) fn read_entry(from: &mut Reader<'_>) -> Result<Entry, EncodingError> {
    let flags = from.u8()?;
    if flags & !(WRITE | HAS_VERSION | HAS_SEQ) != 0 {
        return Err(EncodingError(format!("{flags} is no kind of request")));
    }
    let op = if flags & WRITE != 0 { OpKind::Write } else { OpKind::Read };
    let index = from.u64()?;
    let (domain, key) = (from.text()?, from.text()?);
    let version = if flags & HAS_VERSION != 0 { Some(from.i64()?) } else { None };
    let seq = if flags & HAS_SEQ != 0 { Some(from.u64()?) } else { None };
    let val = from.text()?;
    Ok(Entry { index, request: Request { op, key, val, version, domain, seq } })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is read, and what is cut short or foreign is an error.
    #[test]
    fn entries_round_trip() {
        let old = Request::write("k", "v", i64::MIN);
        let numbered = Request { domain: "d".into(), seq: Some(u64::MAX), ..old.clone() };
        let read = Request { val: "odd".into(), version: Some(7), ..Request::read("é") };
        for (index, request) in [(1, old), (u64::MAX, numbered), (3, read), (4, Request::read(""))]
        {
            let mut out = Writer::default();
            write_entry(&mut out, index, &request);
            let bytes = out.finish();
            let mut from = Reader::new(&bytes);
            assert_eq!(read_entry(&mut from).unwrap(), Entry { index, request });
            assert!(from.is_empty());
            for length in 0..bytes.len() {
                assert!(read_entry(&mut Reader::new(&bytes[..length])).is_err());
            }
        }
        assert!(read_entry(&mut Reader::new(&[0xff; 64])).is_err());
        assert!(Reader::new(&[1, 0, 0, 0, 0, 0, 0, 0, 0xff]).text().is_err());
    }
}
