// MPI by its C functions: what vt's collectives and its heat equation are compared with.
#include "../../distributed/raw.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include <mpi.h>

namespace raw {

namespace {
constexpr std::size_t line = 8;  // doubles of a cache line
int as_int(std::size_t count) { return static_cast<int>(count); }

/// The first and the last row go to the neighbours, whose rows come.
void begin_borders(double* above, const double* first, const double* last, double* below,
                   std::size_t count, MPI_Request* requests) {
  const int own = rank(), end = size() - 1;
  const int over = own > 0 ? own - 1 : MPI_PROC_NULL, under = own < end ? own + 1 : MPI_PROC_NULL;
  MPI_Irecv(above, as_int(count), MPI_DOUBLE, over, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(below, as_int(count), MPI_DOUBLE, under, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(first, as_int(count), MPI_DOUBLE, over, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(last, as_int(count), MPI_DOUBLE, under, 0, MPI_COMM_WORLD, &requests[3]);
}
}  // namespace

void begin(int* argc, char*** argv) { MPI_Init(argc, argv); }
void end() { MPI_Finalize(); }
int rank() {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int size() {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
double greatest(double x) {
  double all;
  MPI_Allreduce(&x, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

void sum(const double* in, double* out, std::size_t count) {
  MPI_Allreduce(in, out, as_int(count), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
void pass_on(const double* in, double* out, std::size_t count) {
  const int own = rank(), all = size();
  MPI_Sendrecv(in, as_int(count), MPI_DOUBLE, (own + 1) % all, 0, out, as_int(count), MPI_DOUBLE,
               (own + all - 1) % all, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
void gather(const double* in, double* out, std::size_t count) {
  MPI_Allgather(in, as_int(count), MPI_DOUBLE, out, as_int(count), MPI_DOUBLE, MPI_COMM_WORLD);
}
void exchange(const double* in, double* out, std::size_t count) {
  const int part = as_int(count) / size();
  MPI_Alltoall(in, part, MPI_DOUBLE, out, part, MPI_DOUBLE, MPI_COMM_WORLD);
}
double sums(double x, int times) {
  const double part = 1.0 / size();
  for (int i = 0; i < times; ++i) {
    double all;
    MPI_Allreduce(&x, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    x = all * part;
  }
  return x;
}

void borders(std::size_t count, int times, bool exchanges) {
  std::vector<double> rows(4 * count);
  volatile double kept = 1;
  for (int t = 0; t < times; ++t) {
    MPI_Request requests[4];
    if (exchanges)
      begin_borders(rows.data(), rows.data() + count, rows.data() + 2 * count,
                    rows.data() + 3 * count, count, requests);
    double x = kept;
    for (int i = 0; i < 8'000; ++i) x = x * 0.5 + 1;  // each waits for the one before
    kept = x;
    if (exchanges) MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
}

Heat::Heat(const double* start, std::size_t rows, std::size_t columns)
    : rows_(rows), columns_(columns), width_((line + columns + 1 + line - 1) / line * line) {
  const std::size_t count = (rows + 2) * width_;
  for (double** u : {&now_, &next_}) {
    *u = static_cast<double*>(::operator new(count * sizeof(double), std::align_val_t(64)));
    std::fill_n(*u, count, 0.0);
  }
  for (std::size_t i = 0; i < rows; ++i)
    std::copy_n(start + i * columns, columns, now_ + (i + 1) * width_ + line);
}
Heat::~Heat() {
  ::operator delete(now_, std::align_val_t(64));
  ::operator delete(next_, std::align_val_t(64));
}

void Heat::run(int steps) {
  const std::size_t width = width_, columns = columns_, rows = rows_;
  for (int s = 0; s < steps; ++s) {
    double* const u = now_;
    MPI_Request requests[4];
    begin_borders(u + line, u + width + line, u + rows * width + line,
                  u + (rows + 1) * width + line, columns, requests);
    const auto row = [&](std::size_t i) {
      const double* __restrict up = u + (i - 1) * width + line;
      const double* __restrict mid = up + width;
      const double* __restrict down = mid + width;
      double* __restrict out = next_ + i * width + line;
      for (std::size_t j = 0; j < columns; ++j)
        out[j] = mid[j] + 0.2 * (up[j] + down[j] + mid[j - 1] + mid[j + 1] - 4.0 * mid[j]);
    };
    for (std::size_t i = 2; i < rows; ++i) row(i);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    row(1);
    row(rows);
    std::swap(now_, next_);
  }
}
void Heat::get(double* out) const {
  for (std::size_t i = 0; i < rows_; ++i)
    std::copy_n(now_ + (i + 1) * width_ + line, columns_, out + i * columns_);
}

}  // namespace raw
