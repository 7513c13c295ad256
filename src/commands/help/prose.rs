//! Lays out texts for terminals and manual pages from a subset of Markdown.

use clap::builder::{StyledStr, Styles};
use clap_mangen::roff::{Inline, Roff, bold, roman};
use unicode_width::UnicodeWidthStr;

/// The widest term with its explanation on the same line; others have it below.
const MAX_WIDTH: usize = 36;

enum Block {
    Heading {
        text: String,
        is_below: bool,
    },
    Paragraph(String),
    Verbatim(Vec<String>),
    /// A row of a table or an item of a list: a term or a mark, and the text.
    Entry {
        term: String,
        text: String,
    },
}

impl Block {
    fn term(&self) -> Option<String> {
        match self {
            Self::Entry { term, .. } => Some(bare(term)),
            _ => None,
        }
    }

    /// Whether both are entries of one kind, which share a layout.
    fn continues(&self, next: &Self) -> bool {
        let marks = [self, next].map(|block| match block {
            Self::Entry { term, .. } => Some(is_mark(term)),
            _ => None,
        });
        marks[0].is_some() && marks[0] == marks[1]
    }
}

fn is_mark(term: &str) -> bool {
    !term.contains(|letter: char| letter.is_alphanumeric() || letter == '`')
}

/// Returns the title and the subject from the first line, `# TITLE: ABOUT`; both are the same in `### TITLE`.
pub(in crate::commands) fn title(text: &str) -> (&str, &str) {
    let line = text.lines().next().unwrap_or_default();
    let line = line.trim_start_matches(['#', ' ']);
    line.split_once(": ").unwrap_or((line, line))
}

pub(in crate::commands) fn on_terminal(text: &str, width: usize) -> StyledStr {
    let styles = Styles::styled();
    let header = styles.get_header();
    let (title, about) = title(text);
    let mut shown = format!("{header}{title}{header:#}");
    shown += &match title == about {
        true => "\n".to_owned(),
        false => format!(": {about}\n"),
    };
    let blocks = blocks(text);
    for group in blocks.chunk_by(Block::continues) {
        shown.push('\n');
        let widths = group.iter().filter_map(Block::term).map(|it| it.width());
        let column = widths
            .filter(|width| *width <= MAX_WIDTH)
            .max()
            .unwrap_or(2);
        let indent = 2 + column + if column < 3 { 1 } else { 2 };
        for block in group {
            match block {
                Block::Heading { text, .. } => {
                    shown.push_str(&format!("{header}{}{header:#}\n", bare(text)));
                }
                Block::Paragraph(text) => fill(&mut shown, 0, text, width),
                Block::Verbatim(lines) => {
                    shown.extend(
                        lines
                            .iter()
                            .map(|line| format!("  {line}").trim_end().to_owned() + "\n"),
                    );
                }
                Block::Entry { term, text } => {
                    let term = bare(term);
                    match term.width() > column {
                        true => shown.push_str(&format!("  {term}\n{:indent$}", "")),
                        false => shown.push_str(&format!("{:indent$}", format!("  {term}"))),
                    }
                    fill(&mut shown, indent, text, width);
                }
            }
        }
    }
    StyledStr::from(shown)
}

