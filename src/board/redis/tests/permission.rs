//! Users who lack some rights of a board, and users with exactly those rights.

use std::{collections::BTreeSet, fs};

use super::*;
use crate::{
    board::{
        examine::{Access, Part},
        own_entry::ConductorEntry,
        redis::{registry::RedisEntry, testing::redis_url},
    },
    job::{Conductor, Draft, Edit, Entry, Former, JobChange, MoveRecord, Revision},
    problem::Code,
};

/// One change for each way to run a script.
#[derive(Debug, Clone, Copy)]
enum Change {
    Post,
    PostClaimed,
    Claim,
    Renew,
    Settle(&'static str),
    Force(&'static str),
    /// Consumes a job that was moved to another board.
    Move,
    Restore,
    Purge,
    /// Posts a job that another board had.
    Load,
    Edit,
    /// Ends the delay of a job.
    Retry,
    Register,
}

const CHANGES: [Change; 17] = [
    Change::Post,
    Change::PostClaimed,
    Change::Claim,
    Change::Renew,
    Change::Settle("abandon"),
    Change::Settle("consume"),
    Change::Settle("trash"),
    Change::Force("abandon"),
    Change::Force("consume"),
    Change::Force("trash"),
    Change::Move,
    Change::Restore,
    Change::Purge,
    Change::Load,
    Change::Edit,
    Change::Retry,
    Change::Register,
];

/// Every command by which a script reads or changes the board.
const COMMANDS: [&str; 11] = [
    "hget", "hset", "hexists", "hdel", "get", "set", "del", "incrby", "pexpire", "time", "evalsha",
];

/// All rights for the namespace `taskflow`, as documented.
const RIGHTS: &str = "~taskflow:* &taskflow:events +hello +client|setname +info +evalsha +eval \
                      +hscan +hkeys +hmget +hlen +hget +hset +hexists +hdel +mget +get +set +del +incrby \
                      +time +exists +type +pttl +pexpire +xadd +xrevrange +scan +publish +subscribe +client|tracking +multi +exec";

struct PreparedJobs {
    free: JobKey,
    claimed: JobKey,
    trashed: JobKey,
    delayed: JobKey,
}

impl PreparedJobs {
    async fn set(board: &Subject) -> Self {
        let free = post_one(board, "free").await;
        let claimed = post_one(board, "claimed").await;
        let by = claimant("ada", Term::Lease(LONG));
        board.claim_one(&claimed, &by, ATTEMPT).await.unwrap();
        let trashed = post_claimed(board, "trashed").await;
        let trash = Decision::Trash(Aftermath::None);
        settled(board, &trashed, trash, by_name("ada")).await;
        let delayed = post_claimed(board, "delayed").await;
        let not_before = Utc::now() + LONG;
        let later = Decision::Abandon(Aftermath::Postponed { not_before });
        settled(board, &delayed, later, by_name("ada")).await;
        Self {
            free,
            claimed,
            trashed,
            delayed,
        }
    }

    async fn change(&self, board: &Subject, change: Change) -> Result<()> {
        let by = claimant("bob", Term::Lease(LONG));
        match change {
            Change::Post => all(board.post(&[draft("new")], None).await),
            Change::PostClaimed => all(board.post(&[draft("new")], Some(&by)).await),
            Change::Claim => {
                let rules = ClaimRules {
                    is_attempt: true,
                    ..BY_HAND
                };
                all(board.claim(from_ref(&self.free), &by, 1, rules).await)
            }
            Change::Renew => {
                let claim = Claim {
                    key: self.claimed.clone(),
                    owner: ada().owner,
                    fence: None,
                    term: LONG,
                };
                all(board.renew(&[claim]).await)
            }
            Change::Settle(verb) => {
                let settlement = self.settlement(verb, by_name("ada"));
                all(board.settle(&[settlement]).await)
            }
            Change::Force(verb) => {
                let seen = ExpectedState::Claimed {
                    owner: Some(ada().owner),
                    fence: None,
                };
                let settlement = self.settlement(verb, Authority::Force(seen));
                all(board.settle(&[settlement]).await)
            }
            Change::Move => {
                let owner = ada().owner;
                let moved = Settlement {
                    commit: Some(MoveRecord::commit(&owner, &self.claimed.text())),
                    ..self.settlement("consume", by_name("ada"))
                };
                all(board.settle(&[moved]).await)
            }
            Change::Restore => restore(board, &self.trashed).await,
            Change::Purge => purge(board, &self.trashed).await,
            Change::Load => {
                let former = Some(Box::new(Former::default()));
                let loaded = Draft {
                    former,
                    ..draft("loaded")
                };
                all(board.post(&[loaded], None).await)
            }
            Change::Edit => {
                let edit = Edit {
                    name: Some("renamed".to_owned()),
                    ..Edit::default()
                };
                on_board(board, &self.free, JobChange::Edit(edit)).await
            }
            Change::Retry => on_board(board, &self.delayed, JobChange::Restart).await,
            Change::Register => board.register(&Conductor::named("night")).await,
        }
    }

    fn settlement(&self, verb: &str, authority: Authority) -> Settlement {
        let failed = Aftermath::failed(Failure::reported("exit code 1", "c"));
        let decision = match verb {
            "abandon" => Decision::Abandon(failed),
            "consume" => Decision::Consume,
            _ => Decision::Trash(failed),
        };
        Settlement::of(self.claimed.clone(), decision, authority)
    }
}

async fn on_board(board: &Subject, key: &JobKey, change: JobChange) -> Result<()> {
    let restore = Revision {
        location: Location::Board,
        change,
        ..Revision::from_trash(key.clone(), None)
    };
    all(board.revise(&[restore]).await)
}

pub(super) fn let_in(server: &Server, rights: &[&str]) {
    let user = ["ACL", "SETUSER", "eve", "reset", "on", "nopass"];
    server.run::<()>(&[&user[..], rights].concat());
}

pub(super) fn all<T>(answers: Result<Vec<Result<T>>>) -> Result<()> {
    for answer in answers? {
        answer?;
    }
    Ok(())
}

/// All rights, before those that a test takes away.
const ALL: [&str; 3] = ["allkeys", "allchannels", "+@all"];

/// Tries a change as eve on a fresh board; a refusal must have no effect.
async fn is_refused(board: &Subject, server: &Server, change: Change, context: &str) -> bool {
    server.run::<()>(&["FLUSHALL"]);
    let jobs = PreparedJobs::set(board).await;
    let before = everything(server);
    let tried = jobs.change(&board_of(server, Some("eve")), change).await;
    let Err(error) = tried else {
        return false;
    };
    assert_matches!(error, BoardError::Denied { .. }, "{change:?} {context}");
    assert_eq!(everything(server), before, "{change:?} {context}");
    true
}

#[tokio::test]
async fn change_without_one_command_is_refused_completely() {
    need!((board, server) = open());
    let mut denied = [0; CHANGES.len()];
    for command in COMMANDS {
        let rule = format!("-{command}");
        let_in(&server, &[&ALL[..], &[&rule]].concat());
        // A script may not need this command.
        for (change, denied) in CHANGES.into_iter().zip(&mut denied) {
            *denied += u32::from(is_refused(&board, &server, change, &rule).await);
        }
    }
    // At least its reads, its changes, and the scripts themselves.
    assert!(denied.iter().all(|it| *it >= 3), "{denied:?}");
}

/// Connections use these commands, and scripts are called by them.
const FOR_CONNECTIONS_AND_SCRIPTS: [&str; 5] =
    ["hello", "client|setname", "info", "evalsha", "eval"];

/// Commands, and the keys of one kind that they change or read.
const COMMANDS_ON_KEYS: [(&[&str], &[&str]); 3] = [
    (
        &["hget", "hset", "hexists", "hdel"],
        &["listings", "trash", "moves"],
    ),
    (
        &["get", "set", "del", "pexpire"],
        &[
            "*.owned",
            "*.last_modified",
            "*.jobboard",
            "conductor.*",
            "conductor-seen.*",
            "told.*",
        ],
    ),
    (&["get", "set", "incrby"], &["sequence", "fence"]),
];

/// Lets eve do everything but this command on this kind of key.
fn deny_on(server: &Server, command: &str, kind: &str) {
    let kinds = COMMANDS_ON_KEYS.iter().flat_map(|(_, kinds)| *kinds);
    let others = kinds.filter(|it| **it != kind);
    let others: String = others.map(|it| format!(" ~taskflow:{it}")).collect();
    let (rule, elsewhere) = (format!("-{command}"), format!("(+{command}{others})"));
    let_in(server, &[&ALL[..], &[&rule, &elsewhere]].concat());
}

fn redis_of_eve(server: &Server) -> Redis {
    let url = redis_url(&format!("redis://eve@127.0.0.1:{}", server.port()));
    Redis::new(&url, None, OP_TIMEOUT, Limit::USUAL, HISTORY)
}

#[tokio::test]
async fn conductor_without_the_right_to_delete_one_kind_of_key_removes_nothing() {
    need!((_, server) = open());
    for kind in ["conductor.*", "conductor-seen.*", "told.*"] {
        server.run::<()>(&["FLUSHALL"]);
        let_in(&server, &ALL);
        let board = redis_of_eve(&server);
        let (client, night) = (Arc::clone(&board.client), Conductor::named("night"));
        let entry = RedisEntry::enter(client, board.keys.clone(), &night).await;
        let entry = entry.unwrap();
        let before = everything(&server);
        deny_on(&server, "del", kind);
        let refused = entry.remove().await;
        assert_matches!(refused, Err(BoardError::Denied { .. }), "{kind}");
        assert_eq!(everything(&server), before, "{kind}");
        let_in(&server, &ALL);
        entry.remove().await.unwrap();
        assert!(everything(&server).is_empty(), "{kind}");
    }
}

#[tokio::test]
async fn change_without_a_command_on_one_kind_of_key_is_refused_completely() {
    need!((board, server) = open());
    let (mut denied, mut registering) = (0, BTreeSet::new());
    for (commands, denied_kinds) in COMMANDS_ON_KEYS {
        for (command, kind) in commands
            .iter()
            .flat_map(|command| denied_kinds.iter().map(move |kind| (command, kind)))
        {
            deny_on(&server, command, kind);
            for change in CHANGES {
                let context = format!("without {command} on {kind}");
                if !is_refused(&board, &server, change, &context).await {
                    continue;
                }
                denied += 1;
                if matches!(change, Change::Register) {
                    registering.insert((*command, *kind));
                }
            }
        }
    }
    assert!(denied > 76, "{denied}");
    let of_conductors = ["conductor.*", "conductor-seen.*", "told.*"];
    for kind in of_conductors {
        let needed = ["get", "set", "pexpire"].map(|command| (command, kind));
        let is_denied = needed.iter().all(|it| registering.contains(it));
        assert!(is_denied, "{kind}: {registering:?}");
    }
    let mut kinds = registering.iter().map(|(_, kind)| kind);
    let is_bounded = kinds.all(|it| of_conductors.contains(it));
    assert!(is_bounded, "{registering:?}");
}

#[tokio::test]
async fn change_without_some_keys_is_refused_completely() {
    need!((board, server) = open());
    for kind in [
        "listings",
        "trash",
        "*.owned",
        "*.last_modified",
        "*.jobboard",
    ] {
        let keys = format!("~taskflow:{kind}");
        let_in(&server, &[&keys, "allchannels", "+@all"]);
        for change in CHANGES {
            let is_refused = is_refused(&board, &server, change, &keys).await;
            assert!(is_refused, "{change:?} with {keys}");
        }
    }
}

#[test]
fn every_script_command_is_in_the_list_of_denied_commands() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/board/redis/write/scripts");
    let mut used = BTreeSet::new();
    for file in fs::read_dir(directory).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for call in ["redis.call(\"", "redis.pcall(\""] {
            let calls = text.split(call).skip(1);
            used.extend(calls.map(|rest| rest.split('"').next().unwrap().to_lowercase()));
        }
    }
    // Event messages and history may get lost.
    assert!(used.remove("publish") && used.remove("xadd"));
    let denied: BTreeSet<_> = COMMANDS.map(str::to_owned).into();
    let unused: Vec<_> = denied.difference(&used).collect();
    assert_eq!(unused, ["evalsha"]);
    assert!(used.is_subset(&denied), "{used:?}");
}

