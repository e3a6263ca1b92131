// The hierarchical model that nuts.cpp and distributed/chains_mpi.cpp sample, and its data.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "../support/csv.hpp"

namespace nuts {

using vt::Tensor;

/// Reactions to doses of a substance, measured in several laboratories. That a subject reacts has
/// log odds a + b·log(dose), where each laboratory has an a of its own: mean + spread·z, z normal.
/// θ = (mean, b, log spread, z of each laboratory).
struct Reactions {
  Tensor laboratory, log_dose, subjects, reactions;  ///< a number for each row
  std::int64_t laboratories = 0;

  std::int64_t parameters() const { return 3 + laboratories; }
  Tensor operator()(const Tensor& theta) const {
    const Tensor mean = theta[0], slope = theta[1], log_spread = theta[2];
    const Tensor z = theta[vt::slice(3, parameters())];
    const Tensor a = mean + vt::exp(log_spread) * z;
    const Tensor odds = vt::take(a, laboratory) + slope * log_dose;
    const Tensor fits = vt::sum(reactions * odds - subjects * vt::softplus(odds));
    const Tensor priors = vt::square(mean / 3.0) + vt::square(slope / 3.0) + vt::square(log_spread);
    return fits - 0.5 * (priors + vt::sum(vt::square(z)));
  }
};
inline constexpr double true_mean = -1.5, true_slope = 1.2,
                        true_spread = 0.7;  ///< of the data here

inline Reactions read_reactions(const std::string& path) {
  const support::Table table = support::read_csv(path, 4, support::Header::optional);
  std::vector<int> laboratory;
  std::vector<float> log_dose, subjects, reactions;
  Reactions r;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double lab = table.at(row, 0), dose = table.at(row, 1);
    if (lab != std::floor(lab) || lab < 1 || lab > 1000)
      throw support::InputError(path, table.lines[row], "laboratories are numbered from 1 on");
    if (dose <= 0) throw support::InputError(path, table.lines[row], "a dose must be positive");
    if (table.at(row, 3) < 0 || table.at(row, 3) > table.at(row, 2))
      throw support::InputError(path, table.lines[row], "more reactions than subjects, or below 0");
    laboratory.push_back(static_cast<int>(lab) - 1);
    log_dose.push_back(static_cast<float>(std::log(dose)));
    subjects.push_back(static_cast<float>(table.at(row, 2)));
    reactions.push_back(static_cast<float>(table.at(row, 3)));
    r.laboratories = std::max(r.laboratories, static_cast<std::int64_t>(lab));
  }
  r.laboratory = vt::tensor(laboratory), r.log_dose = vt::tensor(log_dose);
  r.subjects = vt::tensor(subjects), r.reactions = vt::tensor(reactions);
  return r;
}

}  // namespace nuts
