// expect: vt::cond takes functions
#include <vt/vt.hpp>

int main() { vt::cond(true, vt::tensor(1.0), vt::tensor(2.0)); }
