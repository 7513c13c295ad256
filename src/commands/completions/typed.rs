//! Reads the partial command line that a shell passes for completion.

use crate::config::Flags;

pub(super) fn words() -> Vec<String> {
    let words = std::env::args_os().skip(2);
    words.map(|word| plain(&word.to_string_lossy())).collect()
}

pub(super) fn flags() -> Flags {
    let words = words();
    let value = |name: &str| {
        words.iter().enumerate().find_map(|(at, word)| {
            let assigned = word.strip_prefix(name)?;
            match assigned.strip_prefix('=') {
                Some(value) => Some(value.to_owned()),
                None if assigned.is_empty() => words.get(at + 1).cloned(),
                None => None,
            }
        })
    };
    Flags {
        board: value("--board"),
        config: value("--config").map(Into::into),
        ..Flags::default()
    }
}

/// Removes quotes as the shell would; the last one may still be open.
fn plain(word: &str) -> String {
    let (mut text, mut open, mut characters) = (String::new(), None, word.chars());
    while let Some(character) = characters.next() {
        match (character, open) {
            ('\'' | '"', None) => open = Some(character),
            (quote, Some(begin)) if quote == begin => open = None,
            ('\\', None | Some('"')) => text.extend(characters.next()),
            (character, _) => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn quotes_are_removed_from_a_word() {
        for (typed, expected) in [
            ("state=UN", "state=UN"),
            ("'state=UN", "state=UN"),
            (r"age\>", "age>"),
            (
                r#"'name="big one" and '"s\"t""#,
                r#"name="big one" and s"t"#,
            ),
            (r"it'\'s", r"it\s"),
        ] {
            assert_eq!(plain(typed), expected, "{typed}");
        }
    }
}
