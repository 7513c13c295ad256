//! A strict parser that rejects markup that is not well formed.

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    Open(String, Vec<(String, String)>),
    Close(String),
    Text(String),
}

const EMPTY: [&str; 1] = ["meta"];

/// Parses a page: elements nest, attributes are double-quoted and unique, and ids are unique and exist where
/// referenced.
pub(super) fn tokens(page: &str) -> Vec<Token> {
    let mut rest = page
        .strip_prefix("<!DOCTYPE html>")
        .expect("it begins with its type");
    let (mut tokens, mut open) = (Vec::new(), Vec::new());
    let (mut ids, mut references) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let Some(tag) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            tokens.push(Token::Text(decoded(&rest[..end])));
            rest = &rest[end..];
            continue;
        };
        let (tag, behind) = split_tag(tag);
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop().as_deref(),
                Some(name),
                "what is closed was opened last"
            );
            tokens.push(Token::Close(name.to_owned()));
            continue;
        }
        let (name, attributes, is_closed) = opened(tag);
        for (attribute, value) in &attributes {
            match attribute.as_str() {
                "id" => ids.push(value.clone()),
                "href" => references.push(value.trim_start_matches('#').to_owned()),
                "aria-labelledby" => references.extend(value.split(' ').map(str::to_owned)),
                _ => {}
            }
        }
        if name == "style" {
            let end = rest.find("</style>").expect("the style ends");
            rest = &rest[end..];
        }
        if !is_closed && !EMPTY.contains(&name.as_str()) {
            open.push(name.clone());
        }
        tokens.push(Token::Open(name, attributes));
    }
    assert!(open.is_empty(), "{open:?} is never closed");
    let mut known = ids.clone();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), ids.len(), "an id is there twice: {ids:?}");
    for reference in references {
        assert!(ids.contains(&reference), "nothing is called {reference}");
    }
    tokens
}

fn split_tag(text: &str) -> (&str, &str) {
    let mut is_quoted = false;
    let end = text.find(|character| {
        is_quoted ^= character == '"';
        assert!(character != '<', "a bracket within a tag: {text:.80}");
        character == '>' && !is_quoted
    });
    let end = end.expect("each tag ends");
    (&text[..end], &text[end + 1..])
}

fn opened(tag: &str) -> (String, Vec<(String, String)>, bool) {
    let (tag, is_closed) = match tag.strip_suffix('/') {
        Some(tag) => (tag, true),
        None => (tag, false),
    };
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    assert!(is_name(name), "{name} is no name of an element");
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.is_empty() {
        let (attribute, behind) = rest.split_once("=\"").expect("each attribute has a value");
        let (value, behind) = behind.split_once('"').expect("each value ends");
        assert!(is_name(attribute), "{attribute} is no name of an attribute");
        assert!(
            attributes.iter().all(|(it, _)| it != attribute),
            "{attribute} twice: {tag}"
        );
        attributes.push((attribute.to_owned(), decoded(value)));
        rest = behind.strip_prefix(' ').unwrap_or(behind);
        assert!(
            rest.is_empty() || behind != rest,
            "no space behind a value: {tag}"
        );
    }
    (name.to_owned(), attributes, is_closed)
}

/// Decodes a text; remaining markup characters are an error.
fn decoded(text: &str) -> String {
    let mut pieces = text.split('&');
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, behind) = piece.split_once(';').expect("each & begins a name");
        shown.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            other => panic!("{other} is no name that we write"),
        });
        shown += behind;
    }
    assert!(!text.contains('>'), "a bracket that is not escaped: {text}");
    shown
}
