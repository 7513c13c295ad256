//! The words of `docs/glossary.md`, for `jobboard help WORD`.

const GLOSSARY: &str = include_str!("../../../docs/glossary.md");

/// The sections with words, and the help that says more.
const SECTIONS: [(&str, &str); 5] = [
    ("Boards and jobs", "boards"),
    ("Claims and attempts", "conducting"),
    ("Conductors and processes", "conducting"),
    ("Events", "watch"),
    ("States and problems", "troubleshooting"),
];

#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    more: &'static str,
}

impl Word {
    pub(super) fn text(self) -> String {
        let more = ["More: `jobboard help ", self.more, "`\n"].concat();
        ["# ", self.name, "\n\n", self.meaning, "\n\n", &more].concat()
    }
}

/// Finds a word or its plural, with any punctuation.
pub(super) fn find(word: &str) -> Option<Word> {
    let bare = |text: &str| {
        let letters = text.chars().filter(|it| it.is_alphanumeric());
        letters.collect::<String>().to_lowercase()
    };
    let wanted = bare(word);
    let is_it = |name: &str| {
        let mut names = name.split([',', '(']).map(bare);
        names.any(|name| !name.is_empty() && [&name, &format!("{name}s")].contains(&&wanted))
    };
    SECTIONS.into_iter().find_map(|(section, more)| {
        let title = format!("## {section}\n");
        let start = GLOSSARY.find(&title)? + title.len();
        let text = &GLOSSARY[start..];
        let text = text.find("\n## ").map_or(text, |end| &text[..end]);
        let rows = text.lines().filter_map(|line| {
            let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
            row.split_once(" | ")
        });
        let mut rows = rows.filter(|(name, _)| *name != "word");
        let (name, meaning) = rows.find(|(name, _)| is_it(name))?;
        Some(Word {
            name,
            meaning,
            more,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_each_section_and_nowhere_else() {
        for (typed, name) in [
            ("Posting", "posting"),
            ("retry-limit", "retry limit"),
            ("fence", "fencing token (`fence`)"),
            ("guard", "guard"),
            ("workers", "operator, poster, worker"),
            ("resync", "resync"),
            ("canary", "canary"),
        ] {
            assert_eq!(find(typed).map(|it| it.name), Some(name), "{typed}");
        }
        for typed in ["", "-", "folder", "nonsense", "word"] {
            assert!(find(typed).is_none(), "{typed}");
        }
    }
}
