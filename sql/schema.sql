-- The catalog: one DuckDB file, written once by the stage `catalog`, opened read-only everywhere else.
CREATE TABLE tools (
    tool_id        VARCHAR NOT NULL,  -- identity across builds
    name           VARCHAR NOT NULL,  -- what a model calls; unique after case-folding
    source_name    VARCHAR NOT NULL,  -- what the source calls it
    provider       VARCHAR NOT NULL,
    service        VARCHAR NOT NULL,
    category       VARCHAR NOT NULL,
    title          VARCHAR NOT NULL,
    description    VARCHAR NOT NULL,  -- clean text: no HTML, no Markdown
    effect         VARCHAR NOT NULL,  -- read | create | update | delete | other
    http_method    VARCHAR NOT NULL,
    path           VARCHAR NOT NULL,
    parameters     VARCHAR NOT NULL USING COMPRESSION zstd,  -- JSON Schema 2020-12 of an object, bounded
    returns        VARCHAR USING COMPRESSION zstd,           -- JSON Schema 2020-12, bounded; null where the source does not say
    n_parameters   INTEGER NOT NULL,
    n_required     INTEGER NOT NULL,
    deprecated     BOOLEAN NOT NULL,
    source         VARCHAR NOT NULL,  -- e.g. pypi:botocore
    source_version VARCHAR NOT NULL,
    licence        VARCHAR NOT NULL,
    quality        DOUBLE NOT NULL    -- 0 … 1
);

-- One row a top-level parameter of a tool.
CREATE TABLE parameters (
    tool_id     VARCHAR NOT NULL,
    name        VARCHAR NOT NULL,
    type        VARCHAR NOT NULL,     -- string | integer | number | boolean | array | object | any
    required    BOOLEAN NOT NULL,
    description VARCHAR NOT NULL,
    format      VARCHAR,
    choices     VARCHAR               -- JSON array of the allowed values, null where free
);

-- One row a field of a tool's result, nested fields by dotted path, `[]` for the elements of an array.
CREATE TABLE fields (
    tool_id     VARCHAR NOT NULL,
    path        VARCHAR NOT NULL,
    name        VARCHAR NOT NULL,
    type        VARCHAR NOT NULL,
    description VARCHAR NOT NULL,
    format      VARCHAR
);

-- Which field of one tool's result can feed which parameter of another.
CREATE TABLE edges (
    producer   VARCHAR NOT NULL,      -- tool_id
    field      VARCHAR NOT NULL,      -- path in the producer's result
    consumer   VARCHAR NOT NULL,      -- tool_id
    parameter  VARCHAR NOT NULL,
    kind       VARCHAR NOT NULL,      -- how the producer comes by it: list | get | create | update | reference | world
    entity     VARCHAR NOT NULL,      -- what both hold, as in amazonaws.com/ec2:instance.id
    confidence DOUBLE NOT NULL        -- 0 … 1, by the rules that told the entity on both sides
);

-- Interfaces that were read but not taken in, and why.
CREATE TABLE quarantine (
    source      VARCHAR NOT NULL,
    source_name VARCHAR NOT NULL,
    provider    VARCHAR NOT NULL,
    service     VARCHAR NOT NULL,
    reason      VARCHAR NOT NULL,
    detail      VARCHAR NOT NULL
);

-- What made this file: sources with versions and checksums, counts, software versions. No times: same inputs, same rows.
CREATE TABLE build_info (
    key   VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);
