"""Runs test programs between processes: each of them on 1, 2, 3 and 4 ranks.

Usage: run_suites.py openmpi|mpich PROGRAM...
"""
import os
import shutil
import signal
import subprocess
import sys

family, *programs = sys.argv[1:]
is_open_mpi = family == "openmpi"
launcher = shutil.which("mpirun." + family)
if not launcher:
    sys.exit(f"no mpirun.{family}: install {'openmpi-bin' if is_open_mpi else 'mpich'}")
environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "VT_DEADLINE": "60", "VT_NUM_THREADS": "1"}
environment.pop("VT_MPI_LIBRARY", None)
limit = 200
errors = []
for program in programs:
    for ranks in (1, 2, 3, 4):
        command = [launcher, *(["--oversubscribe"] if is_open_mpi else []), "-n", str(ranks),
                   program, "--gtest_brief=1"]
        child = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 start_new_session=True)
        try:
            output = child.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output = child.communicate()[0] + f"\nnot done after {limit} s"
        passed = output.count("PASSED")
        if child.returncode != 0 or passed != ranks or "FAILED" in output:
            errors.append(f"{os.path.basename(program)} on {ranks} ranks: status "
                          f"{child.returncode}, {passed} ranks have passed\n{output[:6000]}")
print("\n".join(errors) or f"{len(programs)} programs on 1 to 4 ranks: passed")
sys.exit(bool(errors))
