//! How the programs of the real build reach etcd: the flags and variables of etcdctl.

use std::{path::PathBuf, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::{
    etcd::{Client, ConnectOptions},
    time::{Instant, timeout, timeout_at},
};

use super::duration;

/// Where etcd listens, unless it is said.
const ENDPOINT: &str = "127.0.0.1:2379";
/// How long the other endpoints are waited for when one has answered.
const LAGGARDS: Duration = Duration::from_millis(500);

/// Where etcd is and who asks.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "etcd")]
pub(super) struct EtcdArguments {
    /// Where etcd listens, separated by commas; those that answer at the start are used [default:
    /// 127.0.0.1:2379, of `client` also the ports 22379 and 32379].
    #[arg(long, env = "ETCDCTL_ENDPOINTS", value_delimiter = ',', value_name = "LIST")]
    endpoints: Vec<String>,
    /// How long connecting, and each request, may take.
    #[arg(
        long,
        env = "ETCDCTL_DIAL_TIMEOUT",
        value_name = "SPAN",
        default_value = "5s",
        value_parser = duration::parse_positive
    )]
    dial_timeout: Duration,
    /// The certificates that the server's is verified with, in PEM; turns TLS on.
    #[arg(long, env = "ETCDCTL_CACERT", value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// The client's own certificate, in PEM.
    #[arg(long, env = "ETCDCTL_CERT", value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of the client's certificate, in PEM.
    #[arg(long, env = "ETCDCTL_KEY", value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// User and password as `name:password`, or the name alone with ETCDCTL_PASSWORD.
    #[arg(long, env = "ETCDCTL_USER", value_name = "NAME[:PASSWORD]", hide_env_values = true)]
    user: Option<String>,
    /// The password of the user.
    #[arg(
        long,
        env = "ETCDCTL_PASSWORD",
        value_name = "PASSWORD",
        requires = "user",
        hide_env_values = true
    )]
    password: Option<String>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// The flags cannot be used.
    #[error("{0}")]
    Usage(String),
    /// Nobody answered, or not in time.
    #[error("etcd is not reached at {endpoints}: {reason}")]
    Unreachable {
        /// The endpoints that were tried.
        endpoints: String,
        /// What went wrong.
        reason: String,
    },
}

impl EtcdArguments {
    /// How long each request may take.
    pub(super) fn request_timeout(&self) -> Duration {
        self.dial_timeout
    }

    /// Uses these endpoints if none were given.
    pub(super) fn or_endpoints(&mut self, endpoints: &[&str]) {
        if self.endpoints.is_empty() {
            self.endpoints = endpoints.iter().map(|&endpoint| endpoint.to_owned()).collect();
        }
    }

    /// The flags that can be wrong without asking anybody.
    pub(super) fn check(&self) -> Result<(), ConnectError> {
        self.options().map(drop)
    }

    /// Connects to those endpoints that answer.
    ///
    /// The balancer of etcd-client hands requests to dead ones too, where they fail. So an endpoint
    /// that does not answer at the start is not used later either.
    pub(super) async fn connect(&self) -> Result<Client, ConnectError> {
        let options = self.options()?;
        let default = [ENDPOINT.to_owned()];
        let endpoints = if self.endpoints.is_empty() { &default[..] } else { &self.endpoints };
        let mut asking: FuturesUnordered<_> =
            endpoints.iter().map(|endpoint| ask(endpoint, &options)).collect();
        let mut limit = Instant::now() + self.dial_timeout;
        let (mut answering, mut reason) = (Vec::new(), None);
        while let Ok(Some(asked)) = timeout_at(limit, asking.next()).await {
            match asked {
                Ok(asked) => {
                    limit = limit.min(Instant::now() + LAGGARDS);
                    answering.push(asked);
                }
                Err(error) => reason = Some(error.to_string()),
            }
        }
        drop(asking);
        let unreachable = |reason: Option<String>| ConnectError::Unreachable {
            endpoints: endpoints.join(","),
            reason: reason.unwrap_or(format!("no answer within {:?}", self.dial_timeout)),
        };
        if answering.len() <= 1 {
            let only = answering.pop().map(|(_, client)| client);
            return only.ok_or_else(|| unreachable(reason));
        }
        let answering: Vec<&str> = answering.iter().map(|(endpoint, _)| *endpoint).collect();
        match timeout(self.dial_timeout, Client::connect(answering, Some(options))).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(unreachable(Some(error.to_string()))),
            Err(_) => Err(unreachable(None)),
        }
    }

    fn options(&self) -> Result<ConnectOptions, ConnectError> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(self.dial_timeout)
            .with_keep_alive(Duration::from_secs(2), Duration::from_secs(6));
        if let Some(user) = &self.user {
            let (name, password) = match (&self.password, user.split_once(':')) {
                (Some(password), _) => (user.as_str(), password.as_str()),
                (None, Some(both)) => both,
                (None, None) => {
                    let message = "--user without a password: write --user name:password, or set \
                                   ETCDCTL_PASSWORD";
                    return Err(ConnectError::Usage(message.to_owned()));
                }
            };
            options = options.with_user(name, password);
        }
        self.encrypt(options)
    }

    #[cfg(feature = "tls")]
    fn encrypt(&self, options: ConnectOptions) -> Result<ConnectOptions, ConnectError> {
        use etcd_client_tls::{Certificate, Identity, TlsOptions};
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .map_err(|error| ConnectError::Usage(format!("{}: {error}", path.display())))
        };
        let wanted = self.cacert.is_some() || self.cert.is_some();
        if !wanted && !self.endpoints.iter().any(|endpoint| endpoint.starts_with("https://")) {
            return Ok(options);
        }
        let mut tls = TlsOptions::new();
        if let Some(path) = &self.cacert {
            tls = tls.ca_certificate(Certificate::from_pem(read(path)?));
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
        }
        Ok(options.with_tls(tls))
    }

    #[cfg(not(feature = "tls"))]
    fn encrypt(&self, options: ConnectOptions) -> Result<ConnectOptions, ConnectError> {
        if self.cacert.is_some() || self.cert.is_some() {
            let message = "--cacert, --cert and --key need a build with the feature `tls`: \
                           `cargo real build --release --features tls`";
            return Err(ConnectError::Usage(message.to_owned()));
        }
        Ok(options)
    }
}

/// Connects to one endpoint and makes sure that it answers.
async fn ask<'a>(
    endpoint: &'a str,
    options: &ConnectOptions,
) -> Result<(&'a str, Client), crate::etcd::Error> {
    let mut client = Client::connect([endpoint], Some(options.clone())).await?;
    client.member_list().await?;
    Ok((endpoint, client))
}
