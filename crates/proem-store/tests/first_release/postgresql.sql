-- A database that proem 0.1.0 filled, by pg_dump.
CREATE FUNCTION proem_epoch_uses() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO '$user', 'public'
    AS $$
    DECLARE
        used text[];
    BEGIN
        SELECT array_agg(DISTINCT digest) INTO used FROM (
            SELECT NEW.description AS digest UNION ALL SELECT NEW.request UNION ALL
            SELECT part[1] FROM regexp_matches(NEW.texts, '[0-9a-f]{64}', 'g') AS part
        ) AS every;
        PERFORM 1 FROM proem_doomed WHERE digest = ANY (used) ORDER BY digest FOR UPDATE;
        IF FOUND THEN
            DELETE FROM proem_doomed WHERE digest = ANY (used);
        END IF;
        IF (SELECT count(*) FROM proem_blob WHERE digest = ANY (used)) < cardinality(used) THEN
            RAISE EXCEPTION 'a text of the epoch was removed a moment ago'
                USING ERRCODE = 'serialization_failure';
        END IF;
        RETURN NULL;
    END
    $$;
CREATE TABLE proem_blob (
    digest text NOT NULL,
    bytes bytea NOT NULL
);
CREATE TABLE proem_call (
    conversation text NOT NULL,
    number bigint NOT NULL,
    record text NOT NULL
);
CREATE TABLE proem_compaction (
    token text NOT NULL,
    conversation text NOT NULL,
    epoch bigint NOT NULL,
    rebuilt text,
    request text NOT NULL,
    expires_at bigint NOT NULL,
    opened bigint
);
CREATE TABLE proem_conversation (
    id text NOT NULL,
    epoch bigint NOT NULL,
    began_at bigint NOT NULL,
    opened_at bigint NOT NULL,
    cwd text NOT NULL
);
CREATE TABLE proem_doomed (
    digest text NOT NULL,
    run text NOT NULL
);
CREATE TABLE proem_epoch (
    conversation text NOT NULL,
    number bigint NOT NULL,
    reason text NOT NULL,
    digest text NOT NULL,
    fingerprint text NOT NULL,
    profile text NOT NULL,
    engine text NOT NULL,
    cwd text NOT NULL,
    model text,
    has_turn boolean NOT NULL,
    opened_at bigint NOT NULL,
    texts text NOT NULL,
    description text NOT NULL,
    request text NOT NULL,
    seal text
);
CREATE TABLE proem_prune (
    name text NOT NULL,
    bytes bytea NOT NULL
);
CREATE TABLE proem_schema (
    version integer NOT NULL
);
CREATE TABLE proem_template (
    version bigint NOT NULL,
    text text NOT NULL,
    author text,
    written_at bigint NOT NULL,
    seal text
);
INSERT INTO proem_blob VALUES ('4e6b54df68c07d0520ce179895008f245f696fafc0a81f31e877d7ff86767335', '\x7b2270726f66696c65223a2274656d706c617465222c22637764223a222f222c226d6f64656c223a22636c617564652d6f7075732d35222c22686f7374223a7b7d7d');
INSERT INTO proem_blob VALUES ('bac23c0f1d2f2c7f5d01ed1cca12a25dc6b14f254505d05b3103eb98ab856baf', '\x596f7520616e737765722062726965666c792e');
INSERT INTO proem_blob VALUES ('d98d44c177d32fb756df81cdc3707fa9df5bf92d6d90874f257437f08ce40ba0', '\x7b2276657273696f6e223a312c2270726f66696c65223a2274656d706c617465222c2273656374696f6e73223a5b7b226964223a2262617365222c2263617272696572223a2273797374656d222c227374617274223a302c22656e64223a31392c2273746162696c697479223a2273657373696f6e222c2261636365707473223a2273657373696f6e222c22736f75726365223a7b226b696e64223a2272657175657374222c226669656c64223a2274656d706c617465222c226174223a6e756c6c7d7d5d2c227370616e73223a7b2273797374656d223a5b7b227374617274223a302c22656e64223a31392c2273746162696c697479223a2273657373696f6e222c22736f75726365223a7b226b696e64223a2272657175657374222c226669656c64223a2274656d706c617465222c226174223a5b312c315d7d7d5d7d2c226e6f746573223a5b5d2c22636f6e73696465726564223a5b5d7d');
INSERT INTO proem_blob VALUES ('d678e32482991987c9bc4a61b496cb75dd095e485ed69c7239ae625fcb8db1dc', '\x596f7520616e73776572206174206c656e6774682e');
INSERT INTO proem_blob VALUES ('f37cc9328564a8508f3c3bf37a4d729fbbaea7ea9e61d9cf52fd64ee02866f1f', '\x7b2276657273696f6e223a312c2270726f66696c65223a2274656d706c617465222c2273656374696f6e73223a5b7b226964223a2262617365222c2263617272696572223a2273797374656d222c227374617274223a302c22656e64223a32312c2273746162696c697479223a2273657373696f6e222c2261636365707473223a2273657373696f6e222c22736f75726365223a7b226b696e64223a2272657175657374222c226669656c64223a2274656d706c617465222c226174223a6e756c6c7d7d5d2c227370616e73223a7b2273797374656d223a5b7b227374617274223a302c22656e64223a32312c2273746162696c697479223a2273657373696f6e222c22736f75726365223a7b226b696e64223a2272657175657374222c226669656c64223a2274656d706c617465222c226174223a5b312c315d7d7d5d7d2c226e6f746573223a5b5d2c22636f6e73696465726564223a5b5d7d');
INSERT INTO proem_blob VALUES ('8fd573fa00e368909dff152d25aa0497330fbb3c1f6d6570ff33e7ea6236b8c6', '\x596f7520616e7377657220696e2076657273652e');
INSERT INTO proem_blob VALUES ('a2a6d2e0aaa3fc9ef8ef8820915e978d3d21b86c12351d9b0f7bc53945157bf3', '\x7b2276657273696f6e223a312c2270726f66696c65223a2274656d706c617465222c2273656374696f6e73223a5b7b226964223a2262617365222c2263617272696572223a2273797374656d222c227374617274223a302c22656e64223a32302c2273746162696c697479223a2273657373696f6e222c2261636365707473223a2273657373696f6e222c22736f75726365223a7b226b696e64223a2272657175657374222c226669656c64223a2274656d706c617465222c226174223a6e756c6c7d7d5d2c227370616e73223a7b2273797374656d223a5b7b227374617274223a302c22656e64223a32302c2273746162696c697479223a2273657373696f6e222c22736f75726365223a7b226b696e64223a2272657175657374222c226669656c64223a2274656d706c617465222c226174223a5b312c315d7d7d5d7d2c226e6f746573223a5b5d2c22636f6e73696465726564223a5b5d7d');
INSERT INTO proem_blob VALUES ('df7166f0ff064ab7bf29ceade9c4783503906da4468c8a42d2e81e6c589f7dcd', '\x7b2270726f66696c65223a2274656d706c617465222c22637764223a222f222c22746f6f6c73223a5b7b226e616d65223a2272656164227d5d2c2274656d706c617465223a22596f7520616e7377657220696e2076657273652e222c22686f7374223a7b7d7d');
INSERT INTO proem_call VALUES ('c', 1, '{"epoch":2,"at":1795021718756,"provider":"anthropic","model":"claude-opus-5","usage":{"input":5009,"read":0,"written":5000},"is_compared":false}');
INSERT INTO proem_compaction VALUES ('8430e9edf265c948cff980adf1bc8da1', 'c', 1, NULL, '{"profile":"template","cwd":"/","model":"claude-opus-5","host":{}}', 1795022618731, 2);
INSERT INTO proem_compaction VALUES ('c0c76c836ba5867c9fb5f6db6aeebb56', 'd', 1, '{"kind":"epoch","conversation":"d","number":2,"reason":"compaction","digest":"8fd573fa00e368909dff152d25aa0497330fbb3c1f6d6570ff33e7ea6236b8c6","fingerprint":"4d05c3cd297f4593b69e1a8ce394b101e128ce41cef1b883747337a01737ef75","profile":"template","engine":"0.1.0","cwd":"/","model":null,"has_turn":false,"opened_at":1795021718786,"texts":{"system":"You answer in verse."},"description":"{\"version\":1,\"profile\":\"template\",\"sections\":[{\"id\":\"base\",\"carrier\":\"system\",\"start\":0,\"end\":20,\"stability\":\"session\",\"accepts\":\"session\",\"source\":{\"kind\":\"request\",\"field\":\"template\",\"at\":null}}],\"spans\":{\"system\":[{\"start\":0,\"end\":20,\"stability\":\"session\",\"source\":{\"kind\":\"request\",\"field\":\"template\",\"at\":[1,1]}}]},\"notes\":[],\"considered\":[]}","request":"{\"profile\":\"template\",\"cwd\":\"/\",\"tools\":[{\"name\":\"read\"}],\"template\":\"You answer in verse.\",\"host\":{}}"}', '{"profile":"template","cwd":"/","tools":[{"name":"read"}],"template":"You answer in verse.","host":{}}', 1795022618786, NULL);
INSERT INTO proem_conversation VALUES ('c', 2, 1795021718702, 1795021718731, '/');
INSERT INTO proem_conversation VALUES ('d', 1, 1795021718770, 1795021718770, '/');
INSERT INTO proem_epoch VALUES ('c', 1, 'startup', 'bac23c0f1d2f2c7f5d01ed1cca12a25dc6b14f254505d05b3103eb98ab856baf', '90891f295a4699c8bff81c62521652ec24b3ea53e02657dacc8f43a60d0353de', 'template', '0.1.0', '/', 'claude-opus-5', false, 1795021718702, '{"system":"bac23c0f1d2f2c7f5d01ed1cca12a25dc6b14f254505d05b3103eb98ab856baf"}', 'd98d44c177d32fb756df81cdc3707fa9df5bf92d6d90874f257437f08ce40ba0', '4e6b54df68c07d0520ce179895008f245f696fafc0a81f31e877d7ff86767335', '2c525a3cc2a9b7d25e8582c7d80cad0ed44b9bc3a49aeec90436f6f64ba58b92');
INSERT INTO proem_epoch VALUES ('c', 2, 'compaction', 'd678e32482991987c9bc4a61b496cb75dd095e485ed69c7239ae625fcb8db1dc', '502261d6a20139461352de18478f4feaa90da4a15f06f573c45589cc8c2bcf58', 'template', '0.1.0', '/', 'claude-opus-5', false, 1795021718731, '{"system":"d678e32482991987c9bc4a61b496cb75dd095e485ed69c7239ae625fcb8db1dc"}', 'f37cc9328564a8508f3c3bf37a4d729fbbaea7ea9e61d9cf52fd64ee02866f1f', '4e6b54df68c07d0520ce179895008f245f696fafc0a81f31e877d7ff86767335', '1b0e356491157b1d0d29311946afd6066180a9654ab6140e83eae204326fe203');
INSERT INTO proem_epoch VALUES ('d', 1, 'startup', '8fd573fa00e368909dff152d25aa0497330fbb3c1f6d6570ff33e7ea6236b8c6', '4d05c3cd297f4593b69e1a8ce394b101e128ce41cef1b883747337a01737ef75', 'template', '0.1.0', '/', NULL, false, 1795021718770, '{"system":"8fd573fa00e368909dff152d25aa0497330fbb3c1f6d6570ff33e7ea6236b8c6"}', 'a2a6d2e0aaa3fc9ef8ef8820915e978d3d21b86c12351d9b0f7bc53945157bf3', 'df7166f0ff064ab7bf29ceade9c4783503906da4468c8a42d2e81e6c589f7dcd', '023090daa0ec8d7549b6daadc7af45437bab1c27636fac2b51fd5fa6c7634e80');
INSERT INTO proem_schema VALUES (1);
INSERT INTO proem_schema VALUES (2);
INSERT INTO proem_schema VALUES (3);
INSERT INTO proem_schema VALUES (4);
INSERT INTO proem_template VALUES (1, 'You answer briefly.', NULL, 1795021718687, '1fe620efcd2d5fcdec115a5110de79aac6ed63da156e7e6c920740e1cf502b11');
INSERT INTO proem_template VALUES (2, 'You answer at length.', NULL, 1795021718717, '2dc1d004fa7660564da55327cce9a3f42e2423a7dddc2d0e9326525f6c246b58');
ALTER TABLE ONLY proem_blob
    ADD CONSTRAINT proem_blob_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY proem_call
    ADD CONSTRAINT proem_call_pkey PRIMARY KEY (conversation, number);
ALTER TABLE ONLY proem_compaction
    ADD CONSTRAINT proem_compaction_pkey PRIMARY KEY (token);
ALTER TABLE ONLY proem_conversation
    ADD CONSTRAINT proem_conversation_pkey PRIMARY KEY (id);
ALTER TABLE ONLY proem_doomed
    ADD CONSTRAINT proem_doomed_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY proem_epoch
    ADD CONSTRAINT proem_epoch_pkey PRIMARY KEY (conversation, number);
ALTER TABLE ONLY proem_prune
    ADD CONSTRAINT proem_prune_pkey PRIMARY KEY (name);
ALTER TABLE ONLY proem_template
    ADD CONSTRAINT proem_template_pkey PRIMARY KEY (version);
CREATE INDEX proem_conversation_by_time ON proem_conversation USING btree (opened_at, id);
CREATE TRIGGER proem_epoch_uses AFTER INSERT ON proem_epoch FOR EACH ROW EXECUTE FUNCTION proem_epoch_uses();
