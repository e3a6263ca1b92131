// Owns the typed builder that kernels are written with: vt's dtypes and semantics on top of LLVM
// instructions.
//
// Semantics, the same on every backend:
//  - integers wrap; x / 0 = 0 and x % 0 = 0; the least integer / -1 wraps to itself, remainder 0;
//    `rem` has the sign of the dividend (C); shifting by the width or more gives 0, or the sign for
//    an arithmetic right shift;
//  - float → integer truncates, NaN → 0, out of range → the nearest limit; anything → bool is `x !=
//    0`; all other conversions round once, to nearest even;
//  - max and min give NaN when either operand is NaN, the first of two equal numbers; float
//    arithmetic is strict IEEE, nothing is contracted or reordered;
//  - f16 and bf16 are storage: a Value of these dtypes is an f32 register that holds a
//    representable number, and every arithmetic result is rounded back (to nearest even) when it is
//    made;
//  - bool is one byte in memory, 0 or 1, and one bit in a register; bool + * max min are or, and,
//    or, and.
//
// A Value of one SIMD lane is an LLVM scalar, of more an LLVM vector of any length (LLVM splits it
// into registers).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include <vt/detail/small_vec.hpp>
#include <vt/dtype.hpp>

#include <vt/detail/function.hpp>
#include <vt/error.hpp>
#include "../../../trace/ir/op.hpp"
#include "../../services/background.hpp"
#include "../../services/disk_cache.hpp"
#include "line_table.hpp"
#include "llvm_library.hpp"
#include "target.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

/// A typed register. Pointers carry the number of the buffer they point into, from which alias
/// scopes are made.
struct Value {
  LLVMValueRef ref = nullptr;
  DType dtype = DType::i64;  ///< of a pointer: meaningless, loads and stores name their dtype
  int simd_lanes = 1;
  int buffer = -1;  ///< of a pointer: buffer number from `declare_buffers`, -1 = may alias anything
  bool pointer = false;
  /// Of f16: the 16 bits that the register `half_of` was made of, so that they need not be made
  /// again if it is stored. Copies of a Value whose `ref` became another have none.
  LLVMValueRef half = nullptr, half_of = nullptr;

  explicit operator bool() const { return ref != nullptr; }
};

enum class Compare { eq, ne, lt, le, gt, ge };
/// A parameter of a generated function.
struct Param {
  DType dtype = DType::i64;
  bool pointer = false;
  int simd_lanes = 1;
  /// pointer: no other pointer reaches the same bytes while the function runs
  bool noalias = false;
  bool readonly = false;  ///< pointer: nothing is written through it
  int align = 0;          ///< pointer: known alignment in bytes, 0 = none

  static Param ptr() { return {.pointer = true}; }
  static Param of(DType d, int simd_lanes = 1) { return {.dtype = d, .simd_lanes = simd_lanes}; }
};

/// One module under construction: functions, blocks and instructions. Not shared between threads.
/// Throws vt::Error(backend) without LLVM and on an internal fault (mismatched operands), which
/// names the operation.
class IrBuilder {
 public:
  explicit IrBuilder(const Target& target = host_target(), const char* module_name = "vt");
  ~IrBuilder();
  IrBuilder(const IrBuilder&) = delete;
  IrBuilder& operator=(const IrBuilder&) = delete;

  const Target& target() const { return target_; }
  const LlvmTarget& llvm_names() const { return names_; }
  LLVMModuleRef module() const { return module_; }
  LLVMContextRef context() const { return context_; }
  LLVMBuilderRef raw() const { return builder_; }  ///< for what the builder does not wrap
  const Llvm& lib() const { return llvm_; }
  std::string text() const;  ///< the module as LLVM assembly, for dumps
  std::string bitcode() const;
  std::string verify() const;  ///< empty, or what LLVM finds wrong with the module

