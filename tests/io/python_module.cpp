// A Python module of functions of Tensors, for python_test.py.
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <vt/nanobind.hpp>
#include <vt/vt.hpp>

namespace nb = nanobind;
using vt::Tensor;

namespace {

Tensor energy(const Tensor& x) { return vt::sum(x * x); }
Tensor twice(const Tensor& x) { return x + x; }
Tensor same(const Tensor& x) { return x; }
std::string text(const Tensor& x) { return x.str(); }
std::vector<Tensor> backwards(const std::vector<Tensor>& x) { return {x.rbegin(), x.rend()}; }

struct Arm {
  Tensor mass, length;
  Tensor energy(const Tensor& speed) const { return vt::sum(mass * speed * speed) / 2; }
};

// Is another thread in here at the same time?
bool meet() {
  static std::mutex mutex;
  static std::condition_variable another_came;
  static int came = 0;
  std::unique_lock lock(mutex);
  const int wanted = came - came % 2 + 2;
  ++came;
  another_came.notify_all();
  return another_came.wait_for(lock, std::chrono::seconds(20), [&] { return came >= wanted; });
}
Tensor meeting(const Tensor& x) {
  return vt::pure_callback([](const Tensor& t) { return meet() ? t : t * 0; }, x)(x);
}

// Tensors that live on when Python has ended.
std::vector<Tensor> kept;

}  // namespace

NB_MODULE(vt_python_module, m) {
  m.def("energy", vt::python(vt::jit(energy)));
  m.def("gradient", vt::python(vt::jit(vt::grad(energy))), nb::arg("x"));
  m.def("twice", vt::python(twice));
  m.def("same", vt::python(same));
  m.def("text", vt::python(text));
  m.def("to_bf16", vt::python([](const Tensor& x) { return x.astype(vt::bf16); }));
  m.def("donated", vt::python(vt::jit(twice, {.donate = {0}})));
  m.def("scaled", vt::python([](const Tensor& x, const Tensor& by) { return x * by; }),
        nb::arg("x"), nb::arg("by") = 2.0);
  m.def("which", [](double) { return "double"; });
  m.def("which", [](const Tensor&) { return "Tensor"; });

  m.def("backwards", vt::python(backwards));
  m.def("parts", vt::python([](const Tensor& x) {
          return std::tuple(vt::sum(x), std::map<std::string, Tensor>{{"max", vt::max(x)}});
        }));
  m.def("doubled", vt::python([](const std::map<std::string, Tensor>& all) {
          std::map<std::string, Tensor> doubled;
          for (const auto& [name, x] : all) doubled[name] = x + x;
          return doubled;
        }));
  m.def("or_zero", vt::python([](const std::optional<Tensor>& x) { return x ? *x : Tensor(0); }));
  nb::class_<Arm>(m, "Arm")
      .def(nb::init<>())
      .def(nb::init<Tensor, Tensor>())
      .def_rw("mass", &Arm::mass)
      .def_rw("length", &Arm::length)
      .def("energy", &Arm::energy, nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "arm_gradient",
      vt::python(vt::grad([](const Arm& arm, const Tensor& speed) { return arm.energy(speed); })));

  m.def("meet", vt::python(meet));
  m.def("meeting", vt::python(vt::jit(meeting)));
  m.def("keep", vt::python([](const Tensor& x) { kept.push_back(x); }));
  m.def("drop", [] { kept.clear(); });
  m.def("drop_without_gil", vt::python([] { kept.clear(); }));
  m.def("drop_on_thread", vt::python([] { std::thread([] { kept.clear(); }).join(); }));
}
