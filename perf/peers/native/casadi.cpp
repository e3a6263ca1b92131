// Expressions of CasADi, whose C is compiled by gcc -O3.
#include <dlfcn.h>

#include <algorithm>
#include <casadi/casadi.hpp>
#include <filesystem>

#include "peer.hpp"

template <>
inline constexpr bool problems::symbolic<casadi::SXElem> = true;

struct Casadi {
  static constexpr const char* name = "casadi";
  static constexpr bool compiles = true;
  using Code = int (*)(const double**, double**, casadi_int*, double*, int);
  static std::string folder() {
    static const std::string made = [] {
      std::string path = (std::filesystem::temp_directory_path() / "vt-casadi-XXXXXX").string();
      return std::string(mkdtemp(path.data()));
    }();
    return made;
  }
  template <class P>
    requires P::expression
  struct Of {
    Code of_value = nullptr, of_derivative = nullptr;
    std::vector<double> work;
    Of() {
      using casadi::SX, casadi::SXElem;
      const SX x = SX::sym("x", P::inputs);
      std::vector<SXElem> out(P::outputs);
      P::template value<SXElem>(x.nonzeros().data(), out.data());
      const SX y(out), d = P::second ? SX::hessian(y, x) : SX::jacobian(y, x);
      const casadi::Function value("value", {x}, {y}),
          derivative("derivative", {x}, {SX::densify(d.T())});
      work.resize(std::max(value.sz_w(), derivative.sz_w()) + 1);
      std::string file = P::name;
      std::ranges::replace(file, '/', '_');
      const std::string base = folder() + "/" + file;
      casadi::CodeGenerator code(file + ".c");
      code.add(value), code.add(derivative);
      code.generate(folder() + "/");
      if (std::system(("gcc -O3 -march=native -shared -fPIC -o " + base + ".so " + base + ".c -lm")
                          .c_str()) != 0)
        std::exit(1);
      void* library = dlopen((base + ".so").c_str(), RTLD_NOW);
      of_value = reinterpret_cast<Code>(dlsym(library, "value"));
      of_derivative = reinterpret_cast<Code>(dlsym(library, "derivative"));
    }
    void value(const double* x, double* y) { of_value(&x, &y, nullptr, work.data(), 0); }
    void derivative(const double* x, double* d) { of_derivative(&x, &d, nullptr, work.data(), 0); }
  };
};

int main(int argc, char** argv) {
  const int status = peer::run<Casadi>(argc, argv);
  std::filesystem::remove_all(Casadi::folder());
  return status;
}
