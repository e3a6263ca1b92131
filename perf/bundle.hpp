// The bundle adjustment objective of the ADBench suite, written with vt: one observation, vmapped
// over all.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <vt/vt.hpp>

namespace perf {

struct Bundle {
  int observations = 0;
  // [n,11]: angle-axis rotation, centre, focal length, principal point, radial distortion
  vt::Tensor cameras;
  vt::Tensor points, weights;      // [m,3], [p]
  vt::Tensor camera_of, point_of;  // [p], i32
  vt::Tensor features;             // [p,2]: where the point was seen
};

/// ADBench's instances name one camera, point, weight and feature, which all are copies of;
/// observation i is of camera i mod n and point i mod m. With `spread` each number of a copy is
/// changed by up to that share of it, by a fixed generator: copies hide what depends on the values.
inline Bundle read_bundle(const std::string& path, double spread = 0) {
  std::ifstream file(path);
  int n = 0, m = 0, p = 0;
  if (!(file >> n >> m >> p)) throw std::runtime_error(path + ": cannot be read");
  unsigned long long state = 1;
  const auto copies = [&](int rows, int columns) {
    std::vector<double> first(static_cast<std::size_t>(columns)), values;
    for (double& v : first) file >> v;
    for (int i = 0; i < rows; ++i)
      for (double v : first) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values.push_back(v * (1 + spread * (static_cast<double>(state >> 11) * 0x1p-52 - 1)));
      }
    return vt::tensor(values, {rows, columns}).eval();
  };
  Bundle b;
  b.observations = p;
  b.cameras = copies(n, 11);
  b.points = copies(m, 3);
  b.weights = vt::reshape(copies(p, 1), {p}).eval();
  b.features = copies(p, 2);
  if (!file) throw std::runtime_error(path + ": ends too early");
  b.camera_of = (vt::arange(p) % n).eval();
  b.point_of = (vt::arange(p) % m).eval();
  return b;
}

/// `v` transposed by |rotation| about the axis `rotation` (Rodrigues' formula).
inline vt::Tensor rotate(const vt::Tensor& rotation, const vt::Tensor& v) {
  const vt::Tensor squared = vt::dot(rotation, rotation);
  return vt::cond(
      squared != 0.0,
      [&] {
        const vt::Tensor angle = vt::sqrt(squared), axis = rotation / angle, c = vt::cos(angle);
        return v * c + vt::cross(axis, v) * vt::sin(angle) + axis * (vt::dot(axis, v) * (1.0 - c));
      },
      [&] { return v + vt::cross(rotation, v); });
}

/// How far from its feature a camera sees a point, times the weight: [2].
inline vt::Tensor reprojection_error(vt::Tensor camera, vt::Tensor point, vt::Tensor weight,
                                     vt::Tensor feature) {
  const vt::Tensor seen = rotate(camera[vt::slice(0, 3)], point - camera[vt::slice(3, 6)]);
  const vt::Tensor flat = seen[vt::slice(0, 2)] / seen[2], squared = vt::dot(flat, flat);
  const vt::Tensor distorted = flat * (1.0 + camera[9] * squared + camera[10] * squared * squared);
  return weight * (camera[6] * distorted + camera[vt::slice(7, 9)] - feature);
}

inline vt::Tensor weight_error(vt::Tensor weight) { return 1.0 - weight * weight; }

/// All residuals: [p,2] and [p].
inline auto bundle_objective(const Bundle& b) {
  return [=](vt::Tensor cameras, vt::Tensor points, vt::Tensor weights) {
    return std::pair(
        vt::vmap(reprojection_error)(vt::take(cameras, b.camera_of, 0),
                                     vt::take(points, b.point_of, 0), weights, b.features),
        vt::vmap(weight_error)(weights));
  };
}

/// The blocks of the sparse Jacobian: of each observation's residual by its camera [p,2,11], point
/// [p,2,3] and weight [p,2], and of the weights' residuals [p].
inline auto bundle_jacobian(const Bundle& b) {
  return [=](vt::Tensor cameras, vt::Tensor points, vt::Tensor weights) {
    const auto blocks = vt::vmap(vt::jacobian<0, 1, 2>(reprojection_error));
    return std::tuple_cat(blocks(vt::take(cameras, b.camera_of, 0), vt::take(points, b.point_of, 0),
                                 weights, b.features),
                          std::tuple(vt::vmap(vt::grad(weight_error))(weights)));
  };
}

}  // namespace perf
