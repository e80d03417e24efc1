-- name: insert_job
-- A new job; its position is its place in the order of all jobs.
INSERT INTO jobs (job_id, name, declaration_key, enabled, schedule_kind, definition, revision, created_ms, updated_ms)
VALUES (:job_id, :name, :declaration_key, :enabled, :schedule_kind, :definition, :revision, :now_ms, :now_ms)
RETURNING position;

-- name: insert_job_state
-- The state that goes with insert_job.
INSERT INTO job_state (position, next_due_ms) VALUES (:position, :next_due_ms);

-- name: update_job
-- A new definition of an existing job.
UPDATE jobs
SET name = :name, enabled = :enabled, schedule_kind = :schedule_kind, definition = :definition,
    revision = :revision, updated_ms = :now_ms
WHERE position = :position;

-- name: delete_job
-- The job and, by cascade, its state. Its runs stay.
DELETE FROM jobs WHERE position = :position;

-- name: job_by_id
SELECT {job_columns}
FROM jobs j JOIN job_state s USING (position)
WHERE j.job_id = :job_id;

-- name: jobs_by_name
-- All jobs of that name, whatever its case; four are enough to say that it is ambiguous.
SELECT job_id, name FROM jobs WHERE name = :name COLLATE NOCASE ORDER BY position LIMIT 4;

-- name: job_by_declaration_key
SELECT job_id FROM jobs WHERE declaration_key = :declaration_key;

-- name: due_jobs
-- Jobs whose deadline has come, oldest first.
SELECT {job_columns}
FROM job_state s JOIN jobs j USING (position)
WHERE s.next_due_ms <= :now_ms
ORDER BY s.next_due_ms, s.position
LIMIT :limit;

-- name: jobs_without_deadline
-- Enabled jobs that should have one, unless their schedule has come to its end; flagged ones get a new chance.
SELECT {job_columns}
FROM job_state s JOIN jobs j USING (position)
WHERE s.next_due_ms IS NULL AND j.enabled = 1 AND j.schedule_kind != 'at';

-- name: jobs_after
-- For a walk over all jobs.
SELECT {job_columns}
FROM jobs j JOIN job_state s USING (position)
WHERE j.position > :position
ORDER BY j.position
LIMIT :limit;

-- name: next_deadline
SELECT min(next_due_ms) FROM job_state WHERE next_due_ms IS NOT NULL;

-- name: next_deadlines
-- The coming slots of all jobs.
SELECT j.job_id, j.name, s.next_due_ms
FROM job_state s JOIN jobs j USING (position)
WHERE s.next_due_ms IS NOT NULL
ORDER BY s.next_due_ms, s.position
LIMIT :limit;

-- name: set_deadline
-- A planned deadline clears what planning complained about before.
UPDATE job_state
SET next_due_ms = :next_due_ms, due_kind = :due_kind, due_slot_ms = :due_slot_ms, flag = NULL, schedule_errors = 0
WHERE position = :position;

-- name: activate_schedule
-- The schedule was edited: whatever a deadline stood for is over.
UPDATE job_state
SET next_due_ms = :next_due_ms, due_kind = 'slot', due_slot_ms = NULL, backoff_until_ms = NULL, flag = NULL,
    schedule_errors = 0, schedule_activated_ms = :now_ms,
    changed_while_active = max(changed_while_active, :while_active)
WHERE position = :position;

-- name: forget_failures
-- The job was enabled: it starts afresh.
UPDATE job_state
SET consecutive_errors = 0, schedule_errors = 0, auto_disabled = NULL, auto_disabled_ms = NULL
WHERE position = :position;

-- name: mark_auto_disabled
UPDATE job_state
SET next_due_ms = NULL, due_kind = 'slot', due_slot_ms = NULL, auto_disabled = :cause, auto_disabled_ms = :now_ms
WHERE position = :position;

-- name: consume_slot
-- The slot came while a run of the job was queued or active.
UPDATE job_state SET consumed_slots = consumed_slots + 1 WHERE position = :position;

-- name: flag_job
-- The job cannot be read or planned: it is not due any more, and says so.
UPDATE job_state
SET next_due_ms = NULL, due_kind = 'slot', due_slot_ms = NULL, flag = :flag, schedule_errors = schedule_errors + 1
WHERE position = :position;

-- name: record_run
-- What a terminal run leaves on its job.
UPDATE job_state
SET last_run_ms = :last_run_ms, last_duration_ms = :last_duration_ms, last_status = :last_status,
    last_reason = :last_reason, last_error = :last_error,
    consecutive_errors = :consecutive_errors, consecutive_skipped = :consecutive_skipped,
    next_due_ms = :next_due_ms, due_kind = :due_kind, due_slot_ms = :due_slot_ms, backoff_until_ms = :backoff_until_ms,
    changed_while_active = 0
WHERE position = :position;

-- name: count_jobs
SELECT count(*), coalesce(sum(enabled), 0) FROM jobs;

-- name: count_flagged
SELECT count(*) FROM job_state WHERE flag IS NOT NULL;

-- name: insert_change
INSERT INTO changes (at_ms, job_id, action, uid, pid, caller, detail)
VALUES (:at_ms, :job_id, :action, :uid, :pid, :caller, :detail);

-- name: prune_changes
-- Bounded: the newest rows are kept.
DELETE FROM changes WHERE change <= (SELECT max(change) FROM changes) - :keep;

-- name: insert_slot_decision
INSERT INTO slot_decisions (job_id, decision, slot_ms, until_ms, run_id, at_ms)
VALUES (:job_id, :decision, :slot_ms, :until_ms, :run_id, :at_ms);

-- name: extend_slot_decision
-- The newest row of the job, if it is the same decision for the same run.
UPDATE slot_decisions SET until_ms = :until_ms
WHERE position = (SELECT max(position) FROM slot_decisions WHERE job_id = :job_id)
  AND decision = :decision AND run_id = :run_id;

-- name: prune_slot_decisions_of_job
-- The newest are kept.
DELETE FROM slot_decisions
WHERE job_id = :job_id AND position <= (
    SELECT position FROM slot_decisions WHERE job_id = :job_id ORDER BY position DESC LIMIT 1 OFFSET :keep
);

-- name: prune_slot_decisions
-- Positions grow with time, so the old ones are the first.
DELETE FROM slot_decisions WHERE position IN (
    SELECT position FROM slot_decisions WHERE at_ms < :before_ms ORDER BY position LIMIT :limit
);
