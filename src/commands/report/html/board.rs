//! What is on the board: how many jobs, for how long, by name and by owner.

use super::{Facts, ago, count, figure, legend, more, name, shown, svg, table, text, words};
use crate::{
    commands::{
        parts::tally::{ByName, ByOwner, Standing},
        report::measure::Bucket,
    },
    duration,
    output::{Html, short},
};

/// Writes how many jobs there are in each state.
pub(super) fn counts(facts: &Facts) -> Html {
    let (figures, mut html) = (&facts.figures, Html::new());
    let states = [
        ("unclaimed", figures.unclaimed),
        ("claimed", figures.claimed),
        ("gone", facts.trashed),
        ("failed", figures.malformed),
    ];
    if states.iter().any(|(_, count)| *count > 0) {
        html.add(&svg::parts("states", "Jobs by state", &states))
            .raw("\n");
    }
    html.raw("<dl class=\"tiles\">\n");
    let some = |number: u64, what: &str| match number {
        0 => None,
        number => Some(format!("{} {what}", words::grouped(number))),
    };
    let oldest = standing(facts, "the oldest ", figures.oldest_unclaimed.as_ref());
    let longest = standing(facts, "the longest ", figures.longest_held.as_ref());
    let held_back = some(figures.held_back, "held back");
    tile(
        ("unclaimed", "unclaimed"),
        figures.unclaimed,
        &[oldest, held_back],
        &mut html,
    );
    let never = some(figures.never_lapsing, "never lapse");
    let orphaned = some(figures.orphaned, "of dead owners");
    tile(
        ("claimed", "claimed"),
        figures.claimed,
        &[longest, never, orphaned],
        &mut html,
    );
    let lost = some(facts.lost, "failed");
    tile(("gone", "in the trash"), facts.trashed, &[lost], &mut html);
    let class = if figures.malformed > 0 { "bad" } else { "" };
    tile((class, "malformed"), figures.malformed, &[], &mut html);
    let poison = "the next attempt is the last, or none is left";
    let poison = (figures.poison > 0).then(|| poison.to_owned());
    tile(("", "poison"), figures.poison, &[poison], &mut html);
    let silent = some(facts.silent, "silent");
    let unsettled = some(facts.unsettled, "not settled");
    match facts.conductors {
        Some(alive) => tile(
            ("", "conductors"),
            alive as u64,
            &[silent, unsettled],
            &mut html,
        ),
        None => {
            html.raw("<div><dt>conductors</dt><dd class=\"more\">not seen</dd></div>\n");
        }
    }
    html.raw("</dl>\n");
    for pause in &facts.pauses {
        html.raw("<p>Paused: ")
            .add(&shown(&pause.to_string(), 300))
            .raw("</p>\n");
    }
    html
}

fn standing(facts: &Facts, what: &str, job: Option<&Standing>) -> Option<String> {
    let job = job?;
    let name = crate::output::Text::from(&job.name).shortened(30);
    Some(format!(
        "{what}{}: {name} {}",
        facts.ago(job.since),
        short(&job.uuid)
    ))
}

fn tile(
    (class, what): (&'static str, &'static str),
    number: u64,
    more: &[Option<String>],
    html: &mut Html,
) {
    html.raw("<div class=\"")
        .raw(class)
        .raw("\"><dt>")
        .raw(what)
        .raw("</dt><dd>");
    html.text(words::grouped(number)).raw("</dd>");
    for fact in more.iter().flatten() {
        html.raw("<dd class=\"more\">")
            .add(&shown(fact, 80))
            .raw("</dd>");
    }
    html.raw("</div>\n");
}

/// Writes for how long jobs wait and are held, and how often they were tried.
pub(super) fn ages(facts: &Facts) -> Html {
    let mut html = Html::new();
    html.raw("<div class=\"charts\">\n");
    let edge = |it: &Bucket| {
        let label = words::span(it);
        // Its left edge alone: the next one has the other.
        (
            true,
            label
                .split_once(' ')
                .map_or("", |(edge, _)| edge)
                .replace("below", "0"),
        )
    };
    let tried = |it: &Bucket| match it.to {
        Some(_) => (false, it.from.to_string()),
        None => (false, format!("{}+", it.from)),
    };
    html.add(&histogram(
        ("ages-figure", "Age of the jobs that nobody has"),
        &facts.ages,
        (edge, words::span),
        ("waiting for their turn", "held back until a later time"),
    ));
    html.add(&histogram(
        ("held-figure", "How long the others are held"),
        &facts.held,
        (edge, words::span),
        ("the claim lapses by itself", "the claim never lapses"),
    ));
    html.add(&histogram(
        ("tries-figure", "How often jobs on the board were tried"),
        &facts.attempts,
        (tried, words::attempts),
        (
            "may be tried again, or is",
            "was tried as often as it may be",
        ),
    ));
    html.raw("</div>\n");
    html
}

