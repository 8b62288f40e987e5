//! The paths a file names: imports, inline paths, macro names, and paths inside macro calls.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use syn::{
    Attribute, Item, UseTree,
    spanned::Spanned,
    visit::{self, Visit},
};

use super::{source::Source, token};

/// How a path is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// By `use a::b::C;`
    Import,
    /// By `use a::b::*;`, without the star.
    Glob,
    /// Where a type, a value or a module stands.
    Inline,
    /// As the name of a macro that is called, without the `!`.
    Macro,
}

/// A path that a file names.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
    pub(super) kind: Kind,
    /// The name by which the file knows an import: its last segment, or the one after `as`.
    alias: Option<String>,
    /// The inline modules around it.
    inside: Vec<String>,
    /// It stands in code that only tests compile.
    pub(super) in_test: bool,
}

/// All paths that the file names, in their order.
pub(super) fn named(source: &Source) -> Vec<Named> {
    let mut collector = Collector {
        names: Vec::new(),
        inside: Vec::new(),
        in_test: source.test_only || tests_only(&source.tree.attrs),
    };
    collector.visit_file(&source.tree);
    collector.names
}

/// Names the full path of what was imported under a short name: after `use std::time;`,
/// `time::Instant` is `std::time::Instant`. Imports themselves are already full.
pub(super) struct Aliases(BTreeMap<(Vec<String>, String), Vec<String>>);

impl Aliases {
    /// The imports among these paths.
    pub(super) fn of(names: &[Named]) -> Self {
        let pairs = names.iter().filter_map(|name| {
            let alias = name.alias.clone()?;
            Some(((name.inside.clone(), alias), name.segments.clone()))
        });
        Aliases(pairs.collect())
    }

    /// The full path.
    pub(super) fn resolve(&self, name: &Named) -> Vec<String> {
        let first = name.segments[0].clone();
        let imported = match name.kind {
            Kind::Inline | Kind::Macro => self.0.get(&(name.inside.clone(), first)),
            Kind::Import | Kind::Glob => None,
        };
        match imported {
            Some(full) => full.iter().chain(&name.segments[1..]).cloned().collect(),
            None => name.segments.clone(),
        }
    }
}

/// The path from the crate root, if the name starts at `crate`, `self` or `super`.
pub(super) fn from_root(source: &Source, name: &Named) -> Option<Vec<String>> {
    let mut base: Vec<String> = source.module.iter().chain(&name.inside).cloned().collect();
    let mut rest = name.segments.as_slice();
    match rest.first()?.as_str() {
        "crate" | "leasehold" => return Some(rest[1..].to_vec()),
        "self" => rest = &rest[1..],
        "super" => {}
        _ => return None,
    }
    while rest.first().is_some_and(|segment| segment == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    Some(base)
}

/// Whether the attributes keep an item out of all builds but those of tests.
pub(super) fn tests_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return attribute.path().segments.last().is_some_and(|last| last.ident == "test");
        };
        let is_cfg = list.path.is_ident("cfg");
        let says = |word| token::mentions(&list.tokens, word);
        is_cfg && says("test") && !says("not") && !says("any")
    })
}

struct Collector {
    names: Vec<Named>,
    inside: Vec<String>,
    in_test: bool,
}

impl Collector {
    fn add(&mut self, segments: Vec<String>, line: usize, kind: Kind) {
        self.add_as(segments, line, kind, None);
    }

    fn add_as(&mut self, segments: Vec<String>, line: usize, kind: Kind, alias: Option<String>) {
        let (inside, in_test) = (self.inside.clone(), self.in_test);
        self.names.push(Named { segments, line, kind, alias, inside, in_test });
    }

    fn add_use(&mut self, prefix: &[String], tree: &UseTree) {
        let line = tree.span().start().line;
        let join = |last: String| match last.as_str() {
            "self" if !prefix.is_empty() => prefix.to_vec(),
            _ => prefix.iter().cloned().chain([last]).collect(),
        };
        match tree {
            UseTree::Path(path) => self.add_use(&join(path.ident.to_string()), &path.tree),
            UseTree::Name(name) => {
                let segments = join(name.ident.to_string());
                let alias = segments.last().cloned();
                self.add_as(segments, line, Kind::Import, alias);
            }
            UseTree::Rename(name) => {
                let alias = Some(name.rename.to_string());
                self.add_as(join(name.ident.to_string()), line, Kind::Import, alias);
            }
            UseTree::Glob(_) => self.add(prefix.to_vec(), line, Kind::Glob),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.add_use(prefix, item)),
        }
    }

    fn add_tokens(&mut self, stream: &TokenStream) {
        let mut skip = 0;
        let mut found = Vec::new();
        token::each(stream, &mut |tokens| {
            if skip > 0 {
                skip -= 1;
                return;
            }
            let Some((segments, taken)) = token::path(tokens) else { return };
            skip = taken - 1;
            let is_macro = token::macro_call(&tokens[taken - 1..]).is_some();
            let kind = if is_macro { Kind::Macro } else { Kind::Inline };
            found.push((segments, token::line(tokens), kind));
        });
        for (segments, line, kind) in found {
            self.add(segments, line, kind);
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        let before = self.in_test;
        self.in_test |= tests_only(attributes(item));
        let module = match item {
            Item::Mod(module) if module.content.is_some() => Some(module.ident.to_string()),
            _ => None,
        };
        let depth = self.inside.len();
        self.inside.extend(module);
        visit::visit_item(self, item);
        self.inside.truncate(depth);
        self.in_test = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let before = self.in_test;
        self.in_test |= tests_only(&item.attrs);
        visit::visit_impl_item_fn(self, item);
        self.in_test = before;
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_use(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(segments, path.span().start().line, Kind::Inline);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let segments = call.path.segments.iter().map(|segment| segment.ident.to_string());
        self.add(segments.collect(), call.path.span().start().line, Kind::Macro);
        self.add_tokens(&call.tokens);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
