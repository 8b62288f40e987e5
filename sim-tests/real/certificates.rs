//! A certificate authority for one test, and the files of a server and a client that it vouches
//! for. Made anew each time: nothing expires, and no key is ever in the repository.

use std::{fs, path::PathBuf};

use leasehold::etcd::{Certificate, ConnectOptions, Identity, TlsOptions};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use super::member::Setting;

/// The files of one authority, in a directory that goes with this value.
pub struct Certificates {
    directory: PathBuf,
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Certificates {
    /// Makes them; `name` keeps tests apart.
    pub fn new(name: &str) -> Certificates {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("certificates-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory of its own");
        let made = Certificates { directory };
        let mut params = named("authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority = CertifiedIssuer::self_signed(params, key()).expect("well formed");
        made.write("ca.pem", &authority.pem());
        for role in ["server", "client"] {
            let (mut params, key) = (named(role), key());
            // etcd shows its server's certificate as a client's too, to itself.
            params.extended_key_usages =
                vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let certificate = params.signed_by(&key, &authority).expect("well formed");
            made.write(&format!("{role}.pem"), &certificate.pem());
            made.write(&format!("{role}.key"), &key.serialize_pem());
        }
        made
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.directory.join(name), text).expect("written");
    }

    /// The path of a file: `ca.pem`, `server.pem`, `server.key`, `client.pem`, `client.key`.
    pub fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().expect("UTF-8").to_owned()
    }

    /// A member that speaks TLS only, and only with clients that the authority vouches for.
    pub fn setting(&self) -> Setting {
        let read = |name: &str| fs::read(self.path(name)).expect("written");
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(read("ca.pem")))
            .identity(Identity::from_pem(read("client.pem"), read("client.key")));
        let file = |flag: &str, name: &str| [flag.to_owned(), self.path(name)];
        let files = [
            file("--trusted-ca-file", "ca.pem"),
            file("--cert-file", "server.pem"),
            file("--key-file", "server.key"),
        ];
        let mut arguments = files.concat();
        arguments.push("--client-cert-auth".to_owned());
        Setting { secure: true, arguments, options: ConnectOptions::new().with_tls(tls) }
    }
}

/// A certificate to be, good for the loopback address.
fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn key() -> KeyPair {
    KeyPair::generate().expect("the system has random numbers")
}
