-- The store's tables. They stay inside what DuckLake accepts: no primary keys and no unique
-- constraints; the transaction that inserts keeps (study, run_id) and (study, sha256) unique.

-- One row. Every writing transaction raises `changes`, so two that overlap conflict.
CREATE TABLE meta (
    schema_version INTEGER,
    store_id VARCHAR,
    changes BIGINT
);

-- `changed` is the value of meta.changes after the study's last change.
CREATE TABLE studies (
    study VARCHAR,
    created_at TIMESTAMP,
    changed BIGINT
);

-- A file that at least one run rests on. `redacted` is the kept document, zstd-compressed;
-- `runs` counts what the file reported. Times are UTC.
CREATE TABLE sources (
    study VARCHAR,
    sha256 VARCHAR,
    name VARCHAR,
    tool VARCHAR,
    tool_version VARCHAR,
    redacted BLOB,
    imported_at TIMESTAMP,
    imported_by VARCHAR,
    runs BIGINT
);

-- The fields of lib.run.Run, in its order. `started_at` is UTC where zone_known.
CREATE TABLE runs (
    run_id VARCHAR,
    source_sha256 VARCHAR,
    tool VARCHAR,
    tool_version VARCHAR,
    started_at TIMESTAMP,
    zone_known BOOLEAN,
    label VARCHAR,
    study VARCHAR,
    repeat BIGINT,
    block VARCHAR,
    target VARCHAR,
    target_revision VARCHAR,
    target_quantization VARCHAR,
    dataset VARCHAR,
    domain VARCHAR,
    input_len DOUBLE,
    output_len DOUBLE,
    temperature DOUBLE,
    top_p DOUBLE,
    seed BIGINT,
    engine VARCHAR,
    engine_version VARCHAR,
    build VARCHAR,
    max_num_seqs BIGINT,
    prefix_caching BOOLEAN,
    graph_max_batch BIGINT,
    spec_state VARCHAR,
    draft_method VARCHAR,
    draft_model VARCHAR,
    num_speculative_tokens BIGINT,
    schedule VARCHAR,
    draft_topk BIGINT,
    draft_tensor_parallel BIGINT,
    draft_max_positions BIGINT,
    gpu VARCHAR,
    gpu_count BIGINT,
    tensor_parallel BIGINT,
    data_parallel BIGINT,
    pipeline_parallel BIGINT,
    usd_per_hour DOUBLE,
    load_kind VARCHAR,
    offered_load DOUBLE,
    achieved_load DOUBLE,
    num_prompts BIGINT,
    completed BIGINT,
    failed BIGINT,
    duration_s DOUBLE,
    input_tokens BIGINT,
    output_tokens BIGINT,
    output_tps DOUBLE,
    output_tps_sd DOUBLE,
    output_tps_n BIGINT,
    request_rps DOUBLE,
    goodput_rps DOUBLE,
    slo VARCHAR,
    running_mean DOUBLE,
    ttft_ms_mean DOUBLE,
    ttft_ms_p50 DOUBLE,
    ttft_ms_p90 DOUBLE,
    ttft_ms_p95 DOUBLE,
    ttft_ms_p99 DOUBLE,
    tpot_ms_mean DOUBLE,
    tpot_ms_p50 DOUBLE,
    tpot_ms_p90 DOUBLE,
    tpot_ms_p95 DOUBLE,
    tpot_ms_p99 DOUBLE,
    itl_ms_mean DOUBLE,
    itl_ms_p50 DOUBLE,
    itl_ms_p90 DOUBLE,
    itl_ms_p95 DOUBLE,
    itl_ms_p99 DOUBLE,
    e2e_ms_mean DOUBLE,
    e2e_ms_p50 DOUBLE,
    e2e_ms_p90 DOUBLE,
    e2e_ms_p95 DOUBLE,
    e2e_ms_p99 DOUBLE,
    gpu_mem_gib DOUBLE,
    power_w DOUBLE,
    energy_j DOUBLE,
    multiplier DOUBLE,
    drafts BIGINT,
    draft_tokens BIGINT,
    accepted_tokens BIGINT,
    accepted_per_position BIGINT[],
    histogram BIGINT[],
    extra VARCHAR
);

-- One row a request, in run order: a study's rows lie together, which its aggregates rely on.
CREATE TABLE requests (
    study VARCHAR,
    run_id VARCHAR,
    arrival_s DOUBLE,
    input_tokens BIGINT,
    output_tokens BIGINT,
    ttft_ms DOUBLE,
    tpot_ms DOUBLE,
    e2e_ms DOUBLE,
    ok BOOLEAN
);
