//! The context of every command: the configuration, the output, and the board on demand.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt::Display,
    io::{self, IsTerminal},
    path::Path,
    sync::Arc,
    time::Duration,
};

use crate::{
    board::{
        Board, BoardError,
        open::{Bounds, open},
        scratch::Testable,
        url::BoardUrl,
    },
    config::{Config, Environment, Flags},
    exit::{CommandError, ErrorPrinter, Trying, chain},
    job::Owner,
    output::{Output, short},
    process::terminal::Terminal,
    secret::Secret,
    suggest::{Hint, Suggestion},
};

pub(crate) struct Context {
    flags: Flags,
    pub(crate) config: Config,
    pub(crate) out: Output,
    pub(crate) environment: Environment,
    pub(crate) terminal: Option<Terminal>,
    printer: ErrorPrinter,
    board: Option<Arc<dyn Board>>,
    /// The typed `unique:KEY` of a uuid, for messages.
    unique: RefCell<HashMap<String, String>>,
}

/// How the user agrees to an irreversible action.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Consent {
    /// Do not ask for confirmation [env: JOBBOARD_YES]
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,

    /// Confirm an action on a protected board by giving the board's name
    #[arg(long, value_name = "NAME")]
    pub(crate) confirm: Vec<String>,
}

/// Whether to create the directory of a new board.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Creation {
    /// Create the parent directory of the board file if it is missing
    #[arg(long)]
    pub(crate) create: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Opener {
    pub(crate) op_timeout: Duration,
    password: Option<Secret>,
    bounds: Bounds,
}

impl Opener {
    pub(crate) fn password(&self) -> Option<&Secret> {
        self.password.as_ref()
    }

    pub(crate) fn open(&self, url: &BoardUrl) -> Result<Arc<dyn Testable>, BoardError> {
        open(url, self.op_timeout, self.password.clone(), self.bounds)
    }
}

impl Context {
    pub(crate) fn new(
        flags: Flags,
        config: Config,
        out: Output,
        environment: Environment,
        terminal: Option<Terminal>,
        printer: ErrorPrinter,
    ) -> Self {
        Self {
            flags,
            config,
            out,
            environment,
            terminal,
            printer,
            board: None,
            unique: RefCell::default(),
        }
    }

    pub(crate) fn board(&mut self) -> anyhow::Result<Arc<dyn Board>> {
        if let Some(board) = &self.board {
            return Ok(Arc::clone(board));
        }
        let board = self
            .opener(&self.config)?
            .open(&self.config.board.value.url)?;
        Ok(self.introduce(board))
    }

    /// Returns the board for tests, and the opener of boards beside it. Call this before any other request.
    pub(crate) fn testable_board(&mut self) -> anyhow::Result<(Arc<dyn Testable>, Opener)> {
        let opener = self.opener(&self.config)?;
        let board = opener.open(&self.config.board.value.url.resolved())?;
        self.introduce(Arc::clone(&board) as Arc<dyn Board>);
        Ok((board, opener))
    }

    fn introduce(&mut self, board: Arc<dyn Board>) -> Arc<dyn Board> {
        let (chosen, who) = (&self.config.board.source, &self.config.who.value);
        let name = board.url();
        let file = self.config.board.value.url.file();
        let is_new = file.is_some_and(|path| !path.exists());
        if is_new && !self.config.is_board_chosen {
            self.out.note_at_terminal(format!("using the board {name}"));
        } else {
            self.out
                .detail(format!("using the board {name} ({chosen}) as {who}"));
        }
        self.board = Some(Arc::clone(&board));
        board
    }

    fn opener(&self, config: &Config) -> anyhow::Result<Opener> {
        let url = &config.board.value.url;
        if url.has_password() {
            self.out.note(
                "warning: other users can see the password in the board URL; use --password-file",
            );
        }
        let password = match url.is_network() {
            true => config.password().map_err(wrong_file)?,
            false => None,
        };
        let bounds = Bounds {
            max_details: config.max_details.value,
            history: config.history.value,
        };
        Ok(Opener {
            op_timeout: config.op_timeout.value,
            password,
            bounds,
        })
    }

    pub(crate) fn writable_board(&mut self) -> anyhow::Result<Arc<dyn Board>> {
        self.board_writable_if(true)
    }

    /// Returns the board; a preview also works on a read-only one.
    pub(crate) fn board_writable_if(
        &mut self,
        makes_changes: bool,
    ) -> anyhow::Result<Arc<dyn Board>> {
        if makes_changes {
            self.require_writable()?;
        }
        self.board()
    }

    pub(crate) fn require_writable(&self) -> anyhow::Result<()> {
        require_writable(&self.config)
    }

    pub(crate) fn config_by_now(&self) -> anyhow::Result<Config> {
        Config::load(self.flags.clone(), &self.environment)
    }

    /// Returns a second board, and its settings, for changes unless it is read-only. The caller closes it.
    pub(crate) fn second_board(
        &self,
        board: &str,
        password_file: Option<&Path>,
        is_changed: bool,
        creation: &Creation,
    ) -> anyhow::Result<(Arc<dyn Board>, Config)> {
        let flags = Flags {
            board: Some(board.to_owned()),
            password_file: password_file.map(Path::to_owned),
            is_second: true,
            ..self.flags.clone()
        };
        let program = flags.program();
        let mut config = Config::load(flags, &self.environment)
            .map_err(|error| CommandError::of_config(&error))?;
        if is_changed {
            require_writable(&config)?;
        }
        create_directory(&mut config, creation);
        let board: Arc<dyn Board> = self.opener(&config)?.open(&config.board.value.url)?;
        self.printer.reach_second(board.url(), program);
        Ok((board, config))
    }

