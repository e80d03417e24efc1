-- name: job_columns
-- A job with its state, in the order of rows.JobRow. The definition as bytes: damage in it concerns its job only.
j.position, j.job_id, j.name, j.enabled, CAST(j.definition AS BLOB), j.revision, j.created_ms, j.updated_ms,
       s.next_due_ms, s.flag, s.last_run_ms, s.last_duration_ms, s.last_status, s.last_reason, s.last_error,
       s.consecutive_errors, s.consecutive_skipped, s.consumed_slots, s.schedule_errors,
       s.due_kind, s.due_slot_ms, s.backoff_until_ms, s.auto_disabled, s.auto_disabled_ms, s.schedule_activated_ms,
       s.changed_while_active;

-- name: run_columns
-- A run, in the order of rows.RunRow.
arrival, run_id, run_key, job_id, job_position, job_name, kind, mode, requester, slot_ms, requested_ms, state,
       reason, message, activated_ms, instance, epoch, boot_id, started_ms, ended_ms, outcome, late_outcome,
       cancel_by, cancel_why, cancel_ms;

-- name: job_filter
-- What a listing of jobs leaves out; a filter that is null or empty is off.
(:enabled IS NULL OR j.enabled = :enabled)
  AND (:kind IS NULL OR j.schedule_kind = :kind)
  AND (:status IS NULL OR coalesce(s.last_status, 'unknown') = :status)
  AND (:query = '' OR instr(lower(j.job_id || ' ' || j.name || ' ' || j.definition), :query) > 0);

-- name: run_filter
-- What a listing of runs leaves out; :live adds queued and active ones.
forget_ms IS NULL AND (:live OR ended_ms IS NOT NULL) AND (:status IS NULL OR state = :status)
  AND (:query = '' OR instr(lower(job_name || ' ' || run_id || ' ' || coalesce(message, '')), :query) > 0);
