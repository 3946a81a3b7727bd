BEGIN TRANSACTION;
CREATE TABLE outbox_decision (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    refund     BIGINT NOT NULL REFERENCES outbox_refund (id),
    attempt    INTEGER NOT NULL, -- the one that was decided about
    decided_at TEXT NOT NULL,
    who        TEXT NOT NULL,
    what       TEXT NOT NULL,
    note       TEXT NOT NULL
);
INSERT INTO "outbox_decision" VALUES(1,7,1,'2026-01-02T01:00:00.000Z','ann','not found','report 0011223344556677');
INSERT INTO "outbox_decision" VALUES(2,8,1,'2026-01-02T01:00:00.000Z','ann','resubmit','their word');
INSERT INTO "outbox_decision" VALUES(3,4,1,'2026-01-02T01:00:00.000Z','w','late response, after a decision','2xx ');
CREATE TABLE outbox_migration (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO "outbox_migration" VALUES(1,0,1,'2026-11-23 03:18:02');
INSERT INTO "outbox_migration" VALUES(2,1,1,'2026-11-23 03:18:02');
INSERT INTO "outbox_migration" VALUES(3,2,1,'2026-11-23 03:18:02');
INSERT INTO "outbox_migration" VALUES(4,3,1,'2026-11-23 03:18:02');
INSERT INTO "outbox_migration" VALUES(5,4,1,'2026-11-23 03:18:02');
CREATE TABLE outbox_pause (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    until  TEXT NOT NULL,
    reason TEXT NOT NULL
);
CREATE TABLE "outbox_refund" (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    account       TEXT NOT NULL,
    refund_id     TEXT NOT NULL,
    digest        TEXT NOT NULL, -- of the content: the same content is taken once
    content       TEXT NOT NULL, -- the record as JSON, as it is sent
    amount        BIGINT,
    currency      TEXT NOT NULL,
    enqueued_at   TEXT NOT NULL,
    state         TEXT NOT NULL DEFAULT 'pending'
                  CHECK (state IN ('pending', 'sending', 'accepted', 'rejected', 'unknown', 'absent')),
    attempts      INTEGER NOT NULL DEFAULT 0, -- times that it was marked as sending
    doubtful      INTEGER NOT NULL DEFAULT 0, -- the first attempt that may have been recorded; 0: none
    worker        TEXT NOT NULL DEFAULT '',   -- that marked it last
    first_sent_at TEXT NOT NULL DEFAULT '',   -- when it was marked first
    sent_at       TEXT NOT NULL DEFAULT '',   -- when it was marked last
    changed_at    TEXT NOT NULL,              -- when the state last changed
    asked_at      TEXT NOT NULL DEFAULT '',   -- when the resolver was last asked
    absent_until  TEXT NOT NULL DEFAULT '',   -- the time until which the report is complete that does not have it
    status_code   INTEGER NOT NULL DEFAULT 0, -- of the last response
    reason        TEXT NOT NULL DEFAULT '',   -- for a person
    message       TEXT NOT NULL DEFAULT '',   -- in the service's words; never printed
    request_id    TEXT NOT NULL DEFAULT '',   -- to quote to the service's operator
    UNIQUE (account, refund_id, digest)
);
INSERT INTO "outbox_refund" VALUES(1,'acct','p1','9be4b6418ab2821d297a245314e5977ec79e6a4a0a7c74481b00e69936477a33','{"refund_id":"p1","amount":1,"currency":"EUR"}',1,'EUR','2026-11-23T03:18:02.875Z','pending',0,0,'','','','2026-11-23T03:18:02.875Z','','',0,'','','');
INSERT INTO "outbox_refund" VALUES(2,'acct','p2','0212565e83e4eb7dd0ba431cf9772447c848d0c53278205792a23b7c9e3ba540','{"refund_id":"p2","amount":2,"currency":"EUR"}',2,'EUR','2026-11-23T03:18:02.875Z','pending',0,0,'','','','2026-11-23T03:18:02.875Z','','',0,'','','');
INSERT INTO "outbox_refund" VALUES(3,'acct','s1','687647a7769e2b48eb9fc9b4d0651fcf5cbea06cc854cd731ff0a1c8da657525','{"refund_id":"s1","amount":3,"currency":"EUR"}',3,'EUR','2026-11-23T03:18:02.875Z','sending',1,0,'host-1','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','','',0,'','','');
INSERT INTO "outbox_refund" VALUES(4,'acct','a1','d11694daf19e8825957aa3224528b5f79fed363493eea01a58fddf1bd728c5f2','{"refund_id":"a1","amount":4,"currency":"EUR"}',4,'EUR','2026-11-23T03:18:02.875Z','accepted',1,0,'host-1','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','','',200,'','','req_a');
INSERT INTO "outbox_refund" VALUES(5,'acct','r1','395c594d41f7d77985ea981bf4b83928d3a729a1c601ee29526653fe89388c33','{"refund_id":"r1","amount":5,"currency":"EUR"}',5,'EUR','2026-11-23T03:18:02.875Z','rejected',1,0,'host-1','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','','',422,'422 amount_too_high','too high','');
INSERT INTO "outbox_refund" VALUES(6,'acct','u1','5891d30515ea18ed9704e99451a3329278ccad380a62106193bdd1ff1bd8754b','{"refund_id":"u1","amount":6,"currency":"EUR"}',6,'EUR','2026-11-23T03:18:02.875Z','unknown',1,1,'host-1','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','','',0,'timeout','','');
INSERT INTO "outbox_refund" VALUES(7,'acct','b1','7dfb96b37cea5946253349d6824bf4c1753bd6801d133cb6ea9fe925d44acbaa','{"refund_id":"b1","amount":7,"currency":"EUR"}',7,'EUR','2026-11-23T03:18:02.875Z','absent',1,1,'host-1','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','','2026-01-02T00:00:00.000Z 0011223344556677',0,'timeout','','');
INSERT INTO "outbox_refund" VALUES(8,'acct','d1','3a222dad5eb734dc396cfb4ad83d608f5cff0cca26479c2be6b1a7e7446cea5d','{"refund_id":"d1","amount":8,"currency":"EUR","additional_data":{"metadata":{"n":12345678901234567890.10}}}',8,'EUR','2026-11-23T03:18:02.875Z','unknown',2,1,'host-1','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','2026-01-01T00:00:00.000Z','','',0,'422 x; an earlier attempt is in doubt','','');
CREATE TABLE river_client (
    id text PRIMARY KEY NOT NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    metadata blob NOT NULL DEFAULT (json('{}')),
    paused_at timestamp,
    updated_at timestamp NOT NULL,
    CONSTRAINT name_length CHECK (length(id) > 0 AND length(id) < 128)
);
CREATE TABLE river_client_queue (
    river_client_id text NOT NULL REFERENCES river_client (id) ON DELETE CASCADE,
    name text NOT NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    max_workers integer NOT NULL DEFAULT 0,
    metadata blob NOT NULL DEFAULT (json('{}')),
    num_jobs_completed integer NOT NULL DEFAULT 0,
    num_jobs_running integer NOT NULL DEFAULT 0,
    updated_at timestamp NOT NULL,
    PRIMARY KEY (river_client_id, name),
    CONSTRAINT name_length CHECK (length(name) > 0 AND length(name) < 128),
    CONSTRAINT num_jobs_completed_zero_or_positive CHECK (num_jobs_completed >= 0),
    CONSTRAINT num_jobs_running_zero_or_positive CHECK (num_jobs_running >= 0)
);
CREATE TABLE river_job (
    id integer PRIMARY KEY, -- SQLite makes this autoincrementing automatically
    args blob NOT NULL DEFAULT '{}',
    attempt integer NOT NULL DEFAULT 0,
    attempted_at timestamp,
    attempted_by blob, -- json
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    errors blob, -- json
    finalized_at timestamp,
    kind text NOT NULL,
    max_attempts integer NOT NULL,
    metadata blob NOT NULL DEFAULT (json('{}')),
    priority integer NOT NULL DEFAULT 1,
    queue text NOT NULL DEFAULT 'default',
    state text NOT NULL DEFAULT 'available',
    scheduled_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    tags blob NOT NULL DEFAULT (json('[]')),
    unique_key blob,
    unique_states integer,
    CONSTRAINT finalized_or_finalized_at_null CHECK (
        (finalized_at IS NULL AND state NOT IN ('cancelled', 'completed', 'discarded')) OR
        (finalized_at IS NOT NULL AND state IN ('cancelled', 'completed', 'discarded'))
    ),
    CONSTRAINT priority_in_range CHECK (priority >= 1 AND priority <= 4),
    CONSTRAINT queue_length CHECK (length(queue) > 0 AND length(queue) < 128),
    CONSTRAINT kind_length CHECK (length(kind) > 0 AND length(kind) < 128),
    CONSTRAINT state_valid CHECK (state IN ('available', 'cancelled', 'completed', 'discarded', 'pending', 'retryable', 'running', 'scheduled'))
);
INSERT INTO "river_job" VALUES(1,X'7B22726F77223A317D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
INSERT INTO "river_job" VALUES(2,X'7B22726F77223A327D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
INSERT INTO "river_job" VALUES(3,X'7B22726F77223A337D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
INSERT INTO "river_job" VALUES(4,X'7B22726F77223A347D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
INSERT INTO "river_job" VALUES(5,X'7B22726F77223A357D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
INSERT INTO "river_job" VALUES(6,X'7B22726F77223A367D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
INSERT INTO "river_job" VALUES(7,X'7B22726F77223A377D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
INSERT INTO "river_job" VALUES(8,X'7B22726F77223A387D',0,NULL,NULL,'2026-11-23 03:18:02.876',NULL,NULL,'outbox_submit_refund',10000,'{}',1,'outbox_refunds','available','2026-11-23 03:18:02.876','[]',NULL,NULL);
CREATE TABLE river_leader (
    elected_at timestamp NOT NULL,
    expires_at timestamp NOT NULL,
    leader_id text NOT NULL,
    name text PRIMARY KEY NOT NULL DEFAULT 'default' CHECK (name = 'default'),
    CONSTRAINT name_length CHECK (length(name) > 0 AND length(name) < 128),
    CONSTRAINT leader_id_length CHECK (length(leader_id) > 0 AND length(leader_id) < 128)
);
CREATE TABLE river_migration (
    line text NOT NULL,
    version integer NOT NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT line_length CHECK (length(line) > 0 AND length(line) < 128),
    CONSTRAINT version_gte_1 CHECK (version >= 1),
    PRIMARY KEY (line, version)
);
INSERT INTO "river_migration" VALUES('main',1,'2026-11-23 03:18:02');
INSERT INTO "river_migration" VALUES('main',2,'2026-11-23 03:18:02');
INSERT INTO "river_migration" VALUES('main',3,'2026-11-23 03:18:02');
INSERT INTO "river_migration" VALUES('main',4,'2026-11-23 03:18:02');
INSERT INTO "river_migration" VALUES('main',5,'2026-11-23 03:18:02');
INSERT INTO "river_migration" VALUES('main',6,'2026-11-23 03:18:02');
CREATE TABLE river_queue (
    name text PRIMARY KEY NOT NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    metadata blob NOT NULL DEFAULT (json('{}')),
    paused_at timestamp,
    updated_at timestamp NOT NULL
);
INSERT INTO river_queue VALUES('outbox_refunds','2026-11-23 03:18:07','{}','2026-11-23 03:18:07','2026-11-23 03:18:07');
INSERT INTO outbox_pause VALUES(1,'2026-11-23T03:18:08.000Z','429 slow_down');
CREATE INDEX river_job_kind ON river_job (kind);
CREATE INDEX river_job_state_and_finalized_at_index ON river_job (state, finalized_at) WHERE finalized_at IS NOT NULL;
CREATE INDEX river_job_prioritized_fetching_index ON river_job (state, queue, priority, scheduled_at, id);
CREATE UNIQUE INDEX river_job_unique_idx ON river_job (unique_key)
    WHERE unique_key IS NOT NULL
        AND unique_states IS NOT NULL
        AND CASE state
            WHEN 'available' THEN unique_states & (1 << 0)
            WHEN 'cancelled' THEN unique_states & (1 << 1)
            WHEN 'completed' THEN unique_states & (1 << 2)
            WHEN 'discarded' THEN unique_states & (1 << 3)
            WHEN 'pending'   THEN unique_states & (1 << 4)
            WHEN 'retryable' THEN unique_states & (1 << 5)
            WHEN 'running'   THEN unique_states & (1 << 6)
            WHEN 'scheduled' THEN unique_states & (1 << 7)
            ELSE 0
        END >= 1;
CREATE INDEX outbox_decision_refund ON outbox_decision (refund);
CREATE UNIQUE INDEX outbox_refund_in_flight ON outbox_refund (account, refund_id) WHERE state = 'sending';
CREATE INDEX outbox_refund_open ON outbox_refund (state, id) WHERE state <> 'accepted';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('outbox_migration',5);
INSERT INTO "sqlite_sequence" VALUES('outbox_refund',8);
INSERT INTO "sqlite_sequence" VALUES('outbox_decision',3);
COMMIT;
