//! Limits of the properties of new jobs.

use std::{
    fmt::Display,
    path::{Component, PathBuf},
};

use serde_json::Value;
use uuid::Uuid;

use crate::{
    board::uuid_of,
    conductor::policy::{self, Forbidden},
    exit::CommandError,
    job::{Book, Details},
    secret,
    suggest::Hint,
};

pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    CommandError::usage(message).into()
}

pub(crate) fn identity(uuid: Option<Uuid>, unique: Option<&str>) -> anyhow::Result<(Uuid, bool)> {
    match (uuid, unique) {
        (Some(_), Some(_)) => Err(usage("a job has a uuid or a unique key, not both")),
        (_, Some("")) => Err(usage("a unique key must not be empty")),
        (_, Some(key)) => Ok((uuid_of(key), true)),
        (Some(uuid), None) => Ok((uuid, true)),
        (None, None) => Ok((Uuid::new_v4(), false)),
    }
}

/// The longest name that every board can read back.
const MAX_NAME_BYTES: usize = 60_000;

/// Measures the name as ASCII, as ZooKeeper stores it.
pub(crate) fn check_length(what: &str, name: &str) -> Result<(), String> {
    let length = |character: char| match character {
        '"' | '\\' => 2,
        ' '..='~' => 1,
        other => 6 * other.len_utf16(),
    };
    match name.chars().map(length).sum::<usize>() {
        0..=MAX_NAME_BYTES => Ok(()),
        length => Err(format!(
            "the name of a {what} may have at most {MAX_NAME_BYTES} bytes; this one has {length}"
        )),
    }
}

/// Rejects details with a command that no conductor can ever run; names the correction.
pub(crate) fn check_command(details: &Details) -> anyhow::Result<()> {
    let Err(flaw) = policy::check_posted(details) else {
        return Ok(());
    };
    let text = |field| {
        details
            .get(field)
            .and_then(|it| Some(it.as_str()?.to_owned()))
    };
    let absolute = |path: &str| {
        let mut clean = PathBuf::new();
        for part in std::path::absolute(path).unwrap_or_default().components() {
            match part {
                Component::ParentDir => _ = clean.pop(),
                part => clean.push(part),
            }
        }
        clean.to_string_lossy().into_owned()
    };
    let hint = match &flaw {
        Forbidden::Relative(name) if !name.is_empty() => {
            Hint::new("use `-- {}`", [&[&absolute(name)]])
        }
        Forbidden::Malformed { field: "cwd", .. } => {
            let cwd = text("cwd").unwrap_or_default();
            Hint::new("write `{}`", [&[&format!("cwd={}", absolute(&cwd))]])
        }
        Forbidden::Malformed {
            field: "max_attempts",
            ..
        } => {
            let most = text("max_attempts").filter(|it| it.parse::<u32>().is_ok_and(|it| it > 0));
            let most = most.unwrap_or_else(|| "3".to_owned());
            Hint::new("write `{}`", [&[&format!("max_attempts:={most}")]])
        }
        Forbidden::Malformed {
            field: "timeout", ..
        } => {
            let seconds = details.get("timeout").and_then(|it| it.as_u64());
            let timeout = seconds.map_or_else(|| "5m".to_owned(), |it| format!("{it}s"));
            Hint::new("write `{}`", [&[&format!("timeout={timeout}")]])
        }
        Forbidden::Malformed { field: "env", .. } => {
            Hint::new("write `{}`", [&[r#"env:={"NAME":"text"}"#]])
        }
        Forbidden::Variable(_) => "conductors set PATH, LD_* and JOBBOARD_* themselves".into(),
        _ => "a command is `-- PROGRAM ARGUMENT...`".into(),
    };
    Err(CommandError::usage(flaw.to_string()).hint(hint).into())
}

pub(crate) fn checked_name(name: &str) -> anyhow::Result<String> {
    if name.trim().is_empty() {
        return Err(usage("a job needs a name"));
    }
    if let Some(character) = name.chars().find(|character| character.is_control()) {
        return Err(usage(format!(
            "the name of a job may not contain control characters; this one contains {}",
            match character {
                '\n' => "a newline".to_owned(),
                '\t' => "a tab".to_owned(),
                other => other.escape_unicode().to_string(),
            }
        )));
    }
    check_length("job", name).map_err(usage)?;
    Ok(name.to_owned())
}

/// Rejects details that are too large, or that change when they are parsed again.
pub(crate) fn check_size(details: &Value, max: u64) -> anyhow::Result<()> {
    if secret::has_cover(details) {
        let message = "the details have masked secrets";
        let hint = "`jobboard show --reveal --json JOB` prints them in full";
        return Err(CommandError::usage(message).hint(hint).into());
    }
    let size = details.to_string().len() as u64;
    if size > max {
        return Err(too_large(size, max));
    }
    Ok(())
}

pub(crate) fn too_large(size: impl Display, max: u64) -> anyhow::Error {
    let message = format!("the details have {size} bytes; the limit is {max}");
    let hint = "put large values into a file and its path into the details, or raise max_details in \
        the configuration";
    CommandError::usage(message).hint(hint).into()
}

/// Parses `NAME:UUID`; the name may contain colons.
pub(crate) fn book(text: &str) -> Result<Book, String> {
    let wrong = || "use NAME:UUID".to_owned();
    let (name, uuid) = text.rsplit_once(':').ok_or_else(wrong)?;
    let uuid = self::uuid(uuid).map_err(|error| format!("{}: {error}", wrong()))?;
    check_length("book", name)?;
    Ok(Book {
        name: name.to_owned(),
        uuid: uuid.to_string(),
    })
}

pub(crate) fn uuid(text: &str) -> Result<Uuid, String> {
    let wrong = |_| {
        format!("`{text}` is not a uuid; a uuid looks like 1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b")
    };
    text.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_always_yields_the_same_uuid() {
        let of = |key| identity(None, Some(key)).unwrap();
        let (one, chosen) = of("nightly");
        assert!(chosen);
        assert_eq!(one, of("nightly").0);
        assert_ne!(one, of("weekly").0);
    }

    #[test]
    fn book_name_may_contain_colons() {
        let uuid = "00000000-0000-4000-8000-000000000001";
        assert_eq!(book(&format!("a:b:{uuid}")).unwrap().name, "a:b");
        assert!(book("a").is_err());
        assert!(book("a:b").is_err());
    }
}
