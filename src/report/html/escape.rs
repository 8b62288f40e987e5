//! Text into HTML, so that no value of a history can end a tag or a script, or hide itself.
//!
//! Values may hold anything that UTF-8 can say. Characters that have no look of their own
//! (controls, changes of direction) are spelled out as Rust would, `\u{1b}`.

use std::fmt::Write;

/// Texts beyond so many characters are cut: a value may be a megabyte.
pub(super) const TEXT_MAX: usize = 400;

/// The text for an element or an attribute in double quotes, cut at [`TEXT_MAX`].
pub(super) fn text(raw: &str) -> String {
    match raw.char_indices().nth(TEXT_MAX) {
        None => whole(raw),
        Some((end, _)) => {
            let left = raw[end..].chars().count();
            format!("{}… ({left} characters more)", whole(&raw[..end]))
        }
    }
}

/// The same without a cut, for what must be whole: commands, links.
pub(super) fn whole(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len() + 8);
    for c in raw.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if invisible(c) => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

/// Characters that a reader cannot see, or that change the look of their neighbours.
fn invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{ffff}' | '\u{ad}' | '\u{61c}')
}

/// JSON for a `<script type="application/json">`: nothing in it can end the script. Only strings
/// hold these characters, where JSON has an escape for each of them.
pub(super) fn json(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len() + 8);
    for c in raw.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(safe, "\\u{:04x}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

/// True time, in seconds, as it is written everywhere.
pub(super) fn seconds(ns: u64) -> String {
    format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000)
}

/// A time as a number for the style sheet: seconds, to the microsecond.
pub(super) fn position(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1_000 % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden: markup, quotes, controls, changes of direction and ends of scripts.
    #[test]
    fn nothing_gets_through() {
        let nasty = "</script><b a='\"'>&\u{0}\u{1b}[31m\u{202e}é🦀\n";
        assert_eq!(
            text(nasty),
            "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;\\u{0}\\u{1b}[31m\\u{202e}é🦀\\u{a}"
        );
        let quoted = serde_json::to_string(nasty).unwrap();
        let embedded = json(&quoted);
        assert!(!embedded.contains('<') && !embedded.contains("-->"), "{embedded}");
        assert_eq!(serde_json::from_str::<String>(&embedded).unwrap(), nasty);
    }

    /// A long value is cut between characters, and says how much is missing.
    #[test]
    fn long_texts_are_cut() {
        let long = "é".repeat(TEXT_MAX + 2);
        assert!(text(&long).ends_with("… (2 characters more)"));
        assert_eq!(text(&long[..TEXT_MAX * 2]), long[..TEXT_MAX * 2]);
        assert_eq!(whole(&long), long);
    }
}
