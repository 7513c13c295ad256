//! The whole diagnosis of a board: connection, server, keys, jobs, conductors and this machine.

use std::{
    fs,
    future::Future,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chrono::{SubsecRound, Utc};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use tokio::time;

use super::{Snapshot, Survey, octavia, survey::WHOLE};
use crate::{
    board::{
        Board, BoardError, Health,
        examine::{Access, Examined, Part},
    },
    config::Config,
    exit::{Trying, chain},
    problem::{Code, Fix, Group, Problem, sort},
    suggest::Suggestion,
};

const USUAL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Checkup {
    pub(crate) health: Option<Health>,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) unseen: Vec<(Group, String)>,
    /// `None` if no selected group needs the jobs, or they could not be read.
    pub(crate) survey: Option<Survey>,
    pub(crate) unread: Option<BoardError>,
}

impl Checkup {
    fn add(&mut self, group: Group, what: &str, examined: Result<Examined, String>) {
        match examined {
            Ok(examined) => {
                self.unseen
                    .extend(examined.gaps().map(|what| (group, what)));
                self.problems.extend(examined.problems);
            }
            Err(why) => self.unseen.push((group, format!("{what}: {why}"))),
        }
    }
}

const OF_JOBS: [Group; 3] = [Group::Keys, Group::Jobs, Group::Conductors];

/// Examines these groups, with a survey taken before if there is one.
///
/// The search for stray keys reads the names of all keys. A check that fails or is forbidden is a gap, unless the
/// board is unreachable.
pub(crate) async fn examine(
    config: &Config,
    board: &dyn Board,
    groups: &[Group],
    surveyed: Option<Survey>,
    finds_strays: bool,
) -> anyhow::Result<Checkup> {
    let trying = || trying("examine", board);
    let (health, round_trip) = health(board).await.with_context(trying)?;
    let (parts, survey) = look(config, board, groups, surveyed, finds_strays).await;
    let seen = parts.iter().map(|(.., it)| it.is_ok());
    let seen: Vec<_> = seen.chain(survey.as_ref().map(Result::is_ok)).collect();
    let (is_seen, is_denied) = (seen.contains(&true), seen.contains(&false));
    // The connection may have been lost since.
    if is_denied
        && let Err(error) = board.health().await
        && error.is_retryable()
    {
        return Err(error).with_context(trying);
    }
    let mut checkup = Checkup {
        round_trip,
        ..Checkup::default()
    };
    match health {
        Ok(health) => checkup.health = Some(health),
        Err(error) if error.is_not_opened() || (is_denied && !is_seen) => {
            return Err(error).with_context(trying);
        }
        Err(error) => {
            let what = format!("the board's totals: {}", chain(&error));
            checkup.unseen.push((Group::Jobs, what));
        }
    }
    for (group, what, examined) in parts {
        checkup.add(group, what, examined);
    }
    match survey {
        Some(Ok(survey)) => checkup.surveyed(survey),
        Some(Err(error)) => {
            let wanted = OF_JOBS.into_iter().filter(|group| groups.contains(group));
            let gaps = wanted.map(|group| (group, format!("jobs: {}", chain(&error))));
            checkup.unseen.extend(gaps);
            checkup.unread = Some(error);
        }
        None => {}
    }
    if groups.contains(&Group::Local) {
        checkup.add(Group::Local, "", Ok(examine_machine(config)));
    }
    if let Some(conf) = &config.board.value.octavia
        && groups.contains(&Group::Octavia)
    {
        let examined = octavia::examine(config, board, conf).await;
        checkup.add(Group::Octavia, "", Ok(examined));
    }
    let problems = &mut checkup.problems;
    problems.retain(|it| groups.contains(&it.code.group()));
    sort(problems);
    Ok(checkup)
}

