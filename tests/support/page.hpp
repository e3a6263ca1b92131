// Pages as tests look at them.
#pragma once

#include <string>
#include <vector>

namespace vt_test {

/// What is wrong with `page` as XML, or nothing.
inline std::string page_fault(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find("<html"); at < page.size();) {
    const char c = page[at];
    if (c == '&') {
      const std::size_t end = page.find(';', at);
      const std::string name = page.substr(at, end - at + 1);
      if (name != "&lt;" && name != "&gt;" && name != "&amp;" && name != "&quot;")
        return "the entity " + name.substr(0, 20);
    }
    if (c != '<') {
      ++at;
      continue;
    }
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "an open tag";
    const std::string tag = page.substr(at + 1, end - at - 1),
                      name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag)
        return tag + " where " + (open.empty() ? "nothing" : open.back()) + " is open";
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
    if (name == "style") at = page.find("</style>", at);
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

}  // namespace vt_test
