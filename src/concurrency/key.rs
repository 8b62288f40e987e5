//! The names of queue keys, as in etcd's `concurrency/mutex.go`: `<name>/<lease in lower hex>`,
//! without padding.
//!
//! The queue of a name is everything under `<name>/`, so that `job1` and `job10` are strangers
//! (etcd #6278). The queue of `a` also contains that of `a/b`, as in etcd: do not nest names.

/// What all queue keys of this lock name start with.
pub fn queue_prefix(name: &str) -> String {
    format!("{name}/")
}

/// The queue key of this lease. Go prints the id as a signed number; a negative lease keeps its
/// sign here as there (`%x` of an int64).
pub fn owner_key(name: &str, lease: i64) -> String {
    let sign = if lease < 0 { "-" } else { "" };
    format!("{name}/{sign}{:x}", lease.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes as Go's `fmt.Sprintf("%s%x", pfx, lease)`, or two clients of one lock would
    /// not meet in one queue.
    #[test]
    fn keys_are_spelled_as_in_go() {
        assert_eq!(owner_key("job", 0x1f), "job/1f");
        assert_eq!(owner_key("job", 0x694d_7fb1_2e04_9a0f), "job/694d7fb12e049a0f");
        assert_eq!(owner_key("", 10), "/a");
        assert_eq!(owner_key("a/", 10), "a//a");
        assert_eq!(owner_key("job", -1), "job/-1");
        assert_eq!(owner_key("job", i64::MIN), "job/-8000000000000000");
    }

    /// A name that is the beginning of another name has another queue.
    #[test]
    fn queues_of_similar_names_are_apart() {
        assert!(!owner_key("job10", 1).starts_with(&queue_prefix("job1")));
        assert!(owner_key("job1", 1).starts_with(&queue_prefix("job1")));
    }
}
