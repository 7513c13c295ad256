//! Figures in the text form that Prometheus reads, version 0.0.4.

use std::fmt::Write as _;

use super::{Text, text::ends};

/// How many characters a label has at most.
const LONGEST: usize = 100;

/// What the values of a family are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// It goes up and down.
    Gauge,
    /// It only grows, until the program begins anew.
    Counter,
    /// How many took no longer than so much, and how long all took together.
    Histogram,
}

/// Figures, family by family.
#[derive(Debug)]
pub(crate) struct Exposition {
    text: String,
    /// What all figures are labelled with.
    labels: Vec<(&'static str, String)>,
}

/// Adds the figures of one family.
pub(crate) struct Family<'a> {
    exposition: &'a mut Exposition,
    name: &'static str,
}

impl Exposition {
    /// Begins, with what all figures are labelled with.
    pub(crate) fn new(labels: &[(&'static str, &str)]) -> Self {
        let labels = labels.iter().map(|(name, value)| (*name, label(value)));
        Self {
            text: String::new(),
            labels: labels.collect(),
        }
    }

    /// Begins a family; all of its figures follow.
    pub(crate) fn family(&mut self, kind: Kind, name: &'static str, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.text += &format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family {
            exposition: self,
            name,
        }
    }

    /// Adds a family of one figure.
    pub(crate) fn gauge(&mut self, name: &'static str, help: &str, value: f64) {
        self.family(Kind::Gauge, name, help).add(&[], value);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn figure(&mut self, name: &str, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.text += name;
        self.text += suffix;
        let own = self.labels.iter();
        let own = own.map(|(name, value)| (*name, value.clone()));
        let labels = labels.iter().map(|(name, value)| (*name, label(value)));
        let mut before = '{';
        for (name, value) in own.chain(labels) {
            // Writing to a text does not fail.
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(&value));
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

impl Family<'_> {
    /// Adds how many of a histogram's values were no larger than each bound, how many there are, and their sum.
    pub(crate) fn histogram(&mut self, within: &[(f64, u64)], count: u64, sum: f64) {
        let bounds = within
            .iter()
            .map(|(most, count)| (most.to_string(), *count));
        for (most, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            let labels = [("le", most.as_str())];
            self.exposition
                .figure(self.name, "_bucket", &labels, count as f64);
        }
        self.exposition.figure(self.name, "_sum", &[], sum);
        self.exposition
            .figure(self.name, "_count", &[], count as f64);
    }

    /// Adds a figure; none has the same labels.
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        self.exposition.figure(self.name, "", labels, value);
        self
    }
}

/// Returns what can stand as a label of what a stranger wrote; of different texts it may be the same.
pub(crate) fn label(text: &str) -> String {
    Text::from(ends(text, LONGEST)).to_string()
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_strangers_wrote_stays_within_its_label() {
        let mut exposition = Exposition::new(&[("board", "a\"b\\c\n")]);
        let mut family = exposition.family(Kind::Gauge, "jobs", "one\ntwo \\");
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
    fn a_label_is_short() {
        assert_eq!(label(&"x".repeat(10_000)).chars().count(), LONGEST);
    }
}
