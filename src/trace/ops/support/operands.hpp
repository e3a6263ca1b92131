// What every public function does to its operands before it emits a primitive.
#pragma once

#include "broadcasting.hpp"
#include "messages.hpp"
#include "promotion.hpp"
