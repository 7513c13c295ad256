//! Completing a hint, so that its commands mean the same board and job when they are typed.

use crate::{board::url::BoardUrl, config::Flags, shell};

/// The word in a hint that stands for the job it is about.
const JOB: &str = "JOB";

/// How every command of ours begins.
const PROGRAM: &str = "jobboard ";

/// What a command line says of its board, as the next command has to say it again.
///
/// What the environment and the configuration say need not be repeated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Way {
    options: String,
}

impl Way {
    /// Takes what leads to the board from the flags; a password in a URL stays away.
    pub(crate) fn of(flags: &Flags) -> Self {
        let file = |name, path: &Option<std::path::PathBuf>| {
            let path = path.as_ref()?.to_str()?;
            Some(format!("{name} {} ", shell::word(path)))
        };
        let board = flags.board.as_deref().map(without_password);
        let options = [
            board.map(|board| format!("--board {} ", shell::word(&board))),
            file("--config", &flags.config),
            file("--password-file", &flags.password_file),
        ];
        Self {
            options: options.into_iter().flatten().collect(),
        }
    }

    /// Writes a hint with all that its commands need.
    ///
    /// `None` if it is about a job, and nobody knows which.
    pub(crate) fn complete(&self, hint: &str, job: Option<&str>) -> Option<String> {
        let parts = hint.split('`').enumerate().map(|(at, part)| {
            // Every second part is a command.
            match part.strip_prefix(PROGRAM).filter(|_| at % 2 == 1) {
                Some(command) => {
                    let words = command.split(' ').map(|word| match word {
                        JOB => job.map(shell::word),
                        word => Some(word.to_owned()),
                    });
                    let words = words.collect::<Option<Vec<_>>>()?;
                    // Help is the same for all boards, even for those that are none.
                    let options = match command.starts_with("help") {
                        true => "",
                        false => &self.options,
                    };
                    Some(format!("{PROGRAM}{options}{}", words.join(" ")))
                }
                None => Some(part.to_owned()),
            }
        });
        Some(parts.collect::<Option<Vec<_>>>()?.join("`"))
    }
}

fn without_password(board: &str) -> String {
    match board.parse::<BoardUrl>() {
        Ok(url) if url.has_password() => url.to_string(),
        _ => board.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(board: &str) -> Way {
        Way::of(&Flags {
            board: Some(board.to_owned()),
            ..Flags::default()
        })
    }

    #[test]
    fn each_command_of_a_hint_names_the_board_that_was_named() {
        let hint = "`jobboard show JOB` shows it, `jobboard list` all; --yes, `rm JOB`";
        assert_eq!(
            way("prod").complete(hint, Some("key:a b")).unwrap(),
            "`jobboard --board prod show 'key:a b'` shows it, `jobboard --board prod list` all; \
             --yes, `rm JOB`"
        );
        assert_eq!(
            Way::default().complete(hint, Some("12ab")).unwrap(),
            "`jobboard show 12ab` shows it, `jobboard list` all; --yes, `rm JOB`"
        );
        assert_eq!(Way::default().complete(hint, None), None);
    }

    #[test]
    fn a_board_is_named_as_it_was_typed_but_for_its_password() {
        let ping = |board| way(board).complete("`jobboard ping`", None).unwrap();
        assert_eq!(
            ping("redis://h?namespace=it's"),
            r"`jobboard --board 'redis://h?namespace=it'\''s' ping`"
        );
        let told = ping("redis://ada:hunter2@h/1");
        assert_eq!(told, "`jobboard --board redis://ada@h:6379/1 ping`");
    }
}
