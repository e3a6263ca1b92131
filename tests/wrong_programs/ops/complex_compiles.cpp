// compiles
#include <vt/vt.hpp>

using namespace std::complex_literals;

// What std::complex has comes with the header.
int main() {
  const vt::Tensor z = vt::complex(vt::tensor({3.0, 0.0}), vt::tensor({4.0, -1.0}));
  const std::complex<double> first = z[0].item<std::complex<double>>();
  const std::vector<std::complex<float>> all = z.to_vector<std::complex<float>>();
  const vt::Tensor turned = vt::tensor({1.0 + 2.0i, std::polar(1.0, 0.5)}) * 2i + z;
  const double size = std::abs(first) + std::norm(std::exp(std::conj(first))) + std::arg(first);
  return size > 1 && all[0].real() > 0 && turned[0].item<std::complex<double>>().imag() > 0;
}
