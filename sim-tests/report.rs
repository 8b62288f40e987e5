//! Pages of violations: what must be on them, that no value breaks out, that they do not change.

use std::{collections::BTreeMap, fs, path::Path, sync::OnceLock};

use leasehold::{
    case::CaseOptions,
    checker::{self, Judgement},
    explore::run_and_judge,
    fault::family_of,
    history::{Event, EventKind, FaultAction, History, NodeName, Outcome, codec},
    judge::Judged,
    report::html::{self, Command, FaultNote, Page},
    scenario,
    seed::Seed,
};

mod markup;
mod program;

use markup::Markup;

/// The pages of all violations of a history that has no plan.
fn pages(history: &History) -> Vec<(Vec<u64>, String)> {
    let judgement = checker::judge(history, &BTreeMap::new());
    pages_of(history, &judgement, &BTreeMap::new())
}

fn pages_of(
    history: &History,
    judgement: &Judgement,
    faults: &BTreeMap<u32, FaultNote<'_>>,
) -> Vec<(Vec<u64>, String)> {
    let violated = judgement.findings.iter().filter_map(|f| Some((f, f.verdict.violation()?)));
    let write = |(finding, violation): (_, &checker::Violation)| {
        let page = Page {
            history,
            finding,
            judgement,
            faults: faults.clone(),
            facts: vec![("seed", "2".to_owned())],
            commands: vec![Command { label: "Copy".into(), text: "leasehold replay X".into() }],
        };
        (violation.events.clone(), html::page(&page))
    };
    violated.map(write).collect()
}

/// A run without a fence that lets a stale write in: seed 2 of the README's table.
fn judged() -> &'static Judged {
    static JUDGED: OnceLock<Judged> = OnceLock::new();
    JUDGED.get_or_init(unfenced)
}

fn unfenced() -> Judged {
    let scenario = scenario::find("fenced-lock").expect("it is there");
    let options = CaseOptions { guard: "unfenced".into(), ..CaseOptions::default() };
    let run = |seed| run_and_judge(&scenario.case(Seed(seed), options.clone()), None);
    let mut runs = (0..50).map(run).map(|outcome| outcome.expect("a run"));
    runs.find(|judged| judged.judgement.violation().is_some()).expect("a violation in 50 seeds")
}

fn notes(judged: &Judged) -> BTreeMap<u32, FaultNote<'_>> {
    let faults = (0..).zip(&judged.run.case.plan.faults);
    let note = |fault| {
        let family = family_of(&{ fault as &leasehold::plan::Fault }.kind);
        FaultNote { fault, family: family.name, colour: family.colour }
    };
    faults.map(|(index, fault)| (index, note(fault))).collect()
}

/// Each event of the evidence is a mark, a step, a pin and a row, each exactly once.
fn evidence_is_told(page: &Markup, events: &[u64]) {
    for seq in events {
        let mark = page.by_id(&format!("m{seq}")).unwrap_or_else(|| panic!("no mark of {seq}"));
        assert!(mark.has_class("m") && mark.has_class("evidence"), "{mark:?}");
        assert!(page.by_id(&format!("s{seq}")).is_some(), "no step of {seq}");
        let row = page.by_id(&format!("e{seq}")).expect("a row of the table");
        assert!(row.has_class("evidence"), "{row:?}");
        let own = seq.to_string();
        let pins = page.with_class("pin").filter(|pin| pin.get("data-e") == own).count();
        assert_eq!(pins, 1, "pins of {seq}");
    }
    assert_eq!(page.with_class("pin").count(), events.len());
}

/// Every bad golden history gives whole pages: the markup is strict, the evidence is told, each
/// node has its lane, and nothing is fetched from anywhere.
#[test]
fn pages_of_golden_histories_are_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sim-tests/histories");
    let mut read = 0;
    for checker in checker::all() {
        let files = fs::read_dir(root.join(checker.name())).expect("a folder of histories");
        for file in files.map(|file| file.expect("a readable folder").path()) {
            let text = fs::read_to_string(&file).expect("a readable file");
            let history = codec::decode(&text).expect("a history");
            for (events, html) in pages(&history) {
                let page = markup::read(&html);
                evidence_is_told(&page, &events);
                for event in &history.events {
                    let lane = format!("lane-{}", event.node);
                    assert!(page.by_id(&lane).is_some(), "{file:?}: no {lane}");
                }
                let outside =
                    html.matches("://").count() - html.matches("http://www.w3.org").count();
                assert_eq!(outside, 0, "{file:?}: something is fetched");
                read += 1;
            }
        }
    }
    assert!(read >= 15, "only {read} pages");
}

