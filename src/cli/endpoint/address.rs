//! The form of an endpoint: `HOST:PORT`, or `http://` or `https://` and a host.
//!
//! etcd-client takes more, and finds out when connecting, where a typing error looks like a server
//! that is down.

use hyper::Uri;

/// What to write instead.
const EXPECTED: &str = "expected HOST:PORT, http://HOST[:PORT] or https://HOST[:PORT]";

/// Takes an endpoint as it is, if it can be one.
pub(super) fn parse(text: &str) -> Result<String, String> {
    let (scheme, address) = match text.split_once("://") {
        Some((scheme, address)) => (Some(scheme), address),
        None => (None, text),
    };
    let wrong = match scheme {
        _ if text.is_empty() => "it is empty".to_owned(),
        None | Some("http" | "https") => match of_address(address, scheme.is_some()) {
            Ok(()) => return Ok(text.to_owned()),
            Err(wrong) => wrong,
        },
        Some(other) => format!("{other:?} is not a scheme of etcd"),
    };
    Err(format!("{wrong}: {EXPECTED}"))
}

/// What is wrong with what follows the scheme.
fn of_address(address: &str, has_scheme: bool) -> Result<(), String> {
    if let Some(bad) = address.chars().find(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("{bad:?} in it"));
    }
    let address = if has_scheme { address.strip_suffix('/').unwrap_or(address) } else { address };
    if address.is_empty() || address.starts_with(':') {
        return Err("there is no host".to_owned());
    }
    if address.contains(['/', '?', '#', '@']) {
        return Err("there is more than host and port".to_owned());
    }
    let uri: Uri = format!("http://{address}").parse().map_err(|error| format!("{error}"))?;
    let port = uri.port_u16();
    let host = uri.host().unwrap_or_default();
    let after = address.get(host.len()..).unwrap_or_default();
    match (after.strip_prefix(':'), port) {
        (Some(_), None | Some(0)) => Err("the port is no number from 1 to 65535".to_owned()),
        (None, _) if !has_scheme => Err("there is no port".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What etcdctl is given every day is taken as it is.
    #[test]
    fn endpoints_are_taken() {
        for good in [
            "127.0.0.1:2379",
            "localhost:2379",
            "[::1]:2379",
            "http://a.example:2379",
            "http://a.example:2379/",
            "https://a.example",
            "https://[fe80::1]:2379",
        ] {
            assert_eq!(parse(good).as_deref(), Ok(good));
        }
    }

    /// What cannot be an endpoint is refused with a reason.
    #[test]
    fn others_are_refused() {
        for (bad, why) in [
            ("", "empty"),
            ("foo bar", "' '"),
            (" a:1", "' '"),
            ("http://", "no host"),
            ("http://:2379", "no host"),
            (":2379", "no host"),
            ("ftp://x", "\"ftp\""),
            ("HTTP://x:1", "\"HTTP\""),
            ("localhost", "no port"),
            ("localhost:", "no number"),
            ("localhost:0", "no number"),
            ("localhost:99999", ""),
            ("localhost:http", ""),
            ("http://x:1/health", "more than host and port"),
            ("http://user@x:1", "more than host and port"),
            ("[::1", ""),
            ("a\tb:1", "\\t"),
        ] {
            let message = parse(bad).expect_err(bad);
            assert!(message.contains(why), "{bad:?}: {message}");
            assert!(message.contains("HOST:PORT"), "{bad:?}: {message}");
        }
    }
}
