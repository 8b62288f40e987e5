//! The sources as the rules see them: text, tokens and syntax tree, with a path and a module.

use std::{fmt, fs, path::Path};

use proc_macro2::TokenStream;

use super::reach;

/// One thing that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    /// Relative to the crate's folder, with `/`.
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) rule: &'static str,
    /// What is there and what to do about it.
    pub(super) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.what)
    }
}

/// One source file.
pub(super) struct Source {
    /// Relative to the crate's folder, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) tokens: TokenStream,
    pub(super) tree: syn::File,
    /// Where the file sits below `src`: `["etcd", "server"]`; empty for `lib.rs` and outside `src`.
    pub(super) module: Vec<String>,
    /// The file is declared by `#[cfg(test)] mod …;` and never part of a build.
    pub(super) test_only: bool,
}

impl Source {
    /// Parses a file's text; what cannot be parsed is a finding.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, Finding> {
        let broken = |line, what: String| Finding {
            path: path.to_string(),
            line,
            rule: "syntax",
            what: format!("cannot be parsed ({what}); make it compile first"),
        };
        let tree = syn::parse_file(text)
            .map_err(|error| broken(error.span().start().line, error.to_string()))?;
        let tokens =
            text.parse().map_err(|error: proc_macro2::LexError| broken(1, error.to_string()))?;
        Ok(Source {
            path: path.to_string(),
            text: text.to_string(),
            tokens,
            tree,
            module: module_of(path),
            test_only: false,
        })
    }

    /// A finding of this file.
    pub(super) fn finding(&self, rule: &'static str, line: usize, what: String) -> Finding {
        Finding { path: self.path.clone(), line, rule, what }
    }

    /// Whether the file is part of the crate itself, not of its tests, examples and benches.
    pub(super) fn in_src(&self) -> bool {
        self.path.starts_with("src/")
    }

    /// The module right below the crate root in which the file sits: `etcd`, `time`, `main`.
    pub(super) fn area(&self) -> &str {
        self.module.first().map_or("", String::as_str)
    }

    /// Whether the file is one of these: `time` is `src/time.rs` and all of `src/time/`,
    /// `storage/disk` is `src/storage/disk.rs` and all of `src/storage/disk/`.
    pub(super) fn is_within(&self, places: &[&str]) -> bool {
        places.iter().any(|place| {
            let rest = self.path.strip_prefix("src/").and_then(|path| path.strip_prefix(place));
            self.in_src() && rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    }
}

/// `src/etcd/mod.rs` is `["etcd"]`, `src/time/real.rs` is `["time", "real"]`.
fn module_of(path: &str) -> Vec<String> {
    let Some(inner) = path.strip_prefix("src/").and_then(|path| path.strip_suffix(".rs")) else {
        return Vec::new();
    };
    let mut module: Vec<String> = inner.split('/').map(String::from).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    module
}

/// All sources of the crate.
pub(super) struct Tree {
    pub(super) sources: Vec<Source>,
    /// Files that could not be read or parsed.
    pub(super) broken: Vec<Finding>,
}

impl Tree {
    /// Reads what lies below the crate's folder.
    pub(super) fn read(root: &Path) -> Self {
        let mut texts = Vec::new();
        for folder in ["src", "sim-tests", "examples", "benches"] {
            collect(root, folder, &mut texts);
        }
        Self::parse(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())))
    }

    /// A tree of the given files: path and text.
    pub(super) fn parse<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut sources, mut broken) = (Vec::new(), Vec::new());
        for (path, text) in texts {
            match Source::parse(path, text) {
                Ok(source) => sources.push(source),
                Err(finding) => broken.push(finding),
            }
        }
        let mut tree = Tree { sources, broken };
        reach::mark_test_only(&mut tree);
        tree
    }
}

/// Adds the Rust files below `folder`, sorted; a folder with a manifest is another crate.
fn collect(root: &Path, folder: &str, texts: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return };
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the crate's folders are readable").file_name())
        .map(|name| name.into_string().expect("the crate's file names are plain text"))
        .collect();
    names.sort();
    if names.iter().any(|name| name == "Cargo.toml") {
        return;
    }
    for name in names {
        let path = format!("{folder}/{name}");
        if root.join(&path).is_dir() {
            collect(root, &path, texts);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(root.join(&path)).expect("a source file is readable");
            texts.push((path, text));
        }
    }
}
