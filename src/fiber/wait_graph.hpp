// wait_graph.hpp - who waits for whom, in builds with WEFT_CHECKS=1; elsewhere it is nothing.
//
//     const waits_for edge("waits for mutex", this, &holder_of, false);
//     wait(...);
//
// Each wait that only one other can end, the holder of a lock or a fiber that is joined, is an edge
// from the one that waits to that other. A new edge that closes a cycle is reported: all fibers of
// it, and what each waits for. If none of these waits can be cancelled the program aborts, for it
// would wait forever.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/fiber/detail/running_owner.hpp>

namespace weft::inline v0::detail {

#if defined(WEFT_CHECKS) && WEFT_CHECKS

/// While it lives the running fiber or thread waits for whoever holder(object) tells: a
/// running_owner(), or nullptr if nobody is known. Static texts.
class waits_for {
public:
    using holder_function = const void* (*)(const void* object) noexcept;
    waits_for(const char* how, const void* object, holder_function holder,
              bool cancellable) noexcept;
    waits_for(const waits_for&) = delete;
    waits_for& operator=(const waits_for&) = delete;
    ~waits_for();

private:
    bool noted_;
};

#else

class waits_for {
public:
    using holder_function = const void* (*)(const void* object) noexcept;
    waits_for(const char*, const void*, holder_function, bool) noexcept {}
};

#endif

}  // namespace weft::inline v0::detail
