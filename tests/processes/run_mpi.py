"""Runs the cases of mpi_cases.cpp between processes, and checks what each rank says and how long
it takes.

Usage: run_mpi.py openmpi|mpich PROGRAM
"""
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

family, program = sys.argv[1:]
is_open_mpi = family == "openmpi"
launcher = shutil.which("mpirun." + family)
if not launcher:
    sys.exit(f"no mpirun.{family}: install {'openmpi-bin' if is_open_mpi else 'mpich'}")
library = "libmpi.so.40" if is_open_mpi else "libmpich.so.12"
other_library = "libmpich.so.12" if is_open_mpi else "libmpi.so.40"
environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
environment.pop("VT_MPI_LIBRARY", None)
oversubscribed = ["--oversubscribe"] if is_open_mpi else []
# The others live on where one dies.
recovering = ["--enable-recovery"] if is_open_mpi else ["-disable-auto-cleanup"]
errors = []


def run(ranks, arguments, flags=(), settings=None, limit=20):
    """What mpirun prints, and the seconds that it takes."""
    command = [launcher, *oversubscribed, *flags, "-n", str(ranks), *arguments]
    begin = time.monotonic()
    child = subprocess.Popen(command, env={**environment, **(settings or {})}, text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = child.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output = child.communicate()[0] + f"\nnot done after {limit} s"
    return output, time.monotonic() - begin, child.returncode


def check(ranks, case, silent=False, returns_zero=True, most=8, **options):
    """All ranks, or all but the last one, must say that all is as expected."""
    output, seconds, status = run(ranks, [*options.pop("before", ()), program, case,
                                          *options.pop("more", ())], **options)
    lines = output.splitlines()
    wrong = [f"rank {r} does not say that all is as expected"
             for r in range(ranks - silent) if f"rank {r}: as expected" not in lines]
    if seconds > most:
        wrong.append(f"it takes {seconds:.1f} s")
    if returns_zero and status != 0:
        wrong.append(f"the status is {status}")
    if wrong:
        errors.append(f"{case} on {ranks} ranks: {'; '.join(wrong)}\n{output}")


def expect_text(text, ranks, arguments, **options):
    output = run(ranks, arguments, **options)[0]
    if text not in output:
        errors.append(f"expected: {text}\n{output}")


failures = ["a_rank_throws", "a_rank_outside_throws", "a_rank_ends", "a_rank_sleeps",
            "a_rank_is_slow", "ranks_differ", "sizes_differ", "a_rank_throws_amid_large_arrays",
            "a_call_ends_by_an_error", "a_call_ends_before_others_send", "a_call_ends_at_its_end",
            "all_calls_end_by_errors", "a_rank_ends_behind_an_error",
            "ranks_differ_behind_an_error", "a_rank_sleeps_at_a_swap", "what_was_begun_is_dropped"]
jobs = []  # most of them wait: several at a time
with ThreadPoolExecutor(3) as pool:
    def later(function, *arguments, **options):
        jobs.append(pool.submit(function, *arguments, **options))

    for ranks in (4, 2, 1):
        later(check, ranks, "all", most=60, limit=60)
    for case in failures:
        later(check, 2, case)
    later(check, 3, "a_rank_leaves_others_waiting")
    later(check, 3, "what_was_begun_is_dropped")
    for case in ("a_rank_outside_throws", "a_rank_sleeps", "a_rank_is_elsewhere", "ranks_differ"):
        later(check, 4, case)
    later(check, 3, "a_rank_vanishes", silent=True, returns_zero=False, flags=recovering)
    # It has ended, but who started it has not asked for its status yet.
    late = [sys.executable, "-c", "import subprocess, sys, time; "
            "child = subprocess.Popen(sys.argv[1:], close_fds=False); time.sleep(6); "
            "sys.exit(child.wait())"]
    later(check, 2, "a_rank_vanishes", silent=True, returns_zero=False, flags=recovering,
          before=late, most=12)
    # MPICH's launcher ends all processes of a host where it sees one killed by a signal.
    shell = [] if is_open_mpi else ["sh", "-c", 'trap "" USR1; "$0" "$@"; exit 0']
    later(check, 2, "a_rank_is_killed", silent=True, returns_zero=False, flags=recovering,
          before=shell)
    later(check, 2, "a_rank_forks")
    later(check, 2, "a_static_object_is_late")
    later(check, 2, "a_thread_ends_the_process", silent=True, returns_zero=False)
    later(check, 2, "a_rank_hangs", silent=True, returns_zero=False, most=12)
    later(check, 2, "an_exception_is_not_caught", returns_zero=False)
    # The program's own MPI, which vt neither begins nor ends.
    for case in ("reductions", "permutations"):
        later(check, 2, case, more=[library])
    later(check, 2, "the_program_ends_mpi")
    later(expect_text, "no world: vt: not all processes came to their first use", 2,
          [program, "a_rank_never_comes", library], settings={"VT_DEADLINE": "1"})
    name = "Open MPI 4" if is_open_mpi else "MPICH 4"
    later(expect_text, f"rank 1: {name}", 2, [program, "name"])
    later(expect_text, "rank 0: threads", 2, [program, "name"],
          settings={"VT_MPI_LIBRARY": "none"})
    later(expect_text, "/no/such/libmpi.so", 1, [program, "name"],
          settings={"VT_MPI_LIBRARY": "/no/such/libmpi.so"})
    later(expect_text, "lacks the function MPI_Get_library_version", 1, [program, "name"],
          settings={"VT_MPI_LIBRARY": "libm.so.6"})
    later(expect_text, "it is not the library of the launcher", 2, [program, "name"],
          settings={"VT_MPI_LIBRARY": other_library})
    later(expect_text, "has to be started by the mpirun that belongs to it", 2,
          [program, "name", other_library])
for job in jobs:
    job.result()
if errors:
    sys.exit("\n".join(errors))
print(f"{len(jobs)} runs of {launcher} as expected")
