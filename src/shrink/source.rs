//! A small case as the source of a test, ready to be pasted.

use super::Shrunk;
use crate::system::OwnParts;

/// As the house rules have it.
const COLUMNS: usize = 100;

impl Shrunk {
    /// A `#[test]` that runs the case again. With parts of the caller's own, which no case can
    /// hold, it asks for them and passes once they are mended, and so it does where the crate's own
    /// parts gave no verdict; otherwise it holds the scheme to being caught.
    pub fn test_source(&self, own: OwnParts) -> String {
        let name = format!("{} seed {}", self.symptom.words(), self.case().seed);
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let says = match self.symptom.broken() {
            _ if own.any() => own_text(own),
            Some(broken) => {
                format!("    case.assert_violates({:?}, {:?});", broken.checker, broken.rule)
            }
            None => "    case.assert_passes();".to_owned(),
        };
        format!(
            "{}#[test]\nfn {name}() {{\n    let case = leasehold::testing::replay_case(\n        \
             r#\"{}\"#,\n    );\n{says}\n}}\n",
            doc(&format!("{}: {}.", self.symptom, self.case().sentence())),
            self.case().to_json()
        )
    }
}

fn own_text(own: OwnParts) -> String {
    let (mut what, mut calls) = (Vec::new(), String::new());
    if own.storage {
        what.push("storage, made as for the check that found this");
        calls += ".storage(MyStorage::default)";
    }
    if own.lock {
        what.push("lock");
        calls += ".lock::<MyLock>()";
    }
    format!("    // Your own {}:\n    case{calls}.assert_passes();", what.join(", and your own "))
}

/// The text as doc comment.
fn doc(text: &str) -> String {
    let mut lines = vec!["///".to_owned()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("/// {word}")),
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long texts are broken between words, at the house's width.
    #[test]
    fn doc_comments_keep_to_the_width() {
        let text = "word ".repeat(50);
        let comment = doc(&text);
        assert!(comment.lines().all(|line| line.starts_with("/// ") && line.len() <= COLUMNS));
        assert_eq!(comment.matches("word").count(), 50);
        assert!(comment.lines().count() == 3, "{comment}");
    }
}
