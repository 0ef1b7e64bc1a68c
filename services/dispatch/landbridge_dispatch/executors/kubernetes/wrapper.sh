#!/bin/sh
# Stands before every workload of a cluster: takes the slot and checks the lease at the true start, holds the timers,
# stops the workload by its policy, and leaves what it saw as the container's termination message.
# POSIX sh, times in hundredths of a second of the node's boot clock. Arguments: the workload's command.

KEEPER=$LANDBRIDGE_WRAPPER_KEEPER TOKEN=$LANDBRIDGE_WRAPPER_TOKEN MESSAGE=$LANDBRIDGE_WRAPPER_MESSAGE
START_WAIT=$LANDBRIDGE_WRAPPER_START_WAIT TIMEOUT=$LANDBRIDGE_WRAPPER_TIMEOUT GRACE=$LANDBRIDGE_WRAPPER_GRACE
POLICY=$LANDBRIDGE_WRAPPER_POLICY WITHIN=$LANDBRIDGE_WRAPPER_WITHIN LOSS_GRACE=$LANDBRIDGE_WRAPPER_LOSS_GRACE
OUTPUTS=$LANDBRIDGE_WRAPPER_OUTPUTS METRICS=$LANDBRIDGE_WRAPPER_METRICS UPTIME=${LANDBRIDGE_WRAPPER_UPTIME:-/proc/uptime}
CARRIER=${LANDBRIDGE_WRAPPER_CARRIER:-} CARRIER_WAIT=${LANDBRIDGE_WRAPPER_CARRIER_WAIT:-0}
unset LANDBRIDGE_WRAPPER_KEEPER LANDBRIDGE_WRAPPER_TOKEN LANDBRIDGE_WRAPPER_MESSAGE LANDBRIDGE_WRAPPER_START_WAIT \
  LANDBRIDGE_WRAPPER_TIMEOUT LANDBRIDGE_WRAPPER_GRACE LANDBRIDGE_WRAPPER_POLICY LANDBRIDGE_WRAPPER_WITHIN \
  LANDBRIDGE_WRAPPER_LOSS_GRACE LANDBRIDGE_WRAPPER_OUTPUTS LANDBRIDGE_WRAPPER_METRICS LANDBRIDGE_WRAPPER_UPTIME \
  LANDBRIDGE_WRAPPER_CARRIER LANDBRIDGE_WRAPPER_CARRIER_WAIT
# Tools beside the shell, for images that have none; behind the image's own.
[ -z "${LANDBRIDGE_WRAPPER_TOOLS:-}" ] || PATH=${PATH:+$PATH:}$LANDBRIDGE_WRAPPER_TOOLS
unset LANDBRIDGE_WRAPPER_TOOLS
case $POLICY in checkpoint-then-stop|stop-after-grace) STOPS_ITSELF=1 ;; *) STOPS_ITSELF='' ;; esac
PRIVATE=$HOME/.landbridge
STATE=$PRIVATE/wrapper
NOT_STARTED=78
CHILD=''

