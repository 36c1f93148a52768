// A pretend CUDA machine for the CPU build of PyTorch: what tests/pretend_gpu/accelerator.py says of it.
//
// Block, Memory   the allocators: of the device, which counts bytes and runs out at `capacity`, and of pinned memory
// Guard, CUDAHooks  what torch asks of a device type: which device is current, how many there are, streams and events
// host, copy_     the same memory as a tensor of the CPU; copies, which may arrive late or read their source late
// fallback        every operator: checks what a GPU checks, then computes on the CPU
// The functions at the end are what Python calls.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorShape.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <set>
using namespace at;
using Index = DeviceIndex; using Sizes = c10::SymIntArrayRef; using std::optional;
namespace {
constexpr auto GPU = c10::DeviceType::CUDA; constexpr int MOST = 8;
thread_local Index current = 0; thread_local bool inside = false;  // a fallback, whose own copies do not count
std::atomic<int64_t> used[MOST], peak[MOST], capacity{int64_t(1) << 40}, waits{0};
std::atomic<int> turns[MOST]; std::atomic<bool> watched{false}; std::set<std::string> outside;  // operators while nobody has the turn
std::atomic<bool> mps{false}, late{false}; std::string poison; std::mutex lock;
std::set<const void*> pinned; std::vector<std::pair<Tensor, Tensor>> pending;  // copies to the CPU that have not arrived: to, from
struct Unread { Tensor to; const void* from; c10::weak_intrusive_ptr<c10::StorageImpl> source; }; std::vector<Unread> unread;  // as on mps
bool has(const std::set<std::string>& names, const std::string& name) { return names.count(name) > 0; }
void read_sources() {
  decltype(unread) all; { std::lock_guard hold(lock); all.swap(unread); }
  for (auto& [to, from, source] : all) {
    TORCH_CHECK(!source.expired(), "The source of a non-blocking copy was released before the device read it (pretend mps)");
    memcpy(to.mutable_data_ptr(), from, to.nbytes());
  }
}
void arrive() { decltype(pending) all; { std::lock_guard hold(lock); all.swap(pending); } for (auto& [to, from] : all) to.copy_(from); }

struct Block { void* at; int64_t bytes; Index device; };
void* room(size_t bytes) { return bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr; }
void drop(void* raw) { auto* b = static_cast<Block*>(raw); used[b->device] -= b->bytes; free(b->at); delete b; }
void unpin(void* at) { std::lock_guard hold(lock); pinned.erase(at); free(at); }
struct Memory final : Allocator {
  bool is_pinned; explicit Memory(bool is_pinned) : is_pinned(is_pinned) {}
  DataPtr allocate(size_t bytes) override {
    if (is_pinned) { void* at = room(bytes); std::lock_guard hold(lock); pinned.insert(at); return {at, at, &unpin, Device(kCPU)}; }
    TORCH_CHECK_WITH(OutOfMemoryError, used[current] + int64_t(bytes) <= capacity, "CUDA out of memory. Tried to allocate ", bytes / 1048576.,
                     " MiB. GPU ", int(current), " has ", (capacity - used[current]) / 1048576., " MiB free. (pretend device)");
    auto* block = new Block{room(bytes), int64_t(bytes), current};
    const int64_t now = used[current] += int64_t(bytes); int64_t most = peak[current];
    while (most < now && !peak[current].compare_exchange_weak(most, now)) {}
    return {block->at, block, &drop, Device(GPU, current)};
  }
  DeleterFnPtr raw_deleter() const override { return is_pinned ? &unpin : nullptr; }
  void copy_data(void* to, const void* from, size_t count) const override { memcpy(to, from, count); }
} memory{false}, pinned_memory{true};
Index index_of(Device device) { return device.has_index() ? device.index() : current; }
struct On { Index before = current; explicit On(Device device) { current = index_of(device); } ~On() { current = before; } };

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return GPU; }
  Device getDevice() const override { return {GPU, current}; }
  void setDevice(Device device) const override { current = index_of(device); }
  void uncheckedSetDevice(Device device) const noexcept override { current = index_of(device); }
  Device exchangeDevice(Device device) const override { auto before = getDevice(); setDevice(device); return before; }
  Stream getStream(Device device) const override { return Stream(Stream::DEFAULT, Device(GPU, index_of(device))); }
  Stream getDefaultStream(Device device) const override { return getStream(device); }
  Stream getStreamFromGlobalPool(Device device, bool) const override { return getStream(device); }
  Stream getNewStream(Device device, int) const override { return getStream(device); }
  Stream exchangeStream(Stream stream) const override { return getStream(stream.device()); }
  void destroyEvent(void*, const Index) const noexcept override {}
  void record(void** event, const Stream&, const Index, const c10::EventFlag) const override { *event = &memory; }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override { arrive(); }
  void synchronizeEvent(void*) const override { arrive(); }
  void synchronizeDevice(const Index) const override { arrive(); }
  void recordDataPtrOnStream(const DataPtr&, const Stream&) const override {}
  Index deviceCount() const noexcept override { return MOST; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard)
}
namespace at {
struct CUDAHooks final : CUDAHooksInterface {  // torch looks for this name
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  const Generator& getDefaultGenerator(Index) const override { return detail::getDefaultCPUGenerator(); }
  Generator getNewGenerator(Index) const override { return detail::createCPUGenerator(); }
  Device getDeviceFromPtr(void*) const override { return {GPU, current}; }
  bool isPinnedPtr(const void* at) const override { std::lock_guard hold(lock); return pinned.count(at) > 0; }
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(Index) const override { return true; }
  Index current_device() const override { return current; }
  Index deviceCount() const override { return MOST; }
  int getNumGPUs() const override { return MOST; }
  Index getCurrentDevice() const override { return current; }
  void setCurrentDevice(Index device) const override { current = device; }
  Index exchangeDevice(Index device) const override { auto before = current; current = device; return before; }
  Index maybeExchangeDevice(Index device) const override { return exchangeDevice(device); }
  Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  Allocator* getCUDADeviceAllocator() const override { return &memory; }
  void deviceSynchronize(Index) const override { arrive(); }
};
REGISTER_CUDA_HOOKS(CUDAHooks)
}
// The CPU build knows when it is compiled that there is no accelerator. This definition is found first if it is loaded before torch.
namespace at::accelerator { __attribute__((visibility("default"))) optional<c10::DeviceType> getAccelerator(bool) { return GPU; } }
namespace {
Tensor host(const Tensor& t) {  // the same memory as a tensor of the CPU
  return t.is_cuda() ? from_blob(t.numel() ? const_cast<void*>(t.const_data_ptr()) : nullptr, t.sizes(), t.strides(), t.options().device(kCPU)) : t;
}
void check_type(ScalarType type) { TORCH_CHECK_TYPE(!mps || inside || type != kDouble, "mps doesn't support float64 (pretend device)"); }
Tensor empty(Sizes size, optional<ScalarType> type, optional<Layout>, optional<Device> device, optional<bool>, optional<MemoryFormat> format) {
  On on(device.value_or(Device(GPU))); check_type(c10::dtype_or_default(type));
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &memory, c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::dtype_or_default(type), format);
}
Tensor empty_strided(Sizes size, Sizes stride, optional<ScalarType> type, optional<Layout>, optional<Device> device, optional<bool>) {
  On on(device.value_or(Device(GPU))); check_type(c10::dtype_or_default(type));
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::dtype_or_default(type));
}
Tensor& copy_(Tensor& to, const Tensor& from, bool non_blocking) {
  const bool out = from.is_cuda() && !to.is_cuda(), in = !from.is_cuda() && to.is_cuda();
  if (out && non_blocking && late && !inside) { auto now = host(from).clone(); std::lock_guard hold(lock); pending.emplace_back(to, now); return to; }
  if (in && non_blocking && mps && !inside && from.scalar_type() == to.scalar_type() && from.is_contiguous() && to.is_contiguous() && from.numel() == to.numel()) {
    std::lock_guard hold(lock); unread.push_back({to, from.const_data_ptr(), from.storage().getWeakStorageImpl()}); return to;
  }
  if (!inside) read_sources();
  if (!inside && ((out && !non_blocking) || (in && !(non_blocking && from.is_pinned())))) { waits++; arrive(); }
  host(to).copy_(host(from)); return to;
}
Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) { Tensor target = to; return copy_(target, from, non_blocking); }
const Tensor& resize(const Tensor& self, Sizes size, optional<MemoryFormat> format) { On on(self.device()); return native::resize_(self, C10_AS_INTARRAYREF_SLOW(size), format); }
Tensor copy_and_resize(const Tensor& from, const Tensor& to) {
  if (to.sizes() != from.sizes()) { On on(to.device()); native::resize_(to, from.sizes(), std::nullopt); }
  host(to).copy_(host(from)); return to;
}
Tensor as_strided(const Tensor& self, Sizes size, Sizes stride, optional<c10::SymInt> offset) {
  return native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), offset ? optional<int64_t>(offset->expect_int()) : std::nullopt);
}
Tensor view(const Tensor& self, Sizes size) { return native::view(self, C10_AS_INTARRAYREF_SLOW(size)); }
Tensor reshape_alias(const Tensor& self, Sizes size, Sizes stride) { return native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride)); }
Tensor unfold(const Tensor& self, int64_t dim, int64_t size, int64_t step) { return native::unfold(self, dim, size, step); }
Tensor& set_part(Tensor& self, Storage from, c10::SymInt offset, Sizes size, Sizes stride) {
  return native::set_storage_cpu_(self, from, offset.expect_int(), C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}
Tensor& set_storage(Tensor& self, Storage from) { return native::set_(self, from); }
bool is_pinned(const Tensor& self, optional<Device>) { return self.is_cpu() && at::detail::getCUDAHooks().isPinnedPtr(self.storage().data()); }
void record_stream(Tensor&, Stream) {}
int64_t plain_attention(const Tensor&, const Tensor&, const Tensor&, const optional<Tensor>&, double, bool, optional<double>, bool) { return 0; }

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static const std::set<std::string> indexed{"aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index"},
      looks_up{"aten::embedding", "aten::index", "aten::index_select", "aten::gather", "aten::scatter_", "aten::scatter", "aten::_index_put_impl_",
               "aten::index_put_", "aten::index_add_", "aten::nll_loss_forward", "aten::embedding_dense_backward"},
      products{"aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::dot"},
      waiting{"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::_unique2"};
  const auto& name = op.schema().name(); const bool is_index = has(indexed, name);
  TORCH_CHECK(poison.empty(), "CUDA error: device-side assert triggered (pretend device, since ", poison, ")");
  optional<Device> found; bool waits_here = has(waiting, name); size_t number = 0;
  auto look = [&](const Tensor& t, bool as_index) {
    if (!t.defined()) return;
    waits_here |= as_index && (t.scalar_type() == kBool || !t.is_cuda());  // the number of hits, or a copy of the index
    if (t.is_cpu() && (t.dim() == 0 || as_index)) return;
    TORCH_CHECK(!found || *found == t.device(), "Expected all tensors to be on the same device, but found at least two devices, ", *found, " and ", t.device(), "! (", name, ", pretend device)");
    TORCH_CHECK(!has(products, name) || !isIntegralType(t.scalar_type(), true), name, " is not implemented on CUDA for ", t.scalar_type());
    found = t.device();
  };
  for (const auto& value : torch::jit::last(*stack, op.schema().arguments().size())) {
    const bool as_index = is_index && number++ == 1;
    if (value.isTensor()) look(value.toTensor(), as_index);
    else if (value.isTensorList()) for (const Tensor& each : value.toTensorVector()) look(each, as_index);
    else if (value.isOptionalTensorList()) for (const optional<Tensor>& each : value.toOptionalTensorVector()) if (each) look(*each, as_index);
  }
  if (!inside) read_sources();
  if (watched && !inside && found && !turns[index_of(*found)]) { std::lock_guard hold(lock); outside.insert(name); }
  if (waits_here && !inside) { waits++; arrive(); }
  struct Inside { bool before = inside; Inside() { inside = true; } ~Inside() { inside = before; } } now;
  try { native::cpu_fallback(op, stack); }
  catch (const std::exception& problem) {
    const std::string what = problem.what();
    if (!has(looks_up, name) || (what.find("out of range") == what.npos && what.find("out of bounds") == what.npos)) throw;
    poison = name; TORCH_CHECK(false, "CUDA error: device-side assert triggered (pretend device, ", name, ")");
  }
}
struct Setup { Setup() { c10::SetAllocator(GPU, &memory); native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(&plain_attention); } } setup;
TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", &empty); m.impl("empty_strided", &empty_strided); m.impl("copy_", &copy_); m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_and_resize); m.impl("resize_", &resize); m.impl("as_strided", &as_strided); m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias); m.impl("unfold", &unfold); m.impl("set_.source_Storage_storage_offset", &set_part);
  m.impl("set_.source_Storage", &set_storage); m.impl("is_pinned", &is_pinned); m.impl("record_stream", &record_stream);
}
}
extern "C" {
int64_t pretend_used(int device) { return used[device]; }
int64_t pretend_peak(int device) { return peak[device]; }
void pretend_reset_peak(int device) { peak[device] = int64_t(used[device]); }
void pretend_turn(int device, int begins) { turns[device] += begins ? 1 : -1; }
void pretend_watch(int on) { std::lock_guard hold(lock); watched = on; outside.clear(); }
const char* pretend_outside() { static std::string all; std::lock_guard hold(lock); all.clear(); for (const auto& each : outside) all += each + " "; return all.c_str(); }
int64_t pretend_capacity() { return capacity; }
void pretend_set_capacity(int64_t bytes) { capacity = bytes; }
int64_t pretend_waits() { return waits; }
int pretend_current() { return current; }
int pretend_exchange(int device) { int before = current; if (device >= 0) current = Index(device); return before; }
void pretend_options(int is_mps, int is_late) { mps = is_mps; late = is_late; }
int pretend_is_poisoned() { return !poison.empty(); }
void pretend_heal() { poison.clear(); }
}
