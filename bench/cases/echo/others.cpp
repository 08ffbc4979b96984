// others.cpp - the case `echo` in Go: measures the server of go.go, if it was built.
//
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "cases/echo/workload.hpp"

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    if (!std::filesystem::exists(bench::beside("go"))) {
        bench::report_none({"Go, idle", "B"}, "Go is not there");
        return 0;
    }
    const auto make = [](const char* buffer) {
        return [buffer] { return bench::server({bench::beside("go"), buffer}); };
    };
    bench::about(make("512")().about());
    bench::echo::measure(how, "Go", make("4096"));
    bench::echo::measure_idle(how, "Go", make("512"));
}