clock() {
  read -r up _ <"$UPTIME"
  now=${up%.*}${up#*.}
}

# Leave word of a workload that never ran: reason, then text.
unstarted() {
  printf 'not-started %s %s\n' "$1" "$2" >"$MESSAGE"
  exit $NOT_STARTED
}

find_client() {
  LIMIT=''
  command -v timeout >/dev/null 2>&1 && LIMIT='timeout 15'
  for CLIENT in curl wget python3 bash; do
    command -v $CLIENT >/dev/null 2>&1 && return
  done
  unstarted image-not-wrappable 'the image has neither curl, wget, python3 nor bash to ask the lease keeper with'
}

# Ask the keeper; `answer` is its line, empty where it cannot be reached. A slow answer does no harm: the lease that it
# tells counts from when it was asked for, and the timers run apart from it.
ask() {
  read -r token <"$TOKEN" || [ -n "$token" ] || token=''
  url=$KEEPER$1
  case $CLIENT in
    curl) answer=$($LIMIT curl -fsS -m 10 -H "Authorization: Bearer $token" "$url" 2>/dev/null) ;;
    wget) answer=$($LIMIT wget -q -T 10 -O - --header "Authorization: Bearer $token" "$url" 2>/dev/null) ;;
    python3)
      answer=$(URL=$url TOKEN=$token $LIMIT python3 -S -c 'import os, urllib.request as u
r = u.Request(os.environ["URL"], headers={"Authorization": "Bearer " + os.environ["TOKEN"]})
print(u.build_opener(u.ProxyHandler({})).open(r, timeout=10).read().decode())' 2>/dev/null) ;;
    bash)
      answer=$(URL=$url TOKEN=$token $LIMIT bash -c 'rest=${URL#http://} host=${rest%%/*}
exec 3<>"/dev/tcp/${host%%:*}/${host##*:}" || exit 1
printf "GET /%s HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n" "${rest#*/}" "$host" "$TOKEN" >&3
read -r _ status _ <&3 && [ "$status" = 200 ] || exit 1
while read -r line <&3 && [ "$line" != $(printf "\r") ]; do :; done
cat <&3' 2>/dev/null) ;;
  esac
}