    pub(crate) fn create_directory(&mut self, creation: &Creation) {
        create_directory(&mut self.config, creation);
    }

    /// Whether secrets are hidden from programs as well as people: postings of Octavia contain private keys of its
    /// users.
    pub(crate) fn hides_secrets(&self) -> bool {
        self.config.board.value.is_of_octavia()
    }

    pub(crate) fn who(&self) -> &Owner {
        &self.config.who.value
    }

    /// Requires consent to an irreversible action.
    ///
    /// A protected board asks for its name. Without a terminal the consent must be on the command line.
    pub(crate) fn ask(&self, consent: &Consent, question: &str) -> anyhow::Result<()> {
        self.ask_on(&[&self.config], consent, question)
    }

    pub(crate) fn ask_on(
        &self,
        boards: &[&Config],
        consent: &Consent,
        question: &str,
    ) -> anyhow::Result<()> {
        self.confirm_protected(boards, consent, question)?;
        let is_protected = boards.iter().any(|it| it.board.value.is_protected);
        if is_protected || consent.yes || self.config.yes.value {
            return Ok(());
        }
        let (message, hint) = match self.out.ask(question, "[y/N]") {
            Some(answer) if matches!(answer.as_str(), "y" | "Y" | "yes") => return Ok(()),
            Some(_) => (
                "not confirmed; nothing changed".to_owned(),
                "answer y to confirm",
            ),
            None => {
                let missing = match io::stdin().is_terminal() {
                    false => "standard input is not a terminal",
                    true => "there is no terminal for the question",
                };
                let why = format!("confirmation is required, but {missing}");
                let message = format!("{}: {why}", self.cannot(question));
                (message, "add `--yes` to confirm in advance")
            }
        };
        Err(CommandError::refused(message).hint(hint).into())
    }

    pub(crate) fn confirm_protected(
        &self,
        boards: &[&Config],
        consent: &Consent,
        question: &str,
    ) -> anyhow::Result<()> {
        let choices = boards.iter().map(|it| &it.board.value);
        let mut stated = consent.confirm.iter();
        let is_none_s = |it: &&String| !choices.clone().any(|one| one.name.as_ref() == Some(it));
        if let Some(stated) = stated.find(is_none_s) {
            let message = format!("the board in use is not named {stated}");
            let name = choices.filter_map(|one| one.name.as_deref()).next();
            return Err(refusal(&message, name));
        }
        for choice in choices.filter(|it| it.is_protected) {
            // Only a named board can be protected: the configuration sets both together.
            let name = choice.name.as_deref().unwrap_or_default();
            if consent.confirm.iter().any(|stated| stated == name) {
                continue;
            }
            let url = &choice.url;
            let asked = format!("{question} {url} is protected;");
            let message = match (self.out).ask(asked, "type the name of the board to continue:") {
                Some(typed) if typed == name => continue,
                Some(_) => "the typed name is not the name of the board".to_owned(),
                None => format!("{}: the board `{name}` is protected", self.cannot(question)),
            };
            return Err(refusal(&message, Some(name)));
        }
        Ok(())
    }

    fn cannot(&self, question: &str) -> String {
        let action = question.trim_end_matches('?');
        match &self.board {
            Some(board) => format!("cannot {action} on {}", board.url()),
            None => format!("cannot {action}"),
        }
    }

    pub(crate) fn program(&self) -> Suggestion {
        self.flags.program()
    }

    pub(crate) fn printer(&self) -> &ErrorPrinter {
        &self.printer
    }

    pub(crate) fn print_error(&self, error: &anyhow::Error) {
        self.printer.print_error(error);
    }

    pub(crate) fn trying(&self, verb: &'static str, what: impl Display) -> Trying {
        let board = self.board.as_ref().map(|board| board.url().to_owned());
        Trying::new(verb, self.as_typed(what), board)
    }

    pub(crate) fn remember_unique(&self, uuid: String, typed: &str) {
        self.unique.borrow_mut().insert(uuid, typed.to_owned());
    }

    /// Returns `unique:KEY` for a uuid that was typed so, and other text unchanged.
    pub(crate) fn as_typed(&self, what: impl Display) -> String {
        let what = what.to_string();
        match self.unique.borrow().get(&what) {
            Some(typed) => format!("{typed} ({})", short(&what)),
            None => what,
        }
    }

    pub(crate) async fn close(&mut self) {
        if let Some(board) = self.board.take() {
            board.close().await;
        }
    }
}

fn create_directory(config: &mut Config, Creation { create }: &Creation) {
    if *create {
        config.board.value.url.allow_directory();
    }
}

/// Classifies a missing file of the password as a usage error, as for other files.
fn wrong_file(error: anyhow::Error) -> anyhow::Error {
    match error.root_cause().downcast_ref::<std::io::Error>() {
        Some(reason) if reason.kind() == std::io::ErrorKind::NotFound => {
            let hint = "`jobboard config` shows the source of the password";
            CommandError::usage(chain(error.as_ref())).hint(hint).into()
        }
        _ => error,
    }
}

fn require_writable(config: &Config) -> anyhow::Result<()> {
    let Some(source) = config.why_read_only() else {
        return Ok(());
    };
    let board = &config.board.value.url;
    let message = format!("the board {board} is read-only because of {source}");
    let hint = "`jobboard config` shows the board and the source of each setting";
    Err(CommandError::refused(message).hint(hint).into())
}

fn refusal(message: &str, name: Option<&str>) -> anyhow::Error {
    let hint = match name {
        Some(name) => Hint::new("to confirm, add `--confirm {}`", [&[name]]),
        None => "`jobboard config` shows the board in use".into(),
    };
    CommandError::refused(message).hint(hint).into()
}
