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
