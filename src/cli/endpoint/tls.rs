//! The files of `--cacert`, `--cert` and `--key`, looked at before anybody is asked: what is wrong
//! with them is said with the flag that names them.
//!
//! As in etcdctl a CA that is given is the only one that is trusted; without one those of the
//! system are. Leaves out `--insecure-…`: a lock on a server that anybody can play is none.

use std::path::{Path, PathBuf};

use etcd_client_tls::{Certificate, Identity, TlsOptions};

/// The files, as far as they are named.
pub(super) struct Files<'a> {
    pub(super) cacert: Option<&'a PathBuf>,
    /// Certificate and key of the client; the parser sees to it that they come together.
    pub(super) pair: Option<(&'a PathBuf, &'a PathBuf)>,
}

impl Files<'_> {
    /// The options with which to connect.
    pub(super) fn options(&self) -> Result<TlsOptions, String> {
        let mut tls = match self.cacert {
            Some(path) => {
                let pem = read("--cacert", path, "CERTIFICATE")?;
                TlsOptions::new().ca_certificate(Certificate::from_pem(pem))
            }
            None => TlsOptions::new().with_enabled_roots(),
        };
        if let Some((cert, key)) = self.pair {
            let cert = read("--cert", cert, "CERTIFICATE")?;
            let key = read("--key", key, "PRIVATE KEY")?;
            tls = tls.identity(Identity::from_pem(cert, key));
        }
        Ok(tls)
    }
}

/// Reads a file and makes sure that there is a section of this kind. The sections themselves are
/// read when connecting, where one that says nothing would only be missed.
fn read(flag: &str, path: &Path, section: &str) -> Result<Vec<u8>, String> {
    let failed = |what: &str| format!("{flag} {}: {what}", path.display());
    let pem = std::fs::read(path).map_err(|error| failed(&error.to_string()))?;
    let text = String::from_utf8_lossy(&pem);
    let begins = |line: &str| line.starts_with("-----BEGIN ") && line.contains(section);
    match text.lines().any(begins) {
        true => Ok(pem),
        false => Err(failed(&format!("no {section} in PEM in it"))),
    }
}
