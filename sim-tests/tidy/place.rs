//! Things that have their place or their form: `cfg(madsim)`, `select!`, hash collections, statics.

use syn::{
    spanned::Spanned,
    visit::{self, Visit},
};

use super::{
    path,
    source::{Finding, Source},
    token,
};

/// Where the two builds may differ: a folder stands for the file of its name too.
const BOUNDARY: &[&str] =
    &["time", "net", "point", "etcd/mod", "storage/disk", "lib", "cli/mod", "main"];

/// `cfg(madsim)` in any form stands only in the boundary files.
pub(super) fn cfg_madsim(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.in_src() || source.is_within(BOUNDARY) {
        return findings;
    }
    token::each(&source.tokens, &mut |tokens| {
        let is_cfg = token::word(tokens.first())
            .is_some_and(|word| ["cfg", "cfg_attr", "cfg_select", "cfg_if"].contains(&&*word));
        let after_mark = usize::from(token::is_mark(tokens.get(1), '!')) + 1;
        let group = token::group(tokens.get(after_mark));
        if is_cfg && group.is_some_and(|group| token::mentions(&group.stream(), "madsim")) {
            let what = "the builds differ here; move the difference into time, net, point, \
                        etcd/mod.rs, storage/disk, lib.rs or cli/mod.rs";
            findings.push(source.finding("cfg", token::line(tokens), what.to_string()));
        }
    });
    findings
}

/// Each `select!` has a fixed order: without it, equal seeds give unequal runs.
pub(super) fn select_biased(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    token::each(&source.tokens, &mut |tokens| {
        let Some((name, body)) = token::macro_call(tokens) else { return };
        let body: Vec<_> = body.stream().into_iter().collect();
        let first = token::word(body.first());
        let biased = first.is_some_and(|first| first == "biased");
        if name == "select" && !(biased && token::is_mark(body.get(1), ';')) {
            let what = "`select!` draws its order at random; begin it with `biased;`";
            findings.push(source.finding("select", token::line(tokens), what.to_string()));
        }
    });
    findings
}

/// No collection whose order depends on hash keys.
pub(super) fn hash_collections(source: &Source) -> Vec<Finding> {
    const HASHED: &[&str] = &["HashMap", "HashSet", "RandomState", "hash_map", "hash_set"];
    let mut findings = Vec::new();
    token::each(&source.tokens, &mut |tokens| {
        let Some(word) = token::word(tokens.first()) else { return };
        if source.in_src() && HASHED.contains(&&*word) {
            let what = format!("`{word}` has a random order; use BTreeMap, BTreeSet or Vec");
            findings.push(source.finding("hash", token::line(tokens), what));
        }
    });
    findings
}

/// No channel that wakes its receivers in an order drawn from the process: tokio's `watch` spreads
/// them over lists that it picks by a generator of its own, so equal seeds give unequal runs.
pub(super) fn watch_channels(source: &Source) -> Vec<Finding> {
    let is_watch = |name: &path::Named| {
        let segments: Vec<&str> = name.segments.iter().map(String::as_str).collect();
        source.in_src() && segments.starts_with(&["tokio", "sync", "watch"])
    };
    let what = "tokio's `watch` wakes in an order drawn per process; use Notify beside a value";
    let names = path::named(source).into_iter().filter(is_watch);
    names.map(|name| source.finding("watch", name.line, what.to_string())).collect()
}

/// No process-global state: runs share a process, and would read each other's. The hook that prints
/// panics is the process's by nature; it changes nothing in a run.
pub(super) fn mutable_statics(source: &Source) -> Vec<Finding> {
    if !source.in_src() || source.is_within(&["cli", "cluster/quiet"]) {
        return Vec::new();
    }
    let mut finder = StaticFinder { lines: Vec::new() };
    finder.visit_file(&source.tree);
    let macros = path::named(source).into_iter().filter(|name| {
        let last = name.segments.last().map(String::as_str);
        name.kind == path::Kind::Macro && matches!(last, Some("thread_local" | "lazy_static"))
    });
    finder.lines.extend(macros.map(|name| name.line));
    let what = "a static that changes outlives a run; keep the value in the run and hand it in";
    finder.lines.into_iter().map(|line| source.finding("static", line, what.to_string())).collect()
}

struct StaticFinder {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for StaticFinder {
    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        let mut words = WordFinder { mutable: false };
        words.visit_type(&item.ty);
        if words.mutable || matches!(item.mutability, syn::StaticMutability::Mut(_)) {
            self.lines.push(item.span().start().line);
        }
        visit::visit_item_static(self, item);
    }
}

/// Whether a type has a part that changes behind a shared reference.
struct WordFinder {
    mutable: bool,
}

impl<'ast> Visit<'ast> for WordFinder {
    fn visit_ident(&mut self, ident: &'ast syn::Ident) {
        const CELLS: &[&str] = &[
            "Mutex",
            "RwLock",
            "Once",
            "OnceLock",
            "OnceCell",
            "LazyLock",
            "LazyCell",
            "Cell",
            "RefCell",
            "UnsafeCell",
            "LocalKey",
        ];
        let word = ident.to_string();
        self.mutable |= word.starts_with("Atomic") || CELLS.contains(&&*word);
    }
}
