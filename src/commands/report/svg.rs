//! The figures of a page, drawn: widths are parts of the whole, so that they fit any screen, and letters keep
//! their size.

mod lanes;

use chrono::{DateTime, Utc};

pub(super) use self::lanes::lanes;
use super::{
    measure::{Bucket, COUNTS, Count, Interval, Percentiles},
    words,
};
use crate::output::{Html, Text};

/// How high the columns of a histogram are at most, and what is above and below them.
const HEIGHT: f64 = 110.0;
const ABOVE: f64 = 16.0;
const BELOW: f64 = 22.0;

/// How high the bars of one row are that shows what happened.
const ROW: f64 = 40.0;

/// What all figures share: what is marked is hatched, so that no colour is needed to see it.
pub(super) const PATTERNS: &str = "<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\" \
    focusable=\"false\"><defs>\
    <pattern id=\"marked\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
    <rect width=\"6\" height=\"6\" class=\"main\"/><rect width=\"2\" height=\"6\" class=\"gap\"/></pattern>\
    <pattern id=\"failed\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\">\
    <rect width=\"6\" height=\"6\" class=\"bad\"/><rect width=\"2\" height=\"6\" class=\"gap\"/></pattern>\
    </defs></svg>";

/// A figure that is being drawn.
struct Drawing(Html);

/// A box: where it begins and how wide it is, in hundredths of the whole, where its top is and how high it is.
type Box = (f64, f64, f64, f64);

impl Drawing {
    /// Begins a figure of that height; `id` tells it from the others of the page.
    fn new(id: &'static str, height: f64, title: &'static str, told: impl Into<Text>) -> Self {
        let mut html = Html::new();
        html.raw("<svg role=\"img\" width=\"100%\" height=\"")
            .number(height);
        html.raw("\" aria-labelledby=\"")
            .raw(id)
            .raw("-title ")
            .raw(id)
            .raw("-told\">");
        html.raw("<title id=\"")
            .raw(id)
            .raw("-title\">")
            .raw(title)
            .raw("</title>");
        html.raw("<desc id=\"")
            .raw(id)
            .raw("-told\">")
            .text(told)
            .raw("</desc>");
        Self(html)
    }

    /// Begins one that shows what stands beside it as a number, too.
    fn beside(height: f64) -> Self {
        let mut html = Html::new();
        html.raw("<svg aria-hidden=\"true\" focusable=\"false\" width=\"100%\" height=\"");
        html.number(height).raw("\">");
        Self(html)
    }

    fn rect(&mut self, class: &'static str, (x, width, y, height): Box) -> &mut Html {
        self.0
            .raw("<rect class=\"")
            .raw(class)
            .raw("\" x=\"")
            .number(x)
            .raw("%\" width=\"");
        self.0
            .number(width)
            .raw("%\" y=\"")
            .number(y)
            .raw("\" height=\"")
            .number(height);
        self.0.raw("\"/>")
    }

