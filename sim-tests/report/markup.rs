//! A strict reader of the pages: every tag closed, every attribute quoted, no id twice.

use std::collections::BTreeMap;

/// An element: its name, its attributes, and the text right after its start.
#[derive(Debug)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    pub text: String,
}

impl Element {
    pub fn get(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    pub fn has_class(&self, class: &str) -> bool {
        self.get("class").split(' ').any(|known| known == class)
    }
}

/// A page that was read.
#[derive(Debug)]
pub struct Markup {
    pub elements: Vec<Element>,
}

impl Markup {
    /// The elements of this id: one, or none.
    pub fn by_id(&self, id: &str) -> Option<&Element> {
        self.elements.iter().find(|element| element.get("id") == id)
    }

    pub fn with_class(&self, class: &str) -> impl Iterator<Item = &Element> {
        self.elements.iter().filter(move |element| element.has_class(class))
    }

    pub fn count(&self, name: &str) -> usize {
        self.elements.iter().filter(|element| element.name == name).count()
    }
}

/// Reads a page, and fails on anything that a browser would have to guess.
pub fn read(html: &str) -> Markup {
    let body = html.strip_prefix(leasehold::report::html::SIGNATURE).expect("the first line");
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        let (tag, after) = tag[1..].split_once('>').expect("a tag that ends");
        assert!(!text.contains('>'), "a stray > in {text:?}");
        if let Some(element) = elements.last_mut().filter(|element| element.text.is_empty()) {
            element.text = text.to_owned();
        }
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "wrong end before {after:.80}");
            continue;
        }
        let mut element = element(tag);
        if ["script", "style"].contains(&element.name.as_str()) {
            let end = format!("</{}>", element.name);
            let (raw, after) = rest.split_once(&end).expect("raw text that ends");
            element.text = raw.to_owned();
            rest = after;
        } else if !["meta", "input"].contains(&element.name.as_str()) {
            open.push(element.name.clone());
        }
        elements.push(element);
    }
    assert_eq!(open, Vec::<String>::new(), "never closed");
    let markup = Markup { elements };
    ids_are_unique_and_links_arrive(&markup);
    markup
}

fn element(tag: &str) -> Element {
    let (name, mut rest) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
    let mut attributes = BTreeMap::new();
    while !rest.trim().is_empty() {
        rest = rest.trim_start();
        let word = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(word);
        let value = match after.strip_prefix("=\"") {
            Some(quoted) => {
                let (value, after) = quoted.split_once('"').expect("a quote that ends");
                rest = after;
                value
            }
            None => {
                assert!(["open", "hidden"].contains(&key), "{key:?} has no value in {tag:?}");
                rest = after;
                ""
            }
        };
        let twice = attributes.insert(key.to_owned(), value.to_owned());
        assert_eq!(twice, None, "{key} twice in {tag:?}");
    }
    Element { name: name.to_owned(), attributes, text: String::new() }
}

fn ids_are_unique_and_links_arrive(markup: &Markup) {
    let ids = markup.elements.iter().map(|e| e.get("id")).filter(|id| !id.is_empty());
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    for pair in ids.windows(2) {
        assert_ne!(pair[0], pair[1], "an id twice");
    }
    for element in &markup.elements {
        if let Some(target) = element.get("href").strip_prefix('#') {
            assert!(ids.binary_search(&target).is_ok(), "{element:?} leads nowhere");
        }
    }
}
