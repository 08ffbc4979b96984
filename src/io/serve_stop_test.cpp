// serve_stop_test.cpp - serve(): connections that are late, or many, when it stops.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/serve.hpp>

#include <system_error>
#include <utility>
#include <vector>

#include <weft/io/unix.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// Accepts so many without any wait, and then nobody.
class short_listener {
public:
    explicit short_listener(int connections) : left_(connections) {}

    io::result<io::unix_stream> accept() {
        if (left_-- == 0) return std::unexpected(make_error_code(errc::closed));
        auto [here, there] = io::unix_stream::pair().value();
        others_.push_back(std::move(there));
        return std::move(here);
    }

private:
    int left_;
    std::vector<io::unix_stream> others_;
};

}  // namespace

MATRIX_TEST("serve: a handler that begins after the grace is cancelled, too") {
    short_listener listener(3);
    int told = 0;
    io::serve_report report;
    spawn([&] {
        report =
            io::serve(listener, [&](io::connection<io::unix_stream>&) { told += !sleep_for(1h); },
                      {.grace = 0ns, .fiber = options()});
    });
    run();
    CHECK(told == 3);
    CHECK(report.accepted == 3);
    CHECK(report.cut == 3);
    CHECK(report.stopped_by == errc::closed);
}
