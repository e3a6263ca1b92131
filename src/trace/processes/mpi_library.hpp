// The functions of MPI, loaded at run time and declared here, and the handles of the libraries that
// vt knows.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace vt::detail {

/// A communicator, type, request … of MPI: a pointer in Open MPI and in the standard ABI, an int in
/// MPICH. As an argument either fills a register of its own, or a place on the stack, whose upper
/// half is not looked at for an int; where one is written here the upper half stays 0.
using MpiHandle = std::uint64_t;
static_assert(std::endian::native == std::endian::little && sizeof(void*) == 8,
              "an MpiHandle holds an int in its first bytes");
/// MPI_Status of any library.
struct MpiStatus {
  std::uint64_t words[8];
};

/// What MPI calls where a communicator is copied, and where it ends.
using MpiCopy = int(MpiHandle, int, void*, void*, void*, int*);
using MpiDelete = int(MpiHandle, int, void*, void*);

#define VT_MPI_FUNCTIONS(X)                                                                  \
  X(Get_library_version, (char*, int*))                                                      \
  X(Error_string, (int, char*, int*))                                                        \
  X(Initialized, (int*))                                                                     \
  X(Finalized, (int*))                                                                       \
  X(Init_thread, (int*, char***, int, int*))                                                 \
  X(Finalize, ())                                                                            \
  X(Comm_idup, (MpiHandle, MpiHandle*, MpiHandle*))                                          \
  X(Comm_rank, (MpiHandle, int*))                                                            \
  X(Comm_size, (MpiHandle, int*))                                                            \
  X(Comm_set_errhandler, (MpiHandle, MpiHandle))                                             \
  X(Comm_create_keyval, (MpiCopy*, MpiDelete*, int*, void*))                                 \
  X(Comm_set_attr, (MpiHandle, int, void*))                                                  \
  X(Iallgather, (const void*, int, MpiHandle, void*, int, MpiHandle, MpiHandle, MpiHandle*)) \
  X(Isend, (const void*, int, MpiHandle, int, int, MpiHandle, MpiHandle*))                   \
  X(Irecv, (void*, int, MpiHandle, int, int, MpiHandle, MpiHandle*))                         \
  X(Test, (MpiHandle*, int*, MpiStatus*))                                                    \
  X(Cancel, (MpiHandle*))                                                                    \
  X(Request_free, (MpiHandle*))                                                              \
  X(Iprobe, (int, int, MpiHandle, int*, MpiStatus*))                                         \
  X(Recv, (void*, int, MpiHandle, int, int, MpiHandle, MpiStatus*))

/// One pointer per function of the library in use, and its constants.
struct MpiLibrary {
#define VT_MPI_MEMBER(name, parameters) int(*name) parameters = nullptr;
  VT_MPI_FUNCTIONS(VT_MPI_MEMBER)
#undef VT_MPI_MEMBER
  enum class Family : std::uint8_t { open_mpi, mpich, standard_abi };
  Family family = Family::open_mpi;
  MpiHandle world = 0, self = 0, byte = 0, errors_return = 0;
  int any_source = 0;
  MpiStatus* no_status = nullptr;
  std::string name;  ///< "Open MPI 4.1.4"
  enum : int { multiple = 3, longest_version = 8192, longest_error = 1024 };
};

/// How many processes the launcher of this one (mpirun, mpiexec, srun) has started, 0 if that is
/// not known. −1: it was not started by one, or VT_MPI_LIBRARY is none.
int launched_processes();

/// Has the program itself called MPI_Init?
bool mpi_is_running();

/// The library that the program has loaded itself, or that VT_MPI_LIBRARY names, or that belongs
/// to the launcher. Null where there is none: then `why` says what was tried. Loaded on the first
/// call; any thread.
const MpiLibrary* mpi_library(std::string& why);

/// The outcome of one attempt to load, for tests: empty when the library at `path` is one that vt
/// can use; then `name` is set.
std::string mpi_try_library(const std::string& path, std::string& name);

}  // namespace vt::detail
