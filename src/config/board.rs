//! Selects the board, and resolves its name.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, anyhow, ensure};

use super::{
    Environment, Flags, Source, Sourced,
    environment::OCTAVIA,
    file::{ConfigFiles, FoundTable},
    octavia::Octavia,
};
use crate::board::url::BoardUrl;

#[derive(Debug, Clone)]
pub(crate) struct BoardChoice {
    /// Its name in the configuration. `None` for a board by URL or by default, unless it is protected.
    pub(crate) name: Option<String>,
    pub(crate) url: BoardUrl,
    /// Whether forced, bulk and purging actions ask for its name.
    pub(crate) is_protected: bool,
    pub(crate) octavia: Option<Box<Octavia>>,
    pub(super) url_source: Source,
    pub(super) protected_source: Source,
}

impl BoardChoice {
    pub(crate) fn is_of_octavia(&self) -> bool {
        self.octavia.is_some()
    }

    /// Returns the claim duration of Octavia's conductors, if the jobs are Octavia's.
    pub(crate) fn octavia_expiry(&self) -> Option<Duration> {
        self.octavia.as_ref().map(|octavia| octavia.expiry)
    }
}

pub(super) struct ChosenTable<'a> {
    pub(super) board: Sourced<BoardChoice>,
    pub(super) table: Option<FoundTable<'a>>,
    pub(super) read_only: Option<Sourced<bool>>,
    /// The name of the table that sets it.
    pub(super) read_only_table: Option<String>,
}

impl<'a> ChosenTable<'a> {
    pub(super) fn find(
        flags: &Flags,
        env: &Environment,
        files: &'a ConfigFiles,
    ) -> anyhow::Result<Self> {
        let Some(choice) = choice(flags, env, files)? else {
            let mut url = BoardUrl::of_file(env.default_board()?);
            url.allow_directory();
            return Ok(Self::by_url(Sourced::default(url), files, env));
        };
        let Sourced { value, source } = choice;
        ensure!(
            !value.is_empty(),
            "{source} is empty; give the URL or the name of a board"
        );
        if let Some(files) = value.strip_prefix(OCTAVIA) {
            let octavia = Octavia::read(files, Path::new(""), env);
            let octavia = octavia.with_context(|| source.to_string())?;
            return Ok(Self::by_octavia(octavia, Sourced::new(value, source)));
        }
        if !value.contains(':') {
            return Self::by_name(Sourced::new(value, source), files, env);
        }
        let url = value.parse();
        let url = url.with_context(|| format!("{source} is not a valid board URL"))?;
        Ok(Self::by_url(Sourced::new(url, source), files, env))
    }

    /// A board by URL is protected just as under its configured names.
    fn by_url(
        Sourced { value, source }: Sourced<BoardUrl>,
        files: &'a ConfigFiles,
        env: &Environment,
    ) -> Self {
        let same = files.names().into_iter().filter_map(|name| {
            let found = files.table(name)?;
            let (url, _, protected) = url_of(&found, env).ok()?;
            url.is_same_board(&value)
                .then_some((name, found, protected))
        });
        let same: Vec<_> = same.collect();
        let protected = same.iter().find(|(_, _, protected)| protected.value);
        let read_only = same.iter().find(|it| it.1.table.read_only == Some(true));
        let board = BoardChoice {
            name: protected.map(|(name, ..)| (*name).to_owned()),
            url: value,
            is_protected: protected.is_some(),
            octavia: None,
            url_source: source.clone(),
            protected_source: protected.map_or(Source::Default, |(.., it)| it.source.clone()),
        };
        Self {
            board: Sourced::new(board, source),
            table: None,
            read_only: read_only.and_then(|(_, found, _)| found.value(|table| table.read_only)),
            read_only_table: read_only.map(|(name, ..)| (*name).to_owned()),
        }
    }

    /// Such a board is named by its option and protected.
    fn by_octavia(octavia: Octavia, Sourced { value, source }: Sourced<String>) -> Self {
        let board = BoardChoice {
            url: octavia.url.clone(),
            is_protected: true,
            url_source: Source::Octavia(value.clone()),
            protected_source: Source::Octavia(value.clone()),
            name: Some(value),
            octavia: Some(Box::new(octavia)),
        };
        Self {
            board: Sourced::new(board, source),
            table: None,
            read_only: None,
            read_only_table: None,
        }
    }

    fn by_name(
        choice: Sourced<String>,
        files: &'a ConfigFiles,
        env: &Environment,
    ) -> anyhow::Result<Self> {
        let found = files.table(&choice.value);
        let found = found.ok_or_else(|| unknown_board(&choice, files))?;
        let Sourced { value, source } = choice;
        let path = found.file.path.display();
        let wrong = || format!("the url of [board.{value}] in {path} is invalid");
        let (url, octavia, protected) = url_of(&found, env).with_context(wrong)?;
        found.require_trust(url.has_secret())?;
        let read_only_table = Some(value.clone());
        let board = BoardChoice {
            url,
            is_protected: protected.value,
            octavia,
            url_source: found.file.source(),
            name: Some(value),
            protected_source: protected.source,
        };
        Ok(Self {
            board: Sourced::new(board, source),
            table: Some(found),
            read_only: found.value(|table| table.read_only),
            read_only_table,
        })
    }
}

type TableUrl = (BoardUrl, Option<Box<Octavia>>, Sourced<bool>);

/// Returns the URL of a table's board, and whether it is protected: Octavia's is by default.
fn url_of(found: &FoundTable<'_>, env: &Environment) -> anyhow::Result<TableUrl> {
    let (url, directory) = (&found.table.url, found.file.directory());
    let files = url.strip_prefix(OCTAVIA);
    let octavia = files.map(|files| Octavia::read(files, directory, env).map(Box::new));
    let octavia = octavia.transpose()?;
    let url = match &octavia {
        Some(octavia) => octavia.url.clone(),
        None => url.parse::<BoardUrl>()?.relative_to(directory),
    };
    let protected = found.value(|table| table.protected);
    let protected = protected.unwrap_or(Sourced::default(octavia.is_some()));
    Ok((url, octavia, protected))
}

fn choice(
    flags: &Flags,
    env: &Environment,
    files: &ConfigFiles,
) -> anyhow::Result<Option<Sourced<String>>> {
    if let Some(board) = &flags.board {
        let source = Source::Flag(if flags.is_second { "--to" } else { "--board" });
        return Ok(Some(Sourced::new(board.clone(), source)));
    }
    Ok(env.text("JOBBOARD_URL")?.or_else(|| files.default_board()))
}

fn unknown_board(choice: &Sourced<String>, files: &ConfigFiles) -> anyhow::Error {
    let Sourced { value, source } = choice;
    let names: Vec<&str> = files.names().into_iter().collect();
    let known = if names.is_empty() {
        "no configuration file has a [board.NAME] table".to_owned()
    } else {
        format!("configured boards: {}", names.join(", "))
    };
    let hint = if value.contains(['/', '.']) {
        format!("; for a file, use sqlite:{value}")
    } else {
        String::new()
    };
    anyhow!("{source}: unknown board `{value}`; {known}{hint}")
}
