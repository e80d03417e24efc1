-- name: changes_of_job
SELECT at_ms, action, uid, caller, detail FROM changes WHERE job_id = :job_id ORDER BY change;

-- name: changes_of_service
-- Pauses and drains with their ends; the index holds them together.
SELECT at_ms, action, uid, caller, detail FROM changes WHERE job_id IS NULL ORDER BY change;

-- name: last_hold
-- The pause or drain that is in force, if one is.
SELECT at_ms, uid, caller FROM changes WHERE job_id IS NULL AND action = :action ORDER BY change DESC LIMIT 1;

-- name: removed_job
-- The job of that name that was removed last.
SELECT job_id FROM (
    SELECT change, job_id, CASE WHEN json_valid(detail) THEN json_extract(detail, '$.name') END AS name
    FROM (SELECT * FROM changes ORDER BY change DESC LIMIT :looked_at) WHERE action = 'removed'
)
WHERE name = :name COLLATE NOCASE ORDER BY change DESC LIMIT 1;

-- name: all_lives
SELECT started_ms, seen_ms, ended_ms FROM lives ORDER BY rowid;

-- name: decisions_about
-- What was decided about one slot of a job, newest first.
SELECT decision, slot_ms, until_ms, run_id, at_ms FROM slot_decisions
WHERE job_id = :job_id AND slot_ms <= :slot_ms AND until_ms >= :slot_ms
ORDER BY position DESC LIMIT 20;

-- name: runs_around
-- The runs at an instant, also one that was asked for by hand, and those of the schedule before it and after it.
SELECT {run_columns}
FROM runs
WHERE job_id = :job_id AND arrival IN (
    SELECT max(arrival) FROM runs WHERE job_id = :job_id AND (kind = 'scheduled' OR mode = 'due') AND slot_ms < :slot_ms
    UNION ALL
    SELECT max(arrival) FROM runs WHERE job_id = :job_id AND (kind = 'scheduled' OR mode = 'due') AND slot_ms = :slot_ms
    UNION ALL
    SELECT max(arrival) FROM runs WHERE job_id = :job_id AND kind = 'manual' AND slot_ms = :slot_ms
    UNION ALL
    SELECT min(arrival) FROM runs WHERE job_id = :job_id AND (kind = 'scheduled' OR mode = 'due') AND slot_ms > :slot_ms
)
ORDER BY kind = 'manual', arrival;

-- name: runs_within
-- The first slot with a run in a stretch of time.
SELECT min(slot_ms) FROM runs WHERE job_id = :job_id AND slot_ms >= :from_ms AND slot_ms < :until_ms;

-- name: surplus_run_of_job
-- Where retention cuts off what is too much, if it does.
SELECT slot_ms FROM runs WHERE job_id = :job_id ORDER BY arrival DESC LIMIT 1 OFFSET :keep;
