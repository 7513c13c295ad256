//! HTML that strangers' text cannot act in: what is markup is ours, and everything else is escaped by type.

use std::fmt::{Display, Write as _};

use super::text::Text;

/// A piece of a page.
///
/// It is made of texts of the program, of numbers, and of [`Text`], escaped: nothing else can be added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

/// A number, as digits and what belongs to them; no text is one.
pub(crate) trait Number: Display {}

impl Number for u32 {}
impl Number for u64 {}
impl Number for usize {}
impl Number for f64 {}

impl Html {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds markup.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, whoever wrote it; also as the value of an attribute, within quotes.
    pub(crate) fn text(&mut self, text: impl Into<Text>) -> &mut Self {
        for character in text.into().as_str().chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                character => self.0.push(character),
            }
        }
        self
    }

    /// Adds a number, of a fraction two digits.
    pub(crate) fn number(&mut self, number: impl Number) -> &mut Self {
        let number = format!("{number:.2}");
        let is_fraction = number.contains('.');
        let number = match is_fraction {
            true => number.trim_end_matches('0').trim_end_matches('.'),
            false => &number,
        };
        let _ = self.0.write_str(number);
        self
    }

    pub(crate) fn add(&mut self, html: &Self) -> &mut Self {
        self.0.push_str(&html.0);
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_nothing_but_text() {
        let mut html = Html::new();
        html.raw("<p title=\"")
            .text("\"'><&\u{1b}\u{202e}")
            .raw("\">")
            .number(3_u64)
            .number(2.50)
            .raw("</p>");
        let expected = "<p title=\"&quot;&#39;&gt;&lt;&amp;\\u{1b}\\u{202e}\">32.5</p>";
        assert_eq!(html.as_str(), expected);
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [(0.0, "0"), (100.0, "100"), (12.345, "12.35"), (0.1, "0.1")] {
            assert_eq!(Html::new().number(number).as_str(), text);
        }
    }
}
