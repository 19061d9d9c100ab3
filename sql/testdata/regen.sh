#!/usr/bin/env bash
# Makes the expected output of the scripts in testdata/pg with a scratch
# PostgreSQL 15. Needs Debian's postgresql-15; run as root or as postgres.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=/usr/lib/postgresql/15/bin
dir=$(mktemp -d)
chmod 777 "$dir"
as() { if [ "$(id -u)" = 0 ]; then su postgres -s /bin/bash -c "$1"; else bash -c "$1"; fi; }
trap 'as "$bin/pg_ctl -D $dir/data -m immediate stop" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
as "$bin/initdb -D $dir/data -A trust --locale=C --encoding=UTF8" >/dev/null
as "$bin/pg_ctl -D $dir/data -o '-k $dir -c listen_addresses= -c timezone=UTC' -w start" >/dev/null
for f in "$here"/pg/*.sql "$here"/private/*.sql; do
  db="t$RANDOM"
  as "$bin/createdb -h $dir $db"
  # Each statement is announced by its own text, on one line.
  python3 - "$f" <<'PY' > "$dir/script.sql"
import re, sys
text = open(sys.argv[1]).read()
out, buf, tag = [], "", None
i = 0
while i < len(text):
    m = re.match(r"\$[a-z_]*\$", text[i:])
    if m and (tag is None or tag == m.group(0)):
        tag = None if tag else m.group(0)
        buf += m.group(0); i += len(m.group(0)); continue
    if text[i] == "'" and tag is None:
        j = text.index("'", i + 1)
        buf += text[i:j+1]; i = j + 1; continue
    if text[i] == ";" and tag is None:
        out.append(buf.strip()); buf = ""; i += 1; continue
    buf += text[i]; i += 1
print("\\set VERBOSITY sqlstate")
for s in out:
    line = " ".join(s.split())
    quoted = line.replace("\\", "\\\\").replace("'", "''")
    print("\\echo '-- %s'" % quoted)
    print(s + ";")
PY
  chmod 644 "$dir/script.sql"
  as "psql -X -q -A -t -h $dir -d $db < $dir/script.sql" > "${f%.sql}.out" 2>&1
done
