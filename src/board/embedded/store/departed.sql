CREATE TABLE IF NOT EXISTS conductor_seen (
        name      TEXT PRIMARY KEY,
        host      TEXT NOT NULL,
        pid       INTEGER NOT NULL,
        since     INTEGER NOT NULL,
        owner     BLOB NOT NULL,
        token     TEXT NOT NULL,
        unsettled TEXT,
        kept_boot INTEGER NOT NULL,
        kept_wall INTEGER NOT NULL
    ) STRICT
