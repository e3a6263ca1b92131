// The problems by themselves, and their derivatives by central differences.
#include "peer.hpp"

struct Plain {
  static constexpr const char* name = "plain";
  static constexpr bool compiles = false;
  template <class P>
  struct Of {
    void value(const double* x, double* y) { P::template value<double>(x, y); }
  };
};

struct Differences {
  static constexpr const char* name = "differences";
  static constexpr bool compiles = false;
  template <class P>
    requires(!P::second)
  struct Of {
    void derivative(const double* x, double* d) {
      static std::vector<double> at(P::inputs), up(P::outputs), down(P::outputs);
      at.assign(x, x + P::inputs);
      for (int i = 0; i < P::inputs; ++i) {
        const double h = 6e-6 * (1 + std::abs(x[i]));
        at[i] = x[i] + h;
        P::template value<double>(at.data(), up.data());
        at[i] = x[i] - h;
        P::template value<double>(at.data(), down.data());
        at[i] = x[i];
        for (int j = 0; j < P::outputs; ++j) d[j * P::inputs + i] = (up[j] - down[j]) / (2 * h);
      }
    }
  };
};

int main(int argc, char** argv) { return peer::run<Plain, Differences>(argc, argv); }
