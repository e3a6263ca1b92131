// Tapes of ADOL-C, recorded once: what a function branches on must not change.
#include <adolc/adolc.h>

#include "peer.hpp"

struct AdolC {
  static constexpr const char* name = "adolc";
  static constexpr bool compiles = true;
  static inline int tapes = 0;
  template <class P>
  struct Of {
    int tape;
    std::vector<double*> rows;
    Of() {
      tape = ++tapes;
      constexpr unsigned room = 1 << 22;  // so that tapes stay in memory
      trace_on(tape, 0, room, room, room, room);
      std::vector<adouble> x(P::inputs), y(P::outputs);
      const std::vector<double> at = problems::start<P>();
      for (int i = 0; i < P::inputs; ++i) x[i] <<= at[i];
      P::template value<adouble>(x.data(), y.data());
      std::vector<double> out(P::outputs);
      for (int i = 0; i < P::outputs; ++i) y[i] >>= out[i];
      trace_off();
      rows.resize(P::second ? P::inputs : P::outputs);
    }
    void derivative(const double* x, double* d) {
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = d + i * P::inputs;
      double* at = const_cast<double*>(x);
      if constexpr (P::second) {
        hessian(tape, P::inputs, at, rows.data());  // the lower half
        for (int i = 0; i < P::inputs; ++i)
          for (int j = 0; j < i; ++j) rows[j][i] = rows[i][j];
      } else if constexpr (P::outputs == 1) {
        gradient(tape, P::inputs, at, d);
      } else {
        jacobian(tape, P::outputs, P::inputs, at, rows.data());
      }
    }
  };
};

int main(int argc, char** argv) { return peer::run<AdolC>(argc, argv); }
