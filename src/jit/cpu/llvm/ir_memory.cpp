// The builder's memory side: contiguous, masked, strided and indexed accesses, alias scopes,
// frame arrays.
#include "ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/error.hpp>

namespace vt::detail::cpu {

LLVMMetadataRef IrBuilder::string_metadata(const std::string& s) {
  return llvm_.MDStringInContext2(context_, s.data(), s.size());
}

// Scope k stands for "reached through buffer k". An access through k is in scope k and outside all
// others.
// That no two buffers overlap is said of each pair. So beyond some of them, the others are one.
void IrBuilder::declare_buffers(int count) {
  constexpr int told_apart = 64;
  count = std::min(count, told_apart);
  const std::string domain_name = "vt.buffers." + std::to_string(alias_domains_++);
  LLVMMetadataRef name = string_metadata(domain_name);
  LLVMMetadataRef domain = llvm_.MDNodeInContext2(context_, &name, 1);
  Vec<LLVMMetadataRef> scopes;
  for (int k = 0; k < count; ++k) {
    LLVMMetadataRef parts[] = {string_metadata(domain_name + "." + std::to_string(k)), domain};
    scopes.push_back(llvm_.MDNodeInContext2(context_, parts, 2));
  }
  alias_scopes_.clear();
  noalias_scopes_.clear();
  for (int k = 0; k < count; ++k) {
    alias_scopes_.push_back(
        llvm_.MetadataAsValue(context_, llvm_.MDNodeInContext2(context_, &scopes[k], 1)));
    Vec<LLVMMetadataRef> others;
    for (int j = 0; j < count; ++j)
      if (j != k) others.push_back(scopes[j]);
    noalias_scopes_.push_back(llvm_.MetadataAsValue(
        context_, llvm_.MDNodeInContext2(context_, others.data(), others.size())));
  }
}

Value IrBuilder::with_buffer(Value pointer, int buffer) const {
  if (!pointer.pointer || alias_scopes_.empty()) fault("with_buffer", pointer, {});
  pointer.buffer = std::min(buffer, static_cast<int>(alias_scopes_.size()) - 1);
  return pointer;
}

LLVMValueRef IrBuilder::mark_access(LLVMValueRef instruction, int buffer) {
  if (buffer >= 0 && buffer < static_cast<int>(alias_scopes_.size())) {
    const std::size_t k = buffer;
    llvm_.SetMetadata(instruction, llvm_.GetMDKindIDInContext(context_, "alias.scope", 11),
                      alias_scopes_[k]);
    if (alias_scopes_.size() > 1)
      llvm_.SetMetadata(instruction, llvm_.GetMDKindIDInContext(context_, "noalias", 7),
                        noalias_scopes_[k]);
  }
  return instruction;
}

Value IrBuilder::offset(Value pointer, DType d, Value i) {
  if (!pointer.pointer || i.simd_lanes != 1) fault("offset", pointer, i);
  pointer.ref = llvm_.BuildInBoundsGEP2(builder_, memory_type(d), pointer.ref, &i.ref, 1, "");
  return pointer;
}

Value IrBuilder::offset_bytes(Value pointer, Value bytes) {
  return offset(pointer, DType::u8, bytes);
}

// What is read was written before the kernel starts: lets LLVM hoist the load over stores.
void IrBuilder::mark_unchanging(LLVMValueRef load) {
  llvm_.SetMetadata(load, llvm_.GetMDKindIDInContext(context_, "invariant.load", 14),
                    llvm_.MetadataAsValue(context_, llvm_.MDNodeInContext2(context_, nullptr, 0)));
}

Value IrBuilder::load_pointer(Value array, std::int64_t i, int buffer) {
  LLVMValueRef at = index(i).ref;
  LLVMValueRef slot = llvm_.BuildInBoundsGEP2(builder_, pointer_type_, array.ref, &at, 1, "");
  LLVMValueRef loaded = llvm_.BuildLoad2(builder_, pointer_type_, slot, "");
  mark_unchanging(loaded);
  return {.ref = loaded, .buffer = buffer, .pointer = true};
}

Value IrBuilder::from_memory(LLVMValueRef raw, DType d, int simd_lanes) {
  if (d == DType::bool_)
    return compare(Compare::ne, wrap(raw, DType::u8, simd_lanes),
                   integer(DType::u8, 0, simd_lanes));
  if (d == DType::f16 || d == DType::bf16)
    return from_half_bits(wrap(raw, DType::u16, simd_lanes), d);
  return wrap(raw, d, simd_lanes);
}

LLVMValueRef IrBuilder::to_memory(Value x) {
  if (x.dtype == DType::bool_)
    return llvm_.BuildZExt(builder_, x.ref, int_type(8, x.simd_lanes), "");
  if (x.dtype == DType::f16 || x.dtype == DType::bf16) return half_bits(x).ref;
  return x.ref;
}

Value IrBuilder::load(Value pointer, DType d, int simd_lanes, int align) {
  if (!pointer.pointer) fault("load", pointer, {});
  LLVMValueRef loaded = llvm_.BuildLoad2(builder_, memory_type(d, simd_lanes), pointer.ref, "");
  ++accesses_;
  llvm_.SetAlignment(loaded,
                     align > 0 ? static_cast<unsigned>(align) : static_cast<unsigned>(size_of(d)));
  return from_memory(mark_access(loaded, pointer.buffer), d, simd_lanes);
}

void IrBuilder::store(Value pointer, Value x, int align) {
  if (!pointer.pointer || x.pointer) fault("store", pointer, x);
  LLVMValueRef stored = llvm_.BuildStore(builder_, to_memory(x), pointer.ref);
  ++accesses_;
  llvm_.SetAlignment(
      stored, align > 0 ? static_cast<unsigned>(align) : static_cast<unsigned>(size_of(x.dtype)));
  mark_access(stored, pointer.buffer);
}

void IrBuilder::store_streaming(Value pointer, Value x, int align) {
  if (!pointer.pointer || x.pointer) fault("store_streaming", pointer, x);
  LLVMValueRef stored = llvm_.BuildStore(builder_, to_memory(x), pointer.ref);
  ++accesses_;
  llvm_.SetAlignment(stored, static_cast<unsigned>(align));
  LLVMMetadataRef one = llvm_.ValueAsMetadata(llvm_.ConstInt(int_type(32), 1, 0));
  llvm_.SetMetadata(stored, llvm_.GetMDKindIDInContext(context_, "nontemporal", 11),
                    llvm_.MetadataAsValue(context_, llvm_.MDNodeInContext2(context_, &one, 1)));
  mark_access(stored, pointer.buffer);
}

void IrBuilder::order_streaming_stores() {
  llvm_.BuildFence(builder_, LLVMAtomicOrderingSequentiallyConsistent, 0, "");
}

void IrBuilder::fetch_ahead(Value pointer, Fetch f) {
  const auto number = [&](unsigned long long n) { return llvm_.ConstInt(int_type(32), n, 0); };
  intrinsic("llvm.prefetch", {pointer_type_},
            {pointer.ref, number(f.write ? 1 : 0), number(f.near ? 3 : 2), number(1)});
}

Value IrBuilder::load_masked(Value pointer, DType d, Value mask) {
  if (mask.dtype != DType::bool_) fault("load_masked", pointer, mask);
  if (mask.simd_lanes == 1)
    return if_else(
        mask, [&] { return Vec<Value>{load(pointer, d)}; },
        [&] { return Vec<Value>{integer(d, 0)}; })[0];
  LLVMTypeRef type = memory_type(d, mask.simd_lanes);
  LLVMValueRef loaded = intrinsic(
      "llvm.masked.load", {type, pointer_type_},
      {pointer.ref, llvm_.ConstInt(int_type(32), size_of(d), 0), mask.ref, llvm_.ConstNull(type)});
  return from_memory(mark_access(loaded, pointer.buffer), d, mask.simd_lanes);
}

void IrBuilder::store_masked(Value pointer, Value x, Value mask) {
  if (mask.dtype != DType::bool_ || mask.simd_lanes != x.simd_lanes) fault("store_masked", x, mask);
  if (mask.simd_lanes == 1) return if_then(mask, [&] { store(pointer, x); });
  mark_access(intrinsic("llvm.masked.store", {memory_type(x.dtype, x.simd_lanes), pointer_type_},
                        {to_memory(x), pointer.ref,
                         llvm_.ConstInt(int_type(32), size_of(x.dtype), 0), mask.ref}),
              pointer.buffer);
}

Value IrBuilder::load_strided(Value pointer, DType d, int simd_lanes, std::int64_t stride,
                              Value mask) {
  if (simd_lanes == 1) return mask ? load_masked(pointer, d, mask) : load(pointer, d);
  if (stride == 1) return mask ? load_masked(pointer, d, mask) : load(pointer, d, simd_lanes);
  if (stride == 0)
    return mask ? load_strided(pointer, d, simd_lanes, index(0), mask)
                : splat(load(pointer, d), simd_lanes);
  if (stride == -1) {
    const Value first = offset(pointer, d, index(1 - simd_lanes));
    return reverse_simd_lanes(mask ? load_masked(first, d, reverse_simd_lanes(mask))
                                   : load(first, d, simd_lanes));
  }
  if (stride >= 2 && stride <= 4 && !mask) {
    // Whole vectors and a shuffle. Those at the end are pulled back to end on the last element, so
    // nothing beyond is read.
    const int parts = static_cast<int>(stride), last = (simd_lanes - 1) * parts + 1 - simd_lanes;
    Vec<int> pick;
    for (int k = 0; k < simd_lanes; ++k) {
      const int element = k * parts, part = element / simd_lanes;
      pick.push_back(part * simd_lanes + element - std::min(part * simd_lanes, last));
    }
    Value all{};
    for (int p = 0; p < parts; ++p) {
      const int first = std::min(p * simd_lanes, last);
      const Value at = offset(pointer, d, index(first));
      const Value part = load(at, d, simd_lanes);
      all = all ? concat_simd_lanes(all, part) : part;
    }
    return shuffle(all, all, pick);
  }
  return load_strided(pointer, d, simd_lanes, index(stride), mask);
}

Value IrBuilder::load_strided(Value pointer, DType d, int simd_lanes, Value stride, Value mask) {
  if (simd_lanes == 1) return mask ? load_masked(pointer, d, mask) : load(pointer, d);
  return gather(pointer, d,
                mul(iota(DType::i64, simd_lanes), splat(convert(stride, DType::i64), simd_lanes)),
                mask);
}

void IrBuilder::store_strided(Value pointer, Value x, std::int64_t stride, Value mask) {
  if (stride == -1 && x.simd_lanes > 1) {
    const Value first = offset(pointer, x.dtype, index(1 - x.simd_lanes));
    if (mask) store_masked(first, reverse_simd_lanes(x), reverse_simd_lanes(mask));
    else store(first, reverse_simd_lanes(x));
    return;
  }
  store_strided(pointer, x, index(stride), mask);
}

void IrBuilder::store_strided(Value pointer, Value x, Value stride, Value mask) {
  if (x.simd_lanes == 1) return mask ? store_masked(pointer, x, mask) : store(pointer, x);
  scatter(pointer, x,
          mul(iota(DType::i64, x.simd_lanes), splat(convert(stride, DType::i64), x.simd_lanes)),
          mask);
}

void IrBuilder::store_interleaved(Value pointer, const Vec<Value>& xs, Value mask) {
  const int parts = static_cast<int>(xs.size()), simd_lanes = xs[0].simd_lanes;
  // Bits are only moved: bools and 16-bit floats go as they lie in memory.
  const DType d = xs[0].dtype, moved = d == DType::bool_                     ? DType::u8
                                       : d == DType::f16 || d == DType::bf16 ? DType::u16
                                                                             : d;
  Value all{};
  for (const Value& x : xs) {
    const Value bits = wrap(to_memory(x), moved, simd_lanes);
    all = all ? concat_simd_lanes(all, bits) : bits;
  }
  for (int p = 0; p < parts; ++p) {
    Vec<int> pick, of_mask;
    for (int e = p * simd_lanes; e < (p + 1) * simd_lanes; ++e) {
      pick.push_back(e % parts * simd_lanes + e / parts);
      of_mask.push_back(e / parts);
    }
    const Value at = offset(pointer, moved, index(std::int64_t{p} * simd_lanes)),
                x = shuffle(all, all, pick);
    if (mask) store_masked(at, x, shuffle(mask, mask, of_mask));
    else store(at, x);
  }
}

Value IrBuilder::gather(Value pointer, DType d, Value indices, Value mask) {
  if (!pointer.pointer || !is_int(indices.dtype) || (mask && mask.simd_lanes != indices.simd_lanes))
    fault("gather", indices, mask);
  const int simd_lanes = indices.simd_lanes;
  if (simd_lanes == 1) {
    const Value at = offset(pointer, d, convert(indices, DType::i64));
    return mask ? load_masked(at, d, mask) : load(at, d);
  }
  // GEP reads indices as signed: unsigned ones are widened first. 32-bit signed ones stay (a
  // shorter gather).
  if (indices.dtype != DType::i32) indices = convert(indices, DType::i64);
  LLVMValueRef addresses =
      llvm_.BuildInBoundsGEP2(builder_, memory_type(d), pointer.ref, &indices.ref, 1, "");
  LLVMTypeRef type = memory_type(d, simd_lanes);
  if (!mask) mask = boolean(true, simd_lanes);
  LLVMValueRef loaded = intrinsic(
      "llvm.masked.gather", {type, vector_of(pointer_type_, simd_lanes)},
      {addresses, llvm_.ConstInt(int_type(32), size_of(d), 0), mask.ref, llvm_.ConstNull(type)});
  return from_memory(mark_access(loaded, pointer.buffer), d, simd_lanes);
}

void IrBuilder::scatter(Value pointer, Value x, Value indices, Value mask) {
  if (!pointer.pointer || !is_int(indices.dtype) || indices.simd_lanes != x.simd_lanes ||
      (mask && mask.simd_lanes != x.simd_lanes))
    fault("scatter", x, indices);
  const int simd_lanes = indices.simd_lanes;
  if (simd_lanes == 1) {
    const Value at = offset(pointer, x.dtype, convert(indices, DType::i64));
    return mask ? store_masked(at, x, mask) : store(at, x);
  }
  if (indices.dtype != DType::i32) indices = convert(indices, DType::i64);
  LLVMValueRef addresses =
      llvm_.BuildInBoundsGEP2(builder_, memory_type(x.dtype), pointer.ref, &indices.ref, 1, "");
  if (!mask) mask = boolean(true, simd_lanes);
  mark_access(intrinsic("llvm.masked.scatter",
                        {memory_type(x.dtype, simd_lanes), vector_of(pointer_type_, simd_lanes)},
                        {to_memory(x), addresses, llvm_.ConstInt(int_type(32), size_of(x.dtype), 0),
                         mask.ref}),
              pointer.buffer);
}

Value IrBuilder::tail_mask(int simd_lanes, Value count) {
  // Clamped first, so that 32-bit SIMD lane numbers can be compared: half the registers of 64-bit
  // ones.
  const Value most = index(simd_lanes);
  count = max(min(convert(count, DType::i64), most), index(0));
  return compare(Compare::lt, iota(DType::i32, simd_lanes),
                 splat(convert(count, DType::i32), simd_lanes));
}

Value IrBuilder::stack_array(DType d, std::int64_t count) {
  // In the entry block, so that it is one fixed slot even when asked for inside a loop.
  LLVMBasicBlockRef here = llvm_.GetInsertBlock(builder_);
  LLVMBasicBlockRef entry = llvm_.GetEntryBasicBlock(function_);
  if (LLVMValueRef first = llvm_.GetFirstInstruction(entry))
    llvm_.PositionBuilderBefore(builder_, first);
  else llvm_.PositionBuilderAtEnd(builder_, entry);
  LLVMTypeRef type = llvm_.ArrayType2(memory_type(d), static_cast<std::uint64_t>(count));
  LLVMValueRef slot = llvm_.BuildAlloca(builder_, type, "");
  llvm_.SetAlignment(slot, 64);
  llvm_.PositionBuilderAtEnd(builder_, here);
  return {.ref = slot, .pointer = true};
}

Value IrBuilder::constant_array(const std::string& name, DType d,
                                std::span<const std::uint64_t> bits) {
  LLVMValueRef global = llvm_.GetNamedGlobal(module_, name.c_str());
  if (!global) {
    LLVMTypeRef element = int_type(static_cast<int>(size_of(d)) * 8);
    Vec<LLVMValueRef> all;
    for (std::uint64_t x : bits) all.push_back(llvm_.ConstInt(element, x, 0));
    LLVMValueRef array = llvm_.ConstArray2(element, all.data(), all.size());
    global = llvm_.AddGlobal(module_, llvm_.TypeOf(array), name.c_str());
    llvm_.SetInitializer(global, array);
    llvm_.SetGlobalConstant(global, 1);
    llvm_.SetLinkage(global, LLVMInternalLinkage);
    llvm_.SetAlignment(global, 64);
  }
  return {.ref = global, .pointer = true};
}

void IrBuilder::copy_bytes(Value to, Value from, Value bytes) {
  llvm_.BuildMemCpy(builder_, to.ref, 1, from.ref, 1, bytes.ref);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
