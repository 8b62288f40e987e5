//! A case: all that decides a run, and the token that carries it.
//!
//! Seed, scenario, options and the explicit plan make a run; nothing else does. A replay token
//! holds them with the versions of format and crate and the run hash, so that a replay can tell
//! "the same run", "not deterministic" and "another version of the crate" apart.

mod json;

use data_encoding::{BASE64URL_NOPAD, DecodeKind};
pub use json::{CASE_VERSION, CaseError, parse_field, parse_json};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::{history::hash::RunHash, plan::Plan, seed::Seed};

/// The most clients that a case may have.
pub const CLIENTS_MAX: u8 = 16;
/// The longest lease that a case may have its clients ask for, in seconds: in a longer one nothing
/// that lasts as long as it does would end within the run.
pub const TTL_S_MAX: u16 = 20;
/// All of a case's holdings, in the parts by which it counts readers.
pub const READERS_MAX: u16 = 1000;

/// The version of the replay token.
pub const TOKEN_VERSION: u8 = 3;
/// What a replay token starts with.
pub const TOKEN_PREFIX: &str = "lh3.";
/// A token is a line of text; a longer one is somebody else's.
const TOKEN_LENGTH_MAX: usize = 65_536;

/// Seed, scenario, options and plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Everything random derives from it.
    pub seed: Seed,
    /// The name of the scenario.
    pub scenario: String,
    /// What was chosen on top of the scenario.
    pub options: CaseOptions,
    /// What is done to the cluster.
    pub plan: Plan,
}

/// The choices within a scenario, by name: the names are checked by whoever runs the case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseOptions {
    /// The storage's guard: `unfenced`, `equal` or `monotonic`.
    pub guard: String,
    /// What goes to the storage as the token: `revision` or `lease`.
    pub token: String,
    /// How many clients contend.
    pub clients: u8,
    /// How many holdings a client attempts in each of its lives; 0 is as many as there is time for.
    #[serde(default)]
    pub holdings: u32,
    /// The lifetime of the leases that clients ask for, in seconds; 0: each session draws its own.
    #[serde(default)]
    pub ttl_s: u16,
    /// How many of 1,000 holdings only read: the mix of operations.
    #[serde(default)]
    pub readers: u16,
    /// The fault profile that the plan was drawn from. The plan is explicit: this only says whence.
    #[serde(default)]
    pub profile: String,
    /// The known bug that is built in; empty is none.
    #[serde(default)]
    pub bug: String,
}

impl Case {
    /// What is done to whom, in one sentence: the plan, and what there is beside it.
    pub fn sentence(&self) -> String {
        let Case { seed, options, plan, .. } = self;
        let faults: Vec<String> = plan.faults.iter().map(ToString::to_string).collect();
        let faults = match faults.as_slice() {
            [] => "no fault at all".to_owned(),
            faults => faults.join("; "),
        };
        let clients = match options.clients {
            1 => "1 client".to_owned(),
            n => format!("{n} clients"),
        };
        let holdings = match options.holdings {
            0 => String::new(),
            1 => " of 1 holding each".to_owned(),
            n => format!(" of {n} holdings each"),
        };
        let ttl = match options.ttl_s {
            0 => String::new(),
            ttl_s => format!(", leases of {ttl_s} s"),
        };
        let readers = match options.readers {
            0 => String::new(),
            readers => format!(", {readers} of 1,000 only read"),
        };
        format!("{faults} (seed {seed}, {clients}{holdings}{ttl}{readers})")
    }
}

/// A case, the hash that its run had, and the crate that ran it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayToken {
    /// The version of the crate that ran it.
    pub crate_version: String,
    /// The case.
    pub case: Case,
    /// What its run hashed to.
    pub run_hash: RunHash,
}

