//! The runner can fail: each kind of corrupted expectation is reported, at its step and its field.
//!
//! The recording below is right; every test changes one thing of it.

use serde_json::{Value, json};

use super::{Cause, Mismatch, Recording, replay};

fn recording() -> Value {
    let pair = json!({
        "key": "a", "create_revision": "r+1", "mod_revision": "r+1", "version": 1, "value": "1"
    });
    json!({ "schema": 1, "etcd_version": "3.5.30", "area": "small", "cases": [{
        "name": "all kinds", "base_revision": 1, "steps": [
            { "op": "watch_create", "args": { "key": "a" }, "stream": "s", "expect": { "ok": {
                "header": { "revision": "r+0" }, "created": true, "watch_id": 0 } } },
            { "op": "put", "args": { "key": "a", "value": "1" },
              "expect": { "ok": { "header": { "revision": "r+1" } } } },
            { "op": "watch_next", "stream": "s", "expect": { "ok": {
                "header": { "revision": "r+1" }, "watch_id": 0,
                "events": [{ "type": "PUT", "kv": pair }] } } },
            { "op": "watch_idle", "stream": "s", "ms": 400, "expect": "idle" },
            { "op": "range", "args": { "key": "a" }, "expect": { "ok": {
                "header": { "revision": "r+1" }, "kvs": [pair], "count": 1 } } },
            { "op": "put", "args": { "key": "a", "lease": 999 }, "expect": { "error": {
                "code": 5, "status": "NOT_FOUND",
                "message": "etcdserver: requested lease not found" } } },
            { "op": "lease_grant", "args": { "TTL": 60 }, "expect": { "ok": {
                "header": { "revision": "r+1" }, "ID": "L1", "TTL": 60 } } },
            { "op": "sleep", "ms": 1500 },
            { "op": "lease_time_to_live", "args": { "ID": "L1" }, "tol": ["TTL"], "expect": {
                "ok": { "header": { "revision": "r+1" }, "ID": "L1", "TTL": 57,
                        "grantedTTL": 60 } } },
            { "op": "range", "args": { "key": "a", "sort_target": 9 },
              "expect": { "server_crash": "panic: nil pointer dereference" } },
        ]
    }] })
}

fn read(recording: &Value) -> Result<Recording, String> {
    Recording::parse("small.json", &recording.to_string()).map_err(|error| error.to_string())
}

fn first_mismatch(recording: &Value) -> Option<Mismatch> {
    let recording = read(recording).expect("it can be read");
    let report = replay(&[recording], None).expect("the version is simulated");
    assert_eq!(report.total().total, 1);
    assert_eq!(report.total().is_full(), report.failures.is_empty());
    report.failures.into_iter().next().map(|failure| failure.mismatch)
}

fn step(index: usize) -> String {
    format!("/cases/0/steps/{index}")
}

/// The recording with another value at a place below a step.
fn with(index: usize, place: &str, value: Value) -> Value {
    let mut changed = recording();
    let target = changed.pointer_mut(&format!("{}{place}", step(index)));
    *target.expect("the place exists") = value;
    changed
}

/// Unchanged, it matches: so each failure below comes of the change.
#[test]
fn the_recording_as_it_is_matches() {
    assert_eq!(first_mismatch(&recording()), None);
}

/// A changed value is found at its step and its path; a matching field does not make up for it.
#[test]
fn a_changed_value_is_found_where_it_is() {
    let cases = [
        (1, "/expect/ok/header/revision", json!("r+2"), "ok.header.revision"),
        (0, "/expect/ok/created", json!(false), "ok.created"),
        (2, "/expect/ok/events/0/type", json!("DELETE"), "ok.events[0].type"),
        (2, "/expect/ok/events/0/kv/value", json!("2"), "ok.events[0].kv.value"),
        (4, "/expect/ok/kvs/0/version", json!(2), "ok.kvs[0].version"),
        (4, "/expect/ok/kvs", json!([]), "ok.kvs[0]"),
        (4, "/expect/ok/count", json!(2), "ok.count"),
        (5, "/expect/error/code", json!(9), "error.code"),
        (5, "/expect/error/status", json!("UNKNOWN"), "error.status"),
        (5, "/expect/error/message", json!("etcdserver: lease not found"), "error.message"),
        (6, "/expect/ok/ID", json!("L2"), "ok.ID"),
    ];
    for (index, place, value, path) in cases {
        let mismatch = first_mismatch(&with(index, place, value)).expect(place);
        assert_eq!(mismatch.step, index + 1, "{place}");
        let Cause::Differs(difference) = mismatch.cause else { panic!("{place}: not asked") };
        assert_eq!(difference.path, path);
        assert_ne!(difference.expected, difference.got);
    }
}

