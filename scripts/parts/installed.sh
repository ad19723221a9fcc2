# Sourced by scripts that need packages from PyPI or npm: installs them once, below the target directory.

target_folder() { # The build directory of cargo, which also keeps what scripts install.
  local root
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  echo "${CARGO_TARGET_DIR:-$root/target}"
}

python_venv() { # python_venv NAME PIN…: prints the folder of an environment with exactly these packages
  local venv wanted
  venv=$(target_folder)/$1
  shift
  wanted="$(python3 --version) $*"
  # The list is written last, so an interrupted installation is repeated.
  if [ "$(cat "$venv/installed" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
    echo "$wanted" >"$venv/installed"
  fi
  echo "$venv"
}