/// The text is no replay token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Something else altogether.
    #[error("not a replay token: it starts with {TOKEN_PREFIX:?}; copy the whole token")]
    Foreign,
    /// Another format.
    #[error(
        "replay token of format {found:?}, this build reads {TOKEN_PREFIX:?}: replay it with the \
         version of leasehold that printed it, or explore its seed again and take the new token"
    )]
    Version {
        /// Its prefix.
        found: String,
    },
    /// Characters are missing or changed.
    #[error("broken replay token: {0}; copy the whole token")]
    Broken(&'static str),
}

impl ReplayToken {
    /// The token as one word of text.
    pub fn encode(&self) -> String {
        let mut bytes = postcard::to_allocvec(self).expect("a case has no unserialisable part");
        let check = xxh3_64(&bytes).to_le_bytes();
        bytes.extend_from_slice(&check[..4]);
        format!("{TOKEN_PREFIX}{}", BASE64URL_NOPAD.encode(&bytes))
    }

    /// Reads a token.
    pub fn decode(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let Some(body) = text.strip_prefix(TOKEN_PREFIX) else {
            let version = text.split_once('.').map(|(version, _)| version);
            return Err(match version {
                Some(found) if found.starts_with("lh") && found.len() < 8 => {
                    TokenError::Version { found: format!("{found}.") }
                }
                _ => TokenError::Foreign,
            });
        };
        if body.len() > TOKEN_LENGTH_MAX {
            return Err(TokenError::Broken("it is too long"));
        }
        let bytes = BASE64URL_NOPAD.decode(body.as_bytes()).map_err(|error| {
            TokenError::Broken(match error.kind {
                DecodeKind::Symbol => "it has characters that do not belong there",
                // So many characters are no whole number of bytes.
                _ => "it is cut or changed",
            })
        })?;
        let (bytes, check) = bytes
            .len()
            .checked_sub(4)
            .map(|at| bytes.split_at(at))
            .ok_or(TokenError::Broken("it is cut: it is too short"))?;
        if check != &xxh3_64(bytes).to_le_bytes()[..4] {
            return Err(TokenError::Broken("it is cut or changed: its checksum does not fit"));
        }
        postcard::from_bytes(bytes).map_err(|_| TokenError::Broken("its content does not fit"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> ReplayToken {
        ReplayToken {
            crate_version: "0.1.0".into(),
            case: Case {
                seed: Seed(7),
                scenario: "fenced-lock".into(),
                options: CaseOptions {
                    guard: "monotonic".into(),
                    token: "revision".into(),
                    clients: 3,
                    holdings: 0,
                    ttl_s: 0,
                    readers: 0,
                    profile: "all".into(),
                    bug: String::new(),
                },
                plan: Plan::default(),
            },
            run_hash: RunHash(5),
        }
    }

    /// A token carries the whole case.
    #[test]
    fn round_trip() {
        assert_eq!(ReplayToken::decode(&token().encode()), Ok(token()));
    }

    /// Broken and foreign tokens are told apart, and none is taken for a case.
    #[test]
    fn damage_is_named() {
        let text = token().encode();
        let mut swapped = text.clone().into_bytes();
        swapped[10] = if swapped[10] == b'A' { b'B' } else { b'A' };
        let swapped = String::from_utf8(swapped).unwrap();
        assert_eq!(ReplayToken::decode("hello"), Err(TokenError::Foreign));
        assert_eq!(
            ReplayToken::decode("lh9.AAAA"),
            Err(TokenError::Version { found: "lh9.".into() })
        );
        assert!(matches!(ReplayToken::decode(&swapped), Err(TokenError::Broken(_))));
        for end in TOKEN_PREFIX.len()..text.len() {
            let Err(TokenError::Broken(why)) = ReplayToken::decode(&text[..end]) else {
                panic!("{end} characters of it are a token");
            };
            assert!(why.starts_with("it is cut"), "{end}: {why}");
        }
        let odd = ReplayToken::decode(&text.replacen(&text[9..12], "=~ ", 1));
        assert!(odd.is_err_and(|error| error.to_string().contains("do not belong there")));
    }
}
