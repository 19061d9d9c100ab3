#!/usr/bin/env bash
# usage: fetch.sh DIR
# Brings the source of PostgreSQL 15, as Debian has it, to DIR/postgresql-15,
# with its regression tests in src/test/regress. The machine's own package
# sources are asked, with source packages enabled in a copy of the lists; its
# apt configuration is left alone. Nothing is done if DIR has it already.
set -euo pipefail

dir=$1
target=$dir/postgresql-15
if [ -e "$target/src/test/regress/parallel_schedule" ]; then
	exit 0
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
target=$dir/postgresql-15
apt=$dir/apt
rm -rf "$apt" "$target"
mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/source"

for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
	case $f in
	*.list | *.sources) ;;
	*) continue ;;
	esac
	[ -f "$f" ] || continue
	sed -E 's/^deb([[:space:]])/deb-src\1/; s/^Types:.*/Types: deb-src/' "$f" >"$apt/parts/$(basename "$f")"
done

options=(
	-o Dir::Etc::sourcelist=/dev/null
	-o Dir::Etc::sourceparts="$apt/parts"
	-o Dir::State::lists="$apt/lists"
	-o Dir::Cache="$apt/cache"
	-o APT::Update::Post-Invoke-Success::=/bin/true
	-o APT::Sandbox::User="$(id -un)"
)
# Other lists of the machine may have no sources; the next step tells.
apt-get "${options[@]}" update -qq >/dev/null 2>"$apt/update.log" || true
fetched=
# A list may name a version that its mirror has dropped already: the next one
# will do.
while read -r version; do
	if (cd "$apt/source" && apt-get "${options[@]}" source -qq --download-only "postgresql-15=$version") >>"$apt/source.log" 2>&1; then
		fetched=$version
		break
	fi
	rm -f "$apt"/source/*
done < <(apt-cache "${options[@]}" showsrc postgresql-15 | sed -n 's/^Version: //p' | sort -V -r)
if [ -z "$fetched" ]; then
	cat "$apt/update.log" "$apt/source.log" >&2
	echo "the source of PostgreSQL 15 cannot be fetched with apt-get source" >&2
	exit 1
fi
mkdir -p "$target"
tar -xf "$apt"/source/postgresql-15_*.orig.tar.* -C "$target" --strip-components=1 --wildcards \
	'*/src/test/regress' '*/COPYRIGHT'
rm -rf "$apt"
