#!/usr/bin/env bash
# The systemd units: those of the packages are valid, and `deploy --service` starts one under a real systemd, which
# restarts it after a kill.
# usage: check_service.sh SOURCE_DIR BUILD_DIR
# A systemd user instance runs in a mount namespace with an empty /run, so that the machine's own (if any) is not
# touched; this needs root.  "ssh" is a shell in that namespace; tests/check_board.sh uses a real one.
set -euo pipefail
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
skip() { echo "skip service: $1"; exit 77; }
systemd=/lib/systemd/systemd program=$build/src/edgewise
command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
if nm -D "$program" | grep -q __asan_init; then skip "leak checks need ptrace, which the unit's process has not"; fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
expect() { # WHAT FOUND WANTED
    if [ "$2" = "$3" ]; then echo "ok $1"; else echo "$1: '$2', not '$3'"; echo "FAIL $1"; status=1; fi
}

for unit in "$source"/debian/*.service; do
    name=${unit##*/edgewise.}
    sed "s|/usr/bin/edgewise|$program|" "$unit" >"$dir/$name"
    expect "$name is valid" "$(systemd-analyze verify --man=no "$dir/$name" 2>&1 | grep -F "$name" || true)" ""
done

if [ "$(id -u)" -ne 0 ] || [ ! -x $systemd ] || ! unshare -m true 2>/dev/null; then
    echo "skip service started: needs root, systemd and namespaces"
    exit $status
fi

mkdir -p "$dir/home"
cat >"$dir/ssh" <<'END'
#!/bin/sh
# ssh [options] HOST COMMAND: executes the last argument.
for command; do :; done
cd "$HOME" && exec sh -c "$command"
END
chmod +x "$dir/ssh"
cat >"$dir/inside" <<'END'
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user/0 && chmod 700 /run/user/0
export HOME=$dir/home XDG_RUNTIME_DIR=/run/user/0 EW_SSH=$dir/ssh
unset XDG_CONFIG_HOME DBUS_SESSION_BUS_ADDRESS
timeout 240 $systemd --user >"$dir/log" 2>&1 &
for _ in $(seq 50); do
    state=$(systemctl --user is-system-running 2>/dev/null || true)
    case $state in running | degraded) break ;; esac
    sleep 0.2
done
case $state in running | degraded) ;; *) echo "no-systemd $state" >"$dir/answer"; exit 0 ;; esac
cd "$HOME"
"$program" deploy board lenet5-mnist --service --program "$program" >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
service=$(basename "$HOME"/.config/systemd/user/*.service)
pid=$(systemctl --user show -p MainPID --value "$service")
systemctl --user is-active "$service" >"$dir/answer"
systemctl --user is-enabled "$service" >>"$dir/answer"
systemd-analyze --user verify --man=no "$service" >>"$dir/answer" 2>&1 && echo valid >>"$dir/answer"
for _ in $(seq 150); do
    [ ! -s edgewise/board.prom ] || break
    sleep 0.2
done
if grep -q '^edgewise_' edgewise/board.prom; then echo metrics >>"$dir/answer"; fi
kill -SEGV "$pid"
for _ in $(seq 50); do
    now=$(systemctl --user show -p MainPID --value "$service")
    if [ "$now" != "$pid" ] && [ "$now" != 0 ]; then break; fi
    sleep 0.2
done
if [ "$now" != "$pid" ] && [ "$now" != 0 ]; then echo restarted >>"$dir/answer"; fi
systemctl --user stop "$service"
systemctl --user exit || true
END
export dir systemd program
if ! unshare -m bash -eu "$dir/inside"; then
    echo "FAIL deploy --service"
    exit 1
fi
case $(cat "$dir/answer") in no-systemd*) echo "skip service started: systemd --user does not run here"; exit $status ;; esac
expect "deploy --service" "$(tr '\n' ' ' <"$dir/answer")" "active enabled valid metrics restarted "
exit $status
