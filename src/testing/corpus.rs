//! A folder of cases, run again.

use std::{fs, path::Path};

use crate::{corpus::Entry, explore::run_and_judge};

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
/// # Panics
/// With every case that gives another verdict; and if the folder holds none, or something else.
#[track_caller]
pub fn assert_corpus(dir: impl AsRef<Path>) -> usize {
    let entries = match read_corpus(dir) {
        Ok(entries) => entries,
        Err(error) => panic!("{error}"),
    };
    let wrong: Vec<String> = entries
        .iter()
        .filter_map(|entry| {
            let differs = entry.expect.differs(&run_and_judge(&entry.case, None))?;
            Some(format!("{} ({}): {differs}", entry.name, entry.shows))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), entries.len(), wrong.join("\n"));
    entries.len()
}
