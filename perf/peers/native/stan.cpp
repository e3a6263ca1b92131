// Reverse mode of Stan Math, a pass for each output; forward over reverse for Hessians.
#include <stan/math/mix/mat.hpp>

#include "peer.hpp"

struct Stan {
  static constexpr const char* name = "stan";
  static constexpr bool compiles = false;
  template <class P>
  struct Of {
    void derivative(const double* x, double* d)
      requires P::second
    {
      using stan::math::fvar, stan::math::var;
      for (int i = 0; i < P::inputs; ++i) {
        std::vector<fvar<var>> at(x, x + P::inputs);
        at[i].d_ = 1;
        fvar<var> y;
        P::template value<fvar<var>>(at.data(), &y);
        y.d_.grad();
        for (int j = 0; j < P::inputs; ++j) d[i * P::inputs + j] = at[j].val_.adj();
        stan::math::recover_memory();
      }
    }
    void derivative(const double* x, double* d) {
      using stan::math::var;
      std::vector<var> at(x, x + P::inputs);
      var y[P::outputs];
      P::template value<var>(at.data(), y);
      for (int j = 0; j < P::outputs; ++j) {
        if (j) stan::math::set_zero_all_adjoints();
        y[j].grad();
        for (int i = 0; i < P::inputs; ++i) d[j * P::inputs + i] = at[i].adj();
      }
      stan::math::recover_memory();
    }
  };
};

int main(int argc, char** argv) { return peer::run<Stan>(argc, argv); }
