//! The contract of [`Board`], as tests for every backend.
//!
//! Each test is a function with a board of its own.

pub(crate) mod beginning;
pub(crate) mod claiming;
pub(crate) mod events;
pub(crate) mod histories;
pub(crate) mod listing;
mod model;
pub(crate) mod moving;
pub(crate) mod past;
pub(crate) mod pausing;
pub(crate) mod posting;
pub(crate) mod registry;
pub(crate) mod retrying;
pub(crate) mod settling;
pub(crate) mod trash;

use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use serde_json::json;
use uuid::Uuid;

pub(crate) use self::histories::WHO;
use super::{Board, BoardExt, ClaimRules, Detail, JobRef, Order, Query, Result, Which};
use crate::job::{
    Aftermath, Authority, Claimant, Claimed, Draft, Entry, Job, JobKey, Outcome, Owner, Priority,
    Shelf, Term,
};

/// Creates a test for each function; `$open` opens a separate board, and `$again` opens the same one again.
///
/// Its second value is dropped after the board and tears down the server. It returns `None` on a machine without the
/// backend.
macro_rules! keeps_its_promises {
    ($open:path, $again:expr) => {
        #[test]
        fn whatever_is_done_it_is_as_the_model() {
            $crate::board::conformance::histories::agree(24, $open, $again);
        }

        $crate::board::conformance::keeps_its_promises! { $open =>
            posting::a_posted_job_is_found_as_it_was_posted,
            posting::posts_are_numbered_in_the_order_in_which_they_are_given,
            posting::a_uuid_is_on_the_board_only_once,
            posting::a_refused_draft_does_not_keep_others_from_being_posted,
            posting::a_namesake_in_the_trash_is_no_obstacle,
            posting::a_job_can_be_posted_already_claimed,
            posting::of_twenty_posts_of_one_uuid_one_is_posted,
            posting::many_jobs_can_be_posted_at_once,
            listing::each_job_is_listed_once,
            listing::the_ranked_order_is_most_urgent_first_and_then_oldest_first,
            listing::claimed_jobs_are_not_among_the_unclaimed,
            listing::details_come_only_when_asked_for,
            listing::jobs_are_found_by_uuid_beginning_number_and_key,
            listing::an_ambiguous_beginning_yields_candidates,
            listing::the_shelves_are_separate,
            listing::jobs_that_are_posted_or_finished_during_a_listing_do_not_disturb_it,
            claiming::a_claimed_job_cannot_be_claimed_again,
            claiming::claiming_ones_own_job_again_is_refused_and_changes_nothing,
            claiming::of_twenty_claimants_one_wins,
            claiming::of_several_jobs_the_first_that_are_free_are_claimed,
            claiming::a_job_that_is_gone_cannot_be_claimed,
            claiming::fences_grow,
            claiming::a_claim_for_a_time_lapses_by_itself,
            claiming::a_claim_without_a_term_does_not_lapse,
            claiming::attempts_are_counted_and_claims_by_hand_are_not,
            claiming::a_claim_ahead_of_its_turn_counts_once_something_came_of_it,
            claiming::a_job_that_was_left_ahead_of_its_turn_is_next_claimed_to_begin_at_once,
            claiming::a_postponed_job_is_passed_over_unless_it_is_named,
            claiming::a_renewed_claim_outlives_its_term,
            claiming::only_the_holder_of_a_claim_can_renew_it,
            claiming::renewing_does_not_revive_a_lapsed_claim,
            claiming::a_claim_by_hand_can_be_given_an_expiry,
            settling::only_the_owner_may_settle_by_name,
            settling::nobody_may_settle_an_unclaimed_job_by_name,
            settling::a_lease_won_again_by_the_same_name_is_another_claim,
            settling::an_abandoned_job_can_be_claimed_again,
            settling::a_consumed_job_is_gone,
            settling::of_twenty_consumers_one_succeeds,
            settling::each_of_several_settlements_has_its_own_answer,
            settling::an_override_acts_on_what_was_seen,
            settling::an_override_is_refused_when_the_claim_has_changed,
            settling::an_override_can_settle_a_job_that_nobody_has,
            settling::the_last_three_failures_are_kept,
            settling::interrupted_and_postponed_attempts_do_not_count,
            settling::what_is_given_up_untried_counts_no_attempt,
            settling::a_late_holder_settles_nothing,
            settling::a_postponed_job_stays_so_when_it_is_given_back,
            trash::a_trashed_job_keeps_what_it_was,
            trash::trashing_replaces_a_namesake_and_says_so,
            trash::a_restored_job_is_as_if_never_tried,
            trash::a_namesake_on_the_board_keeps_a_job_in_the_trash,
            trash::a_purged_job_is_gone_for_good,
            trash::what_is_not_in_the_trash_can_be_neither_restored_nor_purged,
            retrying::a_job_that_is_held_back_can_be_tried_at_once,
            retrying::only_what_is_held_back_and_free_is_tried_at_once,
            retrying::a_job_may_come_back_with_its_attempts,
            retrying::of_twenty_who_retry_a_job_one_succeeds,
            moving::a_copy_is_posted_claimed_and_counts_no_attempt,
            moving::a_record_is_written_with_the_end_of_the_job_or_not_at_all,
            moving::a_board_that_no_job_has_left_has_no_records,
            past::a_consumed_job_is_remembered_as_it_was,
            past::each_end_is_told_from_the_others,
            past::what_ended_last_is_listed_first,
            past::a_job_that_is_given_back_is_not_past,
            past::of_many_ends_none_is_lost_or_doubled,
            pausing::a_pause_is_kept_as_it_was_asked_for_until_it_is_ended,
            pausing::what_is_paused_and_resumed_is_told,
            pausing::a_paused_job_is_no_candidate_until_its_pause_ends,
            beginning::who_begins_to_listen_is_shown_what_nobody_has,
            beginning::what_was_shown_is_told_of_whether_or_not_it_was_wanted,
            events::each_verb_yields_its_event_in_order,
            events::an_override_yields_the_event_of_its_outcome,
            events::an_event_tells_who_did_it_and_why,
            events::a_claim_that_lapses_is_told_at_its_deadline,
            events::renewing_a_kept_lease_is_no_event_and_extending_is,
            events::a_job_that_came_and_went_is_told_whole,
            events::an_event_says_which_job_and_whose_claim_it_is_about,
            events::following_the_events_leads_to_what_is_listed,
            registry::conductors_come_and_go,
            registry::what_a_conductor_tells_is_kept_beside_its_name,
            registry::a_name_is_taken_while_its_conductor_is_at_work,
            registry::the_health_counts_the_jobs,
        }
    };
    ($open:path => $($topic:ident::$promise:ident,)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let Some((board, _server)) = $open() else {
                    return;
                };
                $crate::board::conformance::$topic::$promise(&board).await;
                board.close().await;
            }
        )*
    };
}
pub(crate) use keeps_its_promises;

