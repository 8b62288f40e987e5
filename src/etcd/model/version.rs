//! Which etcd a simulated member behaves as.
//!
//! A version is a setting of the member. The versions differ in little: the recordings of both in
//! `sim-tests/conformance` decide what.

use std::{fmt, str::FromStr};

/// The versions of etcd that are simulated: one release of a line stands for the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EtcdVersion {
    /// etcd 3.4, as release 3.4.23 behaves.
    V3_4,
    /// etcd 3.5, as release 3.5.30 behaves.
    #[default]
    V3_5,
}

impl EtcdVersion {
    /// All of them, the oldest first.
    pub const ALL: [EtcdVersion; 2] = [EtcdVersion::V3_4, EtcdVersion::V3_5];

    /// The release that is simulated, as `status` answers it: `3.5.30`.
    pub const fn release(self) -> &'static str {
        match self {
            EtcdVersion::V3_4 => "3.4.23",
            EtcdVersion::V3_5 => "3.5.30",
        }
    }
}

/// The release.
impl fmt::Display for EtcdVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.release())
    }
}

/// The text names no version that is simulated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("etcd {asked:?} is not simulated: 3.4 and 3.5 are (as 3.4.23 and 3.5.30)")]
pub struct UnknownVersion {
    asked: String,
}

/// A line (`3.5`) or a release of it (`3.5.30`; `3.5.1` is taken as the release that is simulated
/// too), with or without a `v` before it.
impl FromStr for EtcdVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let unknown = || UnknownVersion { asked: text.to_owned() };
        let parts: Vec<&str> = text.strip_prefix('v').unwrap_or(text).split('.').collect();
        let line = match parts[..] {
            [major, minor] => (major, minor),
            [major, minor, patch] if patch.parse::<u16>().is_ok() => (major, minor),
            _ => return Err(unknown()),
        };
        match line {
            ("3", "4") => Ok(EtcdVersion::V3_4),
            ("3", "5") => Ok(EtcdVersion::V3_5),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EtcdVersion;

    #[test]
    fn a_version_reads_as_it_is_written() {
        for version in EtcdVersion::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        assert_eq!("3.4".parse(), Ok(EtcdVersion::V3_4));
        assert_eq!("v3.5.1".parse(), Ok(EtcdVersion::V3_5));
    }

    #[test]
    fn another_version_is_refused_with_its_name() {
        for text in ["3.6.0", "3.5.x", "3", "", "3.5.30.1", "3.55"] {
            let error = text.parse::<EtcdVersion>().expect_err("not simulated");
            assert!(error.to_string().starts_with(&format!("etcd {text:?} is not simulated")));
        }
    }
}
