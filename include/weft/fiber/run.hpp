// run.hpp - a whole program on fibers.
//
//     int main() { return weft::run([] { ...; return 0; }); }
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>

namespace weft::inline v0 {

namespace detail {
/// Asks every fiber of the executor to stop, those that come later too.
void stop_all_fibers(executor& home) noexcept;
}  // namespace detail

/// Runs function() as the first fiber of a new pool, with one worker for each CPU that this process
/// may use, and returns what it returns. Fibers that it left behind are asked to stop, and waited
/// for.
/// Suspends: inside a fiber of another executor; a plain thread sleeps. Fails: what the function
/// throws comes out; and as the making of a pool does.
template <std::invocable F>
std::invoke_result_t<F> run(F&& function,
                            std::source_location site = std::source_location::current()) {
    using result = std::invoke_result_t<F>;
    std::exception_ptr error;
    if constexpr (std::is_void_v<result>) {
        {
            pool all_cpus;
            go(
                all_cpus, {.name = "main"},
                [&] {
                    try {
                        std::forward<F>(function)();
                    } catch (...) { error = std::current_exception(); }
                    detail::stop_all_fibers(all_cpus);
                },
                site);
            all_cpus.drain();
        }
        if (error) std::rethrow_exception(error);
    } else if constexpr (std::is_reference_v<result>) {
        std::remove_reference_t<result>* value = nullptr;
        run(
            [&] {
                result returned = std::forward<F>(function)();
                value = std::addressof(returned);
            },
            site);
        return static_cast<result>(*value);
    } else {
        std::optional<result> value;
        run([&] { value.emplace(std::forward<F>(function)()); }, site);
        return std::move(*value);
    }
}

}  // namespace weft::inline v0
