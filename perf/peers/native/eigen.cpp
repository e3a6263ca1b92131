// Eigen's AutoDiffScalar, all inputs in one pass where they are few.
#include <Eigen/Core>
#include <unsupported/Eigen/AutoDiff>

#include "peer.hpp"

struct EigenAutoDiff {
  static constexpr const char* name = "eigen";
  static constexpr bool compiles = false;
  template <class P>
    requires(!P::second)
  struct Of {
    static constexpr int width = P::inputs <= 48 ? P::inputs : 16;
    using Scalar = Eigen::AutoDiffScalar<Eigen::Matrix<double, width, 1>>;
    std::vector<Scalar> at = std::vector<Scalar>(P::inputs), y = std::vector<Scalar>(P::outputs);

    void derivative(const double* x, double* d) {
      for (int first = 0; first < P::inputs; first += width) {
        for (int i = 0; i < P::inputs; ++i) {
          at[i] = Scalar(x[i]);
          if (i >= first && i < first + width) at[i] = Scalar(x[i], width, i - first);
        }
        P::template value<Scalar>(at.data(), y.data());
        for (int j = 0; j < P::outputs; ++j)
          for (int i = first; i < std::min(first + width, P::inputs); ++i)
            d[j * P::inputs + i] = y[j].derivatives()[i - first];
      }
    }
  };
};

int main(int argc, char** argv) { return peer::run<EigenAutoDiff>(argc, argv); }
