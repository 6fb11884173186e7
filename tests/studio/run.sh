#!/usr/bin/env bash
# The studio's page: its parts in Node, and the whole in a real Chromium, at ease and under load. Reports there, too. Installs what is missing.
#   tests/studio/run.sh target/debug/tailwater
# Screenshots are in tests/studio/shots.
set -euo pipefail
binary=$(realpath "${1:-target/debug/tailwater}")
cd "$(dirname "$0")"

missing=()
command -v node >/dev/null && command -v npm >/dev/null || missing+=(nodejs npm)
[ -n "${CHROMIUM:-}" ] || [ -x /usr/bin/chromium ] || missing+=(chromium)
# A clock that jumps; without it the studio is tested under a load all the same.
compgen -G "/usr/lib/*/faketime/libfaketime.so.1" >/dev/null || missing+=(faketime)
[ ${#missing[@]} -eq 0 ] || { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" fonts-dejavu-core; }
[ -d node_modules/playwright-core ] || npm ci

rm -rf shots
node --test --test-timeout=180000 unit.test.mjs
TAILWATER="$binary" node --test --test-timeout=900000 studio.test.mjs why.test.mjs report.test.mjs
TAILWATER="$binary" node load.mjs
