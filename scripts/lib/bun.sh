# Sourced by the scripts next to this folder, under `set -euo pipefail`. Sets:
#   ROOT  the checkout
#   BUN   a Bun of at least 1.4: the one on PATH, or else the pinned one, downloaded once with npm into .tools/
# and installs the packages of bun.lock in node_modules. Prints nothing if there is nothing to do.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
BUN_PINNED=1.4.5

bun_is_recent() {
  local version major minor
  version="$("$1" --version 2>/dev/null)" || return 1
  IFS=.- read -r major minor _ <<<"$version"
  [[ "$major" =~ ^[0-9]+$ && "$minor" =~ ^[0-9]+$ ]] || return 1
  ((major > 1 || (major == 1 && minor >= 4)))
}

# The npm package `bun` is a launcher that its install script replaces. npm may be configured not to run install scripts, so
# none is run, and the program is taken from this platform's package. npm may install more than one (glibc and musl).
bun_from_npm() {
  local candidate
  for candidate in "$1"/node_modules/@oven/*/bin/bun "$1"/node_modules/@oven/*/bin/bun.exe; do
    if [[ -f "$candidate" ]] && bun_is_recent "$candidate"; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

find_bun() {
  local home="$ROOT/.tools/bun-$BUN_PINNED"
  if command -v bun >/dev/null && bun_is_recent bun; then
    BUN="$(command -v bun)"
  elif ! BUN="$(bun_from_npm "$home")"; then
    if ! command -v npm >/dev/null; then
      echo "gatehouse needs Bun 1.4 or later, or npm to fetch it. Install either one and run this again." >&2
      return 1
    fi
    echo "No Bun 1.4 or later on PATH: fetching bun@$BUN_PINNED with npm into .tools/" >&2
    mkdir -p "$home"
    npm install --prefix "$home" --no-save --no-package-lock --ignore-scripts --include=optional --no-audit --no-fund \
      --loglevel=error "bun@$BUN_PINNED" >&2
    if ! BUN="$(bun_from_npm "$home")"; then
      echo "npm provided no Bun that runs on this machine ($(uname -sm)). Install Bun 1.4 or later by hand." >&2
      return 1
    fi
  fi
  PATH="$(dirname "$BUN"):$PATH"
  export PATH
}

# Installs the packages if package.json or bun.lock has changed since the last installation.
install_packages() {
  local stamp="$ROOT/node_modules/.gatehouse-installed" output
  cat "$ROOT/package.json" "$ROOT/bun.lock" | cmp -s - "$stamp" && return 0
  if ! output="$(cd "$ROOT" && "$BUN" install --frozen-lockfile 2>&1)"; then
    printf '%s\n' "$output" >&2
    return 1
  fi
  cat "$ROOT/package.json" "$ROOT/bun.lock" >"$stamp"
}

find_bun
install_packages
