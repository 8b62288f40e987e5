//! What the README says of "In your project" is the text of the crate in `sim-tests/user-crate`,
//! which continuous integration builds and runs out of the tree.

use std::{fs, path::Path};

const SECTION: &str = "\n## In your project\n";
const CRATE: &str = "sim-tests/user-crate/";

/// A block of code and the file that the lines before it link to.
fn blocks(section: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut file = None;
    let mut parts = section.split("```");
    while let (Some(text), Some(code)) = (parts.next(), parts.next()) {
        let link = text.rsplit_once(&format!("]({CRATE}")).map(|(_, after)| after);
        file = link.and_then(|link| link.split(')').next()).map(str::to_owned).or(file);
        let (_, code) = code.split_once('\n').expect("a language, then lines");
        found.push((file.clone().expect("a link to a file before the first block"), code.into()));
    }
    found
}

/// Every block of the section stands in its file, line by line; manifest, configuration, storage,
/// lock and property test are all shown.
#[test]
fn the_readme_shows_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("the README");
    let section = readme.split(SECTION).nth(1).expect("the section");
    let section = section.split("\n## ").next().expect("its end");
    let blocks = blocks(section);
    for (file, code) in &blocks {
        let text = fs::read_to_string(root.join(CRATE).join(file)).expect(file);
        assert!(text.contains(code.as_str()), "{file} does not contain this block:\n{code}");
    }
    for file in ["Cargo.toml", ".cargo/config.toml", "tests/storage.rs", "tests/lock.rs"] {
        assert!(blocks.iter().any(|(shown, _)| shown == file), "nothing of {file} is shown");
    }
}

/// The lines that the entry point of the real build asks for are those of the crate's
/// configuration.
#[test]
fn the_lines_to_add_are_the_lines_of_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = fs::read_to_string(root.join(CRATE).join(".cargo/config.toml")).expect("a file");
    let source = fs::read_to_string(root.join("src/testing/absent.rs")).expect("the source");
    let lines: Vec<&str> = config.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 3, "{config}");
    for line in lines {
        assert!(source.contains(&line.replace('"', "\\\"")), "{line} is not told");
    }
}
