#!/usr/bin/env python3
"""Functions of Tensors called from Python: builds python_module.cpp with nanobind and calls it.

Usage: python_test.py COMPILER INCLUDE_DIR LIBRARY WORK_DIR

nanobind and NumPy (2.1 or later) are those that this Python has; else they are installed into
WORK_DIR, from PyPI.
Ends with 77 (skipped) where they, or Python's headers, cannot be had.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import sysconfig
import threading
import unittest
import warnings
import weakref

MODULE = "vt_python_module"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def has_packages(python):
    code = "import nanobind, numpy; exit(numpy.lib.NumpyVersion(numpy.__version__) < '2.1.0')"
    return subprocess.run([python, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


def python_with_packages(work):
    """A Python that has nanobind and NumPy."""
    if has_packages(sys.executable):
        return sys.executable
    own = work / "packages" / "bin" / "python"
    try:
        if not own.exists():
            subprocess.run([sys.executable, "-m", "venv", work / "packages"], check=True)
        if not has_packages(own):
            subprocess.run([own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                            "--retries", "1", "nanobind", "numpy>=2.1"], check=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        skip(f"nanobind and NumPy cannot be installed: {error}")
    return own


def build(compiler, include, library, work):
    """Builds the module in `work`; returns the Python to run it with."""
    headers = pathlib.Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").exists():
        skip(f"no Python.h in {headers}")
    python = python_with_packages(work)
    where = subprocess.run([python, "-m", "nanobind", "--include_dir"], check=True,
                           capture_output=True, text=True).stdout.strip()
    nanobind = pathlib.Path(where).parent
    command = [compiler, "-std=c++20", "-O0", "-fPIC", "-fvisibility=hidden",
               "-fno-strict-aliasing", "-DNDEBUG", "-isystem", headers, "-isystem", where,
               "-isystem", nanobind / "ext" / "robin_map" / "include", "-I", include]
    source = pathlib.Path(__file__).with_name("python_module.cpp")
    subprocess.run([*command, "-c", nanobind / "src" / "nb_combined.cpp", "-o",
                    work / "nanobind.o"], check=True)
    subprocess.run([*command, "-Wall", "-Wextra", "-Werror", "-shared", source,
                    work / "nanobind.o", library, f"-Wl,-rpath,{library.parent}", "-ldl",
                    "-pthread", "-o", work / f"{MODULE}.so"], check=True)
    return python


class Calls(unittest.TestCase):
    def check(self, given, shared):
        """`same` gives the array back, which shares the memory or not, and its triple is right."""
        back = vt.same(given)
        self.assertIs(type(back), np.ndarray)
        self.assertEqual((back.dtype, back.shape), (given.dtype, given.shape))
        np.testing.assert_array_equal(back, given)
        if given.size:
            self.assertEqual(np.shares_memory(back, given), shared)
            self.assertFalse(back.flags.writeable)
        np.testing.assert_array_equal(vt.scaled(given, np.array(3, given.dtype)), given * 3)

    def test_every_dtype_crosses(self):
        for code in "bhiqBHIQefdFD":
            with self.subTest(code):
                self.check(np.array([[0, 1, 1], [1, 0, 1]], code), True)
        flags = np.array([True, False])
        np.testing.assert_array_equal(vt.same(flags), flags)
        self.assertEqual(vt.same(flags).dtype, bool)

    def test_every_layout_crosses(self):
        a = np.arange(24.0).reshape(2, 3, 4)
        read_only = np.frombuffer(b"12345678" * 2)
        for shared, given in [(True, a), (True, a[1]), (True, np.array(3.0)), (True, read_only),
                              (False, a.T), (False, np.asfortranarray(a)), (False, a[:, 1]),
                              (False, a[::-1, :, ::-2]), (False, np.broadcast_to(a[0, 0], (2, 4))),
                              (False, np.empty((0, 3))), (False, np.empty((3, 0))[::-1])]:
            with self.subTest(str(given.strides)):
                self.check(given, shared)

    def test_results_are_written_to_unless_they_are_shared(self):
        a = np.arange(3.0)
        result = vt.twice(a)
        result[0] = 7
        np.testing.assert_array_equal(vt.twice(result), [14, 4, 8])
        np.testing.assert_array_equal(vt.twice(vt.same(a)), [0, 2, 4])  # a read-only argument
        arm = vt.Arm(a, 2.0)
        self.assertFalse(arm.mass.flags.writeable)
        self.assertTrue(np.shares_memory(arm.mass, a))
        given_away = vt.donated(a)
        np.testing.assert_array_equal(a, [0, 1, 2])
        np.testing.assert_array_equal(given_away, [0, 2, 4])

    def test_numbers_are_those_of_python_or_have_a_dtype(self):
        f32 = np.ones(2, np.float32)
        for number, dtype in [(2, "f4"), (2.5, "f4"), (True, "f4"), (2j, "c8"),
                              (np.float32(2), "f4"), (np.float64(2), "f8"), (np.int8(2), "f4")]:
            with self.subTest(repr(number)):
                result = vt.scaled(f32, number)
                self.assertEqual(result.dtype, np.dtype(dtype))
                np.testing.assert_array_equal(result, f32 * number)
        self.assertEqual(vt.energy(3), 9)
        self.assertEqual(vt.scaled(x=3.0), 6)
        self.assertEqual(vt.text(np.bool_(True)), "true bool[]")
        self.assertEqual([vt.which(2.0), vt.which(f32)], ["double", "Tensor"])

    def test_dlpack_of_both_versions(self):
        a, asked = np.arange(3.0), []

        class Versioned:
            def __dlpack__(self, *, max_version=None):
                asked.append(max_version)
                return a.__dlpack__(max_version=max_version)

        class Old:
            def __dlpack__(self):
                return a.__dlpack__()

        for array in Versioned(), Old():
            np.testing.assert_array_equal(vt.twice(array), [0, 2, 4])
            self.assertTrue(np.shares_memory(vt.same(array), a))
        self.assertEqual(asked, [(1, 0)] * 2)
        np.testing.assert_array_equal(vt.twice(memoryview(a)), [0, 2, 4])

    def test_containers_and_classes(self):
        a, b = np.arange(3.0), np.ones((2, 2), np.int32)
        back = vt.backwards([a, b])
        self.assertTrue(np.shares_memory(back[1], a) and np.shares_memory(back[0], b))
        total, others = vt.parts(a)
        self.assertEqual([total, others["max"]], [3, 2])
        self.assertEqual(vt.doubled({"x": 2.0}), {"x": 4})
        self.assertEqual([vt.or_zero(None), vt.or_zero(5)], [0, 5])
        arm = vt.Arm()
        arm.mass, arm.length = a, 2.0
        self.assertEqual([arm.energy(a), arm.length], [4.5, 2])
        np.testing.assert_array_equal(vt.arm_gradient(arm, a).mass, a * a / 2)
        np.testing.assert_array_equal(vt.gradient(x=a), 2 * a)

    def test_errors_have_their_whole_text(self):
        class Wrong:
            def __dlpack__(self, **_):
                raise ValueError("not today")

        class NoCapsule:
            def __dlpack__(self):
                return 5

        arm = vt.Arm(np.ones(3), 1.0)
        unaligned = np.frombuffer(b"x" * 17, np.uint8)[1:].view("f8")
        text = np.array(["text"])
        for error, says, call in [
                (RuntimeError, "vt::multiply: shapes do not broadcast, 3 and 4 .*python_module.cpp",
                 lambda: arm.energy(np.ones(4))),
                (RuntimeError, "vt::multiply: shapes do not broadcast",
                 lambda: vt.scaled(np.ones(3), np.ones(4))),
                (RuntimeError, "empty Tensor", lambda: vt.Arm().mass),
                (RuntimeError, "vt::from_dlpack.*not aligned", lambda: vt.same(unaligned)),
                (RuntimeError, "NumPy has no bf16", lambda: vt.to_bf16(1.0)),
                (BufferError, "DLPack only supports", lambda: vt.same(text)),
                (BufferError, "DLPack only supports", lambda: setattr(arm, "mass", text)),
                (BufferError, "byte order", lambda: vt.same(np.ones(2, ">f8"))),
                (OverflowError, "too big", lambda: vt.same(1 << 70)),
                (ValueError, "not today", lambda: vt.same(Wrong())),
                (TypeError, "no DLPack capsule", lambda: vt.same(NoCapsule())),
                (TypeError, "incompatible function arguments", lambda: vt.same("text")),
                (TypeError, "incompatible function arguments", lambda: vt.same(None)),
                (TypeError, "incompatible function arguments", lambda: vt.same([1.0])),
                (TypeError, "incompatible function arguments", lambda: vt.backwards([text]))]:
            with self.subTest(says), warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                self.assertRaisesRegex(error, says, call)
        self.assertRegex(str(warned[0].message), "DLPack only supports")

    def test_nothing_is_kept(self):
        class Array(np.ndarray):
            pass

        a = np.ones(1000).view(Array)
        gone, count = weakref.ref(a), sys.getrefcount(a)
        arm = vt.Arm(a, 1.0)
        self.assertEqual(sys.getrefcount(a), count + 1)
        del arm
        calls = [lambda: vt.twice(a), lambda: vt.energy(a), lambda: vt.same(a),
                 lambda: vt.scaled(a, np.ones(3)), lambda: vt.backwards([a, np.array("text")]),
                 lambda: vt.doubled({"a": a}), lambda: vt.gradient(a)]
        for call in calls:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call()
            except (RuntimeError, TypeError):
                pass
            self.assertEqual(sys.getrefcount(a), count)
        for drop in vt.drop, vt.drop_without_gil, vt.drop_on_thread:
            vt.keep(a)
            self.assertEqual(sys.getrefcount(a), count + 1)
            drop()
            self.assertEqual(sys.getrefcount(a), count)
        view = vt.same(a)
        del a, call, calls, drop
        self.assertIsNotNone(gone())
        del view
        self.assertIsNone(gone())

    def test_threads_are_inside_at_the_same_time(self):
        def all_met(call, count=2):
            met = []
            threads = [threading.Thread(target=lambda: met.append(call())) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return len(met) == count and all(met)

        self.assertTrue(all_met(vt.meet))
        self.assertTrue(all_met(lambda: bool(vt.meeting(np.array(1.0)))))

    def test_python_ends_before_the_tensors(self):
        code = f"import numpy, {MODULE} as vt; vt.keep(numpy.ones(100)); vt.energy(numpy.ones(3))"
        subprocess.run([sys.executable, "-c", code], check=True)

    @unittest.skipUnless(importlib.util.find_spec("jax"), "no JAX")
    def test_jax(self):
        import jax.numpy as jnp

        a = jnp.arange(3, dtype=jnp.float32)
        self.assertTrue(np.shares_memory(vt.same(a), np.asarray(a)))
        result = vt.twice(a)
        back = jnp.from_dlpack(result)
        self.assertEqual(back.unsafe_buffer_pointer(), result.ctypes.data)
        np.testing.assert_array_equal(back, [0, 2, 4])
        self.assertEqual(vt.text(a.astype(jnp.bfloat16)), "[0. 1. 2.] bf16[3]")


if __name__ == "__main__" and len(sys.argv) > 1:
    compiler, include, library, work = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    work.mkdir(parents=True, exist_ok=True)
    python = build(compiler, include.resolve(), library.resolve(), work)
    sys.exit(subprocess.run([python, __file__], env={**os.environ, "PYTHONPATH": str(work)})
             .returncode)
elif __name__ == "__main__":
    import numpy as np
    vt = importlib.import_module(MODULE)
    unittest.main()
