// How Tensors cross to and from Python, for vt/nanobind.hpp: by DLPack, without a copy.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <vt/detail/parameters.hpp>
#include <vt/dlpack.hpp>

namespace vt::detail::python {

// Structures of DLPack: https://dmlc.github.io/dlpack/latest/c_api.html
struct Array {
  void* data;
  std::int32_t device[2], axes;
  std::uint8_t dtype[4];
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct Managed {
  static constexpr const char* name = "dltensor";
  Array array;
  void* context;
  void (*deleter)(Managed*);
};
struct Versioned {
  static constexpr const char* name = "dltensor_versioned";
  std::uint32_t major = 1, minor = 0;
  void* context = nullptr;
  void (*deleter)(Versioned*) = nullptr;
  std::uint64_t flags = 0;
  Array array = {};
};
template <class M>
M* inside(nanobind::handle capsule) {
  if (!PyCapsule_IsValid(capsule.ptr(), M::name)) return nullptr;
  return static_cast<M*>(PyCapsule_GetPointer(capsule.ptr(), M::name));
}

/// A Python array that vt reads. It lives as long as its capsule, and that as long as this.
struct Borrowed {
  Versioned view;
  nanobind::object capsule;
  Borrowed* next = nullptr;
};
/// Those whose last Tensor went on a thread without the GIL. Who waits for the GIL there may wait
/// for ever: another thread may have it, and wait for what this one has locked.
inline std::atomic<Borrowed*> given_up;
/// Frees them. Needs the GIL.
inline int free_given_up(void* = nullptr) {
  if (given_up.load(std::memory_order_relaxed))
    for (Borrowed* b = given_up.exchange(nullptr); b;) delete std::exchange(b, b->next);
  return 0;
}
inline void give_up(Versioned* view) {
  auto* const b = static_cast<Borrowed*>(view->context);
  if (!Py_IsInitialized()) return;  // Python has ended before, and with it the array
  if (PyGILState_Check()) return delete b;
  Borrowed* others = given_up.load();
  do b->next = others;
  while (!given_up.compare_exchange_weak(others, b));
  if (!others) Py_AddPendingCall(free_given_up, nullptr);
}

/// The capsule of `array.__dlpack__`, of version 1 where it has that; not valid where that has set
/// Python's error.
inline nanobind::object capsule_of(nanobind::handle array) {
  static PyObject* const method = PyUnicode_InternFromString("__dlpack__");
  static PyObject* const names = Py_BuildValue("(s)", "max_version");
  static PyObject* const version = Py_BuildValue("(ii)", 1, 0);
  PyObject* const arguments[] = {array.ptr(), version};
  PyObject* capsule = PyObject_VectorcallMethod(method, arguments, 1, names);
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // older than max_version
    PyErr_Clear();
    capsule = PyObject_VectorcallMethod(method, arguments, 1, nullptr);
  }
  return nanobind::steal(capsule);
}

/// The Tensor of what is in a valid capsule. Throws: nanobind::builtin_exception, Error.
inline Tensor read(nanobind::object capsule) {
  auto b = std::make_unique<Borrowed>();
  if (const auto* versioned = inside<Versioned>(capsule)) b->view = *versioned;
  else if (const auto* managed = inside<Managed>(capsule)) b->view.array = managed->array;
  else nanobind::raise_type_error("vt: __dlpack__ gave no DLPack capsule");
  b->view.context = b.get();
  b->view.deleter = give_up;
  b->capsule = std::move(capsule);
  return from_dlpack(reinterpret_cast<DLManagedTensorVersioned*>(&b.release()->view), CallSite{});
}

/// What `numpy.from_dlpack` makes an array of.
struct Result {
  PyObject_HEAD Tensor* tensor;
};
/// Makes the exception that is being handled Python's error.
inline PyObject* raise() noexcept {
  try {
    throw;
  } catch (nanobind::python_error& e) {
    e.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}
template <class M>
PyObject* new_capsule(M* m) {
  PyObject* capsule = PyCapsule_New(m, M::name, [](PyObject* c) {
    if (M* unread = inside<M>(c)) unread->deleter(unread);
  });
  if (!capsule) m->deleter(m);
  return capsule;
}
inline PyObject* dlpack_of(PyObject* self, PyObject* const*, Py_ssize_t, PyObject* names) {
  Tensor& t = *reinterpret_cast<Result*>(self)->tensor;
  try {  // NumPy names max_version, or is older than that and names nothing
    if (!names) return new_capsule(reinterpret_cast<Managed*>(to_dlpack(t, CallSite{})));
    auto* const view = to_dlpack_versioned(std::move(t), CallSite{});
    return new_capsule(reinterpret_cast<Versioned*>(view));
  } catch (...) {
    return raise();
  }
}
/// Forces evaluation, without the GIL. Throws: nanobind::python_error, Error.
inline nanobind::object to_numpy(Tensor t) {
  static PyMethodDef methods[] = {
      {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack_of)),
       METH_FASTCALL | METH_KEYWORDS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
  static PyType_Spec spec = {"vt.Result", sizeof(Result), 0, Py_TPFLAGS_DEFAULT, slots};
  static PyObject* const type = PyType_FromSpec(&spec);
  static PyObject* from_dlpack = nullptr;  // importing leaves the GIL to others for a while
  if (!from_dlpack) {
    nanobind::object found = nanobind::module_::import_("numpy").attr("from_dlpack");
    from_dlpack = found.release().ptr();
  }
  if (t.defined() && t.dtype() == DType::bf16)
    throw Error(ErrorKind::dtype, "vt: NumPy has no bf16: return x.astype(vt::f32)");
  {
    const nanobind::gil_scoped_release others_run;
    t.eval(CallSite{});
  }
  nanobind::object result = nanobind::steal(
      reinterpret_cast<PyObject*>(PyObject_New(Result, reinterpret_cast<PyTypeObject*>(type))));
  if (!result.is_valid()) nanobind::raise_python_error();
  reinterpret_cast<Result*>(result.ptr())->tensor = &t;
  PyObject* const argument = result.ptr();
  PyObject* array = PyObject_Vectorcall(from_dlpack, &argument, 1, nullptr);
  if (!array) nanobind::raise_python_error();
  return nanobind::steal(array);
}

template <class F, class... P>
auto without_gil(F f, ParameterList<P...>) {
  static_assert(std::is_invocable_v<const F&, P...>,
                "vt::python: the function must spell out the types of its parameters");
  return [f = std::move(f)](P... arguments) {
    const nanobind::gil_scoped_release others_run;
    return f(arguments...);
  };
}

}  // namespace vt::detail::python
