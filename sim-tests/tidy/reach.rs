//! Dead files, and files that only tests compile: both follow from the `mod` lines.

use std::collections::BTreeSet;

use syn::{Item, ItemMod};

use super::{
    path,
    source::{Finding, Source, Tree},
};

/// The files where a crate begins; each file right below these folders begins one of its own.
const ROOTS: &[&str] = &["src/lib.rs", "src/main.rs", "sim-tests/sim.rs", "sim-tests/real.rs"];
const ROOT_FOLDERS: &[&str] = &["examples", "benches", "src/bin"];

fn is_root(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    // `examples/own/main.rs` is a root as `examples/own.rs` is.
    let outer = folder.rsplit_once('/').map_or("", |(outer, _)| outer);
    ROOTS.contains(&path)
        || ROOT_FOLDERS.contains(&folder)
        || (name == "main.rs" && ROOT_FOLDERS.contains(&outer))
}

/// Each file is reached by `mod` lines from a root.
pub(super) fn dead_files(tree: &Tree) -> Vec<Finding> {
    let reached: BTreeSet<String> = walk(tree).into_iter().map(|(path, _)| path).collect();
    let dead = tree.sources.iter().filter(|source| !reached.contains(&source.path));
    dead.map(|source| {
        let what = "no `mod` line leads here; add one, or delete the file";
        source.finding("dead", 1, what.to_string())
    })
    .collect()
}

/// Marks the files to which only `#[cfg(test)] mod …;` leads.
pub(super) fn mark_test_only(tree: &mut Tree) {
    let reached = walk(tree);
    for source in &mut tree.sources {
        let mut ways = reached.iter().filter(|(path, _)| *path == source.path).peekable();
        source.test_only = ways.peek().is_some() && ways.all(|(_, test_only)| *test_only);
    }
}

/// The files that `mod` lines reach, and whether the way there is for tests only.
fn walk(tree: &Tree) -> BTreeSet<(String, bool)> {
    let mut reached = BTreeSet::new();
    let roots = tree.sources.iter().filter(|source| is_root(&source.path));
    let mut open: Vec<(String, bool)> = roots.map(|root| (root.path.clone(), false)).collect();
    while let Some((path, test_only)) = open.pop() {
        let Some(source) = tree.sources.iter().find(|source| source.path == path) else { continue };
        if reached.insert((path, test_only)) {
            modules(source, &source.tree.items, &module_folder(source), test_only, &mut open);
        }
    }
    reached
}

/// Where the modules of a file lie: beside it for roots and `mod.rs`, else in a folder of its name.
fn module_folder(source: &Source) -> String {
    let (folder, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    match is_root(&source.path) || name == "mod.rs" {
        true => folder.to_string(),
        false => source.path.trim_end_matches(".rs").to_string(),
    }
}

/// Adds the files that the `mod` lines among these items may mean.
fn modules(
    source: &Source,
    items: &[Item],
    folder: &str,
    test_only: bool,
    open: &mut Vec<(String, bool)>,
) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let test_only = test_only || path::tests_only(&module.attrs);
        let below = format!("{folder}/{}", module.ident);
        match (&module.content, path_attribute(module)) {
            (Some((_, items)), _) => modules(source, items, &below, test_only, open),
            // The path is relative to the folder of the file that has the line.
            (None, Some(path)) => {
                let beside = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                open.push((normal(&format!("{beside}/{path}")), test_only));
            }
            (None, None) => {
                open.push((format!("{below}.rs"), test_only));
                open.push((format!("{below}/mod.rs"), test_only));
            }
        }
    }
}

fn path_attribute(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The path without `..` and `.`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
