//! Things left over or left out: unfinished code, switched-off tests, tests that assert nothing,
//! and module names that say nothing.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::{
    source::{Finding, Source},
    token,
};

/// No unfinished code, no debug print, no test that is switched off.
pub(super) fn leftovers(source: &Source) -> Vec<Finding> {
    const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];
    let mut findings = Vec::new();
    token::each(&source.tokens, &mut |tokens| {
        if let Some((name, _)) = token::macro_call(tokens)
            && UNFINISHED.contains(&&*name)
        {
            let what = format!("`{name}!` is left over; finish it, or return an explicit error");
            findings.push(source.finding("leftover", token::line(tokens), what));
        }
        let attribute = token::group(tokens.get(1)).filter(|_| token::is_mark(tokens.first(), '#'));
        if attribute.is_some_and(|group| switches_off(&group.stream())) {
            let what = "a test that never runs proves nothing; assert what holds today, or delete";
            findings.push(source.finding("leftover", token::line(tokens), what.to_string()));
        }
    });
    findings
}

/// `ignore`, `ignore = "…"`, `cfg_attr(…, ignore)`.
fn switches_off(attribute: &TokenStream) -> bool {
    let first = token::word(attribute.clone().into_iter().next().as_ref());
    match first.as_deref() {
        Some("ignore") => true,
        Some("cfg_attr") => token::mentions(attribute, "ignore"),
        _ => false,
    }
}

/// Files and modules are named for what they hold.
pub(super) fn module_names(source: &Source) -> Vec<Finding> {
    const EMPTY: &[&str] =
        &["util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"];
    let finding = |line, name: &str| {
        let what = format!("`{name}` says nothing; name the module for what it holds");
        source.finding("name", line, what)
    };
    let parts = source.path.trim_end_matches(".rs").split('/');
    let mut findings: Vec<Finding> =
        parts.filter(|part| EMPTY.contains(part)).map(|part| finding(1, part)).collect();
    let mut inline = InlineModules { names: Vec::new() };
    inline.visit_file(&source.tree);
    let bad = inline.names.iter().filter(|(_, name)| EMPTY.contains(&&**name));
    findings.extend(bad.map(|(line, name)| finding(*line, name)));
    findings
}

struct InlineModules {
    names: Vec<(usize, String)>,
}

impl<'ast> Visit<'ast> for InlineModules {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // A module in a file of its own is found by its path.
        if item.content.is_some() {
            self.names.push((item.ident.span().start().line, item.ident.to_string()));
        }
        visit::visit_item_mod(self, item);
    }
}

/// Each test asserts something: itself, or through a function named `assert…`, `expect…` or so.
pub(super) fn tests_assert(source: &Source) -> Vec<Finding> {
    let silent = token::test_fns(&source.tokens).into_iter().filter(|test| {
        let expected = test.attributes.iter().any(|attribute| {
            token::mentions(attribute, "should_panic") && token::mentions(attribute, "expected")
        });
        !expected && !asserts(&test.body)
    });
    silent
        .map(|test| {
            let what = format!("test `{}` asserts nothing; assert what it proves", test.name);
            source.finding("assert", test.line, what)
        })
        .collect()
}

fn asserts(body: &TokenStream) -> bool {
    let mut found = false;
    token::each(body, &mut |tokens| {
        let Some(word) = token::word(tokens.first()) else { return };
        let begins = |starts: &[&str]| starts.iter().any(|start| word.starts_with(start));
        if token::macro_call(tokens).is_some() {
            found |= word == "panic" || begins(&["assert", "prop_assert", "expect", "check"]);
        } else if calls(tokens) {
            // `expect` alone is an unwrap, not an assertion.
            let helper = word != "expect" && begins(&["assert", "expect", "check"]);
            found |= helper || word == "unwrap_err";
        }
    });
    found
}

/// `name(…)` or `name::<T>(…)`.
fn calls(tokens: &[TokenTree]) -> bool {
    token::group(tokens.get(1)).is_some() || token::is_mark(tokens.get(1), ':')
}
