//! Words for a shell, in commands that somebody is to type.

/// Writes a word so that a shell takes it for one word, and for what it says.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Writes a command line.
pub(crate) fn line(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|it| word(it)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_written_plainly_or_in_quotes() {
        for (text, expected) in [
            ("key:a/b-1", "key:a/b-1"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's $(true)", r"'it'\''s $(true)'"),
            ("ä", "'ä'"),
        ] {
            assert_eq!(word(text), expected);
        }
    }
}
