//! Cases that are worth keeping, each with what it shows and the verdict that it must give.
//!
//! An entry is one JSON file: written by `explore --save`, given a name and a sentence by whoever
//! keeps it, run again by `cargo test` before any new seed. It holds no run hash: a change of the
//! crate may give another run, but not another verdict. Files are the business of `cli` and
//! `testing`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    case::{Case, CaseError, parse_field, parse_json},
    checker::Property,
    explore::Outcome,
    judge::{BrokenRule, RunClass},
    scenario,
    system::OwnParts,
};

/// The version of the format.
pub const CORPUS_VERSION: u64 = 1;

const VERSION_FIELD: &str = "corpus_version";
const OWN_FIELD: &str = "own";
const FIELDS: [&str; 6] = [VERSION_FIELD, "name", "shows", OWN_FIELD, "case", "expect"];

/// A case of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is called; its file is called so too.
    pub name: String,
    /// What it shows, in a sentence.
    pub shows: String,
    /// The parts of the caller's own on which it was found: without them it shows nothing.
    pub own: OwnParts,
    /// The case.
    pub case: Case,
    /// The verdict that it must give. With own parts it is the one that they gave when it was
    /// saved: once they are mended, it must pass.
    pub expect: Expectation,
}

/// The verdict that a case must give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// The class of the run.
    pub class: RunClass,
    /// What it must break, if anything; it may break more.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenRule>,
    /// What must happen in it, so that a pass is no idle one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reached: Vec<Property>,
}

/// The text is no case of a corpus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CorpusError {
    /// It is JSON of something else.
    #[error(
        "not a case of a corpus: field {VERSION_FIELD:?} is missing; \
         `leasehold explore --save DIR` writes such files"
    )]
    Foreign,
    /// Another format.
    #[error("{VERSION_FIELD} is {0}, this build reads {CORPUS_VERSION}: save the case anew")]
    Version(String),
    /// Something in it is wrong; the field is named.
    #[error(transparent)]
    Case(#[from] CaseError),
}

impl Expectation {
    /// What is not as expected; nothing if all is.
    pub fn differs(&self, outcome: &Outcome) -> Option<String> {
        let judged = match outcome {
            Ok(judged) => judged,
            Err(_) if self.class == RunClass::HarnessError => return None,
            Err(broken) => return Some(format!("expected {self}, got no run: {}", broken.1)),
        };
        let found = || match judged.worst() {
            None => "pass".to_owned(),
            Some(finding) => format!("{} by {}", finding.verdict, finding.checker),
        };
        if judged.class() != self.class || self.broken.as_ref().is_some_and(|b| !b.is_in(judged)) {
            return Some(format!("expected {self}, got {}", found()));
        }
        let reached = &judged.judgement.reached;
        let missing = self.reached.iter().find(|property| !reached.contains(**property))?;
        Some(format!("expected {self}, but this did not happen: {}", missing.name()))
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.class.name())?;
        match &self.broken {
            Some(broken) => write!(f, " ({broken})"),
            None => Ok(()),
        }
    }
}

impl Entry {
    /// The entry of a case that gave this class and broke this rule on these parts, named after
    /// what it shows, on what, and where.
    pub fn of(case: &Case, class: RunClass, broken: Option<BrokenRule>, own: OwnParts) -> Entry {
        let options = &case.options;
        let expect = Expectation { class, broken, reached: Vec::new() };
        let what = match &expect.broken {
            Some(BrokenRule { checker, rule }) => format!("{checker}-{rule}"),
            None => expect.class.name().replace(' ', "-"),
        };
        // What everybody has needs no word, and neither has what an own part takes the place of.
        let usual = scenario::CATALOG[0].name;
        let parts = [
            what.as_str(),
            if case.scenario == usual { "" } else { &case.scenario },
            if own.storage { "own-storage" } else { &options.guard },
            if own.lock { "own-lock" } else { &options.token },
            &options.bug,
        ];
        let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        Entry { name, shows: case.sentence(), own, case: case.clone(), expect }
    }

    /// The same, called otherwise.
    pub fn called(mut self, name: String) -> Entry {
        self.name = name;
        self
    }

