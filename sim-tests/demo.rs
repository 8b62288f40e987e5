//! The demo tells contrib/lock's story by running the real code.

use leasehold::demo::{Act, tell};

fn said(act: &Act, client: u8, text: &str) -> bool {
    act.lines.iter().any(|(who, line)| *who == client && line.starts_with(text))
}

/// However client 1 loses its lease, it is refused; client 2 is locked out by equality on its
/// second run, and let in by order.
#[test]
fn every_act_ends_as_told() {
    for by in ["revoke", "expiry", "pause"] {
        let acts = tell(by.parse().unwrap()).unwrap();
        assert_eq!(acts.len(), 4);
        for first in [&acts[0], &acts[2]] {
            assert_eq!(first.statuses, [(2, 0), (1, 0)], "{by}: {first:?}");
            assert!(said(first, 2, "successfully write a key to storage using lease "));
            let refused = "expected fail to write to storage with old lease version: error: ";
            assert!(said(first, 1, refused), "{by}: {first:?}");
        }
        assert_eq!(acts[1].statuses, [(2, 1)]);
        assert!(said(&acts[1], 2, "unexpected fail to write to storage: error: given version ("));
        assert_eq!(acts[3].statuses, [(2, 0)]);
        assert!(said(&acts[3], 2, "successfully write a key to storage using lease "));
    }
}

/// The lines of the first act are the original's, word for word, with its versions.
#[test]
fn the_first_act_is_the_originals() {
    let acts = tell("revoke".parse().unwrap()).unwrap();
    let lines: Vec<&str> = acts[0].lines.iter().map(|(_, line)| line.as_str()).collect();
    let version = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    let (one, two) = (version(lines[2]), version(lines[6]));
    let prompt = format!(
        "please manually revoke the lease using 'etcdctl lease revoke {one}' or wait for it to \
         expire, then start executing client 2 and hit any key..."
    );
    let refused = format!(
        "expected fail to write to storage with old lease version: error: given version ({one}) is \
         different from the existing version ({two})"
    );
    assert_eq!(
        lines,
        [
            "client 1 starts",
            "created etcd client and session",
            &format!("acquired lock, version: {one}"),
            &prompt,
            "client 2 starts",
            "created etcd client and session",
            &format!("acquired lock, version: {two}"),
            "this is client 2, continuing",
            &format!("successfully write a key to storage using lease {two}"),
            "resuming client 1",
            &refused,
        ]
    );
}
