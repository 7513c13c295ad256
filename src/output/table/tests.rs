//! Tests of table layout.

use super::*;
use crate::output::style::styled;

const COLUMNS: &[Column] = &[
    Column::new("name", Fit::Shrinks),
    Column::new("age", Fit::Number),
];

fn text(lines: &[Pieces]) -> String {
    let lines = lines.iter();
    lines.map(|line| styled(line, false) + "\n").collect()
}

fn row(name: &str, age: &str) -> Vec<Cell> {
    vec![Cell::new(name), Cell::new(age)]
}

#[test]
fn columns_fit_their_texts() {
    let mut layout = Layout::new(COLUMNS, None);
    assert!(layout.push(row("resize", "3m")).is_empty());
    layout.push(row("x", "10m"));
    assert_eq!(
        text(&layout.finish()),
        "NAME    AGE\nresize   3m\nx       10m\n"
    );
}

#[test]
fn overflowing_text_is_truncated_with_a_mark() {
    let mut layout = Layout::new(COLUMNS, Some(14));
    layout.push(row("a very long name", "3m"));
    let text = text(&layout.finish());
    assert!(text.contains('…'), "{text}");
    assert!(
        text.lines().all(|line| Text::from(line).width() <= 14),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn vital_cell_is_shown_in_full_if_possible() {
    const VITAL: &[Column] = &[
        Column::new("uuid", Fit::Whole),
        Column::new("name", Fit::Shrinks),
        Column::new("state", Fit::Whole),
        Column::new("owner", Fit::KeepsEnds),
    ];
    let cells = |name: Cell, state: &str, owner: &str| {
        let cells = [Cell::new("12345678"), name];
        let behind = [Cell::new(state), Cell::new(owner)];
        cells.into_iter().chain(behind).collect::<Vec<_>>()
    };
    let key = "key:job0000000012-abcdef";
    for (room, expected) in [
        (
            80,
            "UUID      NAME                      STATE      OWNER\n\
             12345678  resize                    CLAIMED    root@host:host:4711:c0ffee\n\
             12345678  key:job0000000012-abcdef  MALFORMED  -\n",
        ),
        (
            50,
            "UUID      NAME    STATE      OWNER\n\
             12345678  resize  CLAIMED    root@host:…711:c0ffee\n\
             12345678  key:job0000000012-abcdef  MALFORMED\n",
        ),
        (
            40,
            "UUID      NAME    STATE      OWNER\n\
             12345678  resize  CLAIMED    root@…0ffee\n\
             12345678  key:job00…12-abcdef  MALFORMED\n",
        ),
    ] {
        let mut layout = Layout::new(VITAL, Some(room));
        layout.push(cells(
            Cell::new("resize"),
            "CLAIMED",
            "root@host:host:4711:c0ffee",
        ));
        layout.push(cells(Cell::vital(Tone::Bad, key), "MALFORMED", ABSENT));
        assert_eq!(text(&layout.finish()), expected);
    }
}

#[test]
fn later_pieces_keep_the_widths_without_titles() {
    let mut layout = Layout::new(COLUMNS, None);
    let mut shown = String::new();
    for _ in 0..=PIECE {
        shown += &text(&layout.push(row("resize", "3m")));
    }
    shown += &text(&layout.finish());
    assert_eq!(shown.matches("NAME").count(), 1);
    assert_eq!(shown.matches("\nresize   3m").count(), PIECE + 1);
}

#[test]
fn ids_are_as_long_as_needed_to_differ() {
    const IDS: &[Column] = &[Column::new("uuid", Fit::Id)];
    let mut layout = Layout::new(IDS, Some(40));
    let mut shown = |ids: &[&str]| {
        for id in ids {
            layout.push(vec![Cell::new(id)]);
        }
        text(&layout.finish())
    };
    let long = "1".repeat(50);
    assert_eq!(
        shown(&["12345678-aaaa", "22345678-aaaa"]),
        "UUID\n12345678\n22345678\n"
    );
    // Further down too, where the widths are fixed; equal ids cannot be distinguished.
    assert_eq!(
        shown(&["12345678-abaa", "12345678-acaa", "12345678-acaa", "-"]),
        "12345678-ab\n12345678-ac\n12345678-ac\n-\n"
    );
    assert_eq!(shown(&["1", "1é2345678"]), "1\n1é234567\n");
    assert_eq!(
        shown(&[&long, &(long.clone() + "2")]),
        format!("{0}\n{0}\n", &long[..36])
    );
}

#[test]
fn huge_text_is_laid_out_quickly() {
    let mut layout = Layout::new(COLUMNS, Some(40));
    layout.push(row(&"x".repeat(1 << 20), "3m"));
    assert!(
        text(&layout.finish())
            .lines()
            .all(|line| line.chars().count() <= 40)
    );
}

#[test]
fn flexible_column_takes_the_remaining_width() {
    const VITAL: &[Column] = &[
        Column::new("name", Fit::Shrinks),
        Column::new("state", Fit::Whole),
        Column::new("note", Fit::Shrinks),
    ];
    let lines = |room| {
        let mut layout = Layout::new(VITAL, Some(room));
        let key = Cell::vital(Tone::Bad, "key:job12");
        layout.push(vec![
            key,
            Cell::new("BROKEN"),
            Cell::new("its posting is no map"),
        ]);
        layout.push(vec![Cell::new("a"), Cell::new("READY"), Cell::new("-")]);
        let text = text(&layout.finish());
        text.lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(lines(40), "key:job12  BROKEN  its posting is no map");
    assert_eq!(lines(30), "key:job12  BROKEN  its postin…");
    assert_eq!(lines(24), "key:job12  BROKEN  its …");
    assert_eq!(lines(20), "key:job12  BROKEN");
    assert_eq!(lines(14), "key…b12 BROKEN");
}
