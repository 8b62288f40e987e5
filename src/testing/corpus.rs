//! A folder of cases, run again: on the crate's own parts, or on the caller's.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{LockUnderTest, StorageUnderTest, after, own_lock, own_storage};
use crate::{
    corpus::{Entry, Expectation},
    explore::run_and_judge,
    judge::RunClass,
    system::{Change, OwnParts},
};

/// Reads all cases of a folder (its `*.json` files), in the order of their names.
///
/// # Errors
/// With the file and what is wrong: it cannot be read, holds no case, is called otherwise than its
/// case; or there is none at all.
pub fn read_corpus(dir: impl AsRef<Path>) -> Result<Vec<Entry>, String> {
    let dir = dir.as_ref();
    let of_dir = |error: std::io::Error| format!("{}: {error}", dir.display());
    let mut files = Vec::new();
    for file in fs::read_dir(dir).map_err(of_dir)? {
        files.push(file.map_err(of_dir)?.path());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut entries = Vec::new();
    for path in &files {
        let at = |why: String| format!("{}: {why}", path.display());
        let text = fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        let entry = Entry::from_json(&text).map_err(|error| at(error.to_string()))?;
        if path.file_stem() != Some(entry.name.as_ref()) {
            let name = &entry.name;
            return Err(at(format!("field \"name\": {name:?}; call the file {name}.json")));
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(format!("{}: no cases (*.json) in it", dir.display()));
    }
    Ok(entries)
}

/// Runs all cases of a folder and panics unless each gives the verdict that it must give: the first
/// test of a suite. Gives how many there were.
///
/// Cases of a storage or a lock of your own go into another folder, which is for [`corpus`].
///
/// # Panics
/// With every case that gives another verdict; and if the folder holds none, something else, or a
/// case of parts of your own.
#[track_caller]
pub fn assert_corpus(dir: impl AsRef<Path>) -> usize {
    let entries = match read_corpus(&dir) {
        Ok(entries) => entries,
        Err(error) => panic!("{error}"),
    };
    if let Some(entry) = entries.iter().find(|entry| entry.own.any()) {
        let (dir, name) = (dir.as_ref().display(), &entry.name);
        panic!(
            "{dir}: {name} is a case of a {} of your own, and this runs the crate's: move it to a \
             folder of its own, and run that with testing::corpus(FOLDER){}.assert_passes()",
            entry.own.names().join(" and "),
            entry.own.calls()
        );
    }
    judged(&entries, |entry| entry.expect.clone(), None)
}

/// The cases of a folder, to be run on parts of your own.
///
/// ```no_run
/// # use leasehold::testing::{self, StorageUnderTest};
/// # fn check<Mine: StorageUnderTest + Default>() {
/// // Each of them failed once, on this storage or on an earlier one; none does any more.
/// testing::corpus("corpus-of-mine").storage(Mine::default).assert_passes();
/// # }
/// ```
pub fn corpus(dir: impl AsRef<Path>) -> CorpusCheck {
    CorpusCheck { dir: dir.as_ref().to_owned(), change: None }
}

/// The cases of a folder, and what they are to be run on; made by [`corpus`].
#[derive(Clone)]
pub struct CorpusCheck {
    dir: PathBuf,
    change: Option<Change>,
}

impl std::fmt::Debug for CorpusCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CorpusCheck").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl CorpusCheck {
    /// On a storage of your own, made anew for each run.
    pub fn storage<S: StorageUnderTest>(
        mut self,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        self.change = Some(after(self.change.take(), own_storage(make)));
        self
    }

    /// With a lock recipe of your own.
    pub fn lock<L: LockUnderTest>(mut self) -> Self {
        self.change = Some(after(self.change.take(), own_lock::<L>()));
        self
    }

    /// Runs all cases and panics unless each passes on these parts. Gives how many there were.
    ///
    /// The verdict in a file that a failing check saved is the one that it failed with: it says
    /// what was wrong, and must not come again.
    ///
    /// # Panics
    /// With every case that does not pass; and if the folder holds none, or something else; a case
    /// of own parts that are not given; or one that is to show what is wrong with the crate's.
    #[track_caller]
    pub fn assert_passes(&self) -> usize {
        let given = OwnParts::of(self.change.as_ref());
        let entries = match read_corpus(&self.dir) {
            Ok(entries) => entries,
            Err(error) => panic!("{error}"),
        };
        for Entry { name, own, expect, .. } in &entries {
            let (dir, missing) = (self.dir.display(), own.without(given));
            assert!(
                !missing.any(),
                "{dir}: {name} is a case of a {} of your own: give it with corpus(…){}",
                missing.names().join(" and "),
                missing.calls()
            );
            assert!(
                own.any() || expect.class == RunClass::Pass,
                "{dir}: {name} shows what is wrong with parts of the crate ({expect}): move it to \
                 another folder, and run that with testing::assert_corpus(FOLDER)",
            );
        }
        let passes = |entry: &Entry| Expectation {
            class: RunClass::Pass,
            broken: None,
            reached: entry.expect.reached.clone(),
        };
        judged(&entries, passes, self.change.as_ref())
    }
}

/// Holds each case against what is expected of it.
#[track_caller]
fn judged(
    entries: &[Entry],
    expected: impl Fn(&Entry) -> Expectation,
    change: Option<&Change>,
) -> usize {
    let wrong: Vec<String> = entries
        .iter()
        .filter_map(|entry| {
            let differs = expected(entry).differs(&run_and_judge(&entry.case, change))?;
            Some(format!("{} ({}): {differs}", entry.name, entry.shows))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
    entries.len()
}
