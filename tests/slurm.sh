#!/bin/bash
# A sweep on a real Slurm, on one machine: workers are killed and requeued at random, and the store must be the same as one that
# was filled without a cluster. Needs root and Debian's slurm-wlm and munge, which are installed if they are missing.
#   tests/slurm.sh PATH-OF-TAILWATER [RUNS] [KILLS]
set -euo pipefail
tailwater=$(realpath "$1")
runs=${2:-200}
kills=${3:-20}
if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
    apt-get update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y slurm-wlm munge >/dev/null
fi
desk=$(mktemp -d)
chmod 755 "$desk"
export SLURM_CONF=$desk/slurm.conf
pids=()
finish() {
    scancel --quiet --me 2>/dev/null || true
    kill "${pids[@]}" 2>/dev/null || true
    # Whoever has not ended after ten seconds is made to.
    for _ in $(seq 100); do kill -0 "${pids[@]}" 2>/dev/null || break; sleep 0.1; done
    kill -9 "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$desk"
}
trap finish EXIT

host=$(hostname -s)
cores=$(nproc)
mkdir "$desk/munge" "$desk/state" "$desk/spool"
[ -f /etc/munge/munge.key ] || mungekey --create
chown -R munge: "$desk/munge" /etc/munge
chmod 700 "$desk/munge"
# Its socket is where Slurm looks for it; the folder must be everybody's to enter.
mkdir -p /run/munge && chown munge: /run/munge && chmod 755 /run/munge
# A stale munged of an earlier test would hold the socket; one that answers is used as it is.
if ! munge -n >/dev/null 2>&1; then
    setpriv --reuid=munge --regid=munge --clear-groups munged --foreground --force --syslog \
        --pid-file "$desk/munge/pid" --log-file "$desk/munge/log" --seed-file "$desk/munge/seed" >"$desk/munged.log" 2>&1 &
    pids+=($!)
fi
for _ in $(seq 100); do munge -n >/dev/null 2>&1 && break; sleep 0.1; done
munge -n >/dev/null || { echo "waited 10 s in vain: munged answers"; cat "$desk/munged.log"; exit 1; }
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
SlurmctldPidFile=$desk/slurmctld.pid
SlurmdPidFile=$desk/slurmd.pid
SlurmctldLogFile=$desk/slurmctld.log
SlurmdLogFile=$desk/slurmd.log
StateSaveLocation=$desk/state
SlurmdSpoolDir=$desk/spool
SlurmctldPort=16817
SlurmdPort=16818
SchedulerParameters=sched_interval=1,requeue_setup_env_fail,batch_sched_delay=0
KillWait=1
MaxArraySize=65
JobRequeue=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cores State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:2
CONF
slurmctld -D >/dev/null 2>&1 &
pids+=($!)
slurmd -D >/dev/null 2>&1 &
pids+=($!)
for _ in $(seq 100); do [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break; sleep 0.2; done
[ "$(sinfo -h -o %T)" = idle ] || { echo "waited 20 s in vain: Slurm's node is idle"; cat "$desk"/*.log; exit 1; }

cd "$desk"
cat >incast.toml <<TOML
name = "incast"
[topology]
kind = "star"
hosts = 9
[[incast]]
degree = 8
size = "2MB"
load = 0.5
duration = "8ms"
TOML
cat >sweep.toml <<TOML
scenario = "incast.toml"
schemes = ["dcqcn", "hpcc"]
seeds = $((runs / 4))
[grid]
"switch.buffer" = ["4MB", "8MB"]
TOML

"$tailwater" sweep sweep.toml --store alone --out alone-out --quiet
# Half an hour is many times what two hundred runs and twenty kills take.
timeout 1800 "$tailwater" sweep sweep.toml --store shared --out out --on slurm --tasks 16 --lease 2s --slurm "--time=10 --partition=main" >out.txt 2>follow.txt &
sweep=$!
pids+=($sweep)
killed=0
while [ "$killed" -lt "$kills" ] && kill -0 "$sweep" 2>/dev/null; do
    sleep $((RANDOM % 2)).$((RANDOM % 9 + 1))
    # What is put back in the queue is held there for two minutes, so that it is done less often.
    if [ $((RANDOM % 5)) = 0 ]; then
        # A task is put back in the queue, as preemption and the loss of a node do.
        task=$(squeue -h -t RUNNING -o %i --array | shuf -n 1)
        if [ -n "$task" ] && scontrol requeue "$task" 2>/dev/null; then killed=$((killed + 1)); fi
    else
        # A worker is killed in the middle of a run, as where memory runs out. Claims say who is at one.
        worker=$(cat shared/claims/* 2>/dev/null | sed -n 's/.*"process":\([0-9]*\).*/\1/p' | shuf -n 1 || true)
        if [ -n "$worker" ] && grep -qs "$desk" "/proc/$worker/cmdline" && kill -9 "$worker" 2>/dev/null; then
            killed=$((killed + 1))
        fi
    fi
done
status=0
wait "$sweep" || status=$?
[ "$status" != 124 ] || { echo "waited half an hour in vain: the sweep on Slurm is over"; squeue; }
[ "$status" = 0 ] || { cat follow.txt out/slurm/*.log; exit 1; }
"$tailwater" sweep status sweep.toml --store shared --out out
"$tailwater" sweep status sweep.toml --store shared --out out | grep -q "^$runs of $runs runs are there, 0 under way, 0 missing"
# Whatever a run cost is the only difference.
for store in alone shared; do
    find "$store" -name summary.json -exec python3 -c '
import json, sys
for name in sys.argv[1:]:
    summary = json.load(open(name))
    del summary["cost"]
    json.dump(summary, open(name, "w"))' {} +
    find "$store" -name SHA256SUMS -exec sed -i '/  summary\.json$/d' {} +
done
diff -r alone shared
for file in table.csv runs.parquet; do cmp "alone-out/$file" "out/$file"; done
[ "$killed" -ge "$kills" ] || echo "note: the sweep was over after $killed of $kills kills"
# A task tells of each run that it has finished: none was finished twice, so that only what was under way was repeated.
finished=$(cat out/slurm/*.log | grep -c "packet-hops/s" || true)
[ "$finished" -le "$runs" ] || { echo "$finished runs were finished for $runs results"; exit 1; }
echo "$runs runs on Slurm, $killed workers killed or requeued, $(grep -c submitted follow.txt) jobs: the store is the same"
