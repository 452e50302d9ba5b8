-- The store's tables; those that are there already stay as they are. They are inside what DuckLake
-- accepts: no primary keys and no unique constraints; the transaction that inserts keeps (study,
-- run_id) in `runs`, (study, sha256) in `sources` and (study, import_id) in `imports` unique.

-- One row. Every writing transaction raises `changes`, so two that overlap conflict.
-- `request_keys` is the last key given to a set of requests.
CREATE TABLE IF NOT EXISTS meta (
    schema_version INTEGER,
    store_id VARCHAR,
    changes BIGINT,
    request_keys BIGINT
);

-- `changed` is the value of meta.changes after the study's last change.
CREATE TABLE IF NOT EXISTS studies (
    study VARCHAR,
    created_at TIMESTAMP,
    changed BIGINT
);

-- A file that at least one run, or past run, rests on. `redacted` is the kept document,
-- zstd-compressed; `runs` counts what the file reported, 0 for one that lay beside. Times are UTC.
CREATE TABLE IF NOT EXISTS sources (
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

-- The fields of lib.run.Run, in its order, then those of lib.results.versions.Version.
-- `started_at` is UTC where zone_known. `version` is the value of meta.changes after the change that
-- wrote the row, `stated` the fields that a person stated (NULL: not recorded), `carried`
-- those taken over from the run that this one replaced.
CREATE TABLE IF NOT EXISTS runs (
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
    token_count VARCHAR,
    retokenized_tokens BIGINT,
    output_tps DOUBLE,
    output_tps_sd DOUBLE,
    output_tps_n BIGINT,
    request_rps DOUBLE,
    goodput_rps DOUBLE,
    slo VARCHAR,
    running_mean DOUBLE,
    waiting_mean DOUBLE,
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
    accept_length DOUBLE,
    accept_rate DOUBLE,
    extra VARCHAR,
    version BIGINT,
    import_id VARCHAR,
    revises BOOLEAN,
    stated VARCHAR[],
    carried VARCHAR[],
    request_key BIGINT
);

-- Runs that a later import replaced.
CREATE TABLE IF NOT EXISTS past_runs (
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
    token_count VARCHAR,
    retokenized_tokens BIGINT,
    output_tps DOUBLE,
    output_tps_sd DOUBLE,
    output_tps_n BIGINT,
    request_rps DOUBLE,
    goodput_rps DOUBLE,
    slo VARCHAR,
    running_mean DOUBLE,
    waiting_mean DOUBLE,
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
    accept_length DOUBLE,
    accept_rate DOUBLE,
    extra VARCHAR,
    version BIGINT,
    import_id VARCHAR,
    revises BOOLEAN,
    stated VARCHAR[],
    carried VARCHAR[],
    request_key BIGINT,
    replaced_at TIMESTAMP
);

-- One row a request. A set's rows lie together and keys rise with time: the zones of a study's
-- requests are few, which its counts rely on. `drafts` are the verify rounds that had a draft,
-- `rejected_rounds` those that kept less than they drafted; accepted tokens exclude the bonus.
CREATE TABLE IF NOT EXISTS requests (
    request_key BIGINT,
    arrival_s DOUBLE,
    input_tokens BIGINT,
    output_tokens BIGINT,
    ttft_ms DOUBLE,
    tpot_ms DOUBLE,
    e2e_ms DOUBLE,
    ok BOOLEAN,
    drafts BIGINT,
    draft_tokens BIGINT,
    accepted_tokens BIGINT,
    rejected_rounds BIGINT
);

-- The requests of one run: how many, how many are ok, of how many that is unknown, and of how many
-- that are ok a latency is. `past` where the run's row names another set, or none.
CREATE TABLE IF NOT EXISTS request_sets (
    study VARCHAR,
    run_id VARCHAR,
    request_key BIGINT,
    past BOOLEAN,
    total BIGINT,
    ok BIGINT,
    ok_unknown BIGINT,
    ttft_ms_unknown BIGINT,
    tpot_ms_unknown BIGINT,
    e2e_ms_unknown BIGINT
);

-- Which files a run rests on, by the version that brought the file; `past` where that version
-- belongs to what was replaced.
CREATE TABLE IF NOT EXISTS run_files (
    study VARCHAR,
    run_id VARCHAR,
    sha256 VARCHAR,
    version BIGINT,
    past BOOLEAN
);

-- What a file alone knows about itself (run_id NULL) or about one of its runs.
CREATE TABLE IF NOT EXISTS flags (
    study VARCHAR,
    run_id VARCHAR,
    sha256 VARCHAR,
    code VARCHAR,
    severity VARCHAR,
    message VARCHAR
);

-- What can be taken back as one.
CREATE TABLE IF NOT EXISTS imports (
    study VARCHAR,
    import_id VARCHAR,
    imported_at TIMESTAMP,
    imported_by VARCHAR
);

-- Fields that a person chose for the leaves of a document: a JSON list and a JSON object.
CREATE TABLE IF NOT EXISTS mappings (
    signature VARCHAR,
    leaves VARCHAR,
    mapping VARCHAR,
    name VARCHAR,
    saved_at TIMESTAMP
);

-- What a probe measured on one machine, as the document that it wrote. Times are UTC.
CREATE TABLE IF NOT EXISTS probes (
    probe_id VARCHAR,
    taken_at TIMESTAMP,
    imported_at TIMESTAMP,
    imported_by VARCHAR,
    gpu VARCHAR,
    target VARCHAR,
    draft VARCHAR,
    document VARCHAR
);

-- Rates that a person typed, each version of each: none is updated or deleted. `usd_per_unit` is
-- what one unit of `currency` was worth on `converted_on`. Times are UTC.
CREATE TABLE IF NOT EXISTS rates (
    rate_id VARCHAR,
    version BIGINT,
    provider VARCHAR,
    gpu VARCHAR,
    term VARCHAR,
    price_per_gpu_hour DOUBLE,
    effective_date DATE,
    currency VARCHAR,
    usd_per_unit DOUBLE,
    converted_on DATE,
    item VARCHAR,
    source VARCHAR,
    note VARCHAR,
    withdrawn BOOLEAN,
    saved_by VARCHAR,
    saved_at TIMESTAMP
);

-- Scenarios, each save a version of its name: none is updated or deleted. `parameters` is a JSON
-- object in canonical form, `hash` that of it. Times are UTC.
CREATE TABLE IF NOT EXISTS scenarios (
    name VARCHAR,
    version BIGINT,
    parameters VARCHAR,
    hash VARCHAR,
    note VARCHAR,
    saved_by VARCHAR,
    saved_at TIMESTAMP
);

-- What a watched server's engines had counted at `at_s` (Unix time), one row a scrape an engine:
-- counters as they were read, gauges, and latency histograms, `_edges` in seconds as one text.
CREATE TABLE IF NOT EXISTS samples (
    endpoint VARCHAR,
    replica VARCHAR,
    engine VARCHAR,
    at_s DOUBLE,
    started_s DOUBLE,
    drafts BIGINT,
    draft_tokens BIGINT,
    accepted_tokens BIGINT,
    accepted_per_position BIGINT[],
    input_tokens BIGINT,
    output_tokens BIGINT,
    completed BIGINT,
    preemptions BIGINT,
    running DOUBLE,
    waiting DOUBLE,
    kv_use DOUBLE,
    tau DOUBLE,
    stated_tps DOUBLE,
    ttft_count BIGINT,
    ttft_sum_s DOUBLE,
    ttft_edges VARCHAR,
    ttft_counts BIGINT[],
    tpot_count BIGINT,
    tpot_sum_s DOUBLE,
    tpot_edges VARCHAR,
    tpot_counts BIGINT[],
    e2e_count BIGINT,
    e2e_sum_s DOUBLE,
    e2e_edges VARCHAR,
    e2e_counts BIGINT[]
);
