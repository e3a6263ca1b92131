// Pieces of text that the report of scaling and its page share.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <vt/distributed.hpp>

#include "../../trace/processes/scaling_model.hpp"

namespace vt::detail::scaling_text {

inline constexpr std::int64_t shown_processes[] = {1, 2, 10, 100, 10'000};

std::string number(std::int64_t);  ///< "10,000"
std::string times(double);         ///< how often something is done in a step
/// "3.2 µs", to three digits.
std::string time(double seconds);
/// "0.4 µs, 9.1 GB/s; from 8 KiB on 2 µs, 12 GB/s"
std::string link_text(std::span<const Link>);
/// Which link predictions use.
std::string used_links(const ScalingData&);
bool can_predict(const ScalingData&);
/// Says so where transfers took more than 1.5 times what the model gives; else empty.
std::string slower_than_modelled(const ScalingData&);
/// "vt::psum over "data" of f64[3] at train.cpp:40"
std::string exchange(const distributed::ScalingExchange&);
/// Which collective takes most of a step on so many processes; empty if none is there. `separator`
/// comes before its name.
std::string limit(const ScalingData&, const distributed::ScalingReport&, std::int64_t processes,
                  const char* separator);

}  // namespace vt::detail::scaling_text
