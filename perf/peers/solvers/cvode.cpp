// Stiff differential equations by CVODE of SUNDIALS: BDF with dense Jacobians written by hand, one
// lane after the other, in memory that is made once.
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include "../../solvers/problems.hpp"
#include "../../solvers/report.hpp"

namespace {

using report::Numbers;

void demand(int code, const char* what) {
  if (code >= 0) return;
  std::fprintf(stderr, "CVODE: %s gives %d\n", what, code);
  std::exit(1);
}

template <class P>
class Solver {
 public:
  Solver(double rtol, double atol) {
    SUNContext_Create(nullptr, &context_);
    y_ = N_VNew_Serial(P::size, context_);
    restart();
    memory_ = CVodeCreate(CV_BDF, context_);
    demand(CVodeInit(memory_, slope, 0.0, y_), "CVodeInit");
    demand(CVodeSStolerances(memory_, rtol, atol), "CVodeSStolerances");
    matrix_ = SUNDenseMatrix(P::size, P::size, context_);
    solver_ = SUNLinSol_Dense(y_, matrix_, context_);
    demand(CVodeSetLinearSolver(memory_, solver_, matrix_), "CVodeSetLinearSolver");
    demand(CVodeSetJacFn(memory_, jacobian), "CVodeSetJacFn");
    demand(CVodeSetMaxNumSteps(memory_, 10'000'000), "CVodeSetMaxNumSteps");
  }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
  ~Solver() {
    CVodeFree(&memory_);
    SUNLinSolFree(solver_);
    SUNMatDestroy(matrix_);
    N_VDestroy(y_);
    SUNContext_Free(&context_);
  }
  /// The end of a lane; evaluations of the slope are added up.
  const double* run(const double* rates, double t1) {
    restart();
    demand(CVodeReInit(memory_, 0.0, y_), "CVodeReInit");
    demand(CVodeSetUserData(memory_, const_cast<double*>(rates)), "CVodeSetUserData");
    demand(CVodeSetStopTime(memory_, t1), "CVodeSetStopTime");
    double t = 0;
    demand(CVode(memory_, t1, y_, &t, CV_NORMAL), "CVode");
    long calls = 0;
    CVodeGetNumRhsEvals(memory_, &calls);
    evaluations += static_cast<double>(calls);
    return N_VGetArrayPointer(y_);
  }
  double evaluations = 0;

 private:
  static int slope(double, N_Vector y, N_Vector d, void* rates) {
    double* out = N_VGetArrayPointer(d);
    P::slope(static_cast<const double*>(rates), N_VGetArrayPointer(y), out);
    return 0;
  }
  static int jacobian(double, N_Vector y, N_Vector, SUNMatrix j, void* rates, N_Vector, N_Vector,
                      N_Vector) {
    double* all = SUNDenseMatrix_Data(j);  // which is 0 when this is called
    auto at = [all](int row, int column) -> double& {
      return all[column * static_cast<int>(P::size) + row];
    };
    P::jacobian(static_cast<const double*>(rates), N_VGetArrayPointer(y), at);
    return 0;
  }
  void restart() { std::copy_n(P::start, P::size, N_VGetArrayPointer(y_)); }

  SUNContext context_ = nullptr;
  N_Vector y_ = nullptr;
  void* memory_ = nullptr;
  SUNMatrix matrix_ = nullptr;
  SUNLinearSolver solver_ = nullptr;
};

template <class P>
void lanes(const std::string& row) {
  using L = problems::Lanes<P>;
  const Numbers rates = report::read(row, "x"), theirs = report::read(row, "answers");
  // The answers that all errors are taken of were found by vt: so a few of them are found here too.
  const std::size_t all = rates.size() / P::rates, few = std::min<std::size_t>(all, 20);
  Solver<P> fine(1e-12, 1e-16);
  Numbers answers;
  for (std::size_t i = 0; i < few; ++i) {
    const double* y = fine.run(&rates[i * P::rates], L::t1);
    answers.insert(answers.end(), y, y + P::size);
  }
  if (const double error = report::error_of(answers, theirs); !(error < 1e-8)) {
    std::fprintf(stderr, "%s: the fine solutions of CVODE and vt differ by %.3g\n", row.c_str(),
                 error);
    std::exit(1);
  }
  Solver<P> solver(L::rtol, L::atol);
  const auto run = [&] {
    answers.clear();
    solver.evaluations = 0;
    for (std::size_t i = 0; i < all; ++i) {
      const double* y = solver.run(&rates[i * P::rates], L::t1);
      answers.insert(answers.end(), y, y + P::size);
    }
  };
  report::Row out{row, "cvode", report::median_seconds(run), static_cast<double>(all)};
  out.error = report::error_of(answers, theirs);
  out.allowed = 1e-1;
  out.work = solver.evaluations;
  report::print(out);
}

template <class P>
void figure_rows() {
  using K = problems::Known<P>;
  const Numbers known(std::begin(K::y), std::end(K::y));
  for (int digits = problems::least_digits; digits <= problems::most_digits; ++digits) {
    const double rtol = std::pow(10.0, -digits);
    Solver<P> solver(rtol, rtol * K::atol);
    const auto run = [&] {
      solver.evaluations = 0;
      return solver.run(P::usual, K::t1);
    };
    report::Row out{std::string("figures/") + P::name, "CVODE BDF", report::median_seconds(run)};
    const double* y = run();
    out.error = report::error_of(Numbers(y, y + P::size), known);
    out.allowed = INFINITY;
    out.work = solver.evaluations;
    out.rtol = rtol;
    report::print(out);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string row = report::arguments(argc, argv), name = report::first_part(row);
  if (name == "robertson") lanes<problems::Robertson>(row);
  if (name == "hires") lanes<problems::Hires>(row);
  if (row == "figures") {
    figure_rows<problems::Robertson>();
    figure_rows<problems::VanDerPol>();
    figure_rows<problems::Hires>();
    figure_rows<problems::Oregonator>();
  }
}
