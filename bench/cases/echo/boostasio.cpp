// boostasio.cpp - the case `echo` on Boost.Asio, by callbacks and by C++20 coroutines.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <functional>
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

void accept(tcp::acceptor& acceptor, unsigned left) {
    if (left == 0) return;
    acceptor.async_accept([&acceptor, left](auto error, tcp::socket socket) {
        bench::require(!error, "accept");
        socket.set_option(tcp::no_delay(true));
        std::make_shared<session>(std::move(socket))->read();
        accept(acceptor, left - 1);
    });
}

void callbacks(unsigned count, const std::function<void(std::uint16_t)>& start) {
    asio::io_context context(1);
    tcp::acceptor acceptor = listen(context);
    start(acceptor.local_endpoint().port());
    accept(acceptor, count);
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

asio::awaitable<void> accept_all(tcp::acceptor& acceptor, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
        socket.set_option(tcp::no_delay(true));
        asio::co_spawn(acceptor.get_executor(), serve_one(std::move(socket)), asio::detached);
    }
}

void coroutines(unsigned count, const std::function<void(std::uint16_t)>& start) {
    asio::io_context context(1);
    tcp::acceptor acceptor = listen(context);
    start(acceptor.local_endpoint().port());
    asio::co_spawn(context, accept_all(acceptor, count), asio::detached);
    context.run();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Asio of Boost " BOOST_LIB_VERSION);
    bench::echo::measure(how, "Asio, callbacks", callbacks);
    bench::echo::measure(how, "Asio, coroutines", coroutines);
}
