//! A small case as the source of a test, ready to be pasted.

use super::Shrunk;

/// As the house rules have it.
const COLUMNS: usize = 100;

impl Shrunk {
    /// A `#[test]` that runs the case again. With `own` code under test, which no case can hold,
    /// it asks for it and passes once that is mended; otherwise it holds the crate's own scheme to
    /// being caught.
    pub fn test_source(&self, own: bool) -> String {
        let broken = &self.broken;
        let name = format!("{}_{}_seed_{}", broken.checker, broken.rule, self.case().seed);
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let says = match own {
            false => format!("    case.assert_violates({:?}, {:?});", broken.checker, broken.rule),
            true => "    // Your own storage, made as for the check that found this:\n    \
                     case.storage(MyStorage::default).assert_passes();"
                .to_owned(),
        };
        format!(
            "{}#[test]\nfn {name}() {{\n    let case = leasehold::testing::replay_case(\n        \
             r#\"{}\"#,\n    );\n{says}\n}}\n",
            doc(&format!("{broken}: {}.", self.case().sentence())),
            self.case().to_json()
        )
    }
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
