//! Failures arrive small: how small, in how many runs; and what a failing check says.

use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold::{
    case::CaseOptions,
    corpus::Entry,
    explore::{Failure, run_and_judge},
    scenario::CATALOG,
    seed::Seed,
    shrink::{Limits, Symptom, shrink},
    testing::{Answer, Check, StorageUnderTest, check_case, replay_case},
};

/// Over all failures of each wrong scheme in 40 seeds, the median small case has three faults or
/// fewer, and breaks the same rule when it is run again. The figures are said aloud.
#[test]
#[allow(clippy::print_stdout)]
fn the_median_failure_has_three_faults_or_fewer() {
    for (guard, token) in [("unfenced", "revision"), ("equal", "revision"), ("monotonic", "lease")]
    {
        let check = Check::new().guard(guard).token(token).seeds(0..40);
        let summary = check.run().unwrap();
        let (mut faults, mut runs, mut walls) = (Vec::new(), Vec::new(), Vec::new());
        for failure in summary.failures.iter().take(15) {
            let Failure::Judged(judged) = failure else { panic!("{failure:?}") };
            let broken = judged.broken_rules().into_iter().next().expect("a violation");
            let began = Instant::now();
            let run = |case: &_| run_and_judge(case, None);
            let symptom = Symptom::Broken(broken.clone());
            let small = shrink(failure.outcome(), &symptom, &run, &Limits::default());
            walls.push(began.elapsed());
            assert!(broken.is_in(&run(small.case()).unwrap()), "{}", small.case().sentence());
            faults.push(small.case().plan.faults.len());
            runs.push(small.runs);
        }
        faults.sort_unstable();
        runs.sort_unstable();
        walls.sort_unstable();
        let middle = faults.len() / 2;
        println!(
            "{guard} {token}: {} failures; median {} faults (most {}), {} runs (most {}), {:?} \
             (most {:?})",
            faults.len(),
            faults[middle],
            faults.last().unwrap_or(&0),
            runs[middle],
            runs.last().unwrap_or(&0),
            walls[middle],
            walls.last().copied().unwrap_or_default(),
        );
        assert!(faults[middle] <= 3, "{guard} {token}: {faults:?}");
    }
}

/// No fence, and otherwise right.
#[derive(Default)]
pub(super) struct NoFence(BTreeMap<String, String>);

impl StorageUnderTest for NoFence {
    fn read(&mut self, key: &str, _: Option<i64>) -> Answer {
        Answer::Value(self.0.get(key).cloned())
    }

    fn write(&mut self, key: &str, value: &str, _: Option<i64>) -> Answer {
        self.0.insert(key.to_owned(), value.to_owned());
        Answer::Written
    }
}

fn failure_of<T>(check: impl FnOnce() -> T) -> String {
    let failed = catch_unwind(AssertUnwindSafe(check)).err().expect("it does not pass");
    failed.downcast_ref::<String>().expect("a text").clone()
}

/// A failing check with an own storage says what failed, its options, the small case as a sentence
/// and as a test, the timeline, how to see it again, and where the case is; what is there breaks
/// the rule on that storage.
#[test]
fn a_failing_check_says_it_all() {
    let check = || Check::new().storage(NoFence::default).seeds(0..20).assert_passes();
    let message = failure_of(check);
    for expected in [
        "runs did not pass",
        "checker no-stale-write: violation: ",
        "options: scenario fenced-lock, guard monotonic, token revision, 3 clients",
        "\nplan:\n",
        "\n> ",
        "\nshrunk: ",
        "MyStorage::default",
        "replay with: MADSIM_TEST_SEED=",
        "\nsaved as: ",
    ] {
        assert!(message.contains(expected), "{message} lacks {expected:?}");
    }
    let path = message.split("\nsaved as: ").nth(1).and_then(|text| text.lines().next());
    let path = Path::new(path.expect("the file"));
    let json = fs::read_to_string(path).expect("it is there");
    let saved = Entry::from_json(&json).expect("an entry of a corpus");
    assert_eq!(path.file_stem(), Some(saved.name.as_ref()));
    assert!(saved.own.storage && !saved.own.lock, "{saved:?}");
    let bare = failure_of(|| {
        replay_case(&json).assert_passes();
    });
    assert!(bare.contains("replay_case(…).storage(MyStorage::default)"), "{bare}");
    let case = replay_case(&json).storage(NoFence::default);
    let (_, rule) = message.split_once("checker no-stale-write: violation: ").expect("its rule");
    let rule = rule.split(':').next().expect("a word");
    assert!(["stale-accepted", "rank-fell"].contains(&rule), "{rule}");
    let judged = case.assert_violates("no-stale-write", rule);
    assert!(judged.run.case.plan.faults.len() <= 3, "{}", judged.run.case.sentence());
}