# Return once the keeper allows the start; LEASE is then the lease's end.
await_start() {
  clock
  deadline=$((now + START_WAIT))
  while :; do
    clock
    sent=$now
    ask "/v1/start?state=waiting"
    case $answer in
      start\ *)
        LEASE=$((sent + ${answer#start } / 10))
        clock
        # True start: a lease that ended while the answer travelled is no lease.
        [ "$now" -lt "$LEASE" ] && return ;;
      hold*)
        # The others of a gang are not there yet: the keeper says when that has taken too long.
        deadline=$((now + START_WAIT)) ;;
      never\ *)
        rest=${answer#never }
        unstarted "${rest%% *}" "${rest#* }" ;;
    esac
    clock
    [ "$now" -ge "$deadline" ] && unstarted no-lease "no lease that allows starting: ${answer:-the lease keeper cannot be reached}"
    sleep 1
  done
}

# Return once the carrier has tried the stores and brought the checkpoint to go on from.
await_carrier() {
  [ -n "$CARRIER" ] || return 0
  clock
  deadline=$((now + CARRIER_WAIT))
  until [ -f "$CARRIER/ready" ] || [ -f "$CARRIER/refused" ]; do
    clock
    [ "$now" -ge "$deadline" ] && unstarted connection-unavailable 'the carrier of the object stores is not ready'
    sleep 1
  done
  if [ -f "$CARRIER/refused" ]; then
    read -r reason text <"$CARRIER/refused"
    unstarted "$reason" "$text"
  fi
  read -r resumed <"$CARRIER/ready"
  [ -z "$resumed" ] || export LANDBRIDGE_RESUME_FROM="$resumed"
}

# Have outputs stored, and say what could not be. Work that stopped itself is over when it is over.
await_stored() {
  [ -n "$CARRIER" ] && [ "$1" != self-stopped ] || return 0
  : >"$CARRIER/over"
  clock
  deadline=$((now + CARRIER_WAIT)) stored=''
  until [ -f "$CARRIER/stored" ]; do
    clock
    [ "$now" -ge "$deadline" ] && { stored='outputs were not stored in time'; break; }
    sleep 1
  done
  [ -n "$stored" ] || read -r stored <"$CARRIER/stored"
  [ "$stored" = ok ] || printf 'not-stored %s\n' "$stored"
}

# To the workload's whole session. Shells differ in how they take a group's number; the last form reaches one process.
signal_all() {
  kill -s "$1" -- "-$CHILD" 2>/dev/null || kill -"$1" "-$CHILD" 2>/dev/null || kill -s "$1" "$CHILD" 2>/dev/null
}

# The newest sealed checkpoint; where a carrier stores them, of those that are stored: nobody else can read the others.
newest_checkpoint() {
  newest=''
  [ -n "${LANDBRIDGE_CHECKPOINT_DIR:-}" ] || return
  for manifest in "$LANDBRIDGE_CHECKPOINT_DIR"/sealed-*/manifest.json; do
    [ -f "$manifest" ] || continue
    if [ -n "$CARRIER" ]; then
      name=${manifest%/manifest.json}
      [ -f "$CARRIER/sealed/${name##*/}" ] || continue
    fi
    if [ -z "$newest" ] || [ "$manifest" -nt "$newest" ]; then newest=$manifest; fi
  done
}

# Name of the newest sealed checkpoint, if it can stand in a URL.
checkpoint_name() {
  newest_checkpoint
  name=${newest%/manifest.json}
  name=${name##*/}
  case $name in *[!A-Za-z0-9._-]*) name='' ;; esac
}

# Renew the lease and hear of orders, apart from the timers, which must not wait for the network.
poll() {
  until [ -f "$STATE/over" ]; do
    clock
    sent=$now
    checkpoint_name
    ask "/v1/start?state=running&checkpoint=$name"
    case $answer in
      lease\ *) printf '%s\n' $((sent + ${answer#lease } / 10)) >"$STATE/.lease" && mv "$STATE/.lease" "$STATE/lease" ;;
      stop\ *) printf '%s\n' "${answer#stop }" >"$STATE/.stop" && mv "$STATE/.stop" "$STATE/stop" ;;
    esac
    sleep 2
  done
}

request_checkpoint() {
  [ "$stage" = sealing ] && return
  stage=sealing
  : >"$STATE/asked"
  : >"$PRIVATE/checkpoint-requested"
  signal_all URG
}

sealed() {
  newest_checkpoint
  [ -n "$newest" ] && [ "$newest" -nt "$STATE/asked" ]
}

# End it: cause, then when to kill.
terminate() {
  stage=terminating
  printf '%s\n' "$1" >"$STATE/cause"
  kill_at=$2
  signal_all TERM
}

# The course of a running workload, a step each second; the rules are those of the guardian of plain processes.
watch_over() {
  stage=running kill_at=0 lease=$LEASE seal_until=0
  while sleep 1; do
    [ -f "$STATE/over" ] && return
    clock
    if [ -f "$STATE/lease" ]; then
      read -r renewed <"$STATE/lease"
      [ "$renewed" -gt "$lease" ] && lease=$renewed
    fi
    case $stage in
      terminating) [ "$now" -ge "$kill_at" ] && { signal_all KILL; return; }; continue ;;
    esac
    if [ -f "$STATE/stop" ]; then
      read -r reason grace within <"$STATE/stop"
      [ "$seal_until" -eq 0 ] && seal_until=$((now + within / 10))
      # A stop that was ordered never outlasts a lease that is lost.
      [ -n "$STOPS_ITSELF" ] && [ "$now" -ge "$lease" ] && [ $((lease + WITHIN)) -lt "$seal_until" ] && seal_until=$((lease + WITHIN))
      request_checkpoint
      if sealed || [ "$now" -ge "$seal_until" ]; then terminate "$reason" $((now + grace / 10)); fi
    elif [ "$TIMEOUT" -gt 0 ] && [ "$now" -ge $((started + TIMEOUT)) ]; then
      terminate timeout $((now + GRACE))
    else
      lose_lease
    fi
  done
}

# What the disconnection policy wants of work whose lease is not renewed. Bounds count from the lease's end.
lose_lease() {
  [ -n "$STOPS_ITSELF" ] || return
  if [ "$now" -lt "$lease" ]; then stage=running; return; fi
  end=$((lease + WITHIN))
  [ "$POLICY" = checkpoint-then-stop ] && request_checkpoint
  if [ "$now" -ge "$end" ] || { [ "$stage" = sealing ] && sealed; }; then
    [ "$now" -lt "$end" ] && end=$now
    terminate self-stopped $((end + LOSS_GRACE))
  fi
}

# Size and digest of each output: of a directory, the digest of the text that sha256sum prints for its files.
measure() {
  printf '%s\n' "$OUTPUTS" | while read -r output place; do
    [ -d "$place" ] || continue
    cd "$place" || continue
    find . -type f | sed 's|^\./||' | tr / '\001' | LC_ALL=C sort | tr '\001' / >"$STATE/files"
    total=0 count=0
    : >"$STATE/digests"
    while IFS= read -r file; do
      total=$((total + $(wc -c <"$file"))) count=$((count + 1))
      sha256sum -- "$file" >>"$STATE/digests"
    done <"$STATE/files"
    [ "$count" -gt 0 ] || continue
    digest=$(sha256sum <"$STATE/digests")
    printf 'output %s %s %s\n' "$output" "$total" "${digest%% *}"
  done
}

# Last values of the metrics that count, then as much of the rest as there is room for.
read_metrics() {
  [ -f "$LANDBRIDGE_METRICS" ] && [ ! -h "$LANDBRIDGE_METRICS" ] || return
  for metric in $METRICS; do grep -F "\"$metric\"" "$LANDBRIDGE_METRICS" | tail -n 1 | head -c 400; done
  tail -c 1000 "$LANDBRIDGE_METRICS"
}

report() {
  cause='' ended=$(date +%s)
  [ -f "$STATE/cause" ] && read -r cause <"$STATE/cause"
  {
    printf 'started %s\nended %s\nstatus %s\n' "$began" "$ended" "$status"
    [ -n "$cause" ] && printf 'cause %s\n' "$cause"
    await_stored "$cause"
    newest_checkpoint
    [ -n "$newest" ] && { name=${newest%/manifest.json}; printf 'checkpoint %s\n' "${name##*/}"; }
    measure
    read_metrics | sed 's/^/metric /'
  } 2>/dev/null | head -c 4000 >"$MESSAGE"
}

trap 'unstarted stopped "stopped before it had started"' TERM
mkdir -p "$STATE" "$TMPDIR" || unstarted failed-to-start "the work directory cannot be written"
printf '%s\n' "$OUTPUTS" | while read -r _ place; do [ -z "$place" ] || mkdir -p "$place" || exit 1; done \
  || unstarted connection-read-only 'the place of an output cannot be made'
[ -z "${LANDBRIDGE_CHECKPOINT_DIR:-}" ] || mkdir -p "$LANDBRIDGE_CHECKPOINT_DIR" \
  || unstarted connection-read-only 'the place of checkpoints cannot be made'
await_carrier
[ -z "${LANDBRIDGE_RESUME_FROM:-}" ] || [ -f "$LANDBRIDGE_RESUME_FROM/manifest.json" ] \
  || unstarted checkpoint-unreadable 'the checkpoint to resume from cannot be read here'
cd "$HOME" || unstarted failed-to-start 'the work directory cannot be entered'
command -v "$1" >/dev/null 2>&1 || unstarted failed-to-start "there is no program $1 in the image"
find_client
await_start

# An operator that tells ranks tells them under the usual name only.
if [ -n "${LANDBRIDGE_WORLD_SIZE:-}" ] && [ -z "${LANDBRIDGE_RANK:-}" ] && [ -n "${RANK:-}" ]; then
  export LANDBRIDGE_RANK="$RANK"
fi

rm -f "$STATE/over"
clock
started=$now began=$(date +%s)
if command -v setsid >/dev/null 2>&1; then setsid "$@" & else "$@" & fi
CHILD=$!
trap 'signal_all TERM' TERM
watch_over &
WATCHER=$!
POLLER=''
if [ -n "$STOPS_ITSELF" ] || [ -n "${LANDBRIDGE_CHECKPOINT_DIR:-}" ]; then
  poll &
  POLLER=$!
fi
while :; do
  wait "$CHILD"
  status=$?
  # Interrupted by a signal, `wait` returns before the workload has ended.
  kill -0 "$CHILD" 2>/dev/null || break
done
trap '' TERM
# A shell that has just been forked may lose the signal: the file ends it, too.
: >"$STATE/over"
kill $WATCHER $POLLER 2>/dev/null
report
exit $status
