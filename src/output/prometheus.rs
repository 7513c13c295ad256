//! Prometheus metrics in text format 0.0.4.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;

use super::{Text, text::ends};

/// The longest label value, in characters.
const LONGEST: usize = 100;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Gauge,
    /// Only grows, until the program restarts.
    Counter,
    /// Counts per upper bound, and the sum.
    Histogram,
}

#[derive(Debug)]
pub(crate) struct Exposition {
    /// The labels of all metrics.
    labels: Vec<String>,
    families: Vec<Family>,
}

#[derive(Debug)]
pub(crate) struct Family {
    name: &'static str,
    head: String,
    shared: Vec<String>,
    /// The values by metric suffix and labels; each key is unique.
    figures: IndexMap<String, f64>,
}

impl Exposition {
    pub(crate) fn new(labels: &[(&'static str, &str)]) -> Self {
        Self {
            labels: written(labels).collect(),
            families: Vec::new(),
        }
    }

    pub(crate) fn family(&mut self, kind: Kind, name: &'static str, help: &str) -> &mut Family {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let at = self.families.len();
        self.families.push(Family {
            name,
            head: format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
            shared: self.labels.clone(),
            figures: IndexMap::new(),
        });
        &mut self.families[at]
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, value: f64) {
        self.family(Kind::Gauge, name, help).add(&[], value);
    }

    pub(crate) fn into_text(self) -> String {
        let mut text = String::new();
        for Family {
            name,
            head,
            figures,
            ..
        } in self.families
        {
            text += &head;
            for (labels, value) in figures {
                text += &format!("{name}{labels} {value}\n");
            }
        }
        text
    }
}

impl Family {
    /// Adds the counts up to each bound, the total count, and the sum.
    pub(crate) fn histogram(&mut self, within: &[(f64, u64)], count: u64, sum: f64) {
        let bounds = within
            .iter()
            .map(|(most, count)| (most.to_string(), *count));
        for (most, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            self.figure("_bucket", &[("le", &most)], count as f64);
        }
        self.figure("_sum", &[], sum);
        self.figure("_count", &[], count as f64);
    }

    /// Adds a value. Values with equal labels, perhaps after cutting, are summed.
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        self.figure("", labels, value);
    }

    fn figure(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<_> = self.shared.iter().cloned().chain(written(labels)).collect();
        let figure = match labels.is_empty() {
            true => suffix.to_owned(),
            false => format!("{suffix}{{{}}}", labels.join(",")),
        };
        *self.figures.entry(figure).or_default() += value;
    }
}

/// Writes labels with values from any source.
fn written(labels: &[(&str, &str)]) -> impl Iterator<Item = String> {
    labels.iter().map(|(name, value)| {
        let value = label(value).replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name}=\"{value}\"")
    })
}

pub(crate) fn timestamp(time: DateTime<Utc>) -> f64 {
    time.timestamp_micros() as f64 / 1e6
}

/// Returns a valid label value for foreign text. Different texts may become equal.
fn label(text: &str) -> String {
    Text::from(ends(text, LONGEST)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_within_its_label() {
        let mut exposition = Exposition::new(&[("board", "a\"b\\c\n")]);
        let family = exposition.family(Kind::Gauge, "jobs", "one\ntwo \\");
        family.add(&[("name", "\u{1b}[2J\"} 1\n# x")], 0.25);
        family.add(&[], 3.0);
        exposition.gauge("up", "alive", 1.0);
        insta::assert_snapshot!(exposition.into_text(), @r##"
        # HELP jobs one\ntwo \\
        # TYPE jobs gauge
        jobs{board="a\"b\\\\c\\n",name="\\u{1b}[2J\"} 1\\n# x"} 0.25
        jobs{board="a\"b\\\\c\\n"} 3
        # HELP up alive
        # TYPE up gauge
        up{board="a\"b\\\\c\\n"} 1
        "##);
    }

    #[test]
    fn label_length_is_limited() {
        assert_eq!(label(&"x".repeat(10_000)).chars().count(), LONGEST);
    }
}