  // ---- functions --------------------------------------------------------------------------------
  /// Opens an exported `void name(params…)` and puts the insertion point at its start. Close it
  /// with `end_function`.
  void begin_function(const std::string& name, const Vec<Param>& params);
  Value arg(int i) const { return args_[i]; }
  void end_function();  ///< emits `return`
  /// From here on to the function's end number(x) is an element of `array`, of i64, the first one
  /// at `first`.
  void take_numbers(Value array, std::int64_t first);
  /// x as an index: where numbers are taken, one that is read when the code runs, so that it is the
  /// same code for another number. Equal numbers of one `role` are one.
  Value number(std::int64_t x, int role = 0);
  /// What has to lie there, in this order.
  const Vec<std::int64_t>& numbers() const { return numbers_; }
  /// What follows belongs to that line of the user's; for debuggers, if there is one to see it.
  void at(CallSite where) {
    if (lines_) lines_->at(where);
  }
  /// The module's loops read and write single elements at places that they count or compute. Then
  /// it pays that LLVM finds out what the counters' bounds are, which spares places being moved
  /// inside, and keeps what one iteration stores and the next one loads in a register.
  void set_counting_loops() { counting_loops_ = true; }
  bool counting_loops() const { return counting_loops_; }
  /// Ends the current block, and goes on in another one. Instruction selection without passes does
  /// not look beyond a block.
  void begin_block();
  /// Calls a private function of this module, made by `body(args)` on first use of `name`. Keeps
  /// rare or long code (slow paths) out of line. The name must determine the body: put dtype and
  /// SIMD lanes in it.
  Value call_helper(const std::string& name, DType result, int simd_lanes, const Vec<Value>& args,
                    FunctionRef<Value(const Vec<Value>&)> body);
  /// Calls a C function of the process by absolute symbol; it must be in the list of compile.cpp.
  /// Scalars only.
  /// The same, returning nothing.
  void call_runtime(const char* symbol, const Vec<Value>& args);

  // ---- functions that call themselves (ir_local.cpp) --------------------------------------------
  /// A private function of this module, which may be called before it is defined. It takes and
  /// returns values of the types of these.
  struct Local {
    LLVMValueRef ref = nullptr;
    LLVMTypeRef type = nullptr;
    Vec<Value> args, results;
  };
  Local declare_local(const std::string& name, Vec<Value> args, Vec<Value> results);
  bool has_locals() const { return has_locals_; }
  /// How often select() was called for single values.
  int choices() const { return choices_; }
  /// Loads and stores, so far.
  int accesses() const { return accesses_; }
  Vec<Value> call_local(const Local&, const Vec<Value>& args);
  /// Between functions: `body` gets the arguments and gives the results.
  void define_local(const Local&, FunctionRef<Vec<Value>(const Vec<Value>&)> body);
  /// If `condition`, calls a C function as call_runtime does, which does not return.
  void leave_if(Value condition, const char* symbol, const Vec<Value>& args);
  /// Has the stack grown beyond an address?
  Value stack_beyond(Value lowest);

  // ---- control flow -----------------------------------------------------------------------------
  using LoopBody = FunctionRef<Vec<Value>(Value i, const Vec<Value>& carried)>;
  /// for (i = lo; i < hi; i += step): `body` gets i (i64) and the carried values and returns the
  /// next ones. `nonempty`: lo < hi is known, no test before the first
  /// iteration.
  Vec<Value> loop(Value lo, Value hi, std::int64_t step, const Vec<Value>& init,
                  const LoopBody& body, bool nonempty = false);
  /// The same with nothing carried.
  void for_range(Value lo, Value hi, std::int64_t step, FunctionRef<void(Value i)> body,
                 bool nonempty = false);
  /// while (condition(carried)) carried = body(carried); the condition is a bool scalar.
  Vec<Value> while_loop(const Vec<Value>& init, FunctionRef<Value(const Vec<Value>&)> condition,
                        FunctionRef<Vec<Value>(const Vec<Value>&)> body);
  /// Branches on a bool scalar; both sides return values of the same types, which are merged.
  Vec<Value> if_else(Value condition, FunctionRef<Vec<Value>()> on_true,
                     FunctionRef<Vec<Value>()> on_false);
  void if_then(Value condition, FunctionRef<void()> on_true);
  /// What follows only runs where the condition holds, which LLVM may make use of.
  void assume(Value condition);

