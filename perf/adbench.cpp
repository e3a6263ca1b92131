// The other objectives of the ADBench suite besides its mixtures, and their derivatives: bundle
// adjustment, hand tracking, the character LSTM.
#include "bundle.hpp"
#include "character_lstm.hpp"
#include "hand.hpp"
#include "support.hpp"

namespace {

template <class Tree>
void evaluate(const Tree& tree) {
  for (const vt::Tensor& leaf : vt::tree_leaves(tree)) leaf.eval();
}

void bundles(const std::string& folder) {
  for (const std::string size : {"ba1_n49_m7776_p31843", "ba5_n257_m65132_p225911"}) {
    const perf::Bundle b = perf::read_bundle(folder + "/" + size + ".txt", 1e-3);
    const auto value = vt::jit(perf::bundle_objective(b));
    const auto jacobian = vt::jit(perf::bundle_jacobian(b));
    const std::string name = "bundle/" + size.substr(0, 3);
    perf::row_on(2, name + "/objective/vt",
                 [=] { evaluate(value(b.cameras, b.points, b.weights)); });
    perf::row_on(2, name + "/jacobian/vt",
                 [=] { evaluate(jacobian(b.cameras, b.points, b.weights)); });
  }
}

void hands(const std::string& folder) {
  for (const std::string size : {"c100", "c800"}) {
    const perf::Hand simple = perf::read_hand(folder, "simple_" + size, false),
                     complicated = perf::read_hand(folder, "complicated_" + size, true);
    const auto f = perf::hand_objective(simple);
    const auto value = vt::jit(f);
    const auto jacobian = vt::jit(vt::jacobian(f));
    perf::row_on(2, "hand/simple/" + size + "/objective/vt", [=] { value(simple.theta).eval(); });
    perf::row_on(2, "hand/simple/" + size + "/jacobian/vt", [=] { jacobian(simple.theta).eval(); });
    const auto value_on_triangles = vt::jit(perf::hand_objective_on_triangles(complicated));
    const auto jacobian_on_triangles = vt::jit(perf::hand_jacobian_on_triangles(complicated));
    perf::row_on(2, "hand/complicated/" + size + "/objective/vt",
                 [=] { value_on_triangles(complicated.theta, complicated.us).eval(); });
    perf::row_on(2, "hand/complicated/" + size + "/jacobian/vt",
                 [=] { evaluate(jacobian_on_triangles(complicated.theta, complicated.us)); });
  }
}

void texts(const std::string& folder) {
  for (const std::string size : {"l2", "l4"}) {
    const perf::CharacterLstm m =
        perf::read_character_lstm(folder + "/lstm_" + size + "_c1024.txt");
    const auto f = perf::character_lstm_objective(m);
    const auto value = vt::jit(f);
    const auto gradient = vt::jit(vt::grad<0, 1>(f));
    perf::row_on(2, "text/" + size + "/objective/vt", [=] { value(m.layers, m.edges).eval(); });
    perf::row_on(2, "text/" + size + "/gradient/vt",
                 [=] { evaluate(gradient(m.layers, m.edges)); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  bundles(VT_PERF_DATA);
  hands(VT_PERF_DATA "/hand");
  texts(VT_PERF_DATA);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
