# Sourced by the other scripts: installs what is missing, or names it and stops.

# need PACKAGE=PROBE ...: PROBE is a command, or a file (several patterns with |) that shows the
# package to be there.
need() {
  local missing=() entry package probe pattern found
  for entry in "$@"; do
    package=${entry%%=*}
    probe=${entry#*=}
    found=
    local IFS='|'
    for pattern in $probe; do
      case $pattern in
        /*) compgen -G "$pattern" >/dev/null && found=1 ;;
        *) command -v "$pattern" >/dev/null && found=1 ;;
      esac
    done
    unset IFS
    [ -n "$found" ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    as_root=(none)
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    fi
  fi
  if ! command -v apt-get >/dev/null || [ "${as_root[0]:-}" = none ]; then
    echo "vt needs these packages (Debian names): ${missing[*]}" >&2
    echo "They cannot be installed from here (no apt-get, or neither root nor sudo):" \
      "install them and run this again." >&2
    exit 3
  fi
  echo "installing ${missing[*]}"
  # A machine that never fetched the package lists, or has old ones, needs them first.
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install -qq -y --no-install-recommends "${missing[@]}")
  "${install[@]}" >/dev/null 2>&1 || {
    "${as_root[@]}" apt-get update -qq
    "${install[@]}" >/dev/null
  }
}

# unpack_foreign ARCHITECTURE FOLDER PACKAGE...: Debian's packages of another architecture, with
# what they depend on, in a folder. Needs no root and leaves the machine's packages and lists alone.
unpack_foreign() {
  local architecture=$1 folder=$2 package
  shift 2
  local apt=$folder.apt
  rm -rf "$apt" "$folder.part"
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$folder.part"
  : >"$apt/status"
  local options=(-qq -o "Dir::State=$apt" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt"
    -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
    -o "APT::Sandbox::User=$(id -un)")
  apt-get "${options[@]}" update || true  # a list that is none of Debian's may fail
  apt-get "${options[@]}" install -y --download-only --no-install-recommends "$@" || return 1
  for package in "$apt"/archives/*.deb; do
    dpkg-deb -x "$package" "$folder.part" || return 1
  done
  rm -rf "$apt"
  mv "$folder.part" "$folder"
}

multiarch=/usr/lib/$(uname -m)-linux-gnu
# What compiling a program with vt in it takes, and what building vt with CMake takes beyond that.
llvm_headers=/usr/lib/llvm-19/include/llvm-c
llvm_headers+="|/usr/lib/llvm-20/include/llvm-c|/usr/lib/llvm-18/include/llvm-c"
compile_packages=(
  "g++=g++"
  "llvm-19-dev=$llvm_headers"
  "libeigen3-dev=/usr/include/eigen3|/usr/local/include/eigen3"
  "libfmt-dev=/usr/include/fmt|/usr/local/include/fmt"
)
build_packages=("${compile_packages[@]}" cmake=cmake ninja-build=ninja)
test_packages=(
  "libgtest-dev=$multiarch/libgtest.a|/usr/lib/libgtest.*|/usr/local/lib/libgtest.*"
  "libmpfr-dev=/usr/include/mpfr.h"
  "libboost-dev=/usr/include/boost/math|/usr/local/include/boost/math"
  "clang-14=clang++-14"  # Debian 12's clang, the oldest that vt supports
  "libgmp-dev=/usr/include/gmp.h|/usr/include/*/gmp.h"
  openmpi-bin=mpirun.openmpi  # brings libopenmpi3, as mpich brings libmpich12
  mpich=mpirun.mpich
  python3=python3
  "python3-dev=/usr/include/python3*/Python.h"  # of a Python module with vt, as the next
  "python3-venv=/usr/lib/python3*/ensurepip"
)
aarch64_packages=("g++-aarch64-linux-gnu=aarch64-linux-gnu-g++" "qemu-user=qemu-aarch64")
bench_packages=(
  "libbenchmark-dev=/usr/include/benchmark|/usr/local/include/benchmark"
  python3=python3
)
# What the suite native is compared with, one by one: a peer that cannot be installed is left out.
native_peer_packages=(
  libadolc-dev=/usr/include/adolc
  libceres-dev=/usr/include/ceres/jet.h
  r-cran-stanheaders=/usr/lib/R/site-library/StanHeaders
  "libtbb-dev=/usr/include/tbb|/usr/local/include/tbb"
)
# The same for the suite solvers.
solver_peer_packages=(
  libboost-dev=/usr/include/boost/numeric/odeint.hpp
  libceres-dev=/usr/include/ceres/ceres.h
  libcminpack-dev=/usr/include/cminpack-1/cminpack.h
  liblbfgs-dev=/usr/include/lbfgs.h
  libsundials-dev=/usr/include/cvode/cvode.h
)
# Of the suite distributed; the development packages bring mpicxx and mpicc of each.
distributed_packages=(
  openmpi-bin=mpirun.openmpi
  libopenmpi-dev=mpicxx.openmpi
  mpich=mpirun.mpich
  libmpich-dev=mpicxx.mpich
)
docs_packages=(
  "python3-sphinx=/usr/lib/python3/dist-packages/sphinx"
  "python3-myst-parser=/usr/lib/python3/dist-packages/myst_parser"
  "furo=/usr/lib/python3/dist-packages/furo"
)
