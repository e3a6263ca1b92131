// vt's program of the suite distributed (README.md), linked with one of the MPIs: prints a line of
// JSON for each side of a row.
#include "distributed.hpp"

int main(int argc, char** argv) {
  raw::begin(&argc, &argv);
  int status = 0;
  try {
    const std::string row = report::arguments(argc, argv);
    vt::set_num_threads(1);
    if (!distributed::collective_row(row) && !distributed::program_row(row)) {
      std::fprintf(stderr, "there is no row %s\n", row.c_str());
      status = 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::_Exit(1);
  }
  raw::end();
  return status;
}
