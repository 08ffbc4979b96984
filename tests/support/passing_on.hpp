// passing_on.hpp - an executor as a user writes one, whose work another executor runs.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <weft/exec/executor.hpp>

namespace weft_test {

class passing_on final : public weft::executor {
public:
    explicit passing_on(weft::executor& to) : to_(to) {}
    void post(weft::runnable* r) override { to_.post(new parcel(r)); }
    void defer(weft::runnable* r) override { to_.defer(new parcel(r)); }
    void add_work(std::ptrdiff_t change) noexcept override { to_.add_work(change); }

private:
    struct parcel final : weft::runnable {
        explicit parcel(weft::runnable* r) : inside(r) {}
        weft::runnable* run() noexcept override {
            weft::runnable* const opened = inside;
            delete this;
            return opened->run();
        }
        weft::runnable* inside;
    };
    weft::executor& to_;
};

}  // namespace weft_test
