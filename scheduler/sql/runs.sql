-- name: insert_run
-- A request. The unique ids and the index runs_one_live make a slot and a job's live run unique; a conflict is an answer.
INSERT INTO runs (run_id, run_key, job_id, job_position, job_name, kind, mode, requester, slot_ms, requested_ms, state)
VALUES (:run_id, :run_key, :job_id, :job_position, :job_name, :kind, :mode, :requester, :slot_ms, :requested_ms,
        'queued')
ON CONFLICT DO NOTHING
RETURNING arrival;

-- name: insert_skipped_run
-- A request that could not be made into a run, kept as a terminal row so that it is seen.
INSERT INTO runs (run_id, run_key, job_id, job_position, job_name, kind, mode, requester, slot_ms, requested_ms, state,
                  reason, message, ended_ms)
VALUES (:run_id, :run_key, :job_id, :job_position, :job_name, :kind, :mode, :requester, :slot_ms, :requested_ms,
        'skipped', :reason, :message, :requested_ms)
ON CONFLICT DO NOTHING
RETURNING arrival;

-- name: queue_head
-- What may become active next: by due time, then by arrival, then in the order of the jobs. The plus keeps the planner
-- from walking through the whole history by arrival.
SELECT run_id, job_id FROM runs
WHERE state = 'queued' AND +arrival <= :committed
ORDER BY slot_ms, requested_ms, job_position
LIMIT :limit;

-- name: activate_run
-- Commit B.
UPDATE runs
SET state = 'active', activated_ms = :now_ms, instance = :instance, epoch = :epoch, boot_id = :boot_id
WHERE run_id = :run_id AND state = 'queued'
RETURNING arrival;

-- name: settle_run
-- Commit C, from the state that the decision was made for.
UPDATE runs
SET state = :state, reason = :reason, message = :message, started_ms = :started_ms, ended_ms = :ended_ms,
    outcome = :outcome
WHERE run_id = :run_id AND state = :from_state
RETURNING arrival;

-- name: keep_late_outcome
-- A terminal message that contradicts what is recorded.
UPDATE runs SET late_outcome = :late_outcome WHERE run_id = :run_id AND late_outcome IS NULL;

-- name: request_cancel
-- The first request stays.
UPDATE runs
SET cancel_by = :cancel_by, cancel_why = :cancel_why, cancel_ms = :now_ms
WHERE run_id = :run_id AND state = 'active' AND cancel_ms IS NULL;

-- name: run_by_id
SELECT {run_columns}
FROM runs WHERE run_id = :run_id;

-- name: runs_by_key
-- Runs whose key begins with the given digits; two are enough to say that it is ambiguous.
SELECT run_id FROM runs WHERE run_key >= :low AND run_key < :high LIMIT 2;

-- name: live_run_of_job
SELECT run_id, state, kind, requested_ms, activated_ms, mode FROM runs
WHERE job_id = :job_id AND state IN ('queued', 'active');

-- name: active_runs
SELECT run_id, job_id, instance, epoch, boot_id, cancel_why, cancel_ms FROM runs WHERE state = 'active' ORDER BY arrival;

-- name: live_runs
SELECT {run_columns}
FROM runs WHERE state IN ('queued', 'active') ORDER BY state, slot_ms, requested_ms, job_position LIMIT :limit;

-- name: live_runs_in_short
SELECT run_id, state FROM runs WHERE state IN ('queued', 'active');

-- name: count_active
SELECT count(*) FROM runs WHERE state = 'active';

-- name: count_queued
SELECT count(*) FROM runs WHERE state = 'queued';

-- name: queued_events
-- Requests whose payload lived in memory only.
SELECT run_id FROM runs WHERE state = 'queued' AND kind = 'event';

-- name: job_has_runs
SELECT 1 FROM runs WHERE job_id = :job_id LIMIT 1;

-- name: jobs_with_history_after
-- The next job id that has runs: a cursor for retention that skips along the index.
SELECT min(job_id) FROM runs WHERE job_id > :after;

-- name: slots_served_ahead
SELECT slot_ms FROM runs WHERE job_id = :job_id AND slot_ms > :now_ms AND (kind = 'scheduled' OR mode = 'due');

-- name: run_of_one_shot
-- The run that has served the only slot of a job: its own, or one by hand that began after it.
SELECT state FROM runs
WHERE job_id = :job_id AND (
    (slot_ms = :at_ms AND (kind = 'scheduled' OR mode = 'due'))
    OR (kind = 'manual' AND slot_ms >= :at_ms AND slot_ms <= :now_ms AND started_ms IS NOT NULL)
)
LIMIT 1;

-- name: forget_surplus
-- More finished runs of one job than are kept.
UPDATE runs SET forget_ms = :now_ms
WHERE arrival IN (
    SELECT arrival FROM runs WHERE job_id = :job_id AND ended_ms IS NOT NULL AND forget_ms IS NULL
    ORDER BY arrival DESC LIMIT :limit OFFSET :keep
);

-- name: forget_old
-- Finished runs that are older than is kept, with their slots.
UPDATE runs SET forget_ms = :now_ms
WHERE arrival IN (
    SELECT arrival FROM runs WHERE ended_ms IS NOT NULL AND forget_ms IS NULL AND ended_ms < :before_ms
    ORDER BY ended_ms LIMIT :limit
)
RETURNING slot_ms;

-- name: forgotten_runs
SELECT run_id FROM runs WHERE forget_ms IS NOT NULL ORDER BY arrival LIMIT :limit;

-- name: delete_forgotten
-- Only after the launcher said that the directory is gone.
DELETE FROM runs WHERE run_id = :run_id AND forget_ms IS NOT NULL;

-- name: last_arrival
-- The newest arrival that was ever given out.
SELECT seq FROM sqlite_sequence WHERE name = 'runs';
