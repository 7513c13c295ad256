//! Filters on each field.

use super::*;

#[test]
fn names_and_owners_are_texts() {
    matches(
        &claimed(),
        "name=backup/db-1 | name=backup* | name=* | name!=backup | name~^backup/ | name~db-[0-9]$ | \
         name!~DB | name<c | name>=backup | owner=worker-7 | owner=worker-? | owner!=worker-8 | \
         owner~^w | owner>worker-6 | owner<=worker-7",
        "name=backup | name=BACKUP* | name!=backup* | name!~db | name>c | owner=Worker-7 | \
         owner=worker | owner!=* | owner!~7 | owner<worker-7",
    );
}

#[test]
fn globs_cross_slashes_and_count_characters() {
    for (glob, fits, misses) in [
        ("*", &["", "a/b\nc"][..], &[][..]),
        ("a?c", &["abc", "a/c", "aüc"], &["ac", "abbc", "xabc"]),
        ("[a-cx]1", &["a1", "c1", "x1"], &["d1", "-1", "a"]),
        ("[!a-c]1", &["d1", "ü1"], &["a1"]),
        ("[^a]", &["b"], &["a", "^b"]),
        ("[]]", &["]"], &["["]),
        ("[!]]", &["["], &["]"]),
        ("[a-]*", &["a", "-b"], &["b"]),
        ("[[]x[*]", &["[x*"], &["[xx"]),
        ("[ä-ü]", &["ö"], &["o"]),
        ("a.c*", &["a.c", "a.cd"], &["abc"]),
        (r"\*", &[r"\", r"\x"], &["*"]),
        ("{a,b}*", &["{a,b}c"], &["ac"]),
        ("[1,2]", &["1", ",", "[1,2]"], &["3", "12"]),
        ("[&&~~^]", &["&", "~", "^"], &["[", "a"]),
    ] {
        let expression = format!("name={glob}");
        for name in fits {
            assert!(holds(&expression, &named(name)), "{glob} {name}");
        }
        for name in misses {
            assert!(!holds(&expression, &named(name)), "{glob} {name}");
        }
    }
}

#[test]
fn empty_value_matches_the_empty_text() {
    matches(&named(""), "name= | name =", "");
    matches(&named("a"), "", "name=");
    matches(&claimed(), "owner!=", "");
    matches(&with(json!({"x": ""})), "details.x=", "");
    matches(&with(json!({"x": 0})), "", "details.x=");
}

#[test]
fn state_filter_takes_a_name_or_a_regex_in_any_case() {
    let holding = "state=CLAIMED | state=claimed | state!=unclaimed | state~^cl | state!~UN";
    matches(&claimed(), holding, "");
    let others = "state=claimed | state!=Unclaimed | state~^claimed | state!~claimed";
    matches(&unclaimed(), "", others);
    matches(&trashed(), "state=trashed | state!=complete", "");
}

#[test]
fn priorities_compare_by_importance() {
    let urgent = entry(Job {
        priority: Priority::VeryHigh,
        ..job()
    });
    let holding = "priority=VERY_HIGH | priority>=high | priority>Low | priority!=none";
    matches(&urgent, holding, "");
    matches(
        &unclaimed(),
        "priority=normal | priority<HIGH | priority<=NORMAL | priority>=NORMAL",
        "priority>=HIGH | priority!=NORMAL | priority<NORMAL",
    );
}

#[test]
fn counts_are_whole_numbers() {
    matches(
        &unclaimed(),
        "sequence=12 | sequence=012 | sequence!=13 | sequence>-1 | sequence>=12 | \
         sequence<99999999999999999999 | attempts=3 | attempts<=3 | attempts>2",
        "sequence<12 | sequence>12 | attempts!=3 | attempts<3",
    );
}

#[test]
fn sizes_accept_units() {
    matches(
        &unclaimed(),
        "size=4096 | size=4KiB | size = 4kib | size>4kB | size<1MB | size<1GiB",
        "size>4KiB | size=4kB | size>=1MiB | size=none",
    );
}

#[test]
fn age_counts_from_the_posting() {
    let holding = "age>59m | age<=1h | age>=60m | age<1h1ms | age!=none";
    matches(&unclaimed(), holding, "age<1h | age>1h | age=none");
    let ahead = entry(Job {
        created_on: ago(-60),
        ..job()
    });
    matches(&ahead, "age<1ms | age>=0s | age<=0s", "");
}

#[test]
fn only_claimed_jobs_have_a_held_time() {
    matches(&claimed(), "held>=5m | held<=5m | held>4m | held<10m", "");
    let mut seen = held(ClaimEnd::Never, None);
    seen.holding.as_mut().unwrap().claimed_on = None;
    matches(&entry(seen), "held>=10m | held<=10m", "");
    for entry in [unclaimed(), trashed()] {
        matches(&entry, "held=none", "held>0s | held<10d | held!=none");
    }
}

#[test]
fn expires_is_the_remaining_time_of_a_claim() {
    let holding = "expires<=30s | expires>29s | expires<1m | expires!=none";
    matches(&claimed(), holding, "expires>30s | expires=none");
}

#[test]
fn only_an_unlimited_claim_has_no_expiry() {
    matches(&entry(held(ClaimEnd::Never, None)), "expires=none", "");
    for entry in [
        entry(held(ClaimEnd::Session, None)),
        entry(held(ClaimEnd::Timed, None)),
        trashed(),
        unclaimed(),
        malformed(),
    ] {
        let others = "expires=none | expires<1000d | expires>=0s";
        matches(&entry, "expires!=none", others);
    }
}

#[test]
fn owner_none_matches_unclaimed_jobs_only() {
    matches(
        &unclaimed(),
        "owner=none | owner!=worker-7 | owner!~w",
        "owner!=none | owner= | owner=* | owner~. | owner<z",
    );
    matches(&claimed(), "owner!=none", "");
    let mut unreadable = held(ClaimEnd::Never, None);
    unreadable.holding.as_mut().unwrap().owner = None;
    let holding = "owner!=none | owner!=worker-7 | state=claimed";
    matches(&entry(unreadable), holding, "owner=none | owner=*");
}

#[test]
fn owner_with_invalid_utf8_can_be_matched() {
    let mut job = held(ClaimEnd::Never, None);
    job.holding.as_mut().unwrap().owner = Some(Owner::from_stored(*b"w\xff7"));
    matches(&entry(job), "owner=w?7 | owner~^w.7$ | owner!=none", "");
}

#[test]
fn none_differs_from_the_text_none() {
    let holding = "name!=none | name=[n]one | name~^none$";
    matches(&named("none"), holding, "name=none");
}

#[test]
fn missing_value_matches_only_negations() {
    let bare = entry(Job {
        sequence: None,
        created_on: None,
        ..job()
    });
    matches(
        &bare,
        "sequence=none | age=none | sequence!=12",
        "sequence=12 | sequence<12 | sequence>=0 | age<1d | age>=0s | age!=none",
    );
}

#[test]
fn malformed_entry_has_a_state_and_a_size() {
    matches(
        &malformed(),
        "state=malformed | size=7 | name=none | name!=k | owner=none | priority=none | \
         priority!=NORMAL | sequence=none | age=none | held=none | attempts=none | attempts!=0 | \
         details=none | details.x=none",
        "name=k | name=* | priority<=VERY_HIGH | attempts=0 | details~. | age>=0s",
    );
}
