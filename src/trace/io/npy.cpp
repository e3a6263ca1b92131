// load_npy and save_npy.
#include <vt/npy.hpp>

#include <cstring>

#include "../base/written_file.hpp"
#include "npy_format.hpp"

namespace vt {

Tensor load_npy(const std::string& path, CallSite where) {
  const detail::FileUse use{"vt::load_npy", path, where};
  const detail::InputFile file(use);
  detail::FileBytes bytes(file, 0, file.size(), use);
  const detail::npy::ArrayHeader header = detail::npy::read_header(bytes, use);
  return detail::npy::read_data(bytes, header, use);
}

void save_npy(const std::string& path, const Tensor& t, CallSite where) {
  const detail::FileUse use{"vt::save_npy", path, where};
  const detail::BufferRef buffer = detail::value_of(t, where, "vt::save_npy");
  const detail::Aval& aval = detail::aval_of(t);
  const std::string header = detail::npy::header_of(aval, use);
  if (const int wrong = detail::write_file(path, {header, detail::npy::data_of(buffer, aval)}))
    use.refuse(std::strerror(wrong));
}

}  // namespace vt
