CREATE TABLE members (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    repository TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    added_at TEXT NOT NULL,
    UNIQUE (name, repository)
);
CREATE TABLE entries (
    repository TEXT NOT NULL,
    name TEXT NOT NULL,
    case_key TEXT NOT NULL,
    text TEXT NOT NULL,
    hash TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (repository, name),
    UNIQUE (repository, case_key)
);
CREATE TABLE versions (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repository TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    hash TEXT NOT NULL,
    at TEXT NOT NULL,
    by TEXT NOT NULL
);
CREATE TABLE audit (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TEXT NOT NULL,
    member TEXT NOT NULL,
    repository TEXT NOT NULL,
    action TEXT NOT NULL,
    name TEXT,
    hash TEXT,
    outcome TEXT NOT NULL
);