  // ---- constants and SIMD lanes -----------------------------------------------------------------
  Value real(DType d, double x, int simd_lanes = 1);           ///< any float dtype; rounded to it
  Value integer(DType d, std::int64_t x, int simd_lanes = 1);  ///< any dtype; u64 by its bits
  /// f32 or f64 from its bit pattern
  Value float_bits(DType d, std::uint64_t bits, int simd_lanes = 1);
  Value boolean(bool x, int simd_lanes = 1) { return integer(DType::bool_, x, simd_lanes); }
  Value index(std::int64_t x) { return integer(DType::i64, x); }
  Value zero_like(Value x) { return integer(x.dtype, 0, x.simd_lanes); }
  Value splat(Value scalar, int simd_lanes);
  Value iota(DType d, int simd_lanes);  ///< 0, 1, 2 …
  bool is_constant(Value x) const { return llvm_.IsConstant(x.ref) != 0; }
  /// Is it the constant 0, or false, and not -0?
  bool is_zero(Value x) const { return is_constant(x) && llvm_.IsNull(x.ref) != 0; }
  /// Is it this number in each SIMD lane? 0 and −0 differ.
  bool is_number(Value x, double number) {
    return is_constant(x) && is_float(x.dtype) && x.ref == real(x.dtype, number, x.simd_lanes).ref;
  }
  Value extract(Value x, int simd_lane);
  Value insert(Value x, int simd_lane, Value scalar);
  Value slice_simd_lanes(Value x, int first, int count);
  Value concat_simd_lanes(Value a, Value b);  ///< SIMD lane counts add
  /// of a then b; -1 = don't care
  Value shuffle(Value a, Value b, std::span<const int> simd_lanes);
  Value reverse_simd_lanes(Value x);

  // ---- memory (ir_memory.cpp) -------------------------------------------------------------------
  /// Says that pointers tagged `with_buffer(p, k)`, 0 ≤ k < count, of different k never overlap.
  /// Once per function.
  void declare_buffers(int count);
  Value with_buffer(Value pointer, int buffer) const;
  /// pointer + i elements of d; i is an i64 scalar.
  Value offset(Value pointer, DType d, Value i);
  Value offset_bytes(Value pointer, Value bytes);
  /// array[i] of a pointer table that never changes
  Value load_pointer(Value array, std::int64_t i, int buffer = -1);
  /// contiguous, unaligned unless align (bytes) is given
  Value load(Value pointer, DType d, int simd_lanes = 1, int align = 0);
  void store(Value pointer, Value x, int align = 0);
  /// Past the caches, for results that are larger than they are; `align`: that of the pointer, a
  /// power of two ≤ 64. Before others may see them, call order_streaming_stores().
  void store_streaming(Value pointer, Value x, int align);
  void order_streaming_stores();
  /// Asks for the cache line there; any address will do.
  /// A hint that the cache line of any address will be used soon. `near`: into the first-level
  /// cache, else the second.
  struct Fetch {
    bool write = false;
    bool near = true;  ///< into the first cache; else into the second
  };
  void fetch_ahead(Value pointer, Fetch);
  /// Lanes whose mask bit is off are not touched; they read as 0.
  Value load_masked(Value pointer, DType d, Value mask);
  void store_masked(Value pointer, Value x, Value mask);
  /// Elements pointer[k · stride]; mask optional.
  Value load_strided(Value pointer, DType d, int simd_lanes, std::int64_t stride, Value mask = {});
  Value load_strided(Value pointer, DType d, int simd_lanes, Value stride, Value mask = {});
  void store_strided(Value pointer, Value x, std::int64_t stride, Value mask = {});
  void store_strided(Value pointer, Value x, Value stride, Value mask = {});
  /// Element k of xs[j] to pointer[k · (number of xs) + j]; they have one dtype and the same SIMD
  /// lanes; mask of SIMD lanes optional.
  void store_interleaved(Value pointer, const Vec<Value>& xs, Value mask = {});
  /// Elements pointer[indices[k]]; indices i32 or i64 SIMD lanes; mask optional.
  Value gather(Value pointer, DType d, Value indices, Value mask = {});
  /// later SIMD lanes win on equal indices
  void scatter(Value pointer, Value x, Value indices, Value mask = {});
  /// <SIMD lanes x bool> of SIMD lanes k < count (i64 scalar, may be ≤ 0 or > SIMD lanes).
  Value tail_mask(int simd_lanes, Value count);
  /// Uninitialised array in the function's frame, 64-byte aligned, freed on return.
  Value stack_array(DType d, std::int64_t count);
  /// Read-only array in the module, of the elements' bits; one per `name`.
  Value constant_array(const std::string& name, DType d, std::span<const std::uint64_t> bits);
  void copy_bytes(Value to, Value from, Value bytes);