type CheckedParts = Vec<(Group, &'static str, Result<Examined, String>)>;

async fn look(
    config: &Config,
    board: &dyn Board,
    groups: &[Group],
    surveyed: Option<Survey>,
    finds_strays: bool,
) -> (CheckedParts, Option<Result<Survey, BoardError>>) {
    let wants = |group: Group| groups.contains(&group);
    let take = async {
        let snapshot = snapshot(config, board).await?;
        Survey::take(board, snapshot).await
    };
    let jobs = async {
        match surveyed {
            Some(survey) => Some(Ok(survey)),
            None if OF_JOBS.into_iter().any(wants) => {
                let late = |_| {
                    let why = format!("no answer within {}s", WHOLE.as_secs());
                    Err(BoardError::failed("read", board.url(), why))
                };
                Some(time::timeout(WHOLE, take).await.unwrap_or_else(late))
            }
            None => None,
        }
    };
    let part = async |group: Group, part: Part, most: Duration| match wants(group) {
        true => Some(within(most, board.examine(part)).await),
        false => None,
    };
    let access = match config.read_only.value {
        true => Access::Read,
        false => Access::Change,
    };
    let (connection, server, survey) = tokio::join!(
        part(Group::Connection, Part::Connection(access), USUAL_TIMEOUT),
        part(Group::Server, Part::Server, USUAL_TIMEOUT),
        jobs,
    );
    // A survey has examined the keys.
    let is_surveyed = survey.as_ref().is_some_and(Result::is_ok);
    let keys = match is_surveyed {
        true => None,
        false => part(Group::Keys, Part::Keys { highest: None }, USUAL_TIMEOUT).await,
    };
    let strays = match finds_strays {
        true => part(Group::Keys, Part::Strays, WHOLE).await,
        false => None,
    };
    let parts = [
        (Group::Connection, "rights", connection),
        (Group::Server, "configuration", server),
        (Group::Keys, "keys", keys),
        (Group::Keys, "keys", strays),
    ];
    let parts = parts.into_iter();
    let parts = parts.filter_map(|(group, what, it)| Some((group, what, it?)));
    (parts.collect(), survey)
}

async fn snapshot(config: &Config, board: &dyn Board) -> Result<Snapshot, BoardError> {
    let now = Utc::now().trunc_subsecs(6);
    Snapshot::read(board, config.board.value.octavia_expiry(), now).await
}

pub(crate) async fn read_snapshot(config: &Config, board: &dyn Board) -> anyhow::Result<Snapshot> {
    let snapshot = snapshot(config, board).await;
    snapshot.with_context(|| trying("read", board))
}

fn trying(verb: &'static str, board: &dyn Board) -> Trying {
    Trying::new(verb, "the board", Some(board.url().to_owned()))
}

impl Checkup {
    fn surveyed(&mut self, survey: Survey) {
        self.problems.extend(survey.problems());
        let gaps = survey.snapshot.unseen_keys.iter();
        self.unseen
            .extend(gaps.map(|what| (Group::Keys, what.clone())));
        let by_siblings = self.health.as_ref().map_or(0, |it| it.trashed_by_siblings);
        if by_siblings > 0 {
            let mut problem = Problem::new(Code::SharedTrash, "jobs of other boards in the trash");
            problem.jobs = by_siblings;
            let look = Fix::look(Suggestion::of("list --trash --shared"));
            self.problems.push(problem.fixed_by(look));
        }
        if survey.denied > 0 {
            let what = format!("records without read permission: {}", survey.denied);
            self.unseen.push((Group::Jobs, what));
        }
        let affected = match survey.snapshot.sees_conductors {
            true => &[Group::Jobs][..],
            false => &[Group::Jobs, Group::Conductors],
        };
        for what in &survey.snapshot.unseen {
            let unseen = affected.iter().map(|group| (*group, what.clone()));
            self.unseen.extend(unseen);
        }
        self.survey = Some(survey);
    }
}

/// Measures health and round-trip time; a board that is unreachable or not opened is an error, not a problem.
async fn health(
    board: &dyn Board,
) -> Result<(Result<Health, BoardError>, Option<Duration>), BoardError> {
    // Includes the time to connect.
    let health = match board.health().await {
        // Nothing else can be read either.
        Err(error) if error.is_retryable() || matches!(error, BoardError::NotOpened { .. }) => {
            return Err(error);
        }
        health => health,
    };
    let start = Instant::now();
    let round_trip = board.health().await.ok().map(|_| start.elapsed());
    Ok((health, round_trip))
}

async fn within<T>(
    most: Duration,
    check: impl Future<Output = Result<T, BoardError>>,
) -> Result<T, String> {
    match time::timeout(most, check).await {
        Ok(checked) => checked.map_err(|error| chain(&error)),
        Err(_) => Err(format!("no answer within {}s", most.as_secs())),
    }
}

/// Diagnoses this machine: permissions of trusted files, and missing kernel features.
fn examine_machine(config: &Config) -> Examined {
    let mut examined = Examined::default();
    let configs = config.files();
    let configs = configs.map(|it| (it, 0o022, Code::WritableConfig, "written", "go-w"));
    let password = config.password_file();
    let password = password.map(|it| (it, 0o077, Code::ReadablePassword, "read", "600"));
    for (path, forbidden, code, what, mode) in configs.chain(password) {
        let Ok(found) = fs::metadata(path).map(|found| found.mode() & 0o7777) else {
            continue;
        };
        // A shell's pipe is read once, and only by its own reader.
        if found & forbidden != 0 && path.is_file() {
            let name = path.display();
            let summary = format!("{name} can be {what} by other users (mode {found:o})");
            let command = Suggestion::of("chmod").with([mode, &path.to_string_lossy()]);
            examined.add(Problem::new(code, summary).fixed_by(Fix::elsewhere(command)));
        }
    }
    let lacking = [
        (
            "pidfd",
            pidfd_open(getpid(), PidfdFlags::empty()).is_err(),
            "uname -r",
        ),
        (
            "/proc",
            !Path::new("/proc/self/exe").exists(),
            "mount -t proc proc /proc",
        ),
    ];
    for (what, _, remedy) in lacking.into_iter().filter(|(_, lacks, _)| *lacks) {
        let summary = format!("the kernel or this container lacks {what}");
        let remedy = Fix::elsewhere(Suggestion::of(remedy));
        examined.add(Problem::new(Code::UnsupportedKernel, summary).fixed_by(remedy));
    }
    examined
}
