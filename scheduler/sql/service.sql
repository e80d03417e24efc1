-- name: get_meta
SELECT value FROM meta WHERE key = :key;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: raise_meta
-- A number that only grows.
INSERT INTO meta (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER));

-- name: delete_meta
DELETE FROM meta WHERE key = :key;

-- name: begin_life
INSERT INTO lives (instance, boot_id, version, started_ms, seen_ms) VALUES (:instance, :boot_id, :version, :now_ms, :now_ms);

-- name: touch_life
UPDATE lives SET seen_ms = :now_ms WHERE instance = :instance;

-- name: end_life
UPDATE lives SET seen_ms = :now_ms, ended_ms = :now_ms WHERE instance = :instance;

-- name: last_life
SELECT instance, ended_ms FROM lives ORDER BY rowid DESC LIMIT 1;

-- name: last_seen
-- When the last life before this one was last seen.
SELECT seen_ms FROM lives ORDER BY rowid DESC LIMIT 1;

-- name: prune_lives
DELETE FROM lives WHERE rowid <= (SELECT max(rowid) FROM lives) - :keep;

-- name: find_request
SELECT method, answer FROM requests WHERE request_id = :request_id;

-- name: insert_request
INSERT INTO requests (request_id, method, answer, at_ms) VALUES (:request_id, :method, :answer, :at_ms);

-- name: prune_requests
DELETE FROM requests WHERE request_id IN (
    SELECT request_id FROM requests WHERE at_ms < :before_ms ORDER BY at_ms LIMIT :limit
);

-- name: add_to_notice
-- One notice per recovery: further runs join it until it is sent.
INSERT INTO notices (notice_id, kind, runs, created_ms) VALUES (:notice_id, :kind, json_array(:run_id), :now_ms)
ON CONFLICT (notice_id) DO UPDATE SET runs = json_insert(runs, '$[#]', :run_id), sent_ms = NULL;

-- name: insert_notice
INSERT INTO notices (notice_id, kind, runs, text, created_ms) VALUES (:notice_id, :kind, :runs, :text, :now_ms)
ON CONFLICT DO NOTHING;

-- name: unsent_notices
SELECT notice_id, kind, runs, text, created_ms FROM notices WHERE sent_ms IS NULL ORDER BY created_ms LIMIT 20;

-- name: mark_notice_sent
-- Unless further runs have joined it since.
UPDATE notices SET sent_ms = :now_ms WHERE notice_id = :notice_id AND json_array_length(runs) = :runs;

-- name: recent_notices
SELECT notice_id, kind, runs, text, created_ms FROM notices ORDER BY created_ms DESC LIMIT :limit;

-- name: prune_notices
DELETE FROM notices WHERE sent_ms < :before_ms;
