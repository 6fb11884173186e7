#!/bin/sh
# Runs schemes with captures and has tshark read every frame: all of them understood, none malformed, every checksum right.
# Usage: tests/capture.sh TAILWATER
set -eu
tailwater=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/capture.toml" <<'SCENARIO'
[topology]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 4
spines = 2

[switch]
buffer = "1MB"

[[incast]]
degree = 6
size_each = "100003B"
to = "h0"
count = 1

[measure]
capture = ["hosts", "nics", "switches"]
SCENARIO
for preset in pfc dcqcn hpcc bfc dcqcn+win+sfc; do
    "$tailwater" run "$work/capture.toml" --set scheme.preset="$preset" --out "$work/$preset" --no-report --quiet
    file=$work/$preset/capture.pcapng
    frames=$(tshark -r "$file" -T fields -e frame.number 2>/dev/null | wc -l)
    wrong=$(tshark -r "$file" -o eth.check_fcs:TRUE -o ip.check_checksum:TRUE \
        -Y '_ws.malformed || _ws.expert.severity >= 6291456 || eth.fcs.status == 0 || ip.checksum.status == 0' 2>/dev/null | head -5)
    if [ "$frames" -lt 1000 ] || [ -n "$wrong" ]; then
        echo "$preset: $frames frames, and tshark objects to:" "$wrong" >&2
        exit 1
    fi
    echo "$preset: $frames frames"
done
