// expect: vt::least_squares: the residuals must take a tree like the guess: write
#include <vt/vt.hpp>

int main() { vt::least_squares(vt::ones({2}), vt::ones({2})); }
