// expect: an unordered map whose keys have no operator<
#include <unordered_map>

#include <vt/vt.hpp>
struct Key {
  int id;
  friend bool operator==(const Key&, const Key&) = default;
};
struct Hash {
  std::size_t operator()(const Key& k) const { return static_cast<std::size_t>(k.id); }
};
using Map = std::unordered_map<Key, vt::Tensor, Hash>;

int main() {
  vt::jit([](const Map& m) { return m.begin()->second; })(Map());
}