/// A field that the answer has and the recording has not is a failure, and the other way round.
#[test]
fn a_missing_and_a_superfluous_field_are_found() {
    let mut shorter = recording();
    let pair = shorter.pointer_mut("/cases/0/steps/4/expect/ok/kvs/0").expect("a pair");
    pair.as_object_mut().expect("an object").remove("version");
    let mut longer = recording();
    longer["cases"][0]["steps"][4]["expect"]["ok"]["kvs"][0]["lease"] = json!(7);
    for (changed, told) in [
        (shorter, "at ok.kvs[0].version: expected nothing, got 1"),
        (longer, "at ok.kvs[0].lease: expected 7, got nothing"),
    ] {
        let mismatch = first_mismatch(&changed).expect(told).to_string();
        assert_eq!(mismatch, format!("step 5 (range): {told}"));
    }
}

/// An answer of another kind: an error for a success, a message for silence, silence for a message.
#[test]
fn an_answer_of_another_kind_is_found() {
    let error = json!({ "error": { "code": 3, "status": "INVALID_ARGUMENT", "message": "no" } });
    let success = json!({ "ok": { "header": { "revision": "r+2" } } });
    let cases = [
        (1, "/expect", error.clone()),
        (5, "/expect", success.clone()),
        (2, "/expect", json!("none")),
        (3, "/expect", json!({ "ok": { "watch_id": 0 } })),
        (9, "/expect", success),
        (4, "/expect", json!({ "server_crash": "panic" })),
    ];
    for (index, place, value) in cases {
        let mismatch = first_mismatch(&with(index, place, value.clone())).expect("a mismatch");
        assert_eq!(mismatch.step, index + 1, "{value}");
    }
}

/// A message that nobody asked for makes the stream not idle.
#[test]
fn a_superfluous_message_on_an_idle_stream_is_found() {
    let mut changed = recording();
    let steps = changed["cases"][0]["steps"].as_array_mut().expect("steps");
    steps.remove(2);
    let mismatch = first_mismatch(&changed).expect("the event is left over");
    assert_eq!((mismatch.step, &mismatch.op[..]), (3, "watch_idle"));
}

/// A time left may be one second more than recorded: not two, not one less, and only where the
/// step says so.
#[test]
fn the_tolerance_is_one_second_upwards() {
    for (recorded, passes) in [(56, false), (57, true), (58, true), (59, false)] {
        let mismatch = first_mismatch(&with(8, "/expect/ok/TTL", json!(recorded)));
        assert_eq!(mismatch.is_none(), passes, "{recorded}: {mismatch:?}");
    }
    let strict = with(8, "/tol", json!([]));
    assert_eq!(first_mismatch(&strict).map(|mismatch| mismatch.step), Some(9));
}

/// Where two recordings differed, either answer is right and no third one.
#[test]
fn an_alternative_is_accepted_too() {
    let mut changed = with(4, "/expect/ok/count", json!(7));
    let right = recording()["cases"][0]["steps"][4]["expect"].clone();
    let target = changed.pointer_mut(&step(4)).expect("a step");
    target["unstable"] = json!(true);
    target["expect_alt"] = json!({ "ok": { "count": 8 } });
    assert_eq!(first_mismatch(&changed).map(|mismatch| mismatch.step), Some(5));
    changed.pointer_mut(&step(4)).expect("a step")["expect_alt"] = right;
    assert_eq!(first_mismatch(&changed), None);
}

/// What cannot be asked fails its case and says why; it is never left out.
#[test]
fn an_argument_that_is_not_known_fails_the_case() {
    let cases = [
        (1, "/args", json!({ "key": "a", "vallue": "1" }), "argument \"vallue\" is not known"),
        (4, "/args/key", json!(7), "argument \"key\" is 7, expected bytes"),
        (4, "/args", json!({ "key": "a", "revision": "r1x" }), "argument \"revision\""),
        (8, "/args/ID", json!("L2"), "no lease \"L2\" was chosen"),
        (3, "/stream", json!("t"), "no stream \"t\" was opened"),
    ];
    for (index, place, value, what) in cases {
        let mismatch = first_mismatch(&with(index, place, value)).expect(what);
        assert_eq!(mismatch.step, index + 1, "{what}");
        let told = mismatch.to_string();
        assert!(told.contains("cannot be asked") && told.contains(what), "{told}");
    }
}

