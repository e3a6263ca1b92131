// expect: vt::Dataset: the examples hold no vt::Tensor
#include <vt/vt.hpp>

int main() { vt::Dataset data(std::vector<double>{1, 2}); }
