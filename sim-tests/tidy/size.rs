//! Sizes that a reader can hold: lines, functions, files; and the head that says what a file is.

use syn::visit::{self, Visit};

use super::source::{Finding, Source};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_COLUMNS_MAX: usize = 100;

/// No file, function body or line is longer than its limit.
pub(super) fn sizes(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        let what = format!("{lines} lines, at most {FILE_LINES_MAX}; split the file by its nouns");
        findings.push(source.finding("size", 1, what));
    }
    for (index, line) in source.text.lines().enumerate() {
        let columns = line.chars().count();
        // An address cannot be broken.
        if columns > LINE_COLUMNS_MAX && !line.contains("://") {
            let what = format!("{columns} columns, at most {LINE_COLUMNS_MAX}; break the line");
            findings.push(source.finding("size", index + 1, what));
        }
    }
    let mut measure = Measure { long: Vec::new() };
    measure.visit_file(&source.tree);
    findings.extend(measure.long.into_iter().map(|(line, name, lines)| {
        let what = format!("fn `{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}; split it");
        source.finding("size", line, what)
    }));
    findings
}

/// Each file opens with a head that says what it is.
pub(super) fn head(source: &Source) -> Vec<Finding> {
    if source.text.starts_with("//!") {
        return Vec::new();
    }
    let what = "no head; begin with `//!`: what the file is, relies on, leaves out";
    vec![source.finding("head", 1, what.to_string())]
}

/// The functions whose body is too long: line, name, lines of the body with its braces.
struct Measure {
    long: Vec<(usize, String, usize)>,
}

impl Measure {
    fn body(&mut self, name: &syn::Ident, body: &syn::Block) {
        let (first, last) = (body.brace_token.span.open().start(), body.brace_token.span.close());
        let lines = last.end().line + 1 - first.line;
        if lines > FUNCTION_LINES_MAX {
            self.long.push((name.span().start().line, name.to_string(), lines));
        }
    }
}

impl<'ast> Visit<'ast> for Measure {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.body(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.body(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.body(&item.sig.ident, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}
