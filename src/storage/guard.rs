//! Guards: the check that decides whether a request may pass the fence.
//!
//! A guard's state is a function of the requests that it admitted, in their order, so that a log of
//! them rebuilds it. The store asks [`Guard::check`] first, which changes nothing, and tells the
//! guard with [`Guard::admitted`] only when the request really went through: a refused or malformed
//! request leaves no mark.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::encoding::{EncodingError, Reader, Writer};
use crate::history::OpKind;

/// What a guard is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What one lock protects.
    pub domain: &'a str,
    /// The key.
    pub key: &'a str,
    /// Read or write.
    pub op: OpKind,
    /// The token on the wire, if there is one.
    pub version: Option<i64>,
    /// The version stored with the key, if the key is there.
    pub stored: Option<i64>,
}

/// What a guard says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The request may pass.
    Admit,
    /// The fence refuses it; the text goes into the answer.
    Refuse(String),
    /// The request lacks what this guard needs: it is malformed, and the fence was not asked.
    Malformed(String),
}

/// The check in front of the data.
///
/// ```
/// use leasehold::storage::{Ask, Decision, Guard};
///
/// /// Wrong on purpose: it looks at the key, not at the domain.
/// struct NewerThanStored;
/// impl Guard for NewerThanStored {
///     fn check(&self, ask: &Ask<'_>) -> Decision {
///         match (ask.stored, ask.version) {
///             (Some(stored), Some(given)) if given < stored => Decision::Refuse("stale".into()),
///             _ => Decision::Admit,
///         }
///     }
/// }
/// ```
pub trait Guard: Send {
    /// Decides, and changes nothing.
    fn check(&self, ask: &Ask<'_>) -> Decision;

    /// Is told that the request went through.
    fn admitted(&mut self, _ask: &Ask<'_>) {}

    /// What it calls itself in the files that it is kept in: another name does not read them.
    fn name(&self) -> &str {
        "own"
    }

    /// Its state as bytes, for [`Guard::restore`]; `None` if it cannot be kept on a disk, and with
    /// it no storage behind it. What it has not seen since comes again as requests that it admits:
    /// all writes, and the reads that carry a version.
    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes the state of an earlier life.
    ///
    /// # Errors
    /// When the bytes are not what [`Guard::save`] gives.
    fn restore(&mut self, saved: &[u8]) -> Result<(), EncodingError> {
        stateless(saved)
    }
}

/// The state of a guard that has none.
fn stateless(saved: &[u8]) -> Result<(), EncodingError> {
    match saved {
        [] => Ok(()),
        saved => Err(EncodingError(format!("{} bytes for a guard without state", saved.len()))),
    }
}

/// Accepts everything: no fence.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unfenced;

impl Guard for Unfenced {
    fn check(&self, _ask: &Ask<'_>) -> Decision {
        Decision::Admit
    }

    fn name(&self) -> &str {
        GuardKind::Unfenced.name()
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
}

/// The check of etcd's `contrib/lock/storage`: a write's version must equal the one stored with the
/// key. It is equality and not order, so once a key exists, only its first writer can write it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Equal;

impl Guard for Equal {
    fn check(&self, ask: &Ask<'_>) -> Decision {
        let given = ask.version.unwrap_or(0);
        match (ask.op, ask.stored) {
            (OpKind::Write, Some(stored)) if stored != given => Decision::Refuse(format!(
                "given version ({}) is different from the existing version ({})",
                GoHex(given),
                GoHex(stored)
            )),
            _ => Decision::Admit,
        }
    }

    fn name(&self) -> &str {
        GuardKind::Equal.name()
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }
}

/// One mark a domain, the highest token that was admitted; what is below it is refused.
///
/// Reads with a token raise the mark too: a holder announces itself with its first read. A read
/// without a token (absent, or below 1) is the old protocol's: it is neither checked nor noted.
#[derive(Debug, Clone, Default)]
pub struct Monotonic {
    marks: BTreeMap<String, i64>,
}

impl Monotonic {
    /// The highest token admitted in this domain; 0 before the first.
    pub fn mark(&self, domain: &str) -> i64 {
        self.marks.get(domain).copied().unwrap_or(0)
    }
}

impl Guard for Monotonic {
    fn check(&self, ask: &Ask<'_>) -> Decision {
        let Some(token) = ask.version.filter(|version| *version >= 1) else {
            return match (ask.op, ask.version) {
                (OpKind::Read, _) => Decision::Admit,
                (OpKind::Write, None) => Decision::Malformed(
                    "field \"version\" is missing: a write needs the fencing token, an integer >= 1"
                        .into(),
                ),
                (OpKind::Write, Some(version)) => Decision::Malformed(format!(
                    "field \"version\": {version} is no fencing token: write with an integer >= 1"
                )),
            };
        };
        let mark = self.mark(ask.domain);
        if token >= mark {
            return Decision::Admit;
        }
        Decision::Refuse(format!(
            "stale token: given version ({token}) is below the highest version ({mark}) of domain \
             {:?}: acquire the lock again and use its new token",
            ask.domain
        ))
    }

    fn admitted(&mut self, ask: &Ask<'_>) {
        let Some(token) = ask.version.filter(|version| *version >= 1) else { return };
        match self.marks.get_mut(ask.domain) {
            Some(mark) => *mark = token.max(*mark),
            None => {
                self.marks.insert(ask.domain.to_owned(), token);
            }
        }
    }

    fn name(&self) -> &str {
        GuardKind::Monotonic.name()
    }

    fn save(&self) -> Option<Vec<u8>> {
        let mut out = Writer::default();
        for (domain, mark) in &self.marks {
            out.bytes(domain.as_bytes());
            out.i64(*mark);
        }
        Some(out.finish())
    }

    fn restore(&mut self, saved: &[u8]) -> Result<(), EncodingError> {
        let mut from = Reader::new(saved);
        while !from.is_empty() {
            let domain = from.text()?;
            let mark = from.i64()?;
            self.marks.insert(domain, mark);
        }
        Ok(())
    }
}

/// An integer as Go's `%x` prints it: with a minus sign, not as two's complement.
struct GoHex(i64);

impl fmt::Display for GoHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:x}", if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs())
    }
}