pub(in crate::commands) fn on_page(text: &str, page: &mut Roff) {
    page.control("SH", ["DESCRIPTION"]);
    for block in blocks(text) {
        match block {
            Block::Heading { text, is_below } => {
                let (name, text) = match is_below {
                    true => ("SS", bare(&text)),
                    false => ("SH", bare(&text).to_uppercase()),
                };
                page.control(name, [text.as_str()]);
            }
            Block::Paragraph(text) => {
                page.control("PP", []).text(inlines(&text));
            }
            Block::Verbatim(lines) => {
                page.control("PP", []).control("nf", []);
                for line in lines {
                    page.text([roman(line)]);
                }
                page.control("fi", []);
            }
            Block::Entry { term, text } => {
                page.control("TP", is_mark(&term).then_some("3"));
                page.text([bold(bare(&term))]).text(inlines(&text));
            }
        }
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut titles = Vec::new();
    // Whether a line continues the previous block.
    let mut is_open = false;
    let mut lines = text.lines().skip(1);
    while let Some(line) = lines.next() {
        let was_open = std::mem::replace(&mut is_open, true);
        if let Some(row) = line.strip_prefix('|') {
            let cells = cells(row);
            match titles.is_empty() {
                true => titles = cells,
                false => blocks.extend(entry_of_row(&cells)),
            }
            continue;
        }
        titles.clear();
        if line.starts_with("```") {
            let verbatim = lines.by_ref().take_while(|line| !line.starts_with("```"));
            blocks.push(Block::Verbatim(verbatim.map(str::to_owned).collect()));
            is_open = false;
        } else if line.is_empty() {
            is_open = false;
        } else if line.starts_with('#') {
            blocks.push(Block::Heading {
                text: line.trim_start_matches('#').trim().to_owned(),
                is_below: line.starts_with("###"),
            });
        } else if let Some((term, text)) = entry(line) {
            blocks.push(Block::Entry { term, text });
        } else if let Some(Block::Paragraph(text) | Block::Entry { text, .. }) =
            blocks.last_mut().filter(|_| was_open)
        {
            text.push(' ');
            text.push_str(line.trim());
        } else {
            blocks.push(Block::Paragraph(line.to_owned()));
        }
    }
    blocks
}

fn entry(line: &str) -> Option<(String, String)> {
    let (term, text) = match line.strip_prefix("**`") {
        Some(line) => line.split_once("`** ")?,
        None => line.split_once(' ').filter(|(mark, _)| {
            let number = mark.strip_suffix('.').unwrap_or("none");
            *mark == "-" || number.parse::<u8>().is_ok()
        })?,
    };
    Some((term.to_owned(), text.to_owned()))
}

fn cells(row: &str) -> Vec<String> {
    let cells = row.trim_end().trim_end_matches('|').split(" | ");
    cells.map(|cell| cell.trim().to_owned()).collect()
}

/// Returns an entry, unless the row is the line below the titles.
///
/// A third cell explains the second, or is a sentence of its own.
fn entry_of_row(cells: &[String]) -> Option<Block> {
    let (term, sentences) = cells.split_first()?;
    let mut text = sentences.first()?.clone();
    for more in sentences.iter().skip(1) {
        let (first, rest) = more.split_at_checked(1).unwrap_or(("", more));
        text += &match text.ends_with('`') {
            true => format!(": {more}"),
            false => format!(". {}{rest}", first.to_uppercase()),
        };
    }
    (!term.starts_with("--")).then(|| Block::Entry {
        term: term.clone(),
        text,
    })
}

fn fill(shown: &mut String, indent: usize, text: &str, width: usize) {
    let text: String = (spans(text).into_iter())
        .map(|(kind, text)| match kind {
            Kind::Code => format!("`{text}`"),
            Kind::Plain | Kind::Strong => text,
        })
        .collect();
    let mut at = indent;
    for word in text.split_whitespace() {
        if at > indent && at + 1 + word.width() > width {
            shown.push_str(&format!("\n{:indent$}", ""));
            at = indent;
        } else if at > indent {
            shown.push(' ');
            at += 1;
        }
        shown.push_str(word);
        at += word.width();
    }
    shown.push('\n');
}

enum Kind {
    Plain,
    Code,
    Strong,
}

fn spans(mut text: &str) -> Vec<(Kind, String)> {
    let mut spans = Vec::new();
    while let Some((before, rest)) = text.find(['`', '*', '[']).map(|at| text.split_at(at)) {
        spans.push((Kind::Plain, before.to_owned()));
        let enclosed = |mark: &str| rest.strip_prefix(mark)?.split_once(mark);
        let (kind, inner, behind) = if let Some((code, behind)) = enclosed("`") {
            (Kind::Code, code, behind)
        } else if let Some((strong, behind)) = enclosed("**").or_else(|| enclosed("*")) {
            (Kind::Strong, strong, behind)
        } else if let Some((label, behind)) = link(rest) {
            let is_code = label.starts_with('`');
            let kind = if is_code { Kind::Code } else { Kind::Plain };
            (kind, label, behind)
        } else {
            let (mark, behind) = rest.split_at(1);
            (Kind::Plain, mark, behind)
        };
        spans.push((kind, inner.replace('`', "")));
        text = behind;
    }
    spans.push((Kind::Plain, text.to_owned()));
    spans
}

fn link(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (_, behind) = rest.split_once(')')?;
    (!label.contains(']')).then_some((label, behind))
}

fn bare(text: &str) -> String {
    spans(text).into_iter().map(|(_, text)| text).collect()
}

fn inlines(text: &str) -> Vec<Inline> {
    let spans = spans(text).into_iter().filter(|(_, text)| !text.is_empty());
    spans
        .map(|(kind, text)| match kind {
            Kind::Plain => roman(text),
            Kind::Code | Kind::Strong => bold(text),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Nuts: what they are for\n\nOne `nut`, [two](x.md) *nuts*, [`three`](y.md) and\nmore.\n\n\
        ## Kinds\n\n| kind | taste | price |\n|---|---|---|\n| `-` | good | low |\n| hazel | `a|b` | high |\n\n\
        - first\n  of all\n- then\n\n```sh\ncrack  it\n```\n\n**`shell`** is hard.\n";

    #[test]
    fn text_is_wrapped_for_a_terminal() {
        let shown = on_terminal(TEXT, 30).to_string();
        insta::assert_snapshot!(shown, @r"
        Nuts: what they are for

        One `nut`, two nuts, `three`
        and more.

        Kinds

          -      good. Low
          hazel  `a|b`: high

          - first of all
          - then

          crack  it

          shell  is hard.
        ");
    }

    #[test]
    fn text_becomes_a_manual_page() {
        let mut page = Roff::new();
        on_page(TEXT, &mut page);
        insta::assert_snapshot!(page.to_roff(), @r"
        .SH DESCRIPTION
        .PP
        One \fBnut\fR, two \fBnuts\fR, \fBthree\fR and more.
        .SH KINDS
        .TP
        \fB\-\fR
        good. Low
        .TP
        \fBhazel\fR
        \fBa|b\fR: high
        .TP 3
        \fB\-\fR
        first of all
        .TP 3
        \fB\-\fR
        then
        .PP
        .nf
        crack  it
        .fi
        .TP
        \fBshell\fR
        is hard.
        ");
    }
}