/// Of a run every applied fault has its band in the colour of its family, every fault its sentence,
/// every classed write its shape, every belief of a client a bar.
#[test]
fn faults_classes_and_beliefs_are_drawn() {
    let judged = judged();
    let history = &judged.run.history;
    let notes = notes(judged);
    let (events, html) = pages_of(history, &judged.judgement, &notes).remove(0);
    let page = markup::read(&html);
    evidence_is_told(&page, &events);
    for event in &history.events {
        let EventKind::Fault { index, action: FaultAction::Begin } = event.kind else { continue };
        let band = page.by_id(&format!("fault-{index}")).expect("a band of the fault");
        let colour = format!("--c:{}", notes[&index].colour);
        assert!(band.has_class("fault") && band.get("style").contains(&colour), "{band:?}");
    }
    for note in notes.values() {
        let sentence = note.fault.to_string().replace('>', "&gt;");
        assert!(html.contains(&sentence.replace('\'', "&#39;")), "no {sentence}");
    }
    for (class, count) in judged.judgement.classes.rows() {
        let drawn = page.with_class(class.name()).filter(|e| e.get("id").starts_with('m')).count();
        assert_eq!(drawn as u64, count, "{}", class.name());
    }
    let index = checker::Index::new(history);
    let believed = index.holdings.iter().filter(|holding| holding.belief.is_some()).count();
    let bars = page.with_class("belief").filter(|bar| bar.name == "a").count();
    assert_eq!(bars, believed);
    let stops = history.events.iter().filter(|event| event.kind == EventKind::Stop).count();
    let bars = page.with_class("stopped").filter(|bar| !bar.has_class("sample")).count();
    assert!(stops > 0 && bars == stops, "{bars} bars of {stops} stops");
    let tenures: usize = index.locks.iter().map(|lock| lock.tenures.len()).sum();
    let bars = page.with_class("tenure").filter(|bar| bar.name == "a").count();
    assert_eq!(bars, tenures);
}

/// The same case run twice gives the same bytes.
#[test]
fn the_same_run_gives_the_same_bytes() {
    let again = unfenced();
    let page = |judged: &Judged| {
        pages_of(&judged.run.history, &judged.judgement, &notes(judged)).remove(0).1
    };
    assert!(page(judged()) == page(&again), "two pages of one run differ");
}

/// Puts a text into every place of a history that can hold one.
fn poison(history: &mut History, text: &str) {
    let lock = |name: &str| name.replace("lock", &format!("lock{text}"));
    for event in &mut history.events {
        match &mut event.kind {
            EventKind::Apply(row) => {
                row.domain = lock(&row.domain);
                row.key.push_str(text);
                row.value = row.value.take().map(|value| value + text);
            }
            EventKind::Commit(commit) => {
                for change in &mut commit.events {
                    change.key = lock(&change.key);
                }
            }
            EventKind::Return { outcome: Outcome::Fail(why) | Outcome::Unknown(why), .. } => {
                why.push_str(text);
            }
            _ => {}
        }
        // Whatever else names the lock or a value, by way of its JSON.
        let json = serde_json::to_string(&event.kind).expect("an event is serialisable");
        let quoted = serde_json::to_string(text).expect("a text is serialisable");
        let quoted = &quoted[1..quoted.len() - 1];
        if json.starts_with("{\"invoke\"") || json.starts_with("{\"return\"") {
            let json = json.replace("\"lock\"}", &format!("\"lock{quoted}\"}}"));
            let json = json.replace("\"lock/", &format!("\"lock{quoted}/"));
            let json = json.replace("\"value\":\"", &format!("\"value\":\"{quoted}"));
            event.kind = serde_json::from_str(&json).expect("still an event");
        }
    }
    let mut add = |kind| {
        let (seq, at_ns) = (history.events.len() as u64, u64::MAX / 2);
        history.events.push(Event { seq, at_ns, node: NodeName::Client(1), kind });
    };
    add(EventKind::Point { name: text.to_owned() });
    add(EventKind::Fault { index: 7, action: FaultAction::Skipped(text.to_owned()) });
}

