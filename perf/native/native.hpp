// The parts of the program bench_native: each registers its rows.
#pragma once

/// The problems of problems.hpp; their inputs and results are written to the file `reference`, if
/// it has a name, for peers to compare with.
void problem_rows(const char* reference);
