//! `jobboard doctor`.

mod fix;
mod local;
mod look;
mod octavia;
mod report;

use std::{
    future::Future,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use tokio::time;

pub(super) use self::{
    look::{Look, Looking},
    report::{Diagnosis, Told},
};
use self::{
    look::{of_entries, of_moves},
    report::{Check, Unseen},
};
use super::parts::{unused, words::Words};
use crate::{
    board::{
        Board, BoardError, Health,
        examine::{Code, Examined, Group, Part},
    },
    config::Expiry,
    context::{Consent, Context},
    exit::{CommandError, chain},
    job::Conductor,
    output::{Column, Fit},
    suggest::Suggestion,
};

/// Timeout of a check that does not read every job.
const USUAL: Duration = Duration::from_secs(2);

/// Timeout of a check that does.
const WHOLE: Duration = Duration::from_secs(60);

/// Diagnose the board and suggest fixes
///
/// Checks the connection and your rights, the server's settings, stray and unreadable records, claims,
/// conductors, and this machine. Changes nothing without --fix. Each finding has a code, the evidence, the
/// impact, and the command that fixes it or shows more. If a check fails or is forbidden, the others still run,
/// and the report lists what could not be checked.
///
/// With -o tsv, each line has these fields: group, code, state or severity, summary, impact, command. `jobboard help troubleshooting` explains each code.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Check only these groups or codes, for example claims
    #[arg(long, value_name = "CHECK", value_delimiter = ',', conflicts_with = "skip",
          value_parser = Words { all: Chosen::names, read: Chosen::read })]
    only: Vec<Chosen>,

    /// Skip these groups or codes
    #[arg(long, value_name = "CHECK", value_delimiter = ',',
          value_parser = Words { all: Chosen::names, read: Chosen::read })]
    skip: Vec<Chosen>,

    /// List all checks, and check nothing
    #[arg(long)]
    list: bool,

    /// Show the commands that fix the findings, ask, and run them one by one
    ///
    /// Each command runs only if its finding still holds. Fixes outside jobboard, and those that need an
    /// operator's decision, are skipped: for example claims without expiry whose owner may be alive.
    #[arg(long, conflicts_with = "list")]
    fix: bool,

    /// With --fix: show the commands, and run nothing
    #[arg(long, requires = "fix")]
    dry_run: bool,

    /// With --fix: reason to record on each job
    #[arg(long, value_name = "TEXT", requires = "fix")]
    reason: Option<String>,

    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Clone, Copy)]
enum Chosen {
    Group(Group),
    Code(Code),
}

impl Chosen {
    fn names() -> Vec<&'static str> {
        let groups = Group::ALL.iter().map(|it| it.name());
        groups.chain(Code::ALL.iter().map(|it| it.name())).collect()
    }

    fn read(text: &str) -> Result<Self, String> {
        let group = text.parse().map(Self::Group);
        let chosen = group.or_else(|_| text.parse().map(Self::Code));
        chosen.map_err(|_| "`jobboard doctor --list` lists groups and codes".to_owned())
    }

    fn means(self, code: Code) -> bool {
        match self {
            Self::Group(group) => code.meaning().0 == group,
            Self::Code(one) => code == one,
        }
    }
}

impl DoctorArgs {
    fn wants(&self, code: Code) -> bool {
        let is_named = self.only.is_empty() || self.only.iter().any(|it| it.means(code));
        is_named && !self.skip.iter().any(|it| it.means(code))
    }

    fn groups(&self) -> Vec<Group> {
        let is_wanted = |group: &Group| {
            let mut of = Code::ALL.iter().filter(|it| it.meaning().0 == *group);
            of.any(|code| self.wants(*code))
        };
        Group::ALL.iter().copied().filter(is_wanted).collect()
    }
}

pub(crate) async fn run(ctx: &mut Context, args: DoctorArgs) -> anyhow::Result<()> {
    if args.list {
        return list(ctx, &args);
    }
    let board = ctx.board()?;
    let mut diagnosis = examine(ctx, &*board, &args, None).await?;
    if args.fix {
        let Some(fixed) = fix::fix(ctx, &args, &diagnosis).await? else {
            return Ok(());
        };
        if !fixed.steps.is_empty() {
            diagnosis = examine(ctx, &*board, &args, None).await?;
        }
        let result = fixed.result();
        diagnosis.fixed = Some(fixed.steps);
        ctx.out.report(&diagnosis)?;
        result?;
    } else {
        ctx.out.report(&diagnosis)?;
    }
    match diagnosis.sound {
        true => Ok(()),
        false => Err(CommandError::Command(7).into()),
    }
}

