// The hand tracking objectives of the ADBench suite, written with vt: a skeleton poses the vertices
// of a mesh, which measured points lie on.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace perf {

struct Hand {
  std::vector<int> parents;  // of bones; −1: the wrist has none
  // [bones,4,4]: each bone in its parent's frame, and the inverse of the resting pose
  vt::Tensor relatives, inverses;
  vt::Tensor angles;  // [bones,3]: which parameter each bone's angles are; 26: none
  // [v,bones,4]: the resting vertex with a last 1, by how much it follows each bone
  vt::Tensor skin;
  vt::Tensor triangles;        // [t,3]
  vt::Tensor measured;         // [n,3]
  vt::Tensor correspondences;  // [n]: of vertices, or of triangles where there are `us`
  vt::Tensor theta, us;        // [26], [n,2]
};

/// The mesh in `folder` and the instance `folder/instance.txt`; `with_us` where its points lie
/// anywhere on triangles ("complicated").
inline Hand read_hand(const std::string& folder, const std::string& instance, bool with_us) {
  // A line's fields are separated by colons.
  const auto lines = [&](const std::string& name) {
    std::ifstream file(folder + "/" + name);
    if (!file) throw std::runtime_error(folder + "/" + name + ": cannot be read");
    std::vector<std::vector<std::string>> out;
    for (std::string line, field; std::getline(file, line);) {
      std::stringstream fields(line);
      out.emplace_back();
      while (std::getline(fields, field, ':')) out.back().push_back(field);
    }
    return out;
  };
  Hand h;
  std::vector<double> relatives, inverses, skin;
  for (const auto& bone : lines("bones.txt")) {
    h.parents.push_back(std::stoi(bone.at(1)));
    for (int i = 0; i < 16; ++i) relatives.push_back(std::stod(bone.at(2 + i)));
    for (int i = 0; i < 16; ++i) inverses.push_back(std::stod(bone.at(18 + i)));
  }
  const int bones = static_cast<int>(h.parents.size());
  int count = 0;
  // position, normal and texture, then pairs of bones and weights
  for (const auto& vertex : lines("vertices.txt")) {
    std::vector<double> own(4 * h.parents.size());
    for (int i = 0; i < std::stoi(vertex.at(8)); ++i)
      for (int j = 0; j < 4; ++j)
        own[4 * std::stoi(vertex.at(9 + 2 * i)) + j] =
            std::stod(vertex.at(10 + 2 * i)) * (j < 3 ? std::stod(vertex.at(j)) : 1);
    skin.insert(skin.end(), own.begin(), own.end());
    ++count;
  }
  std::vector<int> corners;
  for (const auto& triangle : lines("triangles.txt"))
    for (const auto& corner : triangle) corners.push_back(std::stoi(corner));
  h.relatives = vt::tensor(relatives, {bones, 4, 4});
  h.inverses = vt::tensor(inverses, {bones, 4, 4});
  h.skin = vt::tensor(skin, {count, bones, 4});
  std::vector<int> angles(3 * h.parents.size(), 26);
  for (int finger = 0; finger < 5; ++finger)
    for (int i = 0; i < 3; ++i) {
      const int bone = 2 + 4 * finger + i, first = 6 + 4 * finger;
      angles[3 * bone] = i == 0 ? first : first + i + 1;
      if (i == 0) angles[3 * bone + 1] = first + 1;
    }
  h.angles = vt::tensor(angles, {bones, 3});
  h.triangles = vt::tensor(corners, {static_cast<int>(corners.size()) / 3, 3});

  std::ifstream file(folder + "/" + instance + ".txt");
  int n = 0, parameters = 0;
  if (!(file >> n >> parameters))
    throw std::runtime_error(folder + "/" + instance + ".txt: cannot be read");
  std::vector<int> correspondences(static_cast<std::size_t>(n));
  std::vector<double> measured(3 * correspondences.size()),
      us(with_us ? 2 * correspondences.size() : 0), theta(static_cast<std::size_t>(parameters));
  for (int i = 0; i < n; ++i) {
    file >> correspondences[i];
    for (int j = 0; j < 3; ++j) file >> measured[3 * i + j];
  }
  for (double& u : us) file >> u;
  for (double& t : theta) file >> t;
  if (!file) throw std::runtime_error(instance + ": ends too early");
  h.correspondences = vt::tensor(correspondences, {n});
  h.measured = vt::tensor(measured, {n, 3});
  h.theta = vt::tensor(theta, {parameters});
  if (with_us) h.us = vt::tensor(us, {n, 2});
  return h;
}

