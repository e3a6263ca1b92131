// expect: which takes several arguments as one std::tuple
#include <vt/vt.hpp>

int main() {
  vt::jvp([](vt::Tensor a, vt::Tensor b) { return a; }, std::pair(vt::tensor(1.0), vt::tensor(1.0)),
          std::pair(vt::tensor(1.0), vt::tensor(1.0)));
}
