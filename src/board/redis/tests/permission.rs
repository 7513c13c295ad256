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

pub(super) struct PreparedJobs {
    pub(super) free: JobKey,
    pub(super) claimed: JobKey,
    trashed: JobKey,
    delayed: JobKey,
}

impl PreparedJobs {
    pub(super) async fn set(board: &Subject) -> Self {
        let free = post_one(board, "free").await;
        let claimed = post_one(board, "claimed").await;
        let by = claimant("ada", Term::Kept(LONG));
        board.claim_one(&claimed, &by, ATTEMPT).await.unwrap();
        let trashed = post_claimed(board, "trashed").await;
        settled(
            board,
            &trashed,
            Decision::Trash(Aftermath::None),
            by_name("ada"),
        )
        .await;
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
        let by = claimant("bob", Term::Kept(LONG));
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
                let settlement = self.settlement(verb, Authority::Override(seen));
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
        let failure = Failure {
            exit_code: Some(1),
            signal: None,
            reason: "exit code 1".to_owned(),
            stdout: String::new(),
            stderr: String::new(),
            conductor: "c".to_owned(),
            time: Utc::now(),
        };
        Settlement {
            key: self.claimed.clone(),
            decision: match verb {
                "abandon" => Decision::Abandon(Aftermath::Failed {
                    failure,
                    not_before: None,
                }),
                "consume" => Decision::Consume,
                _ => Decision::Trash(Aftermath::failed(failure)),
            },
            authority,
            job: None,
            audit: None,
            commit: None,
        }
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

fn let_in(server: &Server, rights: &[&str]) {
    let user = ["ACL", "SETUSER", "eve", "reset", "on", "nopass"];
    server.run::<()>(&[&user[..], rights].concat());
}

pub(super) fn all<T>(answers: Result<Vec<Result<T>>>) -> Result<()> {
    for answer in answers? {
        answer?;
    }
    Ok(())
}

#[tokio::test]
async fn change_without_one_command_is_refused_completely() {
    need!((board, server) = open());
    for change in CHANGES {
        let mut denied = 0;
        for command in COMMANDS {
            server.run::<()>(&["FLUSHALL"]);
            let jobs = PreparedJobs::set(&board).await;
            let rule = format!("-{command}");
            let_in(&server, &["allkeys", "allchannels", "+@all", &rule]);
            let before = everything(&server);
            let limited = board_of(&server, Some("eve"));
            match jobs.change(&limited, change).await {
                // The script does not need this command.
                Ok(()) => continue,
                Err(error) => assert!(
                    matches!(error, BoardError::Denied { .. }),
                    "{change:?} without {command}: {error:?}"
                ),
            }
            denied += 1;
            assert_eq!(everything(&server), before, "{change:?} without {command}");
        }
        // At least its reads, its changes, and the scripts themselves.
        assert!(denied >= 3, "{change:?}: {denied}");
    }
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
    let_in(
        server,
        &["allkeys", "allchannels", "+@all", &rule, &elsewhere],
    );
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
        let_in(&server, &["allkeys", "allchannels", "+@all"]);
        let board = redis_of_eve(&server);
        let (client, night) = (Arc::clone(&board.client), Conductor::named("night"));
        let entry = RedisEntry::enter(client, board.keys.clone(), &night).await;
        let entry = entry.unwrap();
        let before = everything(&server);
        deny_on(&server, "del", kind);
        let refused = entry.remove().await;
        assert!(
            matches!(refused, Err(BoardError::Denied { .. })),
            "{kind}: {refused:?}"
        );
        assert_eq!(everything(&server), before, "{kind}");
        let_in(&server, &["allkeys", "allchannels", "+@all"]);
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
                server.run::<()>(&["FLUSHALL"]);
                let jobs = PreparedJobs::set(&board).await;
                let before = everything(&server);
                let limited = board_of(&server, Some("eve"));
                let Err(error) = jobs.change(&limited, change).await else {
                    continue;
                };
                denied += 1;
                if matches!(change, Change::Register) {
                    registering.insert((*command, *kind));
                }
                let context = format!("{change:?} without {command} on {kind}: {error:?}");
                assert!(matches!(error, BoardError::Denied { .. }), "{context}");
                assert_eq!(everything(&server), before, "{context}");
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
    assert!(
        kinds.all(|it| of_conductors.contains(it)),
        "{registering:?}"
    );
}

#[tokio::test]
async fn change_without_some_keys_is_refused_completely() {
    need!((board, server) = open());
    for pattern in [
        "taskflow:listings",
        "taskflow:trash",
        "taskflow:*.owned",
        "taskflow:*.last_modified",
        "taskflow:*.jobboard",
    ] {
        for change in CHANGES {
            server.run::<()>(&["FLUSHALL"]);
            let jobs = PreparedJobs::set(&board).await;
            let keys = format!("~{pattern}");
            let_in(&server, &[&keys, "allchannels", "+@all"]);
            let before = everything(&server);
            let limited = board_of(&server, Some("eve"));
            let refused = jobs.change(&limited, change).await;
            assert!(
                matches!(refused, Err(BoardError::Denied { .. })),
                "{change:?} with {pattern}: {refused:?}"
            );
            assert_eq!(everything(&server), before, "{change:?} with {pattern}");
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
    let_in(&server, &["allkeys", "allchannels", "+@all", "-eval"]);
    for change in CHANGES {
        server.run::<()>(&["FLUSHALL"]);
        let jobs = PreparedJobs::set(&board).await;
        let before = everything(&server);
        server.run::<()>(&["SCRIPT", "FLUSH"]);
        let limited = board_of(&server, Some("eve"));
        let refused = jobs.change(&limited, change).await;
        assert!(
            matches!(refused, Err(BoardError::Denied { .. })),
            "{change:?}: {refused:?}"
        );
        assert_eq!(everything(&server), before, "{change:?}");
    }
}

#[tokio::test]
async fn changes_work_without_the_right_to_publish() {
    need!((board, server) = open());
    let_in(&server, &["allkeys", "allchannels", "+@all", "-publish"]);
    for change in CHANGES {
        server.run::<()>(&["FLUSHALL"]);
        let jobs = PreparedJobs::set(&board).await;
        let limited = board_of(&server, Some("eve"));
        jobs.change(&limited, change).await.unwrap();
    }
}

#[tokio::test]
async fn examination_reports_each_kind_of_key_that_the_user_may_not_use() {
    const KINDS: [&str; 13] = [
        "listings",
        "trash",
        "sequence",
        "fence",
        "past",
        "paused",
        "moves",
        "*.owned",
        "*.last_modified",
        "*.jobboard",
        "conductor.*",
        "conductor-seen.*",
        "told.*",
    ];
    need!((_, server) = open());
    let board = board_of(&server, Some("eve"));
    for denied in [None].into_iter().chain(KINDS.map(Some)) {
        let kinds = KINDS.iter().filter(|it| Some(**it) != denied);
        let keys: Vec<_> = kinds.map(|it| format!("~taskflow:{it}")).collect();
        let keys = keys.iter().map(String::as_str);
        let rights: Vec<_> = ["allchannels", "+@all"].into_iter().chain(keys).collect();
        let_in(&server, &rights);
        let examined = board
            .examine(Part::Connection(Access::Change))
            .await
            .unwrap();
        let mut problems = examined.problems.iter();
        let problem = problems.find(|it| it.code == Code::MissingRights);
        assert_eq!(problem.is_some(), denied.is_some(), "{denied:?}");
        if let (Some(problem), Some("told.*")) = (problem, denied) {
            let evidence = problem.evidence.iter().map(|it| it.value.as_str());
            assert_eq!(
                evidence.collect::<Vec<_>>(),
                [
                    "MGET: listing conductors",
                    "GET: registering conductors",
                    "SET: registering conductors",
                    "PEXPIRE: registering conductors",
                    "DEL: registering conductors",
                ]
            );
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
