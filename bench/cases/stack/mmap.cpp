// mmap.cpp - a stack the plain way: mmap, one page of it forbidden by mprotect, munmap.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <system_error>

#include "cases/stack/workload.hpp"

namespace {

class mmap_source {
public:
    bench::area take() {
        void* base = ::mmap(nullptr, guard_size + bench::stack_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
        if (::mprotect(base, guard_size, PROT_NONE) != 0) {
            const int error = errno;
            ::munmap(base, guard_size + bench::stack_size);
            throw std::system_error(error, std::generic_category(), "mprotect");
        }
        return {static_cast<std::byte*>(base) + guard_size, bench::stack_size};
    }
    void give_back(const bench::area& a) { ::munmap(a.low - guard_size, guard_size + a.size); }

private:
    static constexpr std::size_t guard_size = 4096;
};

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    mmap_source source;
    bench::measure_pair(how, "mmap, mprotect, munmap", 50'000, source);
    bench::crowd(how, "mmap and mprotect", 1'000'000, source).measure(true);
}