    /// The entry as JSON text that [`Entry::from_json`] reads.
    pub fn to_json(&self) -> String {
        let own = match self.own.any() {
            true => format!("\"{OWN_FIELD}\": {},\n", line(&self.own.names())),
            false => String::new(),
        };
        format!(
            "{{\n\"{VERSION_FIELD}\": {CORPUS_VERSION},\n\"name\": {},\n\"shows\": {},\n{own}\
             \"expect\": {},\n\"case\": {}\n}}\n",
            line(&self.name),
            line(&self.shows),
            line(&self.expect),
            self.case.to_json()
        )
    }

    /// Reads an entry from JSON text.
    ///
    /// # Errors
    /// If it is not JSON, no entry, of another version, or a field is wrong, which is named.
    pub fn from_json(text: &str) -> Result<Entry, CorpusError> {
        Entry::from_value(&parse_json(text)?)
    }

    fn from_value(value: &Value) -> Result<Entry, CorpusError> {
        let object = value.as_object().ok_or(CorpusError::Foreign)?;
        match object.get(VERSION_FIELD) {
            None => return Err(CorpusError::Foreign),
            Some(version) if *version == CORPUS_VERSION => {}
            Some(version) => return Err(CorpusError::Version(version.to_string())),
        }
        let field = |field: &str, message: &str| CaseError::Field {
            field: field.to_owned(),
            message: message.to_owned(),
        };
        if let Some(key) = object.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            return Err(field(key, "no such field: correct its name or remove it").into());
        }
        let case = object.get("case").ok_or_else(|| field("case", "it is missing"))?;
        let expect: Expectation = parse_field(object, "", "expect")?;
        if (expect.class == RunClass::Violation) != expect.broken.is_some() {
            let message = "a violation, and only that, has a checker and a rule";
            return Err(field("expect", message).into());
        }
        if let Some(broken) = &expect.broken {
            let known = scenario::find_checker(&broken.checker);
            known.map_err(|error| field("expect.checker", &error.to_string()))?;
        }
        let own: Vec<String> = match object.get(OWN_FIELD) {
            Some(_) => parse_field(object, "", OWN_FIELD)?,
            None => Vec::new(),
        };
        let own = OwnParts::named(&own).ok_or_else(|| {
            field(OWN_FIELD, &format!("{own:?}, expected \"storage\", \"lock\", or both, once"))
        })?;
        Ok(Entry {
            name: parse_field(object, "", "name")?,
            shows: parse_field(object, "", "shows")?,
            own,
            case: Case::from_value(case, "case")?,
            expect,
        })
    }
}

