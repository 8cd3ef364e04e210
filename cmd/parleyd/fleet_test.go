package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/fleettest"
	"github.com/parley-tools/parley/internal/testhome"
)

// machines are the programs of an operator's machine that reach others: each machine is a root of its own, with the
// system's /usr, on one network that only the test has.
var machines = map[string]string{
	"scp": `#!/bin/bash
set -e
host=${@: -1}; host=${host#root@}; host=${host%:}
mkdir -p "$MACHINES/$host/root"
cp -r "${@:2:$#-2}" "$MACHINES/$host/root/"
`,
	"ssh": `#!/bin/bash
set -e
host=${1#root@}; root=$MACHINES/$host
if [[ ! -e $root/usr ]]; then
  mkdir -p "$root"/{usr,proc,dev,tmp,run,etc/systemd/system,var/lib,var/log,local/bin}
  for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$root/$dir"; done
  chmod 1777 "$root/tmp"
  mount --rbind /usr "$root/usr"
  mount --bind "$root/local" "$root/usr/local"
  mount -t proc proc "$root/proc"
  for device in null urandom; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
  cp "$STUBS/systemctl" "$root/usr/local/bin/"
  echo root:x:0:0::/root:/bin/sh >"$root/etc/passwd"
  echo root:x:0: >"$root/etc/group"
  cp /etc/login.defs "$root/etc/"
  echo "127.0.0.1 localhost nats.example.org" >"$root/etc/hosts"
fi
exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin HOME=/root "$(command -v chroot)" "$root" sh -ec "cd; $2"
`,
	// what of units matters here: the user, the folders, and the command
	"systemctl": `#!/bin/sh
set -e
shift 2 # enable --now
for unit; do
  case $unit in *.socket) continue ;; esac
  field() { sed -n "s/^$1=//p" "/etc/systemd/system/$unit.service"; }
  user=$(field User)
  export STATE_DIRECTORY="/var/lib/$(field StateDirectory)"
  install -d -m 700 -o "$user" "$STATE_DIRECTORY"
  cd "/$(field WorkingDirectory)"
  env $(field Environment) setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs \
    $(field ExecStart) >"/var/log/$unit" 2>&1 </dev/null &
done
`,
}

// TestFleetFromNothing runs the commands of docs/fleet.md that make a fleet of three machines, and a call on it.
func TestFleetFromNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the root of a process")
	}
	_, block, _ := strings.Cut(read(t, "../docs/fleet.md"), "```console\n")
	block, _, _ = strings.Cut(block, "```")
	commands := strings.Split(strings.TrimPrefix(block, "$ "), "\n$ ")
	last := len(commands) - 1
	if last != 9 || !strings.HasPrefix(commands[0], "make build") || !strings.Contains(commands[1], "go install") ||
		!strings.Contains(commands[last], "fleet status") {
		t.Fatalf("docs/fleet.md has %d commands, not ten that begin with building and end with the status", last+1)
	}
	clone, stubs := t.TempDir(), t.TempDir()
	bin := filepath.Join(clone, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"parleyd": built(t), "nats-server": fleettest.Program(t)} {
		if out, err := exec.Command("cp", path, filepath.Join(bin, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := testhome.CopyProgram(filepath.Join(bin, "parley")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-r", deploy, filepath.Join(clone, "deploy")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range machines {
		write(t, filepath.Join(stubs, name), text)
		if err := os.Chmod(filepath.Join(stubs, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := `set -e
ip link set lo up
mount --make-rprivate /
echo 127.0.0.1 localhost nats.example.org >"$MACHINES/hosts"
mount --bind "$MACHINES/hosts" /etc/hosts
PATH=$STUBS:$PATH
trap 'tail -n +1 "$MACHINES"/*/var/log/*; ps -eo user:20,args' EXIT
` + strings.Join(commands[2:last], "\n") + `
await() {
  for try in {1..200}; do
    ready=$(exec 3<>/dev/tcp/127.0.0.1/8931 && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && cat <&3) 2>/dev/null || true
    status=$(` + commands[last] + `) || true
    if [[ $ready == *" 200 OK"* && $status == *worker-1* ]]; then break; fi
    sleep .1
  done
}
await
echo "$ready" "$status"
read -r -t 5 greeting 3<>/dev/tcp/::1/4222 <&3
echo "over IPv6: $greeting"
printf "[plugin.text]\nrun = \"fleet:main\"\n" >policy.toml
bin/parleyd fleet publish --policy policy.toml --config fleet/parley/operator/fleet.toml
pkill -f '[p]arleyd serve'; while pgrep -f '[p]arleyd serve' >/dev/null; do sleep .1; done
ssh root@front-1.example.org 'sed -i "s/^# policy =/policy =/" /etc/parley/parleyd.toml
  rm -rf /var/lib/parley/config; systemctl enable --now parleyd'
await
token=$(cut -d= -f2 "$MACHINES/front-1.example.org/etc/parley/tokens")
curl --silent --max-time 60 http://127.0.0.1:8931/mcp -H "Authorization: Bearer $token" -H 'Mcp-Name: call_tool' \
  -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \
  -H 'Mcp-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/call' -d '{"jsonrpc": "2.0", "id": 1,
    "method": "tools/call", "params": {"name": "call_tool", "arguments": {"name": "text.hash", "arguments":
    {"text": "a"}}, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {}}}}'
`
	// The processes of the machines end with the script, the first process that they see.
	cmd := exec.Command(program(t, "unshare"), "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"bash", "-c", script)
	cmd.Dir, cmd.Env = clone, append(os.Environ(), "STUBS="+stubs, "MACHINES="+t.TempDir())
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		" 200 OK", "over IPv6: INFO", "main  worker-1", "published policy.toml", "is now the fleet's policy from", hashOfA,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output has no %q", want)
		}
	}
	if _, log, _ := strings.Cut(string(out), "/parleyd-worker <=="); !strings.Contains(log, "compiling text") {
		t.Error("the call did not run on the worker")
	}
	if strings.Contains(string(out), "Violation") {
		t.Error("the server refuses something")
	}
}