fn histogram(
    (id, title): (&'static str, &'static str),
    buckets: &[Bucket],
    (label, name): (svg::Label, fn(&Bucket) -> String),
    (plain, marked): (&'static str, &'static str),
) -> Html {
    let all = buckets.iter().map(|it| it.jobs).sum();
    if all == 0 {
        let mut html = Html::new();
        html.raw("<figure>\n<figcaption>")
            .raw(title)
            .raw("<small>no jobs</small></figcaption>\n</figure>\n");
        return html;
    }
    let drawing = svg::columns(id, title, buckets, label);
    let rows = buckets
        .iter()
        .map(|it| vec![text(name(it)), count(it.jobs), count(it.marked)]);
    // Each word of a title is one of ours.
    let numbers = table(title, &[("bucket", ""), ("jobs", "n"), (marked, "n")], rows);
    let marks = legend(&[("main", plain), ("marked", marked)]);
    figure("", (title, &words::jobs(all)), &drawing, &marks, &numbers)
}

/// Writes the names of the most jobs.
pub(super) fn names(facts: &Facts) -> Html {
    let mut html = Html::new();
    let Some(most) = facts.names.iter().map(|it| it.jobs).max() else {
        html.raw("<p>There is no job.</p>\n");
        return html;
    };
    let columns = [
        ("name", ""),
        ("<span class=\"unseen\">drawn</span>", "w"),
        ("jobs", "n"),
        ("unclaimed", "n"),
        ("claimed", "n"),
        ("failed before", "n"),
        ("oldest", "n"),
    ];
    let row = |it: &ByName| {
        vec![
            name(&it.name),
            svg::bar(it.unclaimed, it.claimed, most),
            count(it.jobs),
            count(it.unclaimed),
            count(it.claimed),
            count(it.failed),
            ago(facts, it.oldest),
        ]
    };
    html.add(&table(
        "The names of the most jobs",
        &columns,
        facts.names.iter().map(row),
    ));
    html.add(&legend(&[
        ("unclaimed", "unclaimed"),
        ("claimed", "claimed"),
    ]));
    html.add(&more(
        facts.more_names,
        "names; <code>jobboard list --count --by name</code> has all",
    ));
    html
}

/// Writes who has the most claims.
pub(super) fn owners(facts: &Facts) -> Html {
    let mut html = Html::new();
    let Some(most) = facts.owners.iter().map(|it| it.claims).max() else {
        html.raw("<p>Nobody has a job.</p>\n");
        return html;
    };
    let columns = [
        ("owner", ""),
        ("<span class=\"unseen\">drawn</span>", "w"),
        ("claims", "n"),
        ("held for", "n"),
        ("next lapses in", "n"),
        ("never lapse", "n"),
        ("conductor", ""),
    ];
    let row = |it: &ByOwner| {
        let owner = it.owner.as_ref();
        let is = match (it.is_dead, it.is_silent, &it.conductor) {
            (true, ..) => bad("dead"),
            (_, true, _) => bad("silent"),
            (_, _, Some(conductor)) => name(conductor),
            (_, _, None) => text("–"),
        };
        vec![
            owner.map_or_else(|| text("cannot be read"), |owner| name(&owner.text())),
            svg::bar(0, it.claims, most),
            count(it.claims),
            ago(facts, it.held_since),
            text(it.expires_in.map_or("–".to_owned(), duration::brief)),
            count(it.never_lapsing),
            is,
        ]
    };
    html.add(&table(
        "The owners of the most claims",
        &columns,
        facts.owners.iter().map(row),
    ));
    html.add(&more(
        Some(facts.more_owners),
        "owners; <code>jobboard list --count --by owner</code> has all",
    ));
    html
}

fn bad(what: &'static str) -> Html {
    let mut html = Html::new();
    html.raw("<strong class=\"bad-text\">")
        .raw(what)
        .raw("</strong>");
    html
}
