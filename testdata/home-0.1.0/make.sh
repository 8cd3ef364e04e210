#!/usr/bin/env bash
# make.sh PARLEY SMALL: rebuilds home/ with two binaries of Parley 0.1.0, see README.md. /srv/parley must not exist.
set -euo pipefail
parley=$(realpath "$1") small=$(realpath "$2")
cd "$(dirname "$0")"
here=$PWD
root=/srv/parley
[[ ! -e $root ]] || { echo "make.sh: $root exists already" >&2; exit 1; }
trap 'rm -rf "$root"' EXIT
umask 077
mkdir -p $root/guests $root/data $root/home/config
export PARLEY_HOME=$root/home
cp ../wasm/{echo,smallest}.{wasm,manifest.json} $root/guests
cp ../wasm/rev.wasm $root/guests/reader.wasm
cp reader.manifest.json $root/guests
echo 'stressed' >$root/data/note.txt
cd $root
fails() { # fails CODE COMMAND...: runs a command that must exit with this code
  local code=0
  "${@:2}" || code=$?
  [[ $code == "$1" ]] || { echo "make.sh: exit code $code, want $1: ${*:2}" >&2; exit 1; }
}

# Files that an operator writes by hand.
cat >home/config/config.toml <<'TOML'
tool_documentation_mode = "minimal"
pinned_tools = ["text.hash", "echo.echo"]

[traces]
values = true
TOML
cat >home/config/policy.toml <<'TOML'
[operator]
allow_yes = true

[callers.cli]
allow = ["*"]
deny = ["cdp.Browser.*"]
TOML

# A trusted key, a signed plugin, and two unsigned ones, one of them a WASI command.
$parley plugin sign --new-key author.key
$parley plugin trust author.key.pub --name author --yes
$parley plugin sign guests/echo.wasm --key author.key
$parley plugin install guests/echo.wasm
$parley plugin install guests/smallest.wasm
$parley plugin install guests/reader.wasm

# Grants for one build each, in grants.toml and by hand in policy.toml.
$parley policy grant echo secret:read:ECHO_SECRET 'tool:text.*' --yes
cat >>home/config/policy.toml <<TOML

[plugin.reader]
digest = "$($parley plugin show reader --json | sed 's/.*"digest":"\([^"]*\)".*/\1/')"
grants = ["fs:ro:$root/data=/data"]
TOML

# A secret.
printf 'correct horse battery' | $parley secret set ECHO_SECRET

# The audit log's first file, closed by the binary that closes it at 2 KiB.
while [[ ! -e home/state/audit/audit-000001.jsonl ]]; do $small smallest call; done

# A day of traces, which becomes the previous day.
$parley text hash abc
fails 81 $parley text hash --params '{"text":5}'
$parley search 'checksum of a text'
today=$(date -u +%Y-%m-%d) before=$(date -u -d yesterday +%Y-%m-%d)
sed "s/\"t\":\"${today}T/\"t\":\"${before}T/" home/state/traces/$today.jsonl >home/state/traces/$before.jsonl
rm home/state/traces/$today.jsonl

# Another day: a session that has read one tool's second tier, has a failed call with a correction, and a truncated result.
export PARLEY_SESSION=agent
$parley text find --describe
fails 81 $parley text hash --params '{"text":5}'
fails 81 $parley cdp close --param all=yes
$parley echo echo --params '{"value":"0123456789012345678901234567890123456789"}' --max-bytes 16
$parley reader file /data/note.txt
$parley echo call-tool --params '{"tool":"text.hash","params":{"text":"a"}}'
$parley echo read-secret --param name=ECHO_SECRET
$parley audit verify
$parley audit head >"$here/audit-head"

rm -rf home/cache home/run
rm -rf "$here/home"
cp -R home "$here/home"
