// What the suite distributed is compared with: the functions of MPI themselves, and a heat equation
// written with them. No mpi.h, so that a program can be built where there is none.
#pragma once

#include <cstddef>

namespace raw {

/// MPI_Init and MPI_Finalize.
void begin(int* argc, char*** argv);
void end();
int rank();
int size();
void barrier();
/// The greatest of all processes' x.
double greatest(double x);

// All of them on so many doubles of each process.
void sum(const double* in, double* out, std::size_t count);
/// To the next process; the last one's go to the first.
void pass_on(const double* in, double* out, std::size_t count);
void gather(const double* in, double* out, std::size_t count);
/// count: of all that a process has and gets.
void exchange(const double* in, double* out, std::size_t count);
/// So many sums of one number, each divided by the number of processes.
double sums(double x, int times);

/// Exchanges of `count` doubles with both neighbours, as in Heat, each begun about 20 us of other
/// work before it is waited for; or that work alone.
void borders(std::size_t count, int times, bool exchanges);

/// Steps of the heat equation on `rows` of `columns` points in each process, zeros all around.
class Heat {
 public:
  Heat(const double* start, std::size_t rows, std::size_t columns);
  ~Heat();
  Heat(const Heat&) = delete;
  Heat& operator=(const Heat&) = delete;

  /// From where it is on; borders are under way while the inner rows are computed.
  void run(int steps);
  /// The points, [rows, columns].
  void get(double* out) const;

 private:
  double *now_, *next_;  ///< with rows and columns of zeros at each side
  std::size_t rows_, columns_;
  std::size_t width_;  ///< of a row with its zeros; each begins where a cache line does
};

}  // namespace raw
