BEGIN TRANSACTION;
CREATE TABLE private_batches (name TEXT PRIMARY KEY, step INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "private_batches" VALUES('first',0);
INSERT INTO "private_batches" VALUES('second',1);
CREATE TABLE private_covered (
    person TEXT NOT NULL, event TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    PRIMARY KEY (person, event, first)
) WITHOUT ROWID;
CREATE TABLE private_people (person TEXT PRIMARY KEY, kept INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE private_places (place INTEGER PRIMARY KEY, visits INTEGER NOT NULL);
CREATE TABLE private_seen (
    person TEXT NOT NULL, event TEXT NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (person, event)
) WITHOUT ROWID;
CREATE TABLE private_visits (
    first INTEGER NOT NULL, last INTEGER NOT NULL, visits INTEGER NOT NULL, PRIMARY KEY (first, last)
) WITHOUT ROWID;
INSERT INTO "private_visits" VALUES(0,2,100);
INSERT INTO "private_visits" VALUES(1,3,1);
CREATE TABLE public_alarms (
    step INTEGER NOT NULL, place INTEGER NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (step, place)
) WITHOUT ROWID;
INSERT INTO "public_alarms" VALUES(0,0,100);
CREATE TABLE public_charge (id INTEGER PRIMARY KEY CHECK (id = 1), receipt TEXT);
INSERT INTO "public_charge" VALUES(1,'{"dataset": "town", "entry": 14, "hash": "4fd2c3f4fba7677327d3d3cdd6c4387c580cbc678a8995220f0ae8bed9894bfa"}');
CREATE TABLE public_monitor (
    id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, number TEXT NOT NULL, settings TEXT NOT NULL
);
INSERT INTO "public_monitor" VALUES(1,2,'db7fe41edd875cc9','{"kind": "place", "attribute": "visited", "place": "gym", "threshold": 5, "epsilon": "1", "window": 3, "unit": {"of": "visit", "person": null, "visits": null}, "step": 1, "clock": {"start": 0, "every": 1, "dates": false}, "columns": {"place": "visited", "person": null, "event": null, "time": "time"}, "names": "as rows", "policy_fingerprint": "62a0541f54e8ba2c6fcd977d9779d8dc", "policy": {"name": "town", "domain": {"visited": {"items": ["gym", "cafe", "park"]}}, "secrets": {"values": {"visited": [1]}}, "known": [], "presence": "public"}, "tacit": "0.1.0"}');
CREATE TABLE public_steps (step INTEGER PRIMARY KEY, replayed INTEGER NOT NULL);
INSERT INTO "public_steps" VALUES(0,0);
INSERT INTO "public_steps" VALUES(1,0);
INSERT INTO "public_steps" VALUES(2,0);
COMMIT;
PRAGMA application_id = 1952539501;