#[tokio::test]
async fn denied_script_loading_changes_nothing() {
    need!((board, server) = open());
    let_in(&server, &[&ALL[..], &["-eval"]].concat());
    for change in CHANGES {
        server.run::<()>(&["FLUSHALL"]);
        let jobs = PreparedJobs::set(&board).await;
        let before = everything(&server);
        server.run::<()>(&["SCRIPT", "FLUSH"]);
        let limited = board_of(&server, Some("eve"));
        let refused = jobs.change(&limited, change).await;
        assert_matches!(refused, Err(BoardError::Denied { .. }), "{change:?}");
        assert_eq!(everything(&server), before, "{change:?}");
    }
}

#[tokio::test]
async fn changes_work_without_the_right_to_publish() {
    need!((board, server) = open());
    let_in(&server, &[&ALL[..], &["-publish"]].concat());
    for change in CHANGES {
        server.run::<()>(&["FLUSHALL"]);
        let jobs = PreparedJobs::set(&board).await;
        let limited = board_of(&server, Some("eve"));
        jobs.change(&limited, change).await.unwrap();
    }
}

#[tokio::test]
async fn examination_reports_each_kind_of_key_that_the_user_may_not_use() {
    const KINDS: &str = "listings trash sequence fence past paused moves *.owned *.last_modified \
                         *.jobboard conductor.* conductor-seen.* told.*";
    need!((_, server) = open());
    let board = board_of(&server, Some("eve"));
    for denied in [None].into_iter().chain(KINDS.split(' ').map(Some)) {
        let kinds = KINDS.split(' ').filter(|it| Some(*it) != denied);
        let keys: Vec<_> = kinds.map(|it| format!("~taskflow:{it}")).collect();
        let keys = keys.iter().map(String::as_str);
        let rights: Vec<_> = ["allchannels", "+@all"].into_iter().chain(keys).collect();
        let_in(&server, &rights);
        let part = Part::Connection(Access::Change);
        let examined = board.examine(part).await.unwrap();
        let mut problems = examined.problems.iter();
        let problem = problems.find(|it| it.code == Code::MissingRights);
        assert_eq!(problem.is_some(), denied.is_some(), "{denied:?}");
        if let (Some(problem), Some("told.*")) = (problem, denied) {
            let evidence = problem.evidence.iter().map(|it| it.value.as_str());
            let registering = ["GET", "SET", "PEXPIRE", "DEL"];
            let registering = registering.map(|it| format!("{it}: registering conductors"));
            let listing = ["MGET: listing conductors".to_owned()];
            let expected = [&listing[..], &registering].concat();
            assert_eq!(evidence.collect::<Vec<_>>(), expected);
        }
    }
}

