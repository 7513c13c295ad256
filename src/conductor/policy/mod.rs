//! The execution policy: the programs and variables that a job may use.
//!
//! Posters can ask for anything; the conductor's operator decides here.

mod board;
mod forbidden;
mod glob;
mod handlers;
mod request;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use self::request::{CommandRequest, JobLimits};
pub(crate) use self::{
    board::check_board,
    forbidden::{Forbidden, any_program, excerpt},
    glob::{Glob, InvalidPattern},
    handlers::{Directory, Handlers},
    request::{MEMBERS, check_posted},
};
use crate::{
    job::{Job, PublishedCommand, PublishedPolicy},
    process::command::{CommandSpec, Input, NotRun, details_text, find},
    retry::RetryPolicy,
};

/// As in a `PublishedPolicy`, `None` allows any program or variable, and an empty list allows none.
#[derive(Debug, Clone)]
pub(crate) struct ExecutionPolicy {
    /// Patterns for absolute paths.
    pub(crate) programs: Option<Vec<Glob>>,
    /// Patterns for names.
    pub(crate) variables: Option<Vec<Glob>>,
    pub(crate) handlers: Option<Handlers>,
    pub(crate) search: Vec<PathBuf>,
    /// `None`: another conductor's, perhaps on another machine with invisible programs.
    pub(crate) found: Option<ProgramCache>,
}

/// A cache of program paths: as in a shell, each is searched once.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProgramCache(Arc<Mutex<HashMap<OsString, PathBuf>>>);

impl ProgramCache {
    /// The most cached programs; postings may name any number.
    const MAX_PROGRAMS: usize = 64;

    fn find(&self, name: &OsStr, search: &[PathBuf]) -> Result<PathBuf, NotRun> {
        let mut known = self.0.lock();
        if let Some(path) = known.get(name)
            && find(path.as_os_str(), &[]).is_ok()
        {
            return Ok(path.clone());
        }
        let found = find(name, search)?;
        if known.len() >= Self::MAX_PROGRAMS {
            known.clear();
        }
        known.insert(name.to_owned(), found.clone());
        Ok(found)
    }
}

#[derive(Debug)]
pub(crate) struct ExecutionPlan {
    /// `Err`: the policy allows it, but it cannot run.
    pub(crate) command: Result<CommandSpec, NotRun>,
    pub(crate) limits: JobLimits,
}

impl ExecutionPolicy {
    pub(crate) fn published(&self, retry: &RetryPolicy) -> PublishedPolicy {
        let texts = |globs: &Vec<Glob>| globs.iter().map(Glob::to_string).collect();
        let (max_attempts, max_attempts_max) = retry.limits();
        let mut takes = PublishedPolicy {
            programs: self.programs.as_ref().map(texts),
            variables: self.variables.as_ref().map(texts),
            max_attempts,
            max_attempts_max,
            ..PublishedPolicy::default()
        };
        if self.programs.is_some() && !self.runs_no_command() {
            let search = self.search.iter();
            takes.search = search.map(|it| it.to_string_lossy().into()).collect();
        }
        match &self.handlers {
            Some(Handlers::Directory(handlers)) => {
                let (names, more) = handlers.published();
                (takes.handlers, takes.more_handlers) = (Some(names), more);
            }
            Some(Handlers::ForEach { program, .. }) => {
                takes.command = Some(PublishedCommand {
                    program: program.to_string_lossy().into_owned(),
                    problem: why_not(program),
                });
            }
            Some(Handlers::Published(..)) | None => {}
        }
        takes
    }

    pub(crate) fn admit(&self, job: &Job) -> Result<(), Forbidden> {
        match &self.programs {
            // The path of the program does not matter yet, and the search is slow.
            None if self.handlers.is_none() => self.request(job).map(drop),
            _ => self.plan(job).map(drop),
        }
    }

