"""Rows of the suite solvers in SciPy, one lane after the other, of some of the lanes.

Usage: solvers_scipy.py FOLDER ROW; ROW may be figures.
"""
from solvers_common import (CONSTANTS, error_of, first_part, hires, lorenz, median_seconds, parts,
                            print_row, read, robertson, row_name)

import time

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares, minimize


def peaks():
    images = read("images").reshape(-1, 225)[:100]
    x, y = np.tile(np.arange(15.0), 15), np.repeat(np.arange(15.0), 15)

    def brightness(p):
        return np.exp(-((x - p[1]) ** 2 + (y - p[2]) ** 2) / (2 * p[3] ** 2))

    def jacobian(p, image):
        e, dx, dy = brightness(p), x - p[1], y - p[2]
        scaled = p[0] * e / p[3] ** 2
        return np.stack([e, scaled * dx, scaled * dy, scaled * (dx ** 2 + dy ** 2) / p[3],
                         np.ones(225)], 1)

    def fit(image):
        least, most = image.min(), image.max()
        p = least_squares(lambda p, image: p[0] * brightness(p) + p[4] - image,
                          [most - least, 7, 7, 2, least], jacobian, args=(image,), method="lm",
                          ftol=1e-8, xtol=1e-8, gtol=1e-15).x
        p[3] = abs(p[3])
        return p

    error = error_of([fit(image) for image in images], read("answers"), 5)
    print_row("scipy", median_seconds(lambda: [fit(image) for image in images]), len(images), 1e-5,
              error=error)


def rosenbrock():
    starts = read("starts").reshape(-1, int(parts[0]))[:20]

    def f(x):
        a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
        g = np.zeros_like(x)
        g[:-1] = -400 * a * x[:-1] - 2 * b
        g[1:] += 200 * a
        return 100 * a @ a + b @ b, g

    def solve():
        return [minimize(f, start, jac=True, method="L-BFGS-B",
                         options={"maxcor": 6, "ftol": 0, "gtol": 1e-8, "maxfun": 10 ** 6})
                for start in starts]

    found = solve()
    print_row("scipy", median_seconds(solve), len(starts), 1e-3,
              error=float(max(np.abs(s.jac).max() for s in found)),
              work=sum(s.nfev for s in found))


def differential_equation():
    constants = CONSTANTS[first_part]
    stiff = "t1" in constants
    xs, ends = read("x").reshape(-1, 3)[:3], read("t1")
    side = {"robertson": robertson, "hires": hires}.get(first_part)

    def solve():
        tolerances = {name: constants[name] for name in ("rtol", "atol")}
        if stiff:
            return [solve_ivp(lambda t, y: side(k, y), (0, constants["t1"]), constants["y0"],
                              "LSODA", **tolerances) for k in xs]
        return [solve_ivp(lambda t, y: lorenz(y), (0, t1), y0, "DOP853", **tolerances)
                for y0, t1 in zip(xs, ends)]

    found = solve()
    print_row("scipy", median_seconds(solve), len(found), 1e-1 if stiff else 0.3,
              error=error_of([s.y[:, -1] for s in found], read("answers"), 1 if stiff else 3),
              work=sum(s.nfev for s in found))


# --- figures -------------------------------------------------------------------------------------
def van_der_pol(k, y):
    return [y[1], k[0] * ((1 - y[0] * y[0]) * y[1] - y[0])]


def oregonator(k, y):
    return [k[0] * (y[1] + y[0] * (1 - k[1] * y[0] - y[1])), (y[2] - (1 + y[0]) * y[1]) / k[0],
            k[2] * (y[0] - y[2])]


def arenstorf(k, y):
    moon, earth = k[0], 1 - k[0]
    a, b = (y[0] + moon) ** 2 + y[1] ** 2, (y[0] - earth) ** 2 + y[1] ** 2
    near_earth, near_moon = earth / a ** 1.5, moon / b ** 1.5
    return [y[2], y[3],
            y[0] + 2 * y[3] - near_earth * (y[0] + moon) - near_moon * (y[0] - earth),
            y[1] - 2 * y[2] - (near_earth + near_moon) * y[1]]


def figures():
    """The constants are in a file that vt's program writes: start, rates, t1, atol / rtol, y."""
    sides = {"robertson": robertson, "van_der_pol": van_der_pol, "hires": hires,
             "oregonator": oregonator, "arenstorf": arenstorf}
    for name, side in sides.items():
        name_of_row = f"figures/{name}"
        start, rates, known = (read(what, name_of_row) for what in ("start", "rates", "y"))
        t1, atol = read("t1_and_atol", name_of_row)
        methods = ("RK45", "DOP853") if name == "arenstorf" else ("Radau", "BDF", "LSODA")
        width = len(known) if 0 in known else 1
        for method in methods:
            for digits in range(3, 11):
                rtol = 10.0 ** -digits
                begin = time.process_time()
                s = solve_ivp(lambda t, y: side(rates, y), (0, t1), start, method, rtol=rtol,
                              atol=rtol * atol)
                seconds = time.process_time() - begin
                if s.success:
                    print_row(f"SciPy {method}", seconds, 1, np.inf, name_of_row, rtol=rtol,
                              error=error_of(s.y[:, -1], known, width), work=s.nfev)
                if seconds > 10:
                    break


{"peaks": peaks, "rosenbrock": rosenbrock, "lorenz": differential_equation,
 "robertson": differential_equation, "hires": differential_equation,
 "figures": figures}[first_part]()