/// Takes a late write for something that cannot be.
#[derive(Default)]
struct Panicking {
    values: BTreeMap<String, String>,
    mark: i64,
}

impl StorageUnderTest for Panicking {
    fn read(&mut self, key: &str, token: Option<i64>) -> Answer {
        self.mark = self.mark.max(token.unwrap_or_default());
        Answer::Value(self.values.get(key).cloned())
    }

    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer {
        let (mark, token) = (self.mark, token.unwrap_or_default());
        assert!(token >= mark, "a token of {token} after {mark}");
        self.values.insert(key.to_owned(), value.to_owned());
        Answer::Written
    }
}

/// A storage that panics is told so, with the smallest case in which it does.
#[test]
fn a_panic_arrives_small() {
    let check = || Check::new().storage(Panicking::default).seeds(0..20).assert_passes();
    let message = failure_of(check);
    for expected in
        ["panic in the run: a token of ", "\nshrunk: ", "fn no_run_seed_", "\nsaved as: "]
    {
        assert!(message.contains(expected), "{message} lacks {expected:?}");
    }
    // The comment of the test has the numbers, and not only the words between them.
    let comment = message.split("/// no run: panic in the run: a token of ").nth(1);
    let number = comment.and_then(|text| text.split_whitespace().next()).expect("a comment");
    assert!(number.parse::<i64>().is_ok(), "{message}");
    let json = message.split("r#\"").nth(1).and_then(|text| text.split("\"#").next());
    let case = replay_case(json.expect("a case")).storage(Panicking::default);
    let broken = case.run().expect_err("it panics in the small case too");
    assert!(broken.1.to_string().contains("a token of"), "{}", broken.1);
    assert!((1..=3).contains(&broken.0.plan.faults.len()), "{}", broken.0.sentence());
}

/// Answers with the count of all reads ever made, by whichever run.
struct Counting(Arc<AtomicU64>);

impl StorageUnderTest for Counting {
    fn read(&mut self, _: &str, _: Option<i64>) -> Answer {
        Answer::Value(Some(self.0.fetch_add(1, Ordering::Relaxed).to_string()))
    }

    fn write(&mut self, _: &str, _: &str, _: Option<i64>) -> Answer {
        Answer::Written
    }
}

/// A storage that remembers other runs is not deterministic; a run that takes too long is told too.
#[test]
fn demands_are_made() {
    let reads = Arc::new(AtomicU64::new(0));
    let counting = move || Counting(reads.clone());
    let check = Check::new().storage(counting).seeds(0..1).check_determinism().fail_fast();
    let message = failure_of(|| check.assert_passes());
    assert!(message.contains("not deterministic: run hash"), "{message}");
    let test = "case.storage(MyStorage::default).check_determinism().assert_passes();";
    assert!(message.contains(test) && message.contains("\nnot saved: "), "{message}");
    let check = Check::new().seeds(0..2).time_limit(Duration::from_secs(2));
    let message = failure_of(|| check.assert_passes());
    assert!(message.contains("time limit: the run took"), "{message}");
    let test = "case.time_limit(std::time::Duration::from_millis(2000)).assert_passes();";
    assert!(message.contains(test) && message.contains("\nnot saved: "), "{message}");
    let comment = message.split("/// no run: time limit: the run took ").nth(1).expect("a comment");
    assert!(comment.split_whitespace().next().is_some_and(|s| s.parse::<f64>().is_ok()));
    let json = message.split("r#\"").nth(1).and_then(|text| text.split("\"#").next());
    let case = replay_case(json.expect("a case"));
    case.assert_passes();
    let again = failure_of(|| case.time_limit(Duration::from_secs(2)).assert_passes());
    assert!(again.contains("time limit: the run took"), "{again}");
    let summary = Check::new().scenario("calm").seeds(0..2).check_determinism().assert_passes();
    assert_eq!(summary.runs, 2);
}

/// Has no fence in the first runs of the process that use it, and one in all later ones.
struct AtFirst {
    marks: BTreeMap<String, (String, i64)>,
    mark: i64,
    fenced: bool,
}

impl StorageUnderTest for AtFirst {
    fn read(&mut self, key: &str, token: Option<i64>) -> Answer {
        self.mark = self.mark.max(token.unwrap_or_default());
        Answer::Value(self.marks.get(key).map(|(value, _)| value.clone()))
    }

