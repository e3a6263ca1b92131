// expect: struct with more than 20 fields
#include <vt/vt.hpp>
struct P {
  vt::Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u;
};

int main() {
  vt::grad([](P p) { return sum(p.a); })(P{});
}