  // ---- arithmetic (ir_arith.cpp); operands of equal dtype and SIMD lanes ------------------------
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value rem(Value a, Value b);  ///< integers only; floats: math::fmod
  Value max(Value a, Value b);
  Value min(Value a, Value b);
  /// a·b + c, rounded once (a library call where the CPU lacks it)
  Value fma(Value a, Value b, Value c);
  /// a·b + c: fused where that is fast, else two roundings
  Value mul_add(Value a, Value b, Value c);
  /// sums + the products of the groups of elements that lie in a's and b's 32-bit SIMD lanes: of
  /// i32 sums four bytes, a's unsigned and b's signed; of f32 sums two bf16, whose subnormal
  /// numbers count as zeros. Where the target has that (dot_i8, dot_bf16).
  Value dot_groups(Value sums, Value a, Value b);
  Value neg(Value a);
  Value abs(Value a);
  Value sign(Value a);  ///< -1, 0, 1; float: ±0 and NaN give themselves
  Value sqrt(Value a);
  Value floor(Value a);
  Value ceil(Value a);
  Value trunc(Value a);
  Value round_even(Value a);
  Value copysign(Value magnitude, Value sign);
  Value bit_and(Value a, Value b);
  Value bit_or(Value a, Value b);
  Value bit_xor(Value a, Value b);
  Value bit_not(Value a);
  Value shift_left(Value a, Value amount);  ///< amounts are read as unsigned
  Value shift_right_logical(Value a, Value amount);
  Value shift_right_arithmetic(Value a, Value amount);
  Value shift_left(Value a, int amount) {
    return shift_left(a, integer(a.dtype, amount, a.simd_lanes));
  }
  Value shift_right_logical(Value a, int amount) {
    return shift_right_logical(a, integer(a.dtype, amount, a.simd_lanes));
  }
  Value shift_right_arithmetic(Value a, int amount) {
    return shift_right_arithmetic(a, integer(a.dtype, amount, a.simd_lanes));
  }
  Value popcount(Value a);
  Value clz(Value a);
  /// → bool SIMD lanes; NaN compares false except ne
  Value compare(Compare op, Value a, Value b);
  /// mask: bool, of as many SIMD lanes or 1
  Value select(Value mask, Value on_true, Value on_false);
  Value is_nan(Value a);
  Value is_inf(Value a);
  Value is_finite(Value a);
  Value any(Value mask);  ///< → bool scalar
  Value all(Value mask);
  Value mask_bits(Value mask);  ///< → i64 whose bit l is SIMD lane l, of at most 64

  /// Value-preserving conversion between any two dtypes, as the head of this file says.
  Value convert(Value a, DType to);
  /// Same bits, other dtype of equal size (bool: u8/i8 of value 0 or 1). f16/bf16 go through their
  /// 16 bits.
  Value bitcast(Value a, DType to);

