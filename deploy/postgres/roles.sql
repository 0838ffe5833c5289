-- Least privilege for a ledger on PostgreSQL. Run it in the ledger's database, as a superuser or as
-- the owner of its tables with CREATEROLE, after the first `tallybook migrate` and after every later
-- one; running it again changes nothing.
--
--   tallybook_worker    the pipeline: runs, daemon, sensors
--   tallybook_reviewer  the desk: decides reviews, and nothing else
--   tallybook_operator  both, and what is decided with a reason: settings, approvals, closing reports
--   tallybook_search    reads what is published, and nothing else
--
-- The owner of the tables alone migrates, erases, prunes, restores. None of the four can change or
-- delete a row of the journal, a disposition, a result, a delivery, or the content of an archive entry.
-- They cannot log in: grant them to the users that can, e.g. GRANT tallybook_reviewer TO ada.

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['worker', 'reviewer', 'operator', 'search'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tallybook_' || name) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', 'tallybook_' || name);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), 'tallybook_' || name);
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), 'tallybook_' || name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['worker', 'reviewer', 'operator'] LOOP
        -- Sets of rows are staged in temporary tables.
        EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I', current_database(), 'tallybook_' || name);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', current_schema(), 'tallybook_' || name);
        EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I', current_schema(), 'tallybook_' || name);
    END LOOP;
    EXECUTE format('GRANT INSERT ON ALL TABLES IN SCHEMA %I TO tallybook_worker', current_schema());
    -- PostgreSQL before 15 lets everybody make tables in the schema "public".
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
END $$;

-- The worker: everything that moves, never what is written once.
REVOKE INSERT ON
    ledger_info, alembic_version, operating_settings, approvals, report_closings,
    erasures, redactions, prunes, pruned_artifacts, backups
    FROM tallybook_worker;
GRANT UPDATE ON
    sources, snapshots, source_entries, scan_reads, source_events, parses, batches, canaries,
    intents, reservations, alerts, alert_deliveries, online_groups, record_state, dead_letters,
    late_answers, leases, outlet_deliveries, trace_marks, processing_versions, archive_heads,
    archive_changes, job_prices, canary_usage
    TO tallybook_worker;
GRANT DELETE ON
    scan_reads, exclusions, parses, reservations, archive_heads, archive_search, leases
    TO tallybook_worker;
GRANT UPDATE (valid_to, closed_by) ON archive_entries TO tallybook_worker, tallybook_reviewer;
-- A review is overtaken by a newer answer, and withdrawn with its document.
GRANT UPDATE (revision, decision, decided_at, reviewer, reason, assigned_to, taken_at, taken_by)
    ON reviews TO tallybook_worker;

-- The reviewer: reviews and what a decision does to records and to what is shown.
GRANT INSERT ON
    review_acts, accesses, moves, move_members, archive_changes, archive_heads, archive_search,
    outlet_deliveries
    TO tallybook_reviewer;
GRANT UPDATE (
    revision, assigned_to, taken_at, taken_by, decision, decided_at, reviewer, reason,
    corrected_digest, corrected_content
) ON reviews TO tallybook_reviewer;
GRANT UPDATE ON record_state, archive_heads, archive_changes, outlet_deliveries TO tallybook_reviewer;
GRANT DELETE ON archive_heads, archive_search TO tallybook_reviewer;

GRANT tallybook_worker, tallybook_reviewer TO tallybook_operator;
GRANT INSERT ON operating_settings, approvals, report_closings TO tallybook_operator;

-- Searching: what is visible, and what says which ledger it is.
GRANT SELECT ON
    ledger_info, alembic_version, sources, documents, processing_versions, archive_entries,
    archive_heads, archive_search
    TO tallybook_search;
