// Python modules of your own functions, made with nanobind: Tensors as their arguments, their
// results, and members of classes. Not part of vt/vt.hpp.
#pragma once

#include <nanobind/nanobind.h>

#include <complex>
#include <cstdint>
#include <exception>
#include <utility>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/python.hpp>

namespace vt {

/// `f` (a function, a lambda, or what vt::jit, vt::grad and other transforms make of one) for
/// nanobind: `m.def("energy", vt::python(vt::jit(energy)))`. The types of the parameters are those
/// that `f` spells out. Python's other threads run while `f` does, so it must not touch Python's
/// objects.
template <class F>
[[nodiscard]] auto python(F f) {
  using Parameters = typename detail::Parameters<F>::type;
  return detail::python::without_gil(std::move(f), Parameters());
}

}  // namespace vt

/// Tensors as arguments: arrays that have `__dlpack__`, read where they lie if their elements are
/// in order; what NumPy makes an array of by the buffer protocol (its scalars); and numbers. As
/// results: arrays of NumPy, without a copy, which are read-only if something else has their
/// elements.
template <>
struct nanobind::detail::type_caster<vt::Tensor> {
  using Value = vt::Tensor;
  template <class T>
  using Cast = movable_cast_t<T>;
  static constexpr auto Name = io_name("numpy.typing.ArrayLike", "numpy.ndarray");

  bool from_python(handle source, std::uint32_t flags, cleanup_list*) noexcept {
    namespace python = vt::detail::python;
    python::free_given_up();
    PyObject* const o = source.ptr();
    const bool converts = flags & static_cast<std::uint32_t>(cast_flags::convert);
    failure = nullptr;
    try {
      if (is_number(o)) {
        if (converts) value = vt::detail::number_argument(number(o));
        return converts;
      }
      object capsule = python::capsule_of(source);
      if (!capsule.is_valid() && converts && PyObject_CheckBuffer(o)) {
        PyErr_Clear();
        capsule = python::capsule_of(module_::import_("numpy").attr("array")(source));
      }
      if (!capsule.is_valid()) {
        python_error error;  // takes it from Python
        if (!hasattr(source, "__dlpack__")) return false;
        throw error;
      }
      value = python::read(std::move(capsule));
    } catch (...) {
      failure = std::current_exception();
    }
    return true;
  }
  /// nanobind asks where an exception would end the program: for elements of lists. What it raises
  /// then tells the types only.
  template <class>
  bool can_cast() const noexcept {
    if (!failure) return true;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      PyErr_WarnEx(PyExc_RuntimeWarning, e.what(), 1);
      PyErr_Clear();
    }
    return false;
  }
  explicit operator vt::Tensor&() {
    if (failure) std::rethrow_exception(failure);
    return value;
  }
  explicit operator vt::Tensor*() { return &operator vt::Tensor&(); }
  explicit operator vt::Tensor&&() { return std::move(operator vt::Tensor&()); }

  static handle from_cpp(vt::Tensor t, rv_policy, cleanup_list*) noexcept {
    try {
      return vt::detail::python::to_numpy(std::move(t)).release();
    } catch (...) {
      return vt::detail::python::raise();
    }
  }
  static handle from_cpp(const vt::Tensor* t, rv_policy policy, cleanup_list* list) noexcept {
    return t ? from_cpp(*t, policy, list) : none().release();
  }

 private:
  static bool is_number(PyObject* o) {
    return PyLong_Check(o) || PyFloat_CheckExact(o) || PyComplex_CheckExact(o);
  }
  static vt::detail::Scalar number(PyObject* o) {
    if (PyFloat_CheckExact(o)) return PyFloat_AsDouble(o);
    if (PyComplex_CheckExact(o))
      return std::complex<double>(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
    if (PyBool_Check(o)) return o == Py_True;
    const long long n = PyLong_AsLongLong(o);
    if (n == -1 && PyErr_Occurred()) raise_python_error();
    return n;
  }

  vt::Tensor value;
  std::exception_ptr failure;
};