fn list(ctx: &mut Context, args: &DoctorArgs) -> anyhow::Result<()> {
    let columns = [
        Column::new("group", Fit::Shrinks),
        Column::new("code", Fit::Shrinks),
        Column::new("severity", Fit::Shrinks),
        Column::new("impact", Fit::Shrinks),
    ];
    let mut rows = ctx.out.rows(&columns);
    for code in Code::ALL.iter().filter(|code| args.wants(**code)) {
        rows.push(&Check::of(*code))?;
    }
    rows.finish()
}

/// The result of one check, its group, and its subject if it fails.
type Seen = (Group, &'static str, Result<Examined, String>);

/// The results of an earlier pass over all jobs.
pub(super) struct Taken<'a> {
    pub(super) look: &'a Look,
    pub(super) health: Health,
    /// `None`: unreadable, which is reported already.
    pub(super) conductors: Option<Vec<Conductor>>,
}

/// Runs the selected checks and reports them, reusing the results of the earlier pass.
pub(super) async fn examine(
    ctx: &Context,
    board: &dyn Board,
    args: &DoctorArgs,
    taken: Option<&Taken<'_>>,
) -> anyhow::Result<Diagnosis> {
    let trying = || ctx.trying("examine", "the board");
    let mut groups = args.groups();
    // A caller with its own pass over the jobs skips the databases.
    let is_of_octavia = ctx.config.board.value.is_of_octavia() && taken.is_none();
    groups.retain(|group| *group != Group::Octavia || is_of_octavia);
    let (health, round_trip) = health(board, taken).await.with_context(trying)?;
    let expiry = ctx.config.board.value.octavia_expiry();
    let mut seen = look(board, &groups, &health, taken, expiry).await;
    let of_board = seen.iter().filter(|(group, ..)| *group != Group::Local);
    let is_denied = of_board.clone().count() > 0 && of_board.clone().all(|(.., it)| it.is_err());
    let has_failed = of_board.clone().any(|(.., it)| it.is_err());
    // The connection may have been lost since.
    if has_failed
        && let Err(error) = board.health().await
        && error.is_retryable()
    {
        return Err(error).with_context(trying);
    }
    let health = match health {
        Err(error) if is_denied => return Err(error).with_context(trying),
        health => health.ok(),
    };
    if let Some(health) = &health {
        unused::note_if_unused(ctx, board, health);
    }
    if groups.contains(&Group::Local) {
        seen.push((Group::Local, "", Ok(local::examine(&ctx.config))));
    }
    if let Some(conf) = &ctx.config.board.value.octavia
        && groups.contains(&Group::Octavia)
    {
        seen.push((
            Group::Octavia,
            "",
            Ok(octavia::examine(ctx, board, conf).await),
        ));
    }
    let program = ctx.program();
    let mut diagnosis = Diagnosis {
        board: board.name().to_owned(),
        server: health.map(|health| health.server),
        round_trip: round_trip.map(|it| it.as_secs_f64()),
        sound: true,
        groups: Vec::new(),
        findings: Vec::new(),
        unseen: Vec::new(),
        fixed: None,
        program: program.clone(),
    };
    diagnosis.add(seen, args, &program);
    diagnosis.judge(&groups);
    Ok(diagnosis)
}

impl Diagnosis {
    fn add(&mut self, seen: Vec<Seen>, args: &DoctorArgs, program: &Suggestion) {
        for (group, what, seen) in seen {
            let (findings, unseen) = match seen {
                Ok(seen) => (seen.findings, told(seen.unseen)),
                Err(why) => (Vec::new(), vec![format!("{what}: {why}")]),
            };
            let findings = findings.into_iter().filter(|it| args.wants(it.code));
            let findings = findings.map(|finding| Told::new(finding, program));
            self.findings.extend(findings);
            let unseen = unseen.into_iter().map(|what| Unseen { group, what });
            self.unseen.extend(unseen);
        }
    }
}

