// Robots in Pinocchio, whose derivatives are written by hand.
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include "peer.hpp"

struct Pinocchio {
  static constexpr const char* name = "pinocchio";
  static constexpr bool compiles = false;
  template <class P>
    requires requires { typename P::Robot; }
  struct Of {
    static constexpr int n = P::outputs;
    using Rows = Eigen::Map<Eigen::Matrix<double, n, 3 * n, Eigen::RowMajor>>;
    using Part = Eigen::Map<const Eigen::VectorXd>;
    pinocchio::Model model;
    pinocchio::Data data;
    Eigen::MatrixXd by[3];
    Of() {
      for (int i = 0; i < n; ++i) {
        const problems::Link& link = problems::links<typename P::Robot>()[i];
        Eigen::Matrix3d turn, inertia;
        turn << 1, 0, 0, 0, 0, -link.turn, 0, link.turn, 0;
        for (int k = 0; k < 9; ++k) inertia(k / 3, k % 3) = link.inertia[k / 3][k % 3];
        const auto joint =
            model.addJoint(P::Robot::parent(i) + 1, pinocchio::JointModelRZ(),
                           {turn, Eigen::Vector3d(link.place.data())}, std::to_string(i));
        model.appendBodyToJoint(
            joint, {link.mass, Eigen::Vector3d(link.centre.data()), pinocchio::Symmetric3(inertia)},
            pinocchio::SE3::Identity());
      }
      data = pinocchio::Data(model);
      for (auto& part : by) part = Eigen::MatrixXd::Zero(n, n);
    }
    void value(const double* x, double* y) {
      const Part q(x, n), v(x + n, n), last(x + 2 * n, n);
      Eigen::Map<Eigen::VectorXd>(y, n) = P::forward ? pinocchio::aba(model, data, q, v, last)
                                                     : pinocchio::rnea(model, data, q, v, last);
    }
    void derivative(const double* x, double* d) {
      const Part q(x, n), v(x + n, n), last(x + 2 * n, n);
      if constexpr (P::forward)
        pinocchio::computeABADerivatives(model, data, q, v, last, by[0], by[1], by[2]);
      else pinocchio::computeRNEADerivatives(model, data, q, v, last, by[0], by[1], by[2]);
      by[2].triangularView<Eigen::StrictlyLower>() = by[2].transpose();  // the half it leaves out
      Rows(d) << by[0], by[1], by[2];
    }
  };
};

int main(int argc, char** argv) { return peer::run<Pinocchio>(argc, argv); }
