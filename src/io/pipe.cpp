// pipe.cpp - see pipe.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/pipe.hpp>

#include <fcntl.h>
#include <unistd.h>

#include "io/system_call.hpp"

namespace weft::inline v0::io {

result<pipe> pipe::make() {
    int both[2];
    const long done = detail::system_call([&] { return ::pipe2(both, O_CLOEXEC | O_NONBLOCK); });
    if (done < 0) return detail::system_error_of(done);
    result<descriptor> reader = descriptor::adopt_prepared(both[0]);
    result<descriptor> writer = descriptor::adopt_prepared(both[1]);
    if (!reader) return std::unexpected(reader.error());
    if (!writer) return std::unexpected(writer.error());
    return pipe{pipe_reader(std::move(*reader)), pipe_writer(std::move(*writer))};
}

}  // namespace weft::inline v0::io
