-- name: list_scheduled
-- Jobs with a deadline, in its order; :desc turns it. The filters are off when null or empty.
SELECT {job_columns}
FROM job_state s JOIN jobs j USING (position)
WHERE s.next_due_ms IS NOT NULL
  AND {job_filter}
ORDER BY s.next_due_ms, s.position
LIMIT :limit OFFSET :offset;

-- name: list_scheduled_desc
SELECT {job_columns}
FROM job_state s JOIN jobs j USING (position)
WHERE s.next_due_ms IS NOT NULL
  AND {job_filter}
ORDER BY s.next_due_ms DESC, s.position DESC
LIMIT :limit OFFSET :offset;

-- name: list_unscheduled
-- Jobs without a deadline come after all others, in either direction.
SELECT {job_columns}
FROM job_state s JOIN jobs j USING (position)
WHERE s.next_due_ms IS NULL
  AND {job_filter}
ORDER BY j.position
LIMIT :limit OFFSET :offset;

-- name: list_by_name
SELECT {job_columns}
FROM jobs j JOIN job_state s USING (position)
WHERE {job_filter}
ORDER BY CASE WHEN :desc THEN NULL ELSE j.name END COLLATE NOCASE, j.name COLLATE NOCASE DESC, j.job_id
LIMIT :limit OFFSET :offset;

-- name: list_by_updated
SELECT {job_columns}
FROM jobs j JOIN job_state s USING (position)
WHERE {job_filter}
ORDER BY CASE WHEN :desc THEN NULL ELSE j.updated_ms END, j.updated_ms DESC, j.job_id
LIMIT :limit OFFSET :offset;

-- name: count_listed
-- How many jobs the filters leave, with and without a deadline.
SELECT count(*), coalesce(sum(s.next_due_ms IS NOT NULL), 0)
FROM jobs j JOIN job_state s USING (position)
WHERE {job_filter};

-- name: list_runs
-- History, newest arrival first; :live adds queued and active runs.
SELECT {run_columns}
FROM runs
WHERE {run_filter}
ORDER BY arrival DESC
LIMIT :limit OFFSET :offset;

-- name: list_runs_asc
SELECT {run_columns}
FROM runs
WHERE {run_filter}
ORDER BY arrival
LIMIT :limit OFFSET :offset;

-- name: list_runs_of_job
SELECT {run_columns}
FROM runs
WHERE job_id = :job_id AND {run_filter}
ORDER BY arrival DESC
LIMIT :limit OFFSET :offset;

-- name: list_runs_of_job_asc
SELECT {run_columns}
FROM runs
WHERE job_id = :job_id AND {run_filter}
ORDER BY arrival
LIMIT :limit OFFSET :offset;

-- name: count_runs
SELECT count(*) FROM runs
WHERE (:job_id IS NULL OR job_id = :job_id) AND {run_filter};
