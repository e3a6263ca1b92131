// Graph: a recorded function that users can print, draw and apply.
#pragma once

#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vt/tensor.hpp>

namespace vt {

namespace detail {
struct GraphBody;
}

/// What `make_graph` returns: the equations a function records, in order. Immutable.
class Graph {
 public:
  Graph() = default;
  Graph(std::shared_ptr<const detail::GraphBody> body, std::vector<Tensor> captured = {},
        std::vector<std::string> input_names = {})
      : body_(std::move(body)),
        captured_(std::move(captured)),
        input_names_(std::move(input_names)) {}

  /// Stable text, one equation a line; `lines` adds the user's file and line to each. A number
  /// stands where it is read, with its dtype where the other operands do not show it:
  /// `c:f32[3] = mul 0.5 b`. Where arguments are trees, their paths stand below the inputs:
  /// `a: argument 0 .weights`.
  std::string str(bool lines = false) const;
  /// Graphviz text.
  std::string to_dot() const;
  /// Number of equations; each number is one.
  std::size_t size() const;
  /// Runs the Graph on flat arguments (the captured Tensors are added by itself).
  std::vector<Tensor> operator()(std::span<const Tensor> arguments,
                                 CallSite where = CallSite::here()) const;

  const detail::GraphBody& body() const { return *body_; }
  const std::vector<Tensor>& captured() const& { return captured_; }
  std::vector<Tensor> captured() && { return std::move(captured_); }

 private:
  std::shared_ptr<const detail::GraphBody> body_;
  std::vector<Tensor> captured_;
  std::vector<std::string> input_names_;  ///< of the first inputs, if any has a path
};

std::ostream& operator<<(std::ostream&, const Graph&);

}  // namespace vt