/// The guards that come with the crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardKind {
    /// [`Unfenced`].
    Unfenced,
    /// [`Equal`].
    Equal,
    /// [`Monotonic`].
    Monotonic,
}

impl GuardKind {
    /// All of them.
    pub const ALL: [GuardKind; 3] = [GuardKind::Unfenced, GuardKind::Equal, GuardKind::Monotonic];

    /// A new guard of this kind.
    pub fn build(self) -> Box<dyn Guard> {
        match self {
            GuardKind::Unfenced => Box::new(Unfenced),
            GuardKind::Equal => Box::new(Equal),
            GuardKind::Monotonic => Box::<Monotonic>::default(),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            GuardKind::Unfenced => "unfenced",
            GuardKind::Equal => "equal",
            GuardKind::Monotonic => "monotonic",
        }
    }
}

impl fmt::Display for GuardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No guard has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown guard {0:?}: known are unfenced, equal, monotonic")]
pub struct UnknownGuard(String);

impl FromStr for GuardKind {
    type Err = UnknownGuard;

    fn from_str(name: &str) -> Result<Self, UnknownGuard> {
        let found = GuardKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownGuard(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(op: OpKind, version: Option<i64>) -> Ask<'static> {
        Ask { domain: "d", key: "k", op, version, stored: None }
    }

    /// Names round-trip, and a wrong one is told the right ones.
    #[test]
    fn names() {
        for kind in GuardKind::ALL {
            assert_eq!(kind.to_string().parse::<GuardKind>().unwrap(), kind);
        }
        assert!("fenced".parse::<GuardKind>().unwrap_err().to_string().contains("monotonic"));
    }

    /// The mark rises with reads and writes that carry a token, and with nothing else.
    #[test]
    fn monotonic_marks() {
        let mut guard = Monotonic::default();
        guard.admitted(&ask(OpKind::Read, Some(5)));
        guard.admitted(&ask(OpKind::Read, None));
        guard.admitted(&ask(OpKind::Write, Some(3)));
        assert_eq!((guard.mark("d"), guard.mark("other")), (5, 0));
        let stale = guard.check(&ask(OpKind::Read, Some(4)));
        assert!(matches!(stale, Decision::Refuse(text) if text.contains("(4)")));
        for version in [None, Some(0), Some(-1)] {
            assert_eq!(guard.check(&ask(OpKind::Read, version)), Decision::Admit);
            let write = guard.check(&ask(OpKind::Write, version));
            assert!(matches!(write, Decision::Malformed(text) if text.contains("version")));
        }
        assert_eq!(guard.check(&ask(OpKind::Write, Some(5))), Decision::Admit);
    }
}
