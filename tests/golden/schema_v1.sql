-- index changes_by_job
CREATE INDEX changes_by_job ON changes (job_id, change);

-- index job_state_due
CREATE INDEX job_state_due ON job_state (next_due_ms, position) WHERE next_due_ms IS NOT NULL;

-- index job_state_flagged
CREATE INDEX job_state_flagged ON job_state (position) WHERE flag IS NOT NULL;

-- index jobs_by_enabled
CREATE INDEX jobs_by_enabled ON jobs (enabled);

-- index jobs_by_name
CREATE INDEX jobs_by_name ON jobs (name COLLATE NOCASE);

-- index notices_unsent
CREATE INDEX notices_unsent ON notices (created_ms) WHERE sent_ms IS NULL;

-- index requests_age
CREATE INDEX requests_age ON requests (at_ms);

-- index runs_active
CREATE INDEX runs_active ON runs (arrival) WHERE state = 'active';

-- index runs_ended
CREATE INDEX runs_ended ON runs (ended_ms) WHERE ended_ms IS NOT NULL AND forget_ms IS NULL;

-- index runs_forgotten
CREATE INDEX runs_forgotten ON runs (arrival) WHERE forget_ms IS NOT NULL;

-- index runs_history
CREATE INDEX runs_history ON runs (job_id, arrival);

-- index runs_one_live
CREATE UNIQUE INDEX runs_one_live ON runs (job_id) WHERE state IN ('queued', 'active');

-- index runs_queue
CREATE INDEX runs_queue ON runs (slot_ms, requested_ms, job_position) WHERE state = 'queued';

-- index slot_decisions_by_job
CREATE INDEX slot_decisions_by_job ON slot_decisions (job_id, position);

-- table changes
CREATE TABLE changes (
    change   INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms    INTEGER NOT NULL,
    job_id   TEXT,
    action   TEXT NOT NULL,
    uid      INTEGER,
    pid      INTEGER,
    caller   TEXT,
    detail   TEXT
) STRICT;

-- table job_state
CREATE TABLE job_state (
    position           INTEGER PRIMARY KEY REFERENCES jobs (position) ON DELETE CASCADE,
    next_due_ms        INTEGER,
    due_kind           TEXT NOT NULL DEFAULT 'slot' CHECK (due_kind IN ('slot', 'retry', 'backoff', 'catch_up', 'paced')),
    due_slot_ms        INTEGER,
    backoff_until_ms   INTEGER,
    flag               TEXT,
    last_run_ms        INTEGER,
    last_duration_ms   INTEGER,
    last_status        TEXT CHECK (last_status IN ('ok', 'error', 'skipped')),
    last_reason        TEXT,
    last_error         TEXT,
    consecutive_errors    INTEGER NOT NULL DEFAULT 0,
    consecutive_skipped   INTEGER NOT NULL DEFAULT 0,
    consumed_slots        INTEGER NOT NULL DEFAULT 0,
    schedule_errors       INTEGER NOT NULL DEFAULT 0,
    auto_disabled         TEXT CHECK (auto_disabled IN ('consecutive-failures', 'schedule-errors')),
    auto_disabled_ms      INTEGER,
    schedule_activated_ms INTEGER,
    changed_while_active  INTEGER NOT NULL DEFAULT 0 CHECK (changed_while_active IN (0, 1)),
    CHECK (due_slot_ms IS NULL OR next_due_ms IS NOT NULL),
    CHECK ((auto_disabled IS NULL) = (auto_disabled_ms IS NULL))
) STRICT;

-- table jobs
CREATE TABLE jobs (
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id          TEXT NOT NULL UNIQUE,
    name            TEXT NOT NULL,
    declaration_key TEXT UNIQUE,
    enabled         INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    schedule_kind   TEXT NOT NULL,
    definition      TEXT NOT NULL,
    revision        TEXT NOT NULL,
    created_ms      INTEGER NOT NULL,
    updated_ms      INTEGER NOT NULL
) STRICT;

-- table lives
CREATE TABLE lives (
    instance   TEXT PRIMARY KEY,
    boot_id    TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    seen_ms    INTEGER NOT NULL,
    ended_ms   INTEGER
) STRICT;

-- table meta
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- table notices
CREATE TABLE notices (
    notice_id  TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    runs       TEXT NOT NULL,
    text       TEXT,
    created_ms INTEGER NOT NULL,
    sent_ms    INTEGER
) STRICT;

-- table requests
CREATE TABLE requests (
    request_id TEXT PRIMARY KEY,
    method     TEXT NOT NULL,
    answer     TEXT NOT NULL,
    at_ms      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- table runs
CREATE TABLE runs (
    arrival      INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id       TEXT NOT NULL UNIQUE,
    run_key      TEXT NOT NULL UNIQUE,
    job_id       TEXT NOT NULL,
    job_position INTEGER NOT NULL,
    job_name     TEXT NOT NULL,
    kind         TEXT NOT NULL CHECK (kind IN ('scheduled', 'manual', 'event')),
    mode         TEXT CHECK (mode IN ('force', 'due', 'if-enabled')),
    requester    TEXT,
    slot_ms      INTEGER NOT NULL,
    requested_ms INTEGER NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('queued', 'active', 'ok', 'error', 'skipped')),
    reason       TEXT,
    message      TEXT,
    activated_ms INTEGER,
    instance     TEXT,
    epoch        INTEGER,
    boot_id      TEXT,
    started_ms   INTEGER,
    ended_ms     INTEGER,
    outcome      BLOB,
    late_outcome TEXT,
    cancel_by    TEXT,
    cancel_why   TEXT,
    cancel_ms    INTEGER,
    forget_ms    INTEGER,
    CHECK ((state IN ('ok', 'error', 'skipped')) = (ended_ms IS NOT NULL)),
    CHECK (state != 'queued' OR activated_ms IS NULL),
    CHECK (state != 'active' OR activated_ms IS NOT NULL),
    CHECK ((activated_ms IS NULL) = (instance IS NULL) AND (instance IS NULL) = (epoch IS NULL)),
    CHECK ((kind = 'manual') = (mode IS NOT NULL)),
    CHECK ((cancel_ms IS NULL) = (cancel_by IS NULL)),
    CHECK (state NOT IN ('error', 'skipped') OR reason IS NOT NULL)
) STRICT;

-- table slot_decisions
CREATE TABLE slot_decisions (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id   TEXT NOT NULL,
    decision TEXT NOT NULL CHECK (decision IN ('consumed', 'dropped', 'deferred', 'backoff')),
    slot_ms  INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    run_id   TEXT,
    at_ms    INTEGER NOT NULL
) STRICT;

-- table sqlite_sequence
CREATE TABLE sqlite_sequence(name,seq);

