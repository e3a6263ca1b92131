"""The rows of perf/spectral in JAX and NumPy."""
import jax
import jax.numpy as jnp
import numpy as np

from common import row, write

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(1)


def real(shape, dtype):
    return rng.uniform(-1, 1, shape).astype(dtype)


def rows(name, x, f):
    compiled = jax.jit(lambda v: f(jnp, v))
    there = jnp.asarray(x)
    row(name + "/jax", lambda: compiled(there))
    row(name + "/numpy", lambda: f(np, x))


for name, part in (("c64", np.float32), ("c128", np.float64)):
    def signal(shape):
        return (real(shape, part) + 1j * real(shape, part)).astype(
            np.complex64 if part == np.float32 else np.complex128)

    def fft(lib, v):
        return lib.fft.fft(v)

    for p in (10, 12, 14, 16, 18, 20):
        rows(f"fft/{name}/{1 << p}", signal(1 << p), fft)
    for shape in ((1000, 1024), (1000, 1000), (100, 10007)):
        rows(f"fft/{name}/{shape[0]}x{shape[1]}", signal(shape), fft)
    rows(f"fft2/{name}/1024x1024", signal((1024, 1024)), lambda lib, v: lib.fft.fft2(v))
    rows(f"rfft/{name}/1000x1024", real((1000, 1024), part), lambda lib, v: lib.fft.rfft(v))
    rows(f"rfft/{name}/1048576", real(1 << 20, part), lambda lib, v: lib.fft.rfft(v))
    decay = np.exp(-np.fft.rfftfreq(1024)).astype(part)
    rows(f"filter/{name}/1000x1024", real((1000, 1024), part),
         lambda lib, v: lib.tanh(lib.fft.irfft(lib.fft.rfft(v) * decay)))

z = (real(1_000_000, np.float32) + 1j * real(1_000_000, np.float32)).astype(np.complex64)
a = (real((512, 512), np.float32) + 1j * real((512, 512), np.float32)).astype(np.complex64)
rows("complex/exp/c64/1000000", z, lambda lib, v: lib.exp(v))
rows("complex/chain/c64/1000000", z, lambda lib, v: abs(v * lib.conj(v) + np.float32(2) * v))
rows("complex/matmul/c64/512", a, lambda lib, v: v @ v)

write()