    /// A handler overrides a command: the operator chose it, not the poster.
    pub(crate) fn plan(&self, job: &Job) -> Result<ExecutionPlan, Forbidden> {
        if let Some(handler) = self.handler(job)? {
            let limits = job.details.as_ref().map(JobLimits::read).transpose()?;
            return Ok(ExecutionPlan {
                command: Ok(handler),
                limits: limits.unwrap_or_default(),
            });
        }
        let request = self.request(job)?;
        let found = self.program(&request)?;
        let limits = request.limits;
        let env = request.env.into_iter();
        let env = env.map(|(name, value)| (name.into(), Some(value.into())));
        let stdin = request.stdin.map(String::into_bytes);
        let argv = request.command.into_iter().map(OsString::from);
        let command = found.map(|program| CommandSpec {
            env: env.collect(),
            cwd: request.cwd,
            input: stdin.map_or(Input::Nothing, Input::Text),
            ..CommandSpec::quiet(program, argv.collect())
        });
        Ok(ExecutionPlan { command, limits })
    }

    fn runs_no_command(&self) -> bool {
        self.programs.as_ref().is_some_and(Vec::is_empty)
    }

    fn request(&self, job: &Job) -> Result<CommandRequest, Forbidden> {
        let no_command = Forbidden::NoCommand {
            has_handlers: self.handlers.is_some(),
        };
        let details = job.details.as_ref();
        if self.runs_no_command() {
            let has_command = details.is_some_and(|details| details.get("command").is_some());
            return Err(match has_command {
                true => Forbidden::NotHandled,
                false => no_command,
            });
        }
        let Some(request) = details.map(CommandRequest::read).transpose()?.flatten() else {
            return Err(no_command);
        };
        for (name, _) in &request.env {
            self.check_variable(name)?;
        }
        Ok(request)
    }

    fn program(&self, request: &CommandRequest) -> Result<Result<PathBuf, NotRun>, Forbidden> {
        let name = request.program();
        let Some(found) = &self.found else {
            return self.elsewhere(name).map(Ok);
        };
        let found = found.find(OsStr::new(name), &self.search);
        match (&self.programs, &found) {
            (None, _) => Ok(found),
            (Some(globs), Ok(path)) if self.fits(globs, path.as_os_str()) => Ok(found),
            (Some(_), Err(_)) => Err(Forbidden::Absent(name.to_owned())),
            _ => Err(Forbidden::NotAllowed(name.to_owned())),
        }
    }

    fn check_variable(&self, name: &str) -> Result<(), Forbidden> {
        let globs = self.variables.as_ref();
        let is_allowed = globs.is_none_or(|globs| self.fits(globs, OsStr::new(name)));
        match is_allowed && !decides_what_runs(name) {
            true => Ok(()),
            false => Err(Forbidden::Variable(name.to_owned())),
        }
    }

    /// Returns the operator's command for a job. It reads the details as its input.
    fn handler(&self, job: &Job) -> Result<Option<CommandSpec>, Forbidden> {
        let found = match &self.handlers {
            Some(Handlers::ForEach { .. }) if job.book.is_some() => return Err(Forbidden::Flow),
            Some(Handlers::ForEach {
                program,
                argv,
                problem,
            }) => {
                let problem = match self.found {
                    Some(_) => why_not(program),
                    None => problem.clone(),
                };
                match problem {
                    Some(problem) => return Err(Forbidden::Refused(problem)),
                    None => Some((program.clone(), argv.clone())),
                }
            }
            Some(handlers) if handlers::is_name(&job.name) => {
                let program = handlers.find(&job.name)?;
                program.map(|it| (it.clone(), vec![it.into_os_string()]))
            }
            _ => None,
        };
        Ok(found.map(|(program, argv)| CommandSpec {
            input: Input::Text(details_text(job.details().as_deref()).into_bytes()),
            ..CommandSpec::quiet(program, argv)
        }))
    }
}

/// Returns the directories of a `PATH` without relative ones, which depend on the conductor's start directory.
pub(crate) fn absolute_search(search: Option<&OsStr>) -> Vec<PathBuf> {
    let directories = search.into_iter().flat_map(std::env::split_paths);
    directories
        .filter(|directory| directory.is_absolute())
        .collect()
}

fn decides_what_runs(name: &str) -> bool {
    name == "PATH" || name.starts_with("LD_") || name.starts_with("JOBBOARD_")
}

/// Returns why a program with an absolute path cannot run.
fn why_not(program: &Path) -> Option<String> {
    let found = find(program.as_os_str(), &[]);
    found.err().map(|error| error.to_string())
}
