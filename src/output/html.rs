//! Builds HTML that keeps foreign text harmless: markup is ours, and all other text is escaped by type.

use std::fmt::Display;

use super::text::Text;

/// A line ends after these elements, so that the source is readable.
const BLOCKS: &str = " body caption dd div dl details figcaption figure footer h1 h2 h3 head header html \
    li main nav ol p pre section summary svg table tbody thead tr ul ";

/// Made of fixed markup and of elements with escaped texts and attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

pub(crate) trait Piece {
    fn add_to(&self, html: &mut Html);
}

pub(crate) type Attribute<'a> = (&'static str, &'a dyn Display);

impl Piece for Html {
    fn add_to(&self, html: &mut Html) {
        html.0.push_str(&self.0);
    }
}

impl Piece for Text {
    fn add_to(&self, html: &mut Html) {
        html.escape(self);
    }
}

impl<T: AsRef<str>> Piece for T {
    fn add_to(&self, html: &mut Html) {
        html.escape(&Text::from(self));
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<T: IntoIterator<Item = Self>>(pieces: T) -> Self {
        Self(pieces.into_iter().map(|piece| piece.0).collect())
    }
}

/// Makes an element without attributes: its name with classes, such as `p.soft`, and its content.
pub(crate) fn tag(name: &'static str, content: &[&dyn Piece]) -> Html {
    element(name, &[], content)
}

pub(crate) fn list(name: &'static str, items: impl IntoIterator<Item = Html>) -> Html {
    let items: Html = items.into_iter().collect();
    match items.0.is_empty() {
        true => items,
        false => tag(name, &[&items]),
    }
}

/// Makes an element with attributes. One without content is self-closing.
pub(crate) fn element(
    name: &'static str,
    attributes: &[Attribute<'_>],
    content: &[&dyn Piece],
) -> Html {
    let (name, classes) = name.split_once('.').unwrap_or((name, ""));
    let mut html = Html(format!("<{name}"));
    if !classes.is_empty() {
        html.attribute("class", &classes.replace('.', " "));
    }
    for (attribute, value) in attributes {
        html.attribute(attribute, value);
    }
    if content.is_empty() {
        html.0.push_str("/>");
        return html;
    }
    html.0.push('>');
    html.add(&Html::of(content));
    let end = if BLOCKS.contains(&format!(" {name} ")) {
        "\n"
    } else {
        ""
    };
    html.0.push_str(&format!("</{name}>{end}"));
    html
}

impl Html {
    pub(crate) fn raw(markup: &'static str) -> Self {
        Self(markup.to_owned())
    }

    pub(crate) fn of(pieces: &[&dyn Piece]) -> Self {
        let mut html = Self::default();
        pieces.iter().for_each(|piece| piece.add_to(&mut html));
        html
    }

    pub(crate) fn add(&mut self, piece: &dyn Piece) -> &mut Self {
        piece.add_to(self);
        self
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn attribute(&mut self, name: &'static str, value: &dyn Display) {
        self.0.push_str(&format!(" {name}=\""));
        self.escape(&Text::from(value.to_string()));
        self.0.push('"');
    }

    fn escape(&mut self, text: &Text) {
        for character in text.as_str().chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                character => self.0.push(character),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let hostile = "\"'><&\u{1b}\u{202e}";
        let escaped = "&quot;&#39;&gt;&lt;&amp;\\u{1b}\\u{202e}";
        let html = element(
            "b.a.c",
            &[("title", &hostile)],
            &[&hostile, &tag("i", &[&""])],
        );
        let expected = format!("<b class=\"a c\" title=\"{escaped}\">{escaped}<i></i></b>");
        assert_eq!(html.as_str(), expected);
        let html: Html = [Html::raw("<hr>"), element("hr", &[], &[])]
            .into_iter()
            .collect();
        assert_eq!(html.as_str(), "<hr><hr/>");
    }
}
