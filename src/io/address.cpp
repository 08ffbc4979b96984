// address.cpp - see address.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/address.hpp>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>

namespace weft::inline v0::io {

namespace {

static_assert(sizeof(sockaddr_un) <= 112 && sizeof(sockaddr_in6) <= 112);

std::unexpected<std::error_code> invalid() noexcept {
    return std::unexpected(std::make_error_code(std::errc::invalid_argument));
}

template <class T>
T read_as(const void* data) noexcept {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

// Of an IPv6 address: the number of the interface that it names, or its name; 0: wrong.
std::uint32_t scope_of(const char* name) noexcept {
    std::uint32_t number = 0;
    const char* const end = name + std::strlen(name);
    if (const auto [at, error] = std::from_chars(name, end, number);
        error == std::errc() && at == end)
        return number;
    return ::if_nametoindex(name);
}

template <class T>
address from(const T& value) noexcept {
    return address::from_system(&value, sizeof value).value_or(address());
}

}  // namespace

address::address(std::string_view host, std::uint16_t port) {
    const result<address> parsed = parse(host, port);
    if (!parsed)
        throw std::system_error(parsed.error(),
                                "weft: address: not a number: " + std::string(host));
    *this = *parsed;
}

result<address> address::parse(std::string_view host, std::uint16_t port) noexcept {
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];
    if (host.size() >= sizeof text || host.find('\0') != host.npos) return invalid();
    host.copy(text, host.size());
    text[host.size()] = '\0';
    sockaddr_in four{};
    if (::inet_pton(AF_INET, text, &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(port);
        return from(four);
    }
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (char* const percent = std::strchr(text, '%')) {
        *percent = '\0';
        six.sin6_scope_id = scope_of(percent + 1);
        if (six.sin6_scope_id == 0) return invalid();
    }
    if (::inet_pton(AF_INET6, text, &six.sin6_addr) != 1) return invalid();
    return from(six);
}

result<address> address::parse(std::string_view text) noexcept {
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos) return invalid();
    std::string_view host = text.substr(0, colon);
    const std::string_view digits = text.substr(colon + 1);
    std::uint16_t port = 0;
    const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || at != digits.data() + digits.size()) return invalid();
    const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    if ((host.find(':') != host.npos) != bracketed) return invalid();
    return parse(host, port);
}

result<address> address::local(std::string_view path) noexcept {
    sockaddr_un made{};
    const bool in_file_system = !path.empty() && path[0] != '\0';
    if (path.empty() || path.find('\0', 1) != path.npos) return invalid();
    if (path.size() + (in_file_system ? 1 : 0) > sizeof made.sun_path)
        return std::unexpected(std::make_error_code(std::errc::filename_too_long));
    made.sun_family = AF_UNIX;
    path.copy(made.sun_path, path.size());
    return from_system(&made,
                       offsetof(sockaddr_un, sun_path) + path.size() + (in_file_system ? 1 : 0));
}

result<address> address::from_system(const void* data, std::size_t size) noexcept {
    address made;
    if (size > made.bytes_.size() || size < sizeof(sa_family_t)) return invalid();
    const auto family = read_as<sa_family_t>(data);
    const bool known = (family == AF_INET && size == sizeof(sockaddr_in)) ||
                       (family == AF_INET6 && size == sizeof(sockaddr_in6)) || family == AF_UNIX;
    if (!known)
        return std::unexpected(std::make_error_code(std::errc::address_family_not_supported));
    std::memcpy(made.bytes_.data(), data, size);
    made.size_ = static_cast<std::uint16_t>(size);
    return made;
}

address address::any_ipv4(std::uint16_t port) noexcept {
    return parse("0.0.0.0", port).value_or(address());
}
address address::any_ipv6(std::uint16_t port) noexcept {
    return parse("::", port).value_or(address());
}
address address::loopback_ipv4(std::uint16_t port) noexcept {
    return parse("127.0.0.1", port).value_or(address());
}
address address::loopback_ipv6(std::uint16_t port) noexcept {
    return parse("::1", port).value_or(address());
}

address_family address::family() const noexcept {
    if (size_ == 0) return address_family::none;
    switch (read_as<sa_family_t>(data())) {
        case AF_INET:
            return address_family::ipv4;
        case AF_INET6:
            return address_family::ipv6;
        default:
            return address_family::local;
    }
}

std::uint16_t address::port() const noexcept {
    switch (family()) {
        case address_family::ipv4:
            return ntohs(read_as<sockaddr_in>(data()).sin_port);
        case address_family::ipv6:
            return ntohs(read_as<sockaddr_in6>(data()).sin6_port);
        default:
            return 0;
    }
}

address address::with_port(std::uint16_t port) const noexcept {
    address changed = *this;
    const std::uint16_t swapped = htons(port);
    std::size_t at = 0;
    if (family() == address_family::ipv4)
        at = offsetof(sockaddr_in, sin_port);
    else if (family() == address_family::ipv6)
        at = offsetof(sockaddr_in6, sin6_port);
    else
        return changed;
    std::memcpy(changed.bytes_.data() + at, &swapped, sizeof swapped);
    return changed;
}

std::string address::host() const {
    char text[INET6_ADDRSTRLEN] = "";
    switch (family()) {
        case address_family::none:
            return "";
        case address_family::ipv4: {
            const auto four = read_as<sockaddr_in>(data());
            ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
            return text;
        }
        case address_family::ipv6: {
            const auto six = read_as<sockaddr_in6>(data());
            ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
            std::string all = text;
            // Here and below a char, not a text, before the +: g++ 12 warns of that with -O3.
            if (six.sin6_scope_id != 0) all += '%' + std::to_string(six.sin6_scope_id);
            return all;
        }
        case address_family::local:
            break;
    }
    const std::size_t begin = offsetof(sockaddr_un, sun_path);
    if (size_ <= begin) return "";
    std::string path(reinterpret_cast<const char*>(bytes_.data()) + begin, size_ - begin);
    if (path[0] == '\0')
        path[0] = '@';
    else
        path.resize(std::strlen(path.c_str()));
    return path;
}

std::string address::to_string() const {
    switch (family()) {
        case address_family::ipv4:
            return host() + ":" + std::to_string(port());
        case address_family::ipv6:
            return '[' + host() + "]:" + std::to_string(port());
        default:
            return host();
    }
}

bool address::operator==(const address& other) const noexcept {
    return size_ == other.size_ && std::memcmp(data(), other.data(), size_) == 0;
}

}  // namespace weft::inline v0::io
