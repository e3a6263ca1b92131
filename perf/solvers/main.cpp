// vt's program of the suite solvers (README.md): prints a line of JSON for each row.
#include "solvers.hpp"

int main(int argc, char** argv) {
  const std::string row = report::arguments(argc, argv);
  vt::set_num_threads(1);
  if (row == "figures") solvers::figures();
  else if (!solvers::fit_rows(row) && !solvers::equation_rows(row) && !solvers::small_rows(row)) {
    std::fprintf(stderr, "there is no row %s\n", row.c_str());
    return 2;
  }
}
