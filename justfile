# What a developer runs. None of it is needed to build Ephor: plain cargo does that.

# The same folder that `.ci/run` uses, so that nothing is built twice.
export CARGO_TARGET_DIR := env('CARGO_TARGET_DIR', cache_directory() / 'ephor-target')

_default:
    @just --list --unsorted

# Everything CI checks. Writes nothing into the work tree
verify *STEPS:
    bash .ci/run {{ STEPS }}

# Format, and apply what clippy can apply
fix:
    cargo fmt --all
    if [ -f sandbox/guests/Cargo.toml ]; then cargo fmt --all --manifest-path sandbox/guests/Cargo.toml; fi
    cargo clippy --workspace --all-targets --release --fix --allow-dirty --allow-staged

# The tests, or those whose name holds FILTER
test *FILTER:
    cargo test --release --workspace {{ FILTER }}

# Build the built-in tools anew, and keep the components with their digests
guests:
    rustup target add wasm32-wasip2
    sandbox/guests/build.sh
    EPHOR_KEEP_DESCRIPTIONS=1 cargo test --release -p ephor-sandbox --test guests the_kept_descriptions

# Run the product: `just run run "Find my TODOs and summarize them"`
[no-cd]
[positional-arguments]
run *ARGUMENTS:
    cargo run --release --manifest-path "{{ justfile_directory() }}/Cargo.toml" -p ephor-node -- "$@"

# The documentation, as HTML, without a warning
docs: (verify "docs")

# Licences, bans, sources and, where their database can be reached, advisories
deny: (verify "tools" "deny")

# The long soak: kill -9 at POINTS random moments
kill9 POINTS='500':
    EPHOR_KILL9_POINTS={{ POINTS }} cargo test --release -p ephor-node --test kill9 -- --ignored --nocapture

# Any legal facts of any legal size in any order, SEQUENCES times: what was acknowledged reopens and verifies
legal-sequences SEQUENCES='100000':
    EPHOR_LEGAL_SEQUENCES={{ SEQUENCES }} cargo test --release -p ephor-chain --test it -- legal:: --ignored --nocapture

# Each parser of the chain, of the mesh and of patches under libFuzzer, SECONDS long. What it finds in the corpus stays outside the work tree
fuzz SECONDS='60':
    command -v cargo-fuzz >/dev/null || env -u CARGO_TARGET_DIR cargo install --locked cargo-fuzz@0.13.2
    cargo fuzz build --sanitizer none --target-dir "$CARGO_TARGET_DIR/fuzz"
    for target in $(cargo fuzz list); do \
        mkdir -p "$CARGO_TARGET_DIR/fuzz-corpus/$target"; \
        cargo fuzz run --sanitizer none --target-dir "$CARGO_TARGET_DIR/fuzz" "$target" \
            "$CARGO_TARGET_DIR/fuzz-corpus/$target" "fuzz/corpus/$target" -- \
            -max_total_time={{ SECONDS }} -timeout=20 -artifact_prefix="$CARGO_TARGET_DIR/fuzz-corpus/" || exit 1; \
    done

# The figures of the sandbox: compile, load, call, search, overrun of a deadline
bench-sandbox:
    cargo test --release -p ephor-sandbox --test figures -- --include-ignored --nocapture --test-threads 1

# Appends and verification, beside what the disk and the signers of this machine do in the same run
bench-chain:
    cargo bench -p ephor-chain --bench append --bench verify

# How long a proof takes in a log of ten million entries
bench-proof:
    cargo bench -p ephor-chain --bench proof

# Starts, restarts, storms and memory of processes, beside a real Erlang and ractor; `--only storm` prints one table
bench-kernel *ARGUMENTS:
    cargo bench -p ephor-kernel --bench runtime -- {{ ARGUMENTS }}

# How soon a run shows its first event, beside the start of the program alone
bench-start:
    cargo test --release -p ephor-node --test start -- --ignored --nocapture

# What each command costs on a home of 20,000 sessions: time, memory, sizes. The home is made once, in `EPHOR_LARGE` or below the target folder
bench-large:
    cargo test --release -p ephor-node --test large -- --ignored --nocapture

# Supervision against a real Erlang, in SCENARIOS random scenarios; `just diff-otp 1 --seed 91` replays one
diff-otp SCENARIOS='10000' *ARGUMENTS:
    EPHOR_REQUIRE_ERLANG=1 cargo test --release -p ephor-runtime --test otp -- --scenarios {{ SCENARIOS }} {{ ARGUMENTS }}

# The runtime of processes and their budgets in simulation, SEEDS times; `just sim 1 --seed 91` plays one and shows it
sim SEEDS='10000' *ARGUMENTS:
    cargo test --release -p ephor-kernel --test sim -- --seeds {{ SEEDS }} {{ ARGUMENTS }}

# Links, membership and delivery between nodes in simulation, SEEDS times
sim-mesh SEEDS='10000':
    EPHOR_MESH_SEEDS={{ SEEDS }} cargo test --release -p ephor-mesh --test sim -- --ignored --nocapture

# The figures of governance: a decision among 1,000 rules, provenance over 1 MB, memory over ten million decisions
bench-governance:
    cargo test --release -p ephor-governance --test figures -- --ignored --nocapture --test-threads 1

# The evidence about conduct: false alarms of honest histories, and the delay to detection of what drifts
bench-conduct:
    cargo test --release -p ephor-governance --test conduct -- --nocapture --test-threads 1

# Prompt injection: every attack in every task, with plans and without, in each environment
bench-injection:
    cargo test --release -p ephor-governance --test injection -- --include-ignored --nocapture --test-threads 1

# A million random cases: nothing that makes a case worse makes its verdict better
monotone:
    cargo test --release -p ephor-governance --test it -- --ignored --nocapture
