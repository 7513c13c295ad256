//! A report as text, for a terminal.

use super::{
    facts::ReportFacts,
    measure::KINDS,
    tables::{OmittedRows, Table},
};
use crate::{
    commands::parts::problems,
    duration,
    job::Pause,
    output::{Page, Report, Tone, grouped, rfc3339, sparkline},
};

impl Report for ReportFacts {
    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        page.fact("backend", &self.server);
        page.fact("as of", rfc3339(self.at));
        page.line();
        page.sentence(0).plain(self.verdict());
        for problem in &self.problems {
            problems::print(problem, self.at, page);
        }
        more(page, (self.more_problems, "problems", "doctor"));
        page.facts("not checked", &self.unseen);
        page.line();
        for of in self.tiles() {
            page.fact(of.name, of.number);
            for (what, fact) in of.more {
                page.fact(&format!("  {what}"), fact);
            }
        }
        page.fact("conductors", self.conductors_in_words());
        page.facts("paused", self.pauses.iter().map(Pause::to_string));
        more(page, (self.more_pauses, "pauses", "resume"));
        table(page, self.names_table());
        table(page, self.owners_table());
        table(page, self.failures_table());
        self.history(page);
    }
}

impl ReportFacts {
    fn history(&self, page: &mut Page) {
        let Some(first) = self.intervals.first() else {
            return;
        };
        let length = (first.to - first.from).to_std().unwrap_or_default();
        page.line();
        let (from, each) = (rfc3339(first.from), duration::brief(length));
        page.heading(&format!(
            "Since {from}; one bar per {each}; rows have separate scales"
        ));
        for (at, kind) in KINDS.into_iter().enumerate() {
            let counts = self.intervals.iter().map(|it| it.counts()[at]);
            let (bars, sum) = (sparkline(counts.clone()), grouped(counts.sum()));
            let line = page.line().add(Tone::Faint, format!("{kind:<9} "));
            line.plain(format!("{bars}  {sum}"));
        }
        table(page, self.spans_table());
    }
}

fn table(page: &mut Page, table: Table) {
    page.table(&table.columns, table.rows.into_iter());
    more(page, table.more);
}

fn more(page: &mut Page, (count, what, command): OmittedRows) {
    if count.count > 0 {
        page.more(format!("{count} more {what}"), command);
    }
}