  // ---- reductions (ir_arith.cpp) ----------------------------------------------------------------
  /// Folds all SIMD lanes to a scalar in one fixed tree: upper half onto lower half, repeatedly.
  /// Not a
  /// power of two: the SIMD lanes above the largest power of two are folded onto the first ones
  /// before.
  Value reduce_simd_lanes(Op op, Value x);
  Value combine(Op op, Value a, Value b);
  /// The neutral element: 0, 1, -inf or the least integer, …
  Value identity(Op op, DType d, int simd_lanes = 1);

  // ---- types ------------------------------------------------------------------------------------
  LLVMTypeRef register_type(DType d, int simd_lanes = 1);  ///< bool i1; f16, bf16 float
  LLVMTypeRef memory_type(DType d, int simd_lanes = 1);    ///< bool i8; f16, bf16 i16
  LLVMTypeRef int_type(int bits, int simd_lanes = 1);

  /// Calls the intrinsic `name` overloaded on `overloads`. For what the builder does not wrap.
  LLVMValueRef intrinsic(const char* name, std::initializer_list<LLVMTypeRef> overloads,
                         std::initializer_list<LLVMValueRef> args);
  /// Wraps a raw value.
  static Value wrap(LLVMValueRef ref, DType d, int simd_lanes) {
    return {.ref = ref, .dtype = d, .simd_lanes = simd_lanes};
  }

 private:
  [[noreturn]] void fault(const char* operation, Value a, Value b) const;
  void expect_same(const char* operation, Value a, Value b) const;
  void expect_type(const char* operation, const Value& type, const Value& x) const;
  LLVMValueRef open_function(const std::string& name, const Vec<Param>& params, LLVMTypeRef result,
                             bool exported, LLVMTypeRef* type);
  LLVMBasicBlockRef block(const char* name);
  LLVMTypeRef type_of(const Value& x);
  LLVMTypeRef vector_of(LLVMTypeRef element, int simd_lanes) {
    return simd_lanes == 1 ? element : llvm_.VectorType(element, static_cast<unsigned>(simd_lanes));
  }
  LLVMValueRef repeat_constant(LLVMValueRef scalar, int simd_lanes);
  LLVMValueRef mark_access(LLVMValueRef instruction, int buffer);
  void mark_unchanging(LLVMValueRef load);
  Value from_memory(LLVMValueRef raw, DType d, int simd_lanes);
  LLVMValueRef to_memory(Value x);
  // rounds to f16/bf16 where d is one, else only names the dtype
  Value finish(Value f32_result, DType d);
  Value half_bits(Value x);  // f16/bf16 register → its 16 bits as u16
  Value from_half_bits(Value bits, DType d);
  Value float_to_int(Value a, DType to);
  Value round_to_odd(Value a);
  Value double_to_odd(Value a);
  Value divide_ints(Value a, Value b, bool remainder);
  Value float_unary(const char* name, Value a);
  Value shift_guarded(Value a, Value amount, LLVMValueRef shifted, Value beyond);
  LLVMMetadataRef string_metadata(const std::string& s);

  CompilerUse use_;
  const Llvm& llvm_;
  Target target_;
  LlvmTarget names_;
  LLVMContextRef context_ = nullptr;
  LLVMModuleRef module_ = nullptr;
  LLVMBuilderRef builder_ = nullptr;
  LLVMTypeRef pointer_type_ = nullptr;
  LLVMValueRef function_ = nullptr;
  Vec<Value> args_;
  Vec<LLVMValueRef> alias_scopes_;    // per buffer: list with its own scope
  Vec<LLVMValueRef> noalias_scopes_;  // per buffer: list with every other scope
  int alias_domains_ = 0;
  Value numbers_array_;  // none: numbers are parts of the code
  std::int64_t first_number_ = 0;
  Vec<std::int64_t> numbers_;
  Vec<int> number_roles_;
  Vec<Value> number_values_;
  bool counting_loops_ = false, has_locals_ = false;
  int choices_ = 0, accesses_ = 0;
  std::unique_ptr<LineTable> lines_;  // of the function that is open; none if nobody wants them
  std::string diagnostics_;           // what LLVM reported through the context
};

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