/// Golden: a value that tries to end the script, the attribute and the tag stays a text, in the
/// page and in its data.
#[test]
fn values_cannot_break_out() {
    let nasty = "</script><img src=x onerror='a()'>\"--><!--]]>&lt;\u{0}\u{1b}[2J\u{202e}";
    let safe = "&lt;/script&gt;&lt;img src=x onerror=&#39;a()&#39;&gt;&quot;--&gt;&lt;!--]]&gt;\
                &amp;lt;\\u{0}\\u{1b}[2J\\u{202e}";
    let text = include_str!("histories/no-stale-write/stale-read-admitted.bad.jsonl");
    let mut history = codec::decode(text).expect("a history");
    poison(&mut history, nasty);
    let (events, html) = pages(&history).remove(0);
    let page = markup::read(&html);
    evidence_is_told(&page, &events);
    assert!(html.contains(safe), "the text is not shown at all");
    assert_eq!((page.count("script"), page.count("style"), page.count("img")), (2, 1, 0));
    let odd = html.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(odd, None);
    let data = page.by_id("data").expect("the data");
    let data: BTreeMap<u64, Event> = serde_json::from_str(&data.text).expect("JSON");
    let events: Vec<Event> = data.into_values().collect();
    assert_eq!(events, history.events);
}

/// A history of more than 100,000 events gives a page of bounded size that says what it leaves
/// out, and still has all of the evidence.
#[test]
fn a_long_history_is_capped() {
    let text = include_str!("histories/no-stale-write/stale-read-admitted.bad.jsonl");
    let mut history = codec::decode(text).expect("a history");
    let held = |n: u64| EventKind::Held {
        holding: leasehold::history::HoldingId(2),
        held: false,
        local_ns: n * 1000,
        deadline_ns: u64::MAX / 2,
    };
    let tail = history.events.split_off(13);
    let begin = tail[0].at_ns;
    for n in 0..100_000 {
        let (seq, at_ns) = (13 + n, begin + n * 1000);
        history.events.push(Event { seq, at_ns, node: NodeName::Client(2), kind: held(n) });
    }
    for event in tail {
        let (seq, at_ns) = (event.seq + 100_000, event.at_ns + 100_000_000);
        history.events.push(Event { seq, at_ns, ..event });
    }
    let (events, html) = pages(&history).remove(0);
    let page = markup::read(&html);
    evidence_is_told(&page, &events);
    assert!(html.contains("showing 5000 of 100021 events"), "no note");
    assert!(page.with_class("left-out").count() >= 1, "the gap is not drawn");
    assert!(html.len() < 4_000_000, "{} bytes", html.len());
}

/// A clock at half of true time is one bar that says so, measured from the readings alone; what a
/// clock does at its right rate is no bar.
#[test]
fn a_clock_that_runs_wrong_is_seen() {
    let text = include_str!("histories/no-stale-write/stale-read-admitted.bad.jsonl");
    let mut history = codec::decode(text).expect("a history");
    let last = history.events.last().expect("events").at_ns;
    for n in 0..9 {
        let (seq, at_ns) = (history.events.len() as u64, last + n * 100_000_000);
        // Right, then half as fast, then right again.
        let member_ns =
            (n.min(3) + n.saturating_sub(6)) * 100_000_000 + (n.clamp(3, 6) - 3) * 50_000_000;
        let change = leasehold::history::LeaseChange::Renewed;
        let lease = leasehold::history::LeaseEvent { lease: 512, change, member_ns };
        let (node, kind) = (NodeName::Etcd(1), EventKind::Lease(lease));
        history.events.push(Event { seq, at_ns, node, kind });
    }
    let page = markup::read(&pages(&history).remove(0).1);
    let clocks: Vec<_> = page.with_class("clock").filter(|bar| bar.name == "a").collect();
    assert_eq!(clocks.len(), 1, "{clocks:?}");
    let title = clocks[0].get("title");
    assert!(title.contains("×0.50 of true time: 300 ms passed, it shows 150 ms"), "{title}");
}
