#!/usr/bin/env bash
# Draws inputs for a reader, guided by the coverage of its code, until the time is over or something is found.
#   tests/fuzz/run.sh                                     lists the targets
#   tests/fuzz/run.sh TARGET [SECONDS] [LIBFUZZER-OPTION…]
# Any stable Rust and a C++ compiler will do. What is drawn is kept in target/fuzz/corpus/TARGET, findings in target/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# = 0 ]; then
  exec cargo run --quiet --package tailwater-fuzz
fi
target=$1 seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
host=$(rustc -vV | sed -n 's/^host: //p')
# What libFuzzer asks of the code: which edges are taken, and what is compared with what.
passes=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares)
RUSTFLAGS="--cfg fuzzing ${passes[*]}" cargo build --quiet --release --target "$host" \
  --manifest-path tests/fuzz/libfuzzer/Cargo.toml --target-dir target/fuzz
seeds=target/fuzz/seeds/$target own=target/fuzz/corpus/$target
cargo run --quiet --package tailwater-fuzz -- "$target" "$seeds"
mkdir -p "$own" target/fuzz/findings "tests/fuzz/corpus/$target"
export FUZZ_TARGET=$target
exec "target/fuzz/$host/release/tailwater-libfuzzer" "$own" "tests/fuzz/corpus/$target" "$seeds" -dict="$seeds.dict" \
  -max_total_time="$seconds" -timeout=10 -malloc_limit_mb=512 -rss_limit_mb=2048 -print_final_stats=1 \
  -artifact_prefix="target/fuzz/findings/$target-" "$@"
