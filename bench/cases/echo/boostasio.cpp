// boostasio.cpp - the case `echo` on Boost.Asio, by callbacks and by C++20 coroutines.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <utility>  // Asio forgets it

#include <boost/asio.hpp>
#include <boost/version.hpp>

#include "cases/echo/workload.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

class session : public std::enable_shared_from_this<session> {
public:
    explicit session(tcp::socket socket) : socket_(std::move(socket)) {}
    void read() {
        socket_.async_read_some(asio::buffer(buffer_),
                                [self = shared_from_this()](auto error, std::size_t size) {
                                    if (!error) self->write(size);
                                });
    }

private:
    void write(std::size_t size) {
        asio::async_write(socket_, asio::buffer(buffer_, size),
                          [self = shared_from_this()](auto error, std::size_t) {
                              if (!error) self->read();
                          });
    }

    tcp::socket socket_;
    std::array<char, 4096> buffer_;
};

tcp::acceptor listen(asio::io_context& context) {
    return {context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
}

void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([&acceptor](auto error, tcp::socket socket) {
        bench::require(!error, "accept");
        socket.set_option(tcp::no_delay(true));
        std::make_shared<session>(std::move(socket))->read();
        accept(acceptor);
    });
}

void callbacks(const auto& tell) {
    asio::io_context context(1);
    tcp::acceptor acceptor = listen(context);
    tell(acceptor.local_endpoint().port());
    accept(acceptor);
    context.run();
}

asio::awaitable<void> serve_one(tcp::socket socket) {
    std::array<char, 4096> buffer;
    try {
        for (;;) {
            const std::size_t size =
                co_await socket.async_read_some(asio::buffer(buffer), asio::use_awaitable);
            co_await asio::async_write(socket, asio::buffer(buffer, size), asio::use_awaitable);
        }
    } catch (const boost::system::system_error&) {}
}

asio::awaitable<void> accept_all(tcp::acceptor& acceptor) {
    for (;;) {
        tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
        socket.set_option(tcp::no_delay(true));
        asio::co_spawn(acceptor.get_executor(), serve_one(std::move(socket)), asio::detached);
    }
}

void coroutines(const auto& tell) {
    asio::io_context context(1);
    tcp::acceptor acceptor = listen(context);
    tell(acceptor.local_endpoint().port());
    asio::co_spawn(context, accept_all(acceptor), asio::detached);
    context.run();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Asio of Boost " BOOST_LIB_VERSION);
    const auto by_callbacks = [] { return bench::server([](auto tell) { callbacks(tell); }); };
    const auto by_coroutines = [] { return bench::server([](auto tell) { coroutines(tell); }); };
    bench::echo::measure(how, "Asio, callbacks", by_callbacks);
    bench::echo::measure(how, "Asio, coroutines", by_coroutines);
    bench::echo::measure_idle(how, "Asio, callbacks", by_callbacks);
    bench::echo::measure_idle(how, "Asio, coroutines", by_coroutines);
}
