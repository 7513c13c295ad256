-- The embedded board. Times are microseconds since 1970 UTC; deadlines are milliseconds.
--
-- A file keeps these statements word for word, and one with different statements is refused. So even a changed
-- comment below needs a new layout.

CREATE TABLE board (
    -- The number of the last claim.
    fence INTEGER NOT NULL,
    -- Which boot of the machine the deadlines on the boot clock belong to.
    boot  TEXT NOT NULL
) STRICT;

CREATE TABLE job (
    -- AUTOINCREMENT: the number of a job that is gone is never given again.
    sequence     INTEGER PRIMARY KEY AUTOINCREMENT,
    uuid         TEXT NOT NULL,
    -- 0: on the board. 1: in the trash.
    shelf        INTEGER NOT NULL DEFAULT 0 CHECK (shelf IN (0, 1)),
    name         TEXT NOT NULL,
    -- 0: very high … 4: very low, so that the ranked order is the order of an index.
    priority     INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4),
    created_on   INTEGER NOT NULL,
    modified_on  INTEGER,
    book_name    TEXT,
    book_uuid    TEXT,
    details      TEXT NOT NULL CHECK (json_valid(details)),

    owner        BLOB,
    fence        INTEGER,
    claimed_on   INTEGER,
    -- When the claim lapses: on the clock of this boot, and on the wall clock for after a reboot.
    expires_boot INTEGER,
    expires_wall INTEGER,

    attempts     INTEGER NOT NULL DEFAULT 0,
    postponed    INTEGER NOT NULL DEFAULT 0,
    not_before   INTEGER,
    failures     TEXT,
    trashed_on   INTEGER,
    -- 1: the last claim was made ahead of its turn, and counts as an attempt once it is settled.
    ahead        INTEGER NOT NULL DEFAULT 0,
    first_claimed_on INTEGER,
    -- Who did the last thing to it that is not its ordinary course, and why, as JSON.
    remark       TEXT,
    UNIQUE (uuid, shelf)
) STRICT;

CREATE INDEX job_ranked ON job (shelf, priority, sequence);
CREATE INDEX job_unclaimed ON job (priority, sequence) WHERE shelf = 0 AND owner IS NULL;
-- Empty, unless somebody else wrote to the file; tells without reading the details.
CREATE INDEX job_malformed ON job (sequence) WHERE NOT json_valid(details);
CREATE INDEX job_expiring ON job (expires_boot) WHERE expires_boot IS NOT NULL;

-- What happened lately; the oldest rows are dropped. A post needs no row, its sequence tells.
CREATE TABLE event (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    -- The last sequence by then, which puts posts and events into one order.
    posted     INTEGER NOT NULL,
    sequence   INTEGER,
    uuid       TEXT,
    name       TEXT,
    priority   INTEGER,
    not_before INTEGER,
    owner      BLOB,
    fence      INTEGER,
    -- How the job ended by it, as in `past`.
    outcome    TEXT,
    -- Who did it and why, if it was not its ordinary course, as JSON.
    remark     TEXT
) STRICT;

CREATE TABLE conductor (
    name       TEXT PRIMARY KEY,
    host       TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    owner      BLOB NOT NULL,
    -- Tells two processes of the same name apart.
    token      TEXT NOT NULL,
    alive_boot INTEGER NOT NULL,
    -- What it tells of itself, as JSON; once it was no more than the jobs that it cannot settle.
    unsettled  TEXT
) STRICT;

-- What is remembered of the jobs that left the board; the oldest rows are dropped.
CREATE TABLE past (
    id               INTEGER PRIMARY KEY,
    ended_on         INTEGER NOT NULL,
    -- consumed, failed or purged.
    outcome          TEXT NOT NULL,
    -- 1: it ended by the success of a command.
    succeeded        INTEGER NOT NULL,
    -- As they were in the row of the job.
    sequence         INTEGER NOT NULL,
    uuid             TEXT NOT NULL,
    name             TEXT NOT NULL,
    priority         INTEGER NOT NULL,
    created_on       INTEGER NOT NULL,
    book_name        TEXT,
    book_uuid        TEXT,
    claimed_on       INTEGER,
    attempts         INTEGER NOT NULL,
    postponed        INTEGER NOT NULL,
    failures         TEXT,
    first_claimed_on INTEGER,
    remark           TEXT
) STRICT;

-- Names that are paused, each with who wants it, why and for how long, as JSON.
CREATE TABLE pause (
    names TEXT PRIMARY KEY,
    pause TEXT NOT NULL
) STRICT;

INSERT INTO board (fence, boot) VALUES (0, '');