/// A file that is no recording is refused with the place: it cannot count as one that matches.
#[test]
fn a_malformed_recording_is_refused_with_its_place() {
    let mut nothing_expected = recording();
    nothing_expected["cases"][0]["steps"] = json!([{ "op": "sleep", "ms": 1 }]);
    let mut no_cases = recording();
    no_cases["cases"] = json!([]);
    let mut other_schema = recording();
    other_schema["schema"] = json!(2);
    let mut later_base = recording();
    later_base["cases"][0]["base_revision"] = json!(5);
    let case = "small.json, case \"all kinds\"";
    let cases = [
        (nothing_expected, format!("{case}, field steps: nothing is expected")),
        (no_cases, "small.json, field cases: is empty".to_owned()),
        (other_schema, "small.json, field schema: is 2, expected 1".to_owned()),
        (later_base, format!("{case}, field base_revision: is 5; a fresh server is at 1")),
        (
            with(4, "/op", json!("rangge")),
            format!("{case}, step 5, field op: \"rangge\" is no operation of this schema"),
        ),
        (with(4, "/expect", Value::Null), format!("{case}, step 5, field expect: is missing")),
        (
            with(5, "/expect/error", json!({ "code": 5, "status": "NOT_FOUND" })),
            format!("{case}, step 6, field expect.error.message: is missing"),
        ),
        (
            with(3, "/ms", json!(-1)),
            format!("{case}, step 4, field ms: -1 is no time of up to an hour"),
        ),
        (json!([]), "small.json: not an object".to_owned()),
    ];
    for (changed, told) in cases {
        assert_eq!(read(&changed).expect_err(&told), told);
    }
    let cut = Recording::parse("cut.json", "{\"schema\":1,\n \"cases\":[").expect_err("it is cut");
    assert!(cut.to_string().starts_with("cut.json: not JSON: EOF"), "{cut}");
    assert!(cut.to_string().contains("line 2"), "{cut}");
}

/// A version that is not simulated is an error, unless another one is asked for.
#[test]
fn a_version_that_is_not_simulated_is_an_error() {
    let mut newer = recording();
    newer["etcd_version"] = json!("3.6.0");
    let newer = [read(&newer).expect("it can be read")];
    let error = replay(&newer, None).expect_err("3.6 is not simulated").to_string();
    assert!(error.starts_with("small.json: field etcd_version: etcd \"3.6.0\""), "{error}");
    let report = replay(&newer, Some("3.5".parse().expect("simulated"))).expect("as 3.5");
    assert_eq!(report.of_version("3.6.0").to_string(), "1/1");
}

/// A transaction in so many others, and what a real server says to it.
fn nested(depth: usize, expected: &Value) -> Value {
    let put = json!({ "request_put": { "key": "k" } });
    let args = (0..depth).fold(
        json!({ "success": [put] }),
        |inner, _| json!({ "success": [{ "request_txn": inner }] }),
    );
    json!({ "schema": 1, "etcd_version": "3.5.30", "area": "deep", "cases": [{
        "name": "deep", "base_revision": 1,
        "steps": [{ "op": "txn", "args": args, "expect": expected }]
    }] })
}

/// A real server takes 127 transactions in each other and refuses one more; so can the runner ask.
#[test]
fn deep_transactions_can_be_asked() {
    let refused = json!({ "error": { "code": 3, "status": "INVALID_ARGUMENT",
        "message": "etcdserver: too many operations in txn request" } });
    assert_eq!(first_mismatch(&nested(128, &refused)), None);
    let taken = first_mismatch(&nested(127, &refused)).expect("it is taken");
    let Cause::Differs(difference) = taken.cause else { panic!("{taken}") };
    assert!(difference.got.starts_with(r#"{"ok":"#), "{difference}");
    let absurd = read(&nested(1000, &refused)).expect_err("nobody means this");
    assert!(absurd.contains("512 deep"), "{absurd}");
}

/// An answer can be awaited once; afterwards the call is done, and not blocked.
#[test]
fn an_answer_is_taken_once() {
    let calls = |last: Value| {
        json!({ "schema": 1, "etcd_version": "3.5.30", "area": "calls", "cases": [{
            "name": "twice", "base_revision": 1, "steps": [
                { "op": "put", "args": { "key": "a" }, "handle": "h", "expect": "started" },
                { "op": "await", "handle": "h", "expect": {
                    "ok": { "header": { "revision": "r+1" } } } },
                last,
            ]
        }] })
    };
    let pending = |word| json!({ "op": "pending", "handle": "h", "expect": word });
    assert_eq!(first_mismatch(&calls(pending("done"))), None);
    assert!(first_mismatch(&calls(pending("blocked"))).is_some());
    let again = json!({ "op": "await", "handle": "h", "expect": "blocked" });
    let again = first_mismatch(&calls(again)).expect("there is nothing to await");
    assert!(matches!(again.cause, Cause::NotAsked(_)), "{again}");
}

/// What only looks like bytes, a lease or an error is refused, and not taken for something else.
#[test]
fn half_right_values_are_refused() {
    for value in [json!({ "hex": "+f" }), json!({ "hex": "f" }), json!("${L9:hex}")] {
        let mismatch = first_mismatch(&with(1, "/args/value", value.clone()));
        let cause = mismatch.expect("it cannot be asked").cause;
        assert!(matches!(cause, Cause::NotAsked(_)), "{value}: {cause:?}");
    }
    for (part, value) in [("code", json!("5")), ("message", json!(null)), ("status", json!(5))] {
        let wrong = with(5, &format!("/expect/error/{part}"), value);
        let refused = read(&wrong).expect_err("it is no error");
        assert!(refused.contains(&format!("expect.error.{part}")), "{refused}");
    }
}