/// Reads a case from JSON text: a bare one, or one of a corpus with all that is said of it.
///
/// # Errors
/// If it is neither; what is wrong is named with its field.
pub fn read_case(text: &str) -> Result<(Case, Option<Entry>), CorpusError> {
    let value = parse_json(text)?;
    if value.get(VERSION_FIELD).is_some() {
        let entry = Entry::from_value(&value)?;
        return Ok((entry.case.clone(), Some(entry)));
    }
    Ok((Case::from_value(&value, "")?, None))
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("an entry has no unserialisable part")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{case::CaseOptions, explore::run_and_judge, scenario, seed::Seed};

    fn entry() -> Entry {
        let case = scenario::CATALOG[0].case(Seed(3), CaseOptions::default());
        let (checker, rule) = ("no-stale-write".to_owned(), "stale-accepted".to_owned());
        Entry {
            name: "late".into(),
            shows: "a late write".into(),
            own: OwnParts::NONE,
            case,
            expect: Expectation {
                class: RunClass::Violation,
                broken: Some(BrokenRule { checker, rule }),
                reached: vec![Property::Overlap],
            },
        }
    }

    /// What is written is read again, with and without a broken rule; a bare case is read too.
    #[test]
    fn round_trip() {
        let mut entry = entry();
        assert_eq!(Entry::from_json(&entry.to_json()), Ok(entry.clone()));
        let read = read_case(&entry.to_json());
        assert_eq!(read, Ok((entry.case.clone(), Some(entry.clone()))));
        assert_eq!(read_case(&entry.case.to_json()), Ok((entry.case.clone(), None)));
        entry.expect = Expectation { class: RunClass::Pass, broken: None, reached: Vec::new() };
        assert_eq!(Entry::from_json(&entry.to_json()), Ok(entry.clone()));
        for (storage, lock) in [(true, false), (false, true), (true, true)] {
            entry.own = OwnParts { storage, lock };
            assert_eq!(Entry::from_json(&entry.to_json()), Ok(entry.clone()));
        }
    }

    /// Cases that differ in scenario, scheme or own parts have names that differ.
    #[test]
    fn names_carry_what_differs() {
        let entry = entry();
        let name = |scenario: &str, own: OwnParts| {
            let case = Case { scenario: scenario.into(), ..entry.case.clone() };
            Entry::of(&case, RunClass::Violation, entry.expect.broken.clone(), own).name
        };
        let none = OwnParts::NONE;
        let usual = "no-stale-write-stale-accepted-monotonic-revision";
        assert_eq!(name("fenced-lock", none), usual);
        let calm = "no-stale-write-stale-accepted-calm-monotonic-revision";
        assert_eq!(name("calm", none), calm);
        let own = name("fenced-lock", OwnParts { storage: true, ..none });
        assert_eq!(own, "no-stale-write-stale-accepted-own-storage-revision");
        let own = name("fenced-lock", OwnParts { lock: true, ..none });
        assert_eq!(own, "no-stale-write-stale-accepted-monotonic-own-lock");
    }

    /// Whatever is wrong is named with its field.
    #[test]
    fn what_is_wrong_is_named() {
        let changes = [
            ("corpus_version", "version", "\"corpus_version\" is missing"),
            ("\"corpus_version\": 1", "\"corpus_version\": 4", "corpus_version is 4"),
            ("\"shows\"", "\"show\"", "field \"show\": no such field"),
            ("\"class\"", "\"klass\"", "field \"expect\": missing field `class`"),
            ("\"violation\"", "\"pass\"", "field \"expect\": a violation, and only that"),
            ("\"rule\"", "\"rul\"", "field \"expect"),
            (
                "stale-write",
                "stale-wrote",
                "field \"expect.checker\": unknown checker \"no-stale-wr",
            ),
            ("\"expect\"", "\"own\": [\"disk\"],\n\"expect\"", "field \"own\": [\"disk\"], exp"),
            ("\"expect\"", "\"own\": \"lock\",\n\"expect\"", "field \"own\": invalid type"),
            ("\"overlap\"", "\"overlop\"", "field \"expect\": unknown variant `overlop`"),
            ("\"seed\": 3", "\"seed\": true", "field \"case.seed\""),
            ("\"length_ms\"", "\"length\"", "field \"case.plan.faults[0].length\""),
        ];
        for (from, to, expected) in changes {
            let text = entry().to_json().replacen(from, to, 1);
            let error = Entry::from_json(&text).expect_err(to).to_string();
            assert!(error.contains(expected), "{to}: {error}");
        }
        let bare = Entry::from_json(&entry().case.to_json());
        assert_eq!(bare, Err(CorpusError::Foreign));
    }

    /// A verdict is held against what is expected: class, rule, and what must happen.
    #[test]
    fn a_verdict_that_differs_is_told() {
        let mut expect = entry().expect;
        let outcome = run_and_judge(&entry().case, None);
        let told = expect.differs(&outcome).expect("it passes and should not");
        let expected = "expected violation (no-stale-write: stale-accepted), got pass";
        assert_eq!(told, expected);
        expect = Expectation { class: RunClass::Pass, broken: None, reached: Vec::new() };
        assert_eq!(expect.differs(&outcome), None);
        let judged = outcome.as_ref().expect("a run");
        let rows = || judged.judgement.reached.rows();
        let (never, _) = rows().find(|(_, count)| *count == 0).expect("not all happens in one run");
        expect.reached.push(never);
        assert!(expect.differs(&outcome).is_some_and(|told| told.ends_with(never.name())));
        expect.class = RunClass::HarnessError;
        assert!(expect.differs(&outcome).is_some());
    }
}
