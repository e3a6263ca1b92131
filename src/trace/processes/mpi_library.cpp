// Finds MPI, in the process or with dlopen, and fills the table of its functions and handles.
#include "mpi_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/shared_library.hpp"

namespace vt::detail {

namespace mpi_loading {

/// "Open MPI v4.1.4, package: …" → "4.1.4".
std::string version_in(const std::string& text) {
  constexpr const char* digits = "0123456789";
  const std::size_t begin = text.find_first_of(digits);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
}

bool is_named_by_the_abi(void* function) {
  Dl_info info;
  if (::dladdr(function, &info) == 0 || !info.dli_fname) return false;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  constexpr const char* name = "libmpi_abi";
  return std::strncmp(slash ? slash + 1 : info.dli_fname, name, std::strlen(name)) == 0;
}

/// The constants of each library's mpi.h.
std::string fill_handles(void* handle, const std::string& path, MpiLibrary& table) {
  std::string version(MpiLibrary::longest_version + 1, '\0');
  int length = 0;
  table.Get_library_version(version.data(), &length);
  version.resize(std::strlen(version.c_str()));
  using Family = MpiLibrary::Family;
  if (is_named_by_the_abi(reinterpret_cast<void*>(table.Isend))) {
    table.family = Family::standard_abi;
    table.world = 0x101;
    table.self = 0x102;
    table.byte = 0x247;
    table.errors_return = 0x143;
    table.any_source = -1;
    table.name = formatted("MPI ({})", version.substr(0, version.find('\n')));
    return {};
  }
  if (version.find("Open MPI") != version.npos) {
    table.family = Family::open_mpi;
    const auto address = [&](const char* name) {
      return reinterpret_cast<MpiHandle>(::dlsym(handle, name));
    };
    table.world = address("ompi_mpi_comm_world");
    table.self = address("ompi_mpi_comm_self");
    table.byte = address("ompi_mpi_byte");
    table.errors_return = address("ompi_mpi_errors_return");
    table.any_source = -1;
    table.name = "Open MPI " + version_in(version);
    return table.world && table.self && table.byte && table.errors_return
               ? std::string()
               : path + " is Open MPI, but lacks ompi_mpi_comm_world and the like";
  }
  for (const char* const known : {"MPICH", "Intel(R) MPI", "MVAPICH"}) {
    const std::size_t found = version.find(known);
    if (found == version.npos) continue;
    table.family = Family::mpich;
    table.world = 0x44000000;
    table.self = 0x44000001;
    table.byte = 0x4c00010d;
    table.errors_return = 0x54000001;
    table.any_source = -2;
    table.no_status = reinterpret_cast<MpiStatus*>(1);
    table.name = formatted("{} {}", known, version_in(version.substr(found)));
    return {};
  }
  return formatted("{} is an MPI that vt does not know ({})", path,
                   version.substr(0, version.find('\n')));
}

/// handle: of dlopen, or RTLD_DEFAULT.
std::string fill_from(void* handle, const std::string& path, MpiLibrary& table) {
#define VT_MPI_LOOK_UP(name, parameters)                                              \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(handle, "MPI_" #name)); \
  if (!table.name) return path + " lacks the function MPI_" #name;
  VT_MPI_FUNCTIONS(VT_MPI_LOOK_UP)
#undef VT_MPI_LOOK_UP
  return fill_handles(handle, path, table);
}
std::string fill(const std::string& path, MpiLibrary& table) {
  std::string why;
  // Open MPI's components take its symbols from the process. It is never closed: MPI has threads
  // and handlers of its own.
  void* const handle = open_library(path, why, true);
  return handle ? fill_from(handle, path, table) : why;
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value ? value : nullptr;
}
/// The user's.
const char* chosen() {
  const char* const path = std::getenv("VT_MPI_LIBRARY");
  return path && *path ? path : nullptr;
}
bool is_of_open_mpi() { return variable("OMPI_COMM_WORLD_SIZE") != nullptr; }

Vec<std::string> candidates() {
  // the user's word is final
  if (const char* const path = chosen()) return {path};
  const Vec<std::string> open_mpi = {"libmpi.so.40", "libmpi.so.80"};
  const Vec<std::string> mpich = {"libmpich.so.12", "libmpi.so.12"};
  const Vec<std::string> any = {"libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so", "libmpi.so"};
  Vec<std::string> all;
  const bool has_pmi = variable("PMI_RANK") || variable("PMI_SIZE");
  // PMIx alone says nothing: then whichever is there.
  if (is_of_open_mpi() || !has_pmi) all.append(open_mpi.begin(), open_mpi.end());
  if (!is_of_open_mpi()) all.append(mpich.begin(), mpich.end());
  all.append(any.begin(), any.end());
  return all;
}

struct Loaded {
  MpiLibrary table;
  std::string reason;  // empty: the table is good
};

void load(Loaded& made) {
  if (!linked_statically() && !chosen() && ::dlsym(RTLD_DEFAULT, "MPI_Init_thread")) {
    made.reason = fill_from(RTLD_DEFAULT, "the MPI library of this program", made.table);
    return;
  }
  std::string tried;
  for (const std::string& name : candidates()) {
    const std::string why = fill(name, made.table);
    if (why.empty()) return;
    tried += (tried.empty() ? "" : "; ") + why;
  }
  made.reason = formatted(
      "this process was started by {}, but no MPI library can be used ({}). Install that of the "
      "launcher (Debian: libopenmpi3 or libmpich12), or set VT_MPI_LIBRARY to its path, or to none "
      "for processes that are each alone",
      is_of_open_mpi() ? "Open MPI's mpirun" : "an MPI launcher", tried);
}

}  // namespace mpi_loading

int launched_processes() {
  using mpi_loading::variable;
  if (const char* const path = mpi_loading::chosen(); path && std::string(path) == "none")
    return -1;
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* value = variable(name)) return std::atoi(value);
  return variable("PMI_RANK") || variable("PMIX_RANK") ? 0 : -1;
}

bool mpi_is_running() {
  if (linked_statically()) return false;
  const auto initialized =
      reinterpret_cast<int (*)(int*)>(::dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  int is_so = 0;
  return initialized && initialized(&is_so) == 0 && is_so;
}

const MpiLibrary* mpi_library(std::string& why) {
  // never destroyed: the end of the process still uses it
  static const auto* const loaded = [] {
    auto* const made = new mpi_loading::Loaded;
    mpi_loading::load(*made);
    return made;
  }();
  why = loaded->reason;
  return why.empty() ? &loaded->table : nullptr;
}

std::string mpi_try_library(const std::string& path, std::string& name) {
  MpiLibrary table;
  std::string why = mpi_loading::fill(path, table);
  if (why.empty()) name = table.name;
  return why;
}

}  // namespace vt::detail
