-- What is remembered of the jobs that left the board; the oldest rows are dropped.
CREATE TABLE past (
    id               INTEGER PRIMARY KEY,
    -- What the job was, and how it ended, as JSON.
    record           TEXT NOT NULL,
    -- As they were in the row of the job.
    attempts         INTEGER NOT NULL,
    postponed        INTEGER NOT NULL,
    failures         TEXT,
    first_claimed_on INTEGER,
    remark           TEXT
) STRICT;
