// The builder's basis: module, functions, control flow, constants, and moves between SIMD lanes.
#include "ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>

#include <vt/error.hpp>

#include "../../services/code_label.hpp"

namespace vt::detail::cpu {

namespace ir_frame {

// LLVM's default handler prints to stderr and ends the process on errors; ours keeps the text.
void keep_diagnostic(LLVMDiagnosticInfoRef info, void* text) {
  const Llvm& L = llvm();
  if (L.GetDiagInfoSeverity(info) != LLVMDSError) return;
  char* message = L.GetDiagInfoDescription(info);
  static_cast<std::string*>(text)->append(message).append("\n");
  L.DisposeMessage(message);
}

std::string describe(const Value& x) {
  if (!x.ref) return "nothing";
  if (x.pointer) return "pointer";
  std::string s = name_of(x.dtype);
  if (x.simd_lanes != 1) s += "x" + std::to_string(x.simd_lanes);
  return s;
}

unsigned enum_attribute(const Llvm& L, const char* name) {
  return L.GetEnumAttributeKindForName(name, std::strlen(name));
}

}  // namespace ir_frame

IrBuilder::IrBuilder(const Target& target, const char* module_name)
    : llvm_(llvm()), target_(target), names_(llvm_target(target.isa)) {
  context_ = llvm_.ContextCreate();
  llvm_.ContextSetDiagnosticHandler(context_, ir_frame::keep_diagnostic, &diagnostics_);
  module_ = llvm_.ModuleCreateWithNameInContext(module_name, context_);
  llvm_.SetTarget(module_, names_.triple.c_str());
  builder_ = llvm_.CreateBuilderInContext(context_);
  pointer_type_ = llvm_.PointerTypeInContext(context_, 0);
}

IrBuilder::~IrBuilder() {
  // LLVM may have been left in the middle of something: what is in it is not to be touched.
  if (CompilerUse::is_broken_off()) return;
  llvm_.DisposeBuilder(builder_);
  llvm_.DisposeModule(module_);
  llvm_.ContextDispose(context_);
}

std::string IrBuilder::text() const {
  char* printed = llvm_.PrintModuleToString(module_);
  std::string s = printed;
  llvm_.DisposeMessage(printed);
  return s;
}

std::string IrBuilder::bitcode() const {
  LLVMMemoryBufferRef code = llvm_.WriteBitcodeToMemoryBuffer(module_);
  std::string bytes(llvm_.GetBufferStart(code), llvm_.GetBufferSize(code));
  llvm_.DisposeMemoryBuffer(code);
  return bytes;
}

std::string IrBuilder::verify() const {
  char* message = nullptr;
  const bool bad = llvm_.VerifyModule(module_, LLVMReturnStatusAction, &message) != 0;
  std::string s = bad ? (message && *message ? message : "the module is malformed") : "";
  llvm_.DisposeMessage(message);
  return s + diagnostics_;
}

void IrBuilder::fault(const char* operation, Value a, Value b) const {
  throw Error(ErrorKind::backend, std::string("vt: internal fault in the CPU code generator: ") +
                                      operation + " of " + ir_frame::describe(a) + " and " +
                                      ir_frame::describe(b));
}

void IrBuilder::expect_same(const char* operation, Value a, Value b) const {
  if (!a.ref || !b.ref || a.dtype != b.dtype || a.simd_lanes != b.simd_lanes ||
      a.pointer != b.pointer)
    fault(operation, a, b);
}

// ---- types --------------------------------------------------------------------------------------

LLVMTypeRef IrBuilder::int_type(int bits, int simd_lanes) {
  return vector_of(llvm_.IntTypeInContext(context_, static_cast<unsigned>(bits)), simd_lanes);
}

LLVMTypeRef IrBuilder::register_type(DType d, int simd_lanes) {
  switch (d) {
    case DType::bool_: return int_type(1, simd_lanes);
    case DType::f16:
    case DType::bf16:
    case DType::f32: return vector_of(llvm_.FloatTypeInContext(context_), simd_lanes);
    case DType::f64: return vector_of(llvm_.DoubleTypeInContext(context_), simd_lanes);
    default: return int_type(static_cast<int>(size_of(d)) * 8, simd_lanes);
  }
}

LLVMTypeRef IrBuilder::memory_type(DType d, int simd_lanes) {
  if (d == DType::bool_) return int_type(8, simd_lanes);
  if (d == DType::f16 || d == DType::bf16) return int_type(16, simd_lanes);
  return register_type(d, simd_lanes);
}

LLVMTypeRef IrBuilder::type_of(const Value& x) {
  return x.pointer ? pointer_type_ : register_type(x.dtype, x.simd_lanes);
}

// ---- functions ----------------------------------------------------------------------------------

LLVMValueRef IrBuilder::open_function(const std::string& name, const Vec<Param>& params,
                                      LLVMTypeRef result, bool exported, LLVMTypeRef* type) {
  Vec<LLVMTypeRef> types;
  for (const Param& p : params)
    types.push_back(p.pointer ? pointer_type_ : register_type(p.dtype, p.simd_lanes));
  *type = llvm_.FunctionType(result, types.data(), static_cast<unsigned>(types.size()), 0);
  LLVMValueRef f = llvm_.AddFunction(module_, name.c_str(), *type);
  const auto add = [&](unsigned at, const char* attribute, std::uint64_t value = 0) {
    llvm_.AddAttributeAtIndex(
        f, at,
        llvm_.CreateEnumAttribute(context_, ir_frame::enum_attribute(llvm_, attribute), value));
  };
  const auto add_text = [&](const char* key, const std::string& value) {
    llvm_.AddAttributeAtIndex(
        f, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
        llvm_.CreateStringAttribute(context_, key, static_cast<unsigned>(std::strlen(key)),
                                    value.c_str(), static_cast<unsigned>(value.size())));
  };
  constexpr auto whole = static_cast<unsigned>(LLVMAttributeFunctionIndex);
  add(whole, "nounwind");
  if (!exported) {
    llvm_.SetLinkage(f, LLVMInternalLinkage);
    add(whole, "noinline");
  }
  add_text("target-cpu", names_.cpu);
  add_text("target-features", names_.features);
  const std::string bits = std::to_string(target_.vector_bytes * 8);
  add_text("prefer-vector-width", bits);
  add_text("min-legal-vector-width", bits);
  for (std::size_t i = 0; i < params.size(); ++i) {
    const auto at = static_cast<unsigned>(i + 1);
    if (params[i].noalias) add(at, "noalias");
    if (params[i].readonly) add(at, "readonly");
    if (params[i].align > 0) add(at, "align", static_cast<std::uint64_t>(params[i].align));
  }
  return f;
}

void IrBuilder::begin_function(const std::string& name, const Vec<Param>& params) {
  LLVMTypeRef type = nullptr;
  const std::string symbol = code_symbol(name);
  function_ = open_function(symbol, params, llvm_.VoidTypeInContext(context_), true, &type);
  args_.clear();
  alias_scopes_.clear();
  noalias_scopes_.clear();
  for (std::size_t i = 0; i < params.size(); ++i)
    args_.push_back({.ref = llvm_.GetParam(function_, static_cast<unsigned>(i)),
                     .dtype = params[i].dtype,
                     .simd_lanes = params[i].simd_lanes,
                     .pointer = params[i].pointer});
  llvm_.PositionBuilderAtEnd(builder_,
                             llvm_.AppendBasicBlockInContext(context_, function_, "entry"));
  if (const CodeLabel* label = gdb_wanted() ? CodeLabelScope::innermost() : nullptr)
    lines_ = std::make_unique<LineTable>(module_, builder_, function_, symbol, label->where);
}

void IrBuilder::end_function() {
  llvm_.BuildRetVoid(builder_);
  lines_ = {};
  function_ = nullptr;
  numbers_array_ = {};
}

void IrBuilder::take_numbers(Value array, std::int64_t first) {
  numbers_array_ = array;
  first_number_ = first;
}

Value IrBuilder::number(std::int64_t x, int role) {
  if (!numbers_array_) return index(x);
  for (std::size_t k = 0; k < numbers_.size(); ++k)
    if (numbers_[k] == x && number_roles_[k] == role) return number_values_[k];
  // At the function's beginning, where all that follows may use it.
  LLVMBasicBlockRef here = llvm_.GetInsertBlock(builder_),
                    entry = llvm_.GetEntryBasicBlock(function_);
  if (LLVMValueRef first = llvm_.GetFirstInstruction(entry))
    llvm_.PositionBuilderBefore(builder_, first);
  else llvm_.PositionBuilderAtEnd(builder_, entry);
  const Value at = offset(numbers_array_, DType::i64,
                          index(first_number_ + static_cast<std::int64_t>(numbers_.size())));
  LLVMValueRef loaded = llvm_.BuildLoad2(builder_, int_type(64), at.ref, "");
  mark_unchanging(loaded);
  llvm_.PositionBuilderAtEnd(builder_, here);
  numbers_.push_back(x);
  number_roles_.push_back(role);
  number_values_.push_back(wrap(loaded, DType::i64, 1));
  return number_values_.back();
}

Value IrBuilder::call_helper(const std::string& name, DType result, int simd_lanes,
                             const Vec<Value>& args, FunctionRef<Value(const Vec<Value>&)> body) {
  Vec<Param> params;
  Vec<LLVMTypeRef> types;
  Vec<LLVMValueRef> refs;
  for (const Value& a : args) {
    params.push_back({.dtype = a.dtype, .pointer = a.pointer, .simd_lanes = a.simd_lanes});
    types.push_back(type_of(a));
    refs.push_back(a.ref);
  }
  LLVMTypeRef type = llvm_.FunctionType(register_type(result, simd_lanes), types.data(),
                                        static_cast<unsigned>(types.size()), 0);
  LLVMValueRef f = llvm_.GetNamedFunction(module_, name.c_str());
  if (!f) {
    LLVMBasicBlockRef resume = llvm_.GetInsertBlock(builder_);
    LLVMValueRef outer = function_;
    LLVMMetadataRef place = lines_ ? lines_->suspend() : nullptr;
    function_ = f = open_function(name, params, register_type(result, simd_lanes), false, &type);
    llvm_.PositionBuilderAtEnd(builder_, llvm_.AppendBasicBlockInContext(context_, f, "entry"));
    Vec<Value> inner;
    for (std::size_t i = 0; i < args.size(); ++i) {
      Value a = args[i];
      a.ref = llvm_.GetParam(f, static_cast<unsigned>(i));
      a.buffer = -1;  // alias scopes belong to the outer function
      inner.push_back(a);
    }
    const Value made = body(inner);
    if (made.dtype != result || made.simd_lanes != simd_lanes)
      fault(("helper " + name).c_str(), made, {});
    llvm_.BuildRet(builder_, made.ref);
    function_ = outer;
    llvm_.PositionBuilderAtEnd(builder_, resume);
    if (lines_) lines_->resume(place);
  }
  return wrap(
      llvm_.BuildCall2(builder_, type, f, refs.data(), static_cast<unsigned>(refs.size()), ""),
      result, simd_lanes);
}

void IrBuilder::call_runtime(const char* symbol, const Vec<Value>& args) {
  Vec<LLVMTypeRef> types;
  Vec<LLVMValueRef> refs;
  for (const Value& a : args) types.push_back(type_of(a)), refs.push_back(a.ref);
  const auto count = static_cast<unsigned>(args.size());
  LLVMTypeRef type = llvm_.FunctionType(llvm_.VoidTypeInContext(context_), types.data(), count, 0);
  LLVMValueRef f = llvm_.GetNamedFunction(module_, symbol);
  if (!f) f = llvm_.AddFunction(module_, symbol, type);
  llvm_.BuildCall2(builder_, type, f, refs.data(), count, "");
}

LLVMValueRef IrBuilder::intrinsic(const char* name, std::initializer_list<LLVMTypeRef> overloads,
                                  std::initializer_list<LLVMValueRef> args) {
  const unsigned id = llvm_.LookupIntrinsicID(name, std::strlen(name));
  if (id == 0) throw Error(ErrorKind::backend, std::string("vt: LLVM has no intrinsic ") + name);
  LLVMValueRef f = llvm_.GetIntrinsicDeclaration(
      module_, id, const_cast<LLVMTypeRef*>(overloads.begin()), overloads.size());
  return llvm_.BuildCall2(builder_, llvm_.GlobalGetValueType(f), f,
                          const_cast<LLVMValueRef*>(args.begin()),
                          static_cast<unsigned>(args.size()), "");
}

// ---- control flow -------------------------------------------------------------------------------

LLVMBasicBlockRef IrBuilder::block(const char* name) {
  return llvm_.AppendBasicBlockInContext(context_, function_, name);
}

void IrBuilder::begin_block() {
  LLVMBasicBlockRef next = block("next");
  llvm_.BuildBr(builder_, next);
  llvm_.PositionBuilderAtEnd(builder_, next);
}

Vec<Value> IrBuilder::loop(Value lo, Value hi, std::int64_t step, const Vec<Value>& init,
                           const LoopBody& body, bool nonempty) {
  // Rotated form: one test before, one at the end of each iteration.
  LLVMBasicBlockRef before = llvm_.GetInsertBlock(builder_);
  LLVMBasicBlockRef head = block("loop");
  LLVMBasicBlockRef after = block("after");
  if (nonempty) llvm_.BuildBr(builder_, head);
  else llvm_.BuildCondBr(builder_, compare(Compare::lt, lo, hi).ref, head, after);
  llvm_.PositionBuilderAtEnd(builder_, head);
  const auto phi = [&](const Value& first) {
    Value p = first;
    p.ref = llvm_.BuildPhi(builder_, type_of(first), "");
    LLVMValueRef incoming = first.ref;
    llvm_.AddIncoming(p.ref, &incoming, &before, 1);
    return p;
  };
  const Value i = phi(lo);
  Vec<Value> carried;
  for (const Value& x : init) carried.push_back(phi(x));
  Vec<Value> next = body(i, carried);
  if (next.size() != init.size()) fault("loop (number of carried values)", {}, {});
  for (std::size_t k = 0; k < next.size(); ++k)
    expect_same("loop (carried value)", init[k], next[k]);
  LLVMValueRef stepped = llvm_.BuildNSWAdd(builder_, i.ref, index(step).ref, "");
  LLVMBasicBlockRef latch = llvm_.GetInsertBlock(builder_);
  llvm_.BuildCondBr(builder_, compare(Compare::lt, wrap(stepped, DType::i64, 1), hi).ref, head,
                    after);
  llvm_.AddIncoming(i.ref, &stepped, &latch, 1);
  for (std::size_t k = 0; k < next.size(); ++k)
    llvm_.AddIncoming(carried[k].ref, &next[k].ref, &latch, 1);
  llvm_.PositionBuilderAtEnd(builder_, after);
  if (nonempty) return next;
  Vec<Value> results;
  for (std::size_t k = 0; k < next.size(); ++k) {
    Value r = next[k];
    r.ref = llvm_.BuildPhi(builder_, type_of(r), "");
    LLVMValueRef values[] = {init[k].ref, next[k].ref};
    LLVMBasicBlockRef blocks[] = {before, latch};
    llvm_.AddIncoming(r.ref, values, blocks, 2);
    results.push_back(r);
  }
  return results;
}

void IrBuilder::for_range(Value lo, Value hi, std::int64_t step, FunctionRef<void(Value i)> body,
                          bool nonempty) {
  loop(
      lo, hi, step, Vec<Value>{},
      [&](Value i, const Vec<Value>&) {
        body(i);
        return Vec<Value>{};
      },
      nonempty);
}

Vec<Value> IrBuilder::while_loop(const Vec<Value>& init,
                                 FunctionRef<Value(const Vec<Value>&)> condition,
                                 FunctionRef<Vec<Value>(const Vec<Value>&)> body) {
  LLVMBasicBlockRef before = llvm_.GetInsertBlock(builder_);
  LLVMBasicBlockRef head = block("while"), round = block("round"), after = block("after");
  llvm_.BuildBr(builder_, head);
  llvm_.PositionBuilderAtEnd(builder_, head);
  Vec<Value> carried;
  for (const Value& x : init) {
    Value p = x;
    p.ref = llvm_.BuildPhi(builder_, type_of(x), "");
    LLVMValueRef incoming = x.ref;
    llvm_.AddIncoming(p.ref, &incoming, &before, 1);
    carried.push_back(p);
  }
  llvm_.BuildCondBr(builder_, condition(carried).ref, round, after);
  llvm_.PositionBuilderAtEnd(builder_, round);
  const Vec<Value> next = body(carried);
  if (next.size() != init.size()) fault("while_loop (number of carried values)", {}, {});
  LLVMBasicBlockRef latch = llvm_.GetInsertBlock(builder_);
  for (std::size_t k = 0; k < next.size(); ++k) {
    expect_same("while_loop (carried value)", init[k], next[k]);
    LLVMValueRef incoming = next[k].ref;
    llvm_.AddIncoming(carried[k].ref, &incoming, &latch, 1);
  }
  llvm_.BuildBr(builder_, head);
  llvm_.PositionBuilderAtEnd(builder_, after);
  return carried;
}

Vec<Value> IrBuilder::if_else(Value condition, FunctionRef<Vec<Value>()> on_true,
                              FunctionRef<Vec<Value>()> on_false) {
  if (condition.dtype != DType::bool_ || condition.simd_lanes != 1) fault("if_else", condition, {});
  LLVMBasicBlockRef yes = block("then"), no = block("else"), join = block("join");
  llvm_.BuildCondBr(builder_, condition.ref, yes, no);
  llvm_.PositionBuilderAtEnd(builder_, yes);
  const Vec<Value> a = on_true();
  LLVMBasicBlockRef yes_end = llvm_.GetInsertBlock(builder_);
  llvm_.BuildBr(builder_, join);
  llvm_.PositionBuilderAtEnd(builder_, no);
  const Vec<Value> b = on_false();
  LLVMBasicBlockRef no_end = llvm_.GetInsertBlock(builder_);
  llvm_.BuildBr(builder_, join);
  llvm_.PositionBuilderAtEnd(builder_, join);
  if (a.size() != b.size()) fault("if_else (number of results)", {}, {});
  Vec<Value> results;
  for (std::size_t k = 0; k < a.size(); ++k) {
    expect_same("if_else (results)", a[k], b[k]);
    Value r = a[k];
    r.ref = llvm_.BuildPhi(builder_, type_of(r), "");
    LLVMValueRef values[] = {a[k].ref, b[k].ref};
    LLVMBasicBlockRef blocks[] = {yes_end, no_end};
    llvm_.AddIncoming(r.ref, values, blocks, 2);
    results.push_back(r);
  }
  return results;
}

void IrBuilder::if_then(Value condition, FunctionRef<void()> on_true) {
  if (condition.dtype != DType::bool_ || condition.simd_lanes != 1) fault("if_then", condition, {});
  LLVMBasicBlockRef yes = block("then"), join = block("join");
  llvm_.BuildCondBr(builder_, condition.ref, yes, join);
  llvm_.PositionBuilderAtEnd(builder_, yes);
  on_true();
  llvm_.BuildBr(builder_, join);
  llvm_.PositionBuilderAtEnd(builder_, join);
}

void IrBuilder::assume(Value condition) {
  LLVMBasicBlockRef holds = block("holds"), never = block("never");
  llvm_.BuildCondBr(builder_, condition.ref, holds, never);
  llvm_.PositionBuilderAtEnd(builder_, never);
  llvm_.BuildUnreachable(builder_);
  llvm_.PositionBuilderAtEnd(builder_, holds);
}

// ---- constants and SIMD lanes -------------------------------------------------------------------

LLVMValueRef IrBuilder::repeat_constant(LLVMValueRef scalar, int simd_lanes) {
  if (simd_lanes == 1) return scalar;
  Vec<LLVMValueRef> all(simd_lanes, scalar);
  return llvm_.ConstVector(all.data(), static_cast<unsigned>(simd_lanes));
}

Value IrBuilder::real(DType d, double x, int simd_lanes) {
  switch (d) {
    case DType::f64: return float_bits(d, std::bit_cast<std::uint64_t>(x), simd_lanes);
    case DType::f32:
      return float_bits(d, std::bit_cast<std::uint32_t>(static_cast<float>(x)), simd_lanes);
    case DType::f16:
    case DType::bf16: {
      const auto f = static_cast<float>(x);
      const float rounded =
          d == DType::f16 ? static_cast<float>(Float16(f)) : static_cast<float>(BFloat16(f));
      Value v = float_bits(DType::f32, std::bit_cast<std::uint32_t>(rounded), simd_lanes);
      v.dtype = d;
      return v;
    }
    default: fault("real constant", {.dtype = d}, {});
  }
}

Value IrBuilder::integer(DType d, std::int64_t x, int simd_lanes) {
  if (is_float(d)) return real(d, static_cast<double>(x), simd_lanes);
  if (d == DType::bool_) x = x != 0;
  return wrap(repeat_constant(llvm_.ConstInt(register_type(d), static_cast<std::uint64_t>(x), 1),
                              simd_lanes),
              d, simd_lanes);
}

// By bits, because LLVMConstReal takes a double and may change a NaN on the way.
Value IrBuilder::float_bits(DType d, std::uint64_t bits, int simd_lanes) {
  LLVMValueRef c = llvm_.ConstBitCast(llvm_.ConstInt(int_type(d == DType::f64 ? 64 : 32), bits, 0),
                                      register_type(d));
  return wrap(repeat_constant(c, simd_lanes), d, simd_lanes);
}

Value IrBuilder::splat(Value scalar, int simd_lanes) {
  if (scalar.simd_lanes != 1 || scalar.pointer) fault("splat", scalar, {});
  if (simd_lanes == 1) return scalar;
  if (is_constant(scalar))
    return wrap(repeat_constant(scalar.ref, simd_lanes), scalar.dtype, simd_lanes);
  LLVMTypeRef type = register_type(scalar.dtype, simd_lanes);
  LLVMValueRef one = llvm_.BuildInsertElement(builder_, llvm_.GetPoison(type), scalar.ref,
                                              llvm_.ConstInt(int_type(32), 0, 0), "");
  return wrap(llvm_.BuildShuffleVector(builder_, one, llvm_.GetPoison(type),
                                       llvm_.ConstNull(int_type(32, simd_lanes)), ""),
              scalar.dtype, simd_lanes);
}

Value IrBuilder::iota(DType d, int simd_lanes) {
  if (simd_lanes == 1) return integer(d, 0);
  Vec<LLVMValueRef> all;
  for (int k = 0; k < simd_lanes; ++k) all.push_back(integer(d, k).ref);
  return wrap(llvm_.ConstVector(all.data(), static_cast<unsigned>(simd_lanes)), d, simd_lanes);
}

Value IrBuilder::extract(Value x, int simd_lane) {
  if (simd_lane < 0 || simd_lane >= x.simd_lanes) fault("extract", x, {});
  if (x.simd_lanes == 1) return x;
  return wrap(llvm_.BuildExtractElement(
                  builder_, x.ref,
                  llvm_.ConstInt(int_type(32), static_cast<std::uint64_t>(simd_lane), 0), ""),
              x.dtype, 1);
}

Value IrBuilder::insert(Value x, int simd_lane, Value scalar) {
  if (simd_lane < 0 || simd_lane >= x.simd_lanes || scalar.dtype != x.dtype ||
      scalar.simd_lanes != 1)
    fault("insert", x, scalar);
  if (x.simd_lanes == 1) return scalar;
  return wrap(llvm_.BuildInsertElement(
                  builder_, x.ref, scalar.ref,
                  llvm_.ConstInt(int_type(32), static_cast<std::uint64_t>(simd_lane), 0), ""),
              x.dtype, x.simd_lanes);
}

Value IrBuilder::shuffle(Value a, Value b, std::span<const int> simd_lanes) {
  expect_same("shuffle", a, b);
  const int count = static_cast<int>(simd_lanes.size());
  if (count == 1)
    return simd_lanes[0] < 0              ? extract(a, 0)
           : simd_lanes[0] < a.simd_lanes ? extract(a, simd_lanes[0])
                                          : extract(b, simd_lanes[0] - a.simd_lanes);
  if (a.simd_lanes == 1) {  // scalars have no shuffle instruction
    Value r = wrap(llvm_.GetPoison(register_type(a.dtype, count)), a.dtype, count);
    for (int k = 0; k < count; ++k)
      if (simd_lanes[k] >= 0) r = insert(r, k, simd_lanes[k] == 0 ? a : b);
    return r;
  }
  Vec<LLVMValueRef> mask;
  for (int k : simd_lanes)
    mask.push_back(k < 0 ? llvm_.GetPoison(int_type(32))
                         : llvm_.ConstInt(int_type(32), static_cast<std::uint64_t>(k), 0));
  return wrap(
      llvm_.BuildShuffleVector(builder_, a.ref, b.ref,
                               llvm_.ConstVector(mask.data(), static_cast<unsigned>(count)), ""),
      a.dtype, count);
}

Value IrBuilder::slice_simd_lanes(Value x, int first, int count) {
  if (first == 0 && count == x.simd_lanes) return x;
  Vec<int> simd_lanes;
  for (int k = 0; k < count; ++k) simd_lanes.push_back(first + k);
  return shuffle(x, x, simd_lanes);
}

Value IrBuilder::concat_simd_lanes(Value a, Value b) {
  if (a.dtype != b.dtype) fault("concat_lanes", a, b);
  const int na = a.simd_lanes, nb = b.simd_lanes, wide = na > nb ? na : nb;
  // Shuffle wants operands of one length: stretch the shorter one with SIMD lanes that nobody
  // reads.
  const auto extend = [&](Value x) {
    if (x.simd_lanes == wide) return x;
    Vec<int> simd_lanes;
    for (int k = 0; k < wide; ++k) simd_lanes.push_back(k < x.simd_lanes ? k : -1);
    return shuffle(x, x, simd_lanes);
  };
  Vec<int> simd_lanes;
  for (int k = 0; k < na; ++k) simd_lanes.push_back(k);
  for (int k = 0; k < nb; ++k) simd_lanes.push_back(wide + k);
  return shuffle(extend(a), extend(b), simd_lanes);
}

Value IrBuilder::reverse_simd_lanes(Value x) {
  Vec<int> simd_lanes;
  for (int k = x.simd_lanes - 1; k >= 0; --k) simd_lanes.push_back(k);
  return shuffle(x, x, simd_lanes);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
