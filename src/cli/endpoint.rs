//! How the programs of the real build reach etcd: the flags and variables of etcdctl.
//!
//! An endpoint that does not answer at the start is asked again every few seconds, and used from
//! its first answer on. One that falls silent later stays in use: requests that fail there are sent
//! again, and reach another.

mod address;
mod reason;
mod tls;

use std::{path::PathBuf, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::{
    etcd::{Client, ConnectOptions, Error},
    time::{Instant, sleep, timeout, timeout_at},
};

pub(super) use self::reason::of_lock;
use self::reason::{Shows, is_lasting, is_refusal, of_connecting, reason};
use super::duration;

/// Where etcd listens, unless it is said.
const ENDPOINT: &str = "127.0.0.1:2379";
/// How long the other endpoints are waited for when one has answered.
const LAGGARDS: Duration = Duration::from_millis(500);
/// The pause before endpoints that have not answered are asked again.
const AGAIN: Duration = Duration::from_secs(3);

/// Where etcd is and who asks.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "etcd")]
pub(super) struct EtcdArguments {
    /// Where etcd listens, separated by commas; those that answer are used, from then on [default:
    /// 127.0.0.1:2379, of `client` also the ports 22379 and 32379].
    #[arg(
        long,
        env = "ETCDCTL_ENDPOINTS",
        value_delimiter = ',',
        value_name = "LIST",
        value_parser = address::parse
    )]
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
        /// Whether it will be no better in a while.
        lasting: bool,
    },
    /// It answered, and does not let this user in.
    #[error("etcd refuses at {endpoints}: {reason}")]
    Refused {
        /// The endpoints that were tried.
        endpoints: String,
        /// What it said.
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

    /// Connects to those endpoints that answer, and has the others asked again in the background.
    ///
    /// The balancer of etcd-client hands requests to dead ones too, where they fail: with a list of
    /// which one alone answers the first requests would fail more often than not.
    pub(super) async fn connect(&self) -> Result<Client, ConnectError> {
        let options = self.options()?;
        let default = [ENDPOINT.to_owned()];
        let endpoints = if self.endpoints.is_empty() { &default[..] } else { &self.endpoints };
        let mut asking: FuturesUnordered<_> =
            endpoints.iter().map(|endpoint| ask(endpoint, &options)).collect();
        let mut limit = Instant::now() + self.dial_timeout;
        let (mut answering, mut failed) = (Vec::new(), None);
        while let Ok(Some(asked)) = timeout_at(limit, asking.next()).await {
            match asked {
                Ok(asked) => {
                    limit = limit.min(Instant::now() + LAGGARDS);
                    answering.push(asked);
                }
                // What etcd itself said tells more than that another one is not there.
                Err(error) if failed.as_ref().is_none_or(|failed| !is_refusal(failed)) => {
                    failed = Some(error);
                }
                Err(_) => {}
            }
        }
        drop(asking);
        let used: Vec<&str> = answering.iter().map(|(endpoint, _)| *endpoint).collect();
        let unused: Vec<String> = endpoints
            .iter()
            .filter(|endpoint| !used.contains(&endpoint.as_str()))
            .cloned()
            .collect();
        let client = match used.len() {
            0 => return Err(self.failure(endpoints, failed)),
            1 => answering.remove(0).1,
            _ => match timeout(self.dial_timeout, Client::connect(used, Some(options.clone())))
                .await
            {
                Ok(Ok(client)) => client,
                Ok(Err(error)) => return Err(self.failure(endpoints, Some(error))),
                Err(_) => return Err(self.failure(endpoints, None)),
            },
        };
        tokio::spawn(enlist(client.clone(), unused, options, self.dial_timeout));
        Ok(client)
    }

    fn failure(&self, endpoints: &[String], error: Option<Error>) -> ConnectError {
        let endpoints = endpoints.join(",");
        match error {
            Some(error) if is_refusal(&error) => {
                ConnectError::Refused { endpoints, reason: reason(&error) }
            }
            Some(error) => ConnectError::Unreachable {
                reason: of_connecting(&error, self.shows()),
                lasting: is_lasting(&error),
                endpoints,
            },
            None => ConnectError::Unreachable {
                endpoints,
                reason: format!("no answer within {:?}", self.dial_timeout),
                lasting: false,
            },
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

    fn shows(&self) -> Shows {
        let secure = |endpoint: &String| endpoint.starts_with("https://");
        match (&self.cert, &self.cacert) {
            (Some(_), _) => Shows::Certificate,
            (None, Some(_)) => Shows::Nothing,
            (None, None) if self.endpoints.iter().any(secure) => Shows::Nothing,
            (None, None) => Shows::Plain,
        }
    }

    fn encrypt(&self, options: ConnectOptions) -> Result<ConnectOptions, ConnectError> {
        let files = tls::Files {
            cacert: self.cacert.as_ref(),
            pair: self.cert.as_ref().zip(self.key.as_ref()),
        };
        if self.shows() == Shows::Plain {
            return Ok(options);
        }
        // etcd-client would say so of the first endpoint only, and not which flag it is about.
        if let Some(plain) = self.endpoints.iter().find(|endpoint| endpoint.starts_with("http://"))
        {
            return Err(ConnectError::Usage(format!(
                "{plain} is not encrypted, but --cacert, --cert or another of --endpoints wants \
                 encryption: write https://, or the address alone"
            )));
        }
        files.options().map(|tls| options.with_tls(tls)).map_err(ConnectError::Usage)
    }
}

/// Connects to one endpoint and makes sure that it answers.
async fn ask<'a>(endpoint: &'a str, options: &ConnectOptions) -> Result<(&'a str, Client), Error> {
    let mut client = Client::connect([endpoint], Some(options.clone())).await?;
    match client.member_list().await {
        // A refusal is an answer too: not every user may see the members.
        Err(error) if !is_refusal(&error) => Err(error),
        _ => Ok((endpoint, client)),
    }
}

/// Asks the endpoints that are not in use again and again, and adds each to the client's when it
/// answers. Ends with the program, or when all are in use.
async fn enlist(client: Client, mut unused: Vec<String>, options: ConnectOptions, limit: Duration) {
    while !unused.is_empty() {
        sleep(AGAIN).await;
        let mut silent = Vec::new();
        for endpoint in unused {
            let asked = timeout(limit, ask(&endpoint, &options)).await;
            if matches!(asked, Ok(Ok(_))) && client.add_endpoint(&endpoint).await.is_ok() {
                tracing::debug!(endpoint, "answers now, and is used");
            } else {
                silent.push(endpoint);
            }
        }
        unused = silent;
    }
}
