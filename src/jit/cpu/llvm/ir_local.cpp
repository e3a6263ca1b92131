// Private functions that call each other and themselves, and the way out of all of them at once.
#include "ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

namespace ir_locals {

// LLVM's number of the convention under which results lie in registers and calls may be jumps.
constexpr unsigned fast_calls = 8;

}  // namespace ir_locals

IrBuilder::Local IrBuilder::declare_local(const std::string& name, Vec<Value> args,
                                          Vec<Value> results) {
  has_locals_ = true;
  Vec<Param> params;
  for (const Value& a : args)
    params.push_back({.dtype = a.dtype, .pointer = a.pointer, .simd_lanes = a.simd_lanes});
  Vec<LLVMTypeRef> types;
  for (const Value& r : results) types.push_back(type_of(r));
  LLVMTypeRef result = types.size() == 1
                           ? types[0]
                           : llvm_.StructTypeInContext(context_, types.data(),
                                                       static_cast<unsigned>(types.size()), 0);
  Local f;
  f.ref = open_function(name, params, result, false, &f.type);
  llvm_.SetFunctionCallConv(f.ref, ir_locals::fast_calls);
  f.args = std::move(args);
  f.results = std::move(results);
  return f;
}

void IrBuilder::expect_type(const char* operation, const Value& type, const Value& x) const {
  Value like = x;
  like.dtype = type.dtype, like.simd_lanes = type.simd_lanes, like.pointer = type.pointer;
  if (x.pointer) like.dtype = x.dtype;
  expect_same(operation, like, x);
}

Vec<Value> IrBuilder::call_local(const Local& f, const Vec<Value>& args) {
  Vec<LLVMValueRef> refs;
  for (std::size_t i = 0; i < args.size(); ++i) {
    expect_type("call (argument)", f.args[i], args[i]);
    refs.push_back(args[i].ref);
  }
  LLVMValueRef call = llvm_.BuildCall2(builder_, f.type, f.ref, refs.data(),
                                       static_cast<unsigned>(refs.size()), "");
  llvm_.SetInstructionCallConv(call, ir_locals::fast_calls);
  Vec<Value> results = f.results;
  for (std::size_t k = 0; k < results.size(); ++k)
    results[k].ref = results.size() == 1
                         ? call
                         : llvm_.BuildExtractValue(builder_, call, static_cast<unsigned>(k), "");
  return results;
}

void IrBuilder::define_local(const Local& f, FunctionRef<Vec<Value>(const Vec<Value>&)> body) {
  function_ = f.ref;
  llvm_.PositionBuilderAtEnd(builder_, block("entry"));
  Vec<Value> args = f.args;
  for (std::size_t i = 0; i < args.size(); ++i)
    args[i].ref = llvm_.GetParam(f.ref, static_cast<unsigned>(i));
  const Vec<Value> results = body(args);
  Vec<LLVMValueRef> refs;
  for (std::size_t k = 0; k < results.size(); ++k) {
    expect_type("result of a call", f.results[k], results[k]);
    refs.push_back(results[k].ref);
  }
  if (refs.size() == 1) llvm_.BuildRet(builder_, refs[0]);
  else llvm_.BuildAggregateRet(builder_, refs.data(), static_cast<unsigned>(refs.size()));
  function_ = nullptr;
}

void IrBuilder::leave_if(Value condition, const char* symbol, const Vec<Value>& args) {
  LLVMBasicBlockRef leave = block("leave"), stay = block("stay");
  llvm_.BuildCondBr(builder_, condition.ref, leave, stay);
  llvm_.PositionBuilderAtEnd(builder_, leave);
  call_runtime(symbol, args);
  llvm_.BuildUnreachable(builder_);
  llvm_.PositionBuilderAtEnd(builder_, stay);
}

Value IrBuilder::stack_beyond(Value lowest) {
  LLVMValueRef here = intrinsic("llvm.stacksave", {pointer_type_}, {});
  return wrap(llvm_.BuildICmp(builder_, LLVMIntULT, here, lowest.ref, ""), DType::bool_, 1);
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