    fn write(&mut self, key: &str, value: &str, token: Option<i64>) -> Answer {
        let token = token.unwrap_or_default();
        if self.fenced && token < self.mark {
            return Answer::Refused(format!("{token} is below {}", self.mark));
        }
        self.mark = self.mark.max(token);
        self.marks.insert(key.to_owned(), (value.to_owned(), token));
        Answer::Written
    }
}

/// What fails once and never again is no case: it is told so, with no test, no file and no way to
/// replay it.
#[test]
fn what_does_not_come_again_is_told() {
    let runs = Arc::new(AtomicU64::new(0));
    let make = move || {
        let fenced = runs.fetch_add(1, Ordering::Relaxed) >= 20;
        AtFirst { marks: BTreeMap::new(), mark: 0, fenced }
    };
    let check = Check::new().storage(make).seeds(0..20).jobs(1);
    let message = failure_of(|| check.assert_passes());
    assert!(message.contains("\nnot reproducible: run again, seed "), "{message}");
    for promise in ["replay with: ", "#[test]", "saved as: ", "shrunk: "] {
        assert!(!message.contains(promise), "{message} has {promise:?}");
    }
    let failures = AtomicU64::new(0);
    let case = Check::new().storage(NoFence::default).seeds(0..20).run().expect("it runs");
    let case = case.first_failure().expect("one fails").case().clone();
    let once = move || AtFirst {
        marks: BTreeMap::new(),
        mark: 0,
        fenced: failures.fetch_add(1, Ordering::Relaxed) > 0,
    };
    let failure = check_case(&case).storage(once).passes().expect_err("it fails once");
    let text = failure.to_string();
    assert!(text.contains("\nnot reproducible: ") && !text.contains("#[test]"), "{text}");
}

/// A checker that there is not catches nothing, and that is told before anything is run.
#[test]
fn an_unknown_checker_is_told() {
    for message in [
        failure_of(|| Check::new().seeds(0..1).assert_violates("no-stale-wrote")),
        failure_of(|| {
            let case = CATALOG[0].case(Seed(1), CaseOptions::default());
            check_case(&case).assert_violates("no-stale-wrote", "stale-accepted")
        }),
    ] {
        let expected = "unknown checker \"no-stale-wrote\": choose one of ";
        assert!(message.starts_with(expected) && message.contains("no-stale-write"), "{message}");
    }
}

/// Faults that are asked for in the control arm are refused, and not left out.
#[test]
fn faults_without_faults_are_refused() {
    let calm = || Check::new().scenario("calm").seeds(0..1);
    let message = failure_of(|| calm().profile("gc").assert_passes());
    assert!(message.starts_with("profile \"gc\" has faults, and scenario \"calm\""), "{message}");
    assert_eq!(calm().profile("calm").assert_passes().runs, 1);
}

/// The environment makes the same demands, and one that makes no sense is told. Each is tried in a
/// process of its own, which runs another test of this program.
#[test]
fn the_environment_makes_demands() {
    let cases = [
        ("MADSIM_TEST_TIME_LIMIT", "2", "time limit: the run took"),
        ("MADSIM_TEST_TIME_LIMIT", "soon", "expected simulated seconds, more than 0"),
        ("MADSIM_TEST_TIME_LIMIT", "-1", "MADSIM_TEST_TIME_LIMIT is \"-1\""),
        ("MADSIM_TEST_TIME_LIMIT", "3600", "test result: ok"),
        ("MADSIM_TEST_CHECK_DETERMINISM", "1", "test result: ok"),
        ("MADSIM_TEST_CHECK_DETERMINISM", "0", "expected 1 (unset it to run each case once)"),
        ("MADSIM_TEST_NUM", "0", "MADSIM_TEST_NUM is \"0\", expected 1 or more"),
        ("MADSIM_TEST_SEED", "18446744073709551615", "MADSIM_TEST_SEED is \"18446744073709551615"),
    ];
    for (variable, value, expected) in cases {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .args(["fenced_lock::the_control_arm_shows_nothing", "--exact", "--nocapture"])
            .env("MADSIM_TEST_SEED", "0")
            .env("MADSIM_TEST_NUM", "2")
            .env(variable, value)
            .output()
            .expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(expected), "{variable}={value}: {said} lacks {expected}");
        if value == "2" {
            assert!(said.contains(".time_limit(std::time::Duration::from_millis(2000))"), "{said}");
        }
    }
}
