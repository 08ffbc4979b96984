// overflow.cpp - the SIGSEGV handler and the alternate signal stacks it runs on.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/overflow.hpp>

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>

#include <weft/base/thread_block.hpp>

#include "base/report.hpp"
#include "stack/region.hpp"

namespace weft::inline v0 {

namespace {

constexpr std::size_t reach = 1024 * 1024;  // how far below its stack a runaway frame may touch

// Guarded by the mutex; the handler reads `previous`, which is set before it is installed.
std::mutex mutex;
bool installed = false;
bool refused = false;
struct sigaction previous;

// Off after disable_overflow_report(), also where somebody's handler stands in front of ours and
// ours therefore cannot be taken out of the chain. Read by the handler.
std::atomic<bool> reporting = true;

const std::byte* stack_pointer_of(void* machine_context) noexcept {
    const auto* context = static_cast<const ucontext_t*>(machine_context);
#if defined(__x86_64__)
    return reinterpret_cast<const std::byte*>(context->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
    return reinterpret_cast<const std::byte*>(context->uc_mcontext.sp);
#else
    static_cast<void>(context);
    return nullptr;
#endif
}

bool is_just_below(const std::byte* address, const std::byte* low) noexcept {
    return low != nullptr && address < low && static_cast<std::size_t>(low - address) <= reach;
}

void describe(const char* kind, const char* name, const stack& where, const std::byte* address,
              const std::byte* stack_pointer) noexcept {
    const std::byte* deepest =
        is_just_below(stack_pointer, where.low) ? std::min(address, stack_pointer) : address;
    detail::report line;
    line.text("weft: stack overflow in ").text(kind);
    if (*name != '\0') line.text(" '").text(name).text("'");
    line.text(": address ").hex(address).text(" is below its stack ").hex(where.low).text("-");
    line.hex(where.high()).text(" (").decimal(where.size).text(" bytes), ");
    line.decimal(static_cast<std::uint64_t>(where.high() - deepest)).text(" bytes deep\n").write();
}

// What runs on this thread may itself have gone on to a context of somebody's, whose guard is then
// the nearer one; but not if the stack pointer is still on the stack of what runs.
void report_if_overflow(const siginfo_t& info, void* machine_context) noexcept {
    const auto* address = static_cast<const std::byte*>(info.si_addr);
    const std::byte* stack_pointer = stack_pointer_of(machine_context);
    const stack guarded = detail::stack_guarded_at(address);
    stack own;
    const detail::activity* running = detail::innermost_activity(detail::this_thread_block());
    if (running != nullptr) own = {running->stack_low, running->stack_size()};
    const bool is_on_own = stack_pointer >= own.low && stack_pointer < own.high();
    if (is_just_below(address, own.low) && (!guarded || guarded.low == own.low || is_on_own))
        describe(detail::text_of(running->role()), running->name, own, address, stack_pointer);
    else if (guarded)
        describe("a context", "", guarded, address, stack_pointer);
}

// Afterwards the fault goes to whoever was there before us. If that is the default action,
// returning with it in place faults again, and the core dump shows the stack that overflowed. A
// signal that somebody sent has no fault to repeat, and is sent again.
void on_fault(int signal, siginfo_t* info, void* machine_context) {
    const int saved_errno = errno;
    const bool is_fault = info->si_code > 0;
    if (is_fault && reporting.load(std::memory_order_relaxed))
        report_if_overflow(*info, machine_context);
    errno = saved_errno;
    if ((previous.sa_flags & SA_SIGINFO) != 0)
        previous.sa_sigaction(signal, info, machine_context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        previous.sa_handler(signal);
    else if (is_fault || previous.sa_handler == SIG_DFL) {
        ::sigaction(signal, &previous, nullptr);
        if (!is_fault) ::raise(signal);
    }
}

// Call with the mutex held.
int install() noexcept {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    if (::sigaction(SIGSEGV, nullptr, &previous) != 0) return errno;
    if (::sigaction(SIGSEGV, &action, nullptr) != 0) return errno;
    installed = true;
    return 0;
}

std::size_t signal_stack_size() noexcept {
    const std::size_t least = ::getauxval(AT_MINSIGSTKSZ);  // grows with the vector registers
    return std::max<std::size_t>(64 * 1024, least + 32 * 1024);
}

// At the end of a thread: its alternate stack is unmapped.
void discard_signal_stack(void* memory) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    ::munmap(memory, signal_stack_size());
}

bool discard_at_the_end_of_this_thread(void* memory) noexcept {
    struct made_once {
        made_once() noexcept : error(::pthread_key_create(&key, discard_signal_stack)) {}
        pthread_key_t key{};
        int error;
    };
    static const made_once made;
    return made.error == 0 && ::pthread_setspecific(made.key, memory) == 0;
}

void give_this_thread_a_signal_stack() noexcept {
    stack_t current{};
    if (::sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
    void* memory = ::mmap(nullptr, signal_stack_size(), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;  // an overflow then dies by the signal, without our line
    stack_t alternate{};
    alternate.ss_sp = memory;
    alternate.ss_size = signal_stack_size();
    if (::sigaltstack(&alternate, nullptr) != 0)
        ::munmap(memory, signal_stack_size());
    else if (!discard_at_the_end_of_this_thread(memory))
        discard_signal_stack(memory);
}

}  // namespace

void enable_overflow_report() {
    const std::lock_guard lock(mutex);
    refused = false;
    reporting.store(true, std::memory_order_relaxed);
    if (installed) return;
    if (const int error = install(); error != 0)
        throw std::system_error(error, std::generic_category(),
                                "weft: installing a SIGSEGV handler");
}

void disable_overflow_report() noexcept {
    const std::lock_guard lock(mutex);
    refused = true;
    reporting.store(false, std::memory_order_relaxed);
    struct sigaction current {};
    if (!installed || ::sigaction(SIGSEGV, nullptr, &current) != 0) return;
    if ((current.sa_flags & SA_SIGINFO) == 0 || current.sa_sigaction != on_fault) return;
    ::sigaction(SIGSEGV, &previous, nullptr);
    installed = false;
}

void detail::prepare_thread_for_overflow() noexcept {
    this_thread_block().overflow_ready = true;
    give_this_thread_a_signal_stack();
    const std::lock_guard lock(mutex);
    if (!installed && !refused) static_cast<void>(install());
}

}  // namespace weft::inline v0