/// A matrix of scalars.
inline vt::Tensor matrix(const std::vector<std::vector<vt::Tensor>>& rows) {
  std::vector<vt::Tensor> stacked;
  for (const auto& row : rows) stacked.push_back(vt::stack(row));
  return vt::stack(stacked);
}

/// The rotation by |v| about v; none where v is short.
inline vt::Tensor rotation_about(const vt::Tensor& v) {
  const vt::Tensor angle = vt::norm(v);
  return vt::cond(
      angle < 1e-4, [] { return vt::eye(3, vt::f64); },
      [&] {
        const vt::Tensor axis = v / angle, s = axis * vt::sin(angle), c = vt::cos(angle),
                         none = vt::zeros({}, vt::f64);
        const vt::Tensor turn =
            matrix({{none, -s[2], s[1]}, {s[2], none, -s[0]}, {-s[1], s[0], none}});
        return c * vt::eye(3, vt::f64) + turn + (1.0 - c) * vt::outer(axis, axis);
      });
}

/// The rotation about x, then y, then z as a transformation of homogeneous coordinates; the angles
/// come as (x, z, y).
inline vt::Tensor joint(const vt::Tensor& angles) {
  const vt::Tensor s = vt::sin(angles), c = vt::cos(angles), sx = s[0], sz = s[1], sy = s[2],
                   cx = c[0], cz = c[1], cy = c[2];
  const vt::Tensor zero = vt::zeros({}, vt::f64), one = vt::ones({}, vt::f64);
  return matrix({{cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, zero},
                 {sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, zero},
                 {-sy, cy * sx, cy * cx, zero},
                 {zero, zero, zero, one}});
}

/// Where the vertices are: [v,3]. theta: rotation and translation of the hand, then of each finger
/// two angles of its first joint and one of two more.
inline vt::Tensor posed_vertices(const Hand& h, const vt::Tensor& theta) {
  const int bones = static_cast<int>(h.parents.size());
  const vt::Tensor angles =
      vt::take(vt::concatenate({theta, vt::zeros({1}, vt::f64)}), h.angles, 0);
  const vt::Tensor posed = vt::vmap([](vt::Tensor rest, vt::Tensor angles) {
    return vt::matmul(rest, joint(angles));
  })(h.relatives, angles);
  std::vector<vt::Tensor> absolute;
  for (int i = 0; i < bones; ++i)
    absolute.push_back(h.parents[i] < 0 ? posed[i] : vt::matmul(absolute[h.parents[i]], posed[i]));
  // From the resting pose, without the last row, which is that of the unit matrix.
  const auto moved = [](vt::Tensor now, vt::Tensor inverse) {
    return vt::matmul(now[vt::slice(0, 3)], inverse);
  };
  const vt::Tensor transforms = vt::vmap(moved)(vt::stack(absolute), h.inverses);

  const vt::Tensor turn = rotation_about(theta[vt::slice(0, 3)]), shift = theta[vt::slice(3, 6)];
  const auto position = [&](vt::Tensor skin) {
    return vt::matmul(turn, vt::einsum("bij,bj->i", transforms, skin)) + shift;
  };
  return vt::vmap(position)(h.skin);
}

/// From vertices to the points measured for them: [n,3], by theta.
inline auto hand_objective(const Hand& h) {
  return [=](vt::Tensor theta) {
    return h.measured - vt::take(posed_vertices(h, theta), h.correspondences, 0);
  };
}

/// From the point that `u` names on a triangle, given its corners, to the measured one: [3].
inline vt::Tensor point_residual(vt::Tensor u, vt::Tensor corners, vt::Tensor measured) {
  return measured - (u[0] * corners[0] + u[1] * corners[1] + (1.0 - u[0] - u[1]) * corners[2]);
}

/// The corners of each correspondence's triangle: [n,3,3].
inline vt::Tensor corners_of(const Hand& h, const vt::Tensor& theta) {
  return vt::take(posed_vertices(h, theta), vt::take(h.triangles, h.correspondences, 0), 0);
}

/// From points on triangles to the measured ones: [n,3], by theta and us.
inline auto hand_objective_on_triangles(const Hand& h) {
  return [=](vt::Tensor theta, vt::Tensor us) {
    return vt::vmap(point_residual)(us, corners_of(h, theta), h.measured);
  };
}

/// The Jacobian by theta [n,3,26] and, as each residual depends on its own u alone, blocks by us
/// [n,3,2].
inline auto hand_jacobian_on_triangles(const Hand& h) {
  return [=](vt::Tensor theta, vt::Tensor us) {
    return std::pair(vt::jacobian(hand_objective_on_triangles(h))(theta, us),
                     vt::vmap(vt::jacobian(point_residual))(us, corners_of(h, theta), h.measured));
  };
}

}  // namespace perf
