#!/usr/bin/env bash
# start_local_sandbox.sh [NAME] [OUTPUT-DIR] - a server for POST /execute, until it is told to stop.
#
#   NAME              of its socket, so that several can run side by side (default: local-sandbox)
#   OUTPUT-DIR        where the files that programs make appear; made if it is not there
#   OUTPUT_DATA_PATH  the same, if the argument is not given (default: the current directory)
#   SANDBOX_HOST      where it listens, on the loopback (default: 127.0.0.1)
#   SANDBOX_PORT      (default: 6000)
#   DEBUG=1           show what is done
#   VIAL              the program to start (default: that of this source tree, else the installed one)
set -eu
[ "${DEBUG:-0}" != 1 ] || set -x

name=${1:-local-sandbox}
output=${2:-${OUTPUT_DATA_PATH:-$PWD}}
host=${SANDBOX_HOST:-127.0.0.1}
case $host in
localhost) host=127.0.0.1 ;;
*:*) host=[${host//[\[\]]/}] ;; # IPv6, with brackets or without
esac
address=$host:${SANDBOX_PORT:-6000}
here=$(cd "$(dirname "$0")" && pwd)

case $name in
'' | -* | *[!A-Za-z0-9_.-]*) echo "${0##*/}: '$name' is no name" >&2 && exit 2 ;;
esac

find_vial() {
	local tree=$here/../..
	if [ -n "${VIAL-}" ]; then
		echo "$VIAL"
	elif [ -e "$tree/meson.build" ]; then
		[ -x "$tree/build/vial" ] || make -C "$tree" >&2
		echo "$tree/build/vial"
	else
		command -v vial || { echo "${0##*/}: vial is not installed" >&2 && return 1; }
	fi
}
vial=$(find_vial)

# The libraries that programs expect; without them the server does with Python alone.
if ! "$vial" env list | cut -f 1 | grep -qx python-data; then
	echo "Building the environment python-data, once" >&2
	"$vial" env build python-data >&2 ||
		echo "${0##*/}: going on without numpy, pandas, plotly and their like" >&2
fi

mkdir -p "$output"
OUTPUT_DATA_PATH=$(cd "$output" && pwd)
export OUTPUT_DATA_PATH
echo "Files appear in $OUTPUT_DATA_PATH"
if [ "$(id -u)" -eq 0 ]; then
	run=/run/vial-$name
else
	run=${XDG_RUNTIME_DIR:-$(mktemp -d)}/vial-$name
fi
exec "$vial" serve --listen "$address" --socket "$run/socket"
