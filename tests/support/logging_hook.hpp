// logging_hook.hpp - a suspend hook that writes down what it is asked.
//
// Of one named 'a': '<' set, 'a' it suspends, '1' it has suspended, 'A' it comes back, '>' removed.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <weft/fiber/suspend_hook.hpp>

namespace weft_test {

class logging_hook : public weft::suspend_hook {
public:
    logging_hook(std::string& log, char name) : log_(log), name_(name) {}
    void suspend() override {
        log_ += name_;
        suspend_hook::suspend();
        log_ += static_cast<char>(name_ - 'a' + 'A');
    }
    weft::runnable* suspended(weft::runnable* r) noexcept override {
        log_ += static_cast<char>(name_ - 'a' + '1');
        return suspend_hook::suspended(r);
    }
    void start() override { log_ += '<'; }
    void finish() noexcept override { log_ += '>'; }

protected:
    std::string& log_;
    char name_;
};

}  // namespace weft_test
