//! The contract of [`Board`], as tests for every backend.
//!
//! Each test is a function with a board of its own.

pub(crate) mod beginning;
pub(crate) mod claiming;
pub(crate) mod ended;
pub(crate) mod events;
pub(crate) mod histories;
pub(crate) mod listing;
mod model;
pub(crate) mod moving;
pub(crate) mod pausing;
pub(crate) mod posting;
pub(crate) mod registry;
pub(crate) mod retrying;
pub(crate) mod settling;
pub(crate) mod stored;
pub(crate) mod trash;

use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt;
use serde_json::json;
use uuid::Uuid;

pub(crate) use self::histories::WHO;
use super::{Board, BoardExt, ClaimRules, Detail, JobRef, Order, Query, Result, Which};
use crate::job::{
    Aftermath, Authority, Claimant, Claimed, Decision, Draft, Entry, Job, JobKey, Location, Owner,
    Priority, Term,
};

/// Creates a test for each function; `$open` opens a separate board, and `$again` opens the same one again.
///
/// `$open` returns the board and its [`stored::Storage`], which is dropped after the board and tears down the server.
/// It returns `None` on a machine without the backend.
macro_rules! keeps_its_promises {
    ($open:path, $again:expr) => {
        #[test]
        fn random_operations_agree_with_the_model() {
            $crate::board::conformance::histories::agree(24, $open, $again);
        }

        $crate::board::conformance::keeps_its_promises! { $open =>
            posting::posted_job_is_read_back_unchanged,
            posting::posts_are_numbered_in_order,
            posting::uuid_is_unique_on_the_board,
            posting::refused_draft_does_not_block_the_others,
            posting::same_uuid_in_the_trash_does_not_block_a_post,
            posting::a_job_can_be_posted_already_claimed,
            posting::twenty_posts_of_one_uuid_one_succeeds,
            posting::one_call_posts_1200_jobs,
            listing::each_job_is_listed_once,
            listing::jobs_are_listed_by_rank_or_by_number,
            listing::unclaimed_listing_excludes_claimed_jobs,
            listing::details_are_read_only_on_request,
            listing::job_is_found_by_uuid_prefix_number_and_key,
            listing::ambiguous_prefix_returns_candidates,
            listing::board_and_trash_are_listed_separately,
            listing::listing_is_unaffected_by_concurrent_posts_and_ends,
            claiming::a_claimed_job_cannot_be_claimed_again,
            claiming::claiming_an_own_job_again_is_refused_without_effect,
            claiming::twenty_claimants_one_winner,
            claiming::first_free_jobs_of_several_are_claimed,
            claiming::unreadable_job_takes_no_place_of_another,
            claiming::finished_job_cannot_be_claimed,
            claiming::fences_grow,
            claiming::timed_claim_expires,
            claiming::claim_without_a_term_does_not_expire,
            claiming::manual_claims_count_no_attempt,
            claiming::claim_made_ahead_counts_an_attempt_once_it_has_a_result,
            claiming::job_released_ahead_of_its_turn_starts_immediately_when_claimed_next,
            claiming::delayed_job_is_claimed_only_by_reference,
            claiming::renewed_claim_outlives_its_first_term,
            claiming::only_the_holder_of_a_claim_can_renew_it,
            claiming::renewal_does_not_revive_an_expired_claim,
            claiming::closed_board_keeps_other_claims_and_connects_again,
            claiming::manual_claim_can_be_given_an_expiry,
            claiming::lease_has_the_term_that_the_board_grants,
            settling::only_the_owner_can_settle_by_name,
            settling::unclaimed_job_cannot_be_settled_by_name,
            settling::same_name_gets_a_new_fence_for_each_claim,
            settling::an_abandoned_job_can_be_claimed_again,
            settling::consumed_job_is_removed,
            settling::twenty_consumers_one_succeeds,
            settling::each_settlement_of_a_batch_has_its_own_result,
            settling::forced_settlement_applies_to_the_observed_state,
            settling::forced_settlement_is_refused_after_the_claim_changed,
            settling::unclaimed_job_can_be_settled_by_force,
            settling::last_three_failures_are_stored,
            settling::interrupted_and_postponed_attempts_do_not_count,
            settling::trashing_an_untried_job_counts_no_attempt,
            settling::holder_of_an_expired_claim_cannot_settle,
            settling::delayed_job_stays_delayed_when_released,
            trash::trashed_job_keeps_its_data,
            trash::trashing_replaces_the_same_uuid_and_reports_it,
            trash::restored_job_has_no_attempts,
            trash::same_uuid_on_the_board_blocks_a_restore,
            trash::purged_job_is_deleted,
            trash::only_trashed_jobs_can_be_restored_or_purged,
            retrying::delayed_job_can_be_retried_immediately,
            retrying::only_unclaimed_delayed_jobs_can_be_retried,
            retrying::restored_job_can_keep_its_attempts,
            retrying::twenty_retries_of_a_job_one_succeeds,
            retrying::edited_job_keeps_its_delay,
            retrying::edit_in_the_trash_does_not_change_the_same_uuid_on_the_board,
            retrying::refused_edit_changes_nothing,
            retrying::concurrent_edits_leave_one_of_them_whole,
            moving::copied_job_is_posted_claimed_and_counts_no_attempt,
            moving::copied_job_keeps_its_number_or_gets_the_next,
            moving::copied_job_is_refused_if_its_uuid_is_in_the_trash,
            moving::jobs_with_and_without_their_state_are_posted_together,
            moving::move_record_is_written_together_with_the_end_of_the_job,
            moving::board_without_moved_jobs_has_no_records,
            ended::consumed_job_stays_in_the_history_unchanged,
            ended::history_distinguishes_the_outcomes,
            ended::history_lists_the_latest_end_first,
            ended::abandoned_job_is_not_in_the_history,
            ended::history_of_many_ends_is_complete_without_duplicates,
            pausing::pause_is_stored_until_it_is_ended,
            pausing::pausing_and_resuming_emit_events,
            pausing::paused_job_is_no_candidate_until_its_pause_ends,
            pausing::too_many_pauses_pause_all_jobs_until_one_is_ended,
            beginning::new_listener_is_shown_unclaimed_jobs,
            beginning::shown_job_has_events_even_if_filtered_out,
            events::each_verb_emits_its_event_in_order,
            events::forced_settlement_emits_the_event_of_its_outcome,
            events::event_states_its_actor_and_reason,
            events::expired_claim_is_reported_at_its_deadline,
            events::renewal_emits_no_event_but_an_extension_does,
            events::short_lived_job_has_complete_events,
            events::event_identifies_its_job_and_claim,
            events::events_lead_to_the_same_state_as_a_listing,
            registry::conductors_register_and_leave,
            registry::status_of_a_conductor_is_stored_with_its_name,
            registry::name_of_a_running_conductor_is_taken,
            registry::publishing_without_a_registration_does_nothing,
            registry::too_many_conductors_are_counted,
            registry::health_counts_jobs,
        }

        $crate::board::conformance::keeps_its_promises! { $open, storage =>
            stored::lookup_shows_each_change_that_a_client_knew_of,
            stored::malformed_record_stays_until_it_is_forced_out,
            stored::refused_claim_of_a_record_that_is_no_posting_emits_no_event,
            stored::reads_and_examinations_change_nothing,
            stored::unreadable_sidecar_refuses_only_claims_that_need_it,
            stored::unreadable_pause_is_listed_and_can_be_ended,
            stored::unreadable_move_records_are_skipped,
            registry::publishing_after_another_took_the_name_does_nothing,
            registry::killed_conductor_is_listed_while_its_claims_may_last,
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
    ($open:path, storage => $($topic:ident::$promise:ident,)*) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let Some((board, storage)) = $open() else {
                    return;
                };
                $crate::board::conformance::$topic::$promise(&board, &storage).await;
                board.close().await;
            }
        )*
    };
}
pub(crate) use keeps_its_promises;

