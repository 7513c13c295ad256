//! Choosing jobs by their problem, as `doctor` names it.

use std::str::FromStr;

use regex::Regex;

use super::{Cause, Snapshot};
use crate::{glob::translate, job::Entry, problem::Code};

/// `CODE`, or `CODE=CAUSE` with a glob for the cause.
#[derive(Debug, Clone)]
pub(crate) struct ProblemSelector {
    pub(crate) code: Code,
    cause: Option<Regex>,
}

impl FromStr for ProblemSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (code, cause) = match text.split_once('=') {
            Some((code, cause)) => (code, Some(cause)),
            None => (text, None),
        };
        let known = code.parse().ok().filter(|code: &Code| code.is_problem());
        let code = known.ok_or("`jobboard doctor --list` lists the codes")?;
        let regex = |cause: &str| {
            Regex::new(&translate(cause).map_err(|error| error.to_string())?)
                .map_err(|error| error.to_string())
        };
        Ok(Self {
            code,
            cause: cause.map(regex).transpose()?,
        })
    }
}

impl ProblemSelector {
    pub(crate) fn is_of(&self, entry: &Entry, snapshot: &Snapshot) -> bool {
        let judged = snapshot.judge(entry);
        if self.code == Code::NotRenewed {
            // A second look would be needed to know.
            return judged.pause.is_some();
        }
        judged.causes().any(|cause| self.fits(cause))
    }

    pub(super) fn fits(&self, cause: &Cause) -> bool {
        let texts = || [cause.about.to_string(), cause.about.exact()];
        let fits = |glob: &Regex| texts().iter().any(|text| glob.is_match(text));
        cause.code == self.code && self.cause.as_ref().is_none_or(fits)
    }
}
