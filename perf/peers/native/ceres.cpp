// Dual numbers of Ceres, all inputs in one pass where they are few.
#include <ceres/jet.h>

#include "peer.hpp"

struct Ceres {
  static constexpr const char* name = "ceres";
  static constexpr bool compiles = false;
  template <class P>
  struct Of {
    static constexpr int width = P::inputs <= 48 ? P::inputs : 16;
    using Jet = ceres::Jet<double, width>;
    std::vector<Jet> at = std::vector<Jet>(P::inputs);

    void derivative(const double* x, double* d)
      requires(!P::second)
    {
      for (int first = 0; first < P::inputs; first += width) {
        for (int i = 0; i < P::inputs; ++i)
          at[i] = i >= first && i < first + width ? Jet(x[i], i - first) : Jet(x[i]);
        Jet y[P::outputs];
        P::template value<Jet>(at.data(), y);
        for (int j = 0; j < P::outputs; ++j)
          for (int i = first; i < std::min(first + width, P::inputs); ++i)
            d[j * P::inputs + i] = y[j].v[i - first];
      }
    }
  };
};

int main(int argc, char** argv) { return peer::run<Ceres>(argc, argv); }
