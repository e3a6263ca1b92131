#!/usr/bin/env bash
# Builds DyNet 2.1.2 from its source package for this machine's processor, with Debian's Eigen, into
# perf/peers/.venv/dynet_native: a peer beside the wheel dynet38, which runs on any processor.
#   perf/peers/build_dynet.sh
# The library takes about seven minutes on one core. JOBS is how many compilers run at once.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/packages.sh
need "${build_packages[@]}"
venv=$PWD/perf/peers/.venv
[ -x "$venv/bin/python" ] || { echo "first: scripts/bench --suite autobatch --peers" >&2; exit 2; }
out=$venv/dynet_native work=$venv/dynet_build
[ ! -f "$out/_dynet.so" ] || exit 0
for eigen in /usr/include/eigen3 /usr/local/include/eigen3; do [ ! -d $eigen ] || break; done
mkdir -p "$out" "$work"
if [ ! -d "$work/source" ]; then
  "$venv/bin/pip" download --quiet --no-deps --no-binary :all: -d "$work" dynet==2.1.2
  mkdir "$work/source.part"
  tar xf "$work"/*.tar.gz -C "$work/source.part" --strip-components=1
  mv "$work/source.part" "$work/source"
fi
# Its Cython source is older than Cython 3.
"$venv/bin/pip" install --quiet --upgrade --target "$work/cython" "cython<3"
# Its release build has -march=native.
cmake -S "$work/source" -B "$work/build" -DEIGEN3_INCLUDE_DIR=$eigen -DCMAKE_CXX_FLAGS=-w >/dev/null
cmake --build "$work/build" --target dynet -j "${JOBS:-$(nproc)}"
cp "$work/build/dynet/libdynet.so" "$out/"
cp "$work/source/python/dynet_config.py" "$work/source/python/dynet_viz.py" "$out/"
sed 's/\${HAVE_CUDA}/False/; s/\${GIT_DESCRIBE}//' "$work/source/python/dynet.py.in" \
  >"$out/dynet.py"
PYTHONPATH=$work/cython "$venv/bin/python" -m cython --cplus -2 -o "$work/_dynet.cpp" \
  "$work/source/python/_dynet.pyx"
headers=$("$venv/bin/python" -c "import sysconfig; print(sysconfig.get_path('include'))")
g++ -O2 -w -shared -fPIC -std=c++14 -I"$headers" -I"$work/source" -I"$work/build" -I$eigen \
  "$work/_dynet.cpp" -L"$out" -ldynet -Wl,-rpath,'$ORIGIN' -o "$work/_dynet.so"
mv "$work/_dynet.so" "$out/"
PYTHONPATH=$out "$venv/bin/python" -c "import dynet; assert 'dynet_native' in dynet.__file__"