pub(crate) type Subject = Arc<dyn Board>;

pub(crate) const BY_HAND: ClaimRules = ClaimRules::BY_HAND;

/// Claims as conductors do.
pub(crate) const ATTEMPT: ClaimRules = ClaimRules {
    is_attempt: true,
    starting: usize::MAX,
    respects_delay: true,
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

fn chosen(name: &str) -> Draft {
    Draft {
        chosen: true,
        ..draft(name)
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

pub(crate) async fn post_claimed(board: &Subject, name: &str) -> JobKey {
    let key = post_one(board, name).await;
    claim_one(board, &key, &ada()).await.unwrap();
    key
}

pub(crate) async fn claim_one(board: &Subject, key: &JobKey, by: &Claimant) -> Result<Claimed> {
    board.claim_one(key, by, BY_HAND).await
}

pub(crate) async fn get(board: &Subject, location: Location, key: &JobKey) -> Option<Job> {
    let found = board
        .find(location, &[JobRef::Key(key.clone())])
        .await
        .unwrap();
    match found.into_iter().flatten().next() {
        Some(Entry::Job(job)) => Some(*job),
        Some(Entry::Malformed(record)) => panic!("{record:?}"),
        None => None,
    }
}

pub(crate) async fn on_board(board: &Subject, key: &JobKey) -> Job {
    get(board, Location::Board, key)
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
    location: Location::Board,
    which: Which::All,
    order: Order::Rank,
    detail: Detail::Whole,
};

pub(crate) const IN_TRASH: Query = Query {
    location: Location::Trash,
    ..WHOLE_BOARD
};

pub(crate) const fn in_order(order: Order) -> Query {
    Query {
        order,
        ..WHOLE_BOARD
    }
}

pub(crate) async fn names(board: &Subject, query: Query) -> Vec<String> {
    let jobs = list(board, query).await.into_iter();
    jobs.map(|job| job.name).collect()
}

pub(crate) fn by_name(name: &str) -> Authority {
    Authority::Owner(owner(name))
}

pub(crate) fn release() -> Decision {
    Decision::Abandon(Aftermath::None)
}

async fn trash_as_ada(board: &Subject, key: &JobKey) {
    settled(board, key, Decision::Trash(Aftermath::None), by_name("ada")).await;
}

pub(crate) async fn settled(board: &Subject, key: &JobKey, decision: Decision, by: Authority) {
    board.settle_one(key, decision, by).await.unwrap();
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
        .expect("the claim expires");
}

/// Returns two jobs with the same uuid.
fn two_of_one_uuid() -> [Draft; 2] {
    let first = chosen("first");
    let second = Draft {
        name: "second".into(),
        ..first.clone()
    };
    [first, second]
}
