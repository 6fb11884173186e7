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
capture = "nics"
SCENARIO
# A packet that is captured at two places is there twice, and tshark would take its message apart for that.
for preset in pfc dcqcn hpcc bfc dcqcn+win+sfc; do
    for ports in nics hosts; do
        out=$work/$preset-$ports
        "$tailwater" run "$work/capture.toml" --set scheme.preset="$preset" --set measure.capture="$ports" --out "$out" \
            --no-report --quiet
        frames=$(tshark -r "$out/capture.pcapng" -T fields -e frame.number 2>/dev/null | wc -l)
        wrong=$(tshark -r "$out/capture.pcapng" -o eth.check_fcs:TRUE -o ip.check_checksum:TRUE \
            -Y '_ws.malformed || _ws.expert.severity >= 6291456 || eth.fcs.status == 0 || ip.checksum.status == 0' 2>/dev/null |
            head -5)
        if [ "$frames" -lt 600 ] || [ -n "$wrong" ]; then
            echo "$preset, $ports: $frames frames, and tshark objects to:" "$wrong" >&2
            exit 1
        fi
        echo "$preset, $ports: $frames frames"
    done
done