#[tokio::test]
async fn examination_checks_each_documented_command() {
    need!((_, server) = open());
    let needed = redis_of_eve(&server).needed();
    let commands = RIGHTS.split(' ').filter_map(|it| it.strip_prefix('+'));
    for command in commands.filter(|it| !FOR_CONNECTIONS_AND_SCRIPTS.contains(it)) {
        let start = format!("{} ", command.replace('|', " "));
        let mut needed = needed.iter();
        assert!(
            needed.any(|it| format!("{} ", it.0.to_lowercase()).starts_with(&start)),
            "{command}"
        );
    }
}

#[tokio::test]
async fn documented_rights_are_sufficient() {
    need!((board, server) = open());
    let backends = include_str!("../../../../docs/backends.md");
    assert!(backends.contains(&format!("`{RIGHTS}`")), "{RIGHTS}");
    let_in(&server, &RIGHTS.split(' ').collect::<Vec<_>>());
    for change in CHANGES {
        server.run::<()>(&["FLUSHALL"]);
        server.run::<()>(&["SCRIPT", "FLUSH"]);
        let jobs = PreparedJobs::set(&board).await;
        let limited = board_of(&server, Some("eve"));
        jobs.change(&limited, change).await.unwrap();
        // A listing has to read this one twice.
        let odd = post_one(&board, "odd").await;
        let _: i64 = server.run(&["LPUSH", &format!("taskflow:{odd}.owned"), "x"]);
        let entries: Vec<_> = limited.entries(WHOLE_BOARD).try_collect().await.unwrap();
        let is_odd = |entry: &Entry| entry.key() == &odd && entry.holding().is_some();
        assert!(entries.iter().any(is_odd), "{change:?}");
        let wanted = [JobRef::Key(jobs.free)];
        limited.find(Location::Board, &wanted).await.unwrap();
        limited.health().await.unwrap();
        limited.conductors().await.unwrap();
        drop(limited.events().await.unwrap());
    }
}
