//! Looking at tokens: what a syntax tree does not show because it sits inside a macro call.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// Calls `look` for each token, nested groups included: the tokens of its level from it on.
pub(super) fn each(stream: &TokenStream, look: &mut dyn FnMut(&[TokenTree])) {
    let level: Vec<TokenTree> = stream.clone().into_iter().collect();
    for (index, token) in level.iter().enumerate() {
        look(&level[index..]);
        if let TokenTree::Group(group) = token {
            each(&group.stream(), look);
        }
    }
}

/// The word, if the token is one; never the name of a lifetime, which follows a `'`.
pub(super) fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

/// Whether the token is this punctuation mark.
pub(super) fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

/// The group, if the token is one.
pub(super) fn group(token: Option<&TokenTree>) -> Option<&Group> {
    match token {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    }
}

/// The line of the first of these tokens.
pub(super) fn line(tokens: &[TokenTree]) -> usize {
    tokens.first().map_or(1, |token| token.span().start().line)
}

/// A macro call at the head of these tokens: `name ! ( … )`.
pub(super) fn macro_call(tokens: &[TokenTree]) -> Option<(String, &Group)> {
    let name = word(tokens.first())?;
    let body = group(tokens.get(2))?;
    is_mark(tokens.get(1), '!').then_some((name, body))
}

/// A path at the head of these tokens, and how many tokens it takes: `a :: b :: c`.
pub(super) fn path(tokens: &[TokenTree]) -> Option<(Vec<String>, usize)> {
    let mut segments = vec![word(tokens.first())?];
    let mut taken = 1;
    while is_mark(tokens.get(taken), ':') && is_mark(tokens.get(taken + 1), ':') {
        let Some(segment) = word(tokens.get(taken + 2)) else { break };
        segments.push(segment);
        taken += 3;
    }
    Some((segments, taken))
}

/// Whether the word occurs anywhere in these tokens.
pub(super) fn mentions(stream: &TokenStream, wanted: &str) -> bool {
    let mut found = false;
    each(stream, &mut |tokens| found |= word(tokens.first()).is_some_and(|word| word == wanted));
    found
}

/// A test function: the line and name of its `fn`, what its attributes say, and its body.
pub(super) struct TestFn {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) attributes: Vec<TokenStream>,
    pub(super) body: TokenStream,
}

/// The test functions in these tokens, those inside a macro such as `proptest!` included.
pub(super) fn test_fns(stream: &TokenStream) -> Vec<TestFn> {
    let mut found = Vec::new();
    collect_test_fns(stream, &mut found);
    found
}

fn collect_test_fns(stream: &TokenStream, found: &mut Vec<TestFn>) {
    let level: Vec<TokenTree> = stream.clone().into_iter().collect();
    let mut attributes = Vec::new();
    let mut open: Option<TestFn> = None;
    for (index, token) in level.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            if word(Some(token)).is_some_and(|word| word == "fn") {
                let name = word(level.get(index + 1)).unwrap_or_default();
                let attributes = std::mem::take(&mut attributes);
                open = attributes.iter().any(names_a_test).then(|| TestFn {
                    line: line(&level[index..]),
                    name,
                    attributes,
                    body: TokenStream::new(),
                });
            }
            continue;
        };
        let is_attribute = index > 0 && is_mark(level.get(index - 1), '#');
        match group.delimiter() {
            Delimiter::Bracket if is_attribute => attributes.push(group.stream()),
            Delimiter::Brace => {
                attributes.clear();
                if let Some(test) = open.take() {
                    found.push(TestFn { body: group.stream(), ..test });
                } else {
                    collect_test_fns(&group.stream(), found);
                }
            }
            _ => {}
        }
    }
}

/// `test`, `tokio::test`, `madsim::test`, with or without arguments.
fn names_a_test(attribute: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.clone().into_iter().collect();
    path(&tokens).is_some_and(|(segments, _)| segments.last().is_some_and(|last| last == "test"))
}