/// Measures health and round-trip time, unless known; an unreachable board is an error, not a finding.
async fn health(
    board: &dyn Board,
    taken: Option<&Taken<'_>>,
) -> Result<(Result<Health, BoardError>, Option<Duration>), BoardError> {
    if let Some(taken) = taken {
        return Ok((Ok(taken.health.clone()), None));
    }
    // Includes the time to connect.
    let health = match board.health().await {
        Err(error) if error.is_retryable() => return Err(error),
        health => health,
    };
    let start = Instant::now();
    let round_trip = board.health().await.ok().map(|_| start.elapsed());
    Ok((health, round_trip))
}

async fn look(
    board: &dyn Board,
    groups: &[Group],
    health: &Result<Health, BoardError>,
    taken: Option<&Taken<'_>>,
    expiry: Option<Expiry>,
) -> Vec<Seen> {
    let wants = |group: Group| groups.contains(&group);
    let conductors = match taken {
        Some(taken) => taken.conductors.clone().ok_or_else(String::new),
        None => within(USUAL, board.conductors()).await,
    };
    let known = conductors.as_deref().ok();
    let part = async |group: Group, part: Part, most: Duration| match wants(group) {
        true => Some(within(most, board.examine(part)).await),
        false => None,
    };
    let mut of_jobs = vec![Group::Keys, Group::Claims, Group::Conductors];
    of_jobs.retain(|group| wants(*group));
    let take = |beside| within(WHOLE, Look::take(board, known, beside));
    let jobs = async {
        match health {
            _ if taken.is_some() || of_jobs.is_empty() => None,
            Ok(health) => Some(take(health.trashed_beside).await),
            Err(error) => Some(Err(chain(error))),
        }
    };
    let (connection, server, look) = tokio::join!(
        part(Group::Connection, Part::Connection, USUAL),
        part(Group::Server, Part::Server, USUAL),
        jobs,
    );
    let own = look.as_ref().and_then(|look| look.as_ref().ok());
    let looked = taken.map(|taken| taken.look).or(own);
    let highest = looked.and_then(|look| look.highest);
    let keys = part(Group::Keys, Part::Keys { highest }, WHOLE).await;
    let tells = wants(Group::Conductors) && (taken.is_none() || known.is_some());
    let of_conductors = tells.then(|| conductors.as_deref().map(of_entries).map_err(Clone::clone));
    let parts = [
        (Group::Connection, "rights", connection),
        (Group::Server, "configuration", server),
        (Group::Keys, "keys", keys),
        (Group::Conductors, "conductors", of_conductors),
    ];
    let told = |(group, what, it)| Some((group, what, it?));
    let mut seen: Vec<Seen> = parts.into_iter().filter_map(told).collect();
    if wants(Group::Claims) && taken.is_none() {
        let moves = within(USUAL, board.moves()).await;
        seen.push((Group::Claims, "moves", moves.map(|it| of_moves(&it))));
    }
    if let Some(look) = looked {
        let order = board.capabilities().peer_order;
        seen.push((Group::Keys, "", Ok(look.of_keys(order))));
        seen.push((Group::Claims, "", Ok(look.of_claims(expiry))));
        seen.extend(known.map(|it| (Group::Conductors, "", Ok(look.of_conductors(it)))));
    }
    if let Some(Err(why)) = look {
        let unseen = |group| (group, "jobs", Err(why.clone()));
        seen.extend(of_jobs.into_iter().map(unseen));
    }
    seen
}

fn told(unseen: Vec<(String, Option<BoardError>)>) -> Vec<String> {
    let unseen = unseen.into_iter().map(|(what, why)| match why {
        Some(why) => format!("{what}: {}", chain(&why)),
        None => what,
    });
    unseen.collect()
}

async fn within<T>(
    most: Duration,
    check: impl Future<Output = Result<T, BoardError>>,
) -> Result<T, String> {
    match time::timeout(most, check).await {
        Ok(seen) => seen.map_err(|error| chain(&error)),
        Err(_) => Err(format!("no answer within {}s", most.as_secs())),
    }
}
