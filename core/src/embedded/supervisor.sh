# Runs as the server's user in a session of its own, from the start of the server to its end. It answers its opener
# with one line, then waits: when no client holds users.lock any more it stops the server, and holds that lock until
# the last process of the server is gone, so that an opener who comes meanwhile waits and then starts a new one.
#
# $1 start, or adopt for a server whose supervisor was killed; $2 binaries; $3 home; $4 socket folder
set -u
unset SUPERVISOR
umask 077
mode=$1 bin=$2 home=$3 socket=$4

answer() {
  printf '%s\nended %s\n' "$2" "$1"
  exec >/dev/null 2>&1
}
refuse() {
  answer "$1" "$2"
  exit
}

# Relative paths from here on: they stay right when the folder is renamed.
cd "$home" || refuse 1 "cannot enter $home"

# A signal sent before the server is ready for it is lost, hence again and again. $1: the process that still syncs.
stop='[ -z "${1-}" ] || [ ! -e run/unsynced ] || kill "$1"
while [ -e run/server.lock ] && ! flock -n run/server.lock true; do
  read -r pid <data/postmaster.pid && kill -INT "$pid"
  sleep 0.05
done'

if [ "$mode" = adopt ]; then
  exec 4>>run/watch.lock
  flock -n 4 || refuse 75 "another supervisor was faster"
  answer 0 adopted
  exec flock -x users.lock sh -c "$stop"
fi

true 2>/dev/null >>run/server.lock || refuse 1 "$(id -un) cannot write in $home/run"

# Descriptor 3 is inherited by every process of the server, descriptor 4 by supervisor and watcher only.
exec 3>>run/server.lock 4>>run/watch.lock
flock -n 3 || refuse 75 "another opener was faster"
# Waits for the supervisor of a server that has just ended.
flock -x 4

if [ "$socket" != "$home/run" ]; then
  mkdir -m 700 "$socket" 2>/dev/null
  [ -d "$socket" ] && [ ! -L "$socket" ] && [ -O "$socket" ] && chmod 700 "$socket" ||
    refuse 1 "$socket is not a private folder of $(id -un): remove it"
fi

# After a hard stop the process number in postmaster.pid may belong to somebody else by now, and PostgreSQL would
# refuse to start. A number no process can have leaves the rest of its checks in force.
if read -r pid 2>/dev/null <data/postmaster.pid && kill -0 "$pid" 2>/dev/null && [ -d "/proc/$pid" ] &&
  [ "$(readlink "/proc/$pid/cwd")" != "$(cd data && pwd -P)" ]; then
  { echo 2147483647 && tail -n +2 data/postmaster.pid; } >run/postmaster.pid && mv run/postmaster.pid data/postmaster.pid
fi

if [ -e run/server.log ] && [ "$(wc -c <run/server.log)" -gt 4194304 ]; then
  mv run/server.log run/server.log.1
fi

"$bin/postgres" -D "$home/data" -c listen_addresses= -c unix_socket_directories="$socket" \
  -c unix_socket_permissions=0700 -c fsync=on -c full_page_writes=on -c synchronous_commit=on \
  4>&- >>run/server.log 2>&1 &
server=$!
exec 3>&-
trap 'kill -INT "$server"' TERM HUP

# The cluster was made without waiting for the disk; this is made up for while the server already works.
sync=
if [ -e run/unsynced ]; then
  "$bin/initdb" --sync-only -D "$home/data" 4>&- >/dev/null 2>&1 &
  sync=$!
fi
flock -x users.lock sh -c "$stop" drayhorse "$sync" >/dev/null 2>&1 &
watch=$!

answer 0 started

[ -z "$sync" ] || ! wait "$sync" || rm -f run/unsynced
status=0
while kill -0 "$server" 2>/dev/null; do
  wait "$server"
  status=$?
done
# The watcher still waits for users.lock if the server ended by itself, and is about to end if it stopped the server.
! flock -n -s users.lock true || kill "$watch"
wait "$watch"
if [ "$socket" != "$home/run" ]; then
  # What a killed server left; a server that ended well has removed both files itself.
  port=$(sed -n 4p data/postmaster.pid) && [ -n "$port" ] &&
    rm -f "$socket/.s.PGSQL.$port" "$socket/.s.PGSQL.$port.lock"
  rmdir "$socket"
fi
exit "$status"