    /// Draws a horizontal line over the whole width.
    fn baseline(&mut self, y: f64) {
        self.0
            .raw("<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"")
            .number(y);
        self.0.raw("\" y2=\"").number(y).raw("\"/>");
    }

    /// Draws a short line below the axis.
    fn tick(&mut self, x: f64, y: f64) {
        self.0
            .raw("<line class=\"axis\" x1=\"")
            .number(x)
            .raw("%\" x2=\"")
            .number(x);
        self.0
            .raw("%\" y1=\"")
            .number(y)
            .raw("\" y2=\"")
            .number(y + 4.0)
            .raw("\"/>");
    }

    /// Writes where the text has its middle, its beginning or its end, by its class.
    fn label(&mut self, class: &'static str, (x, y): (f64, f64), text: impl Into<Text>) {
        self.0
            .raw("<text class=\"")
            .raw(class)
            .raw("\" x=\"")
            .number(x)
            .raw("%\" y=\"");
        self.0.number(y).raw("\">").text(text).raw("</text>");
    }

    fn finish(mut self) -> Html {
        self.0.raw("</svg>");
        self.0
    }
}

/// Says what stands below a column, and whether that is below its left edge, not its middle.
pub(super) type Label = fn(&Bucket) -> (bool, String);

/// Draws a histogram, what is marked hatched.
pub(super) fn columns(
    id: &'static str,
    title: &'static str,
    buckets: &[Bucket],
    label: Label,
) -> Html {
    let all = buckets.iter().map(|it| it.jobs).sum();
    let most = buckets.iter().max_by_key(|it| it.jobs);
    let told = format!("{}; the table below has all numbers", words::jobs(all));
    let mut drawing = Drawing::new(id, ABOVE + HEIGHT + BELOW, title, told);
    let most = most.map_or(0, |it| it.jobs).max(1);
    let step = 100.0 / buckets.len().max(1) as f64;
    let floor = ABOVE + HEIGHT;
    for (at, bucket) in buckets.iter().enumerate() {
        let left = at as f64 * step;
        let middle = left + step / 2.0;
        let height = |count: u64| match count {
            0 => 0.0,
            count => (HEIGHT * count as f64 / most as f64).max(2.0),
        };
        let (whole, marked) = (height(bucket.jobs), height(bucket.marked));
        let column = |top, height| (left + step * 0.09, step * 0.82, top, height);
        if bucket.jobs > bucket.marked {
            drawing.rect("main", column(floor - whole, whole - marked));
        }
        if bucket.marked > 0 {
            drawing.rect("marked", column(floor - marked, marked));
        }
        if bucket.jobs > 0 {
            let count = words::compact(bucket.jobs);
            drawing.label("middle", (middle, floor - whole - 4.0), count);
        }
        let (is_edge, text) = label(bucket);
        if is_edge && at > 0 {
            drawing.tick(left, floor);
        }
        let x = if is_edge { left } else { middle };
        drawing.label("middle soft", (x, floor + 16.0), text);
    }
    drawing.baseline(floor);
    drawing.finish()
}

/// Draws parts of a whole beside each other.
pub(super) fn parts(id: &'static str, title: &'static str, parts: &[(&'static str, u64)]) -> Html {
    let all = parts.iter().map(|(_, count)| count).sum::<u64>();
    let told = "the numbers stand below";
    let mut drawing = Drawing::new(id, 14.0, title, told);
    let mut left = 0.0;
    for (class, count) in parts.iter().filter(|(_, count)| *count > 0) {
        let width = *count as f64 / all as f64 * 100.0;
        drawing.rect(class, (left, width, 0.0, 14.0));
        left += width;
    }
    drawing.finish()
}

/// Draws a bar within a table, of two parts of a whole, for those who see it beside the numbers.
pub(super) fn bar(first: u64, second: u64, most: u64) -> Html {
    let mut drawing = Drawing::beside(10.0);
    let part = |count: u64| count as f64 * 100.0 / most.max(1) as f64;
    for (class, left, width) in [
        ("unclaimed", 0.0, part(first)),
        ("claimed", part(first), part(second)),
    ] {
        if width > 0.0 {
            drawing.rect(class, (left, width.max(0.6), 0.0, 10.0));
        }
    }
    drawing.finish()
}

/// Draws what part of the most something is.
pub(super) fn share(part: u64, most: u64) -> Html {
    let mut drawing = Drawing::beside(6.0);
    let width = part as f64 * 100.0 / most.max(1) as f64;
    drawing.rect("bad", (0.0, width.max(1.5), 0.0, 6.0));
    drawing.finish()
}

/// Draws what happened over time, a row for each kind, each to a scale of its own.
pub(super) fn course(id: &'static str, title: &'static str, intervals: &[Interval]) -> Html {
    let counts = |of: Count| intervals.iter().map(move |it| of(&it.happened));
    let most = |of| counts(of).max().unwrap_or_default();
    let sums = COUNTS.map(|(name, of)| {
        let (sum, most) = (words::grouped(counts(of).sum()), words::grouped(most(of)));
        format!("{sum} {name}, at most {most} in a bar")
    });
    let height = 3.0 * (ROW + 20.0) + BELOW;
    let mut drawing = Drawing::new(id, height, title, sums.join("; "));
    let step = 100.0 / intervals.len().max(1) as f64;
    let mut floor = 0.0;
    let classes = ["unclaimed", "main", "failed"].into_iter();
    for (((_, of), class), sum) in COUNTS.into_iter().zip(classes).zip(sums) {
        floor += ROW + 20.0;
        drawing.label("start", (0.0, floor - ROW - 6.0), sum);
        for (at, count) in counts(of).enumerate().filter(|(_, count)| *count > 0) {
            let height = (ROW * count as f64 / most(of) as f64).max(1.5);
            let left = at as f64 * step + step * 0.06;
            drawing.rect(class, (left, step * 0.88, floor - height, height));
        }
        drawing.baseline(floor);
    }
    if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
        axis(&mut drawing, floor, (first.from, last.to));
    }
    drawing.finish()
}

/// Writes the times of both ends and of the middle below a line.
fn axis(drawing: &mut Drawing, y: f64, (from, to): (DateTime<Utc>, DateTime<Utc>)) {
    let middle = from + (to - from) / 2;
    let form = match (to - from).num_hours() {
        0 if (to - from).num_minutes() < 10 => "%H:%M:%S",
        0..24 if from.date_naive() == to.date_naive() => "%H:%M",
        0..240 => "%d %b %H:%M",
        _ => "%d %b %Y",
    };
    for (class, x, time) in [
        ("start soft", 0.0, from),
        ("middle soft", 50.0, middle),
        ("end soft", 100.0, to),
    ] {
        drawing.tick(x, y);
        drawing.label(class, (x, y + 17.0), time.format(form).to_string());
    }
}

/// Draws quantiles of spans of time on one axis, each below its name.
pub(super) fn quantiles(
    id: &'static str,
    title: &'static str,
    rows: &[(&'static str, &Percentiles)],
) -> Html {
    let told = rows.iter().map(|(name, of)| {
        let [p50, p90, p99] = [of.p50, of.p90, of.p99].map(words::seconds);
        format!("{name}: half below {p50}, nine tenths below {p90}, 99 of 100 below {p99}")
    });
    let told = told.collect::<Vec<_>>().join("; ");
    let floor = rows.len() as f64 * 38.0;
    let mut drawing = Drawing::new(id, floor + BELOW, title, told);
    // From a millisecond on, and a little further than the longest.
    let power = |seconds: f64| (seconds * 1e3).max(1.0).log10();
    let longest = rows.iter().map(|(_, of)| power(of.p99)).fold(4.0, f64::max) + 0.3;
    let x = |seconds: f64| power(seconds) * 100.0 / longest;
    for (at, (name, of)) in rows.iter().enumerate() {
        let y = at as f64 * 38.0 + 24.0;
        drawing.label("start", (0.0, y - 10.0), *name);
        let (p50, p90, p99) = (x(of.p50), x(of.p90), x(of.p99));
        drawing.rect("faint", (p50, (p99 - p50).max(0.2), y - 1.0, 2.0));
        drawing.rect("main", (p50, (p90 - p50).max(0.4), y - 4.0, 8.0));
        drawing.rect("ink", (p50 - 0.3, 0.6, y - 7.0, 14.0));
        drawing.rect("ink", (p99 - 0.2, 0.4, y - 4.0, 8.0));
    }
    drawing.baseline(floor);
    let ticks = [
        (0.001, "1ms"),
        (1.0, "1s"),
        (60.0, "1m"),
        (3_600.0, "1h"),
        (86_400.0, "1d"),
    ];
    for (seconds, name) in ticks.into_iter().filter(|(it, _)| x(*it) < 98.0) {
        let x = x(seconds);
        drawing.tick(x, floor);
        let class = if x == 0.0 {
            "start soft"
        } else {
            "middle soft"
        };
        drawing.label(class, (x, floor + 17.0), name);
    }
    drawing.finish()
}
