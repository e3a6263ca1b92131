// The LSTM objective of the ADBench suite, written with vt: a text's characters, each a row of
// bits, predicted by layers without products of matrices.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace perf {

struct CharacterLstm {
  vt::Tensor layers;  // [l,2,4,b]: weights and offsets of the gates forget, in, out and change
  vt::Tensor edges;   // [3,b]: weights of the input, and of the output with its offsets
  vt::Tensor start;   // [l,2,b]: the state of each layer, hidden and cell
  vt::Tensor text;    // [c,b]
};

inline CharacterLstm read_character_lstm(const std::string& path) {
  std::ifstream file(path);
  int l = 0, c = 0, b = 0;
  if (!(file >> l >> c >> b)) throw std::runtime_error(path + ": cannot be read");
  const auto block = [&](const vt::Shape& shape) {
    std::vector<double> values(static_cast<std::size_t>(shape.elements()));
    for (double& v : values) file >> v;
    return vt::tensor(values, shape);
  };
  CharacterLstm m;
  m.layers = block({l, 2, 4, b});
  m.edges = block({3, b});
  m.start = block({l, 2, b});
  m.text = block({c, b});
  if (!file) throw std::runtime_error(path + ": ends too early");
  return m;
}

/// A layer's next state [2,b]; its input acts on two gates and its last output on the others.
inline vt::Tensor character_cell(const vt::Tensor& layer, const vt::Tensor& state,
                                 const vt::Tensor& input) {
  const vt::Tensor weights = layer[0], offsets = layer[1], hidden = state[0];
  const vt::Tensor forget = vt::sigmoid(input * weights[0] + offsets[0]),
                   in = vt::sigmoid(hidden * weights[1] + offsets[1]);
  const vt::Tensor out = vt::sigmoid(input * weights[2] + offsets[2]),
                   change = vt::tanh(hidden * weights[3] + offsets[3]);
  const vt::Tensor cell = state[1] * forget + in * change;
  return vt::stack({out * vt::tanh(cell), cell});
}

/// The mean log likelihood, negative, of the bits of each character but the first after those
/// before it.
inline auto character_lstm_objective(const CharacterLstm& m) {
  return [start = m.start, text = m.text](vt::Tensor layers, vt::Tensor edges) {
    const auto step = [&](vt::Tensor states, vt::Tensor character) {
      std::vector<vt::Tensor> next;
      vt::Tensor signal = character * edges[0];
      for (int i = 0; i < layers.dim(0); ++i) {
        next.push_back(character_cell(layers[i], states[i], signal));
        signal = next.back()[0];
      }
      return std::pair(vt::stack(next), signal * edges[1] + edges[2]);
    };
    const vt::Tensor predicted = vt::scan(step, start, text[vt::slice(0, -1)]).second;
    const auto likelihood = [](vt::Tensor predicted, vt::Tensor actual) {
      return vt::sum(actual * (predicted - vt::log(2.0 + vt::sum(vt::exp(predicted)))));
    };
    return -vt::mean(vt::vmap(likelihood)(predicted, text[vt::slice(1, std::nullopt)])) /
           text.dim(1);
  };
}

}  // namespace perf
