// channels.cpp - a pipeline of fibers over channels, a select among them, and futures of it all.
//
//     lines -> words -> counts            each arrow is a channel; whoever is done closes it
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

namespace {

using counts = std::map<std::string, int>;

void split(channel<std::string>& lines, channel<std::string>& words) {
    for (const std::string& line : lines) {
        std::istringstream in(line);
        for (std::string word; in >> word;)
            if (!words.send(std::move(word))) return;
    }
}

counts count(channel<std::string>& words) {
    counts all;
    for (const std::string& word : words) ++all[word];
    return all;
}

/// What comes first: an item, a stop, or a pause of a second.
const char* first_of(channel<int>& items, channel<bool>& stop) {
    const char* which = "cancelled";
    static_cast<void>(select(on_receive(items, [&](auto) { which = "an item"; }),
                             on_receive(stop, [&](auto) { which = "stop"; }),
                             on_timeout(1s, [&] { which = "nothing"; })));
    return which;
}

}  // namespace

int main() {
    return run([] {
        channel<std::string> lines(4);
        channel<std::string> words;
        future<counts> counted = async([&] { return count(words); });
        {
            future<void> splits[] = {async([&] { split(lines, words); }),
                                     async([&] { split(lines, words); })};
            for (const char* line : {"the warp and the weft", "the weft goes to and fro"})
                lines.send(line).value();
            lines.close();
        }  // both have ended
        words.close();
        for (const auto& [word, times] : counted.get()) std::printf("%s %d\n", word.c_str(), times);

        channel<int> items;
        channel<bool> stop(1);
        stop.send(true).value();
        std::printf("%s\n", first_of(items, stop));
        auto [first, second] = when_all(async([&] { return items.receive().value(); }),
                                        async([&] { return items.send(3).has_value(); }))
                                   .get();
        return first.get() == 3 && second.get() ? 0 : 1;
    });
}
