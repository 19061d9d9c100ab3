#!/usr/bin/env bash
# Measures this server's signing endpoint against PostgreSQL 15 on this machine:
# the same contracts, the same pgbench scripts, taking turns (A B A B ...), and
# prints the ratio of medians with the spread of each side.
#
#   bench/versus-postgres.sh [-w "simple transfer ..."] [-c "1 8 32"] [-r ROUNDS] [-t SECONDS] [-f on|off] [-- FLAGS OF tallystick dev]
#
# PostgreSQL runs SERIALIZABLE, with fsync as -f says (on), shared_buffers 2GB and
# the default of max_pred_locks_per_transaction. It signs nothing, orders nothing
# and keeps no history. It comes from Debian's package postgresql-15, installed
# if this runs as root and it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

workloads="simple transfer complex-join complex-group pk-select analytic" clients="1 8 32" rounds=3 seconds=4 fsync=on
while getopts 'w:c:r:t:f:h' o; do
	case $o in
	w) workloads=$OPTARG ;;
	c) clients=$OPTARG ;;
	r) rounds=$OPTARG ;;
	t) seconds=$OPTARG ;;
	f) fsync=$OPTARG ;;
	*) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

pgbin=/usr/lib/postgresql/15/bin
if [ ! -x $pgbin/postgres ]; then
	[ "$(id -u)" -eq 0 ] || { echo "PostgreSQL 15 is missing: install Debian's package postgresql-15" >&2; exit 1; }
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 >/dev/null
fi

dir=$(mktemp -d)
chmod 755 "$dir"
as() { if [ "$(id -u)" -eq 0 ]; then (cd / && setpriv --reuid=postgres --regid=postgres --init-groups "$@"); else "$@"; fi; }
[ "$(id -u)" -ne 0 ] || chown postgres "$dir"
cleanup() {
	kill "${node:-}" 2>/dev/null && wait "$node" 2>/dev/null || true
	as $pgbin/pg_ctl -D "$dir/pg" -m immediate stop >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap cleanup EXIT

port=$((20000 + RANDOM % 20000))
as $pgbin/initdb -D "$dir/pg" -U postgres -E UTF8 --locale=C -A trust >/dev/null
as $pgbin/pg_ctl -D "$dir/pg" -w -l "$dir/pg.log" -o "-p $port -k $dir -c listen_addresses=127.0.0.1 -c fsync=$fsync \
	-c shared_buffers=2GB -c default_transaction_isolation=serializable -c max_connections=300" start >/dev/null
pg="postgres://postgres@127.0.0.1:$port/postgres"

go build -o "$dir/tallystick" ./cmd/tallystick
mkdir "$dir/data" # not PostgreSQL's user's
"$dir/tallystick" dev --data "$dir/data/dev" --listen 127.0.0.1:$((port + 1)) "${@}" >"$dir/ready" 2>"$dir/node.log" &
node=$!
until grep -q '^ready' "$dir/ready"; do
	kill -0 $node 2>/dev/null || { cat "$dir/node.log" >&2; exit 1; }
	sleep 0.1
done
us="postgres://alice@127.0.0.1:$((port + 1))/tallystick" admin="postgres://admin@127.0.0.1:$((port + 1))/tallystick"

# tps URL SCRIPT CLIENTS: operations a second, those that failed not counted.
tps() {
	local out
	if ! out=$(pgbench -n -M prepared -c "$3" -j 2 -T "$seconds" --max-tries=100 -f "$2" "$1" 2>&1); then
		echo 0 # clients were failed
		echo "$out" | tail -n 2 >&2
		return
	fi
	echo "$out" | sed -n 's/^tps = \([0-9.]*\).*/\1/p'
}

median() { sort -n | awk '{v[NR] = $1} END {m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; printf "%.1f %.1f %.1f", m, v[1], v[NR]}'; }

printf '%-14s %7s  %28s  %28s  %6s\n' workload clients 'tallystick (low to high)' "PostgreSQL, fsync $fsync" ratio
for w in $workloads; do
	"$dir/tallystick" bench --workload "$w" --url "$pg" --setup --operations 1 --clients 1 --warmup 0s >/dev/null
	"$dir/tallystick" bench --workload "$w" --url "$us" --admin-url "$admin" --setup --operations 1 --clients 1 --warmup 0s >/dev/null
	psql -q "$pg" -c 'ANALYZE' -c 'CHECKPOINT'
	for c in $clients; do
		: >"$dir/a" && : >"$dir/b"
		for _ in $(seq "$rounds"); do
			tps "$us" "bench/pgbench/$w.sql" "$c" >>"$dir/a"
			tps "$pg" "bench/pgbench/$w.sql" "$c" >>"$dir/b"
		done
		read -r ma la ha <<<"$(median <"$dir/a")"
		read -r mb lb hb <<<"$(median <"$dir/b")"
		printf '%-14s %7s  %10s (%7s-%7s)  %10s (%7s-%7s)  %6s\n' "$w" "$c" "$ma" "$la" "$ha" "$mb" "$lb" "$hb" \
			"$(awk -v a="$ma" -v b="$mb" 'BEGIN { if (b > 0) printf "%.2f", a / b; else printf "-" }')"
	done
done
