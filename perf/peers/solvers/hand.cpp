// Normal equations by hand, what one would write in vt's place: one loop over the points with 28
// sums. "hand" has numbers in it, "hand_vector" eight points at a time, for the compiler to keep in
// vector registers.
#include "../../solvers/problems.hpp"
#include "../../solvers/report.hpp"

namespace {

constexpr int columns = 7, sums = 28;  // six derivatives and the residual; all products of two
constexpr int width = 8;
using Vector = double __attribute__((vector_size(width * sizeof(double))));

double exponential(double x) { return std::exp(x); }
Vector exponential(Vector x) {
  alignas(Vector) double values[width];
  for (int i = 0; i < width; ++i) values[i] = x[i];
  for (double& v : values) v = std::exp(v);
  Vector out;
  for (int i = 0; i < width; ++i) out[i] = values[i];
  return out;
}
double total(double x) { return x; }
double total(Vector x) {
  double sum = 0;
  for (int i = 0; i < width; ++i) sum += x[i];
  return sum;
}

template <class T>
[[gnu::always_inline]] inline void polynomial(T x, T y, T* g) {
  const double* p = problems::normal_at;
  g[0] = T() + 1.0;
  for (int k = 1; k < 6; ++k) g[k] = g[k - 1] * x;
  g[6] = p[0] + x * (p[1] + x * (p[2] + x * (p[3] + x * (p[4] + x * p[5])))) - y;
}
template <class T>
[[gnu::always_inline]] inline void exponentials(T x, T y, T* g) {
  const double* p = problems::normal_at;
  const T first = exponential(-p[1] * x), second = exponential(-p[3] * x);
  g[0] = first;
  g[1] = -p[0] * x * first;
  g[2] = second;
  g[3] = -p[2] * x * second;
  g[4] = T() + 1.0;
  g[5] = x;
  g[6] = p[0] * first + p[2] * second + p[4] + p[5] * x - y;
}

/// The points: a multiple of what T holds.
template <class T, class F>
void add_up(const report::Numbers& x, const report::Numbers& y, double* out, F derivatives) {
  T s[sums] = {};
  for (std::size_t i = 0; i < x.size(); i += sizeof(T) / sizeof(double)) {
    T xs, ys, g[columns];
    std::memcpy(&xs, &x[i], sizeof(T));
    std::memcpy(&ys, &y[i], sizeof(T));
    derivatives(xs, ys, g);
    int n = 0;
#pragma GCC unroll 7
    for (int a = 0; a < columns; ++a)
#pragma GCC unroll 7
      for (int b = a; b < columns; ++b) s[n++] += g[a] * g[b];
  }
  for (int k = 0; k < sums; ++k) out[k] = total(s[k]);
}

template <class T>
void row(const std::string& name, const char* who) {
  const report::Numbers x = report::read(name, "x"), y = report::read(name, "y");
  double s[sums];
  const auto run = [&] {
    if (report::last_part(name) == "polynomial")
      add_up<T>(x, y, s, [](T x, T y, T* g) { polynomial(x, y, g); });
    else add_up<T>(x, y, s, [](T x, T y, T* g) { exponentials(x, y, g); });
  };
  run();
  // As vt has them: JᵀJ whole, Jᵀr, rᵀr.
  report::Numbers answers(43);
  for (int a = 0, n = 0; a < columns; ++a)
    for (int b = a; b < columns; ++b, ++n) {
      if (b < 6) answers[a * 6 + b] = answers[b * 6 + a] = s[n];
      else answers[a < 6 ? 36 + a : 42] = s[n];
    }
  report::Row out{name, who, report::median_seconds(run)};
  out.error = report::error_of(answers, report::read(name, "answers"));
  out.allowed = 1e-9;
  report::print(out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = report::arguments(argc, argv);
  if (report::first_part(name) != "normal") return 0;
  row<double>(name, "hand");
  row<Vector>(name, "hand_vector");
}