/// A board under test; several tasks may share it.
pub(crate) type Subject = Arc<dyn Board>;

pub(crate) const BY_HAND: ClaimRules = ClaimRules::BY_HAND;

/// Claims as conductors do.
pub(crate) const ATTEMPT: ClaimRules = ClaimRules {
    is_attempt: true,
    at_once: usize::MAX,
    respects_not_before: true,
};

/// Shorter than any wait of a test, longer than any exchange with a local server.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

pub(crate) fn claimant(name: &str, term: Term) -> Claimant {
    Claimant {
        owner: owner(name),
        term,
    }
}

pub(crate) fn ada() -> Claimant {
    claimant("ada", Term::Indefinite)
}

pub(crate) fn bob() -> Claimant {
    claimant("bob", Term::Indefinite)
}

pub(crate) fn draft(name: &str) -> Draft {
    Draft {
        uuid: Uuid::new_v4(),
        chosen: false,
        name: name.to_owned(),
        priority: Priority::Normal,
        book: None,
        details: json!({"size": 12, "note": "héllo ☃"}).into(),
        former: None,
    }
}

pub(crate) fn urgent(name: &str, priority: Priority) -> Draft {
    Draft {
        priority,
        ..draft(name)
    }
}

pub(crate) async fn post(board: &Subject, draft: Draft) -> JobKey {
    let mut answers = board.post(&[draft], None).await.unwrap();
    answers.pop().unwrap().unwrap().key
}

pub(crate) async fn post_one(board: &Subject, name: &str) -> JobKey {
    post(board, draft(name)).await
}

pub(crate) async fn claim_one(board: &Subject, key: &JobKey, by: &Claimant) -> Result<Claimed> {
    board.claim_one(key, by, BY_HAND).await
}

pub(crate) async fn get(board: &Subject, shelf: Shelf, key: &JobKey) -> Option<Job> {
    let found = board
        .find(shelf, &[JobRef::Key(key.clone())])
        .await
        .unwrap();
    match found.into_iter().flatten().next() {
        Some(Entry::Job(job)) => Some(*job),
        Some(Entry::Malformed(record)) => panic!("{record:?}"),
        None => None,
    }
}

pub(crate) async fn on_board(board: &Subject, key: &JobKey) -> Job {
    get(board, Shelf::Board, key)
        .await
        .expect("it is on the board")
}

pub(crate) async fn list(board: &Subject, query: Query) -> Vec<Job> {
    let entries: Vec<Entry> = board.entries(query).try_collect().await.unwrap();
    entries
        .into_iter()
        .map(|entry| match entry {
            Entry::Job(job) => *job,
            Entry::Malformed(record) => panic!("{record:?}"),
        })
        .collect()
}

pub(crate) const WHOLE_BOARD: Query = Query {
    shelf: Shelf::Board,
    which: Which::All,
    order: Order::Rank,
    detail: Detail::Whole,
};

pub(crate) fn by_name(name: &str) -> Authority {
    Authority::Owner(owner(name))
}

pub(crate) fn release() -> Outcome {
    Outcome::Abandon(Aftermath::None)
}

/// Waits until every client can see that a claim has expired.
pub(crate) async fn until_free(board: &Subject, key: &JobKey) {
    let free = async {
        while on_board(board, key).await.holding.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), free)
        .await
        .expect("the claim lapses");
}
