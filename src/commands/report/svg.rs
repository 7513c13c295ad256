//! Draws the charts of a page. Widths are fractions of the whole to fit any screen; text keeps its size.

use chrono::{DateTime, Utc};

use super::{
    measure::{Interval, KINDS},
    tables::BarPart,
};
use crate::output::{Attribute, Html, element, grouped, tag};

/// The height of the bars in one row of the time line, and the room for its labels.
const ROW: f64 = 40.0;
const BELOW: f64 = 22.0;

const TREND: f64 = 22.0;

pub(super) const PATTERNS: &str = "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\" \
    focusable=\"false\"><defs>\
    <pattern id=\"failed\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\">\
    <rect width=\"6\" height=\"6\" class=\"bad\"/><rect width=\"2\" height=\"6\" class=\"gap\"/></pattern>\
    </defs></svg>\n";

/// A box: left edge and width in hundredths of the whole, top and height in pixels.
pub(super) type Box = (f64, f64, f64, f64);

pub(super) type ChartText<'a> = (&'static str, &'static str, &'a str);

fn number(number: f64) -> String {
    let number = format!("{number:.2}");
    number
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

fn percent(part: f64) -> String {
    number(part) + "%"
}

fn figure((id, title, description): ChartText<'_>, height: f64, drawn: &Html) -> Html {
    let (title_id, description_id) = (format!("{id}-title"), format!("{id}-description"));
    let labels = format!("{title_id} {description_id}");
    let title = element("title", &[("id", &title_id)], &[&title]);
    let description = element("desc", &[("id", &description_id)], &[&description]);
    let height = number(height);
    let attributes: [Attribute<'_>; 4] = [
        ("role", &"img"),
        ("width", &"100%"),
        ("height", &height),
        ("aria-labelledby", &labels),
    ];
    element("svg", &attributes, &[&title, &description, drawn])
}

/// Wraps a chart whose content is also in the text beside it.
pub(super) fn decorative_svg(width: &'static str, height: u32, drawn: &Html) -> Html {
    let attributes: [Attribute<'_>; 4] = [
        ("aria-hidden", &"true"),
        ("focusable", &"false"),
        ("width", &width),
        ("height", &height),
    ];
    element("svg", &attributes, &[drawn])
}

pub(super) fn rect(name: &'static str, (x, width, y, height): Box) -> Html {
    let [x, width] = [x, width].map(percent);
    let [y, height] = [y, height].map(number);
    let place: [Attribute<'_>; 4] = [("x", &x), ("width", &width), ("y", &y), ("height", &height)];
    element(name, &place, &[])
}

fn line((from, to): (f64, f64), (top, bottom): (f64, f64)) -> Html {
    let [from, to] = [from, to].map(percent);
    let [top, bottom] = [top, bottom].map(number);
    let place: [Attribute<'_>; 4] = [("x1", &from), ("x2", &to), ("y1", &top), ("y2", &bottom)];
    element("line.axis", &place, &[])
}

fn baseline(y: f64) -> Html {
    line((0.0, 100.0), (y, y))
}

fn tick(x: f64, y: f64) -> Html {
    line((x, x), (y, y + 4.0))
}

fn label(name: &'static str, (x, y): (f64, f64), text: impl AsRef<str>) -> Html {
    element(name, &[("x", &percent(x)), ("y", &number(y))], &[&text])
}

pub(super) fn parts(text: ChartText<'_>, parts: &[BarPart]) -> Html {
    let all = parts.iter().map(|(.., count)| count).sum::<u64>();
    figure(text, 14.0, &row(parts, all, 14.0))
}

/// Draws a bar in a table, hidden from screen readers, which read the numbers.
pub(super) fn bar(parts: &[BarPart], most: u64) -> Html {
    decorative_svg("100%", 8, &row(parts, most, 8.0))
}

fn row(parts: &[BarPart], all: u64, height: f64) -> Html {
    let mut left = 0.0;
    let parts = parts.iter().filter(|(.., count)| *count > 0);
    let parts = parts.map(|(name, _, count)| {
        let width = *count as f64 / all.max(1) as f64 * 100.0;
        left += width;
        rect(name, (left - width, width.max(0.6), 0.0, height))
    });
    parts.collect()
}

/// Draws the counts of the last hour in a tile, hidden from screen readers, which read their sum.
pub(super) fn trend(class: &'static str, counts: &[u64]) -> Html {
    let bars = bars(class, counts, (0.0, 0.85), (TREND, TREND));
    decorative_svg("100%", TREND as u32, &bars)
}

/// Draws a bar for each count; its indent and width are parts of its room, and the tallest bar has this height.
fn bars(
    class: &'static str,
    counts: &[u64],
    (indent, width): (f64, f64),
    (floor, tallest): (f64, f64),
) -> Html {
    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let step = 100.0 / counts.len().max(1) as f64;
    let bars = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let bars = bars.map(|(at, count)| {
        let height = (tallest * *count as f64 / most).max(1.5);
        let left = at as f64 * step + step * indent;
        rect(class, (left, step * width, floor - height, height))
    });
    bars.chain([baseline(floor)]).collect()
}

pub(super) fn intervals(id: &'static str, title: &'static str, intervals: &[Interval]) -> Html {
    let (mut drawn, mut totals, mut floor) = (Html::default(), Vec::new(), 0.0);
    let classes = ["rect.unclaimed", "rect.done", "rect.failed"];
    for (kind, (name, class)) in KINDS.into_iter().zip(classes).enumerate() {
        floor += ROW + 20.0;
        let counts: Vec<_> = intervals.iter().map(|it| it.counts()[kind]).collect();
        let most = counts.iter().copied().max().unwrap_or_default();
        let [sum, highest] = [counts.iter().sum(), most].map(grouped);
        let total = format!("{sum} {name}, at most {highest} in a bar");
        drawn.add(&label("text.start", (0.0, floor - ROW - 6.0), &total));
        totals.push(total);
        drawn.add(&bars(class, &counts, (0.06, 0.88), (floor, ROW)));
    }
    if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
        drawn.add(&axis(floor, (first.from, last.to)));
    }
    figure((id, title, &totals.join("; ")), floor + BELOW, &drawn)
}

fn axis(y: f64, (from, to): (DateTime<Utc>, DateTime<Utc>)) -> Html {
    let form = match (to - from).num_hours() {
        0 if (to - from).num_minutes() < 10 => "%H:%M:%S",
        0..24 if from.date_naive() == to.date_naive() => "%H:%M",
        0..240 => "%d %b %H:%M",
        _ => "%d %b %Y",
    };
    let labels = [
        ("text.start.soft", 0.0, from),
        ("text.middle.soft", 50.0, from + (to - from) / 2),
        ("text.end.soft", 100.0, to),
    ];
    let labels = labels.map(|(name, x, time)| {
        let time = label(name, (x, y + 17.0), time.format(form).to_string());
        tag("g", &[&tick(x, y), &time])
    });
    labels.into_iter().collect()
}
