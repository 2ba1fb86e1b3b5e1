-- The tables of a collection. `store.connection` makes them and refuses a file with any other.
--
-- A passage or an item keeps one row per text it ever had, and a grade belongs to two such texts:
-- after a change of a text only its cells are pending, and a restored text finds its grades again.
-- Columns `extra` hold JSON: what a file said beyond the other columns. In ranking, judgment, item,
-- bank_line and generation, subtopic 0 stands for the query as a whole.

-- Inputs.

-- `answerable` is 0 if the right response to a query is to abstain, NULL if nobody said so.

CREATE TABLE query (
    query INTEGER PRIMARY KEY,
    query_id TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL DEFAULT '',
    answerable INTEGER
) STRICT;

CREATE TABLE subtopic (
    subtopic INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES query,
    subtopic_id TEXT NOT NULL,
    text TEXT NOT NULL DEFAULT '',
    UNIQUE (query, subtopic_id)
) STRICT;

CREATE TABLE passage (
    passage INTEGER PRIMARY KEY,
    passage_id TEXT NOT NULL UNIQUE,
    version INTEGER REFERENCES passage_version,
    extra TEXT
) STRICT;

CREATE TABLE passage_version (
    version INTEGER PRIMARY KEY,
    passage INTEGER NOT NULL REFERENCES passage,
    title TEXT NOT NULL DEFAULT '',
    text TEXT NOT NULL,
    hash BLOB NOT NULL,
    UNIQUE (passage, hash)
) STRICT;

CREATE INDEX passage_version_by_hash ON passage_version (hash);

CREATE TABLE pool (
    pool INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES query,
    passage INTEGER NOT NULL REFERENCES passage,
    extra TEXT,
    UNIQUE (query, passage)
) STRICT;

CREATE TABLE system (
    system INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE ranking (
    ranking INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES query,
    subtopic INTEGER NOT NULL DEFAULT 0,
    system INTEGER NOT NULL REFERENCES system,
    passage INTEGER NOT NULL REFERENCES passage,
    rank INTEGER NOT NULL,
    score REAL NOT NULL,
    extra TEXT,
    UNIQUE (query, subtopic, system, passage)
) STRICT;

CREATE TABLE judgment (
    judgment INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES query,
    subtopic INTEGER NOT NULL DEFAULT 0,
    passage INTEGER NOT NULL REFERENCES passage,
    relevance INTEGER NOT NULL,
    extra TEXT,
    UNIQUE (query, subtopic, passage)
) STRICT;

-- The exam. `item_edit` is appended to and never changed, `item` caches the last edit. An item is
-- known by its query, bank, kind and id: a question and a nugget of one text are two items.
-- A split says which items of a bank are sealed, committed to as they were after `edit`.

CREATE TABLE bank (
    bank INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE bank_line (
    bank INTEGER NOT NULL REFERENCES bank,
    query INTEGER NOT NULL REFERENCES query,
    subtopic INTEGER NOT NULL DEFAULT 0,
    extra TEXT,
    PRIMARY KEY (bank, query, subtopic)
) STRICT, WITHOUT ROWID;

CREATE TABLE answer_key (
    answer_key INTEGER PRIMARY KEY,
    answers TEXT NOT NULL UNIQUE
) STRICT;

-- The key of items without known answers.
INSERT INTO answer_key VALUES (1, '[]');

CREATE TABLE item (
    item INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES query,
    bank INTEGER NOT NULL REFERENCES bank,
    subtopic INTEGER NOT NULL DEFAULT 0,
    item_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER REFERENCES item_version,
    weight REAL NOT NULL DEFAULT 1,
    answers TEXT NOT NULL DEFAULT '[]',
    active INTEGER NOT NULL DEFAULT 1,
    extra TEXT,
    answer_key INTEGER NOT NULL DEFAULT 1,
    UNIQUE (query, bank, kind, item_id)
) STRICT;

CREATE TABLE item_version (
    version INTEGER PRIMARY KEY,
    item INTEGER NOT NULL REFERENCES item,
    text TEXT,
    UNIQUE (item, text)
) STRICT;

CREATE TABLE item_edit (
    edit INTEGER PRIMARY KEY,
    item INTEGER NOT NULL REFERENCES item,
    operation TEXT NOT NULL,
    version INTEGER NOT NULL REFERENCES item_version,
    weight REAL NOT NULL,
    answers TEXT NOT NULL,
    active INTEGER NOT NULL,
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE TABLE split (
    split INTEGER PRIMARY KEY,
    bank INTEGER NOT NULL REFERENCES bank,
    share REAL NOT NULL,
    seed INTEGER NOT NULL,
    salt TEXT NOT NULL,
    commitment TEXT NOT NULL,
    edit INTEGER NOT NULL,
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE TABLE sealed (
    split INTEGER NOT NULL REFERENCES split,
    item INTEGER NOT NULL REFERENCES item,
    PRIMARY KEY (split, item)
) STRICT, WITHOUT ROWID;

CREATE INDEX item_with_key ON item (bank, kind) WHERE active AND answers <> '[]';

CREATE INDEX item_version_by_text ON item_version (text);

CREATE INDEX item_edit_of_item ON item_edit (item);

-- Replies of models that were asked for items (append-only), and the items among them that were
-- dropped or marked because they are like others.

CREATE TABLE generation (
    generation INTEGER PRIMARY KEY,
    bank INTEGER NOT NULL REFERENCES bank,
    query INTEGER NOT NULL REFERENCES query,
    subtopic INTEGER NOT NULL DEFAULT 0,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    prompt_hash TEXT NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    reply TEXT,
    items INTEGER NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX generation_of_query ON generation (bank, query, subtopic);

-- Grading. `grade.answer_key` is 0 where known answers played no part, otherwise the key of the
-- answers that the grade was made from. `grader.rules` says how replies are read where known answers
-- play a part ('{}': unknown), NULL for all other graders. `sheet` keeps what a workbench file said
-- of a passage's grades, and their order where it is not that of the items.

CREATE TABLE grader (
    grader INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    kind TEXT NOT NULL,
    lowest INTEGER NOT NULL,
    highest INTEGER NOT NULL,
    settings TEXT NOT NULL,
    rules TEXT
) STRICT;

CREATE TABLE grade (
    grader INTEGER NOT NULL REFERENCES grader,
    item_version INTEGER NOT NULL REFERENCES item_version,
    passage_version INTEGER NOT NULL REFERENCES passage_version,
    answer_key INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL,
    rating INTEGER,
    reply TEXT,
    rule TEXT NOT NULL DEFAULT '',
    confidence REAL,
    detail TEXT,
    PRIMARY KEY (grader, item_version, passage_version, answer_key),
    CHECK ((rating IS NULL) = (state <> 0))
) STRICT, WITHOUT ROWID;

CREATE TABLE sheet (
    sheet INTEGER PRIMARY KEY,
    query INTEGER NOT NULL REFERENCES query,
    passage INTEGER NOT NULL REFERENCES passage,
    grader INTEGER NOT NULL REFERENCES grader,
    items TEXT,
    extra TEXT,
    UNIQUE (query, passage, grader)
) STRICT;

-- Failed cells, which are few.
CREATE INDEX grade_without_rating ON grade (grader, item_version) WHERE state <> 0;

-- Which process grades which query now, and what each grading run took.

CREATE TABLE lease (
    grader INTEGER NOT NULL REFERENCES grader,
    query INTEGER NOT NULL REFERENCES query,
    owner TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (grader, query)
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    run INTEGER PRIMARY KEY,
    grader INTEGER NOT NULL REFERENCES grader,
    started TEXT NOT NULL,
    seconds REAL NOT NULL DEFAULT 0,
    asked INTEGER NOT NULL DEFAULT 0,
    cells INTEGER NOT NULL DEFAULT 0,
    tokens_read INTEGER NOT NULL DEFAULT 0,
    tokens_cached INTEGER NOT NULL DEFAULT 0,
    tokens_written INTEGER NOT NULL DEFAULT 0,
    detail TEXT,
    requests INTEGER NOT NULL DEFAULT 0,
    cost REAL
) STRICT;

-- Human decisions on cells (append-only), on a scale of ratings or (`verdict`) of yes and no.
-- `sample` names the drawn sample to which the cell belongs, if any.

CREATE TABLE decision (
    decision INTEGER PRIMARY KEY,
    item_version INTEGER NOT NULL REFERENCES item_version,
    passage_version INTEGER NOT NULL REFERENCES passage_version,
    rating INTEGER,
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    verdict INTEGER NOT NULL DEFAULT 0,
    blind INTEGER NOT NULL DEFAULT 0,
    adjudicates INTEGER NOT NULL DEFAULT 0,
    sample TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX decision_of_cell ON decision (item_version, passage_version);

-- Samples drawn for people to decide, with the probability of each unit, and judgments of drawn
-- passages (append-only). Plans that differ in their size alone share the `sample` of judgments.

CREATE TABLE sample_plan (
    plan INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    design TEXT NOT NULL,
    seed INTEGER NOT NULL,
    fold_seed INTEGER NOT NULL,
    expected REAL NOT NULL,
    unit TEXT NOT NULL,
    measure TEXT NOT NULL,
    k INTEGER NOT NULL,
    min_rating INTEGER NOT NULL,
    min_relevant INTEGER NOT NULL,
    grader TEXT NOT NULL,
    bank TEXT NOT NULL,
    kind TEXT NOT NULL,
    pool_hash TEXT NOT NULL,
    pool_size INTEGER NOT NULL,
    systems TEXT NOT NULL,
    author TEXT NOT NULL,
    at TEXT NOT NULL,
    formula INTEGER NOT NULL
) STRICT;

CREATE TABLE sample_unit (
    unit INTEGER PRIMARY KEY,
    plan INTEGER NOT NULL REFERENCES sample_plan,
    query_id TEXT NOT NULL,
    unit_id TEXT NOT NULL,
    pi REAL NOT NULL,
    UNIQUE (plan, query_id, unit_id),
    CHECK (pi > 0 AND pi <= 1)
) STRICT;

CREATE TABLE sample_judgment (
    judgment INTEGER PRIMARY KEY,
    sample TEXT NOT NULL,
    query INTEGER NOT NULL REFERENCES query,
    passage_version INTEGER NOT NULL REFERENCES passage_version,
    relevance INTEGER,
    author TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX sample_judgment_of ON sample_judgment (sample, query, passage_version);

-- Requests that were given to a provider together, recorded before they are sent. `remote` is the
-- id of the batch there. A request stays until its reply is a grade.

CREATE TABLE batch (
    batch INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    grader INTEGER NOT NULL REFERENCES grader,
    provider TEXT NOT NULL,
    server TEXT NOT NULL,
    remote TEXT,
    state TEXT NOT NULL,
    said TEXT NOT NULL DEFAULT '',
    requests INTEGER NOT NULL,
    answered INTEGER NOT NULL DEFAULT 0,
    worst REAL NOT NULL DEFAULT 0,
    at TEXT NOT NULL,
    expires TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE batch_request (
    request TEXT PRIMARY KEY,
    batch INTEGER NOT NULL REFERENCES batch,
    number INTEGER NOT NULL,
    reply TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX batch_request_of ON batch_request (batch);

-- Programs that use the exam as a service, with limits of what they may use (NULL: none) and what
-- they used. A request is recorded before it is answered. `split` is the sealed part that a system
-- was submitted to, and `ladder` the fingerprint of how it is scored. `report` is set if the answer
-- depended on the system: with its scores by query as a new best, without them as a failure.

CREATE TABLE client (
    client INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    rate INTEGER NOT NULL,
    most_requests INTEGER,
    most_cells INTEGER,
    requests INTEGER NOT NULL DEFAULT 0,
    cells INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1,
    at TEXT NOT NULL
) STRICT;

CREATE TABLE client_request (
    request INTEGER PRIMARY KEY,
    client INTEGER NOT NULL REFERENCES client,
    action TEXT NOT NULL,
    cells INTEGER NOT NULL,
    at TEXT NOT NULL,
    split INTEGER REFERENCES split,
    ladder TEXT,
    report REAL,
    scores TEXT
) STRICT;

CREATE INDEX client_request_of ON client_request (client, at);

CREATE INDEX client_request_sealed ON client_request (split, ladder) WHERE split IS NOT NULL;

-- What was done once, with the fingerprint of its input.

CREATE TABLE step (
    name TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Copies of rows in the form in which evaluation reads them (see `store.pages`). A change of a row
-- drops its pages.

CREATE TABLE query_page (
    query INTEGER PRIMARY KEY REFERENCES query,
    content BLOB NOT NULL
) STRICT;

CREATE TABLE grade_page (
    grader INTEGER NOT NULL REFERENCES grader ON DELETE CASCADE,
    query INTEGER NOT NULL REFERENCES query,
    content BLOB NOT NULL,
    PRIMARY KEY (grader, query)
) STRICT;

CREATE TRIGGER pool_insert AFTER INSERT ON pool WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (NEW.query); END;

CREATE TRIGGER pool_update AFTER UPDATE ON pool WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (OLD.query, NEW.query); END;

CREATE TRIGGER pool_delete AFTER DELETE ON pool WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (OLD.query); END;

CREATE TRIGGER ranking_insert AFTER INSERT ON ranking WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (NEW.query); END;

CREATE TRIGGER ranking_update AFTER UPDATE ON ranking WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (OLD.query, NEW.query); END;

CREATE TRIGGER ranking_delete AFTER DELETE ON ranking WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (OLD.query); END;

CREATE TRIGGER judgment_insert AFTER INSERT ON judgment WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (NEW.query); END;

CREATE TRIGGER judgment_update AFTER UPDATE ON judgment WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (OLD.query, NEW.query); END;

CREATE TRIGGER judgment_delete AFTER DELETE ON judgment WHEN EXISTS (SELECT 1 FROM query_page)
BEGIN DELETE FROM query_page WHERE query IN (OLD.query); END;

CREATE TRIGGER passage_delete AFTER DELETE ON passage
BEGIN DELETE FROM query_page; END;

CREATE TRIGGER passage_update AFTER UPDATE OF passage, passage_id, version ON passage
BEGIN DELETE FROM query_page; END;

CREATE TRIGGER grade_insert AFTER INSERT ON grade WHEN EXISTS (SELECT 1 FROM grade_page)
BEGIN DELETE FROM grade_page WHERE grader = NEW.grader AND query IN (SELECT i.query FROM item i
JOIN item_version v USING (item) WHERE v.version = NEW.item_version); END;

CREATE TRIGGER grade_update AFTER UPDATE ON grade WHEN EXISTS (SELECT 1 FROM grade_page)
BEGIN DELETE FROM grade_page WHERE grader IN (OLD.grader, NEW.grader) AND query IN (SELECT i.query FROM item i
JOIN item_version v USING (item) WHERE v.version IN (OLD.item_version, NEW.item_version)); END;

CREATE TRIGGER grade_delete AFTER DELETE ON grade WHEN EXISTS (SELECT 1 FROM grade_page)
BEGIN DELETE FROM grade_page WHERE grader = OLD.grader AND query IN (SELECT i.query FROM item i
JOIN item_version v USING (item) WHERE v.version = OLD.item_version); END;

-- The rows of every other table, pages apart, and the sum of their checksums (see `store.sql`).

CREATE TABLE checksum (
    name TEXT PRIMARY KEY,
    rows INTEGER NOT NULL,
    total INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
